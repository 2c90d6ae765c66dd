// Commands for the client's identity and protocol. CLIENT has a file of its own.

import { parseInteger } from '../../../universal-row/bytes.ts';
import { notAnInteger } from '../../../universal-row/errors.ts';
import { whenReady } from '../../../universal-row/maybe-promise.ts';
import { type Client, ClientFlag, type ClientCommand } from '../client.ts';
import { logIn } from '../login.ts';
import type { RespWriter } from '../resp-writer.ts';
import { wideIdOf } from '../wide-id.ts';

/** Names and versions are shown in lists: no spaces, no line breaks. */
export function isPlainName(name: string): boolean {
  return /^[\x21-\x7e]*$/.test(name);
}

function writeHello(connection: Client, reply: RespWriter): void {
  reply.map(7);
  reply.text('server');
  reply.text('redis');
  reply.text('version');
  reply.text(redisVersion);
  reply.text('proto');
  reply.integer(connection.version);
  reply.text('id');
  reply.integer(wideIdOf(connection));
  reply.text('mode');
  reply.text(connection.server.clusterId === undefined ? 'standalone' : 'cluster');
  reply.text('role');
  reply.text('master');
  reply.text('modules');
  reply.array(0);
}

const helloUnauthenticated =
  'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time';

/** The Redis version whose behaviour the commands follow. */
export const redisVersion = '7.0.15';

export const connectionCommands: readonly ClientCommand[] = [
  {
    name: 'ping',
    longWords: true,
    arity: -1,
    syntax: '[message]',
    flags: ['fast'],
    group: 'connection',
    since: '1.0.0',
    summary: "Returns the server's liveliness response.",
    complexity: 'O(1)',
    handle(connection, args, reply) {
      if (args.count > 2) {
        reply.error("ERR wrong number of arguments for 'ping' command");
      } else if (connection.flags & ClientFlag.subscribed && connection.version < 3) {
        reply.array(2);
        reply.text('pong');
        if (args.count === 1) reply.text('');
        else reply.bulk(args.buf, args.starts[1]!, args.lens[1]!);
      } else if (args.count === 1) reply.simple('PONG');
      else reply.bulk(args.buf, args.starts[1]!, args.lens[1]!);
    },
  },
  {
    name: 'echo',
    longWords: true,
    arity: 2,
    syntax: 'message',
    flags: ['fast'],
    group: 'connection',
    since: '1.0.0',
    summary: 'Returns the given string.',
    complexity: 'O(1)',
    handle(_connection, args, reply) {
      reply.bulk(args.buf, args.starts[1]!, args.lens[1]!);
    },
  },
  {
    name: 'select',
    arity: 2,
    syntax: 'index',
    flags: ['loading', 'stale', 'fast'],
    group: 'connection',
    since: '1.0.0',
    summary: 'Changes the selected database.',
    complexity: 'O(1)',
    handle(connection, args, reply) {
      const table = parseInteger(args.buf, args.starts[1]!, args.lens[1]!);
      if (Number.isNaN(table)) reply.error(notAnInteger.message);
      else if (table < -0x80000000 || table > 0x7fffffff) {
        reply.error('ERR value is out of range, value must between -2147483648 and 2147483647');
      } else if (table < 0 || table >= connection.tenant.span.count) {
        reply.error('ERR DB index is out of range');
      } else {
        connection.select(table);
        reply.ok();
      }
    },
  },
  {
    name: 'auth',
    arity: -2,
    syntax: '[username] password',
    flags: ['noscript', 'loading', 'stale', 'fast', 'no_auth'],
    mayNotQueue: true,
    group: 'connection',
    since: '1.0.0',
    summary: 'Authenticates the connection.',
    complexity: 'O(N) where N is the number of passwords defined for the user',
    handle(connection, args, reply) {
      if (args.count > 3) {
        reply.error('ERR syntax error');
        return;
      }
      if (args.count === 2 && connection.server.principals.anonymous !== undefined) {
        reply.error(
          'ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?',
        );
        return;
      }
      const user = args.count === 3 ? args.text(1) : 'default';
      return whenReady(logIn(connection, user, args.bytes(args.count - 1)), (refusal) => {
        const out = connection.answer();
        if (refusal === undefined) out.ok();
        else out.error(refusal);
      });
    },
  },
  {
    name: 'hello',
    arity: -1,
    syntax: '[protover [AUTH username password] [SETNAME clientname]]',
    flags: ['noscript', 'loading', 'stale', 'fast', 'no_auth'],
    mayNotQueue: true,
    group: 'connection',
    since: '6.0.0',
    summary: 'Handshakes with the server.',
    complexity: 'O(1)',
    handle(connection, args, reply) {
      let version = connection.version;
      let next = 1;
      if (args.count > 1) {
        version = parseInteger(args.buf, args.starts[1]!, args.lens[1]!);
        if (Number.isNaN(version)) {
          reply.error('ERR Protocol version is not an integer or out of range');
          return;
        }
        if (version !== 2 && version !== 3) {
          reply.error('NOPROTO unsupported protocol version');
          return;
        }
        next = 2;
      }
      let name: string | undefined;
      let user: string | undefined;
      let password = 0;
      for (; next < args.count; next++) {
        if (args.is(next, 'AUTH') && next + 2 < args.count) {
          user = args.text(next + 1);
          password = next + 2;
          next += 2;
        } else if (args.is(next, 'SETNAME') && next + 1 < args.count) {
          name = args.text(++next);
          if (!isPlainName(name)) {
            reply.error('ERR Client names cannot contain spaces, newlines or special characters.');
            return;
          }
        } else {
          reply.error(`ERR Syntax error in HELLO option '${args.latin1(next)}'`);
          return;
        }
      }
      const login = user === undefined ? undefined : logIn(connection, user, args.bytes(password));
      return whenReady(login, (refusal) => {
        const out = connection.answer();
        if (refusal !== undefined) out.error(refusal);
        else if (connection.flags & ClientFlag.unauthenticated) out.error(helloUnauthenticated);
        else {
          if (name !== undefined) connection.update({ name });
          connection.update({ version });
          out.version = version;
          writeHello(connection, out);
        }
      });
    },
  },
  {
    name: 'quit',
    arity: -1,
    flags: ['noscript', 'loading', 'stale', 'fast', 'no_auth'],
    group: 'connection',
    since: '1.0.0',
    summary: 'Closes the connection.',
    complexity: 'O(1)',
    immediate: true,
    handle(connection, _args, reply) {
      reply.ok();
      // Until its socket is closed it still counts as connected, but its cache is no longer
      // tracked.
      if (connection.tracking !== undefined) connection.server.track(connection, undefined);
      connection.closeSoon();
    },
  },
  {
    name: 'reset',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'fast', 'no_auth'],
    group: 'connection',
    since: '6.2.0',
    summary: 'Resets the connection.',
    complexity: 'O(1)',
    immediate: true,
    handle(connection, _args, reply) {
      connection.endTransaction();
      connection.readsAnywhere = false;
      connection.readMode = undefined;
      const { anonymous } = connection.server.principals;
      connection.logOut();
      // Where the default user has as many clients as it may, it has to log in like others.
      if (anonymous !== undefined) connection.become(anonymous);
      connection.update({ name: '' });
      connection.update({ version: 2 });
      connection.server.track(connection, undefined);
      connection.update({ noEvict: false });
      connection.update({ noTouch: false });
      reply.version = 2;
      reply.simple('RESET');
    },
  },
];
