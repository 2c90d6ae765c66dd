// Commands that run as one and that a gateway may send again, as it cannot know whether they were applied: the record of
// their number (once.ts) has the answers of all of them. It is looked up by the first that runs, and is part of their entry.
//
// If a watched row was touched, an earlier attempt may still have been applied, so the record is looked up first. Without a
// record, a record "not run" is written, so that a late attempt is not run either.

import { Action, type Command, isWrite, type Transform } from './command.ts';
import { CommandError, outcomeUnknown } from './errors.ts';
import type { RowCommands } from './executor.ts';
import type { MaybePromise } from './maybe-promise.ts';
import { type Numbered, type NumberedWrite, record, recordedAnswers, recordOf } from './once.ts';
import { copyValue, ValueWriter } from './protocol/values.ts';
import type { WireReader } from './protocol/wire.ts';
import type { Reply } from './reply.ts';
import type { Rows } from './rows.ts';

/** How an attempt begins. */
interface TogetherEnds {
  /** Whether no watched row was touched. */
  isClean(): boolean;
  /** Called before their answers are written: whether they run, or have run. */
  begin(reply: Reply, hasRun: boolean): void;
}

/** In place of answers: they were not run. No value begins so. */
const notRunMark = 0x7f;
const markOnly = new Uint8Array([notRunMark]);

/** As `RowCommands.executeAll`, for commands that may have been done before. */
export function executeTogether(
  place: Pick<RowCommands, 'execute' | 'executeAll'>,
  commands: readonly Command[],
  reply: Reply,
  write: NumberedWrite,
  ends: TogetherEnds,
): MaybePromise<Reply | void> {
  const together = new Together(commands, write, ends);
  if (!ends.isClean()) return together.lookUp(place, reply);
  const done = together.run(place, reply);
  if (!(done instanceof Promise)) return together.isTouched ? together.lookUp(place, reply) : done;
  return done.then(async (own) => {
    if (!together.isTouched) return own;
    return (await together.lookUp(place, own ?? reply)) ?? own;
  });
}

class Together {
  /** A watched row was touched when they were about to run. */
  isTouched = false;
  readonly #commands: readonly Command[];
  readonly #transforms: readonly Transform[];
  readonly #write: NumberedWrite;
  readonly #ends: TogetherEnds;
  /** Index of the first command that ran, and of the command that wrote the record; -1 for none. */
  #first = -1;
  #recorder = -1;
  /** An attempt before has done them: the first has answered for all. */
  #isAnswered = false;
  #reply: Reply | undefined;
  #from = 0;

  constructor(commands: readonly Command[], write: NumberedWrite, ends: TogetherEnds) {
    this.#commands = commands;
    this.#transforms = commands.map(({ transform }) => transform);
    this.#write = write;
    this.#ends = ends;
  }

  run(place: Pick<RowCommands, 'executeAll'>, reply: Reply): MaybePromise<Reply | void> {
    const answer = (own: Reply): void => {
      this.#ends.begin(own, true);
      this.#answerFrom(0, own);
    };
    for (const [i, command] of this.#commands.entries()) {
      const { busy } = command.transform;
      const refuse = (rows: Rows, own: Reply, error: string): boolean =>
        this.#refuse(i, rows, own, error);
      const numbered = { write: this.#write, answer, refuse, busy };
      command.transform = Object.assign(this.#wrapped(i), numbered);
    }
    const restore = (): void => {
      for (const [i, command] of this.#commands.entries()) command.transform = this.#transforms[i]!;
    };
    const done = place.executeAll(this.#commands, reply, (own) => this.#begins(own));
    if (done instanceof Promise) return done.finally(restore);
    restore();
    return done;
  }

  /** Called before the commands run, and again if all of them are run again. */
  #begins(reply: Reply): boolean {
    this.isTouched = !this.#ends.isClean();
    if (this.isTouched) return false;
    this.#ends.begin(reply, true);
    this.#first = -1;
    this.#recorder = -1;
    this.#isAnswered = false;
    this.#reply = reply;
    this.#from = reply.mark();
    return true;
  }

  #wrapped(i: number): Transform {
    const transform = this.#transforms[i]!;
    const command = this.#commands[i]!;
    const isLast = i === this.#commands.length - 1;
    return (rows, args, reply) => {
      if (this.#wasAnswered(i, rows, reply)) return;
      if (isWrite(command.action) && (this.#recorder === -1 || this.#recorder === i)) {
        this.#recorder = i;
        record(rows, this.#write);
      }
      const mark = reply.mark();
      try {
        const long = transform(rows, args, reply);
        if (long !== undefined || !isLast || this.#recorder === -1) return long;
      } catch (error) {
        // What was written before the failure stays.
        if (isLast && this.#recorder !== -1 && error instanceof CommandError) {
          reply.rollback(mark);
          this.#recordAnswers(rows, reply, error);
        }
        throw error;
      }
      this.#recordAnswers(rows, reply);
    };
  }

  /** Answers from the record if an earlier attempt has run the commands. Returns whether it did. */
  #wasAnswered(i: number, rows: Rows, reply: Reply): boolean {
    if (this.#isAnswered || (this.#first !== -1 && this.#first !== i)) return this.#isAnswered;
    this.#first = i;
    if (!recordOf(rows, this.#write)) return false;
    this.#answerFrom(i, reply);
    this.#isAnswered = true;
    return true;
  }

  /** Refuses one command that the pod cannot run at present, unless an earlier attempt has run it. */
  #refuse(i: number, rows: Rows, reply: Reply, error: string): boolean {
    if (this.#wasAnswered(i, rows, reply)) return false;
    reply.error(error);
    if (i === this.#commands.length - 1 && this.#recorder !== -1) this.#recordAnswers(rows, reply);
    return true;
  }

  /** All answers, where they can be kept: the last one is there. */
  #recordAnswers(rows: Rows, reply: Reply, failure?: CommandError): void {
    // A transaction with commands of the gateway records no answers: those commands answer anew.
    const isWhole = reply === this.#reply && !this.#commands.some(({ isLocal }) => isLocal);
    const answers = isWhole ? reply.valuesFrom?.(this.#from) : undefined;
    if (answers === undefined) return;
    if (failure === undefined) return record(rows, this.#write, answers);
    const all = new ValueWriter(answers.length + 256);
    all.raw(Buffer.from(answers), 0, answers.length);
    all.error(failure.message);
    record(rows, this.#write, all.view());
  }

  /** Answers the commands from index `i` on from the record that was found. */
  #answerFrom(i: number, reply: Reply): void {
    const kept = recordedAnswers();
    // Another attempt has been told that they were not run: nothing waits for this one.
    const found = isNotRun(kept) ? outcomeUnknown : kept;
    const skipped = new ValueWriter(64);
    for (const [at, { isLocal, args }] of this.#commands.entries()) {
      const to = at < i ? skipped : reply;
      if (isLocal === true) {
        if (at >= i) this.#transforms[at]!(noRows, args, reply);
      } else if (typeof found === 'string') to.error(found);
      else if (found.left === 0) to.error(outcomeUnknown);
      else copyValue(found, to);
    }
  }

  /** Whether they were done, and the answers then; otherwise they are void from now on. */
  lookUp(place: Pick<RowCommands, 'execute'>, reply: Reply): MaybePromise<Reply | void> {
    const [first] = this.#commands;
    const answer = (own: Reply): boolean => {
      const hasRun = !isNotRun(recordedAnswers());
      this.#ends.begin(own, hasRun);
      if (hasRun) this.#answerFrom(0, own);
      return hasRun;
    };
    const transform: Transform = (rows, _args, own) => {
      if (recordOf(rows, this.#write)) {
        answer(own);
        return;
      }
      record(rows, this.#write, markOnly);
      this.#ends.begin(own, false);
    };
    const refuse = (rows: Rows, own: Reply, error: string): boolean => {
      const isRecorded = recordOf(rows, this.#write);
      if (isRecorded) answer(own);
      else own.error(error);
      return !isRecorded;
    };
    const one: Command = {
      ...first!,
      ...{ action: Action.delete, grows: false, usesSpan: false, isLocal: false, once: undefined },
      transform: Object.assign(transform, {
        write: this.#write,
        answer,
        refuse,
      }) satisfies Numbered,
      notRun: undefined,
    };
    const tell = (): void => {
      first!.notRun = one.notRun;
    };
    const done = place.execute(one, reply);
    if (done instanceof Promise) return done.finally(tell);
    tell();
    return done;
  }
}

function isNotRun(kept: WireReader | string): boolean {
  return typeof kept !== 'string' && kept.buf[kept.pos] === notRunMark;
}

/** Commands about a gateway have none. */
export const noRows = new Proxy({} as Rows, {
  get: () => {
    throw new TypeError('a command of the gateway has no rows');
  },
});
