// The rules of a gateway's admission stage, and the interfaces between its parts.

import type { ChargeClass } from '../../request-units/meter.ts';
import type { QuotaMode } from '../../contracts/table-properties.ts';

/** May change while the gateway runs. */
export interface AdmissionRules {
  /** Without, no tenant has a limiter. */
  enabled: boolean;
  /** Whether limits are only counted: no request waits or is refused, and counters show the requests that would have been. */
  dryRun: boolean;
  /** Milliseconds that a Redis command, and a write over HTTP, may wait; Infinity where nothing is refused. */
  commandWaitMs: number;
  writeWaitMs: number;
  /** First word (error code) of a refusal over RESP. */
  refusalCode: string;
  /**
   * Whether a tenant beyond its quota may use unused units of `gatewayRu`; a table may override
   * this.
   */
  allocation: 'hard' | 'stacked';
  /** Capacity of the gateway in request units a second; 0 if unknown. */
  gatewayRu: number;
  /** Size of the burst package in request units a second; 0 disables the package. */
  burstRu: number;
  /** Queries of a tenant that may be queued. */
  queryQueueLength: number;
  /** Seconds of a tenant's quota that it can owe. */
  debtSeconds: number;
  /** Seconds after its creation for which a new tenant may spend a multiple of its quota, and that multiple. */
  warmupSeconds: number;
  warmupFactor: number;
  /** Refusals take as long as successes do. */
  delaysErrors: boolean;
}

export const admissionDefaults: AdmissionRules = {
  enabled: true,
  dryRun: false,
  commandWaitMs: 1500,
  writeWaitMs: 4000,
  refusalCode: 'TRYAGAIN',
  allocation: 'hard',
  gatewayRu: 0,
  burstRu: 0,
  queryQueueLength: 1000,
  debtSeconds: 10,
  warmupSeconds: 0,
  warmupFactor: 3,
  delaysErrors: false,
};

/** The gateway's capacity that limiters share. */
export interface SharedCapacity {
  /** Takes the cost from the burst package. False if the package has too few units. */
  burst(tenant: number, share: number, cost: number, now: number): boolean;
  /**
   * Units a second that unused capacity could lend to tables of this mode; 0 if the mode excludes
   * them.
   */
  lends(mode: QuotaMode): number;
  /** Takes the cost from capacity that other tenants leave unused. False if there is too little. */
  borrow(mode: QuotaMode, cost: number, now: number): boolean;
  /** Units were spent. */
  used(units: number, now: number): void;
  /** A request waits at the limiter, or a query in its queue. */
  wake(limiter: { readonly tenant: number }): void;
  wakeQueries(limiter: { readonly tenant: number }): void;
}

/** A request that waits for units. */
export interface LimiterWaiter {
  /** Time in monotonic milliseconds after which the request is refused. */
  readonly deadline: number;
  /** Current quota mode of the table; `server` if absent. */
  readonly quotaMode?: QuotaMode;
  /** Called when the request leaves the queue. `admitted` is false if its deadline has passed. */
  end(admitted: boolean): void;
}

interface LimiterCounters {
  /** Requests admitted, at once or later. */
  admitted: number;
  /**
   * Requests that waited, and their total waiting time in milliseconds. Requests that were refused after waiting are
   * included.
   */
  waited: number;
  waitedMs: number;
  refused: number;
  /** Units beyond the quota: from the burst package, and from unused capacity. */
  burstRu: number;
  spareRu: number;
  /** In a dry run: requests that would have waited, and requests that would have been refused. */
  wouldWait: number;
  wouldRefuse: number;
  /** Requests refused because a partition that they touch is at its ceiling. In a dry run, the second counter counts them. */
  partitionRefused: number;
  partitionWouldRefuse: number;
}

export function noCounts(): LimiterCounters {
  return {
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
}

/** Units debited for a request that is charged later: see `TenantLimiter.hold`. */
export interface Hold {
  /** Units debited, and the part of them that was borrowed from other tenants. */
  units: number;
  borrowed: number;
  /** Whether nothing was debited, because the request would have been refused outside of a dry run. */
  isFree: boolean;
}

/** The account that a limiter's requests are charged to: a tenant's whole account, or a part of it such as scans. */
export interface LimitedAccount {
  readonly lru: number;
  readonly requests: number;
  lruOf(kind: ChargeClass): number;
  requestsOf(kind: ChargeClass): number;
}

export interface Quota {
  /** Units a second of the whole tenant. */
  perSecond: number;
  /** Units that may be spent at once beyond a second's. */
  burst: number;
  /** Maximum rate at which the burst is spent, in units a second; 0 for no maximum. */
  peak: number;
}
