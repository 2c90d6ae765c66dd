// CLIENT: the list of clients, their names, and operations on them.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { CommandError, syntaxError } from '../../../universal-row/errors.ts';
import { type Client, ClientFlag, type ClientCommand } from '../client.ts';
import { askWide, doWide, matches } from '../cluster-wide.ts';
import { describeClient } from '../describe-client.ts';
import { wideIdOf } from '../wide-id.ts';
import type { ClientType, KillFilter } from '../wide-questions.ts';
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

function killFilter(client: Client, args: Arguments): { filter: KillFilter; skipsMe: boolean } {
  const { server, tenant } = client;
  const filter: KillFilter = {};
  let skipsMe = true;
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
    } else if (args.is(i, 'SKIPME') && args.is(i + 1, 'YES')) skipsMe = true;
    else if (args.is(i, 'SKIPME') && args.is(i + 1, 'NO')) skipsMe = false;
    else throw syntaxError;
  }
  return { filter, skipsMe };
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
      reply.integer(wideIdOf(connection));
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
      let wanted: { type?: ClientType; ids?: number[] } = {};
      if (args.count > 2) {
        if (args.is(2, 'TYPE') && args.count === 4) wanted = { type: clientType(args.text(3)) };
        else if (args.is(2, 'ID') && args.count > 3) {
          const ids = Array.from({ length: args.count - 3 }, (_, i) => args.integerOrNaN(i + 3));
          if (ids.some(Number.isNaN)) throw new CommandError('ERR Invalid client ID');
          wanted = { ids };
        } else throw syntaxError;
      }
      return askWide(connection, 'listClients', wanted, reply, (out, { answers }) => {
        out.verbatim(answers.flat().join(''));
      });
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
      const isOne = args.count === 3;
      const { filter, skipsMe } = isOne
        ? { filter: { address: args.text(2) }, skipsMe: false }
        : killFilter(connection, args);
      const isDoomed = !skipsMe && matches(connection, filter);
      const others = { ...filter, except: wideIdOf(connection) };
      return askWide(connection, 'killClients', others, reply, (out, { answers }) => {
        const killed = answers.reduce((sum, count) => sum + count, isDoomed ? 1 : 0);
        if (!isOne) out.integer(killed);
        else if (killed > 0) out.ok();
        else out.error('ERR No such client');
        if (isDoomed) connection.closeSoon();
      });
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
      const question = { id: args.integer(2), withError };
      return askWide(connection, 'unblockClient', question, reply, (out, { answers }) => {
        out.integer(answers.includes(true) ? 1 : 0);
      });
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
      return doWide(connection, 'pauseClients', { ms, writesOnly }, reply);
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
      return doWide(connection, 'unpauseClients', {}, reply);
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
