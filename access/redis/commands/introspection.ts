// COMMAND: the list of commands, from their table. Cluster clients, redis-cli and proxies read it.

import type { Client, ClientCommand } from '../client.ts';
import type { Arguments } from '../../../universal-row/arguments.ts';
import { isWrite } from '../../../universal-row/command.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import type { RespWriter } from '../resp-writer.ts';
import { isCategory } from '../acl/categories.ts';
import { Glob } from '../../../universal-row/transforms/redis/glob.ts';
import { keyFlags } from './key-access.ts';
import { keyWords } from './key-words.ts';
import type { CommandEntry } from './registry.ts';
import type { CommandSpec } from './spec.ts';
import { helpOf } from './support/help.ts';
import { parseSyntax, writeArguments } from './support/syntax.ts';
import { innerCommand } from './support/inner-command.ts';

/** First key, last key, step, as COMMAND shows them; zeros when they move. */
function keyNumbers(spec: CommandSpec): [number, number, number] {
  const { keys } = spec;
  if (keys === undefined || typeof keys === 'function') return [0, 0, 0];
  return [keys.first, keys.last, keys.step];
}

function writeInfo(entry: CommandEntry, reply: RespWriter): void {
  const { spec } = entry;
  const [first, last, step] = keyNumbers(spec);
  const flags: string[] = [...spec.flags];
  if (typeof spec.keys === 'function' && !flags.includes('movablekeys')) flags.push('movablekeys');
  reply.array(10);
  reply.text(entry.fullName);
  reply.integer(spec.arity);
  reply.set(flags.length);
  for (const flag of flags) reply.simple(flag);
  reply.integer(first);
  reply.integer(last);
  reply.integer(step);
  reply.set(entry.categories.size);
  for (const category of entry.categories) reply.simple(`@${category}`);
  reply.array(0);
  writeKeySpecs(spec, reply);
  const subs = [...(entry.subcommands?.values() ?? [])];
  reply.array(subs.length);
  for (const sub of subs) writeInfo(sub, reply);
}

function writeKeySpecs(spec: CommandSpec, reply: RespWriter): void {
  const { keys } = spec;
  if (keys === undefined || (typeof keys !== 'function' && keys.first === 0)) {
    reply.array(0);
    return;
  }
  const writes = spec.action !== undefined && isWrite(spec.action);
  reply.array(1);
  reply.map(3);
  reply.text('flags');
  reply.set(1);
  reply.simple(writes ? 'RW' : 'RO');
  reply.text('begin_search');
  if (typeof keys === 'function') {
    reply.map(2);
    reply.text('type');
    reply.text('unknown');
    reply.text('spec');
    reply.map(0);
    reply.text('find_keys');
    reply.map(2);
    reply.text('type');
    reply.text('unknown');
    reply.text('spec');
    reply.map(0);
    return;
  }
  reply.map(2);
  reply.text('type');
  reply.text('index');
  reply.text('spec');
  reply.map(1);
  reply.text('index');
  reply.integer(keys.first);
  reply.text('find_keys');
  reply.map(2);
  reply.text('type');
  reply.text('range');
  reply.text('spec');
  reply.map(3);
  reply.text('lastkey');
  reply.integer(keys.last < 0 ? keys.last : keys.last - keys.first);
  reply.text('keystep');
  reply.integer(keys.step);
  reply.text('limit');
  reply.integer(0);
}

function writeDocs(entry: CommandEntry, reply: RespWriter): void {
  const { spec } = entry;
  const subs = [...(entry.subcommands?.values() ?? [])];
  const { complexity, syntax } = spec;
  const present = [complexity !== undefined, syntax !== undefined, subs.length > 0];
  reply.map(3 + present.filter(Boolean).length);
  reply.text('summary');
  reply.text(spec.summary);
  reply.text('since');
  reply.text(spec.since);
  reply.text('group');
  reply.text(spec.group);
  if (complexity !== undefined) {
    reply.text('complexity');
    reply.text(complexity);
  }
  if (syntax !== undefined) {
    reply.text('arguments');
    writeArguments(parseSyntax(syntax), reply);
  }
  if (subs.length === 0) return;
  reply.text('subcommands');
  reply.map(subs.length);
  for (const sub of subs) {
    reply.text(sub.fullName);
    writeDocs(sub, reply);
  }
}

/** The command or subcommand that the words call. */
function called({ server }: Client, words: Arguments): CommandEntry | undefined {
  const entry = server.registry.lookup(words);
  return entry?.subcommands === undefined || words.count < 2 ? entry : entry.subcommand(words);
}

function keysOf(
  args: Arguments,
  reply: RespWriter,
  withFlags: boolean,
  find: (a: Arguments) => CommandEntry | undefined,
): void {
  const inner = innerCommand(args, 2);
  const entry = find(inner);
  if (entry === undefined) throw new CommandError('ERR Invalid command specified');
  if (!entry.takes(inner.count)) {
    throw new CommandError('ERR Invalid number of arguments specified for command');
  }
  const words = keyWords(entry.spec, inner);
  // Scripts and functions may have none.
  if (words.length === 0 && entry.spec.group !== 'scripting') {
    throw new CommandError(
      entry.spec.keys === undefined ||
        (typeof entry.spec.keys !== 'function' && entry.spec.keys.first === 0)
        ? 'ERR The command has no key arguments'
        : 'ERR Invalid arguments specified for command',
    );
  }
  reply.array(words.length);
  for (const [key, word] of words.entries()) {
    if (withFlags) reply.array(2);
    reply.bulk(inner.buf, inner.starts[word]!, inner.lens[word]!);
    if (!withFlags) continue;
    const shown = keyFlags(entry, inner, key);
    reply.set(shown.length);
    for (const flag of shown) reply.simple(flag);
  }
}

const flags = ['loading', 'stale'] as const;
const common = { flags, group: 'server' } as const;

const subcommands: readonly ClientCommand[] = [
  {
    ...common,
    name: 'count',
    arity: 2,
    since: '2.8.13',
    summary: 'Returns a count of commands.',
    complexity: 'O(1)',
    handle(connection, _args, reply) {
      reply.integer(connection.server.registry.size);
    },
  },
  {
    ...common,
    name: 'info',
    arity: -2,
    syntax: '[command-name [command-name ...]]',
    since: '2.8.13',
    summary: 'Returns information about one, multiple or all commands.',
    handle(connection, args, reply) {
      const { registry } = connection.server;
      if (args.count === 2) {
        reply.array(registry.size);
        for (const entry of registry.all()) writeInfo(entry, reply);
        return;
      }
      reply.array(args.count - 2);
      for (let i = 2; i < args.count; i++) {
        const entry = registry.getFull(args.text(i));
        if (entry === undefined) reply.nilArray();
        else writeInfo(entry, reply);
      }
    },
  },
  {
    ...common,
    name: 'docs',
    arity: -2,
    syntax: '[command-name [command-name ...]]',
    since: '7.0.0',
    summary: 'Returns documentary information about one, multiple or all commands.',
    handle(connection, args, reply) {
      const { registry } = connection.server;
      const asked: CommandEntry[] = [];
      if (args.count === 2) asked.push(...registry.all());
      for (let i = 2; i < args.count; i++) {
        const entry = registry.getFull(args.text(i));
        if (entry !== undefined) asked.push(entry);
      }
      reply.map(asked.length);
      for (const entry of asked) {
        reply.text(entry.fullName);
        writeDocs(entry, reply);
      }
    },
  },
  {
    ...common,
    name: 'list',
    arity: -2,
    syntax: '[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]',
    since: '7.0.0',
    summary: 'Returns a list of command names.',
    handle(connection, args, reply) {
      let entries = [...connection.server.registry.entries()];
      if (args.count > 2) {
        if (!args.is(2, 'FILTERBY') || args.count !== 5) throw new CommandError('ERR syntax error');
        if (args.is(3, 'PATTERN')) {
          const glob = new Glob(args.buf, args.starts[4]!, args.lens[4]!, true);
          entries = entries.filter(({ fullName }) => {
            const name = Buffer.from(fullName);
            return glob.matches(name, 0, name.length);
          });
        } else if (args.is(3, 'ACLCAT')) {
          const category = args.text(4).toLowerCase();
          entries = entries.filter(
            ({ categories }) => isCategory(category) && categories.has(category),
          );
        } else if (args.is(3, 'MODULE')) entries = [];
        else throw new CommandError('ERR syntax error');
      }
      reply.array(entries.length);
      for (const entry of entries) reply.text(entry.fullName);
    },
  },
  {
    ...common,
    name: 'getkeys',
    longWords: true,
    arity: -4,
    since: '2.8.13',
    summary: 'Extracts the key names from an arbitrary command.',
    handle(connection, args, reply) {
      keysOf(args, reply, false, (inner) => called(connection, inner));
    },
  },
  {
    ...common,
    name: 'getkeysandflags',
    longWords: true,
    arity: -4,
    since: '7.0.0',
    summary: 'Extracts the key names and access flags for an arbitrary command.',
    handle(connection, args, reply) {
      keysOf(args, reply, true, (inner) => called(connection, inner));
    },
  },
];

export const introspectionCommands: readonly ClientCommand[] = [
  {
    name: 'command',
    arity: -1,
    flags,
    group: 'server',
    since: '2.8.13',
    summary: 'Returns detailed information about all commands.',
    complexity: 'O(N) where N is the total number of commands',
    handle(connection, _args, reply) {
      const { registry } = connection.server;
      reply.array(registry.size);
      for (const entry of registry.all()) writeInfo(entry, reply);
    },
    subcommands: [...subcommands, helpOf('command', subcommands)],
  },
];
