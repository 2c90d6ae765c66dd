// A group with one copy: no peers, no votes, no ticks. An entry is committed by being framed.
//
// The entries of a tick stand in the writer's buffer as the body of one frame:
//
//   | frame header, room left | entry header, ops | entry header, ops | …
//
// so that the end of the tick fills in the header, takes the checksum and writes, without a copy.

import { assert } from '../../../universal-row/assert.ts';
import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import { systemRng } from '../../../universal-row/environment.ts';
import type { Clock, Disk, Rng } from '../../../universal-row/environment.ts';
import { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import {
  type FsyncPolicy,
  largeEntryBytes,
  type LogStatus,
  opsRoomBytes,
  type Outcome,
  type PartitionLog,
} from '../partition-log.ts';
import { Ballast } from '../wal/ballast.ts';
import {
  defaultSegmentBytes,
  EntryType,
  entryHeaderBytes,
  FrameKind,
  frameHeaderBytes,
  maxFrameEntries,
  putFrameHeader,
} from '../wal/format.ts';
import { LogMismatchError, LogWriteError } from '../wal/log-errors.ts';
import { type LogEntry, readEntries } from '../wal/log-reader.ts';
import { highestSegment, recoverLog } from '../wal/recovery.ts';
import type { RecoveredLog } from '../wal/recovery.ts';
import { Syncer } from '../wal/syncer.ts';
import { newGroupState } from '../wal/table.ts';
import type { GroupState, LogTable } from '../wal/table.ts';
import { Wal } from '../wal/wal.ts';
import type { LogPoint } from '../wal/wal.ts';
import { Replay } from './replay.ts';
import type { Apply } from './replay.ts';

/** A frame of this size is written before the tick ends, to bound the memory. */
const flushBytes = 8 * 1024 * 1024;
/** A buffer larger than this is given back after the tick. */
const keptBufferBytes = 1024 * 1024;
const defaultBallastBytes = 16 * 1024 * 1024;

export interface LocalGroupOptions {
  disk: Disk;
  /** Directory of the log; created if missing. Only this log writes in it. */
  directory: string;
  fsync: FsyncPolicy;
  segmentBytes?: number;
  /** Space reserved for a full disk; at most a sixteenth of the free space. 0 for none. */
  ballastBytes?: number;
  /** Frames are written off the event loop from this size on. */
  largeFrameBytes?: number;
  clock: Clock;
  rng?: Rng;
  ids: { cluster: number; pod: number };
  /** The volume this pod's log is known to be on: an empty or another one is then refused. */
  volume?: number;
  /** Tells one start of the host from another; 0 when unknown. */
  bootId?: number;
  group: number;
  /** The engine has everything up to here; entries after it are replayed. */
  appliedIndex: number;
  /**
   * Something of entries up to here may be in the engine, though not all: they are replayed where the log has
   * them, and new ones come after it. `appliedIndex` unless given.
   */
  durableIndex?: number;
  apply: Apply;
  onProgress?: (doneBytes: number, totalBytes: number) => void;
  /** Cuts a damaged log where the damage begins, and lets a log that has vanished begin anew. */
  acceptLoss?: boolean;
  /**
   * Must end the process: the state on disk is uncertain. By default an uncaught exception does.
   */
  fatal?: (error: Error) => void;
}

interface LocalGroupStatus extends LogStatus {
  /** Counts the starts of this pod. */
  incarnation: number;
  /** Whether the log found was closed in good order; true for a new one. */
  cleanStart: boolean;
  /** Bytes cut off its end, and entries replayed. */
  cutBytes: number;
  replayedEntries: number;
  checkpointIndex: number;
  /** Milliseconds that the fsync under way has taken; 0 when there is none. */
  pendingFsyncMs: number;
  /** Ticks whose replies waited under everysec, because fsync was more than 2 s behind. */
  delayedTicks: number;
  ballastBytes: number;
}

export class LocalGroup implements PartitionLog {
  readonly mayLose = false;
  readonly role = 'leader';
  readonly writer = new RecordBatchWriter();

  keepAfter = Infinity;

  private readonly disk: Disk;
  private readonly wal: Wal;
  private readonly syncer: Syncer;
  private readonly ballast: Ballast;
  private readonly state: GroupState;
  private readonly found: Pick<LocalGroupStatus, 'cleanStart' | 'cutBytes' | 'replayedEntries'>;
  private readonly volume: number;
  private readonly incarnation: number;
  private readonly largeFrameBytes: number;
  private readonly bootId: number;
  private index: number;
  /** Entries in the frame that is being built. */
  private count = 0;
  /** Where the open entry begins; 0 when there is none. */
  private entryAt = 0;
  private entries = 0;
  /** Where the log was when the tick began, to go back to if it cannot be written. */
  private readonly tickPoint: LogPoint = { number: 0, size: 0 };
  private tickIndex = 0;
  /** Less than `tickIndex` where the engine is ahead of the log, which cannot be told so: the disk is full. */
  private tickLogIndex = 0;
  private inTick = false;
  /** Whether the tick's entries, or some of them, are in the file. */
  private wrote = false;
  private tickError: Error | undefined;
  private deadBy: Error | undefined;
  private bootPending = true;
  private closed = false;

  /**
   * Recovers the log, replays the entries that the engine lacks, and is ready. Rejects with
   * `LogCorruptionError` for damage, and with `LogMismatchError` if the log belongs to another pod
   * or engine.
   */
  static async open(options: LocalGroupOptions): Promise<LocalGroup> {
    const { disk, directory, appliedIndex } = options;
    makeDurableDirectory(disk, directory);
    const replay = new Replay(appliedIndex, options.apply);
    const found = await recoverLog({
      disk,
      directory,
      cluster: options.ids.cluster,
      pod: options.ids.pod,
      volume: options.volume,
      acceptLoss: options.acceptLoss ?? false,
      onTable: (table) => checkNoGap(table, options),
      onAppend: (frame) => {
        if (frame.group === options.group) return replay.frame(frame);
        throw new LogMismatchError(`${directory} holds entries of group ${frame.group}`);
      },
      onProgress: options.onProgress,
    });
    if (found === undefined) checkMayBegin(options);
    const log = new LocalGroup(options, found, replay.entries);
    try {
      await log.start(options, found === undefined);
    } catch (error) {
      await log.wal.close();
      throw error;
    }
    return log;
  }

  private constructor(
    options: LocalGroupOptions,
    found: RecoveredLog | undefined,
    replayedEntries: number,
  ) {
    const { disk, directory, clock } = options;
    this.disk = disk;
    const fatal = (error: Error) => this.die(error, options.fatal ?? throwUncaught);
    this.ballast = new Ballast(disk, directory, (error) => fatal(error as Error));
    const identity = found?.identity ?? {
      ...options.ids,
      volume: options.volume ?? newVolume(options.rng ?? systemRng),
    };
    this.volume = identity.volume;
    this.incarnation = (found?.incarnation ?? 0) + 1;
    this.bootId = options.bootId ?? 0;
    this.largeFrameBytes = options.largeFrameBytes ?? largeEntryBytes;
    this.found = {
      cleanStart: found?.clean ?? true,
      cutBytes: found?.cutBytes ?? 0,
      replayedEntries,
    };
    const groups = found?.groups ?? new Map<number, GroupState>();
    this.wal = new Wal(
      {
        disk,
        directory,
        segmentBytes: options.segmentBytes ?? defaultSegmentBytes,
        identity,
        incarnation: this.incarnation,
        ballast: this.ballast,
        fatal,
      },
      found?.segments ?? [],
      groups,
    );
    this.syncer = new Syncer(this.wal, clock, options.fsync, fatal);
    this.state = groups.get(options.group) ?? newGroupState(options.group);
    // The engine may be ahead of the end of an unsynced log. Its state is kept, and the log continues
    // from there.
    const { appliedIndex, durableIndex = appliedIndex } = options;
    this.index = Math.max(this.state.lastIndex, appliedIndex, durableIndex);
  }

  private async start(options: LocalGroupOptions, isNew: boolean): Promise<void> {
    if (isNew) this.wal.create(highestSegment(options.disk, options.directory) + 1);
    try {
      this.boot();
    } catch (error) {
      // A full disk: reads can be served, and the frames are written before the first entry is.
      if (!(error instanceof LogWriteError)) throw error;
    }
    await this.ballast.prepare(options.ballastBytes ?? defaultBallastBytes);
  }

  get lastIndex(): number {
    return this.index;
  }

  get failure(): Error | undefined {
    return this.deadBy ?? this.ballast.failure;
  }

  get fsyncPolicy(): FsyncPolicy {
    return this.syncer.policy;
  }

  set fsyncPolicy(policy: FsyncPolicy) {
    this.syncer.policy = policy;
  }

  begin(): void {
    const w = this.writer;
    if (!this.inTick) this.beginTick();
    if (w.pos > flushBytes) this.flush();
    if (w.pos === 0) w.pos = frameHeaderBytes;
    w.reserve(entryHeaderBytes);
    this.entryAt = w.pos;
    w.pos += entryHeaderBytes;
  }

  end(): number {
    const w = this.writer;
    const start = this.entryAt;
    const length = w.pos - start - entryHeaderBytes;
    if (length === 0) {
      this.abandon();
      return 0;
    }
    this.entryAt = 0;
    // The same as `putU32` and `putU64`, with four stores in place of sixteen: this is done for each command.
    const { view } = w.buf;
    const { term } = this.state;
    view.setInt32(start, length, true);
    view.setInt32(start + 4, EntryType.batch, true);
    view.setInt32(start + 8, term, true);
    view.setInt32(start + 12, term / 0x1_0000_0000, true);
    this.count++;
    this.index++;
    if (this.count === maxFrameEntries) this.flush();
    return this.index;
  }

  adopt(ops: RecordBatchWriter): void {
    const w = this.writer;
    if (ops.pos < this.largeFrameBytes) {
      w.append(ops, opsRoomBytes);
      return;
    }
    if (this.count > 0) {
      w.pos = this.entryAt;
      this.flush();
    }
    [w.buf, ops.buf] = [ops.buf, w.buf];
    w.pos = ops.pos;
    this.entryAt = frameHeaderBytes;
  }

  abandon(): void {
    const w = this.writer;
    w.pos = this.count === 0 ? 0 : this.entryAt;
    this.entryAt = 0;
  }

  /**
   * Throws `LogWriteError` when the disk is so full that not even the ballast makes room. Nothing of the
   * tick is then in the log, and `lastIndex` is back where it was: the pod answers the tick's commands
   * with errors and, as its engine has applied them, closes this log and builds the engine anew from
   * disk, replaying a log opened again.
   */
  endTick(servedAt?: number): number {
    if (this.deadBy) throw this.deadBy;
    const served = servedAt !== undefined;
    if (!this.inTick) return this.syncer.endTick(false, served);
    assert(this.entryAt === 0, 'no entry is open at the end of a tick');
    if (this.count > 0) this.flush();
    this.inTick = false;
    if (this.tickError) this.undoTick(this.tickError);
    this.wal.forgetPoint();
    const wrote = this.wrote;
    this.wrote = false;
    return this.syncer.endTick(wrote, served);
  }

  whenSettled(position: number, then: (outcome: Outcome) => void): void {
    this.syncer.whenSettled(position, then);
  }

  /** No entry is lost, and entries to apply were passed to `apply` at the opening. */
  listen(): void {}

  /** No other replica can have committed anything. */
  readBarrier(then: (outcome: Outcome) => void): void {
    then('committed');
  }

  /** There is no other replica to take over. */
  transfer(): void {}

  changeMembers(): boolean {
    return false;
  }

  written(): Promise<void> {
    return this.wal.written();
  }

  sync(): Promise<void> {
    return this.syncer.sync();
  }

  truncate(index: number): void {
    const upTo = Math.min(index, this.keepAfter, this.state.lastIndex);
    if (upTo <= this.state.checkpointIndex || this.deadBy) return;
    this.wal.checkpoint(this.state, upTo);
    void this.wal.collect();
  }

  async *readBack(after: number, to: number): AsyncGenerator<LogEntry> {
    const { wal, state, disk } = this;
    await wal.written();
    yield* readEntries(disk, () => wal.places(state, after), state.group, after, to);
  }

  get writtenBytes(): number {
    return Math.max(this.wal.neededLsn, this.wal.durableLsn);
  }

  status(): LocalGroupStatus {
    const { wal, syncer } = this;
    return {
      firstIndex: wal.firstIndex(this.state),
      lastIndex: this.index,
      appendedLsn: this.writtenBytes,
      durableLsn: wal.durableLsn,
      segments: wal.segmentCount,
      bytes: wal.bytes,
      entries: this.entries,
      frames: wal.frames,
      fsyncs: syncer.syncs,
      lastFsyncMs: syncer.lastMs,
      maxFsyncMs: syncer.maxMs,
      volume: this.volume,
      incarnation: this.incarnation,
      ...this.found,
      checkpointIndex: this.state.checkpointIndex,
      pendingFsyncMs: syncer.pendingMs,
      delayedTicks: syncer.delayed,
      ballastBytes: this.ballast.bytes,
    };
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    try {
      if (!this.deadBy) this.endTick();
    } finally {
      await this.syncer.stop();
      await this.ballast.stop();
      try {
        if (!this.deadBy) await this.closeInOrder();
      } finally {
        await this.wal.close();
      }
    }
  }

  private async closeInOrder(): Promise<void> {
    // Synced once before the mark, so that an intact mark says that all before it is intact.
    await this.wal.sync();
    this.syncer.releaseDurable();
    if (this.wal.appendOptional(FrameKind.clean, undefined, 0)) await this.wal.sync();
    await this.wal.settle();
  }

  private beginTick(): void {
    this.inTick = true;
    if (this.bootPending) {
      try {
        this.boot();
      } catch (error) {
        this.tickError = error as Error;
      }
    }
    this.tickIndex = this.index;
    this.tickLogIndex = this.state.lastIndex;
    this.wal.point(this.tickPoint);
  }

  /**
   * Writes the frame. An error is kept until the end of the tick; later frames of the tick are
   * dropped.
   */
  private flush(): void {
    const w = this.writer;
    const length = w.pos;
    const count = this.count;
    w.reserve(8);
    w.pos = 0;
    this.count = 0;
    if (this.tickError || this.deadBy) return;
    const first = this.state.lastIndex + 1;
    putFrameHeader(
      w.buf,
      length,
      FrameKind.append,
      0,
      count,
      this.state.group,
      this.state.term,
      first,
    );
    const isLater = length >= this.largeFrameBytes;
    try {
      if (isLater) this.wal.appendLater(w.buf);
      else this.wal.append(w.buf);
    } catch (error) {
      this.tickError = error as Error;
      return;
    } finally {
      if (isLater || w.buf.length > keptBufferBytes) w.renew();
    }
    this.wrote = true;
    this.state.lastIndex += count;
    this.state.commit = this.state.lastIndex;
    this.entries += count;
  }

  private undoTick(error: Error): never {
    this.tickError = undefined;
    this.wrote = false;
    if (error instanceof LogWriteError) {
      this.wal.cut(this.tickPoint);
      this.wal.forgetPoint();
      this.entries -= this.state.lastIndex - this.tickLogIndex;
      this.index = this.tickIndex;
      this.state.lastIndex = this.tickLogIndex;
      this.state.commit = this.tickLogIndex;
    }
    throw error;
  }

  /** Says that a new life of the pod begins, and at which index if not where the log ends. */
  private boot(): void {
    const { wal, state } = this;
    if (!wal.groups.has(state.group)) {
      wal.appendNumbers(FrameKind.create, state, 0, 1);
      wal.groups.set(state.group, state);
    }
    if (this.index > state.lastIndex) {
      wal.appendNumbers(FrameKind.snap, state, this.index);
      state.lastIndex = this.index;
      state.commit = this.index;
    }
    wal.appendNumbers(FrameKind.boot, undefined, 0, this.incarnation, this.bootId, this.volume);
    wal.syncNow();
    this.bootPending = false;
  }

  private die(error: Error, fatal: (error: Error) => void): void {
    if (this.deadBy) return;
    this.deadBy = error;
    fatal(error);
  }
}

/** The log must reach back to where the engine is. */
function checkNoGap(table: LogTable, options: LocalGroupOptions): void {
  const state = table.groups.find((g) => g.group === options.group);
  if (state === undefined || state.lastIndex <= options.appliedIndex) return;
  throw new LogMismatchError(
    `the log in ${options.directory} begins after entry ${state.lastIndex}, and the engine has ` +
      `entries up to ${options.appliedIndex} only: restore the engine's snapshot or a backup`,
  );
}

function checkMayBegin(options: LocalGroupOptions): void {
  if (options.acceptLoss) return;
  if (options.volume === undefined && options.appliedIndex === 0) return;
  throw new LogMismatchError(
    `there is no log in ${options.directory}, but this pod had one: is its disk mounted? ` +
      'To go on with what the engine has, accept the loss by opening the log once with acceptLoss',
  );
}

function newVolume(rng: Rng): number {
  return 1 + Math.floor(rng.next() * (Number.MAX_SAFE_INTEGER - 1));
}

function throwUncaught(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}
