// Figures of a cluster before and after replica scheduling, as in tables 6 and 7 of X-Stor.

import { imbalance, violations } from '../../../control/scheduler/load-measures.ts';
import { Anomalies } from '../../../control/scheduler/xstor/anomalies.ts';
import { usualParameters } from '../../../control/scheduler/xstor/parameters.ts';
import type { WorkingCluster } from '../../../control/scheduler/working-cluster.ts';
import type { Heat } from '../experiment.ts';

/** A pod that is used more than this is taken to be used so much: its latency would be endless otherwise. */
const mostUse = 0.95;

/** Dimension 0 is judged: W-REPL uses it most. */
export function schedulingFigures(cluster: WorkingCluster): Record<string, number> {
  const anomalies = new Anomalies(cluster, 0, usualParameters);
  const pods = Array.from({ length: cluster.podCount }, (_, pod) => pod);
  const latencies = pods.map((pod) => latenciesOf(cluster, pod));
  const relative = byMinute(latencies);
  // Each pod by the 99th percentile of its minutes.
  const peaks = overLeast(latencies.map((one) => percentile(Float64Array.from(one).sort(), 0.99)));
  return {
    violations: violations(cluster, 0, usualParameters.thresholdShare),
    anomalies: pods.reduce((sum, pod) => sum + anomalies.count(pod), 0),
    highLoad: pods.filter((pod) => anomalies.count(pod) > usualParameters.warning).length,
    std: imbalance(cluster, 0),
    latencyMean: mean(relative),
    latencyMedian: percentile(relative, 0.5),
    latencyP99: percentile(relative, 0.99),
    peakMean: mean(peaks),
    peakMedian: percentile(peaks, 0.5),
    peakP99: percentile(peaks, 0.99),
  };
}

/** 1 / (1 - u), minute by minute. */
function latenciesOf(cluster: WorkingCluster, pod: number): Float64Array {
  const from = cluster.podSeries(pod, 0);
  const limit = cluster.model.pods.limits[pod * cluster.dimensionCount]!;
  return Float64Array.from(
    { length: cluster.points },
    (_, t) => 1 / (1 - Math.min(mostUse, cluster.podLoad[from + t]! / limit)),
  );
}

/** Latency of each pod and minute, above the minimum of all pods in that minute; ascending. */
function byMinute(latencies: readonly Float64Array[]): Float64Array {
  const points = latencies[0]!.length;
  const all = new Float64Array(points * latencies.length);
  for (let t = 0; t < points; t++) {
    const least = Math.min(...latencies.map((one) => one[t]!));
    latencies.forEach((one, pod) => {
      all[t * latencies.length + pod] = one[t]! / least - 1;
    });
  }
  return all.sort();
}

function overLeast(values: readonly number[]): Float64Array {
  const least = Math.min(...values);
  return Float64Array.from(values, (value) => value / least - 1).sort();
}

function percentile(ascending: Float64Array, share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))]!;
}

function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Share of its limit that each pod uses, minute by minute; the pods in the order of `order`. */
export function heatOf(cluster: WorkingCluster, order: readonly number[]): Heat {
  const rows = order.map((pod) => {
    const from = cluster.podSeries(pod, 0);
    const limit = cluster.model.pods.limits[pod * cluster.dimensionCount]!;
    return cluster.podLoad.slice(from, from + cluster.points).map((load) => load / limit);
  });
  return { rows, most: 0.7, x: [0, cluster.points] };
}

/** Pods, the one with most load first. */
export function byLoad(cluster: WorkingCluster): number[] {
  const total = (pod: number): number => {
    const from = cluster.podSeries(pod, 0);
    return cluster.podLoad.subarray(from, from + cluster.points).reduce((sum, load) => sum + load);
  };
  const totals = Array.from({ length: cluster.podCount }, (_, pod) => total(pod));
  return totals.map((_, pod) => pod).sort((a, b) => totals[b]! - totals[a]!);
}
