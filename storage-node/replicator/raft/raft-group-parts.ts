// Parts of a replica of a group, and its limits.

import type { Disk } from '../../../universal-row/environment.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import type { GroupState } from '../wal/table.ts';
import type { Wal } from '../wal/wal.ts';
import type { GroupCommit } from './group-commit.ts';
import type { LogItem } from './group-log.ts';
import type { LogBatch } from './log-batch.ts';
import type { LogPosition } from './log-position.ts';
import type { Payloads } from './payloads.ts';
import type { PeerMessage } from './peer-message.ts';
import type { ProposalListener } from './proposal-log.ts';
import type { StateMachine } from './state-machine.ts';

export interface RaftGroupLimits {
  /** Bytes of one entry's payload, of one message's payloads, and of proposals without an outcome. */
  maxEntryBytes: number;
  maxMessageBytes: number;
  maxPendingBytes: number;
  /** A checkpoint is asked for after so many applied entries; so many before it stay for followers that are behind. */
  checkpointEntries: number;
  keptEntries: number;
  /** Ticks after which a read barrier without an answer fails. */
  readTicks: number;
  /** Ticks after the end of a leadership until proposals without an outcome are unknown. */
  outcomeTicks: number;
  /** Ticks without anything but heartbeats after which a group sleeps, unless many are awake; Infinity for never. */
  idleTicks: number;
}

export interface RaftGroupParts {
  group: number;
  replica: number;
  incarnation: number;
  handle: number;
  /** Position at which the log begins. */
  begin: LogPosition;
  engine: RaftEngine;
  disk: Disk;
  directory: string;
  wal: Wal;
  log: LogBatch<LogItem>;
  state: GroupState;
  commit: GroupCommit;
  payloads: Payloads;
  machine: StateMachine;
  listener: ProposalListener;
  limits: RaftGroupLimits;
  /** Milliseconds, monotonic. */
  clock: () => number;
  /** The term with which this replica's fence ends, 0 where it has none; and that it has ended, on disk. */
  fence: number;
  fenceLifted: () => void;
  /** For how long a voter keeps a leader's lease, and how long a tick is. */
  leaseTicks: number;
  /** After as many a transfer that came to nothing is over. */
  electionTicks: number;
  tickMs: number;
  /** False while the clock of this node is in doubt. */
  mayUseLeases: () => boolean;
  /** Snapshots that the pod may send at a time. */
  snapshotSlots: { free: number };
  /** False when the message surely is lost. */
  send: (to: number, message: PeerMessage) => boolean;
  /** The group has something to do at the end of this event-loop tick. */
  touch: () => void;
  /** Something waits for a tick: `tick` is to be called until it answers false. */
  time: () => void;
  /** Ticks of the pod so far. */
  now: () => number;
  /** The group could go to sleep, or has. */
  awake: (isAwake: boolean) => void;
  /** Ticks after which it sleeps: the limit, and fewer where many groups are awake. */
  idleTicks: () => number;
  /** Whether there is a leader has changed. */
  led: (isLed: boolean) => void;
  /** The disk is full: nothing new may be written. */
  isFull: () => boolean;
  /** Must end the pod. */
  failed: (error: Error) => void;
}
