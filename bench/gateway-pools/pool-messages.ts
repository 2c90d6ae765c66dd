// Messages between the gateways of a pool and the scheduler of their shares. Plain data, for
// threads, processes and networks alike. Messages may be lost, overtake each other or come late;
// duplicates are ignored.
//
// A share is sent as a fraction of the tenant's quota, so that a quota that has changed in one
// place and not yet in the other does no harm: the fractions of all gateways add up to 1. Data of
// many tenants is in columns: index i of each is the same tenant. Messages carry durations but no
// points in time, as clocks of two machines differ.

/** A query that waits first in line. */
interface QueryHead {
  tenant: number;
  /** Estimated request units. */
  cost: number;
  waitedMs: number;
}

/** Each second, from a gateway. */
export interface PoolReport {
  type: 'report';
  /** Unique: a restarted process is another gateway. */
  gateway: string;
  /** A new one begins when the gateway has heard nothing for so long that it may have been given up. */
  session: number;
  /**
   * Scheduler of the session; empty until the gateway has received an order. Another scheduler
   * ignores the session's reports: those sent before its own first order may be late and out of
   * date.
   */
  scheduler: string;
  /** Ascending through all sessions; one that was overtaken says nothing. */
  number: number;
  /** Number of the last order of this session that the gateway goes by; 0 before the first. */
  taken: number;
  /** Fraction used for a tenant without an order. */
  firstPart: number;
  /** All parts that it was told. There until the first order of the session has come. */
  parts?: { tenants: number[]; parts: number[] };
  /** Tenants with changes. All other tenants with a limit spent nothing. */
  tenants: number[];
  /** Units spent and refused since the last report. */
  used: number[];
  refused: number[];
  /** Units saved up for queries. */
  balances: number[];
  heads: QueryHead[];
}

/** At once, from a gateway that goes by an order. */
export interface PoolTaken {
  type: 'taken';
  gateway: string;
  session: number;
  order: number;
  /** Units given of those it was asked to lend. */
  lent: { loan: number; units: number }[];
}

/** Sent by a gateway that stops serving. */
interface PoolGoodbye {
  type: 'goodbye';
  gateway: string;
}

/** Units saved up for a tenant's queries that move from one gateway to another. */
export interface PoolLoan {
  /** Ascending. */
  loan: number;
  tenant: number;
  units: number;
}

/** To a gateway, at least once a second: it is in the pool. */
export interface PoolOrder {
  type: 'order';
  session: number;
  number: number;
  /** Number of the newest report that the scheduler had heard when it sent this. */
  heard: number;
  /** All parts that have changed since the last order that the gateway is known to go by. */
  tenants: number[];
  parts: number[];
  /** Units to give up, as far as available; confirmed in `PoolTaken`. Never sent again. */
  lend: PoolLoan[];
  /** Units received. */
  receive: PoolLoan[];
}

/**
 * To a gateway that the scheduler does not know, or not in this session: the gateway must begin
 * one, and report its fractions.
 */
interface PoolUnknown {
  type: 'unknown';
  session: number;
  /** Unique, also among earlier processes. */
  scheduler: string;
}

export type FromGateway = PoolReport | PoolTaken | PoolGoodbye;
export type ToGateway = PoolOrder | PoolUnknown;

/** Milliseconds of silence after which a gateway is no more of its pool, and its shares go to the others. */
export const poolLeaseMs = 10_000;
