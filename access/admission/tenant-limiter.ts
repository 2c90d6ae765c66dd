// The rate limiter of one tenant on a gateway (X-Stor, section 5.2). A request is admitted while the tenant owes nothing;
// its cost is debited once the meter knows it. Beyond its quota a tenant has the gateway's burst package and, where
// allocation is stacked, unused capacity of others. Requests beyond that wait in their order of arrival; a request is
// refused only after it has waited its time.

import { ChargeClass } from '../../request-units/meter.ts';
import { TokenBucket } from '../../request-units/token-bucket.ts';
import type { QuotaMode } from '../../contracts/table-properties.ts';
import { BucketSeries, type LimiterBucket } from './bucket-series.ts';
import type {
  AdmissionRules,
  LimitedAccount,
  LimiterCounters,
  SharedCapacity,
  LimiterWaiter,
  Hold,
  Quota,
} from './admission-rules.ts';
import { type QueryLimiterHost, QueryLimiter, type LimitedQuery } from './query-limiter.ts';
import { QueryQueue } from './query-queue.ts';
import { RecentUse } from './recent-use.ts';
import { WarmupCredit } from './warmup-credit.ts';

/** Share of the newest requests in the mean cost of one. */
const newest = 0.1;
const leastCost = 0.1;
/**
 * A waiting request that is served has the units of so many milliseconds for what follows it: a pipeline is answered in pieces worth
 * sending, and not command by command.
 */
const sliceMs = 1;
/** Of what it may spend at once: while more is left, requests are not looked at one by one; and so many in a row at most. */
const fastPathShare = 0.5;
const mostPasses = 1024;
/** Longest that those are counted by what they are thought to cost. */
const settleEveryMs = 50;
/** Of the speed at which a burst may be spent, what may be spent at once, in seconds. */
const peakSeconds = 0.1;
/** All that wait have the units of so many milliseconds at once, whatever has come together: then others are served. */
const serveMs = 4;

const never = (): boolean => false;

export class TenantLimiter implements QueryLimiterHost {
  readonly tenant: number;
  /** Of the tenant, for answers. */
  name: string;
  readonly counters: LimiterCounters = {
    admitted: 0,
    waited: 0,
    waitedMs: 0,
    refused: 0,
    burstRu: 0,
    spareRu: 0,
    wouldWait: 0,
    wouldRefuse: 0,
    partitionRefused: 0,
    partitionWouldRefuse: 0,
  };
  /** Accumulated units, and the queries that wait for them. */
  readonly queries = new QueryQueue<LimitedQuery>();
  readonly queryLimiter: QueryLimiter;
  /** Request units spent in the last second and the last minute. */
  readonly use = new RecentUse();
  /** Estimated cost of a request, in request units. */
  meanCost = 1;

  /** Of the gateway; they may change. */
  readonly rules: AdmissionRules;
  readonly #spare: SharedCapacity;
  /** Filled at the tenant's quota. */
  #own: TokenBucket;
  /** Bounds the speed of a burst, where there is such a limit. */
  #peak: TokenBucket | undefined;
  /** Units that can be spent now: of both buckets. */
  #bucket: LimiterBucket;
  readonly #waiters = new Map<LimiterWaiter, number>();
  /** Waiting requests that may borrow: they need not wait for those that may not. */
  readonly #borrowers = new Set<LimiterWaiter>();
  /** Units left in the slice of the waiting request that is served. */
  #slice = 0;
  #quota: Quota;
  /** When the tenant was made, monotonic milliseconds; -Infinity for long ago. */
  readonly #madeAt: number;
  #credit: WarmupCredit | undefined;
  /** Times its quota that it may spend: more than once while it is new. */
  #factor = 1;
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
  /** The account at the last settlement: all units, units of requests, and the number of requests. */
  #seen = 0;
  #seenForRequests = 0;
  #seenRequests = 0;
  #account: LimitedAccount | undefined;
  /** Of the last request that was admitted. */
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
    this.#quota = quota;
    this.rules = rules;
    this.#spare = spare;
    this.#madeAt = madeAt;
    this.#bucket = this.#own = this.#newBucket(now);
    this.queryLimiter = new QueryLimiter(this);
    this.rulesChanged(now);
  }

  #newBucket(now: number): TokenBucket {
    return new TokenBucket(this.#rate, this.#capacity, now, this.rules.debtSeconds);
  }

  /** The quota, the warm-up factor or the rules have changed. */
  #reshape(now: number): void {
    this.#own.reshape(this.#rate, this.#capacity, now);
    const { peak } = this.#quota;
    if (peak === 0) {
      this.#peak = undefined;
      this.#bucket = this.#own;
      return;
    }
    const capacity = peak * peakSeconds;
    if (this.#peak !== undefined) {
      this.#peak.reshape(peak, capacity, now);
      return;
    }
    this.#peak = new TokenBucket(peak, capacity, now, this.rules.debtSeconds);
    this.#bucket = new BucketSeries([this.#own, this.#peak]);
  }

  /** The rules are others. */
  rulesChanged(now: number): void {
    this.#passes = 0;
    const { queryQueueLength, strictQueries, warmupFactor, warmupSeconds } = this.rules;
    this.queries.options.length = queryQueueLength;
    this.queries.options.strict = strictQueries;
    const options = { factor: warmupFactor, seconds: warmupSeconds };
    this.#credit = new WarmupCredit(this.#madeAt, options);
    this.#warmUp(now);
    this.#reshape(now);
  }

  /** What it has as a new tenant begins, or ends. */
  #warmUp(now: number): void {
    if (this.#credit === undefined) return;
    const factor = this.#credit.factor(now);
    if (factor === 1) this.#credit = undefined;
    if (factor === this.#factor) return;
    this.#factor = factor;
    this.#reshape(now);
  }

  /** Units beyond its quota that it can still spend as a new tenant. */
  warmupLeft(now: number): number {
    return this.#credit?.left(this.#quota.perSecond, now) ?? 0;
  }

  /** Begins anew: what was spent while nothing was enforced is not held against the tenant. */
  restart(now: number): void {
    this.#passes = 0;
    this.#own = this.#newBucket(now);
    this.#peak = undefined;
    this.#reshape(now);
    this.queries.units.forgive();
  }

  get quota(): Quota {
    return this.#quota;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** Units a second that it may spend now. */
  get #rate(): number {
    return this.#quota.perSecond * this.#factor;
  }

  get #capacity(): number {
    return this.#rate + this.#quota.burst;
  }

  /** Savings beyond what is then allowed are lost; debts stay. */
  setQuota(quota: Quota, now: number): void {
    this.#quota = quota;
    this.#passes = 0;
    this.#reshape(now);
    this.collect(now);
    this.queries.units.trim(quota.perSecond);
  }

  /** Where what it spends is charged; it counts from now on. */
  follow(account: LimitedAccount | undefined): void {
    this.#account = account;
    this.#seen = account?.lru ?? 0;
    const mean = this.meanCost;
    this.#observe();
    this.meanCost = mean;
  }

  // ---- requests

  /**
   * Whether there is so much that the next requests need not be looked at one by one: who then asks for `pass` instead
   * of `admit` has them charged when it likes, as long as that is within milliseconds.
   */
  get hasFastPath(): boolean {
    return this.#passes > 0;
  }

  /** It was ample, and it is time to look again: all that has been let in is to be charged before `settle`. */
  get isDue(): boolean {
    return this.#passes === 0 && this.#wasOnFastPath;
  }

  /** Lets a request in while `hasFastPath`, or while what was paid for in a slice lasts. */
  pass(): boolean {
    if (this.#passes > 0) this.#passes--;
    else if (this.#prepaid > 0) this.#prepaid--;
    else return false;
    this.counters.admitted++;
    return true;
  }

  /**
   * As `pass`, when all that were granted are used up: there are more while there is plenty even without what those
   * before have cost, as far as is known. To charge all clients of a tenant takes longer than a thousand such looks.
   */
  passAgain(now: number): boolean {
    if (!this.#wasOnFastPath || now - this.#settledAt >= settleEveryMs) return false;
    this.#grant(now);
    return this.pass();
  }

  /** As `pass`, for those who are charged one by one as they end: what they cost is taken off now and then. */
  passCharged(now: number): boolean {
    if (now - this.#settledAt >= settleEveryMs) this.settle(now);
    return this.pass();
  }

  /** Lets a request in, or not: then it may `wait`, or is `refuse`d. `waitMs` is how long it could wait. */
  admit(now: number, waitMs: number, mode: QuotaMode = 'server'): boolean {
    // Whoever came before goes first.
    const isFirst = this.#waiters.size === 0 || this.#slice > 0;
    if ((isFirst || this.#borrowers.size === 0) && this.#take(now, mode, isFirst)) return true;
    if (!this.rules.dryRun) return false;
    const isFree = this.#bucket.waitForAny(now) > waitMs;
    if (isFree) this.counters.wouldRefuse++;
    else {
      this.counters.wouldWait++;
      this.#bucket.debit(this.meanCost, now);
    }
    this.#note(0, isFree);
    return true;
  }

  /** Of the quota only if it `isFirst`. */
  #take(now: number, mode: QuotaMode, isFirst: boolean): boolean {
    this.#takeBack(now);
    const need = this.meanCost;
    const before = this.#borrowed;
    const isOwn = isFirst && (this.#bucket.admit(need, now) || this.#burst(need, now));
    if (!isOwn && !this.#borrow(need, now, mode)) return false;
    this.#note(this.#borrowed - before, false);
    this.#slice -= need;
    if (this.#slice >= need) this.#prepay(now);
    return true;
  }

  /** Debits the cost of the rest of the slice at once: requests are then not looked at one by one. */
  #prepay(now: number): void {
    if (this.rules.dryRun || this.rules.delaysErrors) return;
    const units = Math.min(this.#slice, this.#bucket.balance(now));
    if (units < this.meanCost) return;
    this.#prepaidEach = this.meanCost;
    this.#prepaid = Math.floor(units / this.meanCost);
    this.#takePrepaid(1, now);
  }

  /** What was prepaid and has not been used. */
  #takeBack(now: number): void {
    if (this.#prepaid === 0) return;
    this.#takePrepaid(-1, now);
    this.#prepaid = 0;
  }

  #takePrepaid(sign: 1 | -1, now: number): void {
    const units = sign * this.#prepaid * this.#prepaidEach;
    this.#bucket.debit(units, now);
    this.#taken += units;
    this.#slice -= units;
  }

  #burst(need: number, now: number): boolean {
    if (!this.#spare.burst(this.tenant, this.#quota.perSecond, need, now)) return false;
    this.counters.burstRu += need;
    return true;
  }

  /** What is borrowed is not taken off the quota. */
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
   * For a request that was let in just now and will be charged only when others have been: what was taken for it is
   * kept apart, until `settleHeld`.
   */
  hold(): Hold {
    const hold = { ...this.#last };
    this.#taken -= hold.units;
    this.#borrowed -= hold.borrowed;
    return hold;
  }

  /** It has just been charged, or will not be. */
  settleHeld({ units, borrowed, isFree }: Hold, now: number): void {
    this.#taken += isFree && this.#account !== undefined ? this.#account.lru - this.#seen : units;
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

  /** Who may use what others leave may have changed, also among those that wait. */
  quotaModesChanged(): void {
    this.#borrowers.clear();
    for (const waiter of this.#waiters.keys()) {
      if (this.#lentTo(waiter) > 0) this.#borrowers.add(waiter);
    }
  }

  /** A request is refused: milliseconds after which it is worth another try. */
  refuse(now: number): number {
    this.counters.refused++;
    // Those that wait come first.
    const line = (1000 * this.#waiters.size * this.meanCost) / this.#rate;
    const ms = this.#bucket.waitForAny(now) + line;
    return Math.max(1, Math.ceil(Number.isFinite(ms) ? ms : 1000));
  }

  /**
   * Admits waiting requests that have units, and ends those whose time is up. One that waits again is not served before
   * the next call. Stops, and returns true, when the tenant's time slice of the thread `isOver`.
   */
  serve(now: number, isOver: () => boolean = never): boolean {
    const lent = this.#borrowers.size > 0 ? this.#spare.lends('stacked') : 0;
    let units = ((this.#rate + lent) * serveMs) / 1000;
    let left = this.#waiters.size;
    let isFirst = true;
    let isCut = false;
    for (const [waiter, since] of this.#waiters) {
      if (left-- === 0) break;
      const isLate = waiter.deadline <= now;
      const isBorrower = this.#borrowers.has(waiter);
      const slice = ((this.#rate + (isBorrower ? lent : 0)) * sliceMs) / 1000;
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

  /** Ends those whose time is up, wherever they are in line; true as from `serve`. */
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

  /** Ends all of them: nothing is limited any more. */
  release(now: number): void {
    // Nothing is taken for those.
    Object.assign(this.#last, { units: 0, borrowed: 0, isFree: false });
    for (const waiter of [...this.#waiters.keys()]) {
      this.leave(waiter);
      waiter.end(true);
    }
    this.queryLimiter.release(now);
  }

  /** Milliseconds until it is worth while to `serve` again. */
  nextServe(now: number): number {
    if (this.#waiters.size === 0) return Infinity;
    const ms = this.#bucket.waitForAny(now);
    return this.#borrowers.size === 0 ? ms : Math.min(ms, serveMs);
  }

  // ---- costs

  /** The meter has been charged: what was taken by estimate is put right. */
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

  /** Where what they cost is not taken off, or is not known, each request counts. */
  #countPasses(now: number): number {
    const { dryRun, delaysErrors } = this.rules;
    const isKnown = !dryRun && !delaysErrors && this.#account !== undefined;
    if (!isKnown || this.#waiters.size > 0) return 0;
    const granted = this.#granted * this.meanCost;
    const spare = this.#bucket.beyond(fastPathShare, now) - granted;
    return spare <= 0 ? 0 : Math.min(mostPasses, Math.floor(spare / this.meanCost));
  }

  #settle(now: number): void {
    const account = this.#account;
    let actual = this.#taken;
    if (account !== undefined) {
      const { lru } = account;
      actual = lru - this.#seen;
      this.#seen = lru;
    }
    if (actual === 0 && this.#taken === 0) return;
    this.#bucket.debit(actual - this.#taken, now);
    this.#observe();
    this.#spare.used(Math.max(0, actual - this.#borrowed), now);
    this.#spent += actual;
    this.#taken = 0;
    this.#borrowed = 0;
  }

  /** Learns what a request costs from those charged since the last time. What nobody asked for is no request. */
  #observe(): void {
    const account = this.#account;
    if (account === undefined) return;
    const requests = account.requests - account.requestsOf(ChargeClass.background);
    const lru = this.#seen - account.lruOf(ChargeClass.background);
    const more = requests - this.#seenRequests;
    if (more > 0) {
      const mean = (lru - this.#seenForRequests) / more;
      this.meanCost = Math.max(leastCost, this.meanCost + newest * (mean - this.meanCost));
    }
    this.#seenRequests = requests;
    this.#seenForRequests = lru;
  }

  /** A query was charged so many units, which it has from what was left over: they are not of this second. */
  settleQuery(estimate: number, actual: number, now: number): void {
    if (this.#account !== undefined) {
      this.#seen += actual;
      this.#seenForRequests += actual;
      this.#seenRequests++;
    }
    this.queries.units.settle(actual - estimate);
    this.#spare.used(actual, now);
    this.#spent += actual;
  }

  /** A second has passed: what nobody wanted of it is left for queries. */
  endSecond(now: number): void {
    this.settle(now);
    this.#warmUp(now);
    this.queries.units.endSecond(this.#own.takeSpilled(now));
    this.queryLimiter.serve(now);
    this.use.end(this.#spent);
    this.#spent = 0;
  }

  // ---- for its line

  /** Of the second that runs. */
  collect(now: number): void {
    this.queries.units.receive(this.#own.takeSpilled(now));
  }

  wakeQueries(): void {
    this.#spare.wakeQueries(this);
  }

  // ---- what it comes to

  /** Units that may be spent now; below 0 what is owed. */
  balance(now: number): number {
    return this.#bucket.balance(now);
  }
}
