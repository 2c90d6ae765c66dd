// A recorded cluster: documents and series of load. docs/simulation.md describes the file: one JSON
// object a line, a header first, and every object before references to it.

import type { NodeState, PodModel } from '../cluster-model.ts';

export interface TraceHeader {
  format: 'polyrow-trace';
  version: 1;
  /** Time of the first point, ISO 8601. */
  startAt: string;
  pointSeconds: number;
  points: number;
  dimensions: string[];
}

export interface TraceNode {
  id: string;
  zone?: string;
  pool?: string;
  state?: NodeState;
  hardware?: 'ssd' | 'memory';
  memoryBytes?: number;
}

export interface TraceDisk {
  id: string;
  node: string;
  capacityBytes?: number;
}

export interface TracePod {
  id: string;
  node: string;
  disk?: string;
  subcluster?: number;
  model?: PodModel;
  /** Limits in units a second, one for each dimension. */
  limits: number[];
  lru?: number;
  memoryBytes?: number;
  diskBytes?: number;
}

export interface TraceTable {
  id: string;
  tenant?: string;
  /** LRU a second. */
  quota?: number;
}

/** Units a second at each point, a list for each dimension. */
export interface TraceSeries {
  id: string;
  values: Record<string, ArrayLike<number>>;
}

export interface SeriesUse {
  series: string;
  /** Factor for all values; 1 if absent. */
  scale?: number;
}

interface TraceReplica {
  pod: string;
  leads?: boolean;
  healthy?: boolean;
}

export interface TracePartition {
  id: string;
  table: string;
  bytes?: number;
  allocatedBytes?: number;
  allocatedLru?: number;
  leader: SeriesUse;
  follower?: SeriesUse;
  /** Replicas of the partition; if absent, the layout places them (layout.ts). */
  replicas?: TraceReplica[];
}

export interface Trace {
  header: TraceHeader;
  nodes: TraceNode[];
  disks: TraceDisk[];
  pods: TracePod[];
  tables: TraceTable[];
  series: TraceSeries[];
  partitions: TracePartition[];
}
