// Libra's planners on a whole cluster: replicas are the regions that move, and a partition that a planner splits is cut by
// its load. Pods that may exchange replicas (one pool, model and subcluster) are balanced among themselves.

import { cooperative } from '../../ranges/cooperative.ts';
import type { RangePlanner, RangeStep } from '../../ranges/range-plan.ts';
import { type Dimension, type RangeModel, RangeState } from '../../ranges/range-state.ts';
import { type HardLimits, refusalOf, usualLimits } from '../hard-limits.ts';
import { type Change, freeOfCost, type Policy, type Proposal } from '../proposal.ts';
import { WorkingCluster } from '../working-cluster.ts';

interface RangePolicyOptions {
  /** Rounds planned ahead, as if all steps of one were done before the next. */
  rounds: number;
  limits: HardLimits;
}

const defaults: RangePolicyOptions = {
  rounds: 60,
  // The parts of a split stay together, however many of a table's are on a pod.
  limits: { ...usualLimits, tableSlack: Infinity },
};

export function rangePolicy(
  planner: RangePlanner = cooperative(),
  options: Partial<RangePolicyOptions> = {},
): Policy {
  const all = { ...defaults, ...options };
  return {
    name: planner.name,
    plan(model) {
      const cluster = new WorkingCluster(model);
      const loads = new MeanLoads(cluster);
      return groupsOf(cluster).flatMap((pods) => new Planning(loads, pods, planner, all).plan());
    },
    whyIdle(model) {
      const cluster = new WorkingCluster(model);
      const loads = new MeanLoads(cluster);
      const highest = groupsOf(cluster)
        .filter((pods) => pods.length > 1)
        .map((pods) => new Planning(loads, pods, planner, all).highest())
        .reduce((best, one) => (one.load > best.load ? one : best), { pod: -1, load: 0 });
      if (highest.pod < 0) return 'no pod has another that it may exchange replicas with';
      const told = `largest over mean load is ${highest.load.toFixed(3)}, that of ${model.pods.ids[highest.pod]}`;
      const limit = (1 + planner.lambda).toFixed(2);
      return highest.load <= 1 + planner.lambda
        ? `${told}: not above ${limit}`
        : `${told}, above ${limit}, but none of its replicas may go where it would lower that`;
    },
  };
}

/** Pods that may exchange replicas; those of disabled and unfinished nodes are in none. */
function groupsOf({ model, poolOfNode }: WorkingCluster): number[][] {
  const groups = new Map<string, number[]>();
  model.pods.ids.forEach((_, pod) => {
    const node = model.pods.node[pod]!;
    if (model.pods.model[pod] === 'gateway' || model.nodes.state[node] === 'adding') return;
    const key = [poolOfNode[node], model.pods.model[pod], model.pods.subcluster[pod]].join();
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [pod]);
    else group.push(pod);
  });
  return [...groups.values()];
}

/**
 * Mean load of replicas over all points. Processor and disk load are the dimensions `cpu` and `io`,
 * or else the first two. With a single dimension, the followers' part of it, which is writes,
 * stands for disk load.
 */
class MeanLoads {
  readonly cluster: WorkingCluster;
  readonly #cpu: number;
  readonly #io: number | undefined;
  readonly #means = new Map<number, number>();

  constructor(cluster: WorkingCluster) {
    const { dimensions } = cluster.model;
    this.cluster = cluster;
    const named = dimensions.includes('cpu') && dimensions.includes('io');
    this.#cpu = named ? dimensions.indexOf('cpu') : 0;
    if (dimensions.length > 1) this.#io = named ? dimensions.indexOf('io') : 1;
  }

  of(replica: number, dimension: Dimension): number {
    const { cluster } = this;
    if (dimension === 'cpu') return this.#row(replica, this.#cpu, cluster.isLeader[replica]!);
    if (this.#io !== undefined) return this.#row(replica, this.#io, cluster.isLeader[replica]!);
    const partition = cluster.partitionOf[replica]!;
    return this.#row(replica, this.#cpu, cluster.followerScale[partition] === 0);
  }

  limitOf(pod: number): number {
    return this.cluster.model.pods.limits[pod * this.cluster.dimensionCount + this.#cpu]!;
  }

  #row(replica: number, dimension: number, asLeader: boolean): number {
    const { cluster } = this;
    const partition = cluster.partitionOf[replica]!;
    const [row, scale] = asLeader
      ? [cluster.leaderRow[partition]!, cluster.leaderScale[partition]!]
      : [cluster.followerRow[partition]!, cluster.followerScale[partition]!];
    const key = row * cluster.dimensionCount + dimension;
    let mean = this.#means.get(key);
    if (mean === undefined) {
      const from = key * cluster.points;
      mean = 0;
      for (let t = 0; t < cluster.points; t++) mean += cluster.rows[from + t]! / cluster.points;
      this.#means.set(key, mean);
    }
    return mean * scale;
  }
}

/** Rounds of one planner on one group of pods, carried out on the cluster as they are planned. */
class Planning {
  readonly #loads: MeanLoads;
  readonly #cluster: WorkingCluster;
  readonly #pods: readonly number[];
  readonly #planner: RangePlanner;
  readonly #options: RangePolicyOptions;
  readonly #proposals: Proposal[] = [];

  constructor(
    loads: MeanLoads,
    pods: readonly number[],
    planner: RangePlanner,
    options: RangePolicyOptions,
  ) {
    this.#loads = loads;
    this.#cluster = loads.cluster;
    this.#pods = pods;
    this.#planner = planner;
    this.#options = options;
  }

  /** The pod with the highest load, as the planner compares it. */
  highest(): { pod: number; load: number } {
    const replicas = this.#pods.flatMap((pod) => this.#cluster.replicasOfPod[pod]!);
    const state = new RangeState(this.#modelOf(replicas));
    return this.#pods
      .map((pod, node) => ({ pod, load: this.#planner.loadOf(state, node) }))
      .reduce((best, one) => (one.load > best.load ? one : best));
  }

  plan(): Proposal[] {
    for (let round = 0; round < this.#options.rounds; round++) {
      const replicas = this.#pods.flatMap((pod) => this.#cluster.replicasOfPod[pod]!);
      const model = this.#modelOf(replicas);
      const { steps } = this.#planner.plan(model);
      const state = new RangeState(model);
      const made = steps.filter((step) => this.#carryOut(step, replicas, state)).length;
      if (made === 0) break;
    }
    return this.#proposals;
  }

  #modelOf(replicas: readonly number[]): RangeModel {
    const cluster = this.#cluster;
    const pods = this.#pods;
    const place = new Map(pods.map((pod, i) => [pod, i]));
    const limits = pods.map((pod) => this.#loads.limitOf(pod));
    const mean = limits.reduce((sum, limit) => sum + limit, 0) / limits.length;
    const loads = (dimension: Dimension): Float64Array =>
      Float64Array.from(replicas, (replica) => this.#loads.of(replica, dimension));
    return {
      capacity: Float64Array.from(limits, (limit) => limit / mean),
      node: Uint32Array.from(replicas, (replica) => place.get(cluster.podOf[replica]!)!),
      cpu: loads('cpu'),
      io: loads('io'),
      bytes: Float64Array.from(
        replicas,
        (replica) => cluster.partitionBytes[cluster.partitionOf[replica]!]!,
      ),
      order: Uint32Array.from(replicas, (_, region) => region),
      allows: (region, node) => this.#changeFor(replicas[region]!, pods[node]!) !== undefined,
    };
  }

  /** A follower there takes over from a leader; any other replica is copied. undefined: a limit forbids both. */
  #changeFor(replica: number, toPod: number): Change | undefined {
    const cluster = this.#cluster;
    const partition = cluster.partitionOf[replica]!;
    const sibling = cluster.replicasOfPartition[partition]!.find(
      (other) => cluster.podOf[other] === toPod,
    );
    if (sibling !== undefined) {
      // Replicas added by a split are as healthy as the one they were cut from.
      const isHealthy = cluster.model.replicas.isHealthy[sibling] ?? 1;
      if (!cluster.isLeader[replica] || isHealthy === 0 || sibling === replica) return undefined;
      return { kind: 'transfer-leader', partition, from: replica, to: sibling };
    }
    if (refusalOf(cluster, replica, toPod, this.#options.limits) !== undefined) return undefined;
    return { kind: 'move-replica', replica, fromPod: cluster.podOf[replica]!, toPod };
  }

  /** Whether the step was taken: an earlier one of its round may have made it impossible. */
  #carryOut(step: RangeStep, replicas: readonly number[], state: RangeState): boolean {
    return step.kind === 'move'
      ? this.#moveRegion(replicas[step.region]!, step, state)
      : this.#splitRegion(replicas[step.region]!, step, state);
  }

  #moveRegion(
    replica: number,
    { region, from, to }: Extract<RangeStep, { kind: 'move' }>,
    state: RangeState,
  ): boolean {
    const cluster = this.#cluster;
    const fromPod = this.#pods[from]!;
    if (cluster.podOf[replica] !== fromPod) return false;
    const change = this.#changeFor(replica, this.#pods[to]!);
    if (change === undefined) return false;
    const names = [from, to].map((node) => cluster.model.pods.ids[this.#pods[node]!]!);
    const dimension = state.total.cpu[from]! > state.total.io[from]! ? 'cpu' : 'io';
    const of = (node: number): number => state.total[dimension][node]!;
    const before = [of(from), of(to)];
    cluster.apply(change);
    state.move(region, to);
    const what = dimension === 'cpu' ? 'processor' : 'disk';
    const bytes = cluster.partitionBytes[cluster.partitionOf[replica]!]!;
    this.#proposals.push({
      change,
      reason: `${names[0]} has ${before[0]!.toFixed(2)} of the mean ${what} load, and ${names[1]} ${before[1]!.toFixed(2)}`,
      figures: [from, to].map((node, i) => ({
        name: `${what} load of ${names[i]}, mean = 1`,
        before: before[i]!,
        after: of(node),
      })),
      cost: change.kind === 'move-replica' ? { bytes, replicas: 1 } : freeOfCost,
    });
    return true;
  }

  /** All parts stay where they are, with shares of the load in the ratios asked for. */
  #splitRegion(
    replica: number,
    { region, ratios, dimension }: Extract<RangeStep, { kind: 'split' }>,
    state: RangeState,
  ): boolean {
    const cluster = this.#cluster;
    const { model } = cluster;
    const pod = model.pods.ids[cluster.podOf[replica]!]!;
    const what = dimension === 'cpu' ? 'processor' : 'disk';
    let partition = cluster.partitionOf[replica]!;
    let load = state.load[dimension][region]!;
    let rest = 1;
    for (const ratio of ratios) {
      const share = ratio / rest;
      const leftShare = model.dimensions.map(() => share);
      const change: Change = { kind: 'split', partition, leftShare };
      const right = cluster.partitionCount;
      cluster.apply(change);
      const name = model.partitions.ids[partition] ?? `new${partition}`;
      this.#proposals.push({
        change,
        reason: `the ${what} load of ${name} on ${pod}, ${load.toFixed(3)} of a pod's mean, fits on no other pod`,
        figures: [{ name: `${what} load of ${name}, mean = 1`, before: load, after: load * share }],
        cost: freeOfCost,
      });
      partition = right;
      load *= 1 - share;
      rest -= ratio;
    }
    return true;
  }
}
