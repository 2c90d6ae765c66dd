// Plans policies' changes of a cluster on one draw of its load and judges them on another.

import type { ClusterModel } from '../cluster-model.ts';
import { imbalance, mostUsedDimension, violations } from '../load-measures.ts';
import type { Change, Figure, Policy } from '../proposal.ts';
import { tenantDemand } from '../tenant-demand.ts';
import { WorkingCluster } from '../working-cluster.ts';
import { Anomalies } from '../xstor/anomalies.ts';
import { isWorse, stepsBeforeCheck } from '../xstor/daily-cycle.ts';
import { durationOf, type PodMove } from '../xstor/move-throttle.ts';
import { usualParameters } from '../xstor/parameters.ts';
import { Chance } from './chance.ts';

export interface ClusterFigures {
  /** The most heavily used dimension. All other figures refer to it. */
  dimension: string;
  /** Points of pods above 60 % of the limit. */
  violations: number;
  /** Pods that are above it at any point, and all pods. */
  podsAbove: number;
  pods: number;
  /** Points of pods that are anomalous by X-Stor's Algorithm 1. */
  anomalies: number;
  /** Standard deviation over pods, over the mean of all pods. */
  imbalance: number;
  /** Highest share of a pod's limit at any point. */
  peak: number;
  /** Points at which tenants demand more than their quota; absent if no tenant has a quota. */
  throttled?: number;
}

interface Step {
  kind: Change['kind'];
  /** Description of the change, with names. */
  text: string;
  reason: string;
  figures: readonly Figure[];
  bytes: number;
}

export interface Replay {
  policy: string;
  steps: Step[];
  /** Why there are none, with the figures that decided. */
  whyIdle?: string;
  /** Replicas copied, and bytes. */
  cost: {
    replicas: number;
    bytes: number;
    /** Until the last copy is made, by the throttle of moves. */
    seconds: number;
  };
  /** Before any step, on the load that was planned on. */
  planned: ClusterFigures;
  /** On the load that judges. */
  before: ClusterFigures;
  after: ClusterFigures;
  /** Whether the cluster is worse after a tenth of the steps. An executor would then stop. */
  wouldStop: boolean;
  planningMs: number;
}

/** `planned` and `judged` are the same cluster with different load; `clock` tells milliseconds. */
export function replay(
  planned: ClusterModel,
  judged: ClusterModel,
  policy: Policy,
  seed: number,
  clock: () => number,
): Replay {
  const startedAt = clock();
  const proposals = policy.plan(planned, { now: planned.startAt * 1000, rng: new Chance(seed) });
  const planningMs = clock() - startedAt;
  const cluster = new WorkingCluster(judged);
  const dimension = mostUsedDimension(cluster);
  const before = figuresOf(cluster, dimension);
  let wouldStop = false;
  const moves: PodMove[] = [];
  const steps = proposals.map(({ change, reason, figures, cost }, i): Step => {
    if (change.kind === 'move-replica') {
      moves.push({ from: cluster.podOf[change.replica]!, to: change.toPod, bytes: cost.bytes });
    }
    const text = textOf(cluster, change);
    cluster.apply(change);
    if (i + 1 === stepsBeforeCheck(proposals.length)) {
      wouldStop = isWorse(before, figuresOf(cluster, dimension));
    }
    return { kind: change.kind, text, reason, figures, bytes: cost.bytes };
  });
  return {
    policy: policy.name,
    steps,
    ...(steps.length === 0 && policy.whyIdle !== undefined
      ? { whyIdle: policy.whyIdle(planned) }
      : {}),
    cost: {
      replicas: proposals.reduce((sum, { cost }) => sum + cost.replicas, 0),
      bytes: proposals.reduce((sum, { cost }) => sum + cost.bytes, 0),
      seconds: durationOf(moves),
    },
    planned: figuresOf(new WorkingCluster(planned), dimension),
    before,
    after: figuresOf(cluster, dimension),
    wouldStop,
    planningMs,
  };
}

function figuresOf(cluster: WorkingCluster, dimension: number): ClusterFigures {
  const { podCount, points, podLoad, model } = cluster;
  const anomalies = new Anomalies(cluster, dimension, usualParameters);
  let [anomalous, peak, total, podsAbove] = [0, 0, 0, 0];
  for (let pod = 0; pod < podCount; pod++) {
    anomalous += anomalies.count(pod);
    const from = cluster.podSeries(pod, dimension);
    let most = 0;
    for (let t = 0; t < points; t++) {
      most = Math.max(most, podLoad[from + t]! / anomalies.limitOf(pod));
      total += podLoad[from + t]!;
    }
    peak = Math.max(peak, most);
    if (most > usualParameters.thresholdShare) podsAbove++;
  }
  const mean = total / points / podCount;
  return {
    dimension: model.dimensions[dimension]!,
    violations: violations(cluster, dimension, usualParameters.thresholdShare),
    podsAbove,
    pods: podCount,
    anomalies: anomalous,
    imbalance: mean > 0 ? imbalance(cluster, dimension) / mean : 0,
    peak,
    ...throttledOf(cluster),
  };
}

function throttledOf(cluster: WorkingCluster): { throttled?: number } {
  const { tenantQuota } = cluster;
  if (tenantQuota.every((quota) => quota === 0)) return {};
  const demand = tenantDemand(cluster);
  let throttled = 0;
  tenantQuota.forEach((quota, tenant) => {
    if (quota === 0) return;
    for (const value of demand(tenant).values) if (value > quota) throttled++;
  });
  return { throttled };
}

/** Describes a change before it is applied. */
function textOf(cluster: WorkingCluster, change: Change): string {
  const { model, partitionOf, podOf } = cluster;
  const { nodes, pods, partitions, tables, tenants, pools } = model;
  const pod = (replica: number): string => pods.ids[podOf[replica]!]!;
  // Halves of a split have no name of their own yet.
  const partition = (number: number): string => partitions.ids[number] ?? `new${number}`;
  switch (change.kind) {
    case 'transfer-leader':
      return `${pod(change.to)} leads ${partition(change.partition)} in place of ${pod(change.from)}`;
    case 'move-replica': {
      const name = partition(partitionOf[change.replica]!);
      return `a replica of ${name} moves from ${pod(change.replica)} to ${pods.ids[change.toPod]}`;
    }
    case 'add-replica':
      return `${pods.ids[change.pod]} gets a replica of ${partition(change.partition)}`;
    case 'remove-replica':
      return `${pod(change.replica)} drops its replica of ${partition(partitionOf[change.replica]!)}`;
    case 'split': {
      const left = `${Math.round(100 * change.leftShare[0]!)} % of its load`;
      return `${partition(change.partition)} is cut behind ${left}; the rest is ${partition(cluster.partitionCount)}`;
    }
    case 'merge':
      return `${partition(change.right)} becomes part of ${partition(change.left)}`;
    case 'move-table':
      return `${tables.ids[change.table]} moves to pool ${pools[change.pool]}`;
    case 'set-quota':
      return `the quota of ${tenants[change.tenant]} goes from ${Math.round(change.from)} to ${Math.round(change.to)}`;
    case 'scale-gateways':
      return `gateways go from ${change.from} to ${change.to}`;
    case 'move-node':
      return `node ${nodes.ids[change.node]} joins pool ${pools[change.toPool]}`;
    case 'move-pod':
      return `${pods.ids[change.pod]} moves from ${nodes.ids[change.fromNode]} to ${nodes.ids[change.toNode]}`;
    case 'disable-node':
      return `${nodes.ids[change.node]} goes offline`;
  }
}
