// The baseline of moves between pools: nodes drawn at random are emptied onto peers drawn at random, and join the other pool.

import { podsOfPools } from '../../../control/scheduler/abase/load.ts';
import { type HardLimits, refusalOf } from '../../../control/scheduler/hard-limits.ts';
import { freeOfCost, type Policy, type Proposal } from '../../../control/scheduler/proposal.ts';
import { WorkingCluster } from '../../../control/scheduler/working-cluster.ts';

/** For pools with a pod on each node. A node with a replica that finds no peer in many tries stays. */
export function randomNodes(
  count: number,
  { from, to }: { from: number; to: number },
  limits: HardLimits,
): Policy {
  return {
    name: 'random nodes',
    plan(model, { rng }) {
      const cluster = new WorkingCluster(model);
      const below = (n: number): number => Math.floor(rng.next() * n);
      const staying = [...podsOfPools(model)[from]!];
      const leaving = Array.from(
        { length: count },
        () => staying.splice(below(staying.length), 1)[0]!,
      );
      return leaving.flatMap((pod): Proposal[] => {
        const node = cluster.nodeOfPod[pod]!;
        const proposals: Proposal[] = [];
        const take = (change: Proposal['change'], bytes?: number): void => {
          cluster.apply(change);
          const cost = bytes === undefined ? freeOfCost : { bytes, replicas: 1 };
          proposals.push({ change, reason: 'drawn at random', figures: [], cost });
        };
        for (const replica of [...cluster.replicasOfPod[pod]!]) {
          for (let tries = 0; tries < 1000; tries++) {
            const toPod = staying[below(staying.length)]!;
            if (refusalOf(cluster, replica, toPod, limits) !== undefined) continue;
            const bytes = cluster.partitionBytes[cluster.partitionOf[replica]!]!;
            take({ kind: 'move-replica', replica, fromPod: pod, toPod }, bytes);
            break;
          }
        }
        if (cluster.replicasOfPod[pod]!.length === 0) {
          take({ kind: 'move-node', node, fromPool: from, toPool: to });
        }
        return proposals;
      });
    },
  };
}
