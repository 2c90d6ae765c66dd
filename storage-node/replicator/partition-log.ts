// Where a pod's writes go before anyone is told about them: the log of one group. `LocalGroup` keeps one copy,
// `RaftGroup` several.
//
// The pod drives it from one thread:
//
//   log.begin(); ...ops go to log.writer...; log.end()      one command
//   position = log.endTurn(now)                             what the event-loop tick wrote leaves in one write
//   log.whenSettled(position, (outcome) => ...)             now, or once the outcome is known; in order
//
// A log that `mayLose` takes the tick as one entry. Its pod evaluates ahead of the commit and keeps what it needs to
// undo that. The log tells its listener what to undo and what to apply:
//
//   leader     evaluates. Its entries come back as outcomes, with their index, not through `apply`.
//   follower   applies the entries that the leader has committed, in order.
//
// At the end of a leadership `lost` comes first, for all that has no outcome. What of it is committed after all comes
// through `apply`, as everything does from there on. A replica is told that it leads once all that was committed before
// its term has been applied.

import type { Outcome } from '../../universal-row/executor.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { LogEntry } from './wal/log-reader.ts';

export type { Outcome } from '../../universal-row/executor.ts';

/** Before the ops that `PartitionLog.adopt` takes: room for what a log puts before an entry. */
export const opsRoomBytes = 64;

export type FsyncPolicy = 'always' | 'everysec' | 'no';

/** A learner applies as a follower does, and has no vote. */
export type LogRole = 'leader' | 'follower' | 'learner';

export interface MemberChange {
  replica: number;
  to: 'voter' | 'learner' | 'removed';
}

export interface Members {
  voters: number[];
  learners: number[];
  /** Voters of the configuration that is being left; empty outside a joint change. */
  outgoing: number[];
}

export interface ReplicationStatus {
  replica: number;
  leader: number;
  term: number;
  commit: number;
  applied: number;
  members: Members;
  /** Positions without an outcome, and the bytes of their entries. */
  pendingPositions: number;
  pendingBytes: number;
}

export interface LogStatus {
  firstIndex: number;
  lastIndex: number;
  /** Drawn when the log was begun: tells it from any other. */
  volume: number;
  /** Log sequence numbers: byte positions across all segments. */
  appendedLsn: number;
  durableLsn: number;
  segments: number;
  bytes: number;
  entries: number;
  frames: number;
  fsyncs: number;
  /** Milliseconds: the last and the worst fsync. */
  lastFsyncMs: number;
  maxFsyncMs: number;
  /** Of a log that `mayLose`. */
  replication?: ReplicationStatus;
}

/** The rows of a group at one index of its log, as record batches. */
export interface StateSnapshot {
  index: number;
  batches: AsyncIterable<Buffer>;
}

/** What a log that `mayLose` calls. Nothing of it is called by the other kind. */
export interface LogListener {
  /**
   * An entry (tick-entry.ts) that is committed and that the pod has not evaluated, or has undone. In the order of indexes,
   * each once; the next one waits for the answer, until which the bytes stay put.
   */
  apply(entry: Buffer, index: number): MaybePromise<void>;
  /**
   * The entry of this position is committed: nothing of it has to be undone any more. Before `whenSettled`'s callbacks. Its
   * bytes stay put until this returns.
   */
  committed(position: number, index: number, entry: Buffer): void;
  /**
   * The entries of this position and of all after it are not committed, and may never be: they are to be undone before
   * anything else is applied. Before `whenSettled`'s callbacks. The log calls nothing else before the answer, and ticks
   * that end before it are lost as well.
   */
  lost(position: number): MaybePromise<void>;
  /**
   * `leader` is the replica that leads, 0 while none is known. The end of a leadership is told right after `lost` has
   * returned, whether or not its answer is there: no command may run between the two.
   */
  roleChanged(role: LogRole, leader: number): void;
  /**
   * Another replica may be about to lead in good order, or this one: what is asked of the pod from here on waits for
   * `resume`. Returns, or resolves, once all that was evaluated before is in the log.
   */
  pause?(): MaybePromise<void>;
  /** The role is as it was told last. Also called where nothing is paused. */
  resume?(): void;
  /**
   * The entry of this index concerns the log only, as the beginning of a term does: the state is that of this index, too.
   * In the order of indexes, with `apply` and `committed`.
   */
  skipped?(index: number): void;
  /** The log would let go of entries: a checkpoint is wanted soon. `truncate` tells of it. */
  checkpoint?(): void;
  /** The committed rows, for a replica that is too far behind. The state is that of the call. */
  exportSnapshot(): MaybePromise<StateSnapshot>;
  /** Takes the place of all rows; the next entry applied is the one after `index`. */
  installSnapshot(snapshot: StateSnapshot): Promise<void>;
}

export interface PartitionLog {
  /**
   * False where every entry is committed in order. The pod then keeps nothing to undo, and `lost` and `unknown` never
   * come.
   */
  readonly mayLose: boolean;
  readonly role: LogRole;
  /** To be called once, before all else, by the pod of a log that `mayLose`. */
  listen(listener: LogListener): void;

  /**
   * Where the open entry's ops are appended. Between `begin` and `end` its buffer and `pos` may be used
   * freely from where they stood at `begin`; set `pos` back to drop ops.
   */
  readonly writer: RecordBatchWriter;
  begin(): void;
  /**
   * Closes the entry and returns its index; 0 when nothing was written, and then there is no entry. Where the log
   * `mayLose` any other number says no more than that something was written.
   */
  end(): number;
  /**
   * Makes these ops the open entry, into which nothing was written: they begin at `opsRoomBytes` of their writer, which is
   * of no more use. Large ones are not copied.
   */
  adopt(ops: RecordBatchWriter): void;
  /** Forgets the open entry. */
  abandon(): void;
  /** Of the last entry; where the log `mayLose`, of the last one that is committed. */
  readonly lastIndex: number;

  /**
   * Hands what this turn wrote to the log in one write. `servedAt` is the pod's time if commands ran in it, reads
   * included. Returns the position that answers of this turn must wait for, -1 when they need not wait. Reads wait as
   * well: what they saw must not be undone, and another leader must not have changed it before.
   */
  endTurn(servedAt?: number): number;
  /** Calls back once the outcome of everything up to `position` is known: as safe as the policy asks, or not. In order. */
  whenSettled(position: number, then: (outcome: Outcome) => void): void;

  /** Why no entry may be begun for now: the disk is full. Cleared by itself when there is room again. */
  readonly failure: Error | undefined;

  /** Bytes that the group has written to its log. Only grows; where it begins says nothing. */
  readonly writtenBytes: number;
  fsyncPolicy: FsyncPolicy;
  /** Resolves when all that was handed to the log before is durable, whatever the policy. Absent: when it is settled. */
  sync?(): Promise<void>;
  /** Resolves when all that was handed to the log before is in its files. Absent: when it is settled. */
  written?(): Promise<void>;
  /** Entries up to this index are needed no more: an engine holds them durably. */
  truncate(index: number): void;
  /** Entries after this one stay in the log whatever `truncate` says, for `readBack`. Infinity for none. */
  keepAfter: number;
  /**
   * Entries in (after, to], read back from disk in slices between requests. Their turns are over, and
   * `keepAfter` has kept them; one that is missing is an error.
   */
  readBack(after: number, to: number): AsyncIterable<LogEntry>;

  /** How old the state of this replica may be: milliseconds, and entries. Absent where there is one copy. */
  staleness?(): { ms: number; entries: number };
  /** Calls back with `committed` once all that was committed before the call is applied here, or with `unknown`. */
  readBarrier(then: (outcome: Outcome) => void): void;
  /**
   * Has another voter take over, once what the pod has evaluated is settled; meanwhile the pod is paused. It may fail;
   * the role tells.
   */
  transfer(to: number): void;
  /** One change at a time; false when this replica cannot begin it now. */
  changeMembers(changes: readonly MemberChange[]): boolean;
  status(): LogStatus;
  /** Syncs, writes the clean-shutdown mark, and closes. What has no outcome is `unknown`. */
  close(): Promise<void>;
}
