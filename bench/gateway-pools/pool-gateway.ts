// A pool scheduler's state of one gateway.

import type { PoolLoan, PoolOrder } from './pool-messages.ts';

export interface PoolGateway {
  readonly name: string;
  readonly session: number;
  /** Parts of quotas that it went by when the session began; of all others, `firstPart`. */
  readonly firstPart: number;
  readonly held: ReadonlyMap<number, number>;
  /** Its newest report: number, and when it came. */
  heard: number;
  heardAt: number;
  /** The last order of this session. */
  ordered: number;
  /** Tenants whose part it is not known to go by yet, with the first order that says it. */
  readonly open: Map<number, number>;
  /** Whether there are changes that no order contains yet. */
  hasNews: boolean;
  /** Units saved up for queries, by tenant, as it told last. */
  readonly balances: Map<number, number>;
  /** Loans for the next order. */
  lend: PoolLoan[];
  receive: PoolLoan[];
}

/** The next order to it. */
export function orderTo(gateway: PoolGateway, partOf: (tenant: number) => number): PoolOrder {
  const { session, heard, open, lend, receive } = gateway;
  gateway.hasNews = false;
  gateway.lend = [];
  gateway.receive = [];
  const tenants = [...open.keys()];
  const parts = tenants.map(partOf);
  return {
    type: 'order',
    session,
    number: ++gateway.ordered,
    heard,
    tenants,
    parts,
    lend,
    receive,
  };
}
