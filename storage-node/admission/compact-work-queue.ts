// The order of `WorkQueue`, to the last piece, for queues that get very long: what the order goes by is kept as numbers
// side by side, two children of a heap in one line of the processor's cache, so that a dequeue from a million pieces
// does not look at the pieces.

import { type Work, type WorkQueueOptions, workQueueDefaults } from './work-queue.ts';

/** Numbers an entry: priority, epoch, start and arrival, each so that the lower goes first. */
const width = 4;
const leastCapacity = 16;

export class CompactWorkQueue<W extends Work> {
  readonly #options: WorkQueueOptions;
  #keys = new Float64Array(leastCapacity * width);
  readonly #items: W[] = [];
  #order = 0;
  #lateTicks = 0;
  #overloaded = false;

  constructor(options: Partial<WorkQueueOptions> = {}) {
    this.#options = { ...workQueueDefaults, ...options };
  }

  get length(): number {
    return this.#items.length;
  }

  get isOverloaded(): boolean {
    return this.#overloaded;
  }

  push(work: W): void {
    const at = this.#items.length;
    this.#items.push(work);
    if (this.#items.length * width > this.#keys.length) this.#resize(this.#keys.length * 2);
    this.#rise(at, work, -work.priority, this.#epochOf(work), this.#startOf(work), this.#order++);
  }

  /** The next whose deadline is not past; `expired` sees those that were passed over. */
  pop(now: number, expired?: (work: W) => void): W | undefined {
    for (;;) {
      const first = this.#items[0];
      if (first === undefined) {
        // Drained: whatever comes now is served at once, in any order.
        this.#overloaded = false;
        this.#lateTicks = 0;
        return undefined;
      }
      this.#removeFirst();
      if (first.deadline > now) return first;
      expired?.(first);
    }
  }

  /** To be called every few milliseconds: whether who is first in line has waited too long. */
  tick(now: number): void {
    if (this.#overloaded || this.#options.overload === 'fifo') return;
    const head = this.#items[0];
    const isLate = head !== undefined && now - head.arrivedAt > this.#options.waitMs;
    this.#lateTicks = isLate ? this.#lateTicks + 1 : 0;
    if (this.#lateTicks < this.#options.ticks) return;
    this.#lateTicks = 0;
    this.#overloaded = true;
    this.#reorder();
  }

  #epochOf(work: W): number {
    if (!this.#overloaded) return 0;
    if (this.#options.overload === 'lifo') return -work.startedAt;
    return -Math.floor(work.startedAt / this.#options.epochMs);
  }

  #startOf(work: W): number {
    return this.#overloaded && this.#options.overload === 'lifo' ? 0 : work.startedAt;
  }

  #reorder(): void {
    const keys = this.#keys;
    this.#items.forEach((work, at) => {
      keys[at * width + 1] = this.#epochOf(work);
      keys[at * width + 2] = this.#startOf(work);
    });
    for (let at = (this.#items.length >> 1) - 1; at >= 0; at--) {
      const k = at * width;
      this.#sink(at, this.#items[at]!, keys[k]!, keys[k + 1]!, keys[k + 2]!, keys[k + 3]!);
    }
  }

  #removeFirst(): void {
    const keys = this.#keys;
    const last = this.#items.pop()!;
    const at = this.#items.length;
    if (at > 0) {
      const k = at * width;
      this.#sink(0, last, keys[k]!, keys[k + 1]!, keys[k + 2]!, keys[k + 3]!);
    }
    // What a backlog needed once is given back.
    if (at >= leastCapacity && at * width * 4 < keys.length) this.#resize(keys.length / 2);
  }

  #resize(length: number): void {
    const keys = new Float64Array(length);
    keys.set(this.#keys.subarray(0, Math.min(length, this.#keys.length)));
    this.#keys = keys;
  }

  #rise(from: number, work: W, a: number, b: number, c: number, d: number): void {
    const keys = this.#keys;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(keys, parent * width, a, b, c, d)) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#put(at, work, a, b, c, d);
  }

  #sink(from: number, work: W, a: number, b: number, c: number, d: number): void {
    const keys = this.#keys;
    const count = this.#items.length;
    let at = from;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= count) break;
      let k = child * width;
      const isRight =
        child + 1 < count &&
        !isBefore(keys, k + width, keys[k]!, keys[k + 1]!, keys[k + 2]!, keys[k + 3]!);
      if (isRight) {
        child++;
        k += width;
      }
      if (isBefore(keys, k, a, b, c, d)) break;
      this.#move(child, at);
      at = child;
    }
    this.#put(at, work, a, b, c, d);
  }

  #move(from: number, to: number): void {
    const keys = this.#keys;
    const k = from * width;
    const l = to * width;
    keys[l] = keys[k]!;
    keys[l + 1] = keys[k + 1]!;
    keys[l + 2] = keys[k + 2]!;
    keys[l + 3] = keys[k + 3]!;
    this.#items[to] = this.#items[from]!;
  }

  #put(at: number, work: W, a: number, b: number, c: number, d: number): void {
    const keys = this.#keys;
    const k = at * width;
    keys[k] = a;
    keys[k + 1] = b;
    keys[k + 2] = c;
    keys[k + 3] = d;
    this.#items[at] = work;
  }
}

/** Whether what has these numbers goes before the entry at `k`. */
function isBefore(
  keys: Float64Array,
  k: number,
  a: number,
  b: number,
  c: number,
  d: number,
): boolean {
  if (a !== keys[k]!) return a < keys[k]!;
  if (b !== keys[k + 1]!) return b < keys[k + 1]!;
  if (c !== keys[k + 2]!) return c < keys[k + 2]!;
  return d < keys[k + 3]!;
}
