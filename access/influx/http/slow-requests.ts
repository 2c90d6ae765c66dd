// The requests that took longest to answer, the last so many of each tenant. Secrets are not in their texts.

import { NewestByTenant } from '../../admission/newest-by-tenant.ts';
import type { Exchange } from './exchange.ts';

interface SlowRequest {
  /** Ascending over all tenants. */
  id: number;
  /** When it ended, Unix milliseconds. */
  at: number;
  spentMs: number;
  tenant: number;
  user: string;
  address: string;
  /** Text of a query; else the kind of request and its database. */
  text: string;
  /** Cost of the request. */
  ru: number;
}

const keptOfTenant = 128;
/** However many tenants there are. */
const kept = 4096;
const longestText = 512;

export class SlowRequests {
  /** From here on a request is slow, in milliseconds; Infinity for none. */
  thresholdMs: number;
  readonly #clock: { now(): number };
  readonly #requests = new NewestByTenant<SlowRequest>({ ofTenant: keptOfTenant, total: kept });
  #nextId = 1;

  constructor(thresholdMs: number, clock: { now(): number }) {
    this.thresholdMs = thresholdMs;
    this.#clock = clock;
  }

  /** The exchange is over; one without a tenant is not kept. */
  settle(exchange: Exchange, ru: number): void {
    const spentMs = performance.now() - exchange.startedAt;
    const { caller } = exchange;
    if (spentMs < this.thresholdMs || caller === undefined) return;
    const tenant = caller.space.number;
    this.#requests.add({
      id: this.#nextId++,
      at: this.#clock.now(),
      spentMs,
      tenant,
      user: caller.principal?.name ?? '',
      address: exchange.clientAddress,
      text: shortened(exchange.shownText),
      ru,
    });
  }

  /** The newest first; of one tenant, if its number is given. */
  newest(limit: number, tenant?: number): SlowRequest[] {
    return this.#requests.newest(limit, tenant);
  }

  forget(tenant: number): void {
    this.#requests.forget(tenant);
  }
}

function shortened(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text;
}
