// Work that waits for its turn on a pod, in the order of priority, then of when its transaction began. Under overload
// that order lets everything expire: each piece is served when its client has just given up. Then the newest go
// first, by epochs: transactions that began within one epoch keep their order, so that they live or die as a whole
// (CockroachDB's admission control, "epoch-LIFO").

import { Heap } from '../../request-units/heap.ts';

export interface Work {
  /** Higher goes first, in any mode. */
  readonly priority: number;
  /** When its transaction began, milliseconds. */
  readonly startedAt: number;
  /** When it came here. */
  readonly arrivedAt: number;
  /** It is worth nothing afterwards. */
  readonly deadline: number;
}

export type OverloadOrder = 'fifo' | 'lifo' | 'epoch-lifo';

export interface WorkQueueOptions {
  /** What it turns to under overload. */
  overload: OverloadOrder;
  epochMs: number;
  /** The first in line has waited longer than this, in so many ticks in a row: overload. */
  waitMs: number;
  ticks: number;
}

export const workQueueDefaults: WorkQueueOptions = {
  overload: 'epoch-lifo',
  epochMs: 100,
  waitMs: 100,
  ticks: 3,
};

interface Entry<W> {
  work: W;
  order: number;
}

export class WorkQueue<W extends Work> {
  readonly #options: WorkQueueOptions;
  readonly #waiting = new Heap<Entry<W>>((a, b) => this.#isBefore(a, b));
  #order = 0;
  #lateTicks = 0;
  #overloaded = false;

  constructor(options: Partial<WorkQueueOptions> = {}) {
    this.#options = { ...workQueueDefaults, ...options };
  }

  get length(): number {
    return this.#waiting.size;
  }

  get isOverloaded(): boolean {
    return this.#overloaded;
  }

  push(work: W): void {
    this.#waiting.push({ work, order: this.#order++ });
  }

  /** The next whose deadline is not past; `expired` sees those that were passed over. */
  pop(now: number, expired?: (work: W) => void): W | undefined {
    for (;;) {
      const first = this.#waiting.pop();
      if (first === undefined) {
        // Drained: whatever comes now is served at once, in any order.
        this.#setOverloaded(false);
        return undefined;
      }
      if (first.work.deadline > now) return first.work;
      expired?.(first.work);
    }
  }

  /** To be called every few milliseconds: whether who is first in line has waited too long. */
  tick(now: number): void {
    if (this.#overloaded || this.#options.overload === 'fifo') return;
    const head = this.#waiting.peek();
    const isLate = head !== undefined && now - head.work.arrivedAt > this.#options.waitMs;
    this.#lateTicks = isLate ? this.#lateTicks + 1 : 0;
    if (this.#lateTicks >= this.#options.ticks) this.#setOverloaded(true);
  }

  #setOverloaded(overloaded: boolean): void {
    this.#lateTicks = 0;
    if (overloaded === this.#overloaded) return;
    this.#overloaded = overloaded;
    this.#waiting.reorder();
  }

  #isBefore(a: Entry<W>, b: Entry<W>): boolean {
    if (a.work.priority !== b.work.priority) return a.work.priority > b.work.priority;
    if (this.#overloaded) {
      if (this.#options.overload === 'lifo') {
        if (a.work.startedAt !== b.work.startedAt) return a.work.startedAt > b.work.startedAt;
        return a.order < b.order;
      }
      const { epochMs } = this.#options;
      const [ea, eb] = [
        Math.floor(a.work.startedAt / epochMs),
        Math.floor(b.work.startedAt / epochMs),
      ];
      if (ea !== eb) return ea > eb;
    }
    if (a.work.startedAt !== b.work.startedAt) return a.work.startedAt < b.work.startedAt;
    return a.order < b.order;
  }
}
