// A cluster as ABase's policies see it: a value for each hour of the day, of request units and of
// storage. Entities keep their numbers, so that proposals for the view fit the cluster.

import type { ClusterModel } from '../cluster-model.ts';
import { mostUsedDimension } from '../load-measures.ts';
import type { Policy } from '../proposal.ts';
import { WorkingCluster } from '../working-cluster.ts';
import { hourOfDayMaxima } from './load.ts';

const hours = 24;
const hourSeconds = 3600;
const dimensions = ['ru', 'storage'];

/** The same policy for clusters of any dimensions and points. */
export function byHour(policy: Policy): Policy {
  return {
    name: policy.name,
    plan: (model, environment) => policy.plan(hourlyView(model), environment),
    ...(policy.whyIdle === undefined
      ? {}
      : { whyIdle: (model) => policy.whyIdle!(hourlyView(model)) }),
  };
}

/**
 * Request units are the dimension `ru`, or else the most used one: for each hour of day the highest
 * mean of that hour. Storage is the bytes of a replica, over the capacity of the pod's disk.
 */
export function hourlyView(model: ClusterModel): ClusterModel {
  const isOne =
    model.points === hours &&
    model.dimensions.length === dimensions.length &&
    dimensions.every((name) => model.dimensions.includes(name));
  if (isOne) return model;
  const { pods, partitions } = model;
  const cluster = new WorkingCluster(model);
  const named = model.dimensions.indexOf('ru');
  const ru = named >= 0 ? named : mostUsedDimension(cluster);
  const count = partitions.ids.length;
  const rows = new Float32Array(count * 2 * dimensions.length * hours);
  const known = new Map<number, Float64Array>();
  const fill = (at: number, row: number, scale: number, bytes: number): void => {
    let values = known.get(row);
    if (values === undefined) known.set(row, (values = hourlyRow(model, row, ru)));
    const from = at * dimensions.length * hours;
    for (let hour = 0; hour < hours; hour++) rows[from + hour] = values[hour]! * scale;
    rows.fill(bytes, from + hours, from + 2 * hours);
  };
  for (let partition = 0; partition < count; partition++) {
    const bytes = partitions.bytes[partition]!;
    const { leaderRow, leaderScale, followerRow, followerScale } = partitions;
    fill(2 * partition, leaderRow[partition]!, leaderScale[partition]!, bytes);
    fill(2 * partition + 1, followerRow[partition]!, followerScale[partition]!, bytes);
  }
  const limits = pods.ids.flatMap((_, pod) => {
    const disk = pods.diskBytes[pod]!;
    return [pods.limits[pod * model.dimensions.length + ru]!, disk > 0 ? disk : Infinity];
  });
  const ones = new Float64Array(count).fill(1);
  return {
    ...model,
    dimensions,
    points: hours,
    pointSeconds: hourSeconds,
    startAt: 0,
    pods: { ...pods, limits: Float64Array.from(limits) },
    partitions: {
      ...partitions,
      leaderRow: Uint32Array.from(ones, (_, partition) => 2 * partition),
      leaderScale: ones,
      followerRow: Uint32Array.from(ones, (_, partition) => 2 * partition + 1),
      followerScale: ones,
    },
    rows,
  };
}

/** Hourly means of whole days, hours without a point being 0, and of them the highest of each hour of day. */
function hourlyRow(
  { rows, points, pointSeconds, startAt, dimensions: { length } }: ClusterModel,
  row: number,
  dimension: number,
): Float64Array {
  const firstHour = Math.floor(startAt / hourSeconds);
  const before = firstHour % hours;
  const span = before + Math.ceil(((startAt % hourSeconds) + points * pointSeconds) / hourSeconds);
  const days = Math.ceil(span / hours);
  const sums = new Float64Array(days * hours);
  const counts = new Float64Array(days * hours);
  const from = (row * length + dimension) * points;
  for (let t = 0; t < points; t++) {
    const hour = Math.floor((startAt + t * pointSeconds) / hourSeconds) - firstHour + before;
    sums[hour]! += rows[from + t]!;
    counts[hour]!++;
  }
  return hourOfDayMaxima(sums.map((sum, hour) => (counts[hour] === 0 ? 0 : sum / counts[hour]!)));
}
