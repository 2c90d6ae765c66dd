// Algorithm 2 of ABase: within a pool, replicas move from nodes above the pool's load to nodes below it, one at a time
// for each pair of nodes, the move of greatest gain first. A run every ten minutes makes one round.

import { type HardLimits, refusalOf } from '../hard-limits.ts';
import { percentOf, type Policy, type Proposal } from '../proposal.ts';
import { WorkingCluster } from '../working-cluster.ts';
import { PoolLoad, podsOfPools } from './load.ts';

interface ReschedulingOptions {
  /** Nodes at most this far below the optimum are left alone. Each is used until it finds no more moves. */
  thresholds: readonly number[];
  /** 1 for a run every ten minutes; more plan as many runs ahead, as if all moves of one were done before the next. */
  rounds: number;
  /**
   * Threshold between high and low nodes. `pool` is the paper's: the pool's load in its one highest
   * hour. Nodes have their highest hours at different times, so that on average they are above it,
   * and targets are full before all high nodes have given. `nodes` is the mean of the nodes' own
   * highest hours.
   */
  divideBy: 'nodes' | 'pool';
  limits: HardLimits;
  /** No node that takes a replica is used more than this part of its capacity afterwards, in either resource. */
  mostUse: number;
  /** Pods with a migration under way, which neither give nor take. */
  isMigrating: (pod: number) => boolean;
}

/** ABase sets 5 %; its medium nodes absorb the load that high ones should give, so 2 % follows. */
export const defaultRescheduling: ReschedulingOptions = {
  thresholds: [0.05, 0.02],
  rounds: 1,
  divideBy: 'nodes',
  limits: { tableSlack: Infinity, diskShare: 0.85, crossSubcluster: false },
  mostUse: 1,
  isMigrating: () => false,
};

export function rescheduling(options: Partial<ReschedulingOptions> = {}): Policy {
  const all = { ...defaultRescheduling, ...options };
  return {
    name: 'ABase',
    plan(model) {
      const cluster = new WorkingCluster(model);
      return podsOfPools(model).flatMap((pods) => reschedulePool(cluster, pods, all));
    },
    whyIdle: (model) => whyIdle(new WorkingCluster(model), all),
  };
}

/** Of the pool with the widest gap, in the resource that has it. */
function whyIdle(cluster: WorkingCluster, { thresholds }: ReschedulingOptions): string {
  const names = cluster.model.pods.ids;
  const gaps = podsOfPools(cluster.model).flatMap((pods) => {
    if (pods.length < 2) return [];
    const load = new PoolLoad(cluster, pods);
    return (['RU', 'storage'] as const).map((resource, i) => {
      const use = (pod: number): number => load.utilization(pod, load.dimensions[i]!);
      const byUse = pods.toSorted((a, b) => use(a) - use(b));
      const [low, high] = [byUse[0]!, byUse.at(-1)!];
      const mean = pods.reduce((sum, pod) => sum + use(pod), 0) / pods.length;
      const told =
        `${names[high]} uses ${percentOf(use(high))} of its ${resource} in its highest hour and ` +
        `${names[low]} ${percentOf(use(low))}`;
      return { told, below: mean - use(low) };
    });
  });
  if (gaps.length === 0) return 'no pool has two nodes';
  const widest = gaps.reduce((best, gap) => (gap.below > best.below ? gap : best));
  const least = Math.min(...thresholds);
  return widest.below < least
    ? `${widest.told}: none is ${percentOf(least)} of capacity below the mean`
    : `${widest.told}, but no replica is small enough to bring them closer, or none may move`;
}

/** Plans for the pods of one pool, and carries the plan out on `cluster`. */
export function reschedulePool(
  cluster: WorkingCluster,
  pods: readonly number[],
  options: ReschedulingOptions,
): Proposal[] {
  const load = new PoolLoad(cluster, pods);
  const proposals: Proposal[] = [];
  let step = 0;
  for (let round = 0; round < options.rounds && step < options.thresholds.length; ) {
    const made = new Round(load, options).run(options.thresholds[step]!);
    if (made.length === 0) step++;
    else {
      proposals.push(...made);
      round++;
    }
  }
  return proposals;
}

/** One run of the algorithm. Every pod takes part in at most one move. */
class Round {
  readonly #load: PoolLoad;
  readonly #cluster: WorkingCluster;
  readonly #options: ReschedulingOptions;
  readonly #isBusy = new Set<number>();
  readonly #series: Float64Array;
  readonly #deviations = new Map<number, number>();

  constructor(load: PoolLoad, options: ReschedulingOptions) {
    this.#load = load;
    this.#cluster = load.cluster;
    this.#options = options;
    this.#series = new Float64Array(this.#cluster.dimensionCount * this.#cluster.points);
    for (const pod of load.pods) {
      if (options.isMigrating(pod)) this.#isBusy.add(pod);
      this.#deviations.set(pod, load.deviation(pod));
    }
  }

  run(threshold: number): Proposal[] {
    return [...this.#balance(0, threshold), ...this.#balance(1, threshold)];
  }

  /** Over one resource: high nodes give, in descending load and at most half as many as there are low ones. */
  #balance(resource: 0 | 1, threshold: number): Proposal[] {
    const dimension = this.#load.dimensions[resource];
    const used = this.#load.pods.map((pod) => ({
      pod,
      use: this.#load.utilization(pod, dimension),
    }));
    const { ru, storage } = this.#load.optimum;
    const mean = used.reduce((sum, { use }) => sum + use, 0) / used.length;
    const optimum = this.#options.divideBy === 'nodes' ? mean : [ru, storage][resource]!;
    const low = used.filter(({ use }) => use <= optimum - threshold).map(({ pod }) => pod);
    const high = used.filter(({ use }) => use > optimum).sort((a, b) => b.use - a.use);
    const most = Math.floor(low.length / 2);
    const proposals: Proposal[] = [];
    for (const { pod } of high) {
      if (proposals.length >= most) break;
      if (this.#isBusy.has(pod)) continue;
      const move = this.#bestMove(pod, low, dimension, optimum);
      if (move !== undefined) proposals.push(this.#carryOut(move));
    }
    return proposals;
  }

  #bestMove(
    fromPod: number,
    low: readonly number[],
    dimension: number,
    optimum: number,
  ): Move | undefined {
    const cluster = this.#cluster;
    const before = this.#deviations.get(fromPod)!;
    let best: Move | undefined;
    for (const replica of cluster.replicasOfPod[fromPod]!) {
      this.#load.seriesOf(replica, this.#series);
      const without = this.#load.deviation(fromPod, this.#series, -1);
      for (const toPod of low) {
        if (this.#isBusy.has(toPod)) continue;
        const larger = Math.max(before, this.#deviations.get(toPod)!);
        // The gain cannot exceed this, whatever the target.
        const least = best?.gain ?? 0;
        if (larger - without <= least) continue;
        const gain = larger - Math.max(without, this.#load.deviation(toPod, this.#series));
        if (gain <= least) continue;
        if (this.#load.utilization(toPod, dimension, this.#series) > optimum) continue;
        if (!this.#canPlace(replica, fromPod, toPod)) continue;
        best = { replica, fromPod, toPod, gain };
      }
    }
    return best;
  }

  /** Hard limits and capacity hold, and the table's replicas are spread no worse than before. */
  #canPlace(replica: number, fromPod: number, toPod: number): boolean {
    const cluster = this.#cluster;
    const table = cluster.tableOf[cluster.partitionOf[replica]!]!;
    if (cluster.tableOnPod(table, toPod) >= cluster.tableOnPod(table, fromPod)) return false;
    for (const dimension of this.#load.dimensions) {
      if (this.#load.utilization(toPod, dimension, this.#series) > this.#options.mostUse) {
        return false;
      }
    }
    return refusalOf(cluster, replica, toPod, this.#options.limits) === undefined;
  }

  #carryOut({ replica, fromPod, toPod, gain }: Move): Proposal {
    const cluster = this.#cluster;
    const load = this.#load;
    const names = cluster.model.pods.ids;
    const figures = (['RU', 'storage'] as const).flatMap((name, resource) =>
      [fromPod, toPod].map((pod) => ({
        name: `${name} of ${names[pod]}, % of capacity`,
        pod,
        dimension: load.dimensions[resource]!,
        before: 100 * load.utilization(pod, load.dimensions[resource]!),
      })),
    );
    const change = { kind: 'move-replica', replica, fromPod, toPod } as const;
    cluster.apply(change);
    for (const pod of [fromPod, toPod]) {
      this.#isBusy.add(pod);
      this.#deviations.set(pod, load.deviation(pod));
    }
    const partition = cluster.partitionOf[replica]!;
    return {
      change,
      reason:
        `${names[fromPod]} is above the load of the pool and ${names[toPod]} below it: the larger deviation ` +
        `of the two falls by ${(100 * gain).toFixed(2)} points`,
      figures: figures.map(({ name, before, pod, dimension }) => ({
        name,
        before,
        after: 100 * load.utilization(pod, dimension),
      })),
      cost: { bytes: cluster.partitionBytes[partition]!, replicas: 1 },
    };
  }
}

interface Move {
  replica: number;
  fromPod: number;
  toPod: number;
  gain: number;
}
