// Commands for the server itself: CONFIG, INFO, SLOWLOG, TIME, SHUTDOWN and others. Their data comes from
// `ServerFacts`, as the access layer does not depend on the server.

import { CommandError, syntaxError } from '../../../universal-row/errors.ts';
import type { ClientCommand } from '../client.ts';
import { askWide, doWide } from '../cluster-wide.ts';
import { writeInfo } from '../info.ts';
import type { RespWriter } from '../resp-writer.ts';
import type { WideSlowEntry } from '../wide-questions.ts';
import { Glob } from '../../../universal-row/transforms/redis/glob.ts';
import { helpOf } from './support/help.ts';

const common = { group: 'server' } as const;
const admin = ['admin', 'noscript', 'loading', 'stale'] as const;

/** Settings that may differ between a cluster's machines: CONFIG SET changes them on one node. */
const ofEachNode: ReadonlySet<string> = new Set(['maxmemory', 'maxclients']);

const configSubcommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'get',
    arity: -3,
    syntax: 'parameter [parameter ...]',
    flags: admin,
    since: '2.0.0',
    summary: 'Returns the effective values of configuration parameters.',
    handle(connection, args, reply) {
      const globs: Glob[] = [];
      for (let i = 2; i < args.count; i++) {
        globs.push(new Glob(args.buf, args.starts[i]!, args.lens[i]!, true));
      }
      const found = new Map<string, string>();
      for (const entry of connection.server.config.values()) {
        const name = Buffer.from(entry.name);
        if (globs.some((glob) => glob.matches(name, 0, name.length))) {
          found.set(entry.name, entry.get());
        }
      }
      reply.map(found.size);
      for (const [name, value] of found) {
        reply.text(name);
        reply.text(value);
      }
    },
  },
  {
    ...common,
    name: 'set',
    arity: -4,
    syntax: 'parameter value [parameter value ...]',
    flags: admin,
    since: '2.0.0',
    summary: 'Sets configuration parameters in-flight.',
    handle(connection, args, reply) {
      if (args.count % 2 !== 0) {
        throw new CommandError("ERR wrong number of arguments for 'config|set' command");
      }
      const { config } = connection.server;
      const undo: (() => void)[] = [];
      const names = new Set<string>();
      const changes: [string, string][] = [];
      for (let i = 2; i < args.count; i += 2) {
        const name = args.text(i).toLowerCase();
        const entry = config.get(name);
        if (entry === undefined) {
          for (const step of undo.reverse()) step();
          throw new CommandError(
            `ERR Unknown option or number of arguments for CONFIG SET - '${args.latin1(i)}'`,
          );
        }
        const before = entry.get();
        let wrong: string | undefined;
        if (entry.set === undefined) wrong = "can't set immutable config";
        else if (names.has(name)) wrong = 'duplicate parameter';
        else wrong = entry.set(args.bytes(i + 1).toString('utf8'));
        names.add(name);
        if (wrong !== undefined) {
          for (const step of undo.reverse()) step();
          throw new CommandError(
            `ERR CONFIG SET failed (possibly related to argument '${args.latin1(i)}') - ${wrong}`,
          );
        }
        undo.push(() => entry.set!(before));
        if (!ofEachNode.has(name)) changes.push([name, args.text(i + 1)]);
      }
      return doWide(connection, 'setConfig', { changes }, reply);
    },
  },
  {
    ...common,
    name: 'resetstat',
    arity: 2,
    flags: admin,
    since: '2.0.0',
    summary: "Resets the server's statistics.",
    handle(connection, _args, reply) {
      return doWide(connection, 'resetStatistics', {}, reply);
    },
  },
  {
    ...common,
    name: 'rewrite',
    arity: 2,
    flags: admin,
    since: '2.8.0',
    summary: 'Persists the effective configuration to file.',
    handle(_connection, _args, reply) {
      reply.error('ERR The server is running without a config file');
    },
  },
];

function writeSlowlog(entries: readonly WideSlowEntry[], out: RespWriter): void {
  out.array(entries.length);
  for (const entry of entries) {
    out.array(6);
    out.integer(entry.id);
    out.integer(Math.floor(entry.at / 1000));
    out.integer(Math.round(entry.spentMs * 1000));
    out.array(entry.words.length);
    for (const word of entry.words) {
      const bytes = Buffer.from(word, 'latin1');
      out.bulk(bytes, 0, bytes.length);
    }
    out.text(entry.client);
    out.text(entry.clientName);
  }
}

const slowlogSubcommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'get',
    arity: -2,
    syntax: '[count]',
    flags: ['admin', 'loading', 'stale'],
    since: '2.2.12',
    summary: "Returns the slow log's entries.",
    handle(connection, args, reply) {
      let count = 10;
      if (args.count > 3) throw syntaxError;
      if (args.count === 3) {
        count = args.integer(2);
        if (count < -1) {
          throw new CommandError('ERR count should be greater than or equal to -1');
        }
      }
      return askWide(connection, 'slowlog', { count }, reply, (out, { answers }) => {
        const all = answers.flat().sort((a, b) => b.at - a.at || b.id - a.id);
        writeSlowlog(count === -1 ? all : all.slice(0, count), out);
      });
    },
  },
  {
    ...common,
    name: 'len',
    arity: 2,
    flags: ['admin', 'loading', 'stale'],
    since: '2.2.12',
    summary: 'Returns the number of entries in the slow log.',
    handle(connection, _args, reply) {
      return askWide(connection, 'slowlogLength', {}, reply, (out, { answers }) => {
        out.integer(answers.reduce((sum, length) => sum + length, 0));
      });
    },
  },
  {
    ...common,
    name: 'reset',
    arity: 2,
    flags: ['admin', 'loading', 'stale'],
    since: '2.2.12',
    summary: 'Clears all entries from the slow log.',
    handle(connection, _args, reply) {
      return doWide(connection, 'resetSlowlog', {}, reply);
    },
  },
];

export const serverCommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'config',
    serverWide: true,
    arity: -2,
    flags: [],
    since: '2.0.0',
    summary: 'A container for server configuration commands.',
    handle(_connection, _args, reply) {
      reply.error("ERR wrong number of arguments for 'config' command");
    },
    subcommands: [...configSubcommands, helpOf('config', configSubcommands)],
  },
  {
    ...common,
    name: 'slowlog',
    arity: -2,
    flags: [],
    since: '2.2.12',
    summary: 'A container for slow log commands.',
    handle(_connection, _args, reply) {
      reply.error("ERR wrong number of arguments for 'slowlog' command");
    },
    subcommands: [...slowlogSubcommands, helpOf('slowlog', slowlogSubcommands)],
  },
  {
    ...common,
    name: 'info',
    arity: -1,
    syntax: '[section [section ...]]',
    flags: ['loading', 'stale'],
    since: '1.0.0',
    summary: 'Returns information and statistics about the server.',
    complexity: 'O(1)',
    handle(connection, args, reply) {
      const sections: string[] = [];
      for (let i = 1; i < args.count; i++) sections.push(args.text(i).toLowerCase());
      if (connection.server.elsewhere === undefined || connection.isExecuting) {
        reply.verbatim(writeInfo(connection, sections));
        return;
      }
      return askWide(connection, 'infoSums', {}, reply, (out, { answers }) => {
        out.verbatim(writeInfo(connection, sections, answers));
      });
    },
  },
  {
    ...common,
    name: 'time',
    arity: 1,
    flags: ['loading', 'stale', 'fast'],
    since: '2.6.0',
    summary: 'Returns the server time.',
    complexity: 'O(1)',
    handle(_connection, _args, reply) {
      const micros = Math.floor((performance.timeOrigin + performance.now()) * 1000);
      reply.array(2);
      reply.text(String(Math.floor(micros / 1e6)));
      reply.text(String(micros % 1e6));
    },
  },
  {
    ...common,
    name: 'lastsave',
    arity: 1,
    flags: ['loading', 'stale', 'fast'],
    since: '1.0.0',
    summary: 'Returns the Unix timestamp of the last successful save to disk.',
    handle(connection, _args, reply) {
      const { facts } = connection.server;
      reply.integer(Math.floor((facts.lastCheckpointAt() || facts.startedAt) / 1000));
    },
  },
  {
    ...common,
    name: 'save',
    serverWide: true,
    arity: 1,
    flags: ['admin', 'noscript', 'no_multi'],
    since: '1.0.0',
    summary: 'Synchronously saves the database to disk.',
    handle(connection) {
      return connection.server.facts.checkpoint().then(() => {
        connection.answer().ok();
      });
    },
  },
  {
    ...common,
    name: 'bgsave',
    serverWide: true,
    arity: -1,
    syntax: '[SCHEDULE]',
    flags: ['admin', 'noscript'],
    since: '1.0.0',
    summary: 'Asynchronously saves the database to disk.',
    handle(connection, _args, reply) {
      const { server } = connection;
      if (server.facts.checkpointInProgress()) {
        reply.error('ERR Background save already in progress');
        return;
      }
      server.facts.checkpoint().catch((error: unknown) => {
        server.report('warn', 'BGSAVE failed', { err: error });
      });
      reply.simple('Background saving started');
    },
  },
  {
    ...common,
    name: 'bgrewriteaof',
    serverWide: true,
    arity: 1,
    flags: ['admin', 'noscript'],
    since: '1.0.0',
    summary: 'Asynchronously shortens the log by a checkpoint.',
    handle(connection, _args, reply) {
      const { server } = connection;
      server.facts.checkpoint().catch((error: unknown) => {
        server.report('warn', 'BGREWRITEAOF failed', { err: error });
      });
      reply.simple('Background append only file rewriting started');
    },
  },
  {
    ...common,
    name: 'role',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'fast'],
    since: '2.8.12',
    summary: 'Returns the replication role.',
    handle(_connection, _args, reply) {
      reply.array(3);
      reply.text('master');
      reply.integer(0);
      reply.array(0);
    },
  },
  {
    ...common,
    name: 'monitor',
    arity: 1,
    flags: ['admin', 'noscript', 'loading', 'stale', 'no_multi'],
    since: '1.0.0',
    summary: 'Listens for all requests received by the server in real-time.',
    handle(connection, _args, reply) {
      connection.server.addMonitor(connection);
      reply.ok();
    },
  },
  {
    ...common,
    name: 'shutdown',
    serverWide: true,
    arity: -1,
    syntax: '[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]',
    flags: ['admin', 'noscript', 'loading', 'stale', 'no_multi'],
    since: '1.0.0',
    summary: 'Synchronously saves the database to disk and shuts down the server.',
    handle(connection, args) {
      for (let i = 1; i < args.count; i++) {
        const known = ['NOSAVE', 'SAVE', 'NOW', 'FORCE'].some((word) => args.is(i, word));
        if (!known) throw syntaxError;
      }
      connection.closeSoon();
      connection.server.facts.shutdown();
    },
  },
  {
    ...common,
    name: 'lolwut',
    arity: -1,
    syntax: '[VERSION version]',
    flags: ['readonly', 'fast'],
    since: '5.0.0',
    summary: 'Displays computer art and the server version.',
    handle(connection, _args, reply) {
      reply.verbatim(`${art()}\nPolyrow ver. ${connection.server.facts.version}\n`);
    },
  },
  {
    ...common,
    name: 'debug',
    serverWide: true,
    arity: -2,
    flags: ['admin', 'noscript', 'loading', 'stale', 'no_multi'],
    since: '1.0.0',
    summary: 'A container for debugging commands.',
    handle(_connection, args, reply) {
      reply.error(`ERR unknown subcommand '${args.latin1(1)}'. Try DEBUG HELP.`);
    },
    subcommands: [
      {
        ...common,
        name: 'sleep',
        arity: 3,
        syntax: 'seconds:double',
        flags: ['admin', 'noscript', 'loading', 'stale', 'no_multi'],
        since: '1.0.0',
        summary: 'Answers after the given seconds; other clients go on.',
        handle(connection, args) {
          const ms = args.float(2) * 1000;
          return new Promise<void>((resolve) => {
            setTimeout(() => {
              connection.answer().ok();
              resolve();
            }, ms);
          });
        },
      },
    ],
  },
];

/** Rows of random slashes and bars, for LOLWUT. */
function art(): string {
  const width = 40;
  const rows = Array.from({ length: 8 }, (_, row) =>
    Array.from({ length: width }, () => (Math.random() * 8 < row ? '/' : '|')).join(''),
  );
  return rows.join('\n');
}
