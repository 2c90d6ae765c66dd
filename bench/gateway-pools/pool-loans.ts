// Transfers of accumulated query units from one gateway of a pool to another: the giver debits them
// first, and only debited units reach the other. Units of a lost message are lost, and none exist
// twice.

import { AccumulatedUnits } from '../../access/admission/accumulated-units.ts';
import type { PoolGateway } from './pool-gateway.ts';
import type { PoolTenant } from './pool-tenant.ts';
import { QueryQueue, type WaitingQuery } from '../../access/admission/query-queue.ts';
import { lendUnits } from './lend-units.ts';

interface OpenLoan {
  to: string;
  tenant: number;
  madeAt: number;
}

/** Seconds of a quota that can be saved up in all. */
const savedSeconds = 60;

export class PoolLoans {
  readonly #leaseMs: number;
  readonly #open = new Map<number, OpenLoan>();
  #last = 0;

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /** Orders loans for the gateways that have waited longest, according to their last reports. */
  lend(tenant: PoolTenant, gateways: readonly PoolGateway[], now: number): void {
    const most = savedSeconds * tenant.quota;
    const queues = gateways.map((gateway) =>
      queueLike(tenant.heads.get(gateway.name), gateway.balances.get(tenant.number) ?? 0, most),
    );
    const before = queues.map(({ units }) => units.balance);
    lendUnits(queues, most);
    const changes = queues.map(({ units }, i) => units.balance - before[i]!);
    // Each report leads to at most one loan.
    tenant.heads.clear();
    for (const [i, giver] of gateways.entries()) {
      for (const [j, taker] of gateways.entries()) {
        const units = Math.min(-changes[i]!, changes[j]!);
        if (units <= 0) continue;
        changes[i] = changes[i]! + units;
        changes[j] = changes[j]! - units;
        this.#order(giver, taker.name, tenant.number, units, now);
      }
    }
  }

  #order(giver: PoolGateway, to: string, tenant: number, units: number, madeAt: number): void {
    const loan = ++this.#last;
    this.#open.set(loan, { to, tenant, madeAt });
    giver.lend.push({ loan, tenant, units });
    giver.balances.set(tenant, (giver.balances.get(tenant) ?? 0) - units);
  }

  /** Units given up, for their receivers. */
  lent(
    given: readonly { loan: number; units: number }[],
    gateways: ReadonlyMap<string, PoolGateway>,
  ): void {
    for (const { loan, units } of given) {
      const open = this.#open.get(loan);
      this.#open.delete(loan);
      const taker = open && gateways.get(open.to);
      if (open === undefined || taker === undefined || units <= 0) continue;
      taker.receive.push({ loan, tenant: open.tenant, units });
      taker.hasNews = true;
    }
  }

  /** Loans without an answer are lost. */
  expire(now: number): void {
    for (const [loan, { madeAt }] of this.#open) {
      if (now - madeAt <= this.#leaseMs) break;
      this.#open.delete(loan);
    }
  }
}

/** With this head and balance. */
function queueLike(
  head: WaitingQuery | undefined,
  balance: number,
  most: number,
): QueryQueue<WaitingQuery> {
  const queue = new QueryQueue<WaitingQuery>({}, new AccumulatedUnits(1));
  // While there is nothing it waits for sure.
  if (head !== undefined && head.cost > 0) queue.arrive(head, most);
  if (balance > 0) queue.units.receive(balance);
  else queue.units.settle(-balance);
  return queue;
}
