// Functions: libraries of scripts that are called by name.

import { Action } from '../../../universal-row/command.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import { Glob } from '../../../universal-row/transforms/redis/glob.ts';
import { scriptKeys } from '../../../universal-row/transforms/redis/scripts/eval.ts';
import type { FunctionLibrary } from '../../../universal-row/transforms/redis/scripts/functions.ts';
import type { ClientCommand, ClientHandler } from '../client.ts';
import type { RespWriter } from '../resp-writer.ts';
import { killScripts } from './scripting.ts';
import { helpOf } from './support/help.ts';

const flushOptions = new CommandError('ERR FUNCTION FLUSH only supports SYNC|ASYNC option');

function calls(name: string, isReadOnly: boolean): ClientCommand {
  return {
    name,
    arity: -3,
    syntax: 'function numkeys [key [key ...]] [arg [arg ...]]',
    flags: isReadOnly
      ? ['noscript', 'readonly', 'movablekeys']
      : ['noscript', 'stale', 'may_replicate', 'movablekeys'],
    keys: scriptKeys,
    group: 'scripting',
    since: '7.0.0',
    summary: `Invokes a ${isReadOnly ? 'read-only ' : ''}function.`,
    complexity: 'Depends on the function that is executed.',
    action: isReadOnly ? Action.query : Action.update,
    bind: (client) => client.scripts.fcall(isReadOnly),
  };
}

function bytes(reply: RespWriter, text: string): void {
  const buffer = Buffer.from(text, 'latin1');
  reply.bulk(buffer, 0, buffer.length);
}

const load: ClientHandler = (client, args, reply) => {
  let at = 2;
  let replaces = false;
  for (; at < args.count - 1; at++) {
    if (!args.is(at, 'REPLACE')) {
      throw new CommandError(`ERR Unknown option given: ${args.latin1(at, 128)}`);
    }
    replaces = true;
  }
  const library = client.tenant.scripts.functions.load(args.latin1(at), replaces);
  reply.text(library.name);
};

const remove: ClientHandler = (client, args, reply) => {
  if (!client.tenant.scripts.functions.delete(args.latin1(2))) {
    throw new CommandError('ERR Library not found');
  }
  reply.ok();
};

const flush: ClientHandler = (client, args, reply) => {
  if (args.count > 3) throw flushOptions;
  if (args.count === 3 && !args.is(2, 'SYNC') && !args.is(2, 'ASYNC')) throw flushOptions;
  client.tenant.scripts.functions.clear();
  reply.ok();
};

function answerLibrary(reply: RespWriter, library: FunctionLibrary, withCode: boolean): void {
  reply.map(withCode ? 4 : 3);
  reply.text('library_name');
  reply.text(library.name);
  reply.text('engine');
  reply.text('LUA');
  reply.text('functions');
  reply.array(library.functions.size);
  for (const { name, description, flags } of library.functions.values()) {
    reply.map(3);
    reply.text('name');
    reply.text(name);
    reply.text('description');
    if (description === undefined) reply.nil();
    else bytes(reply, description);
    reply.text('flags');
    reply.set(flags.size);
    for (const flag of flags) reply.simple(flag);
  }
  if (!withCode) return;
  reply.text('library_code');
  bytes(reply, library.code);
}

const list: ClientHandler = (client, args, reply) => {
  let withCode = false;
  let pattern: Glob | undefined;
  for (let i = 2; i < args.count; i++) {
    if (!withCode && args.is(i, 'WITHCODE')) withCode = true;
    else if (pattern === undefined && args.is(i, 'LIBRARYNAME')) {
      if (++i >= args.count) throw new CommandError('ERR library name argument was not given');
      pattern = new Glob(args.buf, args.starts[i]!, args.lens[i]!);
    } else throw new CommandError(`ERR Unknown argument ${args.latin1(i, 128)}`);
  }
  const found = [...client.tenant.scripts.functions.all.values()].filter(({ name }) => {
    const word = Buffer.from(name, 'latin1');
    return pattern === undefined || pattern.matches(word, 0, word.length);
  });
  reply.array(found.length);
  for (const library of found) answerLibrary(reply, library, withCode);
};

const stats: ClientHandler = (client, _args, reply) => {
  const { running, functions } = client.tenant.scripts;
  const [script] = running;
  reply.map(2);
  reply.text('running_script');
  if (script === undefined) reply.nil();
  else {
    reply.map(2);
    reply.text('name');
    bytes(reply, script.name);
    reply.text('duration_ms');
    reply.integer(Math.floor(performance.now() - script.startedAt));
  }
  reply.text('engines');
  reply.map(1);
  reply.text('LUA');
  reply.map(2);
  reply.text('libraries_count');
  reply.integer(functions.all.size);
  reply.text('functions_count');
  reply.integer(functions.functionCount);
};

interface Part {
  readonly name: string;
  readonly arity: number;
  readonly syntax?: string;
  readonly summary: string;
  readonly handle: ClientHandler;
}

const parts: readonly Part[] = [
  {
    name: 'delete',
    arity: 3,
    syntax: 'library-name',
    summary: 'Deletes a library and its functions.',
    handle: remove,
  },
  {
    name: 'flush',
    arity: -2,
    syntax: '[ASYNC | SYNC]',
    summary: 'Deletes all libraries and functions.',
    handle: flush,
  },
  {
    name: 'kill',
    arity: 2,
    summary: 'Terminates a function during execution.',
    handle: killScripts,
  },
  {
    name: 'list',
    arity: -2,
    syntax: '[LIBRARYNAME library-name-pattern] [WITHCODE]',
    summary: 'Returns information about all libraries.',
    handle: list,
  },
  {
    name: 'load',
    arity: -3,
    syntax: '[REPLACE] function-code',
    summary: 'Creates a library.',
    handle: load,
  },
  {
    name: 'stats',
    arity: 2,
    summary: 'Returns information about a function during execution.',
    handle: stats,
  },
];

const subcommands: readonly ClientCommand[] = parts.map((part) => {
  const writes = ['delete', 'flush', 'load'].includes(part.name);
  const command: ClientCommand = {
    ...part,
    flags: writes ? ['noscript', 'write'] : ['noscript'],
    group: 'scripting',
    since: '7.0.0',
  };
  return part.name === 'load' ? { ...command, longWords: true } : command;
});

export const functionCommands: readonly ClientCommand[] = [
  calls('fcall', false),
  calls('fcall_ro', true),
  {
    name: 'function',
    arity: -2,
    flags: [],
    group: 'scripting',
    since: '7.0.0',
    summary: 'A container for function commands.',
    subcommands: [...subcommands, helpOf('function', subcommands)],
  },
];
