// The requests that took longest to answer, the last so many of each tenant. Secrets are not in their texts.

import type { Exchange } from './exchange.ts';

export interface SlowRequest {
  /** Ascending over all tenants. */
  id: number;
  /** When it ended, Unix milliseconds. */
  at: number;
  spentMs: number;
  tenant: number;
  user: string;
  address: string;
  /** Of a query its text; else what was asked of which database. */
  text: string;
  /** What it cost. */
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
  /** The oldest first. */
  #entries: SlowRequest[] = [];
  readonly #counts = new Map<number, number>();
  #nextId = 1;

  constructor(thresholdMs: number, clock: { now(): number }) {
    this.thresholdMs = thresholdMs;
    this.#clock = clock;
  }

  /** The exchange is over; one of nobody is not kept. */
  settle(exchange: Exchange, ru: number): void {
    const spentMs = performance.now() - exchange.startedAt;
    const { caller } = exchange;
    if (spentMs < this.thresholdMs || caller === undefined) return;
    const tenant = caller.space.number;
    this.#makeRoom(tenant);
    this.#count(tenant, 1);
    this.#entries.push({
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
    const found: SlowRequest[] = [];
    for (let i = this.#entries.length - 1; i >= 0 && found.length < limit; i--) {
      const entry = this.#entries[i]!;
      if (tenant === undefined || entry.tenant === tenant) found.push(entry);
    }
    return found;
  }

  forget(tenant: number): void {
    this.#entries = this.#entries.filter((entry) => entry.tenant !== tenant);
    this.#counts.delete(tenant);
  }

  /** A tenant pushes out its own oldest ones before anybody else's. */
  #makeRoom(tenant: number): void {
    let at = -1;
    if ((this.#counts.get(tenant) ?? 0) >= keptOfTenant) {
      at = this.#entries.findIndex((entry) => entry.tenant === tenant);
    } else if (this.#entries.length >= kept) at = 0;
    if (at < 0) return;
    const [gone] = this.#entries.splice(at, 1);
    this.#count(gone!.tenant, -1);
  }

  #count(tenant: number, change: number): void {
    const count = (this.#counts.get(tenant) ?? 0) + change;
    if (count === 0) this.#counts.delete(tenant);
    else this.#counts.set(tenant, count);
  }
}

function shortened(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text;
}
