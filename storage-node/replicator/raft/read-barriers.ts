// Reads that wait until this replica has applied all that was committed when they came.

import { getU64, putU64 } from '../wal/format.ts';

interface Barrier {
  number: number;
  then: (isSafe: boolean) => void;
  /** Where the state must be; 0 until the engine has said so. */
  index: number;
  failsAt: number;
}

const contextBytes = 24;

export class ReadBarriers {
  readonly #replica: number;
  readonly #incarnation: number;
  #waiting: Barrier[] = [];
  #next = 1;

  constructor(replica: number, incarnation: number) {
    this.#replica = replica;
    this.#incarnation = incarnation;
  }

  /** The context to ask the engine with. Never the same twice, not even in another life of the replica. */
  add(failsAt: number, then: (isSafe: boolean) => void): Uint8Array {
    const number = this.#next++;
    this.#waiting.push({ number, then, index: 0, failsAt });
    const context = new Uint8Array(contextBytes);
    putU64(context, 0, this.#replica);
    putU64(context, 8, this.#incarnation);
    putU64(context, 16, number);
    return context;
  }

  /** The engine's answer: safe from this index on. */
  answer(context: Uint8Array, index: number): void {
    const number = getU64(context, 16);
    const barrier = this.#waiting.find((one) => one.number === number);
    if (barrier) barrier.index = Math.max(index, 1);
  }

  applied(index: number): void {
    this.#take((one) => one.index !== 0 && one.index <= index, true);
  }

  /** Ends those whose time is up by this tick; all for Infinity. */
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
