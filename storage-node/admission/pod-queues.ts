// The read queue and the write queue of a pod that runs out of capacity: once units are spent faster than a threshold,
// new work waits, and is taken on in order as tokens return (X-Stor, section 5.2). For models with queries so large
// that refusing them would mean to refuse them for ever, and where writes go first.
//
// Where writes have priority, a read has its turn after so many writes, or when reads have gone without a turn for a
// while. Whoever has the turn keeps it until there are tokens for it: what comes after cannot take them away.

import { TokenBucket } from '../../request-units/token-bucket.ts';

export interface PodQueuesOptions {
  /** Without it all work runs at once. */
  enabled: boolean;
  /** Units a second that the pod can do, and the seconds of it that its bucket holds. */
  podRate: number;
  podSeconds: number;
  /** Of the pod's rate; while more than that is spent, new work waits. */
  theta: number;
  /** Time constant of the average of what is spent, ms. */
  averageMs: number;
  /** Writes go first; without it the two queues take turns. */
  writesFirst: boolean;
  /** A read has its turn after so many writes, or so many milliseconds after the last one had it. */
  writesPerRead: number;
  readAfterMs: number;
  /** Longest wait of a write and of a read, ms. */
  writeDeadlineMs: number;
  readDeadlineMs: number;
  /** Longest either queue may get. */
  length: number;
}

export const podQueuesDefaults: Omit<PodQueuesOptions, 'podRate'> = {
  enabled: true,
  podSeconds: 0.2,
  theta: 0.9,
  averageMs: 1000,
  writesFirst: true,
  writesPerRead: 32,
  readAfterMs: 500,
  writeDeadlineMs: 4000,
  readDeadlineMs: 30_000,
  length: 10_000,
};

export type WorkKind = 'read' | 'write';

/** `run`: its units are taken, it is to begin now. `queued`: `drain` will hand it over. `full`: refused. */
export type Placement = 'run' | 'queued' | 'full';

interface Waiting<W> {
  work: W;
  cost: number;
  arrivedAt: number;
}

/** First in, first out. */
class Line<W> {
  #items: (Waiting<W> | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: Waiting<W>): void {
    this.#items.push(item);
  }

  peek(): Waiting<W> | undefined {
    return this.#items[this.#head];
  }

  shift(): void {
    this.#items[this.#head++] = undefined;
    if (this.#head < 64 || this.#head * 2 < this.#items.length) return;
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}

export class PodQueues<W> {
  readonly #options: PodQueuesOptions;
  readonly #bucket: TokenBucket;
  readonly #reads = new Line<W>();
  readonly #writes = new Line<W>();
  /** Average of units spent a second, as of a time. */
  #spendRate = 0;
  #spendAt: number;
  #writesSinceRead = 0;
  #readTurnAt = -Infinity;

  constructor(options: Pick<PodQueuesOptions, 'podRate'> & Partial<PodQueuesOptions>, now: number) {
    this.#options = { ...podQueuesDefaults, ...options };
    const { podRate, podSeconds } = this.#options;
    this.#bucket = new TokenBucket(podRate, podRate * podSeconds, now);
    this.#spendAt = now;
  }

  lengthOf(kind: WorkKind): number {
    return this.#lineOf(kind).length;
  }

  /** Units a second. */
  spendRate(now: number): number {
    this.#fade(now);
    return this.#spendRate;
  }

  /**
   * Work that arrives. It does not pass what already waits of its kind, so that writes run in the order of their
   * arrival, those to one key among them.
   */
  offer(kind: WorkKind, cost: number, work: W, now: number): Placement {
    const { enabled, theta, podRate, length } = this.#options;
    if (!enabled) return 'run';
    const line = this.#lineOf(kind);
    if (line.length === 0 && this.spendRate(now) <= theta * podRate && this.#take(cost, now)) {
      if (kind === 'read') this.#readHadTurn(now);
      return 'run';
    }
    if (line.length >= length) return 'full';
    line.push({ work, cost, arrivedAt: now });
    return 'queued';
  }

  /** Work whose cost is not asked for here, replication say, has cost so much; or what ran cost so much more. */
  spend(cost: number, now: number): void {
    if (!this.#options.enabled) return;
    this.#bucket.debit(cost, now);
    this.#noteSpent(cost, now);
  }

  /**
   * To be called every 10 ms: hands over what there are tokens for, in order, and what has waited too long.
   * Returns how many pieces were handed to `run`.
   */
  drain(now: number, run: (work: W) => void, expired: (work: W) => void): number {
    const { writeDeadlineMs, readDeadlineMs } = this.#options;
    this.#expire(this.#writes, now - writeDeadlineMs, expired);
    this.#expire(this.#reads, now - readDeadlineMs, expired);
    for (let count = 0; ; count++) {
      const kind = this.#turn(now);
      if (kind === undefined) return count;
      const line = this.#lineOf(kind);
      const { work, cost } = line.peek()!;
      if (!this.#take(cost, now)) return count;
      line.shift();
      if (kind === 'read') this.#readHadTurn(now);
      else this.#writesSinceRead++;
      run(work);
    }
  }

  #lineOf(kind: WorkKind): Line<W> {
    return kind === 'read' ? this.#reads : this.#writes;
  }

  #expire(line: Line<W>, arrivedBefore: number, expired: (work: W) => void): void {
    for (let first = line.peek(); first !== undefined; first = line.peek()) {
      if (first.arrivedAt >= arrivedBefore) return;
      line.shift();
      expired(first.work);
    }
  }

  /** Whose turn it is, of those who wait. */
  #turn(now: number): WorkKind | undefined {
    const read = this.#reads.peek();
    if (this.#writes.length === 0) return read === undefined ? undefined : 'read';
    if (read === undefined) return 'write';
    const { writesFirst, writesPerRead, readAfterMs } = this.#options;
    if (!writesFirst) return this.#writesSinceRead > 0 ? 'read' : 'write';
    if (this.#writesSinceRead >= writesPerRead) return 'read';
    // Where many reads wait, all of them are old: it is one read in that time, not all of them.
    return now - Math.max(read.arrivedAt, this.#readTurnAt) >= readAfterMs ? 'read' : 'write';
  }

  #readHadTurn(now: number): void {
    this.#writesSinceRead = 0;
    this.#readTurnAt = now;
  }

  /** What costs more than the bucket holds takes all of a full one, and leaves a debt. */
  #take(cost: number, now: number): boolean {
    if (this.#bucket.balance(now) < Math.min(cost, this.#bucket.capacity)) return false;
    this.#bucket.debit(cost, now);
    this.#noteSpent(cost, now);
    return true;
  }

  #noteSpent(cost: number, now: number): void {
    this.#fade(now);
    this.#spendRate += (cost * 1000) / this.#options.averageMs;
  }

  #fade(now: number): void {
    const passed = now - this.#spendAt;
    if (passed <= 0) return;
    this.#spendRate *= Math.exp(-passed / this.#options.averageMs);
    this.#spendAt = now;
  }
}
