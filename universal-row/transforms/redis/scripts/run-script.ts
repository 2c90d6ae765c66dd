// Runs a script, of EVAL or a function of FCALL, in its plain form, and in the stepping form when that cannot continue.

import { ReadFault } from '../../../errors.ts';
import type { Reply } from '../../../reply.ts';
import type { Rows } from '../../../rows.ts';
import { Environment } from '../../../scripting/environment.ts';
import { tostring } from '../../../scripting/lib/base.ts';
import type { Machine } from '../../../scripting/machine.ts';
import {
  LuaError,
  LuaTable,
  NeedsSteps,
  Pending,
  ScriptAbort,
  type Value,
} from '../../../scripting/values.ts';
import type { Steps, StepTransform } from '../../../steps.ts';
import { answerInSteps, answerWith, errorOf } from './answer.ts';
import type { ScriptHost } from './host.ts';
import type { CurrentRun } from './redis-library.ts';
import { ScriptChanges } from './script-changes.ts';
import { CommandWords, type RunRights, ScriptRun } from './script-run.ts';

/** Runs that begin in the stepping form after one that was undone. */
const steppingRuns = 64;

/** Where scripts of one kind run: a machine of their own, and the run that is under way in it. */
export class ScriptEnvironment {
  readonly environment: Environment;
  readonly current: CurrentRun;
  readonly words = new CommandWords();

  /**
   * `globals` makes the globals of scripts besides Lua's own; `atLoad` all globals during the
   * loading of a library.
   */
  constructor(
    isStepping: boolean,
    globals: (m: Machine, current: CurrentRun) => Record<string, Value>,
    atLoad?: (m: Machine, current: CurrentRun) => Record<string, Value>,
  ) {
    const current: CurrentRun = { run: undefined };
    this.current = current;
    this.environment = new Environment({
      isStepping,
      globals: (m) => globals(m, current),
      ...(atLoad && { atLoad: (m) => atLoad(m, current) }),
    });
    this.environment.machine.unwrapsErrors = true;
  }

  get machine(): Machine {
    return this.environment.machine;
  }
}

/** State kept for a script between its runs. */
interface RunHistory {
  /** Runs to begin in the stepping form, because a plain one was undone after it had written. */
  steppingRuns: number;
}

/** A script with all that it is called with. */
interface ScriptCall {
  /** As errors call it. */
  readonly name: string;
  readonly host: ScriptHost;
  readonly rights: RunRights;
  /** What it has written is undone where it fails. */
  readonly rollsBack: boolean;
  readonly history: RunHistory;
  /** Where plain runs are: they never overlap, and nothing in there can be changed. */
  readonly plain: ScriptEnvironment;
  /** Another one, for one run in the stepping form. */
  readonly stepping: () => ScriptEnvironment;
  /** Calls the script's function there. */
  readonly start: (where: ScriptEnvironment) => unknown;
}

/** Reply for a script's error. */
export function errorText(error: unknown, where: ScriptEnvironment, name: string): string {
  const { machine } = where;
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

function newRun(
  call: ScriptCall,
  where: ScriptEnvironment,
  rows: Rows,
  changes: ScriptChanges | undefined,
): ScriptRun {
  const { name, host, rights } = call;
  return new ScriptRun(name, rows, host, rights, where.machine, where.words, changes);
}

/** Undefined where the changes stay anyway. */
function changesOf({ host, rollsBack }: ScriptCall, rows: Rows): ScriptChanges | undefined {
  return rollsBack || host.isDryRun ? new ScriptChanges(rows, host) : undefined;
}

export function runScript(call: ScriptCall, rows: Rows, reply: Reply): StepTransform | void {
  const { history } = call;
  if (history.steppingRuns > 0) {
    history.steppingRuns--;
    return stepsOf(call, undefined);
  }
  const changes = changesOf(call, rows);
  try {
    return runPlain(call, rows, reply, changes);
  } finally {
    changes?.release();
  }
}

function runPlain(
  call: ScriptCall,
  rows: Rows,
  reply: Reply,
  changes: ScriptChanges | undefined,
): StepTransform | void {
  const { plain: where, history, host } = call;
  const run = newRun(call, where, rows, changes);
  where.environment.begin(run.seed);
  where.current.run = run;
  const mark = reply.mark();
  let failure: string | undefined;
  try {
    try {
      const result = call.start(where);
      answerWith(reply, result, { version: run.version, machine: where.machine });
      failure = errorOf(result);
    } finally {
      rows.addScriptSteps(where.machine.used);
      where.current.run = undefined;
    }
  } catch (error) {
    reply.rollback(mark);
    if (error instanceof NeedsSteps) {
      if (changes === undefined) return stepsOf(call, run);
      // What can be undone begins again: its run in steps has a transaction of its own.
      changes.restart();
      if (!host.isDryRun) history.steppingRuns = steppingRuns;
      return stepsOf(call, undefined);
    }
    if (error instanceof ReadFault) {
      // The changes have been undone. From here on a fault undoes no more than one call.
      history.steppingRuns = steppingRuns;
      host.unpublish();
      throw error;
    }
    failure = errorText(error, where, call.name);
    reply.error(failure);
  }
  const { calls, messages } = run;
  changes?.end({ failure, calls, messages, reply, mark });
}

/** The stepping form; `before` is the plain run that could not continue. */
function stepsOf(call: ScriptCall, before: ScriptRun | undefined): StepTransform {
  return function* (rows, _args, reply): Steps {
    const where = call.stepping();
    const changes = changesOf(call, rows);
    const run = newRun(call, where, rows, changes);
    if (before !== undefined) run.resume(before);
    where.environment.begin(run.seed);
    where.current.run = run;
    const end = call.host.running(run);
    const mark = reply.mark();
    let failure: string | undefined;
    try {
      try {
        let result = call.start(where);
        if (result instanceof Pending) {
          result = yield* result as Generator<undefined, unknown, undefined>;
        }
        yield* answerInSteps(reply, result, { version: run.version, machine: where.machine });
        failure = errorOf(result);
      } catch (error) {
        reply.rollback(mark);
        failure = errorText(error, where, call.name);
        reply.error(failure);
      } finally {
        rows.addScriptSteps(where.machine.used);
        end();
      }
      if (changes === undefined) return;
      const { calls, messages } = run;
      yield* changes.endInSteps({ failure, calls, messages, reply, mark });
    } finally {
      changes?.release();
    }
  };
}
