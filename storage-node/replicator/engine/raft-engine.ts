// The consensus protocol as a state machine: etcd's raft, driven through `RaftEngine`. It does no
// I/O. Its driver ticks it, passes it messages, and processes each `Ready`: entries to write,
// messages to send, entries to apply.

import type { ConfState, Entry, HardState, Message, Ready, Snapshot } from './frames.ts';

/** Follower, candidate, leader, pre-candidate. */
export const Role = { follower: 0, candidate: 1, leader: 2, preCandidate: 3 } as const;

export const ConfChangeType = { addVoter: 0, remove: 1, update: 2, addLearner: 3 } as const;

export interface ConfChange {
  type: number;
  id: number;
}

/** 0 leaves the joint configuration by itself where one is needed, 1 always goes through one, 2 stays in it. */
export type Transition = 0 | 1 | 2;

export interface GroupOptions {
  /** Number of this replica; never 0. */
  id: number;
  /** The election time-out is drawn from [electionTicks, 2 * electionTicks). */
  electionTicks: number;
  heartbeatTicks: number;
  preVote?: boolean;
  checkQuorum?: boolean;
  /** Appends and applies are messages, answered by `storageDone`; else each Ready is followed by `advance`. */
  asyncStorage?: boolean;
  leaseReads?: boolean;
  noForwarding?: boolean;
  stepDownOnRemoval?: boolean;
  noConfChangeValidation?: boolean;
  /** Bytes of entry data; 0 for no limit. */
  maxMessageBytes?: number;
  maxCommittedBytes?: number;
  maxUncommittedBytes?: number;
  maxInflightMessages?: number;
  /** The last index that is applied. */
  applied?: number;
  /** Snapshot at which the log begins, with its configuration. */
  snapshot: Snapshot;
  hard?: HardState;
  entries?: readonly Entry[];
}

export interface GroupStatus {
  id: number;
  term: number;
  vote: number;
  commit: number;
  applied: number;
  /** The leader's id, 0 when there is none. */
  lead: number;
  role: number;
  firstIndex: number;
  lastIndex: number;
  pendingAppends: number;
  pendingApplies: number;
}

/** A leader's view of another replica. */
export interface PeerProgress {
  id: number;
  /** Probe, replicate, snapshot. */
  state: number;
  learner: boolean;
  paused: boolean;
  recentlyActive: boolean;
  inflightFull: boolean;
  match: number;
  next: number;
  pendingSnapshot: number;
  inflight: number;
}

export interface EngineMemory {
  /** Bytes. Memory had from the host never shrinks. */
  heap: number;
  system: number;
  collections: number;
  pauseNanoseconds: number;
}

export interface GroupReady {
  group: number;
  /** Fatal error of the group, or its Ready. */
  ready: Ready | RaftError;
}

/** -1 dropped: no leader, or too much is uncommitted. -2 dead. -3 refused by the library. -4 malformed. */
export const ErrorCode = { dropped: -1, dead: -2, refused: -3, malformed: -4 } as const;

export class RaftError extends Error {
  override name = 'RaftError';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Groups are numbers, valid until `destroy`. All calls are synchronous and throw `RaftError`. A group that the
 * library panics over is dead: each call about it says so, the others continue, and it is made anew from the log.
 */
export interface RaftEngine {
  create(options: GroupOptions): number;
  destroy(group: number): void;
  /** A group asleep is not ticked by `tickAll`. */
  setAsleep(group: number, asleep: boolean): void;
  tick(group: number): void;
  /** Ticks all groups that are awake. Returns the groups that failed. */
  tickAll(): number[];
  /** One message with all the entries. */
  propose(group: number, entries: readonly Uint8Array[]): void;
  /** A message from another replica; local ones are refused. */
  step(group: number, message: Message): void;
  /** As `step`, of a message that this group's own storage sent. */
  stepLocal(group: number, message: Message): void;
  /** Calls `step` for each message. Returns the reasons of refused messages, by position. */
  stepAll(messages: readonly { group: number; message: Message }[]): Map<number, number>;
  hasReady(group: number): boolean;
  ready(group: number): Ready | undefined;
  /**
   * Readys of all groups that have one, up to about so many bytes; empty when there are none left.
   */
  readyAll(maxBytes: number): GroupReady[];
  advance(group: number): void;
  /**
   * The oldest append is durable, or the oldest apply done: returns the messages that may now be
   * sent.
   */
  storageDone(group: number, kind: 'append' | 'apply', keepOwn?: boolean): Message[];
  campaign(group: number): void;
  transferLeader(group: number, to: number): void;
  forgetLeader(group: number): void;
  reportUnreachable(group: number, id: number): void;
  reportSnapshot(group: number, id: number, ok: boolean): void;
  /** The context comes back in `Ready.reads`. Never use one twice. */
  readIndex(group: number, context: Uint8Array): void;
  proposeConfChange(
    group: number,
    changes: readonly ConfChange[],
    transition: Transition,
    context?: Uint8Array,
    version?: 1 | 2,
  ): void;
  /** To be called for every committed entry of such a kind, in order. */
  applyConfChange(group: number, entry: Entry): ConfState;
  decodeConfChange(entry: Entry): {
    transition: number;
    changes: ConfChange[];
    context: Uint8Array;
  };
  /** Sets the snapshot for followers whose entries are gone. */
  setSnapshot(group: number, snapshot: Snapshot): void;
  /** Forgets entries up to `index`. */
  compact(group: number, index: number): void;
  status(group: number): GroupStatus;
  progress(group: number): { conf: ConfState; peers: PeerProgress[] };
  /** Entries from `from` on, or the first so many bytes of them; 0 for all. */
  entries(group: number, from?: number, maxBytes?: number): Entry[];
  setElectionTimeout(group: number, ticks: number): void;
  collectGarbage(): void;
  setCollectorPercent(percent: number): void;
  memory(): EngineMemory;
  setVerbose(verbose: boolean): void;
}
