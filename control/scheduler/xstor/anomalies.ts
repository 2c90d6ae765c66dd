// Anomalous points of pods (X-Stor, Algorithm 1, lines 1 to 5). A point is anomalous when a pod's load is above k times
// the mean of all pods at that point, or when it is part of a run of N points above the threshold. Loads are compared
// as shares of each pod's limit, which is the same where all pods are alike.

import type { WorkingCluster } from '../working-cluster.ts';
import type { SchedulingParameters } from './parameters.ts';

/** A series that is added to a pod's load, or taken from it when `factor` is negative. */
export interface Change {
  /** Where the series begins in the rows of the cluster. */
  from: number;
  factor: number;
}

export class Anomalies {
  readonly #cluster: WorkingCluster;
  readonly #dimension: number;
  readonly #parameters: SchedulingParameters;
  /** k times the mean share of all pods. Changes of leaders and moves leave it as it is. */
  readonly #ceiling: Float64Array;
  readonly #shares: Float64Array;

  constructor(cluster: WorkingCluster, dimension: number, parameters: SchedulingParameters) {
    this.#cluster = cluster;
    this.#dimension = dimension;
    this.#parameters = parameters;
    this.#shares = new Float64Array(cluster.points);
    this.#ceiling = new Float64Array(cluster.points);
    for (let pod = 0; pod < cluster.podCount; pod++) {
      const from = cluster.podSeries(pod, dimension);
      const factor = parameters.k / this.limitOf(pod) / cluster.podCount;
      for (let t = 0; t < cluster.points; t++) {
        this.#ceiling[t]! += cluster.podLoad[from + t]! * factor;
      }
    }
  }

  limitOf(pod: number): number {
    const { model, dimensionCount } = this.#cluster;
    return model.pods.limits[pod * dimensionCount + this.#dimension]!;
  }

  /** Anomalous points of a pod, with changes to its load. */
  count(pod: number, ...changes: Change[]): number {
    let found = 0;
    this.#visit(pod, changes, () => found++);
    return found;
  }

  /** The anomalous points of a pod, ascending. */
  pointsOf(pod: number): number[] {
    const points: number[] = [];
    this.#visit(pod, [], (t) => points.push(t));
    return points;
  }

  #visit(pod: number, changes: readonly Change[], found: (t: number) => void): void {
    const { points, podLoad, rows } = this.#cluster;
    const { run, thresholdShare } = this.#parameters;
    const shares = this.#shares;
    const from = this.#cluster.podSeries(pod, this.#dimension);
    const scale = 1 / this.limitOf(pod);
    for (let t = 0; t < points; t++) shares[t] = podLoad[from + t]! * scale;
    for (const { from: series, factor } of changes) {
      const change = factor * scale;
      for (let t = 0; t < points; t++) shares[t]! += rows[series + t]! * change;
    }
    let above = 0;
    for (let t = 0; t <= points; t++) {
      if (t < points && shares[t]! > thresholdShare) {
        above++;
        continue;
      }
      // The run that has just ended counts as a whole, or only its points far above the mean.
      for (let i = t - above; i < t; i++) {
        if (above >= run || shares[i]! > this.#ceiling[i]!) found(i);
      }
      above = 0;
      if (t < points && shares[t]! > this.#ceiling[t]!) found(t);
    }
  }
}
