// What one tenant may do on one gateway (X-Stor, section 5.2). A request is let in while the tenant owes nothing; what
// it cost is taken off once the meter knows it. Beyond its share there are the gateway's burst package and, where
// allocation is stacked, what others leave. What is then still too much waits, in the order it came; only what has
// waited its time is refused.

import type { TenantAccount } from '../../request-units/meter.ts';
import { TokenBucket } from '../../request-units/token-bucket.ts';
import type { AdmissionRules, GatewaySpare } from './gateway-admission.ts';
import { QueryQueue, type WaitingQuery } from './query-queue.ts';

/** Seconds of a share that can be owed. */
const debtSeconds = 10;
/** Share of the newest requests in the mean cost of one. */
const newest = 0.1;
const leastCost = 0.1;

/** A request that waits for units. */
export interface GateWaiter {
  /** Monotonic milliseconds after which it is refused. */
  readonly deadline: number;
  /** Its turn, or its time is up. It is not waiting any more. */
  end(admitted: boolean): void;
}

export interface GateCounters {
  /** Requests let in at once or later. */
  admitted: number;
  /** Of those, requests that waited, and milliseconds of it, also of those refused in the end. */
  waited: number;
  waitedMs: number;
  refused: number;
  /** Units beyond the share: of the burst package, and of what others left. */
  burstRu: number;
  spareRu: number;
  /** Where nothing is enforced: requests that would have waited, and that would have been refused. */
  wouldWait: number;
  wouldRefuse: number;
}

/** What a gateway tells of a tenant once a second. */
export interface GateReport {
  tenant: number;
  /** Units spent since the last report. */
  used: number;
  /** Units that were asked for and not had, about. */
  refused: number;
}

export interface Quota {
  /** Units a second of the whole tenant. */
  perSecond: number;
  /** Units that may be spent at once beyond a second's. */
  burst: number;
}

export class TenantGate {
  readonly tenant: number;
  /** Of the tenant, for answers. */
  name: string;
  readonly counters: GateCounters = {
    admitted: 0,
    waited: 0,
    waitedMs: 0,
    refused: 0,
    burstRu: 0,
    spareRu: 0,
    wouldWait: 0,
    wouldRefuse: 0,
  };
  /** Queries that wait for what was left over, and what was. */
  readonly queries: QueryQueue<WaitingQuery>;
  /** What a request of it costs, about. */
  meanCost = 1;

  readonly #rules: AdmissionRules;
  readonly #spare: GatewaySpare;
  readonly #bucket: TokenBucket;
  readonly #waiters = new Map<GateWaiter, number>();
  #quota: Quota;
  #share: number;
  /** Taken since the meter was last looked at, for requests of which it may know by now. */
  #taken = 0;
  #takenRequests = 0;
  /** Of that, what others left. */
  #borrowed = 0;
  /** Of the account, at that time. */
  #seen: number;
  #account: TenantAccount | undefined;
  /** In the second that runs, and since the last report. */
  #spentInSecond = 0;
  #spent = 0;
  #missed = 0;

  constructor(
    tenant: number,
    name: string,
    quota: Quota,
    rules: AdmissionRules,
    spare: GatewaySpare,
    now: number,
  ) {
    this.tenant = tenant;
    this.name = name;
    this.#quota = quota;
    this.#share = quota.perSecond;
    this.#rules = rules;
    this.#spare = spare;
    this.#bucket = new TokenBucket(quota.perSecond, this.#capacity, now, debtSeconds);
    this.#seen = 0;
    this.queries = new QueryQueue({ length: rules.queryQueueLength, strict: rules.strictQueries });
  }

  get quota(): Quota {
    return this.#quota;
  }

  /** Units a second on this gateway. */
  get share(): number {
    return this.#share;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  get #capacity(): number {
    const { perSecond, burst } = this.#quota;
    return this.#share + (perSecond === 0 ? 0 : (burst * this.#share) / perSecond);
  }

  /** Savings beyond what is then allowed are lost; debts stay. The share changes as the quota does. */
  setQuota(quota: Quota, now: number): void {
    const before = this.#quota.perSecond;
    this.#quota = quota;
    this.setShare(before === 0 ? quota.perSecond : (this.#share * quota.perSecond) / before, now);
  }

  setShare(share: number, now: number): void {
    this.#share = share;
    this.#bucket.reshape(share, this.#capacity, now);
  }

  /** Where what it spends is charged; it counts from now on. */
  follow(account: TenantAccount | undefined): void {
    this.#account = account;
    this.#seen = account?.lru ?? 0;
  }

  // ---- requests

  /** Lets a request in, or not: then it may `wait`, or is `refuse`d. `waitMs` is how long it could wait. */
  admit(now: number, waitMs: number): boolean {
    // Whoever came before goes first.
    if (this.#waiters.size === 0 && this.#take(now)) return true;
    if (!this.#rules.dryRun) return false;
    if (this.#bucket.waitForAny(now) <= waitMs) this.counters.wouldWait++;
    else this.counters.wouldRefuse++;
    this.#bucket.debit(this.meanCost, now);
    this.#note();
    return true;
  }

  #take(now: number): boolean {
    const need = this.meanCost;
    if (!this.#bucket.admit(need, now) && !this.#borrow(need, now)) return false;
    this.#note();
    return true;
  }

  /** Beyond the share. What is borrowed is not taken off it. */
  #borrow(need: number, now: number): boolean {
    const { counters } = this;
    if (this.#spare.burst(this.tenant, this.#share, need, now)) {
      counters.burstRu += need;
      return true;
    }
    if (!this.#spare.borrow(need, now)) return false;
    counters.spareRu += need;
    this.#borrowed += need;
    return true;
  }

  #note(): void {
    this.#taken += this.meanCost;
    this.#takenRequests++;
    this.counters.admitted++;
  }

  /** Waits for its turn. `serve` ends it; `leave` when its client has gone. */
  wait(waiter: GateWaiter, now: number): void {
    this.#waiters.set(waiter, now);
    this.#spare.wake(this);
  }

  leave(waiter: GateWaiter): boolean {
    return this.#waiters.delete(waiter);
  }

  /** A request is refused: milliseconds after which it is worth another try. */
  refuse(now: number): number {
    this.counters.refused++;
    this.#missed += this.meanCost;
    const ms = this.#bucket.waitForAny(now);
    return Math.max(1, Math.ceil(Number.isFinite(ms) ? ms : 1000));
  }

  /** Lets in those whose turn it is, and ends those whose time is up. */
  serve(now: number): void {
    for (const [waiter, since] of this.#waiters) {
      const isLate = waiter.deadline <= now;
      if (!isLate && !this.#take(now)) break;
      this.#waiters.delete(waiter);
      this.counters.waited++;
      this.counters.waitedMs += now - since;
      waiter.end(!isLate);
    }
  }

  /** Ends those whose time is up, wherever they are in line. */
  expire(now: number): void {
    for (const [waiter, since] of this.#waiters) {
      if (waiter.deadline > now) continue;
      this.#waiters.delete(waiter);
      this.counters.waited++;
      this.counters.waitedMs += now - since;
      waiter.end(false);
    }
  }

  /** Ends all of them: nothing is limited any more. */
  release(): void {
    for (const waiter of [...this.#waiters.keys()]) {
      this.#waiters.delete(waiter);
      waiter.end(true);
    }
  }

  /** Milliseconds until it is worth while to `serve` again. */
  nextServe(now: number): number {
    return this.#waiters.size === 0 ? Infinity : this.#bucket.waitForAny(now);
  }

  // ---- costs

  /** The meter has been charged: what was taken by estimate is put right. */
  settle(now: number): void {
    const account = this.#account;
    let actual = this.#taken;
    if (account !== undefined) {
      const { lru } = account;
      actual = lru - this.#seen;
      this.#seen = lru;
    }
    if (actual === 0 && this.#taken === 0) return;
    this.#bucket.debit(actual - this.#taken, now);
    this.#spare.used(Math.max(0, actual - this.#borrowed), now);
    this.#spent += actual;
    this.#spentInSecond += actual;
    if (this.#takenRequests > 0) {
      const mean = actual / this.#takenRequests;
      this.meanCost = Math.max(leastCost, this.meanCost + newest * (mean - this.meanCost));
    }
    this.#taken = 0;
    this.#takenRequests = 0;
    this.#borrowed = 0;
  }

  /** A query was charged so many units, which it has from what was left over: they are not of this second. */
  settleQuery(estimate: number, actual: number, now: number): void {
    this.#seen += this.#account === undefined ? 0 : actual;
    this.queries.units.settle(actual - estimate);
    this.#spare.used(actual, now);
    this.#spent += actual;
  }

  /** A second has passed: what was not spent in it is left for queries. */
  endSecond(now: number): void {
    this.settle(now);
    this.queries.units.endSecond(Math.max(0, this.#share - this.#spentInSecond));
    this.#spentInSecond = 0;
  }

  /** Units that may be spent now; below 0 what is owed. */
  balance(now: number): number {
    return this.#bucket.balance(now);
  }

  report(): GateReport {
    const refused = this.#missed + this.#waiters.size * this.meanCost;
    const report = { tenant: this.tenant, used: this.#spent, refused };
    this.#spent = 0;
    this.#missed = 0;
    return report;
  }
}
