// Load of data nodes as ABase measures it (section 5.3): a value for each hour of the day, in two dimensions. A data node
// is a pod of the model, whose rows have 24 points.

import { type ClusterModel, dimensionOf } from '../cluster-model.ts';
import type { WorkingCluster } from '../working-cluster.ts';

const hoursOfDay = 24;

/**
 * The load vector of a replica: for each hour of day the highest of that hour on all days. `hourly` has hourly means of
 * whole days, oldest first; the first is of hour 0.
 */
export function hourOfDayMaxima(hourly: ArrayLike<number>): Float64Array {
  if (hourly.length === 0 || hourly.length % hoursOfDay !== 0) {
    throw new RangeError(`a load vector needs whole days of hours, not ${hourly.length}`);
  }
  const maxima = new Float64Array(hoursOfDay);
  for (let hour = 0; hour < hourly.length; hour++) {
    const phase = hour % hoursOfDay;
    maxima[phase] = Math.max(maxima[phase]!, hourly[hour]!);
  }
  return maxima;
}

/** Reference for comparing a pool's nodes: its load over its capacity in each dimension. */
interface Optimum {
  ru: number;
  storage: number;
}

/** A working cluster with the loads of a pool's nodes at hand. */
export class PoolLoad {
  readonly cluster: WorkingCluster;
  readonly pods: readonly number[];
  readonly dimensions: readonly [ru: number, storage: number];
  readonly optimum: Optimum;

  /** Throws a RangeError for a model without the dimensions `ru` and `storage`. */
  constructor(cluster: WorkingCluster, pods: readonly number[]) {
    this.cluster = cluster;
    this.pods = pods;
    this.dimensions = [dimensionOf(cluster.model, 'ru'), dimensionOf(cluster.model, 'storage')];
    this.optimum = { ru: this.#use(this.dimensions[0]), storage: this.#use(this.dimensions[1]) };
  }

  /** Load of the pool, which is the sum in its highest hour, over capacity. */
  #use(dimension: number): number {
    const { cluster, pods } = this;
    let highest = 0;
    for (let t = 0; t < cluster.points; t++) {
      let sum = 0;
      for (const pod of pods) sum += cluster.podLoad[cluster.podSeries(pod, dimension) + t]!;
      highest = Math.max(highest, sum);
    }
    const capacity = pods.reduce((sum, pod) => sum + this.capacity(pod, dimension), 0);
    return capacity > 0 ? highest / capacity : 0;
  }

  capacity(pod: number, dimension: number): number {
    return this.cluster.model.pods.limits[pod * this.cluster.dimensionCount + dimension]!;
  }

  /** Load of a node in its highest hour, over capacity. With a replica's series, times `sign`, on top of it. */
  utilization(pod: number, dimension: number, series?: Float64Array, sign = 1): number {
    const { podLoad, points } = this.cluster;
    let at = this.cluster.podSeries(pod, dimension);
    let highest = 0;
    if (series === undefined) {
      for (const end = at + points; at < end; at++) highest = Math.max(highest, podLoad[at]!);
    } else {
      const from = dimension * points;
      for (let t = 0; t < points; t++) {
        const load = podLoad[at + t]! + sign * series[from + t]!;
        if (load > highest) highest = load;
      }
    }
    return highest / this.capacity(pod, dimension);
  }

  /** The series of a replica in all dimensions, into `into`. */
  seriesOf(replica: number, into: Float64Array): void {
    const { cluster } = this;
    const from = cluster.seriesOf(replica, 0);
    const scale = cluster.scaleOf(replica);
    for (let i = 0; i < into.length; i++) into[i] = cluster.rows[from + i]! * scale;
  }

  /** L of a node: how far it is from the optimum. With a replica's series on top, or taken off. */
  deviation(pod: number, series?: Float64Array, sign = 1): number {
    const [ru, storage] = this.dimensions;
    return Math.hypot(
      this.utilization(pod, ru, series, sign) - this.optimum.ru,
      this.utilization(pod, storage, series, sign) - this.optimum.storage,
    );
  }

  /** G of moving a replica: by how much the larger deviation of both nodes falls. */
  gain(replica: number, toPod: number): number {
    const series = new Float64Array(this.cluster.dimensionCount * this.cluster.points);
    this.seriesOf(replica, series);
    const fromPod = this.cluster.podOf[replica]!;
    return (
      Math.max(this.deviation(fromPod), this.deviation(toPod)) -
      Math.max(this.deviation(fromPod, series, -1), this.deviation(toPod, series))
    );
  }
}

/** Pods that hold data, of each pool, on nodes that are neither being added nor disabled. */
export function podsOfPools(model: ClusterModel): number[][] {
  const pools: number[][] = model.pools.map(() => []);
  model.pods.ids.forEach((_, pod) => {
    const node = model.pods.node[pod]!;
    if (model.pods.model[pod] === 'gateway' || model.nodes.state[node] === 'adding') return;
    pools[model.nodes.pool[node]!]!.push(pod);
  });
  return pools;
}
