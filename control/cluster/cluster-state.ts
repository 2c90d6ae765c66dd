// A cluster at a moment, as its controller plans on it: definitions from the metadata, and reports
// of the nodes.

import type {
  GroupDefinition,
  GroupModel,
  NodeDefinition,
  ReplicaStatus,
  SeriesPart,
} from '../../contracts/cluster.ts';

export interface NodeSighting extends NodeDefinition {
  readonly reachable: boolean;
  /** Unix milliseconds from when on it is or is not reachable. */
  readonly since: number;
}

/** Purpose of a group. There is one group for each. */
export interface GroupPurpose {
  /** Number of the tenant. */
  readonly tenant: number;
  readonly model: GroupModel;
  /** The partition of the group; absent for the undivided tables of the tenant. */
  readonly partition?: number;
  /** Of time series that are divided. */
  readonly series?: SeriesPart;
}

/** An operator's request: move a replica to another node. */
export interface ReplicaMove {
  readonly group: number;
  readonly from: number;
  readonly to: number;
}

export interface ClusterState {
  readonly nodes: readonly NodeSighting[];
  readonly groups: readonly GroupDefinition[];
  /** Groups that there should be. */
  readonly purposes: readonly GroupPurpose[];
  /** Replica statuses reported by the nodes that answered. */
  readonly statuses: readonly ReplicaStatus[];
  readonly moves: readonly ReplicaMove[];
  /** Unix milliseconds from when on a group has been without a purpose, by group. */
  readonly purposelessSince: ReadonlyMap<number, number>;
  /** Unix milliseconds of the last transfer of a group's lead, by group. */
  readonly transferredAt: ReadonlyMap<number, number>;
}

export interface PlanPolicy {
  /** Replicas of each group. */
  readonly replicas: number;
  /** Groups are made once so many nodes have joined, so that they are spread over all of them; 1 when left out. */
  readonly leastNodes?: number;
  /** Criterion for spreading leaders over the nodes: by default `units`, where there is load. */
  readonly spreadBy?: 'units' | 'count';
  /** How long a node may be out of reach before its replicas are made anew on others. */
  readonly rebuildAfterMs: number;
}

/** A step towards the wanted state. At most one for a group in a plan. */
export type GroupChange =
  /** A new group with a voter on each node. */
  | { readonly kind: 'create'; readonly purpose: GroupPurpose; readonly nodes: readonly number[] }
  /** All replicas delete their data. */
  | { readonly kind: 'delete'; readonly group: number }
  /** A new replica, which becomes a voter once it has caught up. */
  | { readonly kind: 'add'; readonly group: number; readonly node: number }
  /** The leader takes the replica on the node out of the group. */
  | { readonly kind: 'leave'; readonly group: number; readonly node: number }
  /** The replica is removed: the definition no longer names it, and its node deletes its data. */
  | { readonly kind: 'forget'; readonly group: number; readonly replica: number }
  /** The replica on another node becomes the leader. */
  | {
      readonly kind: 'transfer';
      readonly group: number;
      readonly from: number;
      readonly to: number;
    }
  /** A move is done, or cannot be done any more. */
  | { readonly kind: 'endMove'; readonly group: number };

/** Tells replicas apart. */
export function replicaKey(of: { readonly group: number; readonly replica: number }): string {
  return `${of.group} ${of.replica}`;
}

/** Tells purposes apart. */
export function purposeKey({ tenant, model, partition, series }: GroupPurpose): string {
  if (series !== undefined) return `${tenant}/${model}/${series.partition} of ${series.of}`;
  return partition === undefined ? `${tenant}/${model}` : `partition/${partition}`;
}
