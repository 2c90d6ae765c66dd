// Functions: libraries of scripts that are called by name.

import { Action, type Transform } from '../../../universal-row/command.ts';
import { CommandError } from '../../../universal-row/errors.ts';
import { Glob } from '../../../universal-row/transforms/redis/glob.ts';
import { scriptKeys } from '../../../universal-row/transforms/redis/scripts/eval.ts';
import {
  dumpOf,
  functionDelete,
  functionFlush,
  functionLoad,
  functionRestore,
} from '../../../universal-row/transforms/redis/scripts/function-commands.ts';
import type {
  FunctionLibraries,
  FunctionLibrary,
} from '../../../universal-row/transforms/redis/scripts/functions.ts';
import type { ClientCommand, ClientHandler } from '../client.ts';
import type { RespWriter } from '../resp-writer.ts';
import { killing } from './scripting.ts';
import { helpOf } from './support/help.ts';

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
    usesLibraries: true,
    bind: (client) => client.scripts.fcall(isReadOnly),
  };
}

/**
 * Makes it reply with the libraries as they are on all nodes; within EXEC with those known here.
 */
function whenCurrent(handle: ClientHandler): ClientHandler {
  return (client, args, reply) => {
    const { functions } = client.tenant.scripts;
    const reading = client.isExecuting ? undefined : functions.refresh();
    if (reading === undefined) return handle(client, args, reply);
    return reading.then((error) => {
      const out = client.answer();
      try {
        if (error === undefined) return handle(client, client.arguments, out);
        out.error(error);
      } catch (thrown) {
        client.writeError(thrown, out);
      }
    });
  };
}

function bytes(reply: RespWriter, text: string): void {
  const buffer = Buffer.from(text, 'latin1');
  reply.bulk(buffer, 0, buffer.length);
}

const dump: ClientHandler = (client, _args, reply) => {
  const payload = dumpOf(client.tenant.scripts.functions.all.values());
  reply.bulk(payload, 0, payload.length);
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
  const [long] = running;
  reply.map(2);
  reply.text('running_script');
  if (long === undefined) reply.nil();
  else {
    const { script, words } = long;
    reply.map(3);
    reply.text('name');
    bytes(reply, script.name);
    reply.text('command');
    reply.array(words.length);
    for (const word of words) reply.bulk(word, 0, word.length);
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

const growing: ReadonlySet<string> = new Set(['load', 'restore']);

interface Part {
  readonly name: string;
  readonly arity: number;
  readonly syntax?: string;
  readonly summary: string;
  readonly handle?: ClientHandler;
  /** Change of the rows of libraries. */
  readonly changes?: (libraries: FunctionLibraries) => Transform;
}

const parts: readonly Part[] = [
  {
    name: 'delete',
    arity: 3,
    syntax: 'library-name',
    summary: 'Deletes a library and its functions.',
    changes: functionDelete,
  },
  {
    name: 'dump',
    arity: 2,
    summary: 'Dumps all libraries into a serialized binary payload.',
    handle: whenCurrent(dump),
  },
  {
    name: 'flush',
    arity: -2,
    syntax: '[ASYNC | SYNC]',
    summary: 'Deletes all libraries and functions.',
    changes: functionFlush,
  },
  {
    name: 'kill',
    arity: 2,
    summary: 'Terminates a function during execution.',
    handle: killing(true),
  },
  {
    name: 'list',
    arity: -2,
    syntax: '[LIBRARYNAME library-name-pattern] [WITHCODE]',
    summary: 'Returns information about all libraries.',
    handle: whenCurrent(list),
  },
  {
    name: 'load',
    arity: -3,
    syntax: '[REPLACE] function-code',
    summary: 'Creates a library.',
    changes: functionLoad,
  },
  {
    name: 'restore',
    arity: -3,
    syntax: 'serialized-value [FLUSH | APPEND | REPLACE]',
    summary: 'Restores all libraries from a payload.',
    changes: functionRestore,
  },
  {
    name: 'stats',
    arity: 2,
    summary: 'Returns information about a function during execution.',
    handle: whenCurrent(stats),
  },
];

const subcommands: readonly ClientCommand[] = parts.map((part) => {
  const { changes, handle, ...spec } = part;
  const common = { ...spec, group: 'scripting', since: '7.0.0' } as const;
  if (changes === undefined) return { ...common, flags: ['noscript'], handle: handle! };
  return {
    ...common,
    flags: growing.has(part.name) ? ['noscript', 'write', 'denyoom'] : ['noscript', 'write'],
    action: Action.update,
    ofLibraries: true,
    usesLibraries: true,
    bind: ({ tenant: { scripts } }) => scripts.changing(changes),
  };
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
