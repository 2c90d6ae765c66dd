// Replica migration (X-Stor, section 5.3.2): candidates of pods that role switching has left high-load move to the pod
// that five priorities choose. Leaving the subcluster means that all replicas of the partition move.

import { refusalOf } from '../hard-limits.ts';
import type { WorkingCluster } from '../working-cluster.ts';
import { budgetOf } from './parameters.ts';
import type { SchedulingRun } from './scheduling-run.ts';

interface Destination {
  pod: number;
  /** Anomalous points after it has received the replica. */
  anomalies: number;
}

export function migrateReplicas(run: SchedulingRun): void {
  const { cluster, parameters } = run;
  let left = budgetOf(parameters.movedShare, cluster.podOf.length, parameters);
  for (const source of run.highLoadPods()) {
    for (const replica of run.candidates.get(source)!) {
      if (left === 0 || !run.isHighLoad(source)) break;
      const partition = cluster.partitionOf[replica]!;
      if (run.changed.has(partition) || cluster.podOf[replica] !== source) continue;
      const destination = destinationOf(run, replica);
      if (destination === undefined) continue;
      const moves = movesTo(run, replica, destination);
      if (moves === undefined || moves.length > left) continue;
      run.changed.add(partition);
      left -= moves.length;
      for (const { replica: moved, toPod } of moves) propose(run, moved, toPod, source);
    }
  }
}

function propose(run: SchedulingRun, replica: number, toPod: number, source: number): void {
  const { cluster } = run;
  const partition = cluster.partitionOf[replica]!;
  const fromPod = cluster.podOf[replica]!;
  const reason =
    `${run.nameOf(source)} has ${run.counts[source]} anomalous minutes; ${run.nameOf(toPod)} can take its replica of ` +
    `${run.partitionName(partition)}` +
    (fromPod === source ? '' : ', and the other replicas follow into its subcluster');
  const cost = { bytes: cluster.partitionBytes[partition]!, replicas: 1 };
  const change = { kind: 'move-replica', replica, fromPod, toPod } as const;
  run.propose({ change, reason, cost }, [fromPod, toPod]);
}

/** The pod that a replica should move to; undefined when each would be refused or become high-load. */
export function destinationOf(run: SchedulingRun, replica: number): number | undefined {
  const { cluster, parameters } = run;
  const { tolerance } = parameters;
  const source = cluster.podOf[replica]!;
  const load = run.loadOf(replica);
  let left: Destination[] = [];
  for (let pod = 0; pod < cluster.podCount; pod++) {
    if (run.isHighLoad(pod) || refusalOf(cluster, replica, pod, parameters.limits) !== undefined) {
      continue;
    }
    const anomalies = run.anomalies.count(pod, load);
    if (anomalies <= parameters.warning) left.push({ pod, anomalies });
  }
  if (left.length === 0) return undefined;
  const { subcluster } = cluster.model.pods;
  left = least(left, ({ anomalies }) => anomalies, tolerance.anomalies);
  left = least(left, ({ pod }) => Number(subcluster[pod] !== subcluster[source]), 0);
  left = least(
    left,
    ({ pod }) => similarity(cluster, run.dimension, pod, load.from),
    tolerance.similarity,
  );
  const lightest = Math.min(...left.map(({ pod }) => run.totals[pod]!));
  left = left.filter(({ pod }) => run.totals[pod]! <= lightest * (1 + tolerance.load));
  left = least(left, ({ pod }) => cluster.podBytes[pod]! / cluster.model.pods.diskBytes[pod]!, 0);
  return left[0]!.pod;
}

/** Candidates within `tolerance` of the least. */
function least(
  all: readonly Destination[],
  figure: (one: Destination) => number,
  tolerance: number,
): Destination[] {
  const figures = all.map(figure);
  const most = Math.min(...figures) + tolerance;
  return all.filter((_, i) => figures[i]! <= most);
}

/** Cosine of the angle between the load of a pod and a series of a replica (eq. 10). */
export function similarity(
  cluster: WorkingCluster,
  dimension: number,
  pod: number,
  series: number,
): number {
  const { points, podLoad, rows } = cluster;
  const from = cluster.podSeries(pod, dimension);
  let [dot, ofPod, ofReplica] = [0, 0, 0];
  for (let t = 0; t < points; t++) {
    const [a, b] = [podLoad[from + t]!, rows[series + t]!];
    dot += a * b;
    ofPod += a * a;
    ofReplica += b * b;
  }
  return dot / (Math.sqrt(ofPod * ofReplica) || 1);
}

interface Move {
  replica: number;
  toPod: number;
}

/**
 * The move, and in another subcluster the moves of the other replicas; undefined when they do not
 * fit there.
 */
function movesTo(run: SchedulingRun, replica: number, toPod: number): Move[] | undefined {
  const { cluster, parameters } = run;
  const { subcluster, node } = cluster.model.pods;
  const source = cluster.podOf[replica]!;
  if (subcluster[source] === subcluster[toPod]) return [{ replica, toPod }];
  const moves: Move[] = [{ replica, toPod }];
  const { zone } = cluster.model.nodes;
  const siblings = cluster.replicasOfPartition[cluster.partitionOf[replica]!]!;
  for (const sibling of siblings) {
    if (sibling === replica) continue;
    let best: number | undefined;
    for (let pod = 0; pod < cluster.podCount; pod++) {
      if (subcluster[pod] !== subcluster[toPod] || run.isHighLoad(pod)) continue;
      const taken = moves.some(
        (move) => node[move.toPod] === node[pod] || zone[node[move.toPod]!] === zone[node[pod]!],
      );
      if (taken || refusalOf(cluster, sibling, pod, parameters.limits) !== undefined) continue;
      if (run.anomalies.count(pod, run.loadOf(sibling)) > parameters.warning) continue;
      if (best === undefined || run.totals[pod]! < run.totals[best]!) best = pod;
    }
    if (best === undefined) return undefined;
    moves.push({ replica: sibling, toPod: best });
  }
  return moves;
}
