// Where a pod's writes go before anyone is told about them. `LocalGroup` keeps one copy; a Raft group
// will keep several behind the same calls.
//
// The pod drives it from one thread:
//
//   log.begin(); ...ops go to log.writer...; index = log.end()    one command, one entry
//   position = log.endTurn()                                      the turn's entries leave in one write
//   log.whenSafe(position, reply)                                 now, or after the fsync that covers it

import type { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { LogEntry } from './wal/log-reader.ts';

export type FsyncPolicy = 'always' | 'everysec' | 'no';

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
}

export interface ReplicatedLog {
  /**
   * Where the open entry's ops are appended. Between `begin` and `end` its buffer and `pos` may be used
   * freely from where they stood at `begin`; set `pos` back to drop ops.
   */
  readonly writer: RecordBatchWriter;
  begin(): void;
  /** Closes the entry and returns its index; 0 when nothing was written, and then there is no entry. */
  end(): number;
  /** Forgets the open entry. */
  abandon(): void;
  readonly lastIndex: number;

  /**
   * Hands this turn's entries to the operating system in one write. Returns the position replies of
   * this turn must wait for, -1 when they need not wait. Reads wait as well: what they saw must not be
   * undone by a crash.
   */
  endTurn(): number;
  /** Runs `then` once everything up to `position` is as safe as the policy asks. In order. */
  whenSafe(position: number, then: () => void): void;

  /** Why no entry may be begun for now: the disk is full. Cleared by itself when there is room again. */
  readonly failure: Error | undefined;

  fsyncPolicy: FsyncPolicy;
  /** Entries up to this index are needed no more: an engine holds them durably. */
  truncate(index: number): void;
  /** Entries after this one stay in the log whatever `truncate` says, for `readBack`. Infinity for none. */
  keepAfter: number;
  /**
   * Entries in (after, to], read back from disk in slices between requests. Their turns are over, and
   * `keepAfter` has kept them; one that is missing is an error.
   */
  readBack(after: number, to: number): AsyncIterable<LogEntry>;
  status(): LogStatus;
  /** Syncs, writes the clean-shutdown mark, and closes. */
  close(): Promise<void>;
}
