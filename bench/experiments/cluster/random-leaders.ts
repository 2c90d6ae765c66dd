// The baseline of role switching: leaders drawn at random hand over to one of their followers.

import { freeOfCost, type Policy, type Proposal } from '../../../control/scheduler/proposal.ts';
import { WorkingCluster } from '../../../control/scheduler/working-cluster.ts';

/** Each partition changes its leader at most once. */
export function randomLeaders(switches: number): Policy {
  return {
    name: 'random leaders',
    plan(model, { rng }) {
      const cluster = new WorkingCluster(model);
      const below = (n: number): number => Math.floor(rng.next() * n);
      const proposals: Proposal[] = [];
      const changed = new Set<number>();
      for (let tries = 0; proposals.length < switches && tries < switches * 100; tries++) {
        const partition = below(cluster.partitionCount);
        const replicas = cluster.replicasOfPartition[partition]!;
        const from = replicas.find((replica) => cluster.isLeader[replica]);
        const to = replicas[below(replicas.length)]!;
        if (from === undefined || from === to || changed.has(partition)) continue;
        changed.add(partition);
        const change = { kind: 'transfer-leader', partition, from, to } as const;
        cluster.apply(change);
        proposals.push({ change, reason: 'drawn at random', figures: [], cost: freeOfCost });
      }
      return proposals;
    },
  };
}
