// The log of one group, to which a pod's writes go before they are acknowledged. `LocalGroup` keeps
// one copy, `RaftGroup` several.
//
// The pod calls it from one thread:
//
//   log.begin(); ...ops go to log.writer...; log.end()      one command
//   position = log.endTick(now)                             the tick's writes leave in one write
//   log.whenSettled(position, (outcome) => ...)             now, or once the outcome is known; in order
//
// A log that `mayLose` takes the tick as one entry. Its pod evaluates ahead of the commit and keeps
// undo records. The log tells its listener which entries to undo and to apply:
//
//   leader     evaluates. Its entries come back as outcomes, with their index, not through `apply`.
//   follower   applies the entries that the leader has committed, in order.
//
// At the end of a leadership `lost` comes first, for all that has no outcome. Entries committed
// after all come through `apply`, as all entries do from there on. A replica is notified of its
// leadership once all entries committed before its term have been applied.

import type { Outcome } from '../../universal-row/executor.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { LogEntry } from './wal/log-reader.ts';

export type { Outcome } from '../../universal-row/executor.ts';

/** Room before the ops that `PartitionLog.adopt` takes, for the log's header of an entry. */
export const opsRoomBytes = 64;

/** Entries of at least this size are written off the event loop. Answers given meanwhile need not wait for them. */
export const largeEntryBytes = 1024 * 1024;

/** A tick that has written more ends, where the size of entries has a limit. */
export const fullTickBytes = 1024 * 1024;

/** Writers wait while more is without an outcome. */
export const fullLogBytes = 16 * 1024 * 1024;

/** For a request, or a row that is restored or moved, that writes more than `PartitionLog.maxWriteBytes`. */
export function tooLargeText(bytes: number): string {
  return `the request writes more than ${bytes} bytes at once, the limit of cluster.max-entry-bytes`;
}

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

interface ReplicationStatus {
  replica: number;
  leader: number;
  term: number;
  commit: number;
  applied: number;
  members: Members;
  /** Positions without an outcome, and the bytes of their entries. */
  pendingPositions: number;
  pendingBytes: number;
  /** See `ProposalLogStatus`. */
  isFenced: boolean;
  wasFenced: boolean;
  electionsByAll: number;
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
  /** Replication status of a log that `mayLose`. */
  replication?: ReplicationStatus;
}

/** The rows of a group at one index of its log, as record batches. */
export interface StateSnapshot {
  index: number;
  batches: AsyncIterable<Buffer>;
}

/** Callbacks of a log that `mayLose`. Other logs call none of them. */
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
   * Another replica, or this one, may be about to lead in good order: requests to the pod from here
   * on wait for `resume`. Returns, or resolves, once all earlier evaluated entries are in the log.
   */
  pause?(): MaybePromise<void>;
  /** The role is again the one reported last. Also called where nothing is paused. */
  resume?(): void;
  /**
   * The entry of this index concerns the log only, as the beginning of a term does: the state now
   * covers this index, too. In the order of indexes, with `apply` and `committed`.
   */
  skipped?(index: number): void;
  /** The log could release entries: a checkpoint is wanted soon, which `truncate` reports. */
  checkpoint?(): void;
  /** The committed rows at this call, for this replica, which is too far behind. */
  exportSnapshot(to: number): MaybePromise<StateSnapshot>;
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
  /** Index of the last entry; where the log `mayLose`, of the last committed one. */
  readonly lastIndex: number;

  /**
   * Writes this tick's entries to the log at once. `servedAt` is the pod's time if commands ran in
   * it, reads included. Returns the position that answers of this tick must wait for, -1 when they
   * need not wait. Reads wait as well: the state they read must not be undone, and another leader
   * must not have changed it before.
   */
  endTick(servedAt?: number): number;
  /** Calls back once the outcome of everything up to `position` is known: as safe as the policy asks, or not. In order. */
  whenSettled(position: number, then: (outcome: Outcome) => void): void;
  /** Whether everything up to `position` is known to be committed. Absent where `endTick` says so by -1. */
  isCommitted?(position: number): boolean;

  /** Most bytes that a command, or commands that run as one, may write; absent where there is no limit. */
  readonly maxWriteBytes?: number;
  /** Bytes of ended ticks that have no outcome. Absent where the log waits by itself. */
  readonly pendingBytes?: number;

  /** Why no entry may be begun for now: the disk is full. Cleared by itself when there is room again. */
  readonly failure: Error | undefined;

  /** Bytes that the group has written to its log. Only grows; where it begins says nothing. */
  readonly writtenBytes: number;
  fsyncPolicy: FsyncPolicy;
  /**
   * Resolves when all earlier entries are durable, regardless of the policy. Absent: when they are
   * settled.
   */
  sync?(): Promise<void>;
  /** Resolves when all that was handed to the log before is in its files. Absent: when it is settled. */
  written?(): Promise<void>;
  /** Entries up to this index are needed no more: an engine holds them durably. */
  truncate(index: number): void;
  /**
   * Entries after this one stay in the log despite `truncate`, for `readBack`. Infinity for none.
   */
  keepAfter: number;
  /**
   * Entries in (after, to], read back from disk in slices between requests. Their ticks have ended, and `keepAfter`
   * has kept them. A missing entry is an error.
   */
  readBack(after: number, to: number): AsyncIterable<LogEntry>;

  /** How old the state of this replica may be: milliseconds, and entries. Absent where there is one copy. */
  staleness?(): { ms: number; entries: number };
  /** Calls back with `committed` once all that was committed before the call is applied here, or with `unknown`. */
  readBarrier(then: (outcome: Outcome) => void): void;
  /**
   * Transfers the leadership to another voter, once the evaluated entries are settled. The pod is paused meanwhile.
   * The transfer may fail: check the role.
   */
  transfer(to: number): void;
  /** One change at a time; false when this replica cannot begin it now. */
  changeMembers(changes: readonly MemberChange[]): boolean;
  status(): LogStatus;
  /**
   * Syncs, writes the clean-shutdown mark, and closes. Entries without an outcome are `unknown`.
   */
  close(): Promise<void>;
}
