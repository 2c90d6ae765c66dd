// CLIENT: the list of clients, their names, and what can be done to them.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { CommandError, syntaxError } from '../../../universal-row/errors.ts';
import { whenReady } from '../../../universal-row/maybe-promise.ts';
import { type Client, ClientFlag, type ClientCommand } from '../client.ts';
import { type ClientType, describeClient, typeOf } from '../describe-client.ts';
import { eachInSlices } from '../in-slices.ts';
import type { RespWriter } from '../resp-writer.ts';
import { trackingSubcommands } from './client-tracking.ts';
import { isPlainName } from './connection.ts';
import { helpOf } from './support/help.ts';

function positiveId(args: Arguments, word: number): number {
  const id = args.integerOrNaN(word);
  if (!(id > 0)) throw new CommandError('ERR client-id should be greater than 0');
  return id;
}

function clientType(text: string): ClientType {
  const type = text.toLowerCase();
  if (type === 'slave') return 'replica';
  if (type === 'normal' || type === 'pubsub' || type === 'master' || type === 'replica') {
    return type;
  }
  throw new CommandError(`ERR Unknown client type '${text}'`);
}

function setInfo(connection: Client, attribute: string, value: string): string | undefined {
  const name = attribute.toLowerCase();
  if (name !== 'lib-name' && name !== 'lib-ver') return `ERR Unrecognized option '${attribute}'`;
  if (!isPlainName(value)) {
    return `ERR ${name} cannot contain spaces, newlines or special characters.`;
  }
  if (name === 'lib-name') connection.update({ libName: value });
  else connection.update({ libVersion: value });
  return undefined;
}

interface KillFilter {
  id?: number;
  type?: ClientType;
  address?: string;
  localAddress?: string;
  user?: string;
  skipMe: boolean;
}

function killFilter({ server, tenant }: Client, args: Arguments): KillFilter {
  const filter: KillFilter = { skipMe: true };
  for (let i = 2; i < args.count; i += 2) {
    if (i + 1 >= args.count) throw syntaxError;
    const value = args.text(i + 1);
    if (args.is(i, 'ID')) filter.id = positiveId(args, i + 1);
    else if (args.is(i, 'TYPE')) filter.type = clientType(value);
    else if (args.is(i, 'ADDR')) filter.address = value;
    else if (args.is(i, 'LADDR')) filter.localAddress = value;
    else if (args.is(i, 'USER')) {
      if (server.principals.user(tenant.definition.name, value) === undefined) {
        throw new CommandError(`ERR No such user '${args.latin1(i + 1)}'`);
      }
      filter.user = value;
    } else if (args.is(i, 'SKIPME') && args.is(i + 1, 'YES')) filter.skipMe = true;
    else if (args.is(i, 'SKIPME') && args.is(i + 1, 'NO')) filter.skipMe = false;
    else throw syntaxError;
  }
  return filter;
}

function matches(connection: Client, filter: KillFilter, self: Client): boolean {
  if (filter.skipMe && connection === self) return false;
  return (
    (filter.id === undefined || connection.id === filter.id) &&
    (filter.type === undefined || typeOf(connection) === filter.type) &&
    (filter.address === undefined || connection.address === filter.address) &&
    (filter.localAddress === undefined || connection.localAddress === filter.localAddress) &&
    (filter.user === undefined || connection.user === filter.user)
  );
}

/** Closing a socket takes longer than looking at one. */
const killsAtOnce = 64;

/** Where to answer: within EXEC where the others do, else in a segment of its own behind what was written for others. */
function outOf(connection: Client, reply: RespWriter): RespWriter {
  return connection.isExecuting && reply !== connection.server.writer ? reply : connection.answer();
}

/** Cuts a client off; the one asking first gets its answer. */
function kill(connection: Client, self: Client): void {
  if (connection === self) connection.closeSoon();
  else connection.destroy();
}

const common = {
  group: 'connection',
  flags: ['admin', 'noscript', 'loading', 'stale'],
} as const;
const plain = { group: 'connection', flags: ['noscript', 'loading', 'stale'] } as const;

const subcommands: readonly ClientCommand[] = [
  {
    ...plain,
    name: 'id',
    arity: 2,
    since: '5.0.0',
    summary: 'Returns the unique client ID of the connection.',
    handle(connection, _args, reply) {
      reply.integer(connection.id);
    },
  },
  {
    ...plain,
    name: 'info',
    arity: 2,
    since: '6.2.0',
    summary: 'Returns information about the connection.',
    handle(connection, _args, reply) {
      reply.verbatim(`${describeClient(connection, connection.entry)}\n`);
    },
  },
  {
    ...common,
    name: 'list',
    maxWords: 16_384,
    arity: -2,
    syntax: '[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]',
    since: '2.4.0',
    summary: 'Lists open connections.',
    complexity: 'O(N) where N is the number of client connections',
    handle(connection, args, reply) {
      let shown = [...connection.tenant.connections].sort((a, b) => a.id - b.id);
      if (args.count > 2) {
        if (args.is(2, 'TYPE') && args.count === 4) {
          const type = clientType(args.text(3));
          shown = shown.filter((one) => typeOf(one) === type);
        } else if (args.is(2, 'ID') && args.count > 3) {
          const ids = new Set<number>();
          for (let i = 3; i < args.count; i++) {
            const id = args.integerOrNaN(i);
            if (Number.isNaN(id)) throw new CommandError('ERR Invalid client ID');
            ids.add(id);
          }
          shown = shown.filter((one) => ids.has(one.id));
        } else throw syntaxError;
      }
      const lines: string[] = [];
      const { entry } = connection;
      const all = eachInSlices(connection, shown, (one) => {
        lines.push(`${describeClient(one, one === connection ? entry : undefined)}\n`);
      });
      return whenReady(all, () => outOf(connection, reply).verbatim(lines.join('')));
    },
  },
  {
    ...plain,
    name: 'getname',
    arity: 2,
    since: '2.6.9',
    summary: 'Returns the name of the connection.',
    handle(connection, _args, reply) {
      if (connection.name === '') reply.nil();
      else reply.text(connection.name);
    },
  },
  {
    ...plain,
    name: 'setname',
    arity: 3,
    syntax: 'connection-name',
    since: '2.6.9',
    summary: 'Sets the connection name.',
    handle(connection, args, reply) {
      const name = args.text(2);
      if (!isPlainName(name)) {
        reply.error('ERR Client names cannot contain spaces, newlines or special characters.');
        return;
      }
      connection.update({ name });
      reply.ok();
    },
  },
  {
    ...plain,
    name: 'setinfo',
    arity: 4,
    syntax: '<LIB-NAME libname | LIB-VER libver>',
    since: '7.2.0',
    summary: 'Sets information specific to the client or connection.',
    handle(connection, args, reply) {
      const wrong = setInfo(connection, args.text(2), args.text(3));
      if (wrong === undefined) reply.ok();
      else reply.error(wrong);
    },
  },
  {
    ...common,
    name: 'kill',
    arity: -3,
    syntax:
      '<ip:port | <[ID client-id] | [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] | [USER username] | [ADDR ip:port] | [LADDR ip:port] | [SKIPME yes/no]> [<[ID client-id] | [TYPE <NORMAL | MASTER | SLAVE | REPLICA | PUBSUB>] | [USER username] | [ADDR ip:port] | [LADDR ip:port] | [SKIPME yes/no]> ...]>',
    since: '2.4.0',
    summary: 'Terminates open connections.',
    complexity: 'O(N) where N is the number of client connections',
    handle(connection, args, reply) {
      const all = [...connection.tenant.connections];
      if (args.count === 3) {
        const address = args.text(2);
        const one = all.find((other) => other.address === address);
        if (one === undefined) {
          reply.error('ERR No such client');
          return;
        }
        kill(one, connection);
        reply.ok();
        return;
      }
      const filter = killFilter(connection, args);
      const doomed = all.filter((one) => matches(one, filter, connection));
      const killed = eachInSlices(connection, doomed, (one) => kill(one, connection), killsAtOnce);
      return whenReady(killed, () => outOf(connection, reply).integer(doomed.length));
    },
  },
  {
    ...common,
    name: 'unblock',
    arity: -3,
    syntax: 'client-id [TIMEOUT | ERROR]',
    since: '5.0.0',
    summary: 'Unblocks a client blocked by a blocking command from a different connection.',
    handle(connection, args, reply) {
      let withError = false;
      if (args.count === 4) {
        if (args.is(3, 'ERROR')) withError = true;
        else if (!args.is(3, 'TIMEOUT')) {
          throw new CommandError('ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR');
        }
      } else if (args.count > 4) throw syntaxError;
      const other = connection.server.connections.get(args.integer(2));
      const isOwn = other !== undefined && other.tenant === connection.tenant;
      const done = isOwn && other.unblockNow(withError);
      outOf(connection, reply).integer(done ? 1 : 0);
    },
  },
  {
    ...plain,
    name: 'reply',
    arity: 3,
    syntax: '<ON | OFF | SKIP>',
    since: '3.2.0',
    summary: 'Instructs the server whether to reply to commands.',
    handle(connection, args, reply) {
      if (args.is(2, 'ON')) {
        connection.setFlag(ClientFlag.replyOff | ClientFlag.replySkip, false);
        reply.ok();
      } else if (args.is(2, 'OFF')) connection.setFlag(ClientFlag.replyOff, true);
      else if (args.is(2, 'SKIP')) {
        if (!(connection.flags & ClientFlag.replyOff))
          connection.setFlag(ClientFlag.replySkipNext, true);
      } else throw syntaxError;
    },
  },
  {
    ...common,
    name: 'no-evict',
    arity: 3,
    syntax: '<ON | OFF>',
    since: '7.0.0',
    summary: 'Sets the client eviction mode of the connection.',
    handle(connection, args, reply) {
      connection.update({ noEvict: onOff(args, 2) });
      reply.ok();
    },
  },
  {
    ...plain,
    name: 'no-touch',
    arity: 3,
    syntax: '<ON | OFF>',
    since: '7.2.0',
    summary: 'Controls whether commands sent by the client affect the LRU/LFU of accessed keys.',
    handle(connection, args, reply) {
      connection.update({ noTouch: onOff(args, 2) });
      reply.ok();
    },
  },
  ...trackingSubcommands,
  {
    ...common,
    name: 'pause',
    serverWide: true,
    arity: -3,
    syntax: 'timeout:integer [WRITE | ALL]',
    since: '3.0.0',
    summary: 'Suspends commands processing.',
    handle(connection, args, reply) {
      const ms = args.integerOrNaN(2);
      if (Number.isNaN(ms)) throw new CommandError('ERR timeout is not an integer or out of range');
      if (ms < 0) throw new CommandError('ERR timeout is negative');
      let writesOnly = false;
      if (args.count === 4) {
        if (args.is(3, 'WRITE')) writesOnly = true;
        else if (!args.is(3, 'ALL')) throw syntaxError;
      }
      connection.server.pauseClients(ms, writesOnly);
      reply.ok();
    },
  },
  {
    ...common,
    name: 'unpause',
    serverWide: true,
    arity: 2,
    since: '6.2.0',
    summary: 'Resumes processing commands from paused clients.',
    handle(connection, _args, reply) {
      connection.server.unpauseClients();
      reply.ok();
    },
  },
];

function onOff(args: Arguments, word: number): boolean {
  if (args.is(word, 'ON')) return true;
  if (args.is(word, 'OFF')) return false;
  throw syntaxError;
}

export const clientCommands: readonly ClientCommand[] = [
  {
    name: 'client',
    arity: -2,
    flags: [],
    group: 'connection',
    since: '2.4.0',
    summary: 'A container for client connection commands.',
    handle(_connection, _args, reply) {
      reply.error("ERR wrong number of arguments for 'client' command");
    },
    subcommands: [...subcommands, helpOf('client', subcommands)],
  },
];
