// The read queue and the write queues of a pod that runs out of capacity: once units are spent faster than a threshold, new
// work is queued, and admitted in order as tokens are refilled (X-Stor, section 5.2). For models with queries so large that
// refusing them would mean to refuse them for ever, and where writes go first.
//
// Where writes have priority, a read is served after so many writes, or when no read was for a while. Writes of tables
// without priority alternate with reads, or come after them, by the same rule. Within a queue tenants are served fairly.
// Work that is next stays next until there are tokens for it.

import { TokenBucket } from '../../../request-units/token-bucket.ts';
import { SpendRate } from './spend-rate.ts';
import { TenantQueue } from '../tenant-queue.ts';

export interface PodQueuesOptions {
  /** Otherwise all work runs at once. */
  enabled: boolean;
  /** Units a second that the pod can do, and the seconds of it that its bucket holds. */
  podRate: number;
  podSeconds: number;
  /** Share of the pod's rate beyond which new work is queued. */
  theta: number;
  /** Time constant of the spending average, ms. */
  averageMs: number;
  /** Writes go first; otherwise the two queues alternate. */
  writesFirst: boolean;
  /** A read is served after so many writes, or so many milliseconds after the last one. */
  writesPerRead: number;
  readAfterMs: number;
  /** Longest wait of a write and of a read, ms. */
  writeDeadlineMs: number;
  readDeadlineMs: number;
  /** Longest of each queue. */
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

/**
 * The queues of a pod. `write`: writes of tables with priority, first; `read` and `equal`, writes of tables without,
 * alternate; `late`: writes of tables that come after everything else.
 */
export type WorkKind = 'write' | 'read' | 'equal' | 'late';

export const workKinds: readonly WorkKind[] = ['write', 'read', 'equal', 'late'];

/** `run`: its units are debited, it is to begin now. `queued`: `drain` will hand it over. `full`: refused. */
type Placement = 'run' | 'queued' | 'full';

/** Queues of the same rank alternate. A higher rank is served before lower ranks. */
interface Rank {
  /** Work of ranks above that was served since this one was, and when that was. */
  passed: number;
  servedAt: number;
}

const rankOf: Readonly<Record<WorkKind, number>> = { write: 0, read: 1, equal: 1, late: 2 };

export class PodQueues<W> {
  readonly #options: PodQueuesOptions;
  readonly #bucket: TokenBucket;
  readonly #weights = new Map<number, number>();
  readonly #queues: Readonly<Record<WorkKind, TenantQueue<W>>>;
  readonly #ranks: readonly [Rank, Rank, Rank] = [newRank(), newRank(), newRank()];
  /** Is next, but there were no tokens for it yet: it stays next, unless it is a write, which soon is again. */
  #next: WorkKind | undefined;
  /** Whether the read queue was served last; the two alternate. */
  #readWasLast = true;
  readonly #spend: SpendRate;

  constructor(options: Pick<PodQueuesOptions, 'podRate'> & Partial<PodQueuesOptions>, now: number) {
    this.#options = { ...podQueuesDefaults, ...options };
    const { podRate, podSeconds } = this.#options;
    this.#bucket = new TokenBucket(podRate, podRate * podSeconds, now);
    this.#spend = new SpendRate(this.#options.averageMs, now);
    const queue = (): TenantQueue<W> => new TenantQueue((tenant) => this.#weights.get(tenant) ?? 1);
    this.#queues = { write: queue(), read: queue(), equal: queue(), late: queue() };
  }

  setRate(podRate: number, now: number): void {
    this.#options.podRate = podRate;
    this.#bucket.reshape(podRate, podRate * this.#options.podSeconds, now);
  }

  /** Within each queue; 1 unless set. */
  setWeight(tenant: number, weight: number): void {
    this.#weights.set(tenant, weight);
  }

  forget(tenant: number): void {
    this.#weights.delete(tenant);
    for (const kind of workKinds) this.#queues[kind].forget(tenant);
  }

  lengthOf(kind: WorkKind): number {
    return this.#queueOf(kind).length;
  }

  /** Total length of all queues. */
  get length(): number {
    const { write, read, equal, late } = this.#queues;
    return write.length + read.length + equal.length + late.length;
  }

  /** Units a second. */
  spendRate(now: number): number {
    return this.#spend.perSecond(now);
  }

  /**
   * Whether the queue is empty and far from filling: less than `part` of the capacity is spent, and at least half of
   * the tokens remain.
   */
  isUncongested(part: number, now: number): boolean {
    if (this.length > 0 || this.spendRate(now) >= part * this.#options.podRate) return false;
    return this.#bucket.balance(now) >= this.#bucket.capacity / 2;
  }

  /**
   * Offers new work. It never overtakes queued work of its kind, so writes run in order of arrival, including writes
   * to one key.
   */
  offer(kind: WorkKind, cost: number, work: W, now: number, tenant = 0): Placement {
    if (this.mayBegin(kind, cost, now)) return 'run';
    return this.push(kind, cost, work, now, tenant) ? 'queued' : 'full';
  }

  /** Whether work may begin at once: its units are taken then. */
  mayBegin(kind: WorkKind, cost: number, now: number): boolean {
    const { enabled, theta, podRate } = this.#options;
    if (!enabled) return true;
    if (this.#queueOf(kind).length > 0 || this.spendRate(now) > theta * podRate) return false;
    if (!this.#take(cost, now)) return false;
    if (rankOf[kind] !== 0) this.#served(kind, now);
    return true;
  }

  /** Into its queue; false when that is full. */
  push(kind: WorkKind, cost: number, work: W, now: number, tenant = 0): boolean {
    const queue = this.#queueOf(kind);
    if (queue.length >= this.#options.length) return false;
    queue.push({ work, tenant, cost, arrivedAt: now });
    return true;
  }

  /** Its client has gone. Whether it was still queued. */
  leave(kind: WorkKind, work: W, tenant = 0): boolean {
    return this.#queueOf(kind).leave(tenant, work);
  }

  /**
   * Debits the cost of unqueued work, for example replication, or the excess of a finished piece
   * over its estimate.
   */
  spend(cost: number, now: number): void {
    if (!this.#options.enabled) return;
    this.#bucket.debit(cost, now);
    this.#spend.note(cost, now);
  }

  /**
   * Called every 10 ms: passes on the work for which there are tokens, in order and while there is
   * room, and work that has waited too long. Returns the number of pieces passed to `run`.
   */
  drain(
    now: number,
    run: (work: W) => void,
    expired: (work: W) => void,
    hasRoom: () => boolean = always,
  ): number {
    this.#expire(now, expired);
    for (let count = 0; ; count++) {
      if (!hasRoom()) return count;
      const kind = (this.#next = this.#nextQueue(now));
      if (kind === undefined) return count;
      const queue = this.#queues[kind];
      const { work, cost } = queue.peek()!;
      if (!this.#take(cost, now)) return count;
      queue.shift();
      this.#next = undefined;
      this.#served(kind, now);
      run(work);
    }
  }

  /**
   * Passes on guaranteed work of tenants before its place in the queue: it is debited from the
   * pod's bucket all the same.
   */
  drainGuaranteed(
    now: number,
    isGuaranteed: (tenant: number) => boolean,
    run: (work: W) => void,
  ): void {
    for (const kind of workKinds) {
      const queue = this.#queues[kind];
      if (queue.length === 0) continue;
      for (const tenant of queue.tenants()) {
        while (isGuaranteed(tenant)) {
          const item = queue.peek(tenant);
          if (item === undefined) break;
          queue.shiftOf(tenant);
          this.spend(item.cost, now);
          run(item.work);
        }
      }
    }
  }

  /** Hands over everything. */
  drainAll(run: (work: W) => void): void {
    for (const kind of workKinds) this.#queues[kind].expire(Infinity, run);
  }

  #queueOf(kind: WorkKind): TenantQueue<W> {
    if (kind === 'write' && !this.#options.writesFirst) return this.#queues.equal;
    return this.#queues[kind];
  }

  #expire(now: number, expired: (work: W) => void): void {
    const { writeDeadlineMs, readDeadlineMs } = this.#options;
    for (const kind of workKinds) {
      const queue = this.#queues[kind];
      if (queue.length === 0) continue;
      queue.expire(now - (kind === 'read' ? readDeadlineMs : writeDeadlineMs), expired);
    }
  }

  /** The queue to serve next: of a rank that was not served for long, or the first rank. */
  #nextQueue(now: number): WorkKind | undefined {
    const { write, late } = this.#queues;
    const next = this.#next;
    if (next !== undefined && next !== 'write' && this.#queues[next].length > 0) return next;
    const second = this.#secondRank();
    if (second !== undefined && this.#isDue(1, second, now)) return second;
    if (late.length > 0 && this.#isDue(2, 'late', now)) return 'late';
    if (write.length > 0) return 'write';
    return second ?? (late.length > 0 ? 'late' : undefined);
  }

  #secondRank(): WorkKind | undefined {
    const { read, equal } = this.#queues;
    if (read.length === 0) return equal.length === 0 ? undefined : 'equal';
    return equal.length > 0 && this.#readWasLast ? 'equal' : 'read';
  }

  #isDue(rank: 1 | 2, kind: WorkKind, now: number): boolean {
    const { writesPerRead, readAfterMs } = this.#options;
    const { passed, servedAt } = this.#ranks[rank];
    if (passed >= writesPerRead) return true;
    // Where many wait, all of them are old: it is one in that time, not all of them.
    return now - Math.max(this.#queues[kind].peek()!.arrivedAt, servedAt) >= readAfterMs;
  }

  #served(kind: WorkKind, now: number): void {
    const own = rankOf[kind];
    if (own === 1) this.#readWasLast = kind === 'read';
    this.#ranks.forEach((rank, i) => {
      if (i > own) rank.passed++;
      if (i !== own) return;
      rank.passed = 0;
      rank.servedAt = now;
    });
  }

  /** Work that costs more than the bucket holds needs a full one, and leaves it in debt. */
  #take(cost: number, now: number): boolean {
    if (this.#bucket.balance(now) < Math.min(cost, this.#bucket.capacity)) return false;
    this.#bucket.debit(cost, now);
    this.#spend.note(cost, now);
    return true;
  }
}

const always = (): boolean => true;

function newRank(): Rank {
  return { passed: 0, servedAt: -Infinity };
}
