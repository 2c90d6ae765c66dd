// The log of a pod: appends frames to the last segment, begins a new one when it is full, syncs
// them and deletes the oldest. The log of every group of the pod goes through here.
//
// A new segment is written to at once, under its temporary name, while its predecessor may still be
// unsynced: so a tick never waits for a full segment. `sync` syncs segments in order, and only then
// does the new one get its final name, which thus proves that all before it is on disk.

import type { Disk, DiskFile } from '../../../universal-row/environment.ts';
import { spareBuffers } from '../../../universal-row/spare-buffers.ts';
import type { Ballast } from './ballast.ts';
import { FrameRun } from './frame-run.ts';
import {
  at,
  FrameKind,
  frameHeaderBytes,
  getU32,
  paddedLength,
  putFrameHeader,
  putU64,
  sealFrame,
  sealLargeFrame,
} from './format.ts';
import type { LogIdentity } from './format.ts';
import type { SegmentPlace } from './log-reader.ts';
import { isDiskFull, LogSyncError, LogWriteError, syncingNow } from './log-errors.ts';
import { PendingWrites } from './pending-writes.ts';
import {
  isOldestNeeded,
  oldestNeeded,
  pinningGroups,
  segmentPath,
  segmentsAfter,
} from './segment.ts';
import type { Segment } from './segment.ts';
import { createSegment, readSegment, writtenUnlessFull } from './segment-file.ts';
import type { GroupState } from './table.ts';

interface WalOptions {
  disk: Disk;
  directory: string;
  segmentBytes: number;
  identity: LogIdentity;
  incarnation: number;
  ballast: Ballast;
  /** A write failed in a way that leaves the file in doubt: the process must end. */
  fatal: (error: Error) => void;
}

export interface LogPoint {
  number: number;
  size: number;
}

const noBytes = new Uint8Array(0);
/** Free bytes of a disk above which all writes of a tick fit. */
const spareBytes = 256 * 1024 * 1024;

export class Wal {
  readonly groups: Map<number, GroupState>;
  /** Where the next frame goes. */
  endLsn = 0;
  /** End of the last frame that a caller may wait for. */
  neededLsn = 0;
  /** Up to here the log survives a power cut. */
  durableLsn = 0;
  frames = 0;

  readonly #options: WalOptions;
  readonly #segments: Segment[];
  /** The durable LSN that the last frame gave. */
  #publishedLsn = 0;
  /** LSN that the current sync will have made durable. */
  #syncTarget = 0;
  #syncing = false;
  #failure: Error | undefined;
  #namesChanged = false;
  /** Files of segments that were cut off while a sync may have been using them. */
  #dropped: DiskFile[] = [];
  /** A directory opened for reading can be synced like a file, off the event loop. */
  readonly #directory: DiskFile;
  /** Segments from this one on stay, for the log to go back to. */
  #heldSegment = Infinity;
  #collecting: Promise<void> | undefined;
  #closed = false;
  readonly #pending = new PendingWrites();
  #scratch = Buffer.allocUnsafeSlow(4096);
  readonly #run = new FrameRun();

  constructor(options: WalOptions, segments: Segment[], groups: Map<number, GroupState>) {
    this.#options = options;
    this.#segments = segments;
    this.groups = groups;
    this.#directory = options.disk.open(options.directory, 'read');
    const last = segments.at(-1);
    if (last === undefined) return;
    this.endLsn = last.baseLsn + last.size;
    this.neededLsn = this.endLsn;
    this.durableLsn = this.endLsn;
  }

  get segmentCount(): number {
    return this.#segments.length;
  }

  get bytes(): number {
    return this.#segments.reduce((bytes, { size }) => bytes + size, 0);
  }

  /** All before it is in the files; less than `endLsn` while a frame is written by `appendLater`. */
  get writtenLsn(): number {
    return Math.min(this.#pending.firstLsn, this.endLsn);
  }

  /** Called when `writtenLsn` has grown by itself. */
  set onWritten(then: () => void) {
    this.#pending.onWritten = then;
  }

  /** Resolves when all that has been appended is in the files. */
  written(): Promise<void> {
    return this.#pending.ended();
  }

  /** Whether segments wait for their final names: a sync and `settle` are due. */
  get unsettled(): boolean {
    return !this.#active.nameSynced;
  }

  /** The first segment of a log that has none. Returns once it is safe. */
  create(number: number): void {
    const { disk, directory } = this.#options;
    this.#begin(number);
    this.#active.file!.syncNow();
    disk.syncDirectory(directory);
    if (this.#name(this.#active)) disk.syncDirectory(directory);
    this.#active.nameSynced = this.#active.named;
    this.#namesChanged = false;
    this.neededLsn = this.endLsn;
    this.durableLsn = this.endLsn;
  }

  /**
   * Writes the frame at the start of the buffer, whose header `putFrameHeader` filled. On a full disk it
   * is written into the room of the ballast; if even that is too small, throws `LogWriteError` and the
   * log is as it was before, though only `cut` or a sync makes that last. Other failures are fatal.
   */
  append(b: Buffer): void {
    this.#withBallast(() => this.#tryAppend(b));
  }

  /**
   * As `append`, for a large frame whose buffer is not used elsewhere, then or later: its checksum is computed in
   * steps, and it is written off the event loop. Where there may not be room for it, it is written
   * at once: later it is too late to go back, and a full disk is fatal.
   */
  appendLater(b: Buffer): void {
    const { disk, directory } = this.#options;
    const length = paddedLength(getU32(b, at.length));
    if (disk.freeBytes(directory) < 2 * length + spareBytes || !this.#makeRoom(length)) {
      this.append(b);
      return;
    }
    const { number, size, file } = this.#active;
    const write = sealLargeFrame(b, number, this.durableLsn)
      .then(() => file!.writeAsync(b, 0, length, size))
      .catch((error: unknown) => {
        if (!isDiskFull(error)) throw this.#fail(error);
        try {
          this.#withBallast(() => writtenUnlessFull(file!, b, length, size));
        } catch (full) {
          throw this.#fail(full);
        }
      })
      .then(() => spareBuffers.give(b));
    this.#pending.add(this.endLsn, write);
    this.#grown(length);
    this.frames++;
  }

  /**
   * Writes many frames with as few calls as segments and `FrameRun` allow. `frame` encodes one as `append` wants it,
   * or undefined for none; `placed` is told where it went, in order, once it is written.
   */
  appendAll(
    count: number,
    frame: (i: number) => Buffer | undefined,
    placed: (i: number, segment: number, offset: number) => void,
  ): void {
    const run = this.#run;
    run.clear();
    const writeRun = (): void => {
      if (run.bytes === 0) return;
      this.#withBallast(() => this.#tryWrite(run.buffer, run.bytes));
      run.written(this.#active.number, this.#active.size, placed);
    };
    for (let i = 0; i < count; i++) {
      const b = frame(i);
      if (b === undefined) continue;
      const length = paddedLength(getU32(b, at.length));
      if (!run.hasRoom(length)) writeRun();
      const { number, size } = this.#active;
      if (!run.hasRoom(length) || size + run.bytes + length > this.#segmentBytes) {
        writeRun();
        this.append(b);
        placed(i, this.#active.number, this.#active.size - length);
        continue;
      }
      sealFrame(b, number, this.durableLsn);
      run.add(i, b, length);
      this.frames++;
    }
    writeRun();
  }

  /** Bytes of a segment that is still kept. */
  read(segment: number, offset: number, length: number): Buffer {
    const found = this.#segments.find(({ number }) => number === segment);
    if (found === undefined) throw new Error(`the log has no segment ${segment} any more`);
    return readSegment(this.#options.disk, this.#path(found), offset, length);
  }

  /**
   * Writes a frame that no caller waits for and the log can do without; false when there is no
   * room.
   */
  appendOptional(
    kind: FrameKind,
    group: GroupState | undefined,
    index: number,
    body: Uint8Array = noBytes,
  ): boolean {
    const length = frameHeaderBytes + body.length;
    if (length + 8 > this.#scratch.length) this.#scratch = Buffer.allocUnsafeSlow(2 * length);
    this.#scratch.set(body, frameHeaderBytes);
    putFrameHeader(this.#scratch, length, kind, 0, 0, group?.group ?? 0, group?.term ?? 0, index);
    const needed = this.neededLsn;
    try {
      const written = this.#tryAppend(this.#scratch);
      this.neededLsn = needed;
      return written;
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Writes a frame whose body is a few numbers. */
  appendNumbers(kind: FrameKind, group: GroupState | undefined, index: number, ...body: number[]) {
    const length = frameHeaderBytes + body.length * 8;
    for (const [i, value] of body.entries()) {
      putU64(this.#scratch, frameHeaderBytes + i * 8, value);
    }
    putFrameHeader(this.#scratch, length, kind, 0, 0, group?.group ?? 0, group?.term ?? 0, index);
    this.append(this.#scratch);
  }

  /** Where the log is now. Until `forgetPoint`, it can go back here. */
  point(into: LogPoint): void {
    this.#heldSegment = this.#active.number;
    into.number = this.#active.number;
    into.size = this.#active.size;
  }

  forgetPoint(): void {
    this.#heldSegment = Infinity;
  }

  /** Truncates the log to an earlier point, durably. Nothing after it was acknowledged. */
  cut(point: LogPoint): void {
    const { disk, directory } = this.#options;
    const from = this.#segments.find(({ number }) => number === point.number)!;
    if (this.#pending.lastLsn >= from.baseLsn + point.size) {
      throw this.#fail(
        new Error(
          'a large frame is on its way to the log, and there is no room for what follows it',
        ),
      );
    }
    try {
      let removed = false;
      while (this.#active.number > point.number) {
        const segment = this.#segments.pop()!;
        if (segment.file) this.#drop(segment.file);
        disk.remove(this.#path(segment));
        removed = true;
      }
      if (removed) syncingNow(() => disk.syncDirectory(directory));
      const active = this.#active;
      active.file ??= disk.open(this.#path(active), 'append');
      active.file.truncate(point.size);
      syncingNow(() => active.file!.syncNow());
      active.size = point.size;
      this.endLsn = active.baseLsn + active.size;
      this.neededLsn = Math.min(this.neededLsn, this.endLsn);
      this.durableLsn = Math.min(this.durableLsn, this.endLsn);
      this.#syncTarget = Math.min(this.#syncTarget, this.endLsn);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Makes all there is durable, off the event loop. Never called while a call is under way. */
  async sync(): Promise<void> {
    this.#syncTarget = this.endLsn;
    this.#syncing = true;
    try {
      await this.#pending.ended();
      await this.#syncFiles();
    } catch (error) {
      throw this.#fail(error);
    } finally {
      this.#syncing = false;
      for (const file of this.#dropped.splice(0)) file.close();
    }
    // Of two syncs of a file that overlap, the disk may report a failure to one.
    if (this.#failure !== undefined) throw this.#failure;
    this.durableLsn = Math.max(this.durableLsn, this.#syncTarget);
  }

  async #syncFiles(): Promise<void> {
    const doubtful = this.#segments.filter(
      (s) => s.hasUnsyncedCut || s.baseLsn + s.size > this.durableLsn,
    );
    try {
      for (const segment of doubtful) {
        segment.hasUnsyncedCut = false;
        await segment.file?.sync();
      }
      if (this.#namesChanged) {
        this.#namesChanged = false;
        await this.#directory.sync();
      }
    } catch (error) {
      throw new LogSyncError(error);
    }
  }

  /** As `sync`, at once. Only while no other is under way. */
  syncNow(): void {
    try {
      syncingNow(() => {
        for (const segment of this.#segments) segment.file?.syncNow();
        if (this.#namesChanged) this.#options.disk.syncDirectory(this.#options.directory);
      });
    } catch (error) {
      throw this.#fail(error);
    }
    this.#namesChanged = false;
    this.durableLsn = this.endLsn;
  }

  /** After a sync: gives segments their final names, closes full ones, deletes unneeded ones. */
  async settle(): Promise<void> {
    const renamed: Segment[] = [];
    try {
      for (const segment of this.#segments) {
        if (segment.nameSynced || segment.baseLsn >= this.durableLsn) continue;
        if (segment.named || this.#name(segment)) renamed.push(segment);
      }
      if (renamed.length > 0) await this.#directory.sync();
    } catch (error) {
      throw this.#fail(error);
    }
    for (const segment of renamed) segment.nameSynced = true;
    for (const [i, segment] of this.#segments.entries()) {
      if (!this.#segments[i + 1]?.nameSynced) break;
      segment.file?.close();
      segment.file = undefined;
    }
    await this.collect();
  }

  /** Entries of the group up to `index` are needed no more. */
  checkpoint(group: GroupState, index: number): void {
    group.checkpointIndex = Math.max(group.checkpointIndex, index);
    this.appendOptional(FrameKind.ckpt, group, index);
  }

  /** Removes the oldest segments, one after the other, while no group needs them and a later table tells of them. */
  collect(): Promise<void> {
    this.#collecting ??= this.#collect()
      // Errors are reported, so callers need not wait for this.
      .catch((error: unknown) => void this.#fail(error))
      .finally(() => {
        this.#collecting = undefined;
      });
    return this.#collecting;
  }

  /** Groups whose entries keep the oldest segment, while there are others. */
  pinning(): number[] {
    return pinningGroups(this.#segments, this.groups.values());
  }

  /** Index of the first entry of the group that the log has, or would have. */
  firstIndex(group: GroupState): number {
    return this.#segments[0]?.firstIndexes.get(group.group) ?? 1;
  }

  /** Segments that may hold entries of the group after an index, ascending. */
  places(group: GroupState, after: number): SegmentPlace[] {
    return segmentsAfter(this.#segments, group, after).map((segment) => ({
      number: segment.number,
      path: this.#path(segment),
    }));
  }

  /** Writes to disk how far the log is durable, for recovery. Useful when nothing else is written. */
  publishDurable(): void {
    if (this.#publishedLsn < this.neededLsn && this.durableLsn >= this.neededLsn) {
      this.appendOptional(FrameKind.mark, undefined, 0);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    // One that has failed was reported.
    await this.#pending.ended().catch(() => {});
    for (const segment of this.#segments) {
      segment.file?.close();
      segment.file = undefined;
    }
    this.#directory.close();
    // The next process to open the log finds no file that is about to be deleted.
    await this.#collecting;
  }

  get #active(): Segment {
    return this.#segments[this.#segments.length - 1]!;
  }

  /** Size limit of the last segment: at least four times its opening table, so that most of the segment is frames. */
  get #segmentBytes(): number {
    return Math.max(this.#options.segmentBytes, 4 * this.#active.openingBytes);
  }

  #path(segment: Segment): string {
    return segmentPath(this.#options.directory, segment);
  }

  /** Writes, on a full disk into the room of the ballast. */
  #withBallast(attempt: () => boolean): void {
    const { ballast } = this.#options;
    try {
      if (attempt()) return;
      // A file system may hand out freed room only once the removal is on disk.
      if (ballast.release()) {
        if (attempt()) return;
        this.#options.disk.syncDirectory(this.#options.directory);
        if (attempt()) return;
      }
    } catch (error) {
      throw this.#fail(error);
    }
    throw new LogWriteError(ballast.failure?.message ?? 'disk full');
  }

  /** False when the disk is full; the log is then as it was before. */
  #tryAppend(b: Buffer): boolean {
    const length = paddedLength(getU32(b, at.length));
    if (!this.#makeRoom(length)) return false;
    sealFrame(b, this.#active.number, this.durableLsn);
    if (!this.#tryWrite(b, length)) return false;
    this.frames++;
    return true;
  }

  /** Begins a new segment if there is no room for a frame in the last one. False when the disk is full. */
  #makeRoom(length: number): boolean {
    try {
      const { number, size, openingBytes } = this.#active;
      // A frame larger than a segment gets one of its own.
      const isFull = size + length > this.#segmentBytes && size > openingBytes;
      if (isFull) this.#begin(number + 1);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      return false;
    }
    return true;
  }

  /** Writes sealed frames to the last segment. */
  #tryWrite(b: Buffer, length: number): boolean {
    const { file, size } = this.#active;
    if (!writtenUnlessFull(file!, b, length, size)) {
      file!.truncate(size);
      this.#active.hasUnsyncedCut = true;
      return false;
    }
    this.#grown(length);
    return true;
  }

  #grown(length: number): void {
    this.#active.size += length;
    this.endLsn += length;
    this.neededLsn = this.endLsn;
    this.#publishedLsn = this.durableLsn;
  }

  /** Begins a segment under its temporary name. With no file descriptor to be had, the old one grows. */
  #begin(number: number): void {
    const { disk, directory, identity, incarnation } = this.#options;
    const { durableLsn, endLsn: baseLsn } = this;
    const groups = [...this.groups.values()];
    for (const g of groups) g.oldestSegment = oldestNeeded(this.#segments, g) ?? number;
    const table = { incarnation, groups };
    const segment = createSegment(disk, directory, {
      identity,
      number,
      baseLsn,
      durableLsn,
      table,
    });
    if (segment === undefined) {
      if (this.#segments.length > 0) return;
      throw new Error(`no file descriptor is left for the log in ${directory}`);
    }
    this.#segments.push(segment);
    this.endLsn += segment.openingBytes;
    this.#namesChanged = true;
  }

  /** False when the disk is too full even for that. */
  #name(segment: Segment): boolean {
    const from = this.#path(segment);
    segment.named = true;
    try {
      this.#options.disk.rename(from, this.#path(segment));
    } catch (error) {
      segment.named = false;
      if (!isDiskFull(error)) throw error;
    }
    return segment.named;
  }

  async #collect(): Promise<void> {
    while (!this.#closed && this.#segments[1]?.nameSynced && this.#mayCollect()) {
      const segment = this.#segments.shift()!;
      segment.file?.close();
      await this.#options.disk.removeAsync(this.#path(segment));
    }
  }

  #mayCollect(): boolean {
    if (this.#segments[0]!.number >= this.#heldSegment) return false;
    return !isOldestNeeded(this.#segments, this.groups.values());
  }

  #drop(file: DiskFile): void {
    if (this.#syncing) this.#dropped.push(file);
    else file.close();
  }

  #fail(error: unknown): Error {
    const failure = error instanceof Error ? error : new Error(String(error));
    this.#failure ??= failure;
    this.#options.fatal(failure);
    return failure;
  }
}
