// Makes a `ClusterModel` out of documents, one entity at a time.

import type { ClusterModel, NodeState, PodModel } from './cluster-model.ts';

interface NodeSpec {
  id: string;
  zone?: string;
  pool?: string;
  state?: NodeState;
  hardware?: 'ssd' | 'memory';
  memoryBytes?: number;
}

interface PodSpec {
  id: string;
  node: number;
  disk?: number;
  subcluster?: number;
  model?: PodModel;
  /** Limits in PRU a second, one for each dimension. */
  limits: readonly number[];
  /** LRU a second; if absent, the minimum of `limits`. */
  lru?: number;
  memoryBytes?: number;
  /** Disk capacity in bytes; unbounded if absent. */
  diskBytes?: number;
}

interface PartitionSpec {
  id: string;
  table: number;
  bytes?: number;
  /** Allocated bytes; if absent, equal to `bytes`. */
  allocatedBytes?: number;
  allocatedLru?: number;
  leader: RowUse;
  /** Load of the followers; if absent, followers have no load. */
  follower?: RowUse;
}

interface RowUse {
  row: number;
  scale?: number;
}

interface Shape {
  dimensions: readonly string[];
  points: number;
  pointSeconds: number;
  startAt?: number;
}

/** Each `add` returns the number of the new entity. Throws a RangeError for a reference to an unknown entity. */
export class ClusterBuilder {
  readonly #shape: Required<Shape>;
  readonly #zones = new Names();
  readonly #pools = new Names();
  readonly #tenants = new Names();
  readonly #nodes: Required<NodeSpec>[] = [];
  readonly #disks: { id: string; node: number; capacityBytes: number }[] = [];
  readonly #pods: Required<PodSpec>[] = [];
  readonly #tables: { id: string; tenant: number; quota: number }[] = [];
  readonly #partitions: Required<PartitionSpec>[] = [];
  readonly #replicas: { partition: number; pod: number; isLeader: boolean; isHealthy: boolean }[] =
    [];
  #rows: Float32Array;
  #rowCount = 0;

  constructor(shape: Shape, expectedRows = 64) {
    this.#shape = { startAt: 0, ...shape };
    this.#rows = new Float32Array(expectedRows * this.#rowLength);
  }

  get #rowLength(): number {
    return this.#shape.dimensions.length * this.#shape.points;
  }

  node(spec: NodeSpec): number {
    const all = { zone: '', pool: '', state: 'active', hardware: 'ssd', memoryBytes: 0 } as const;
    return this.#nodes.push({ ...all, ...spec }) - 1;
  }

  disk(id: string, node: number, capacityBytes = Infinity): number {
    within(node, this.#nodes, 'node');
    return this.#disks.push({ id, node, capacityBytes }) - 1;
  }

  pod(spec: PodSpec): number {
    within(spec.node, this.#nodes, 'node');
    if (spec.disk !== undefined && spec.disk >= 0) within(spec.disk, this.#disks, 'disk');
    if (spec.limits.length !== this.#shape.dimensions.length) {
      throw new RangeError(`pod ${spec.id}: one limit for each dimension is needed`);
    }
    const all = { disk: -1, subcluster: -1, model: 'kv', memoryBytes: 0 } as const;
    const rest = { lru: Math.min(...spec.limits), diskBytes: Infinity };
    return this.#pods.push({ ...all, ...rest, ...spec }) - 1;
  }

  table(id: string, tenant = '', quota = 0): number {
    return this.#tables.push({ id, tenant: this.#tenants.numberOf(tenant), quota }) - 1;
  }

  /** A row of load; `values` has the points of the first dimension, then those of the next. */
  row(values: ArrayLike<number>): number {
    const at = this.#rowCount * this.#rowLength;
    if (values.length !== this.#rowLength) {
      throw new RangeError(`a row has ${this.#rowLength} values, not ${values.length}`);
    }
    if (at + values.length > this.#rows.length) {
      const grown = new Float32Array(Math.max(this.#rows.length * 2, values.length));
      grown.set(this.#rows);
      this.#rows = grown;
    }
    this.#rows.set(values, at);
    return this.#rowCount++;
  }

  partition(spec: PartitionSpec): number {
    within(spec.table, this.#tables, 'table');
    const { leader, follower = { row: leader.row, scale: 0 } } = spec;
    for (const { row } of [leader, follower]) {
      if (!(row >= 0 && row < this.#rowCount)) throw new RangeError(`there is no row ${row}`);
    }
    const all = { bytes: 0, allocatedLru: 0, allocatedBytes: spec.bytes ?? 0 };
    return this.#partitions.push({ ...all, ...spec, leader, follower }) - 1;
  }

  replica(partition: number, pod: number, isLeader: boolean, isHealthy = true): number {
    within(partition, this.#partitions, 'partition');
    within(pod, this.#pods, 'pod');
    return this.#replicas.push({ partition, pod, isLeader, isHealthy }) - 1;
  }

  build(): ClusterModel {
    const [nodes, disks, pods] = [this.#nodes, this.#disks, this.#pods];
    const [tables, partitions, replicas] = [this.#tables, this.#partitions, this.#replicas];
    const lengthOfRow = this.#rowLength;
    return {
      ...this.#shape,
      zones: this.#zones.all,
      pools: this.#pools.all,
      tenants: this.#tenants.all,
      nodes: {
        ids: nodes.map(({ id }) => id),
        zone: Uint16Array.from(nodes, ({ zone }) => this.#zones.numberOf(zone)),
        pool: Uint16Array.from(nodes, ({ pool }) => this.#pools.numberOf(pool)),
        state: nodes.map(({ state }) => state),
        hardware: nodes.map(({ hardware }) => hardware),
        memoryBytes: Float64Array.from(nodes, ({ memoryBytes }) => memoryBytes),
      },
      disks: {
        ids: disks.map(({ id }) => id),
        node: Uint32Array.from(disks, ({ node }) => node),
        capacityBytes: Float64Array.from(disks, ({ capacityBytes }) => capacityBytes),
      },
      pods: {
        ids: pods.map(({ id }) => id),
        node: Uint32Array.from(pods, ({ node }) => node),
        disk: Int32Array.from(pods, ({ disk }) => disk),
        subcluster: Int32Array.from(pods, ({ subcluster }) => subcluster),
        model: pods.map(({ model }) => model),
        limits: Float64Array.from(pods.flatMap(({ limits }) => [...limits])),
        lru: Float64Array.from(pods, ({ lru }) => lru),
        memoryBytes: Float64Array.from(pods, ({ memoryBytes }) => memoryBytes),
        diskBytes: Float64Array.from(pods, ({ diskBytes }) => diskBytes),
      },
      tables: {
        ids: tables.map(({ id }) => id),
        tenant: Uint32Array.from(tables, ({ tenant }) => tenant),
        quota: Float64Array.from(tables, ({ quota }) => quota),
      },
      partitions: {
        ids: partitions.map(({ id }) => id),
        table: Uint32Array.from(partitions, ({ table }) => table),
        bytes: Float64Array.from(partitions, ({ bytes }) => bytes),
        allocatedBytes: Float64Array.from(partitions, (one) => one.allocatedBytes),
        allocatedLru: Float64Array.from(partitions, ({ allocatedLru }) => allocatedLru),
        leaderRow: Uint32Array.from(partitions, ({ leader }) => leader.row),
        leaderScale: Float64Array.from(partitions, ({ leader }) => leader.scale ?? 1),
        followerRow: Uint32Array.from(partitions, ({ follower }) => follower.row),
        followerScale: Float64Array.from(partitions, ({ follower }) => follower.scale ?? 1),
      },
      replicas: {
        partition: Uint32Array.from(replicas, ({ partition }) => partition),
        pod: Uint32Array.from(replicas, ({ pod }) => pod),
        isLeader: Uint8Array.from(replicas, ({ isLeader }) => Number(isLeader)),
        isHealthy: Uint8Array.from(replicas, ({ isHealthy }) => Number(isHealthy)),
      },
      rows: this.#rows.subarray(0, this.#rowCount * lengthOfRow),
    };
  }
}

function within(index: number, list: readonly unknown[], what: string): void {
  if (!(index >= 0 && index < list.length)) throw new RangeError(`there is no ${what} ${index}`);
}

class Names {
  readonly all: string[] = [];
  readonly #numbers = new Map<string, number>();

  numberOf(name: string): number {
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.all.push(name) - 1;
      this.#numbers.set(name, number);
    }
    return number;
  }
}
