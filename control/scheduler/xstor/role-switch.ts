// Role switching (X-Stor, section 5.3.2): a leader on a high-load pod and its follower on a pod without anomalies change
// roles. Nothing is copied, so it comes before any migration.

import { freeOfCost } from '../proposal.ts';
import { budgetOf } from './parameters.ts';
import type { SchedulingRun } from './scheduling-run.ts';

interface Switch {
  source: number;
  leader: number;
  follower: number;
}

export function switchRoles(run: SchedulingRun): void {
  const { cluster, parameters } = run;
  const excluded = new Set<number>();
  let left = budgetOf(parameters.switchedShare, cluster.partitionCount, parameters);
  while (left > 0) {
    const sources = run.highLoadPods();
    if (sources.length === 0) return;
    const destination = destinationOf(run, excluded);
    if (destination === undefined) return;
    const found = switchTo(run, destination, sources);
    if (found === undefined) {
      excluded.add(destination);
      continue;
    }
    const { source, leader, follower } = found;
    const partition = cluster.partitionOf[leader]!;
    run.changed.add(partition);
    const reason =
      `${run.nameOf(source)} has ${run.counts[source]} anomalous minutes; its replica of ` +
      `${run.partitionName(partition)} is often among the heaviest then, and ${run.nameOf(destination)} can lead instead`;
    const change = { kind: 'transfer-leader', partition, from: leader, to: follower } as const;
    run.propose({ change, reason, cost: freeOfCost }, [source, destination]);
    left--;
  }
}

/** The pod with fewest anomalies; of those, with least load. */
function destinationOf(run: SchedulingRun, excluded: ReadonlySet<number>): number | undefined {
  let best: number | undefined;
  for (let pod = 0; pod < run.counts.length; pod++) {
    if (excluded.has(pod) || run.isHighLoad(pod)) continue;
    const order =
      best === undefined
        ? -1
        : run.counts[pod]! - run.counts[best]! || run.totals[pod]! - run.totals[best]!;
    if (order < 0) best = pod;
  }
  return best;
}

function switchTo(
  run: SchedulingRun,
  destination: number,
  sources: readonly number[],
): Switch | undefined {
  const { cluster, parameters } = run;
  const { isHealthy } = cluster.model.replicas;
  for (const source of sources) {
    for (const leader of run.candidates.get(source)!) {
      const partition = cluster.partitionOf[leader]!;
      if (!cluster.isLeader[leader] || run.changed.has(partition)) continue;
      const siblings = cluster.replicasOfPartition[partition]!;
      // A follower that lags anywhere makes the partition one that is left alone.
      if (siblings.some((replica) => isHealthy[replica] === 0)) continue;
      const follower = siblings.find((replica) => cluster.podOf[replica] === destination);
      if (follower === undefined) continue;
      const after = run.anomalies.count(destination, run.loadOf(leader), run.loadOf(follower, -1));
      if (after <= parameters.acceptedAnomalies) return { source, leader, follower };
    }
  }
  return undefined;
}
