// What the gateways of a pool and the scheduler of their shares say to each other. Plain data, for threads, processes
// and networks alike. Messages may be lost, overtake each other or come late; none is believed twice.
//
// A share is told as a part of the tenant's quota, so that a quota that has changed in one place and not yet in the
// other does no harm: the parts of all gateways come to 1. What is about many tenants is in columns: place i of each
// is about the same one. No time is told but how long something has taken: clocks of two machines differ.

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
  /** Unlike any other's: a process that is started again is another gateway. */
  gateway: string;
  /** A new one begins when the gateway has heard nothing for so long that it may have been given up. */
  session: number;
  /**
   * Whose orders the session is about; empty until the gateway has heard of one. Another scheduler believes nothing of
   * it: what was told before the first order of this one may come late, and say what is long not so.
   */
  scheduler: string;
  /** Ascending through all sessions; one that was overtaken says nothing. */
  number: number;
  /** Number of the last order of this session that the gateway goes by; 0 before the first. */
  taken: number;
  /** What it goes by for a tenant that it was told nothing of. */
  firstPart: number;
  /** All parts that it was told. There until the first order of the session has come. */
  parts?: { tenants: number[]; parts: number[] };
  /** Tenants of which there is something new. Of those with a limit, the others spent nothing. */
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
  /** What it gave of what it was to lend. */
  lent: { loan: number; units: number }[];
}

/** From a gateway that serves nobody any more. */
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
  /** It gives up so much, or what there is; it is told in `PoolTaken`. Never sent again. */
  lend: PoolLoan[];
  /** It gets so much. */
  receive: PoolLoan[];
}

/** To a gateway that the scheduler does not know, or not in this session: it is to begin one, and tell what it goes by. */
interface PoolUnknown {
  type: 'unknown';
  session: number;
  /** Unlike any other's, also of an earlier process. */
  scheduler: string;
}

export type FromGateway = PoolReport | PoolTaken | PoolGoodbye;
export type ToGateway = PoolOrder | PoolUnknown;

/** Milliseconds of silence after which a gateway is no more of its pool, and its shares go to the others. */
export const poolLeaseMs = 10_000;
