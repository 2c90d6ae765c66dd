// ABase's Algorithm 1 on a recorded cluster: quotas of tenants by the forecast of the coming week's highest hour. A tenant
// without a quota has none to change.

import { forecast } from '../../autoscaler/forecast/forecast.ts';
import { defaultPoolRules, mostQuota, type PoolUse } from '../../autoscaler/scaling/pool-rules.ts';
import {
  defaultScalingRules,
  planScaling,
  type ScalingRules,
} from '../../autoscaler/scaling/predictive-scaling.ts';
import { hoursPerDay } from '../../autoscaler/usage-history.ts';
import type { ClusterModel } from '../cluster-model.ts';
import { mostUsedDimension } from '../load-measures.ts';
import { freeOfCost, percentOf, type Policy, type Proposal } from '../proposal.ts';
import { tenantDemand } from '../tenant-demand.ts';
import { WorkingCluster } from '../working-cluster.ts';

/** Needs a day of load or more; proposes nothing for less. */
export function quotaScaling(rules: ScalingRules = defaultScalingRules): Policy {
  return {
    name: 'ABase quotas',
    plan: (model) =>
      outlooksOf(model, rules).flatMap(({ tenant, name, quota, highest, decision }): Proposal[] => {
        if (decision.kind !== 'scale' && decision.kind !== 'short of room') return [];
        const to = decision.quota;
        if (to === quota) return [];
        const figure = `highest hour of the next week by forecast, % of the quota of ${name}`;
        return [
          {
            change: { kind: 'set-quota', tenant, from: quota, to },
            reason: decision.reason,
            figures: [
              { name: figure, before: (100 * highest) / quota, after: (100 * highest) / to },
            ],
            cost: freeOfCost,
          },
        ];
      }),
    whyIdle(model) {
      const hours = hoursOf(model);
      if (hours < hoursPerDay) {
        return `a forecast needs ${hoursPerDay} hours of load, and the recording has ${hours}: --tile day repeats it`;
      }
      const outlooks = outlooksOf(model, rules);
      if (outlooks.length === 0) return 'no tenant has a quota (polyrow limit set)';
      const furthest = outlooks.reduce((best, one) => (offBand(one) > offBand(best) ? one : best));
      const { name, highest, quota, decision } = furthest;
      const told = `the highest hour of the next week is forecast at ${percentOf(highest / quota)} of the quota of ${name}`;
      return decision.kind === 'short of room'
        ? `${told}, and the pool has no room for more`
        : `${told}, which needs no change; of the ${outlooks.length} tenants with a quota none does`;
    },
  };
}

interface Outlook {
  tenant: number;
  name: string;
  quota: number;
  /** Forecast of the highest hour of the next week. */
  highest: number;
  decision: ReturnType<typeof planScaling>;
}

/** How far the forecast is from the middle of the band that Algorithm 1 wants. */
function offBand({ highest, quota }: Outlook): number {
  return Math.abs(highest / quota - 0.75);
}

/** Whole hours of the recording. */
function hoursOf({ points, pointSeconds }: ClusterModel): number {
  return Math.floor((points * pointSeconds) / 3600);
}

/** Of the tenants with a quota; of none, for a recording of less than a day. */
function outlooksOf(model: ClusterModel, rules: ScalingRules): Outlook[] {
  const cluster = new WorkingCluster(model);
  const hours = hoursOf(model);
  if (hours < hoursPerDay) return [];
  const pool = poolOf(cluster);
  const demand = tenantDemand(cluster);
  const most = Math.min(rules.mostQuota, mostQuota(pool, defaultPoolRules));
  return model.tenants.flatMap((name, tenant): Outlook[] => {
    const quota = cluster.tenantQuota[tenant]!;
    if (quota === 0) return [];
    const usage = byHour(demand(tenant), hours);
    const history = {
      usage,
      quota: new Float64Array(hours).fill(quota),
      known: new Uint8Array(hours).fill(1),
    };
    const { highest } = forecast(history);
    const state = {
      quota,
      partitions: 1,
      used: usage.at(-1)!,
      // A recording does not tell when the quota was last changed.
      hoursSinceChange: Infinity,
      isFixed: false,
    };
    const decision = planScaling(state, highest, { ...rules, mostQuota: most });
    return [{ tenant, name, quota, highest, decision }];
  });
}

/** Capacity and highest load of the nodes, in the dimension that is used most. */
function poolOf(cluster: WorkingCluster): PoolUse {
  const { model, points, podLoad, dimensionCount } = cluster;
  const dimension = mostUsedDimension(cluster);
  const nodeCapacity = new Float64Array(model.nodes.ids.length);
  const nodeLoad = new Float64Array(model.nodes.ids.length);
  model.pods.ids.forEach((_, pod) => {
    const from = cluster.podSeries(pod, dimension);
    let highest = 0;
    for (let t = 0; t < points; t++) highest = Math.max(highest, podLoad[from + t]!);
    const node = model.pods.node[pod]!;
    nodeCapacity[node]! += model.pods.limits[pod * dimensionCount + dimension]!;
    nodeLoad[node]! += highest;
  });
  const quotas = new Map(model.tenants.map((name, tenant) => [name, cluster.tenantQuota[tenant]!]));
  return { nodeCapacity, nodeLoad, quotas };
}

/**
 * The highest point of each whole hour: a quota limits the momentary demand, and an hour's mean
 * would be below the hour's bursts. An incomplete last hour is left out.
 */
function byHour({ values, pointSeconds }: Demand, hours: number): Float64Array {
  const highest = new Float64Array(hours);
  values.forEach((value, t) => {
    const hour = Math.floor((t * pointSeconds) / 3600);
    if (hour < hours) highest[hour] = Math.max(highest[hour]!, value);
  });
  return highest;
}

type Demand = ReturnType<ReturnType<typeof tenantDemand>>;
