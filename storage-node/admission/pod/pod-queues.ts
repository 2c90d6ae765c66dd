// The read queue and the write queue of a pod that runs out of capacity: once units are spent faster than a threshold,
// new work waits, and is taken on in order as tokens return (X-Stor, section 5.2). For models with queries so large
// that refusing them would mean to refuse them for ever, and where writes go first.
//
// Where writes have priority, a read has its turn after so many writes, or when reads have gone without a turn for a
// while. Writes of tables without priority take turns with reads, or come after them, by the same rule. Within a line
// it is the tenants' turns. Whoever has the turn keeps it until there are tokens for it: what comes after cannot take them away.

import { TokenBucket } from '../../../request-units/token-bucket.ts';
import { SpendRate } from './spend-rate.ts';
import { TenantQueue } from '../tenant-queue.ts';

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
  /** Longest each line may get. */
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
 * The lines before a pod. `write` is of tables whose writes have priority, and goes first; `read` and `equal`, writes
 * of tables without, take turns; `late` is of tables whose writes come after everything else.
 */
export type WorkKind = 'write' | 'read' | 'equal' | 'late';

export const workKinds: readonly WorkKind[] = ['write', 'read', 'equal', 'late'];

/** `run`: its units are taken, it is to begin now. `queued`: `drain` will hand it over. `full`: refused. */
export type Placement = 'run' | 'queued' | 'full';

/** Lines of the same rank take turns; a rank goes before those below. */
interface Rank {
  /** Pieces of work of ranks above since it had a turn, and when that was. */
  passed: number;
  turnAt: number;
}

const rankOf: Readonly<Record<WorkKind, number>> = { write: 0, read: 1, equal: 1, late: 2 };

export class PodQueues<W> {
  readonly #options: PodQueuesOptions;
  readonly #bucket: TokenBucket;
  readonly #weights = new Map<number, number>();
  readonly #lines: Readonly<Record<WorkKind, TenantQueue<W>>>;
  readonly #ranks: readonly [Rank, Rank, Rank] = [newRank(), newRank(), newRank()];
  /** Has had no tokens yet when it was its turn: it keeps it, writes excepted, which will have it soon again. */
  #next: WorkKind | undefined;
  /** Of those that take turns, which had the last one. */
  #readWasLast = true;
  readonly #spend: SpendRate;

  constructor(options: Pick<PodQueuesOptions, 'podRate'> & Partial<PodQueuesOptions>, now: number) {
    this.#options = { ...podQueuesDefaults, ...options };
    const { podRate, podSeconds } = this.#options;
    this.#bucket = new TokenBucket(podRate, podRate * podSeconds, now);
    this.#spend = new SpendRate(this.#options.averageMs, now);
    const line = (): TenantQueue<W> => new TenantQueue((tenant) => this.#weights.get(tenant) ?? 1);
    this.#lines = { write: line(), read: line(), equal: line(), late: line() };
  }

  setRate(podRate: number, now: number): void {
    this.#options.podRate = podRate;
    this.#bucket.reshape(podRate, podRate * this.#options.podSeconds, now);
  }

  /** Tenants weigh as much as others within a line, unless it is said otherwise. */
  setWeight(tenant: number, weight: number): void {
    this.#weights.set(tenant, weight);
  }

  forget(tenant: number): void {
    this.#weights.delete(tenant);
    for (const kind of workKinds) this.#lines[kind].forget(tenant);
  }

  lengthOf(kind: WorkKind): number {
    return this.#lineOf(kind).length;
  }

  /** Of all lines. */
  get length(): number {
    const { write, read, equal, late } = this.#lines;
    return write.length + read.length + equal.length + late.length;
  }

  /** Units a second. */
  spendRate(now: number): number {
    return this.#spend.perSecond(now);
  }

  /** Nobody waits, or would soon: less than such a part of what the pod can do is spent, and most of its tokens are there. */
  isCalm(part: number, now: number): boolean {
    if (this.length > 0 || this.spendRate(now) >= part * this.#options.podRate) return false;
    return this.#bucket.balance(now) >= this.#bucket.capacity / 2;
  }

  /**
   * Work that arrives. It does not pass what already waits of its kind, so that writes run in the order of their
   * arrival, those to one key among them.
   */
  offer(kind: WorkKind, cost: number, work: W, now: number, tenant = 0): Placement {
    if (this.mayBegin(kind, cost, now)) return 'run';
    return this.push(kind, cost, work, now, tenant) ? 'queued' : 'full';
  }

  /** Whether work may begin at once: its units are taken then. */
  mayBegin(kind: WorkKind, cost: number, now: number): boolean {
    const { enabled, theta, podRate } = this.#options;
    if (!enabled) return true;
    if (this.#lineOf(kind).length > 0 || this.spendRate(now) > theta * podRate) return false;
    if (!this.#take(cost, now)) return false;
    if (rankOf[kind] !== 0) this.#hadTurn(kind, now);
    return true;
  }

  /** Into its line; false when that is full. */
  push(kind: WorkKind, cost: number, work: W, now: number, tenant = 0): boolean {
    const line = this.#lineOf(kind);
    if (line.length >= this.#options.length) return false;
    line.push({ work, tenant, cost, arrivedAt: now });
    return true;
  }

  /** Whoever waits for it has gone. Whether it was still in line. */
  leave(kind: WorkKind, work: W, tenant = 0): boolean {
    return this.#lineOf(kind).leave(tenant, work);
  }

  /** Work whose cost is not asked for here, replication say, has cost so much; or what ran cost so much more. */
  spend(cost: number, now: number): void {
    if (!this.#options.enabled) return;
    this.#bucket.debit(cost, now);
    this.#spend.note(cost, now);
  }

  /**
   * To be called every 10 ms: hands over what there are tokens for, in order and while there is room, and what has
   * waited too long. Returns how many pieces were handed to `run`.
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
      const kind = (this.#next = this.#turn(now));
      if (kind === undefined) return count;
      const line = this.#lines[kind];
      const { work, cost } = line.peek()!;
      if (!this.#take(cost, now)) return count;
      line.shift();
      this.#next = undefined;
      this.#hadTurn(kind, now);
      run(work);
    }
  }

  /** Hands over, out of turn, what tenants are guaranteed: the pod's bucket pays for it all the same. */
  drainGuaranteed(
    now: number,
    isGuaranteed: (tenant: number) => boolean,
    run: (work: W) => void,
  ): void {
    for (const kind of workKinds) {
      const line = this.#lines[kind];
      if (line.length === 0) continue;
      for (const tenant of line.tenants()) {
        while (isGuaranteed(tenant)) {
          const item = line.peek(tenant);
          if (item === undefined) break;
          line.shiftOf(tenant);
          this.spend(item.cost, now);
          run(item.work);
        }
      }
    }
  }

  /** Hands over everything. */
  drainAll(run: (work: W) => void): void {
    for (const kind of workKinds) this.#lines[kind].expire(Infinity, run);
  }

  #lineOf(kind: WorkKind): TenantQueue<W> {
    if (kind === 'write' && !this.#options.writesFirst) return this.#lines.equal;
    return this.#lines[kind];
  }

  #expire(now: number, expired: (work: W) => void): void {
    const { writeDeadlineMs, readDeadlineMs } = this.#options;
    for (const kind of workKinds) {
      const line = this.#lines[kind];
      if (line.length === 0) continue;
      line.expire(now - (kind === 'read' ? readDeadlineMs : writeDeadlineMs), expired);
    }
  }

  /** Whose turn it is, of those who wait: a rank that went without for long, or the first of all. */
  #turn(now: number): WorkKind | undefined {
    const { write, late } = this.#lines;
    const next = this.#next;
    if (next !== undefined && next !== 'write' && this.#lines[next].length > 0) return next;
    const second = this.#secondLine();
    if (second !== undefined && this.#isDue(1, second, now)) return second;
    if (late.length > 0 && this.#isDue(2, 'late', now)) return 'late';
    if (write.length > 0) return 'write';
    return second ?? (late.length > 0 ? 'late' : undefined);
  }

  #secondLine(): WorkKind | undefined {
    const { read, equal } = this.#lines;
    if (read.length === 0) return equal.length === 0 ? undefined : 'equal';
    return equal.length > 0 && this.#readWasLast ? 'equal' : 'read';
  }

  #isDue(rank: 1 | 2, kind: WorkKind, now: number): boolean {
    const { writesPerRead, readAfterMs } = this.#options;
    const { passed, turnAt } = this.#ranks[rank];
    if (passed >= writesPerRead) return true;
    // Where many wait, all of them are old: it is one in that time, not all of them.
    return now - Math.max(this.#lines[kind].peek()!.arrivedAt, turnAt) >= readAfterMs;
  }

  #hadTurn(kind: WorkKind, now: number): void {
    const own = rankOf[kind];
    if (own === 1) this.#readWasLast = kind === 'read';
    this.#ranks.forEach((rank, i) => {
      if (i > own) rank.passed++;
      if (i !== own) return;
      rank.passed = 0;
      rank.turnAt = now;
    });
  }

  /** What costs more than the bucket holds takes all of a full one, and leaves a debt. */
  #take(cost: number, now: number): boolean {
    if (this.#bucket.balance(now) < Math.min(cost, this.#bucket.capacity)) return false;
    this.#bucket.debit(cost, now);
    this.#spend.note(cost, now);
    return true;
  }
}

const always = (): boolean => true;

function newRank(): Rank {
  return { passed: 0, turnAt: -Infinity };
}
