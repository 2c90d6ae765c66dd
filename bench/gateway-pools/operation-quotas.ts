// Separate quotas for operations that are far more expensive than others, beside the tenant's quota
// of units (Amazon, "Fairness in multi-tenant systems"). A reply is cut into pages, and a large
// page counts as several requests: the cost of a request is known only when it is done, so the rest
// is debited then, and a tenant in debt waits.

import { TokenBucket } from '../../request-units/token-bucket.ts';

const operationClasses = ['scan', 'query', 'admin'] as const;
type OperationClass = (typeof operationClasses)[number];

interface OperationQuotasOptions {
  /** Requests a second of each class; one that is not named has no quota. */
  perSecond: Partial<Record<OperationClass, number>>;
  /** Requests that may be saved up, in seconds of the quota; one at the least. */
  burstSeconds: number;
  /** Bytes of a reply that count as one request. */
  replyUnitBytes: number;
}

const operationQuotasDefaults: OperationQuotasOptions = {
  perSecond: {},
  burstSeconds: 1,
  replyUnitBytes: 1024,
};

export class OperationQuotas {
  readonly #replyUnitBytes: number;
  readonly #scan: TokenBucket | undefined;
  readonly #query: TokenBucket | undefined;
  readonly #admin: TokenBucket | undefined;

  constructor(options: Partial<OperationQuotasOptions>, now: number) {
    const { perSecond, burstSeconds, replyUnitBytes } = { ...operationQuotasDefaults, ...options };
    this.#replyUnitBytes = replyUnitBytes;
    const bucketFor = (rate: number | undefined): TokenBucket | undefined =>
      rate === undefined ? undefined : new TokenBucket(rate, Math.max(1, rate * burstSeconds), now);
    this.#scan = bucketFor(perSecond.scan);
    this.#query = bucketFor(perSecond.query);
    this.#admin = bucketFor(perSecond.admin);
  }

  /** Lets a request in as if it were the cheapest one. */
  admit(kind: OperationClass, now: number): boolean {
    return this.#bucketOf(kind)?.take(1, now) ?? true;
  }

  /** Its reply, or a page of it, has so many bytes. Returns as how many requests it counts, the admitted one included. */
  settle(kind: OperationClass, replyBytes: number, now: number): number {
    const requests = this.requestsOf(replyBytes);
    if (requests > 1) this.#bucketOf(kind)?.debit(requests - 1, now);
    return requests;
  }

  /** At least one; parts of one count as such, so that many small pages cost as much as few large ones. */
  requestsOf(replyBytes: number): number {
    return Math.max(1, replyBytes / this.#replyUnitBytes);
  }

  /** Milliseconds until the next request of the class is let in, if no other is. */
  wait(kind: OperationClass, now: number): number {
    return this.#bucketOf(kind)?.wait(1, now) ?? 0;
  }

  #bucketOf(kind: OperationClass): TokenBucket | undefined {
    switch (kind) {
      case 'scan':
        return this.#scan;
      case 'query':
        return this.#query;
      case 'admin':
        return this.#admin;
    }
  }
}
