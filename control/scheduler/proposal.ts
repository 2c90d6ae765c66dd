// Proposals of policies. A policy only proposes: a workflow applies a proposal to a live cluster, and
// `WorkingCluster.apply` in a simulation. Entities are numbers of the model that the policy was given; those that a
// proposal creates (the right half of a split, an added replica) get the next free number, in the order of proposals.

import type { Rng } from '../../universal-row/environment.ts';
import type { ClusterModel } from './cluster-model.ts';

export type Change =
  /** `to` becomes the leader of its partition, `from` a follower. */
  | { kind: 'transfer-leader'; partition: number; from: number; to: number }
  | { kind: 'move-replica'; replica: number; fromPod: number; toPod: number }
  | { kind: 'add-replica'; partition: number; pod: number }
  | { kind: 'remove-replica'; replica: number }
  /** The left part keeps the number; `leftShare` is its share of the load, by dimension, and of the bytes. */
  | { kind: 'split'; partition: number; leftShare: readonly number[] }
  /** `right` becomes part of `left`; their replicas must be in the same pods. */
  | { kind: 'merge'; left: number; right: number }
  | { kind: 'move-table'; table: number; pool: number }
  | { kind: 'set-quota'; tenant: number; from: number; to: number }
  | { kind: 'scale-gateways'; from: number; to: number; nodes: readonly number[] }
  /** An empty node joins another pool. */
  | { kind: 'move-node'; node: number; fromPool: number; toPool: number }
  | { kind: 'move-pod'; pod: number; fromNode: number; toNode: number }
  | { kind: 'disable-node'; node: number };

/** A figure that justifies the change. */
export interface Figure {
  /** With its unit, as `anomalous minutes of pod p3`. */
  name: string;
  before: number;
  after: number;
}

interface Cost {
  /** Bytes copied between pods. */
  bytes: number;
  /** Replicas copied between pods. */
  replicas: number;
}

export interface Proposal {
  change: Change;
  /** A sentence for operators, with names rather than numbers. */
  reason: string;
  figures: readonly Figure[];
  cost: Cost;
}

export const freeOfCost: Cost = { bytes: 0, replicas: 0 };

/** Inputs of a policy beside the model. */
interface PlanningEnvironment {
  /** Unix milliseconds. */
  now: number;
  rng: Rng;
}

/** Pure: the same model, time and random numbers give the same proposals. Parameters are bound when it is made. */
export interface Policy {
  name: string;
  plan(model: ClusterModel, environment: PlanningEnvironment): Proposal[];
  /** Why it proposes nothing for this model: a clause for operators, with the figures that decided. Asked only then. */
  whyIdle?(model: ClusterModel): string;
}

/** As `48.2 %`. */
export function percentOf(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
