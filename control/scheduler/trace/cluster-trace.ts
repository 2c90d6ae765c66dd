// The trace of a running cluster: nodes, groups and replicas as its metadata place them, with the request units that each
// replica served. A node has a pod for each plane, and a partition of the trace is a group of replicas: a partition of a
// divided table, or all undivided tables of a tenant and model, which only move together.

import type { GroupDefinition, NodeState as MemberState } from '../../../contracts/cluster.ts';
import type { NodeState } from '../cluster-model.ts';
import type { Trace, TracePartition, TracePod, TraceSeries, TraceTable } from './trace.ts';

type Plane = 'redis' | 'influx';

interface RecordedNode {
  readonly node: number;
  readonly zone: string;
  readonly state: MemberState;
}

interface RecordedReplica {
  readonly node: number;
  readonly state: GroupDefinition['replicas'][number]['state'];
  readonly bytes: number;
}

interface RecordedGroup extends Pick<GroupDefinition, 'group' | 'tenant' | 'model' | 'partition'> {
  /** Node that leads; 0 while none does. */
  readonly leader: number;
  readonly replicas: readonly RecordedReplica[];
}

/** Load of a plane of a node; without one that could not be asked. */
export interface RecordedPlane {
  readonly node: number;
  readonly plane: Plane;
  /** Request units a second that the plane can serve; 0 where that is not known. */
  readonly capacity: number;
  /** Units a second in each minute, by group. */
  readonly units: ReadonlyMap<number, ArrayLike<number>>;
}

export interface RecordedCluster {
  /** Unix milliseconds of the first minute. */
  readonly startAt: number;
  readonly minutes: number;
  readonly nodes: readonly RecordedNode[];
  readonly groups: readonly RecordedGroup[];
  readonly planes: readonly RecordedPlane[];
  readonly tenantOf: (number: number) => string;
  /** Table of a partition; undefined where it is not known. */
  readonly tableOf: (partition: number) => string | undefined;
  /** Request units a second of a tenant on a plane, by `tenant/plane`. */
  readonly quotas: ReadonlyMap<string, number>;
}

/** Share of its limit that a pod uses on average, where no plane knows its capacity. */
const usedOnAverage = 0.4;
const planes: readonly Plane[] = ['redis', 'influx'];
const states: Readonly<Record<Exclude<MemberState, 'removed'>, NodeState>> = {
  joining: 'adding',
  up: 'active',
  draining: 'draining',
};

/** A plane that served nothing is left out: its pods would only lower the mean that others are compared with. */
export function clusterTrace(cluster: RecordedCluster): Trace {
  const { startAt, minutes, nodes } = cluster;
  const present = nodes.filter(({ state }) => state !== 'removed');
  const members = new Set(present.map(({ node }) => node));
  const busy = planes.filter((plane) => totalOf(cluster, plane) > 0);
  const recorded = cluster.groups
    .filter(({ model }) => busy.includes(planeOf(model)))
    .map((group) => recordOf(cluster, group, members));
  const parts = recorded.filter((one) => one !== undefined);
  return {
    header: {
      format: 'polyrow-trace',
      version: 1,
      startAt: new Date(startAt).toISOString(),
      pointSeconds: 60,
      points: minutes,
      dimensions: ['ru'],
    },
    nodes: present.map(({ node, zone, state }) => ({
      id: `node${node}`,
      zone,
      state: states[state as keyof typeof states],
    })),
    disks: [],
    pods: podsOf(cluster, busy, present),
    tables: tablesOf(cluster, parts),
    series: parts.flatMap(({ series }) => series),
    partitions: parts.map(({ partition }) => partition),
  };
}

function planeOf(model: GroupDefinition['model']): Plane {
  return model === 'tsm' ? 'influx' : 'redis';
}

/** Sum of the units a second that all replicas in a plane served in each minute. */
function totalOf(cluster: RecordedCluster, plane: Plane): number {
  let total = 0;
  for (const one of cluster.planes) {
    if (one.plane !== plane) continue;
    for (const values of one.units.values()) {
      for (let minute = 0; minute < cluster.minutes; minute++) total += values[minute]!;
    }
  }
  return total;
}

interface Recorded {
  readonly tenant: string;
  readonly plane: Plane;
  readonly series: readonly TraceSeries[];
  readonly partition: TracePartition;
}

/** Undefined for a group without a replica on any node. */
function recordOf(
  cluster: RecordedCluster,
  group: RecordedGroup,
  members: ReadonlySet<number>,
): Recorded | undefined {
  const { minutes, tenantOf, tableOf } = cluster;
  const replicas = group.replicas.filter(
    ({ node, state }) => state !== 'leaving' && members.has(node),
  );
  if (replicas.length === 0) return undefined;
  const plane = planeOf(group.model);
  const tenant = tenantOf(group.tenant);
  const table =
    group.partition === undefined
      ? `${tenant}/${group.model}`
      : (tableOf(group.partition) ?? `${tenant}/partitions`);
  const id = group.partition === undefined ? table : `${table}/${group.partition}`;
  const loads = replicas.map(({ node }) => unitsAt(cluster, node, plane, group.group));
  const [leader, follower] = byRole(loads, minutes);
  // Without a leader at the moment of the recording, a voter is taken for it.
  const leads =
    replicas.find(({ node }) => node === group.leader) ??
    replicas.find(({ state }) => state === 'voter') ??
    replicas[0]!;
  return {
    tenant,
    plane,
    series: [
      { id: `${id} leader`, values: { ru: leader } },
      { id: `${id} follower`, values: { ru: follower } },
    ],
    partition: {
      id,
      table,
      bytes: Math.max(...replicas.map(({ bytes }) => bytes)),
      leader: { series: `${id} leader` },
      follower: { series: `${id} follower` },
      replicas: replicas.map((replica) => ({
        pod: podId(replica.node, plane),
        leads: replica === leads,
        // A learner cannot lead yet.
        healthy: replica.state === 'voter',
      })),
    },
  };
}

function unitsAt(
  cluster: RecordedCluster,
  node: number,
  plane: Plane,
  group: number,
): ArrayLike<number> {
  const found = cluster.planes.find((one) => one.node === node && one.plane === plane);
  return found?.units.get(group) ?? new Float32Array(cluster.minutes);
}

/** The replica that served most in a minute led in it; the others are followers, of the same load each. */
function byRole(
  loads: readonly ArrayLike<number>[],
  minutes: number,
): [Float32Array, Float32Array] {
  const leader = new Float32Array(minutes);
  const follower = new Float32Array(minutes);
  for (let minute = 0; minute < minutes; minute++) {
    let [most, all] = [0, 0];
    for (const units of loads) {
      most = Math.max(most, units[minute]!);
      all += units[minute]!;
    }
    leader[minute] = most;
    if (loads.length > 1) follower[minute] = (all - most) / (loads.length - 1);
  }
  return [leader, follower];
}

function podId(node: number, plane: Plane): string {
  return `node${node}/${plane}`;
}

function podsOf(
  cluster: RecordedCluster,
  busy: readonly Plane[],
  nodes: readonly RecordedNode[],
): TracePod[] {
  return busy.flatMap((plane) =>
    nodes.map(({ node }) => ({
      id: podId(node, plane),
      node: `node${node}`,
      model: plane === 'influx' ? ('series' as const) : ('kv' as const),
      limits: [limitOf(cluster, node, plane, nodes.length)],
    })),
  );
}

/** What the plane knows of itself, or the largest that another node's knows, or what makes the average use 40 %. */
function limitOf(cluster: RecordedCluster, node: number, plane: Plane, nodes: number): number {
  const same = cluster.planes.filter((one) => one.plane === plane);
  const own = same.find((one) => one.node === node)?.capacity ?? 0;
  if (own > 0) return own;
  const most = Math.max(0, ...same.map(({ capacity }) => capacity));
  if (most > 0) return most;
  return totalOf(cluster, plane) / cluster.minutes / nodes / usedOnAverage;
}

/** A tenant's quota on a plane is written once, at the first of its tables: a model adds up those of all tables. */
function tablesOf({ quotas }: RecordedCluster, parts: readonly Recorded[]): TraceTable[] {
  const tables = new Map<string, TraceTable>();
  const told = new Set<string>();
  for (const { tenant, plane, partition } of parts) {
    if (tables.has(partition.table)) continue;
    const key = `${tenant}/${plane}`;
    const quota = told.has(key) ? undefined : quotas.get(key);
    told.add(key);
    const id = partition.table;
    tables.set(id, quota === undefined ? { id, tenant } : { id, tenant, quota });
  }
  return [...tables.values()];
}
