// How a load lies on the pods of a cluster: X-Stor's eqs. 7 and 8, and the largest over the mean.

import type { WorkingCluster } from './working-cluster.ts';

/** The dimension with the highest utilization over all pods. */
export function mostUsedDimension(cluster: WorkingCluster): number {
  const { dimensionCount, points, podCount, model } = cluster;
  const shares = model.dimensions.map((_, dimension) => {
    let [used, limit] = [0, 0];
    for (let pod = 0; pod < podCount; pod++) {
      limit += model.pods.limits[pod * dimensionCount + dimension]! * points;
      const from = cluster.podSeries(pod, dimension);
      for (let t = 0; t < points; t++) used += cluster.podLoad[from + t]!;
    }
    return limit > 0 ? used / limit : 0;
  });
  return shares.indexOf(Math.max(...shares));
}

/** Points at which pods are above `share` of their limit, over all pods (eq. 7). */
export function violations(cluster: WorkingCluster, dimension: number, share = 0.6): number {
  let count = 0;
  for (let pod = 0; pod < cluster.podCount; pod++) {
    const threshold = cluster.model.pods.limits[pod * cluster.dimensionCount + dimension]! * share;
    const from = cluster.podSeries(pod, dimension);
    for (let t = 0; t < cluster.points; t++) if (cluster.podLoad[from + t]! > threshold) count++;
  }
  return count;
}

/** Standard deviation over pods, averaged over points (eq. 8). */
export function imbalance(cluster: WorkingCluster, dimension: number): number {
  const { podCount, points, podLoad } = cluster;
  let total = 0;
  for (let t = 0; t < points; t++) {
    let [sum, squares] = [0, 0];
    for (let pod = 0; pod < podCount; pod++) {
      const load = podLoad[cluster.podSeries(pod, dimension) + t]!;
      sum += load;
      squares += load * load;
    }
    const mean = sum / podCount;
    total += Math.sqrt(Math.max(0, squares / podCount - mean * mean));
  }
  return total / points;
}

/** Load of the pod that is used most, over the mean of all, each over its limit; averaged over points. */
export function maxOverMean(cluster: WorkingCluster, dimension: number): number {
  const { podCount, points, podLoad, model, dimensionCount } = cluster;
  let total = 0;
  for (let t = 0; t < points; t++) {
    let [sum, most] = [0, 0];
    for (let pod = 0; pod < podCount; pod++) {
      const limit = model.pods.limits[pod * dimensionCount + dimension]!;
      const share = podLoad[cluster.podSeries(pod, dimension) + t]! / limit;
      sum += share;
      most = Math.max(most, share);
    }
    total += sum > 0 ? (most * podCount) / sum : 1;
  }
  return total / points;
}
