// What every policy is held against: doing nothing, and moving replicas at random.

import { type HardLimits, refusalOf, usualLimits } from './hard-limits.ts';
import type { Policy, Proposal } from './proposal.ts';
import { WorkingCluster } from './working-cluster.ts';

export const doNothing: Policy = { name: 'nothing', plan: () => [] };

/** Moves drawn at random, among those that no hard limit forbids. */
export function randomMoves(moves: number, limits: HardLimits = usualLimits): Policy {
  return {
    name: 'random',
    plan(model, { rng }) {
      const cluster = new WorkingCluster(model);
      const proposals: Proposal[] = [];
      const below = (n: number): number => Math.floor(rng.next() * n);
      for (let tries = 0; proposals.length < moves && tries < moves * 100; tries++) {
        const replica = below(cluster.podOf.length);
        const toPod = below(cluster.podCount);
        if (refusalOf(cluster, replica, toPod, limits) !== undefined) continue;
        const fromPod = cluster.podOf[replica]!;
        const change = { kind: 'move-replica', replica, fromPod, toPod } as const;
        cluster.apply(change);
        const bytes = cluster.partitionBytes[cluster.partitionOf[replica]!]!;
        proposals.push({
          change,
          reason: 'drawn at random',
          figures: [],
          cost: { bytes, replicas: 1 },
        });
      }
      return proposals;
    },
  };
}
