// One run of a script: the commands it calls, in the transaction of the command that called it.
//
// A script begins in its plain form. When that cannot continue (its slice is used up, a row has to be
// read, a command is long, a coroutine is made) the script is run again from its start in the form
// that yields. Its effects stay: commands that were called already are answered from the record of
// the first run, and are not run again. That works because a script sees nothing but its arguments
// and the answers of commands.

import { Arguments } from '../../../arguments.ts';
import { viewed } from '../../../bytes.ts';
import { isWrite } from '../../../command.ts';
import { CommandError, ReadFault } from '../../../errors.ts';
import type { Rows } from '../../../rows.ts';
import type { Machine } from '../../../scripting/machine.ts';
import { argumentText } from '../../../scripting/numbers.ts';
import { LuaTable, NeedsSteps, ScriptAbort, type Value } from '../../../scripting/values.ts';
import { step, type Steps, type StepTransform } from '../../../steps.ts';
import type { RunningScript, ScriptCommand, ScriptHost } from './host.ts';
import { type CallResult, ReplyValues } from './reply-values.ts';
import { ownCommands } from './own-commands.ts';
import type { ScriptChanges } from './script-changes.ts';

/** Instructions that a call of a command counts as, in a script's budget, beside one for two bytes of its words. */
const callUnits = 200;
const keptBytes = 64 * 1024;

interface Recorded {
  readonly words: readonly Value[];
  readonly result: CallResult;
}

function ofScript(args: Arguments): Arguments {
  args.isOfScript = true;
  return args;
}

/** Arguments and replies of called commands: runs of the plain form share one in turn. */
export class CommandWords {
  readonly args = ofScript(new Arguments());
  readonly answers = new ReplyValues();
}

/** Rights of the script as a whole. */
export interface RunRights {
  /** The script may write. */
  readonly mayWrite: boolean;
  /** Commands that need memory run when it is at its limit. */
  readonly allowOom: boolean;
}

function isMessage({ fullName }: ScriptCommand): boolean {
  return fullName === 'publish' || fullName === 'spublish';
}

const failed = (text: string): CallResult => ({
  value: undefined,
  status: undefined,
  failure: text,
});

export class ScriptRun implements RunningScript {
  readonly name: string;
  readonly answers: ReplyValues;
  /** Commands that it called, and messages that it published. */
  calls = 0;
  messages = 0;
  startedAt = performance.now();
  /** Seed of its random numbers. */
  seed: number;
  readonly #host: ScriptHost;
  readonly #rights: RunRights;
  readonly #machine: Machine;
  readonly #args: Arguments;
  readonly #rows: Rows;
  #record: Recorded[] = [];
  #replayed = 0;
  #wrote = false;
  /** Its changes, where they may be undone. */
  readonly #changes: ScriptChanges | undefined;
  #isKilled = false;

  constructor(
    name: string,
    rows: Rows,
    host: ScriptHost,
    rights: RunRights,
    machine: Machine,
    words: CommandWords,
    changes: ScriptChanges | undefined,
  ) {
    this.#changes = changes;
    this.answers = words.answers;
    this.answers.version = 2;
    this.#args = words.args;
    this.name = name;
    this.#rows = rows;
    this.seed = rows.random();
    this.#host = host;
    this.#rights = rights;
    this.#machine = machine;
  }

  /** RESP version of its replies. */
  get version(): number {
    return this.answers.version;
  }

  get hasWritten(): boolean {
    return this.#wrote && this.#changes === undefined;
  }

  get host(): ScriptHost {
    return this.#host;
  }

  /** Continues from where another run of the same script came to. */
  resume(before: ScriptRun): void {
    this.#record = before.#record;
    this.#wrote = before.#wrote;
    this.calls = before.calls;
    this.messages = before.messages;
    this.startedAt = before.startedAt;
    this.seed = before.seed;
  }

  kill(): void {
    this.#isKilled = true;
    this.#machine.abort = new ScriptAbort('ERR Script killed by user with SCRIPT KILL.');
  }

  /** A call that was made by the run before this one. */
  #recorded(words: readonly Value[]): CallResult | undefined {
    if (this.#replayed >= this.#record.length) return undefined;
    const { words: known, result } = this.#record[this.#replayed++]!;
    if (known.length !== words.length || known.some((word, i) => word !== words[i])) {
      throw new ScriptAbort('ERR the script did not do the same when it was run again');
    }
    return copyOf(result);
  }

  #done(words: readonly Value[], result: CallResult): CallResult {
    this.#record.push({ words, result: copyOf(result) });
    this.#replayed = this.#record.length;
    return result;
  }

  /** In the plain form. */
  call(words: readonly Value[]): CallResult {
    const known = this.#recorded(words);
    if (known !== undefined) return known;
    const m = this.#machine;
    if ((m.n -= callUnits) < 0) m.tick();
    const command = this.#prepared(words);
    if (typeof command === 'string') return this.#refused(words, command);
    const { starts, lens, count } = this.#args;
    if ((m.n -= (starts[count - 1]! + lens[count - 1]!) >>> 1) < 0) m.tick();
    const written = this.#wrote;
    let outcome: CallResult | StepTransform;
    try {
      outcome = this.#attempt(command);
    } catch (error) {
      // Nothing has been written that would have to be undone: the run continues from here.
      if (error instanceof ReadFault && !written && !isWrite(command.action)) {
        throw new NeedsSteps('command');
      }
      throw error;
    }
    if (typeof outcome === 'function') {
      this.#wrote = written;
      throw new NeedsSteps('command');
    }
    return this.#done(words, outcome);
  }

  /** In the stepping form. */
  *callInSteps(words: readonly Value[]): Generator<unknown, CallResult, undefined> {
    const known = this.#recorded(words);
    if (known !== undefined) return known;
    const command = this.#prepared(words);
    if (typeof command === 'string') return this.#refused(words, command);
    this.#changes?.beforeCall();
    const outcome = yield* step(() => this.#attempt(command));
    if (this.#isKilled) throw this.#machine.abort!;
    this.#machine.refill();
    if (typeof outcome !== 'function') return this.#done(words, outcome);
    return this.#done(words, yield* this.#long(outcome));
  }

  *#long(form: StepTransform): Generator<unknown, CallResult, undefined> {
    const { answers } = this;
    try {
      answers.reset();
      yield* form(this.#rows, this.#args, answers) as Steps;
      return answers.result();
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      this.#host.failed(error.message);
      return failed(error.message);
    }
  }

  #attempt(command: ScriptCommand): CallResult | StepTransform {
    const { answers } = this;
    const rows = this.#rows;
    if (isWrite(command.action)) this.#wrote = true;
    this.calls++;
    this.#host.calling(command, this.#args);
    answers.reset();
    rows.useArguments(this.#args);
    try {
      const { run } = command;
      if (run === undefined) {
        ownCommands.get(command.fullName)!(rows, this.#args, answers, this.#host);
        if (isMessage(command)) this.messages++;
      } else {
        const long = run(rows, this.#args, answers);
        if (long !== undefined) return long;
      }
      return answers.result();
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      command.failedCalls++;
      this.#host.failed(error.message);
      return failed(error.message);
    }
  }

  #refused(words: readonly Value[], text: string): CallResult {
    this.#host.failed(text);
    // An argument that is not a string or number differs between runs.
    const isPlain = words.every((word) => typeof word === 'string' || typeof word === 'number');
    return isPlain ? this.#done(words, failed(text)) : failed(text);
  }

  /** The command, its words encoded, or why it may not run. */
  #prepared(words: readonly Value[]): ScriptCommand | string {
    const bad = this.#encode(words);
    if (bad !== undefined) return bad;
    const host = this.#host;
    const args = this.#args;
    const command = host.command(args);
    if (command === undefined) return 'ERR Unknown Redis command called from script';
    if (!command.takes(args.count)) {
      return 'ERR Wrong number of args calling Redis command from script';
    }
    if (!command.isAllowedInScripts && !ownCommands.has(command.fullName)) {
      return 'ERR This Redis command is not allowed from script';
    }
    const refusal = this.#refusal(command);
    if (refusal === undefined) return command;
    command.rejectedCalls++;
    return refusal;
  }

  #refusal(command: ScriptCommand): string | undefined {
    const host = this.#host;
    const denial = host.denial(command, this.#args, this.#rows.table);
    if (denial !== undefined) return denial;
    const isWriting = isWrite(command.action);
    // Replicas would have to know of messages, too.
    if ((isWriting || isMessage(command)) && !this.#rights.mayWrite) {
      return 'ERR Write commands are not allowed from read-only scripts.';
    }
    return isWriting ? host.refusal(command.grows && !this.#rights.allowOom) : undefined;
  }

  /** Encodes the values into `#args`; returns the error, if any. */
  #encode(words: readonly Value[]): string | undefined {
    if (words.length === 0) {
      return 'ERR Please specify at least one argument for this redis lib call';
    }
    const args = this.#args;
    args.reserve(words.length);
    let bytes = 0;
    const texts = words as (string | number)[];
    for (const word of texts) {
      if (typeof word === 'string') bytes += word.length;
      else if (typeof word === 'number') bytes += 32;
      else return 'ERR Lua redis lib command arguments must be strings or integers';
    }
    if (args.buf.length < bytes || (args.buf.length > keptBytes && bytes < keptBytes)) {
      args.buf = viewed(Buffer.allocUnsafeSlow(Math.max(4096, bytes)));
    }
    const { buf } = args;
    let at = 0;
    for (let i = 0; i < texts.length; i++) {
      const word = texts[i]!;
      const text = typeof word === 'string' ? word : argumentText(word);
      const n = text.length;
      if (n < 24) for (let k = 0; k < n; k++) buf[at + k] = text.charCodeAt(k);
      else buf.write(text, at, 'latin1');
      args.starts[i] = at;
      args.lens[i] = n;
      at += n;
    }
    args.count = texts.length;
    return undefined;
  }

  /** Whether the user may run a command; undefined when there is none of that name. */
  isAllowed(words: readonly Value[]): boolean | undefined {
    if (this.#encode(words) !== undefined) return undefined;
    const command = this.#host.command(this.#args);
    return command && this.#host.denial(command, this.#args, this.#rows.table) === undefined;
  }
}

/** Tables of the record are the script's own to change. */
function copyOf(result: CallResult): CallResult {
  return result.value instanceof LuaTable ? { ...result, value: copyTable(result.value) } : result;
}

function copyTable(table: LuaTable): LuaTable {
  const copied = (value: Value): Value => (value instanceof LuaTable ? copyTable(value) : value);
  const copy = new LuaTable(table.list.map(copied));
  for (let at = table.seekRest(0); at >= 0; at = table.seekRest(at + 1)) {
    copy.set(table.restKey(at), copied(table.restValue(at)));
  }
  return copy;
}
