// Between pools (ABase, section 5.3): nodes of the lighter pool are emptied into their peers and join the heavier one;
// then Algorithm 2 runs in both. No replica leaves its pool.

import { type HardLimits, refusalOf } from '../hard-limits.ts';
import { percentOf, type Policy, type Proposal } from '../proposal.ts';
import { WorkingCluster } from '../working-cluster.ts';
import { PoolLoad, podsOfPools } from './load.ts';
import { defaultRescheduling, reschedulePool } from './rescheduling.ts';

interface PoolBalanceOptions {
  /** Pools whose loads differ by less than this part of capacity are left alone. */
  tolerance: number;
  /**
   * Highest use, in either resource, of a node that takes a replica. ABase's limit is 85 %; the
   * actual load may differ from the plan's by a few points.
   */
  mostUse: number;
  /** Rounds of Algorithm 2 in each pool afterwards. */
  rounds: number;
  limits: HardLimits;
}

const defaultPoolBalance: PoolBalanceOptions = {
  tolerance: 0.05,
  mostUse: 0.82,
  rounds: 144,
  limits: defaultRescheduling.limits,
};

/** A plan in the order in which it must be carried out: a node is moved once it is empty. */
export function poolBalance(options: Partial<PoolBalanceOptions> = {}): Policy {
  const all = { ...defaultPoolBalance, ...options };
  return {
    name: 'pool balance',
    plan(model) {
      const cluster = new WorkingCluster(model);
      const pools = podsOfPools(model).map((pods, pool) => ({ pods, pool }));
      const filled = pools.filter(({ pods }) => pods.length > 0);
      if (filled.length < 2) return [];
      const use = ({ pods }: { pods: number[] }): number => useOf(new PoolLoad(cluster, pods));
      const byUse = filled.toSorted((a, b) => use(a) - use(b));
      const [light, heavy] = [byUse[0]!, byUse.at(-1)!];
      if (use(heavy) - use(light) < all.tolerance) return [];
      const emptied = emptyNodes(
        cluster,
        light.pods,
        nodesToMove(cluster, light.pods, heavy.pods),
        all,
      );
      const moved = new Set(emptied.flatMap(({ node }) => node));
      const staying = light.pods.filter((pod) => !moved.has(cluster.nodeOfPod[pod]!));
      const joining = light.pods.filter((pod) => moved.has(cluster.nodeOfPod[pod]!));
      const names = model.pools;
      const changes = emptied.flatMap(({ node, proposals }): Proposal[] => [
        ...proposals,
        {
          change: { kind: 'move-node', node, fromPool: light.pool, toPool: heavy.pool },
          reason: `${names[heavy.pool]} is used more than ${names[light.pool]}, and node ${model.nodes.ids[node]} is empty`,
          figures: [],
          cost: { bytes: 0, replicas: 0 },
        },
      ]);
      for (const { change } of changes) if (change.kind === 'move-node') cluster.apply(change);
      const rest = { ...defaultRescheduling, ...all };
      return [
        ...changes,
        ...reschedulePool(cluster, staying, rest),
        ...reschedulePool(cluster, [...heavy.pods, ...joining], rest),
      ];
    },
    whyIdle(model) {
      const cluster = new WorkingCluster(model);
      const uses = podsOfPools(model).flatMap((pods, pool) =>
        pods.length === 0 ? [] : [{ pool, use: useOf(new PoolLoad(cluster, pods)) }],
      );
      if (uses.length < 2) return 'all nodes are in one pool';
      const byUse = uses.toSorted((a, b) => a.use - b.use);
      const told = [byUse[0]!, byUse.at(-1)!].map(
        ({ pool, use }) => `${model.pools[pool]} is used to ${percentOf(use)}`,
      );
      const apart = byUse.at(-1)!.use - byUse[0]!.use;
      return apart < all.tolerance
        ? `${told.join(', ')}: less than ${percentOf(all.tolerance)} apart`
        : `${told.join(', ')}, but no node of the former can be emptied into its peers`;
    },
  };
}

/** The resource that a pool is used most in. */
function useOf({ optimum }: PoolLoad): number {
  return Math.max(optimum.ru, optimum.storage);
}

/** So many nodes that both pools would be used alike, taking nodes for equal: load over capacity. */
function nodesToMove(
  cluster: WorkingCluster,
  light: readonly number[],
  heavy: readonly number[],
): number {
  const [a, b] = [light, heavy].map((pods) => useOf(new PoolLoad(cluster, pods)) * pods.length);
  const nodes = light.length + heavy.length;
  return Math.max(
    0,
    Math.min(light.length - 1, Math.round(light.length - (nodes * a!) / (a! + b!))),
  );
}

interface Emptied {
  node: number;
  proposals: Proposal[];
}

/** Empties the least used nodes one by one; stops before one whose replicas find no room. */
function emptyNodes(
  cluster: WorkingCluster,
  pods: readonly number[],
  count: number,
  options: PoolBalanceOptions,
): Emptied[] {
  const load = new PoolLoad(cluster, pods);
  const [ru, storage] = load.dimensions;
  const use = (pod: number): number =>
    Math.max(load.utilization(pod, ru), load.utilization(pod, storage));
  const order = [...pods].sort((a, b) => use(a) - use(b));
  const leaving = new Set(order.slice(0, count));
  const staying = order.slice(count);
  const emptied: Emptied[] = [];
  for (const pod of leaving) {
    const proposals = emptyPod(cluster, load, pod, staying, options);
    if (proposals === undefined) break;
    emptied.push({ node: cluster.nodeOfPod[pod]!, proposals });
  }
  return emptied;
}

/** Each replica, largest first, goes to the peer that is used least with it. Undefined where one finds none. */
function emptyPod(
  cluster: WorkingCluster,
  load: PoolLoad,
  pod: number,
  staying: readonly number[],
  { mostUse, limits }: PoolBalanceOptions,
): Proposal[] | undefined {
  const series = new Float64Array(cluster.dimensionCount * cluster.points);
  const names = cluster.model.pods.ids;
  const proposals: Proposal[] = [];
  const sizes = new Map(
    cluster.replicasOfPod[pod]!.map((replica) => {
      load.seriesOf(replica, series);
      return [replica, series.reduce((sum, value) => sum + value, 0)] as const;
    }),
  );
  const replicas = [...sizes.keys()].sort((a, b) => sizes.get(b)! - sizes.get(a)!);
  for (const [place, replica] of replicas.entries()) {
    load.seriesOf(replica, series);
    let best: { toPod: number; use: number } | undefined;
    for (const toPod of staying) {
      const use = Math.max(...load.dimensions.map((of) => load.utilization(toPod, of, series)));
      if (use > mostUse || (best !== undefined && use >= best.use)) continue;
      if (refusalOf(cluster, replica, toPod, limits) !== undefined) continue;
      best = { toPod, use };
    }
    if (best === undefined) {
      for (const { change } of proposals.reverse()) {
        if (change.kind !== 'move-replica') continue;
        cluster.apply({ ...change, fromPod: change.toPod, toPod: change.fromPod });
      }
      return undefined;
    }
    const change = { kind: 'move-replica', replica, fromPod: pod, toPod: best.toPod } as const;
    cluster.apply(change);
    const bytes = cluster.partitionBytes[cluster.partitionOf[replica]!]!;
    proposals.push({
      change,
      reason: `${names[pod]} is emptied to join another pool, and ${names[best.toPod]} is used least`,
      figures: [
        {
          name: `replicas on ${names[pod]}`,
          before: replicas.length - place,
          after: replicas.length - place - 1,
        },
      ],
      cost: { bytes, replicas: 1 },
    });
  }
  return proposals;
}
