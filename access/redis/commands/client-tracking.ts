// CLIENT TRACKING and related commands: client-side caching.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { CommandError, syntaxError } from '../../../universal-row/errors.ts';
import type { Client, ClientCommand } from '../client.ts';
import { redirectOf } from '../describe-client.ts';
import type { TrackingState } from '../tracking.ts';
import { ownIdOf } from '../wide-id.ts';

interface Options {
  redirect: number;
  prefixes: string[];
  isBroadcast: boolean;
  optIn: boolean;
  optOut: boolean;
  noLoop: boolean;
}

function refuse(text: string): never {
  throw new CommandError(`ERR ${text}`);
}

function parseOptions({ tenant, server }: Client, args: Arguments): Options {
  const options: Options = {
    redirect: 0,
    prefixes: [],
    isBroadcast: false,
    optIn: false,
    optOut: false,
    noLoop: false,
  };
  for (let i = 3; i < args.count; i++) {
    const hasMore = i + 1 < args.count;
    if (args.is(i, 'REDIRECT') && hasMore) {
      if (options.redirect !== 0) refuse('A client can only redirect to a single other client');
      options.redirect = args.integer(++i);
      // Messages do not go to clients of other nodes.
      options.redirect = ownIdOf(options.redirect, server) ?? -1;
      const target = server.connections.get(options.redirect);
      if (target === undefined || target.tenant !== tenant) {
        refuse('The client ID you want redirect to does not exist');
      }
    } else if (args.is(i, 'BCAST')) options.isBroadcast = true;
    else if (args.is(i, 'OPTIN')) options.optIn = true;
    else if (args.is(i, 'OPTOUT')) options.optOut = true;
    else if (args.is(i, 'NOLOOP')) options.noLoop = true;
    else if (args.is(i, 'PREFIX') && hasMore) options.prefixes.push(args.latin1(++i));
    else throw syntaxError;
  }
  return options;
}

/** Checks that the options agree with each other and with the client's earlier ones. */
function check(options: Options, before: TrackingState | undefined): void {
  const { isBroadcast, optIn, optOut, prefixes } = options;
  const otherMode =
    'before disabling tracking for this client, and then re-enabling it with a different mode.';
  if (!isBroadcast && prefixes.length > 0) {
    refuse('PREFIX option requires BCAST mode to be enabled');
  }
  if (before !== undefined && before.isBroadcast !== isBroadcast) {
    refuse(`You can't switch BCAST mode on/off ${otherMode}`);
  }
  if (isBroadcast && (optIn || optOut)) refuse('OPTIN and OPTOUT are not compatible with BCAST');
  if (optIn && optOut) refuse("You can't specify both OPTIN mode and OPTOUT mode");
  if (before !== undefined && ((optIn && before.optOut) || (optOut && before.optIn))) {
    refuse(`You can't switch OPTIN/OPTOUT mode ${otherMode}`);
  }
  if (isBroadcast) checkPrefixes(prefixes, before?.prefixes ?? new Set());
}

function checkPrefixes(prefixes: readonly string[], before: ReadonlySet<string>): void {
  const mustNot = 'Prefixes for a single client must not overlap.';
  for (const [i, prefix] of prefixes.entries()) {
    for (const other of before) {
      if (overlap(prefix, other)) {
        refuse(`Prefix '${prefix}' overlaps with an existing prefix '${other}'. ${mustNot}`);
      }
    }
    for (const other of prefixes.slice(i + 1)) {
      if (overlap(prefix, other)) {
        refuse(`Prefix '${prefix}' overlaps with another provided prefix '${other}'. ${mustNot}`);
      }
    }
  }
}

function overlap(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}

function track(connection: Client, args: Arguments): void {
  const options = parseOptions(connection, args);
  const { tracking: before, server, tenant } = connection;
  check(options, before);
  if (options.prefixes.length > 0 && tenant.tracking.isFullOfPrefixes) {
    refuse('too many prefixes are tracked');
  }
  const { prefixes, ...rest } = options;
  const added = options.isBroadcast && prefixes.length === 0 ? [''] : prefixes;
  const all = new Set([...(before?.prefixes ?? []), ...added]);
  server.track(connection, { ...rest, prefixes: all, caching: false, isBroken: false });
}

function flagsOf(tracking: TrackingState | undefined): string[] {
  if (tracking === undefined) return ['off'];
  const { isBroadcast, optIn, optOut, noLoop, caching, isBroken } = tracking;
  const flags = ['on'];
  if (isBroadcast) flags.push('bcast');
  if (optIn) flags.push('optin', ...(caching ? ['caching-yes'] : []));
  if (optOut) flags.push('optout', ...(caching ? ['caching-no'] : []));
  if (noLoop) flags.push('noloop');
  if (isBroken) flags.push('broken_redirect');
  return flags;
}

const plain = { group: 'connection', flags: ['noscript', 'loading', 'stale'] } as const;

export const trackingSubcommands: readonly ClientCommand[] = [
  {
    ...plain,
    name: 'tracking',
    arity: -3,
    syntax:
      '<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]',
    since: '6.0.0',
    summary: 'Controls server-assisted client-side caching for the connection.',
    complexity: 'O(1). Some options may introduce additional complexity.',
    handle(connection, args, reply) {
      if (args.is(2, 'ON')) track(connection, args);
      else if (args.is(2, 'OFF')) {
        parseOptions(connection, args);
        connection.server.track(connection, undefined);
      } else throw syntaxError;
      const following = connection.tracking && connection.server.changesAreFollowed;
      if (following !== undefined && !connection.isExecuting) {
        return following.then(() => {
          connection.answer().ok();
        });
      }
      reply.ok();
      return undefined;
    },
  },
  {
    ...plain,
    name: 'caching',
    arity: 3,
    syntax: '<YES | NO>',
    since: '6.0.0',
    summary:
      'Instructs the server whether to track the keys in the next request of the connection.',
    complexity: 'O(1)',
    handle({ tracking }, args, reply) {
      if (tracking === undefined) {
        refuse(
          'CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled',
        );
      }
      if (args.is(2, 'YES')) {
        if (!tracking.optIn) {
          refuse('CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.');
        }
      } else if (!args.is(2, 'NO')) throw syntaxError;
      else if (!tracking.optOut) {
        refuse('CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.');
      }
      tracking.caching = true;
      reply.ok();
    },
  },
  {
    ...plain,
    name: 'getredir',
    arity: 2,
    since: '6.0.0',
    summary:
      'Returns the client ID to which the tracking notifications of the connection are redirected.',
    complexity: 'O(1)',
    handle(client, _args, reply) {
      reply.integer(redirectOf(client));
    },
  },
  {
    ...plain,
    name: 'trackinginfo',
    arity: 2,
    since: '6.2.0',
    summary: 'Returns information about server-assisted client-side caching for the connection.',
    complexity: 'O(1)',
    handle(client, _args, reply) {
      const { tracking } = client;
      const flags = flagsOf(tracking);
      const prefixes = [...(tracking?.prefixes ?? [])].sort();
      reply.map(3);
      reply.text('flags');
      reply.set(flags.length);
      for (const flag of flags) reply.text(flag);
      reply.text('redirect');
      reply.integer(redirectOf(client));
      reply.text('prefixes');
      reply.array(prefixes.length);
      for (const prefix of prefixes) {
        const bytes = Buffer.from(prefix, 'latin1');
        reply.bulk(bytes, 0, bytes.length);
      }
    },
  },
];
