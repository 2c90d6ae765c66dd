// Reads that wait until this replica has applied all entries committed when they arrived. Reads of
// an event-loop tick are one question to the leader, which asks its followers once for all
// questions received meanwhile. A question without an answer is asked again: its leader may be
// gone.

import { getU64, putU64 } from '../wal/format.ts';

interface Barrier {
  then: (isSafe: boolean) => void;
  /** The first question that was asked after it came, 0 for none yet. */
  question: number;
  /** Where the state must be; 0 until the engine has said so. */
  index: number;
  failsAt: number;
}

const contextBytes = 24;
const retryTicks = 6;

export class ReadBarriers {
  readonly #replica: number;
  readonly #incarnation: number;
  #waiting: Barrier[] = [];
  #next = 1;
  #askedAt = 0;

  constructor(replica: number, incarnation: number) {
    this.#replica = replica;
    this.#incarnation = incarnation;
  }

  get count(): number {
    return this.#waiting.length;
  }

  add(failsAt: number, then: (isSafe: boolean) => void): void {
    this.#waiting.push({ then, question: 0, index: 0, failsAt });
  }

  /** Waits for an index that a client has seen, without asking other replicas. */
  addAt(index: number, failsAt: number, then: (isSafe: boolean) => void): void {
    this.#waiting.push({ then, question: Infinity, index, failsAt });
  }

  /**
   * The context to ask the engine with, undefined when there is nothing to ask. Never the same twice, not even in
   * another life of the replica.
   */
  question(tick: number): Uint8Array | undefined {
    const isDue = tick - this.#askedAt >= retryTicks;
    const asks = ({ question, index }: Barrier): boolean =>
      question === 0 || (isDue && index === 0);
    if (!this.#waiting.some(asks)) return undefined;
    const number = this.#next++;
    for (const one of this.#waiting) if (one.question === 0) one.question = number;
    this.#askedAt = tick;
    const context = new Uint8Array(contextBytes);
    putU64(context, 0, this.#replica);
    putU64(context, 8, this.#incarnation);
    putU64(context, 16, number);
    return context;
  }

  /** The leader has changed: unanswered questions are asked again. */
  askAgain(): void {
    this.#askedAt = -Infinity;
  }

  /** The engine's answer: safe from this index on. One to an earlier life, come late, is none of ours. */
  answer(context: Uint8Array, index: number): void {
    if (getU64(context, 0) !== this.#replica || getU64(context, 8) !== this.#incarnation) return;
    const number = getU64(context, 16);
    for (const one of this.#waiting) {
      if (one.question !== 0 && one.question <= number && one.index === 0) {
        one.index = Math.max(index, 1);
      }
    }
  }

  applied(index: number): void {
    this.#take((one) => one.index !== 0 && one.index <= index, true);
  }

  /** Ends barriers whose deadline is at or before this tick; all for Infinity. */
  expire(tick: number): void {
    this.#take((one) => one.failsAt <= tick, false);
  }

  #take(isDone: (one: Barrier) => boolean, isSafe: boolean): void {
    if (this.#waiting.length === 0) return;
    const done = this.#waiting.filter(isDone);
    if (done.length === 0) return;
    this.#waiting = this.#waiting.filter((one) => !isDone(one));
    for (const { then } of done) then(isSafe);
  }
}
