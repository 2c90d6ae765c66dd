// EVAL, EVALSHA and their read-only forms.

import type { Arguments } from '../../../arguments.ts';
import type { Transform } from '../../../command.ts';
import { CommandError } from '../../../errors.ts';
import { LuaTable } from '../../../scripting/values.ts';
import type { ScriptHost } from './host.ts';
import { redisLibrary } from './redis-library.ts';
import { runScript, ScriptEnvironment } from './run-script.ts';
import type { Script, ScriptCache } from './script.ts';

const noScript = new CommandError('NOSCRIPT No matching script. Please use EVAL.');
const negativeKeys = new CommandError("ERR Number of keys can't be negative");
const tooManyKeys = new CommandError("ERR Number of keys can't be greater than number of args");
export const outOfMemory = new CommandError(
  "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
);

function newEnvironment(isStepping: boolean): ScriptEnvironment {
  return new ScriptEnvironment(isStepping, (m, current) => ({ redis: redisLibrary(m, current) }));
}

let plain: ScriptEnvironment | undefined;

/** Numbers of the words that are keys; none where the count is wrong. */
export function scriptKeys(args: Arguments): number[] {
  const count = args.count > 2 ? args.integerOrNaN(2) : 0;
  if (!(count > 0) || count > args.count - 3) return [];
  return Array.from({ length: count }, (_, i) => 3 + i);
}

/** The number of keys in word 2. */
export function checkedKeyCount(args: Arguments, count: number): number {
  if (count > args.count - 3) throw tooManyKeys;
  if (count < 0) throw negativeKeys;
  return count;
}

/** Words from one to before another. A run in steps begins when `args` is somewhere else already. */
export function wordList(args: Arguments, from: number, to: number): string[] {
  const list: string[] = [];
  for (let i = from; i < to; i++) list.push(args.latin1(i));
  return list;
}

type Finder = (args: Arguments, scripts: ScriptCache) => Script;

const byText: Finder = (args, scripts) => scripts.take(args.latin1(1));
const bySha: Finder = (args, scripts) => {
  const script = args.lens[1] === 40 ? scripts.bySha(args.latin1(1)) : undefined;
  if (script === undefined) throw noScript;
  return script;
};

/** The transform of EVAL for one caller; `isSha` for EVALSHA, `isReadOnly` for the forms with _RO. */
export function evalTransform(
  host: ScriptHost,
  scripts: ScriptCache,
  isSha: boolean,
  isReadOnly: boolean,
): Transform {
  const find = isSha ? bySha : byText;
  return (rows, args, reply) => {
    host.begin();
    const count = checkedKeyCount(args, args.integer(2));
    const script = find(args, scripts);
    const { flags } = script;
    if (!flags.allowOom && host.refusal(true)?.startsWith('OOM') === true) throw outOfMemory;
    if (count > 1) rows.expect(3, 2 + count, 1);
    const keys = wordList(args, 3, 3 + count);
    const words = wordList(args, 3 + count, args.count);
    return runScript(
      {
        name: script.sha,
        host,
        rights: {
          mayWrite: !isReadOnly && !flags.noWrites,
          allowOom: flags.isDeclared && flags.allowOom,
        },
        rollsBack: flags.rollback,
        history: script,
        plain: (plain ??= newEnvironment(false)),
        stepping: () => newEnvironment(true),
        start: ({ environment }) => {
          environment.setGlobal('KEYS', new LuaTable(keys.slice()));
          environment.setGlobal('ARGV', new LuaTable(words.slice()));
          return environment.main(script.program)();
        },
      },
      rows,
      reply,
    );
  };
}
