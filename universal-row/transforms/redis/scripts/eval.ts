// EVAL, EVALSHA and their read-only forms.

import type { Arguments } from '../../../arguments.ts';
import type { Transform } from '../../../command.ts';
import { CommandError, ReadFault } from '../../../errors.ts';
import type { Reply } from '../../../reply.ts';
import type { Rows } from '../../../rows.ts';
import { Environment } from '../../../scripting/environment.ts';
import type { Program } from '../../../scripting/program.ts';
import { tostring } from '../../../scripting/lib/base.ts';
import type { Machine } from '../../../scripting/machine.ts';
import {
  type Callable,
  LuaError,
  LuaTable,
  NeedsSteps,
  Pending,
  ScriptAbort,
  type Value,
} from '../../../scripting/values.ts';
import type { Steps, StepTransform } from '../../../steps.ts';
import { answerWith } from './answer.ts';
import type { ScriptHost } from './host.ts';
import { type CurrentRun, redisLibrary } from './redis-library.ts';
import { CommandWords, type RunRights, ScriptRun } from './script-run.ts';
import type { Script, ScriptCache } from './script.ts';

const noScript = new CommandError('NOSCRIPT No matching script. Please use EVAL.');
const negativeKeys = new CommandError("ERR Number of keys can't be negative");
const tooManyKeys = new CommandError("ERR Number of keys can't be greater than number of args");
const outOfMemory = new CommandError(
  "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
);
/** Runs of a script that begin in the stepping form after one that was undone. */
const steppingRuns = 64;

/** An environment and the run that is under way in it. */
export interface ScriptEnvironment {
  readonly environment: Environment;
  readonly current: CurrentRun;
  readonly words: CommandWords;
}

function newEnvironment(isStepping: boolean): ScriptEnvironment {
  const current: CurrentRun = { run: undefined };
  const environment = new Environment({
    isStepping,
    globals: (m) => ({ redis: redisLibrary(m, current) }),
  });
  environment.machine.unwrapsErrors = true;
  return { environment, current, words: new CommandWords() };
}

// Plain runs never overlap, and nothing in an environment can be changed: one serves all.
let plainEnvironment: ScriptEnvironment | undefined;

/** A script and what it is called with. */
interface Invocation {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly words: readonly string[];
  readonly rights: RunRights;
}

/** Numbers of the words that are keys; none where the count is wrong. */
export function scriptKeys(args: Arguments): number[] {
  const count = args.count > 2 ? args.integerOrNaN(2) : 0;
  if (!(count > 0) || count > args.count - 3) return [];
  return Array.from({ length: count }, (_, i) => 3 + i);
}

/** The number of keys in word 2. */
export function keyCount(args: Arguments): number {
  const count = args.integer(2);
  if (count > args.count - 3) throw tooManyKeys;
  if (count < 0) throw negativeKeys;
  return count;
}

function invocation(
  script: Script,
  args: Arguments,
  host: ScriptHost,
  isReadOnly: boolean,
): Invocation {
  const count = keyCount(args);
  const { flags } = script;
  const text = (from: number, to: number): string[] =>
    Array.from({ length: to - from }, (_, i) => args.latin1(from + i));
  if (!flags.allowOom && host.refusal(true)?.startsWith('OOM') === true) throw outOfMemory;
  return {
    script,
    keys: text(3, 3 + count),
    words: text(3 + count, args.count),
    rights: {
      mayWrite: !isReadOnly && !flags.noWrites,
      allowOom: flags.isDeclared && flags.allowOom,
    },
  };
}

function begin(
  { environment, current }: ScriptEnvironment,
  run: ScriptRun,
  { keys, words }: Invocation,
): void {
  environment.begin(run.seed);
  environment.setGlobal('KEYS', new LuaTable(keys.slice()));
  environment.setGlobal('ARGV', new LuaTable(words.slice()));
  current.run = run;
}

/** What is answered for a script's error. */
export function errorText(error: unknown, where: ScriptEnvironment, name: string): string {
  const { machine } = where.environment;
  if (error instanceof ScriptAbort) {
    return `${error.message} script: ${name}, on @${machine.at.chunk}:${machine.at.line}.`;
  }
  const value = machine.caughtAtTop(error);
  const site = (error instanceof LuaError ? error.site : undefined) ?? machine.at;
  const at = `script: ${name}, on @${site.chunk}:${site.line}.`;
  return `${messageOf(value, machine)} ${at}`;
}

function messageOf(value: Value, machine: Machine): string {
  if (value instanceof LuaTable) {
    const text = value.get('err');
    if (typeof text === 'string') return text;
    return 'ERR unknown error';
  }
  return `ERR ${String(tostring(machine, value))}`;
}

function runPlain(
  call: Invocation,
  rows: Rows,
  reply: Reply,
  host: ScriptHost,
): StepTransform | void {
  const where = (plainEnvironment ??= newEnvironment(false));
  const { script, rights } = call;
  const { machine } = where.environment;
  const run = new ScriptRun(script.sha, rows, host, rights, machine, where.words);
  if (script.steppingRuns > 0) {
    script.steppingRuns--;
    return stepsOf(call, host, undefined);
  }
  begin(where, run, call);
  const mark = reply.mark();
  try {
    const result = where.environment.main(script.program)();
    answerWith(reply, result, { version: run.answers.version, machine });
  } catch (error) {
    reply.rollback(mark);
    if (error instanceof NeedsSteps) return stepsOf(call, host, run);
    if (error instanceof ReadFault) {
      // What was written is undone. From here on a fault shall undo no more than one call.
      script.steppingRuns = steppingRuns;
      throw error;
    }
    reply.error(errorText(error, where, script.sha));
  } finally {
    where.current.run = undefined;
  }
}

/** The stepping form; `before` is the plain run that could not go on. */
function stepsOf(call: Invocation, host: ScriptHost, before: ScriptRun | undefined): StepTransform {
  return function* (rows, _args, reply): Steps {
    const where = newEnvironment(true);
    const { script, rights } = call;
    const { machine } = where.environment;
    const run = new ScriptRun(script.sha, rows, host, rights, machine, where.words);
    if (before !== undefined) run.resume(before);
    begin(where, run, call);
    const end = host.running(run);
    const mark = reply.mark();
    try {
      let result = startOf(where, script.program)();
      if (result instanceof Pending)
        result = yield* result as Generator<undefined, unknown, undefined>;
      answerWith(reply, result, { version: run.answers.version, machine });
    } catch (error) {
      reply.rollback(mark);
      reply.error(errorText(error, where, script.sha));
    } finally {
      end();
    }
  };
}

function startOf({ environment }: ScriptEnvironment, program: Program): Callable {
  return environment.main(program);
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
    const count = keyCount(args);
    const script = find(args, scripts);
    if (count > 1) rows.expect(3, 2 + count, 1);
    return runPlain(invocation(script, args, host, isReadOnly), rows, reply, host);
  };
}
