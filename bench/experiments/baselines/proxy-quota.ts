// A proxy's part of a tenant's quota, under control from afar (ABase, section 4.2): alone it may admit up to twice its
// part; when all proxies of the tenant together go beyond the quota they are ordered back to their parts, until the
// sum has been below for a while.

import { TokenBucket } from '../../../request-units/token-bucket.ts';

/** Rate limiter of one tenant in one proxy. */
export class ProxyQuota {
  readonly #bucket: TokenBucket;
  #part: number;
  #boost = 2;
  /** Admitted since it was last asked. */
  #admitted = 0;
  #refused = 0;

  /** `part` is quota / proxies, units a second. */
  constructor(part: number, now: number) {
    this.#part = part;
    this.#bucket = new TokenBucket(part * this.#boost, part * this.#boost, now);
  }

  admit(cost: number, now: number): boolean {
    if (!this.#bucket.take(cost, now)) {
      this.#refused += cost;
      return false;
    }
    this.#admitted += cost;
    return true;
  }

  /** Ordered back to its part, or free to go beyond it again. */
  setRecalled(recalled: boolean, now: number): void {
    this.#boost = recalled ? 1 : 2;
    this.#bucket.reshape(this.#part * this.#boost, this.#part * this.#boost, now);
  }

  setPart(part: number, now: number): void {
    this.#part = part;
    this.#bucket.reshape(part * this.#boost, part * this.#boost, now);
  }

  /** Units admitted and refused since the last report. */
  report(): { admitted: number; refused: number } {
    const report = { admitted: this.#admitted, refused: this.#refused };
    this.#admitted = 0;
    this.#refused = 0;
    return report;
  }
}

/** Decides, for one tenant, whether its proxies are recalled. To be asked each second. */
export class ProxyRecall {
  readonly #quota: number;
  readonly #quietSeconds: number;
  #recalled = false;
  #quiet = 0;

  constructor(quota: number, quietSeconds = 10) {
    this.#quota = quota;
    this.#quietSeconds = quietSeconds;
  }

  /** `total` is the demand on all proxies in the last second. Cache hits do not count. */
  decide(total: number): boolean {
    if (total > this.#quota) {
      this.#recalled = true;
      this.#quiet = 0;
    } else if (this.#recalled && ++this.#quiet >= this.#quietSeconds) this.#recalled = false;
    return this.#recalled;
  }
}
