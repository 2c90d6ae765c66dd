// Accumulated units that gateways of a pool lend each other for queries (X-Stor, section 5.2).

import type { QueryQueue, WaitingQuery } from '../../access/admission/query-queue.ts';

/** Units that the query at the head of the queue lacks. */
function lackOf<Q extends WaitingQuery>(queue: QueryQueue<Q>, mostUnits: number): number {
  const head = queue.head();
  return head === undefined ? 0 : Math.min(head.cost, mostUnits) - queue.units.balance;
}

/**
 * Once a second: the query that has waited longest on any gateway gets the units it lacks from the gateways that have
 * most. Returns the units that moved.
 */
export function lendUnits<Q extends WaitingQuery>(
  queues: readonly QueryQueue<Q>[],
  mostUnits: number,
): number {
  const needy = queues.filter((queue) => lackOf(queue, mostUnits) > 0);
  needy.sort((a, b) => a.head()!.arrivedAt - b.head()!.arrivedAt);
  let moved = 0;
  for (const queue of needy) {
    let lack = lackOf(queue, mostUnits);
    // A gateway whose own queries wait has nothing to give.
    const donors = queues.filter((other) => other !== queue && other.length === 0);
    donors.sort((a, b) => b.units.balance - a.units.balance);
    for (const donor of donors) {
      if (lack <= 0) break;
      const lent = donor.units.giveUp(lack);
      queue.units.receive(lent);
      lack -= lent;
      moved += lent;
    }
  }
  return moved;
}
