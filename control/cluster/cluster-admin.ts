// Operations on a cluster, available at every node.

import type { MinuteSpan, PlaneMinutes } from '../../contracts/cluster.ts';
import type { ClusterReport } from './cluster-report.ts';
import type { Finding } from './diagnosis.ts';

/** Request units served by the replicas in one plane of a node. */
export interface NodeMinutes extends PlaneMinutes {
  readonly node: number;
}

export interface ClusterAdmin {
  /** Rejects when the node that leads the metadata is known and does not answer. */
  report(): Promise<ClusterReport>;
  /** Units served at the reachable nodes. The span is at most `mostMinutesAsked`. */
  minutes(span: MinuteSpan): Promise<NodeMinutes[]>;
  /** Findings, the most severe first. */
  findings(): Promise<Finding[]>;
  /** The replicas of a draining node go to others, if there are any. */
  setNodeState(node: number, state: 'up' | 'draining'): Promise<void>;
  /** Takes a node without replicas out of the cluster for good. */
  removeNode(node: number): Promise<void>;
  /** The replica on a node becomes the group's leader. Resolves once it leads. */
  transfer(group: number, to: number): Promise<void>;
  /**
   * Orders the move of a replica to another node. Resolves once the order is recorded. The move takes as long as the
   * copy.
   */
  move(group: number, from: number, to: number): Promise<void>;
}

/** The operation is impossible, because of the cluster's state or the request. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
  /** As HTTP tells it. */
  readonly statusCode: 400 | 404 | 409 | 503;

  constructor(statusCode: 400 | 404 | 409 | 503, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}
