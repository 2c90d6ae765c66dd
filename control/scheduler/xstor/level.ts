// Levelling, after role switching and migration: what is left of the moves that a run may make goes from the pods with
// most load to pods of the same subcluster with least, so that the standard deviation over pods falls. X-Stor's text stops
// where no pod is high-load any more; its table 6 reports the standard deviation too.

import { refusalOf } from '../hard-limits.ts';
import { budgetOf } from './parameters.ts';
import type { SchedulingRun } from './scheduling-run.ts';

interface Levelling {
  replica: number;
  toPod: number;
  /** Fall of the sum of squares of both pods' loads over all points. */
  gain: number;
}

export function levelLoads(run: SchedulingRun): void {
  const { cluster, parameters } = run;
  // A cluster in which no pod was high-load is left alone.
  if (run.candidates.size === 0) return;
  const moved = run.proposals.filter(({ change }) => change.kind === 'move-replica').length;
  let left = budgetOf(parameters.movedShare, cluster.podOf.length, parameters) - moved;
  const settled = new Set<number>();
  while (left > 0) {
    const source = highest(run, settled);
    if (source === undefined) return;
    const found = bestMove(run, source);
    if (found === undefined) {
      settled.add(source);
      continue;
    }
    propose(run, source, found);
    left--;
  }
}

/** Use of each pod over all points, in that of the mean pod. */
function sharesOfMean(run: SchedulingRun): number[] {
  const uses = run.totals.map((load, pod) => load / run.anomalies.limitOf(pod));
  const mean = uses.reduce((sum, use) => sum + use, 0) / uses.length;
  return uses.map((use) => use / mean);
}

/** The pod with most load, when it is above the mean by more than the tolerance. */
function highest(run: SchedulingRun, settled: ReadonlySet<number>): number | undefined {
  let best: number | undefined;
  let most = 1 + run.parameters.tolerance.load;
  sharesOfMean(run).forEach((share, pod) => {
    if (settled.has(pod) || share <= most) return;
    most = share;
    best = pod;
  });
  return best;
}

function bestMove(run: SchedulingRun, source: number): Levelling | undefined {
  const { cluster, parameters } = run;
  const { subcluster } = cluster.model.pods;
  let best: Levelling | undefined;
  for (const replica of heaviest(run, source)) {
    const load = run.loadOf(replica);
    for (let pod = 0; pod < cluster.podCount; pod++) {
      if (pod === source || subcluster[pod] !== subcluster[source] || run.isHighLoad(pod)) continue;
      if (run.totals[pod]! >= run.totals[source]!) continue;
      const gain = gainOf(run, source, pod, load);
      if (gain <= (best?.gain ?? 0)) continue;
      if (refusalOf(cluster, replica, pod, parameters.limits) !== undefined) continue;
      if (run.anomalies.count(pod, load) > run.counts[pod]!) continue;
      best = { replica, toPod: pod, gain };
    }
  }
  return best;
}

/** The k1 replicas of a pod with most load over all points, of partitions that the run has not changed. */
function heaviest(run: SchedulingRun, pod: number): number[] {
  const { cluster, dimension, changed, parameters } = run;
  const loadOf = (replica: number): number => {
    const from = cluster.seriesOf(replica, dimension);
    let sum = 0;
    for (let t = 0; t < cluster.points; t++) sum += cluster.rows[from + t]!;
    return sum * cluster.scaleOf(replica);
  };
  return cluster.replicasOfPod[pod]!.filter(
    (replica) => !changed.has(cluster.partitionOf[replica]!),
  )
    .map((replica) => ({ replica, load: loadOf(replica) }))
    .sort((a, b) => b.load - a.load || a.replica - b.replica)
    .slice(0, parameters.k1)
    .map(({ replica }) => replica);
}

/** (p - r)² + (q + r)² is less than p² + q² by 2r(p - q - r), point by point. */
function gainOf(
  run: SchedulingRun,
  source: number,
  toPod: number,
  { from: series, factor }: { from: number; factor: number },
): number {
  const { points, podLoad, rows } = run.cluster;
  const p = run.cluster.podSeries(source, run.dimension);
  const q = run.cluster.podSeries(toPod, run.dimension);
  let gain = 0;
  for (let t = 0; t < points; t++) {
    const load = rows[series + t]! * factor;
    gain += 2 * load * (podLoad[p + t]! - podLoad[q + t]! - load);
  }
  return gain;
}

function propose(run: SchedulingRun, fromPod: number, { replica, toPod }: Levelling): void {
  const { cluster } = run;
  const partition = cluster.partitionOf[replica]!;
  const shares = sharesOfMean(run);
  const percent = (pod: number): string => `${Math.round(100 * shares[pod]!)} %`;
  const reason =
    `${run.nameOf(fromPod)} has ${percent(fromPod)} of the mean load, and ${run.nameOf(toPod)} ${percent(toPod)}; ` +
    `the replica of ${run.partitionName(partition)} makes them more alike`;
  const cost = { bytes: cluster.partitionBytes[partition]!, replicas: 1 };
  run.changed.add(partition);
  const change = { kind: 'move-replica', replica, fromPod, toPod } as const;
  run.propose({ change, reason, cost }, [fromPod, toPod]);
}
