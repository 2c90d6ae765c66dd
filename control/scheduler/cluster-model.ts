// A snapshot of a cluster, as policies see it: columns of typed arrays, entities numbered from 0. Nothing in it
// changes; `WorkingCluster` is the mutable copy that a policy plans on.
//
// Load is kept by partition, in rows. A row holds one series of `points` values for each dimension. A partition names
// the row of its leader and the row of each follower, and a factor for each: partitions of one table may share a row.

/** Data model of a pod; `gateway` pods hold no data. */
export type PodModel = 'memory' | 'kv' | 'series' | 'gateway';
/** `adding`: not complete yet, nothing is placed on it. `draining`: it only gives replicas away. */
export type NodeState = 'active' | 'adding' | 'draining';

interface NodeColumns {
  readonly ids: readonly string[];
  /** Failure domain; indexes `zones`. */
  readonly zone: Uint16Array;
  /** Resource pool; indexes `pools`. */
  readonly pool: Uint16Array;
  readonly state: readonly NodeState[];
  /** Memory-heavy machines for the in-memory model, or machines with large SSDs. */
  readonly hardware: readonly ('ssd' | 'memory')[];
  readonly memoryBytes: Float64Array;
}

interface DiskColumns {
  readonly ids: readonly string[];
  readonly node: Uint32Array;
  readonly capacityBytes: Float64Array;
}

interface PodColumns {
  readonly ids: readonly string[];
  readonly node: Uint32Array;
  /** -1: it has no disk. */
  readonly disk: Int32Array;
  /** Copyset: all replicas of a partition are in pods of one. -1: none. */
  readonly subcluster: Int32Array;
  readonly model: readonly PodModel[];
  /** `pod * dimensions.length + dimension`: PRU a second the pod can serve. */
  readonly limits: Float64Array;
  /** Logical request units a second (eq. 3 of X-Stor). */
  readonly lru: Float64Array;
  readonly memoryBytes: Float64Array;
  /** Capacity in bytes. */
  readonly diskBytes: Float64Array;
}

interface TableColumns {
  readonly ids: readonly string[];
  readonly tenant: Uint32Array;
  /** Quota, LRU a second; 0: none is set. */
  readonly quota: Float64Array;
}

interface PartitionColumns {
  readonly ids: readonly string[];
  readonly table: Uint32Array;
  /** Bytes of one replica, and bytes set aside for it. */
  readonly bytes: Float64Array;
  readonly allocatedBytes: Float64Array;
  /** LRU a second set aside for one replica. */
  readonly allocatedLru: Float64Array;
  readonly leaderRow: Uint32Array;
  readonly leaderScale: Float64Array;
  readonly followerRow: Uint32Array;
  readonly followerScale: Float64Array;
}

interface ReplicaColumns {
  readonly partition: Uint32Array;
  readonly pod: Uint32Array;
  /** 1: it leads its partition. */
  readonly isLeader: Uint8Array;
  /** 0: it is down or lags, and must not be made the leader. */
  readonly isHealthy: Uint8Array;
}

export interface ClusterModel {
  /** Names, such as those of `request-units/pru.ts`, or `ru` and `storage`. */
  readonly dimensions: readonly string[];
  /** Values of a series, and the seconds between two of them. */
  readonly points: number;
  readonly pointSeconds: number;
  /** Unix seconds of the first point. */
  readonly startAt: number;
  readonly zones: readonly string[];
  readonly pools: readonly string[];
  readonly tenants: readonly string[];
  readonly nodes: NodeColumns;
  readonly disks: DiskColumns;
  readonly pods: PodColumns;
  readonly tables: TableColumns;
  readonly partitions: PartitionColumns;
  readonly replicas: ReplicaColumns;
  /** `(row * dimensions.length + dimension) * points + point`: units a second. */
  readonly rows: Float32Array;
}

/** The index of a dimension by its name; throws when the model does not have it. */
export function dimensionOf({ dimensions }: ClusterModel, name: string): number {
  const index = dimensions.indexOf(name);
  if (index < 0) throw new RangeError(`no dimension ${name}; there are ${dimensions.join(', ')}`);
  return index;
}
