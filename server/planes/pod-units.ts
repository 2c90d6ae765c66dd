// Request units of the work that a replica's pod has done.

import { costLayout, type RowPricer } from '../../request-units/row-pricer.ts';
import type { Pod } from '../../storage-node/pod.ts';

/** Request units served by the pod since the last call, without the gateway's part. */
export function unitsOf({ load }: Pick<Pod, 'load'>, pricer: RowPricer): number {
  if (load === undefined) return 0;
  const { commands, sent, work } = load.take();
  if (commands === 0) return 0;
  const cost = new Float64Array(costLayout.length);
  // A write's input is taken as its log size; a read's input is small.
  pricer.price(commands, commands, work.logBytes, sent, work, cost);
  return cost[costLayout.lru]!;
}
