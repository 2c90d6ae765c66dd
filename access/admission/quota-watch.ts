// How near tenants come to their quotas: what each spent in the last second and in the last minute, and who is to be
// warned of before anything is refused (Amazon, "Fairness in multi-tenant systems").

/** Seconds that are remembered; and of how many the mean must be near the quota: a busy second alone is none. */
const seconds = 60;
const alarmSeconds = 5;
/** Between two warnings of one tenant. */
const quietMs = 60_000;

export interface QuotaWatchOptions {
  /** Of the quota; Infinity for no warnings. */
  alarmAt: number;
}

export interface QuotaAlarm {
  tenant: number;
  /** Units a second, and the mean of what was spent in the last seconds. */
  quota: number;
  used: number;
}

class RecentUse {
  /** Of the second that runs. */
  now = 0;
  warnedAt = -Infinity;
  readonly #ring = new Float64Array(seconds);
  #at = 0;
  #sum = 0;

  /** The second is over. */
  end(): void {
    this.#at = (this.#at + 1) % seconds;
    this.#sum += this.now - this.#ring[this.#at]!;
    this.#ring[this.#at] = this.now;
    this.now = 0;
    // So that roundings do not add up.
    if (this.#at === 0) this.#sum = this.#ring.reduce((sum, units) => sum + units);
  }

  get lastSecond(): number {
    return this.#ring[this.#at]!;
  }

  get lastMinute(): number {
    return this.#sum;
  }

  get isEmpty(): boolean {
    return this.#ring.every((units) => units === 0);
  }

  /** Units a second in the last `count` of them. */
  mean(count: number): number {
    let sum = 0;
    for (let i = 0; i < count; i++) sum += this.#ring[(this.#at + seconds - i) % seconds]!;
    return sum / count;
  }
}

export class QuotaWatch {
  readonly options: QuotaWatchOptions;
  readonly #tenants = new Map<number, RecentUse>();

  constructor(options: QuotaWatchOptions) {
    this.options = options;
  }

  /** It spent so many units. */
  count(tenant: number, units: number): void {
    let use = this.#tenants.get(tenant);
    if (use === undefined) {
      if (units === 0) return;
      this.#tenants.set(tenant, (use = new RecentUse()));
    }
    use.now += units;
  }

  /** Units of the last whole second. */
  lastSecond(tenant: number): number {
    return this.#tenants.get(tenant)?.lastSecond ?? 0;
  }

  /** Units of the last 60 whole seconds. */
  lastMinute(tenant: number): number {
    return this.#tenants.get(tenant)?.lastMinute ?? 0;
  }

  forget(tenant: number): void {
    this.#tenants.delete(tenant);
  }

  /** A second is over. Returns who is near its quota, each at most once a minute. A quota of 0 is none. */
  second(quotaOf: (tenant: number) => number, now: number): QuotaAlarm[] {
    const alarms: QuotaAlarm[] = [];
    for (const [tenant, use] of this.#tenants) {
      use.end();
      const quota = quotaOf(tenant);
      const used = use.mean(alarmSeconds);
      if (quota > 0 && used >= this.options.alarmAt * quota && now - use.warnedAt >= quietMs) {
        use.warnedAt = now;
        alarms.push({ tenant, quota, used });
      }
      // Nothing in a minute: it has been quiet for long enough to be warned of anew.
      if (use.lastSecond === 0 && use.isEmpty) this.#tenants.delete(tenant);
    }
    return alarms;
  }
}
