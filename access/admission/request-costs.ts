// Cost of the requests that a limiter admits: the units charged to the account since the last reading, and the mean cost of
// one request. The mean is debited until the actual cost of a request is known.

import { ChargeClass } from '../../request-units/meter.ts';
import type { LimitedAccount } from './admission-rules.ts';

/** Weight of the newest requests in the mean cost of a request. */
const newest = 0.1;
const leastCost = 0.1;

export class RequestCosts {
  /** Estimated cost of a request, in request units. */
  mean = 1;
  #account: LimitedAccount | undefined;
  /** The account when it was looked at last: all units, units of requests, and the number of requests. */
  #seen = 0;
  #seenForRequests = 0;
  #seenRequests = 0;

  /** Whether costs are known. */
  get isKnown(): boolean {
    return this.#account !== undefined;
  }

  /** Costs count from now on. */
  follow(account: LimitedAccount | undefined): void {
    this.#account = account;
    this.#seen = account?.lru ?? 0;
    const { mean } = this;
    this.learn();
    this.mean = mean;
  }

  /** Units charged since the last `take`; undefined where they are not known. */
  get charged(): number | undefined {
    return this.#account && this.#account.lru - this.#seen;
  }

  /** As `charged`, and counts from now on. */
  take(): number | undefined {
    const units = this.charged;
    if (units !== undefined) this.#seen += units;
    return units;
  }

  /** Counts a request that was charged `units` and whose cost is settled elsewhere. */
  skip(units: number): void {
    if (this.#account === undefined) return;
    this.#seen += units;
    this.#seenForRequests += units;
    this.#seenRequests++;
  }

  /** Updates the mean from the requests charged since the last time. Background work is no request. */
  learn(): void {
    const account = this.#account;
    if (account === undefined) return;
    const requests = account.requests - account.requestsOf(ChargeClass.background);
    const lru = this.#seen - account.lruOf(ChargeClass.background);
    const more = requests - this.#seenRequests;
    if (more > 0) {
      const mean = (lru - this.#seenForRequests) / more;
      this.mean = Math.max(leastCost, this.mean + newest * (mean - this.mean));
    }
    this.#seenRequests = requests;
    this.#seenForRequests = lru;
  }
}
