// Baselines of every policy: doing nothing, moving replicas at random, and an operator's rule of thumb: the heaviest replica of the pod with the highest peak goes to the pod with the lowest.

import { type HardLimits, refusalOf, usualLimits } from './hard-limits.ts';
import { mostUsedDimension } from './load-measures.ts';
import { percentOf, type Policy, type Proposal } from './proposal.ts';
import { WorkingCluster } from './working-cluster.ts';

export const doNothing: Policy = {
  name: 'nothing',
  plan: () => [],
  whyIdle: () => 'it never does anything: the others are compared with it',
};

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
    whyIdle: () => 'no move that was drawn is allowed by the limits',
  };
}

/**
 * At most `moves` replicas move. Stops when no pod's peak is above `thresholdShare` of its limit, or when no
 * move lowers the highest peak.
 */
export function peakMover(
  moves: number,
  thresholdShare: number,
  limits: HardLimits = usualLimits,
): Policy {
  return {
    name: 'peak-mover',
    plan(model) {
      const cluster = new WorkingCluster(model);
      const dimension = mostUsedDimension(cluster);
      const peaks = cluster.replicasOfPod.map((_, pod) => peakOf(cluster, dimension, pod));
      const proposals: Proposal[] = [];
      while (proposals.length < moves) {
        const source = peaks.reduce(
          (best, peak, pod) => (peak.share > peaks[best]!.share ? pod : best),
          0,
        );
        const { share, point } = peaks[source]!;
        if (share <= thresholdShare) break;
        const load = (replica: number): number => cluster.replicaLoad(replica, dimension, point);
        const heaviest = [...cluster.replicasOfPod[source]!].sort((a, b) => load(b) - load(a));
        const byPeak = peaks.map((_, pod) => pod).sort((a, b) => peaks[a]!.share - peaks[b]!.share);
        const move = firstMove(heaviest, byPeak, (replica, pod) => {
          if (refusalOf(cluster, replica, pod, limits) !== undefined) return false;
          return peakOf(cluster, dimension, pod, replica).share < share;
        });
        if (move === undefined) break;
        const change = { kind: 'move-replica', ...move, fromPod: source } as const;
        cluster.apply(change);
        for (const pod of [source, move.toPod]) peaks[pod] = peakOf(cluster, dimension, pod);
        const bytes = cluster.partitionBytes[cluster.partitionOf[move.replica]!]!;
        const name = `peak of ${model.pods.ids[source]}, share of its limit`;
        proposals.push({
          change,
          reason: `${model.pods.ids[source]} has the highest peak, ${model.pods.ids[move.toPod]} a low one`,
          figures: [{ name, before: share, after: peaks[source]!.share }],
          cost: { bytes, replicas: 1 },
        });
      }
      return proposals;
    },
    whyIdle(model) {
      const cluster = new WorkingCluster(model);
      const dimension = mostUsedDimension(cluster);
      const peaks = cluster.replicasOfPod.map((_, pod) => peakOf(cluster, dimension, pod).share);
      const highest = peaks.indexOf(Math.max(...peaks));
      const told = `the highest use of any pod is ${percentOf(peaks[highest]!)} of its limit, on ${model.pods.ids[highest]}`;
      return peaks[highest]! <= thresholdShare
        ? `${told}: not above ${percentOf(thresholdShare)}`
        : `${told}, and none of its ${tried} heaviest replicas may move to where it would lower that`;
    },
  };
}

/** Number of a pod's heaviest replicas that are tried. */
const tried = 10;

function firstMove(
  replicas: readonly number[],
  pods: readonly number[],
  fits: (replica: number, pod: number) => boolean,
): { replica: number; toPod: number } | undefined {
  for (const replica of replicas.slice(0, tried)) {
    const toPod = pods.find((pod) => fits(replica, pod));
    if (toPod !== undefined) return { replica, toPod };
  }
  return undefined;
}

/** The highest share of a pod's limit, with a further replica when one is given. */
function peakOf(
  cluster: WorkingCluster,
  dimension: number,
  pod: number,
  added?: number,
): { share: number; point: number } {
  const limit = cluster.model.pods.limits[pod * cluster.dimensionCount + dimension]!;
  const from = cluster.podSeries(pod, dimension);
  const series = added === undefined ? 0 : cluster.seriesOf(added, dimension);
  const scale = added === undefined ? 0 : cluster.scaleOf(added);
  let [most, point] = [-1, 0];
  for (let t = 0; t < cluster.points; t++) {
    const load = cluster.podLoad[from + t]! + cluster.rows[series + t]! * scale;
    if (load > most) [most, point] = [load, t];
  }
  return { share: most / limit, point };
}
