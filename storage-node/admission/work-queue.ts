// Work that waits for its turn on a pod, in the order of priority, then of when its transaction began. Under overload
// that order lets everything expire: each piece is served when its client has just given up. Then the newest go
// first, by epochs: transactions that began within one epoch keep their order, so that they live or die as a whole
// (CockroachDB's admission control, "epoch-LIFO").

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
  /** A binary heap, the next first. */
  #heap: Entry<W>[] = [];
  #order = 0;
  #lateTicks = 0;
  #overloaded = false;

  constructor(options: Partial<WorkQueueOptions> = {}) {
    this.#options = { ...workQueueDefaults, ...options };
  }

  get length(): number {
    return this.#heap.length;
  }

  get isOverloaded(): boolean {
    return this.#overloaded;
  }

  push(work: W): void {
    const entry = { work, order: this.#order++ };
    this.#heap.push(entry);
    this.#rise(this.#heap.length - 1);
  }

  /** The next whose deadline is not past; `expired` sees those that were passed over. */
  pop(now: number, expired?: (work: W) => void): W | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined) {
        // Drained: whatever comes now is served at once, in any order.
        this.#setOverloaded(false);
        return undefined;
      }
      const last = this.#heap.pop()!;
      if (this.#heap.length > 0) {
        this.#heap[0] = last;
        this.#sink(0);
      }
      if (first.work.deadline > now) return first.work;
      expired?.(first.work);
    }
  }

  /** To be called every few milliseconds: whether who is first in line has waited too long. */
  tick(now: number): void {
    if (this.#overloaded || this.#options.overload === 'fifo') return;
    const head = this.#heap[0];
    const isLate = head !== undefined && now - head.work.arrivedAt > this.#options.waitMs;
    this.#lateTicks = isLate ? this.#lateTicks + 1 : 0;
    if (this.#lateTicks >= this.#options.ticks) this.#setOverloaded(true);
  }

  #setOverloaded(overloaded: boolean): void {
    this.#lateTicks = 0;
    if (overloaded === this.#overloaded) return;
    this.#overloaded = overloaded;
    for (let i = (this.#heap.length >> 1) - 1; i >= 0; i--) this.#sink(i);
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

  #rise(from: number): void {
    const heap = this.#heap;
    const entry = heap[from]!;
    let i = from;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!this.#isBefore(entry, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = entry;
  }

  #sink(from: number): void {
    const heap = this.#heap;
    const entry = heap[from]!;
    let i = from;
    for (;;) {
      let child = i * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && this.#isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!this.#isBefore(heap[child]!, entry)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = entry;
  }
}
