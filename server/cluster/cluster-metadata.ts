// The control plane's part in a cluster, as the rest of the server sees it: this node's identity,
// the shared metadata, the other nodes, and questions to them.
//
// `openClusterMetadata` (open-cluster-metadata.ts) makes one. The node then listens for its peers' control planes, has a
// copy of the metadata, and stays a member of group 1, which keeps them, until it is removed.

import type { NodeAddresses, NodeDefinition, NodeRole } from '../../contracts/cluster.ts';
import type { DocumentStore, Json, StoredDocument } from '../../control/metadata/document-store.ts';

/** Identity of a node. Kept in a file of its data directory from the moment it joins a cluster. */
export interface NodeIdentity {
  /** Drawn when the cluster was formed: 1 to 2^32 - 1. */
  readonly cluster: number;
  /** Number of the node, from 1 on. Never reused. */
  readonly node: number;
  /** Counts the starts of this node; larger at each. */
  readonly incarnation: number;
}

export interface ClusterMetadataOptions {
  /** The data directory; the cluster's files are in `cluster/` below it. The caller locks it. */
  directory: string;
  /** Address to listen on for peers. Port 0 selects a free port. */
  listen: { host: string; port: number };
  /** Secret of the cluster, at least 16 bytes. All nodes have the same. */
  secret: Buffer;
  zone: string;
  /** Roles of the node; if absent, all roles. */
  roles?: readonly NodeRole[];
  /** Addresses of this node, announced to the others by `nodes`. Called once the port is known. */
  addresses: (controlPort: number) => NodeAddresses;
  /**
   * Action for a directory that is in no cluster yet. `form`: becomes the only node of a new
   * cluster, with the documents of its embedded store. `join`: asks the seeds until one answers
   * that is in a cluster, without a time limit. A directory that is in a cluster stays in it,
   * whatever this says.
   */
  begin: 'form' | 'join';
  /** Partitions of the time series that the settings ask for; 0 or absent: as the cluster has it. */
  seriesPartitions?: number;
  /** `HOST:PORT` of other nodes' control planes; this node's own may be among them. */
  seeds: readonly string[];
  /** Ends the wait for a seed: the promise of `openClusterMetadata` rejects with the signal's reason. */
  signal?: AbortSignal;
  /**
   * The node must end: the state on its disk, or of its consensus engine, is uncertain; or it is
   * removed from the cluster.
   */
  onFatal: (error: Error) => void;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
  /** Milliseconds without a link after which a voter of the metadata is replaced by another node; five minutes if absent. */
  replaceVoterMs?: () => number;
  /** See `LinkContext`. */
  silenceMs?: number | undefined;
  /** For tests: times of the consensus. */
  tickMs?: number;
  electionTicks?: number;
}

/** Reachability of a node's link. */
export interface NodeReachability {
  readonly node: number;
  /** There is a link to its control plane now; the asked node itself always is. */
  readonly reachable: boolean;
  /** Unix milliseconds of the last change of `reachable`; the start of the reporting node if there was none. */
  readonly since: number;
}

export interface ClusterStatus {
  /**
   * Node that leads the metadata, which made this report. 0 if there is no leader or the leader does not answer: the
   * report is then the asked node's view.
   */
  readonly leader: number;
  readonly nodes: readonly (NodeDefinition & NodeReachability)[];
  /** Nodes that vote in the metadata group, and nodes that only have a copy. */
  readonly voters: readonly number[];
  readonly learners: readonly number[];
}

/** The asking node of the cluster, by a link that both sides have authenticated. */
export interface ControlPeer {
  readonly node: number;
  readonly incarnation: number;
}

/**
 * Answers a question of another node. A rejection reaches the asking node as a `ControlError` with
 * the error's message, and its `code` if it has one.
 */
export type ControlHandler = (body: Json, peer: ControlPeer) => Promise<Json> | Json;

export interface ControlHandlers {
  /**
   * Registers the handler for questions with this name. The names `metadata/*`, `cluster/*` and `join` are reserved.
   * Throws if the name has a handler already.
   */
  on(name: string, handler: ControlHandler): void;
}

/** A question to another node was not answered, or was refused. */
export class ControlError extends Error {
  override readonly name = 'ControlError';
  /**
   * `refused`: the handler there rejected. `unreachable`: it was not asked, nothing was done. `unknown`: it was asked and
   * there is no answer; it may have acted.
   */
  readonly outcome: 'refused' | 'unreachable' | 'unknown';
  /** Code of the error at the other node, if the error had one. */
  readonly code: string | undefined;

  constructor(message: string, outcome: 'refused' | 'unreachable' | 'unknown', code?: string) {
    super(message);
    this.outcome = outcome;
    this.code = code;
  }
}

export interface ClusterMetadata {
  readonly identity: NodeIdentity;
  /** Port on which it hears its peers. */
  readonly port: number;
  /**
   * The metadata of the cluster. Reads are linearizable while most voters are in reach. Otherwise they answer from
   * this node's copy after a wait of some seconds. Writes are refused then.
   */
  readonly store: DocumentStore;
  /** Documents of a collection as this node's copy has them; asks no other node. */
  copyOf(collection: string): StoredDocument[];
  /** Whether this node's copy holds all that was committed before the call; false if that cannot be told in time. */
  isLatest(ms: number): Promise<boolean>;

  /** Whether this node leads the metadata. The controller of the cluster runs on that node. */
  readonly isLeader: boolean;
  /** Node that leads the metadata, as far as known on this node; 0 for none. */
  readonly leader: number;
  /** Calls the listener at each change of `leader`. Returns a function that removes the listener. */
  onLeader(listener: (isLeader: boolean, leader: number) => void): () => void;

  /** All nodes that are not removed, by number, as of this node's copy of the metadata. */
  nodes(): readonly NodeDefinition[];
  /** Calls the listener after each change of `nodes`. Returns a function that removes the listener. */
  onNodes(listener: (nodes: readonly NodeDefinition[]) => void): () => void;

  /** Links of this node's control plane to all others of `nodes()`. */
  reachability(): readonly NodeReachability[];
  /** Calls the listener when a node becomes reachable or unreachable. Returns a function that removes the listener. */
  onReachable(listener: (node: number, reachable: boolean) => void): () => void;

  /**
   * Status of the cluster as the leader of the metadata reports it. If there is no leader or the leader does not answer,
   * this node's view.
   */
  status(): Promise<ClusterStatus>;

  /**
   * Asks the control plane of a node; this node's own is asked without a link. Rejects with `ControlError`, at the latest
   * after `ms` milliseconds.
   */
  ask(node: number, name: string, body: Json, ms: number): Promise<Json>;
  readonly handlers: ControlHandlers;

  /**
   * Removes a node from the cluster permanently: its number is never reused, its links end, and a running node is
   * told to stop. Its data must have been moved before. Resolves once the node is no longer a member of group 1.
   * Rejects for the last node, and for a node that is not a member.
   */
  remove(node: number): Promise<void>;

  /** Stops gracefully. A leader first transfers the leadership to another voter. */
  close(): Promise<void>;
  /** Stops at once, after a failure. */
  abandon(): Promise<void>;
}
