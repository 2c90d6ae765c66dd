// Handles the changes of a script at its end. Changes of an ordinary script stay, as in Redis. Changes of a script with the
// flag `rollback` are undone if the script fails; changes of a dry run are always undone.

import { assert } from '../../../assert.ts';
import { ChangeTally } from '../../../change-tally.ts';
import type { Reply } from '../../../reply.ts';
import type { ChangeMark, RowChanges, Rows } from '../../../rows.ts';
import type { Steps } from '../../../steps.ts';
import { answerDryRun } from './dry-run.ts';
import type { ScriptHost } from './host.ts';

/** The end of a script. */
interface ScriptEnd {
  /** Error that the script raised or returned; undefined if it succeeded. */
  readonly failure: string | undefined;
  /** Commands that it called, and messages that it published. */
  readonly calls: number;
  readonly messages: number;
  /** Its answer, from `mark` on. */
  readonly reply: Reply;
  readonly mark: number;
}

/** Number of calls that are undone in one step. */
const callsBetweenMarks = 64;

export class ScriptChanges {
  readonly #changes: RowChanges;
  readonly #host: ScriptHost;
  readonly #marks: ChangeMark[];
  readonly #tally = new ChangeTally();
  #calls = 0;

  constructor(rows: Rows, host: ScriptHost) {
    assert(rows.changes !== undefined, 'a pod runs scripts that are undone');
    this.#changes = rows.changes;
    this.#host = host;
    this.#marks = [this.#changes.mark()];
  }

  /** A command is about to be called, by a script that runs in steps. */
  beforeCall(): void {
    if (++this.#calls % callsBetweenMarks !== 0) return;
    this.#count();
    this.#marks.push(this.#changes.mark());
  }

  /** Counts what a dry run has written since the last mark. */
  #count(): void {
    if (!this.#host.isDryRun) return;
    this.#changes.records(this.#marks.at(-1)!, (b, s, n) => this.#tally.add(b, s, s + n));
  }

  /** Undoes all changes, so that the script can start again. */
  restart(): void {
    this.#changes.undo(this.#marks[0]!);
    this.#host.unpublish();
  }

  /** Ends a script that ran in one step. */
  end(end: ScriptEnd): void {
    for (const undo of this.#ending(end)) undo();
  }

  /** Ends a script that ran in several steps. Its changes are undone in as many steps. */
  *endInSteps(end: ScriptEnd): Steps {
    for (const undo of this.#ending(end)) {
      yield;
      undo();
    }
  }

  *#ending(end: ScriptEnd): Generator<() => void> {
    const { isDryRun } = this.#host;
    if (!isDryRun && end.failure === undefined) return;
    const answer = isDryRun ? this.#dryRun(end) : undefined;
    for (const mark of this.#marks.toReversed()) yield () => this.#changes.undo(mark);
    this.#host.unpublish();
    answer?.();
  }

  /** Takes note of the run; the function answers it. */
  #dryRun({ failure = '', calls, messages, reply, mark }: ScriptEnd): () => void {
    this.#count();
    const { writes, rows } = this.#tally;
    const sent = reply.mark() - mark;
    const work = this.#changes.work(this.#marks[0]!);
    return () => {
      reply.rollback(mark);
      answerDryRun({ failure, sent, calls, messages, writes, rows, work }, reply);
    };
  }

  /** To be called last, however the script ends. */
  release(): void {
    this.#changes.keep();
  }
}
