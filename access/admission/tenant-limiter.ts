// The rate limiter of one tenant on a gateway (X-Stor, section 5.2). A request is admitted while the tenant has no debt;
// its cost is debited once the meter knows the cost. Beyond its quota a tenant can spend the gateway's burst package and,
// with stacked allocation, unused capacity of other tenants. Further requests are queued in their order of arrival. A
// request is refused only after its maximum waiting time.

import type { QuotaMode } from '../../contracts/table-properties.ts';
import {
  type AdmissionRules,
  type LimitedAccount,
  noCounts,
  type SharedCapacity,
  type LimiterWaiter,
  type Hold,
  type Quota,
} from './admission-rules.ts';
import { type QueryLimiterHost, QueryLimiter, type LimitedQuery } from './query-limiter.ts';
import { QueryQueue } from './query-queue.ts';
import { QuotaBuckets } from './quota-buckets.ts';
import { RecentUse } from './recent-use.ts';
import { RequestCosts } from './request-costs.ts';

/**
 * Milliseconds of the quota granted to a waiting request and its successors when it is served: a
 * pipeline is answered in pieces worth sending, and not command by command.
 */
const sliceMs = 1;
/** While more than this share of the bucket is left, requests pass unchecked, up to this many in a row. */
const fastPathShare = 0.5;
const mostPasses = 1024;
/** Longest time for which such requests are counted by their estimated cost. */
const settleEveryMs = 50;
/** Milliseconds of the quota that one `serve` may spend, then other tenants are served. */
const serveMs = 4;

const never = (): boolean => false;

export class TenantLimiter implements QueryLimiterHost {
  readonly tenant: number;
  /** Name of the tenant, for answers. */
  name: string;
  readonly counters = noCounts();
  /** Accumulated units, and the queries that wait for them. */
  readonly queries = new QueryQueue<LimitedQuery>();
  readonly queryLimiter: QueryLimiter;
  /** Costs charged to the requests. */
  readonly costs = new RequestCosts();
  /** Request units spent in the last second and the last minute. */
  readonly use = new RecentUse();

  /** Rules of the gateway; they may change. */
  readonly rules: AdmissionRules;
  readonly #spare: SharedCapacity;
  readonly #buckets: QuotaBuckets;
  readonly #waiters = new Map<LimiterWaiter, number>();
  /** Waiting requests that may borrow. They may overtake requests that may not borrow. */
  readonly #borrowers = new Set<LimiterWaiter>();
  /** Unused units of the slice granted to the waiting request that is being served. */
  #slice = 0;
  /** Requests that may pass before the balance is checked again. */
  #passes = 0;
  #wasOnFastPath = false;
  /** Passes granted since the last settlement, and its time. */
  #granted = 0;
  #settledAt = -Infinity;
  /** Requests paid for in this slice, and units taken for each. */
  #prepaid = 0;
  #prepaidEach = 0;
  /** Units debited by estimate since the last settlement. */
  #taken = 0;
  /** Units of these that were borrowed. */
  #borrowed = 0;
  /** Debit of the last admitted request. */
  #last: Hold = { units: 0, borrowed: 0, isFree: false };
  /** Units spent in the current second. */
  #spent = 0;

  constructor(
    tenant: number,
    name: string,
    quota: Quota,
    rules: AdmissionRules,
    spare: SharedCapacity,
    now: number,
    madeAt = -Infinity,
  ) {
    this.tenant = tenant;
    this.name = name;
    this.rules = rules;
    this.#spare = spare;
    this.#buckets = new QuotaBuckets(quota, rules, now, madeAt);
    this.queryLimiter = new QueryLimiter(this);
    this.rulesChanged(now);
  }

  /** Called when the rules have changed. */
  rulesChanged(now: number): void {
    this.#passes = 0;
    this.queries.options.length = this.rules.queryQueueLength;
    this.#buckets.rulesChanged(now);
  }

  /** Units beyond its quota that it can still spend as a new tenant. */
  warmupLeft(now: number): number {
    return this.#buckets.warmupLeft(now);
  }

  /** Discards savings and debts: units spent while nothing was enforced are forgiven. */
  restart(now: number): void {
    this.#passes = 0;
    this.#buckets.restart(now);
    this.queries.units.forgive();
  }

  get quota(): Quota {
    return this.#buckets.quota;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** Units beyond the new limits are dropped; debts stay. */
  setQuota(quota: Quota, now: number): void {
    this.#passes = 0;
    this.#buckets.setQuota(quota, now);
    this.collect(now);
    this.queries.units.trim(quota.perSecond);
  }

  /** Where the tenant's requests are charged; costs count from now on. */
  follow(account: LimitedAccount | undefined): void {
    this.costs.follow(account);
  }

  /** Estimated cost of a request, in request units. */
  get meanCost(): number {
    return this.costs.mean;
  }

  // ---- requests

  /**
   * Whether enough units are left to admit the next requests without a check. Requests admitted by `pass` are charged
   * together, within milliseconds.
   */
  get hasFastPath(): boolean {
    return this.#passes > 0;
  }

  /** The passes are used up: all requests that were admitted are to be charged before `settle`. */
  get isDue(): boolean {
    return this.#passes === 0 && this.#wasOnFastPath;
  }

  /** Admits a request while `hasFastPath`, or while units prepaid in a slice are left. */
  pass(): boolean {
    if (this.#passes > 0) this.#passes--;
    else if (this.#prepaid > 0) this.#prepaid--;
    else return false;
    this.counters.admitted++;
    return true;
  }

  /**
   * As `pass`, when the passes are used up. Grants more passes while the balance covers the estimated cost of the
   * earlier ones: this is far cheaper than charging all clients of a tenant.
   */
  passAgain(now: number): boolean {
    if (!this.#wasOnFastPath || now - this.#settledAt >= settleEveryMs) return false;
    this.#grant(now);
    return this.pass();
  }

  /** As `pass`, for requests that are charged one by one as they end: their cost is debited now and then. */
  passCharged(now: number): boolean {
    if (now - this.#settledAt >= settleEveryMs) this.settle(now);
    return this.pass();
  }

  /** Whether a request is admitted. If not, it may `wait` or is `refuse`d. `waitMs` is how long it could wait. */
  admit(now: number, waitMs: number, mode: QuotaMode = 'server'): boolean {
    // Requests that wait go first.
    const isFirst = this.#waiters.size === 0 || this.#slice > 0;
    if ((isFirst || this.#borrowers.size === 0) && this.#take(now, mode, isFirst)) return true;
    if (!this.rules.dryRun) return false;
    const isFree = this.#buckets.spendable.waitForAny(now) > waitMs;
    if (isFree) this.counters.wouldRefuse++;
    else {
      this.counters.wouldWait++;
      this.#buckets.spendable.debit(this.meanCost, now);
    }
    this.#note(0, isFree);
    return true;
  }

  /** Takes units of the quota only if the request `isFirst`. */
  #take(now: number, mode: QuotaMode, isFirst: boolean): boolean {
    this.#takeBack(now);
    const need = this.meanCost;
    const before = this.#borrowed;
    const isOwn = isFirst && (this.#buckets.spendable.admit(need, now) || this.#burst(need, now));
    if (!isOwn && !this.#borrow(need, now, mode)) return false;
    this.#note(this.#borrowed - before, false);
    this.#slice -= need;
    if (this.#slice >= need) this.#prepay(now);
    return true;
  }

  /**
   * Debits the mean cost of all requests that the rest of the slice pays for, so that these requests pass without a
   * check.
   */
  #prepay(now: number): void {
    if (this.rules.dryRun || this.rules.delaysErrors) return;
    const units = Math.min(this.#slice, this.#buckets.spendable.balance(now));
    if (units < this.meanCost) return;
    this.#prepaidEach = this.meanCost;
    this.#prepaid = Math.floor(units / this.meanCost);
    this.#takePrepaid(1, now);
  }

  /** Refunds prepaid units that were not used. */
  #takeBack(now: number): void {
    if (this.#prepaid === 0) return;
    this.#takePrepaid(-1, now);
    this.#prepaid = 0;
  }

  #takePrepaid(sign: 1 | -1, now: number): void {
    const units = sign * this.#prepaid * this.#prepaidEach;
    this.#buckets.spendable.debit(units, now);
    this.#taken += units;
    this.#slice -= units;
  }

  #burst(need: number, now: number): boolean {
    if (!this.#spare.burst(this.tenant, this.#buckets.quota.perSecond, need, now)) return false;
    this.counters.burstRu += need;
    return true;
  }

  /** Borrowed units are not debited from the quota. */
  #borrow(need: number, now: number, mode: QuotaMode): boolean {
    if (!this.#spare.borrow(mode, need, now)) return false;
    this.counters.spareRu += need;
    this.#borrowed += need;
    return true;
  }

  #note(borrowed: number, isFree: boolean): void {
    const last = this.#last;
    last.units = this.meanCost;
    last.borrowed = borrowed;
    last.isFree = isFree;
    this.#taken += this.meanCost;
    this.counters.admitted++;
  }

  /**
   * For a request that was admitted just now and will be charged after later ones: keeps its debit apart until
   * `settleHeld`.
   */
  hold(): Hold {
    const hold = { ...this.#last };
    this.#taken -= hold.units;
    this.#borrowed -= hold.borrowed;
    return hold;
  }

  /** The request has just been charged, or will not be. */
  settleHeld({ units, borrowed, isFree }: Hold, now: number): void {
    this.#taken += isFree ? (this.costs.charged ?? units) : units;
    this.#borrowed += borrowed;
    this.settle(now);
  }

  /** Queues a request. `serve` ends it; `leave` when its client has gone. */
  wait(waiter: LimiterWaiter, now: number): void {
    this.#waiters.set(waiter, now);
    this.#passes = 0;
    if (this.#lentTo(waiter) > 0) this.#borrowers.add(waiter);
    this.#spare.wake(this);
  }

  leave(waiter: LimiterWaiter): boolean {
    this.#borrowers.delete(waiter);
    return this.#waiters.delete(waiter);
  }

  /** Units a second. */
  #lentTo({ quotaMode = 'server' }: LimiterWaiter): number {
    return this.#spare.lends(quotaMode);
  }

  /** Called when the quota modes of tables have changed: other waiting requests may borrow now. */
  quotaModesChanged(): void {
    this.#borrowers.clear();
    for (const waiter of this.#waiters.keys()) {
      if (this.#lentTo(waiter) > 0) this.#borrowers.add(waiter);
    }
  }

  /** Counts a refusal. Returns the milliseconds after which a retry is worthwhile. */
  refuse(now: number): number {
    this.counters.refused++;
    // Requests that already wait are served first.
    const queueMs = (1000 * this.#waiters.size * this.meanCost) / this.#buckets.rate;
    const ms = this.#buckets.spendable.waitForAny(now) + queueMs;
    return Math.max(1, Math.ceil(Number.isFinite(ms) ? ms : 1000));
  }

  /**
   * Admits waiting requests that have units, and ends those whose time is up. One that waits again is not served before
   * the next call. Stops, and returns true, when the tenant's time slice of the thread `isOver`.
   */
  serve(now: number, isOver: () => boolean = never): boolean {
    const lent = this.#borrowers.size > 0 ? this.#spare.lends('stacked') : 0;
    let units = ((this.#buckets.rate + lent) * serveMs) / 1000;
    let left = this.#waiters.size;
    let isFirst = true;
    let isCut = false;
    for (const [waiter, since] of this.#waiters) {
      if (left-- === 0) break;
      const isLate = waiter.deadline <= now;
      const isBorrower = this.#borrowers.has(waiter);
      const slice = ((this.#buckets.rate + (isBorrower ? lent : 0)) * sliceMs) / 1000;
      this.#slice = isLate ? 0 : slice;
      if (!isLate && (units <= 0 || !this.#take(now, waiter.quotaMode ?? 'server', isFirst))) {
        if (units <= 0 || isBorrower || this.#borrowers.size === 0) break;
        isFirst = false;
        continue;
      }
      this.#endWait(waiter, now - since, !isLate);
      this.#takeBack(now);
      if (!isLate) units -= slice - this.#slice;
      if ((isCut = left > 0 && isOver())) break;
    }
    this.#slice = 0;
    return isCut;
  }

  /** Refuses all waiting requests whose deadline has passed. Returns true as `serve` does. */
  expire(now: number, isOver: () => boolean = never): boolean {
    let left = this.#waiters.size;
    for (const [waiter, since] of this.#waiters) {
      if (left-- === 0) break;
      if (waiter.deadline > now) continue;
      this.#endWait(waiter, now - since, false);
      if (left > 0 && isOver()) return true;
    }
    return false;
  }

  #endWait(waiter: LimiterWaiter, ms: number, admitted: boolean): void {
    this.leave(waiter);
    this.counters.waited++;
    this.counters.waitedMs += ms;
    waiter.end(admitted);
  }

  /** Admits all waiting requests, because the limit was removed. */
  release(now: number): void {
    // Nothing is debited for them.
    Object.assign(this.#last, { units: 0, borrowed: 0, isFree: false });
    for (const waiter of [...this.#waiters.keys()]) {
      this.leave(waiter);
      waiter.end(true);
    }
    this.queryLimiter.release(now);
  }

  /** Milliseconds until another call of `serve` can admit a request; Infinity if no request waits. */
  nextServe(now: number): number {
    if (this.#waiters.size === 0) return Infinity;
    const ms = this.#buckets.spendable.waitForAny(now);
    return this.#borrowers.size === 0 ? ms : Math.min(ms, serveMs);
  }

  // ---- costs

  /** The meter has been charged: corrects the debits by estimate. */
  settle(now: number): void {
    this.#takeBack(now);
    this.#settle(now);
    this.#granted = 0;
    this.#settledAt = now;
    this.#grant(now);
    this.#wasOnFastPath = this.#passes > 0;
  }

  #grant(now: number): void {
    this.#passes = this.#countPasses(now);
    this.#granted += this.#passes;
  }

  /** Number of passes to grant. 0 where costs are not debited or not known: each request is then checked. */
  #countPasses(now: number): number {
    const { dryRun, delaysErrors } = this.rules;
    const isKnown = !dryRun && !delaysErrors && this.costs.isKnown;
    if (!isKnown || this.#waiters.size > 0) return 0;
    const granted = this.#granted * this.meanCost;
    const spare = this.#buckets.spendable.beyond(fastPathShare, now) - granted;
    return spare <= 0 ? 0 : Math.min(mostPasses, Math.floor(spare / this.meanCost));
  }

  #settle(now: number): void {
    const actual = this.costs.take() ?? this.#taken;
    if (actual === 0 && this.#taken === 0) return;
    this.#buckets.spendable.debit(actual - this.#taken, now);
    this.costs.learn();
    this.#spare.used(Math.max(0, actual - this.#borrowed), now);
    this.#spent += actual;
    this.#taken = 0;
    this.#borrowed = 0;
  }

  /** Settles the cost of a query. The query was paid from accumulated units, not from those of the current second. */
  settleQuery(estimate: number, actual: number, now: number): void {
    this.costs.skip(actual);
    this.queries.units.settle(actual - estimate);
    this.#spare.used(actual, now);
    this.#spent += actual;
  }

  /** Called after each second. Its unspent units become available to queries. */
  endSecond(now: number): void {
    this.settle(now);
    this.#buckets.warmUp(now);
    this.queries.units.endSecond(this.#buckets.takeSpilled(now));
    this.queryLimiter.serve(now);
    this.use.end(this.#spent);
    this.#spent = 0;
  }

  // ---- for its queue of queries

  /** Accumulates the unspent units of the second that runs. */
  collect(now: number): void {
    this.queries.units.receive(this.#buckets.takeSpilled(now));
  }

  wakeQueries(): void {
    this.#spare.wakeQueries(this);
  }

  /** Units that may be spent now; negative for debt. */
  balance(now: number): number {
    return this.#buckets.spendable.balance(now);
  }
}
