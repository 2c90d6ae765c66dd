// Demand of tenants: the load of their leaders, which their quotas limit.

import { mostUsedDimension } from './load-measures.ts';
import type { WorkingCluster } from './working-cluster.ts';

interface TenantDemand {
  /** Units a second at each point, in the dimension that is used most. */
  values: Float64Array;
  pointSeconds: number;
}

export function tenantDemand(cluster: WorkingCluster): (tenant: number) => TenantDemand {
  const { model, points, dimensionCount, rows, leaderRow, leaderScale, tableOf } = cluster;
  const dimension = mostUsedDimension(cluster);
  const partitions = new Map<number, number[]>();
  tableOf.forEach((table, partition) => {
    const tenant = model.tables.tenant[table]!;
    const of = partitions.get(tenant);
    if (of === undefined) partitions.set(tenant, [partition]);
    else of.push(partition);
  });
  return (tenant) => {
    const values = new Float64Array(points);
    for (const partition of partitions.get(tenant) ?? []) {
      const from = (leaderRow[partition]! * dimensionCount + dimension) * points;
      const scale = leaderScale[partition]!;
      for (let t = 0; t < points; t++) values[t]! += rows[from + t]! * scale;
    }
    return { values, pointSeconds: model.pointSeconds };
  };
}
