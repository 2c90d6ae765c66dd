// Publish and subscribe: channels, patterns, shard channels.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import { whenReady } from '../../../universal-row/maybe-promise.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import { type Client, ClientFlag, type ClientCommand, type ClientHandler } from '../client.ts';
import { allNames, askWide } from '../cluster-wide.ts';
import { FanOut } from '../fan-out.ts';
import { outOfRequestMemory } from '../held-memory.ts';
import { eachInSlices, inSlices } from '../in-slices.ts';
import { own, receiversOf, type ChannelKind } from '../pubsub.ts';
import { LongAnswer, type RespWriter } from '../resp-writer.ts';
import type { CommandFlag } from './spec.ts';
import { helpOf } from './support/help.ts';

const noMemory = new CommandError(outOfRequestMemory);

const flags: readonly CommandFlag[] = ['pubsub', 'noscript', 'loading', 'stale'];

/** Count in an acknowledgement: shard channels on their own, else all others. */
function listening(connection: Client, kind: ChannelKind): number {
  if (kind === 'shard') return connection.shardChannels.size;
  return connection.channels.size + connection.patterns.size;
}

function markSubscribed(connection: Client): void {
  const any =
    connection.channels.size + connection.patterns.size + connection.shardChannels.size > 0;
  if (any) connection.setFlag(ClientFlag.subscribed, true);
  else connection.setFlag(ClientFlag.subscribed, false);
}

function subscribe(kind: ChannelKind, word: string): ClientHandler {
  return (connection, args, reply) => {
    const { pubsub } = connection.tenant;
    return inSlices(
      connection,
      args,
      args.count - 1,
      reply,
      (i, words, out) => {
        const name = words.latin1(i + 1);
        if (!pubsub.subscribe(connection, kind, name)) throw noMemory;
        out.push(3);
        out.text(word);
        out.bulk(words.buf, words.starts[i + 1]!, words.lens[i + 1]!);
        out.integer(listening(connection, kind));
        // Acknowledgements are sent, whatever happens to the remaining ones.
        connection.keepReply();
        return name.length;
      },
      () => markSubscribed(connection),
    );
  };
}

function unsubscribe(kind: ChannelKind, word: string): ClientHandler {
  return (connection, args, reply) => {
    const { pubsub } = connection.tenant;
    const names = named(connection, kind, args);
    if (names.length === 0) {
      reply.push(3);
      reply.text(word);
      reply.nil();
      reply.integer(listening(connection, kind));
      connection.keepReply();
      return;
    }
    return inSlices(
      connection,
      args,
      names.length,
      reply,
      (i, _words, out) => {
        const name = names[i]!;
        pubsub.unsubscribe(connection, kind, name);
        const bytes = Buffer.from(name, 'latin1');
        out.push(3);
        out.text(word);
        out.bulk(bytes, 0, bytes.length);
        out.integer(listening(connection, kind));
        connection.keepReply();
        return name.length;
      },
      () => markSubscribed(connection),
    );
  };
}

/** The channels named, or all that the client listens to. */
function named(connection: Client, kind: ChannelKind, args: Arguments): string[] {
  if (args.count === 1) return [...own(connection, kind)];
  const names: string[] = [];
  for (let i = 1; i < args.count; i++) names.push(args.bytes(i).toString('latin1'));
  return names;
}

function publish(isSharded: boolean): ClientHandler {
  return (connection, args, reply) => {
    const { server, tenant } = connection;
    const message = { channel: args.bytes(1), payload: args.bytes(2), isSharded };
    const audiences = tenant.pubsub.audiences(message.channel, isSharded);
    server.elsewhere?.publish(tenant.number, message);
    const receivers = receiversOf(audiences);
    const { fanOut } = tenant;
    if (receivers === 0 || fanOut.isImmediate(message, receivers)) {
      void fanOut.send(message, audiences, receivers);
      // Receivers get their copies before the sender its count, so the sender's segment is opened anew.
      if (receivers > 0 && reply === server.writer) server.open(connection);
      connection.keepReply();
      reply.integer(receivers);
      return;
    }
    const bytes = FanOut.sizeOf(message);
    // The command's words do not stay where they are until all have the message.
    if (!connection.held.reserve('request', bytes)) throw noMemory;
    const kept = {
      ...message,
      channel: Buffer.from(message.channel),
      payload: Buffer.from(message.payload),
    };
    connection.countFanOut(bytes * receivers);
    const sent = whenReady(fanOut.send(kept, audiences, receivers), () => {
      connection.held.release('request', bytes);
    });
    if (connection.isExecuting) {
      reply.integer(receivers);
      return;
    }
    return whenReady(sent, () => {
      if (!connection.closed) connection.answer().integer(receivers);
    });
  };
}

function listChannels(isSharded: boolean): ClientHandler {
  return (connection, args, reply) => {
    const question =
      args.count < 3 ? { isSharded } : { isSharded, pattern: args.bytes(2).toString('latin1') };
    return askWide(connection, 'channels', question, reply, (out, { answers }) => {
      const names = allNames(answers);
      return writeLong(
        connection,
        out,
        names,
        (to) => to.array(names.length),
        (name, to) => to.latin1(name),
      );
    });
  };
}

/** Writes an answer about many names in slices, to a reply of its own; one about few names to `out`. */
function writeLong(
  connection: Client,
  out: RespWriter,
  names: readonly string[],
  begin: (to: RespWriter) => void,
  each: (name: string, to: RespWriter, index: number) => void,
): void | Promise<Reply> {
  const bytes = names.reduce((sum, name) => sum + name.length, 0);
  const isShort = connection.isExecuting || (names.length <= namesAtOnce && bytes <= bytesAtOnce);
  const to = isShort ? out : new LongAnswer(connection);
  to.version = connection.version;
  begin(to);
  let index = 0;
  const visit = (name: string): number => {
    each(name, to, index++);
    return name.length;
  };
  if (!isShort) return writeInSlices(connection, names, to, visit);
  for (const name of names) visit(name);
}

async function writeInSlices(
  connection: Client,
  names: readonly string[],
  to: RespWriter,
  visit: (name: string) => number,
): Promise<Reply> {
  try {
    await eachInSlices(connection, names, visit, namesAtOnce);
  } catch (error) {
    // There is no memory for the rest of the answer.
    if (!(error instanceof CommandError)) throw error;
    to.rollback(0);
    to.error(error.message);
  }
  return to;
}

function countListeners(isSharded: boolean): ClientHandler {
  return (connection, args, reply) => {
    const names: string[] = [];
    for (let i = 2; i < args.count; i++) names.push(args.bytes(i).toString('latin1'));
    const question = { isSharded, names };
    return askWide(connection, 'countListeners', question, reply, (out, { answers }) => {
      return writeLong(
        connection,
        out,
        names,
        (to) => to.map(names.length),
        (name, to, i) => {
          to.latin1(name);
          to.integer(answers.reduce((sum, counts) => sum + counts[i]!, 0));
        },
      );
    });
  };
}

/** Names that PUBSUB NUMSUB takes. */
const maxNames = 16_384;
/** Names, and their bytes, that are written in one step. */
const namesAtOnce = 1024;
const bytesAtOnce = 64 * 1024;

const common = { flags, group: 'pubsub' } as const;

const pubsubSubcommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'channels',
    arity: -2,
    syntax: '[pattern]',
    flags: ['pubsub', 'loading', 'stale'],
    since: '2.8.0',
    summary: 'Returns the active channels.',
    handle: listChannels(false),
  },
  {
    ...common,
    name: 'numsub',
    maxWords: maxNames,
    arity: -2,
    syntax: '[channel [channel ...]]',
    flags: ['pubsub', 'loading', 'stale'],
    since: '2.8.0',
    summary: 'Returns a count of subscribers to channels.',
    handle: countListeners(false),
  },
  {
    ...common,
    name: 'numpat',
    arity: 2,
    flags: ['pubsub', 'loading', 'stale'],
    since: '2.8.0',
    summary: 'Returns a count of unique pattern subscriptions.',
    handle(connection, _args, reply) {
      const { server, tenant } = connection;
      // Names are compared only where several nodes may have the same ones.
      if (server.elsewhere === undefined) {
        reply.integer(tenant.pubsub.patterns.size);
        return undefined;
      }
      return askWide(connection, 'patterns', {}, reply, (out, { answers }) => {
        out.integer(allNames(answers).length);
      });
    },
  },
  {
    ...common,
    name: 'shardchannels',
    arity: -2,
    syntax: '[pattern]',
    flags: ['pubsub', 'loading', 'stale'],
    since: '7.0.0',
    summary: 'Returns the active shard channels.',
    handle: listChannels(true),
  },
  {
    ...common,
    name: 'shardnumsub',
    maxWords: maxNames,
    arity: -2,
    syntax: '[shardchannel [shardchannel ...]]',
    flags: ['pubsub', 'loading', 'stale'],
    since: '7.0.0',
    summary: 'Returns the count of subscribers of shard channels.',
    handle: countListeners(true),
  },
];

export const pubsubCommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'subscribe',
    longWords: true,
    maxWords: Infinity,
    takesUnits: true,
    channels: { first: 1, last: -1, isPattern: false },
    arity: -2,
    syntax: 'channel [channel ...]',
    since: '2.0.0',
    summary: 'Listens for messages published to channels.',
    handle: subscribe('channel', 'subscribe'),
  },
  {
    ...common,
    name: 'unsubscribe',
    longWords: true,
    maxWords: Infinity,
    arity: -1,
    syntax: '[channel [channel ...]]',
    since: '2.0.0',
    summary: 'Stops listening to messages posted to channels.',
    handle: unsubscribe('channel', 'unsubscribe'),
  },
  {
    ...common,
    name: 'psubscribe',
    longWords: true,
    maxWords: Infinity,
    takesUnits: true,
    channels: { first: 1, last: -1, isPattern: true },
    arity: -2,
    syntax: 'pattern [pattern ...]',
    since: '2.0.0',
    summary: 'Listens for messages published to channels that match one or more patterns.',
    handle: subscribe('pattern', 'psubscribe'),
  },
  {
    ...common,
    name: 'punsubscribe',
    longWords: true,
    maxWords: Infinity,
    arity: -1,
    syntax: '[pattern [pattern ...]]',
    since: '2.0.0',
    summary: 'Stops listening to messages published to channels that match one or more patterns.',
    handle: unsubscribe('pattern', 'punsubscribe'),
  },
  {
    ...common,
    name: 'ssubscribe',
    longWords: true,
    maxWords: Infinity,
    takesUnits: true,
    channels: { first: 1, last: -1, isPattern: false },
    arity: -2,
    syntax: 'shardchannel [shardchannel ...]',
    keys: { first: 1, last: -1, step: 1 },
    since: '7.0.0',
    summary: 'Listens for messages published to shard channels.',
    handle: subscribe('shard', 'ssubscribe'),
  },
  {
    ...common,
    name: 'sunsubscribe',
    longWords: true,
    maxWords: Infinity,
    arity: -1,
    syntax: '[shardchannel [shardchannel ...]]',
    keys: { first: 1, last: -1, step: 1 },
    since: '7.0.0',
    summary: 'Stops listening to messages posted to shard channels.',
    handle: unsubscribe('shard', 'sunsubscribe'),
  },
  {
    ...common,
    name: 'publish',
    longWords: true,
    takesUnits: true,
    channels: { first: 1, last: 1, isPattern: false },
    arity: 3,
    syntax: 'channel message',
    flags: ['pubsub', 'loading', 'stale', 'fast', 'may_replicate'],
    since: '2.0.0',
    summary: 'Posts a message to a channel.',
    handle: publish(false),
  },
  {
    ...common,
    name: 'spublish',
    longWords: true,
    takesUnits: true,
    channels: { first: 1, last: 1, isPattern: false },
    arity: 3,
    syntax: 'shardchannel message',
    flags: ['pubsub', 'loading', 'stale', 'fast', 'may_replicate'],
    keys: { first: 1, last: 1, step: 1 },
    since: '7.0.0',
    summary: 'Posts a message to a shard channel.',
    handle: publish(true),
  },
  {
    ...common,
    name: 'pubsub',
    arity: -2,
    flags: [],
    since: '2.8.0',
    summary: 'A container for Pub/Sub commands.',
    handle(_connection, _args, reply) {
      reply.error("ERR wrong number of arguments for 'pubsub' command");
    },
    subcommands: [...pubsubSubcommands, helpOf('pubsub', pubsubSubcommands)],
  },
];
