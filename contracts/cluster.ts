// A cluster as its metadata describe it: nodes, and groups of replicas. Documents of the collections `nodes` and `groups`
// have these forms; the controller writes them, and every node carries out what is about it.

/** The parts of a node that talk to other nodes, each at a port of its own. */
export interface NodeAddresses {
  /** `HOST:PORT` of the control plane, the Redis plane and the InfluxDB plane, for other nodes. */
  readonly control: string;
  readonly redis: string;
  readonly influx: string;
  /** Of clients: host and port, as clients can reach them. */
  readonly redisClients: string;
  readonly influxClients: string;
  readonly admin: string;
}

/** `joining`: it has its number, and no copy of the metadata yet; nothing is placed there. */
export type NodeState = 'joining' | 'up' | 'draining' | 'removed';

export interface NodeDefinition {
  /** From 1 on, never used again. */
  readonly node: number;
  readonly zone: string;
  readonly state: NodeState;
  readonly addresses: NodeAddresses;
  /** Counts its starts, as of the last one that it has told of. */
  readonly incarnation: number;
  /** Drawn by the node before it asked to join: who asks again is given the same number. */
  readonly joinId: string;
}

/** A model of rows, or time series. */
export type GroupModel = 'memory' | 'kv' | 'tsm';

/** `leaving`: its leader takes it out of the group; then it is forgotten and its node deletes its data. */
export type ReplicaState = 'voter' | 'learner' | 'leaving';

export interface ReplicaDefinition {
  /** Tells its node, and is never used again (storage-node/replicator/raft/replica-id.ts). */
  readonly replica: number;
  readonly node: number;
  readonly state: ReplicaState;
}

/**
 * What one log orders: all undivided tables of a tenant and a model, one partition of a divided table, or all time
 * series of a tenant.
 */
export interface GroupDefinition {
  /** From `firstGroup` on, never used again. */
  readonly group: number;
  readonly tenant: number;
  readonly model: GroupModel;
  /** Of the one partition that it has; absent for the undivided tables of the tenant. */
  readonly partition?: number;
  /** Counts the changes of `replicas`. */
  readonly epoch: number;
  readonly replicas: readonly ReplicaDefinition[];
  /** Replicas that the group began with; any other one joins it. */
  readonly initial: readonly number[];
}

/** Groups below are the cluster's own; 1 has the metadata. */
export const firstGroup = 16;

/** What a node says of a replica of its own. */
export interface ReplicaStatus {
  readonly group: number;
  readonly replica: number;
  readonly role: 'leader' | 'follower' | 'learner' | 'closed';
  /** Node that leads, 0 while none is known. */
  readonly leader: number;
  readonly term: number;
  readonly applied: number;
  readonly rows: number;
  readonly bytes: number;
  /** Of a leader: members as its log has them. */
  readonly voters: readonly number[];
  readonly learners: readonly number[];
}

export interface ClusterView {
  readonly nodes: readonly NodeDefinition[];
  readonly groups: readonly GroupDefinition[];
}
