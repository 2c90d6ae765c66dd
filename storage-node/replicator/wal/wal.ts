// The log of a pod: appends frames to the last segment, begins a new one when it is full, syncs them and
// lets go of the oldest. The log of every group of the pod goes through here.
//
// A new segment is written to at once, under its temporary name, while its predecessor may still be
// unsynced: so a turn never waits for a full segment. `sync` syncs segments in order, and only then does
// the new one get its final name, which thus proves that all before it is on disk.

import type { Disk, DiskFile } from '../../../universal-row/environment.ts';
import type { Ballast } from './ballast.ts';
import {
  at,
  FrameKind,
  frameHeaderBytes,
  getU32,
  paddedLength,
  putFrameHeader,
  putSegmentHeader,
  putU64,
  sealFrame,
  segmentHeaderBytes,
  segmentName,
} from './format.ts';
import type { LogIdentity } from './format.ts';
import type { SegmentPlace } from './log-reader.ts';
import { isDiskFull, LogWriteError } from './log-errors.ts';
import { putTable, tableBytes } from './table.ts';
import type { GroupState } from './table.ts';

export interface Segment {
  number: number;
  baseLsn: number;
  size: number;
  /** Whether it has its final name, and whether that is sure to survive a power cut. */
  named: boolean;
  nameSynced: boolean;
  /** Header and table: where the other frames begin. */
  openingBytes: number;
  /** By group: the index of its first entry in this segment or a later one. */
  firstIndexes: Map<number, number>;
  /** Open while it is written to or not synced yet. */
  file: DiskFile | undefined;
}

export interface WalOptions {
  disk: Disk;
  directory: string;
  segmentBytes: number;
  identity: LogIdentity;
  incarnation: number;
  ballast: Ballast;
  /** A write failed in a way that leaves the file in doubt: the process must end. */
  fatal: (error: Error) => void;
}

/** A point of the log to go back to. */
export interface LogPoint {
  number: number;
  size: number;
}

export class Wal {
  readonly groups: Map<number, GroupState>;
  /** Where the next frame goes. */
  endLsn = 0;
  /** The end of the last frame that somebody may wait for. */
  neededLsn = 0;
  /** Up to here the log survives a power cut. */
  durableLsn = 0;
  frames = 0;

  readonly #options: WalOptions;
  readonly #segments: Segment[];
  /** The durable LSN that the last frame gave. */
  #publishedLsn = 0;
  /** What the sync under way will have made durable. */
  #syncTarget = 0;
  #syncing = false;
  #namesChanged = false;
  /** Files of segments that were cut off while a sync may have been using them. */
  #dropped: DiskFile[] = [];
  /** A directory opened for reading can be synced like a file, off the event loop. */
  readonly #directory: DiskFile;
  /** Segments from this one on stay, for the log to go back to. */
  #heldSegment = Infinity;
  #collecting: Promise<void> | undefined;
  #closed = false;
  #scratch = Buffer.allocUnsafeSlow(4096);

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
    let bytes = 0;
    for (const segment of this.#segments) bytes += segment.size;
    return bytes;
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
   * log is as it was before, though only `cut` makes that last. Other failures are fatal.
   */
  append(b: Buffer): void {
    const { ballast } = this.#options;
    try {
      if (this.#tryAppend(b)) return;
      // A file system may hand out freed room only once the removal is on disk.
      if (ballast.release()) {
        if (this.#tryAppend(b)) return;
        this.#options.disk.syncDirectory(this.#options.directory);
        if (this.#tryAppend(b)) return;
      }
    } catch (error) {
      throw this.#fail(error);
    }
    throw new LogWriteError(ballast.failure?.message ?? 'disk full');
  }

  /** Where the frame that `append` wrote last begins: a segment, and an offset in it. */
  lastFrame(b: Buffer): { segment: number; offset: number } {
    const { number, size } = this.#active;
    return { segment: number, offset: size - paddedLength(getU32(b, at.length)) };
  }

  /** Bytes of a segment that is still kept. */
  read(segment: number, offset: number, length: number): Buffer {
    const found = this.#segments.find(({ number }) => number === segment);
    if (found === undefined) throw new Error(`the log has no segment ${segment} any more`);
    const file = this.#options.disk.open(this.#path(found), 'read');
    try {
      const b = Buffer.allocUnsafe(length);
      if (file.read(b, 0, length, offset) < length) {
        throw new Error(`${this.#path(found)} ends before ${offset + length}`);
      }
      return b;
    } finally {
      file.close();
    }
  }

  /** Writes a frame that nobody waits for and the log can do without; false when there is no room. */
  appendOptional(kind: FrameKind, group: GroupState | undefined, index: number): boolean {
    putFrameHeader(
      this.#scratch,
      frameHeaderBytes,
      kind,
      0,
      0,
      group?.group ?? 0,
      group?.term ?? 0,
      index,
    );
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

  /** Goes back to an earlier point. Nothing after it was promised to anyone. Lasting when it returns. */
  cut(point: LogPoint): void {
    const { disk, directory } = this.#options;
    try {
      let removed = false;
      while (this.#active.number > point.number) {
        const segment = this.#segments.pop()!;
        if (segment.file) this.#drop(segment.file);
        disk.remove(this.#path(segment));
        removed = true;
      }
      if (removed) disk.syncDirectory(directory);
      const active = this.#active;
      active.file ??= disk.open(this.#path(active), 'append');
      active.file.truncate(point.size);
      active.file.syncNow();
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
      const doubtful = this.#segments.filter((s) => s.baseLsn + s.size > this.durableLsn);
      for (const segment of doubtful) await segment.file?.sync();
      if (this.#namesChanged) {
        this.#namesChanged = false;
        await this.#directory.sync();
      }
    } catch (error) {
      throw this.#fail(error);
    } finally {
      this.#syncing = false;
      for (const file of this.#dropped.splice(0)) file.close();
    }
    this.durableLsn = Math.max(this.durableLsn, this.#syncTarget);
  }

  /** As `sync`, at once. Only while no other is under way. */
  syncNow(): void {
    try {
      for (const segment of this.#segments) segment.file?.syncNow();
      if (this.#namesChanged) this.#options.disk.syncDirectory(this.#options.directory);
    } catch (error) {
      throw this.#fail(error);
    }
    this.#namesChanged = false;
    this.durableLsn = this.endLsn;
  }

  /** After a sync: gives segments their final names, closes full ones, lets go of unneeded ones. */
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
      // Reported: nobody need wait for this.
      .catch((error: unknown) => void this.#fail(error))
      .finally(() => {
        this.#collecting = undefined;
      });
    return this.#collecting;
  }

  /** Index of the first entry of the group that the log has, or would have. */
  firstIndex(group: GroupState): number {
    return this.#segments[0]?.firstIndexes.get(group.group) ?? 1;
  }

  /** Segments that may hold entries of the group after an index, ascending. */
  places(group: GroupState, after: number): SegmentPlace[] {
    const next = (i: number): number =>
      this.#segments[i]?.firstIndexes.get(group.group) ?? group.lastIndex + 1;
    return this.#segments
      .filter((_, i) => i === this.#segments.length - 1 || next(i + 1) > after + 1)
      .map((segment) => ({ number: segment.number, path: this.#path(segment) }));
  }

  /** Tells the disk how far the log is durable, for a recovery to know. Worth it when nothing else is written. */
  publishDurable(): void {
    if (this.#publishedLsn < this.neededLsn && this.durableLsn >= this.neededLsn) {
      this.appendOptional(FrameKind.mark, undefined, 0);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const segment of this.#segments) {
      segment.file?.close();
      segment.file = undefined;
    }
    this.#directory.close();
    // Whoever opens the log next finds no file that is just about to go.
    await this.#collecting;
  }

  get #active(): Segment {
    return this.#segments[this.#segments.length - 1]!;
  }

  #path(segment: Segment): string {
    return `${this.#options.directory}/${segmentName(segment.number, segment.named)}`;
  }

  /** False when the disk is full; the log is then as it was before. */
  #tryAppend(b: Buffer): boolean {
    const length = paddedLength(getU32(b, at.length));
    try {
      const { number, size, openingBytes } = this.#active;
      // A frame larger than a segment gets one of its own.
      const isFull = size + length > this.#options.segmentBytes && size > openingBytes;
      if (isFull) this.#begin(number + 1);
      const active = this.#active;
      sealFrame(b, active.number, this.durableLsn);
      active.file!.write(b, 0, length, active.size);
      active.size += length;
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.#active.file!.truncate(this.#active.size);
      return false;
    }
    this.endLsn += length;
    this.neededLsn = this.endLsn;
    this.#publishedLsn = this.durableLsn;
    this.frames++;
    return true;
  }

  /** Begins a segment under its temporary name. Nothing waits for the disk. */
  #begin(number: number): void {
    const { disk, directory, identity, incarnation } = this.#options;
    const groups = [...this.groups.values()];
    for (const g of groups) g.oldestSegment = this.#oldestNeeded(g) ?? number;
    const table = { incarnation, groups };
    const frameLength = frameHeaderBytes + tableBytes(table);
    const openingBytes = segmentHeaderBytes + paddedLength(frameLength);
    const b = Buffer.alloc(openingBytes);
    putSegmentHeader(b, { ...identity, number, baseLsn: this.endLsn });
    const frame = b.subarray(segmentHeaderBytes);
    putTable(frame, frameHeaderBytes, table);
    putFrameHeader(frame, frameLength, FrameKind.table, 0, groups.length, 0, 0, 0);
    sealFrame(frame, number, this.durableLsn);

    const path = `${directory}/${segmentName(number, false)}`;
    let file: DiskFile | undefined;
    try {
      file = disk.open(path, 'create');
      file.write(b, 0, openingBytes, 0);
    } catch (error) {
      file?.close();
      if (disk.exists(path)) disk.remove(path);
      // With no file descriptor to be had, the old segment grows.
      if (isOutOfFiles(error) && this.#segments.length > 0) return;
      throw error;
    }
    this.#segments.push({
      number,
      baseLsn: this.endLsn,
      size: openingBytes,
      named: false,
      nameSynced: false,
      openingBytes,
      firstIndexes: new Map(groups.map((g) => [g.group, g.lastIndex + 1])),
      file,
    });
    this.endLsn += openingBytes;
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

  /** Number of the first segment with an entry of the group that is still needed. */
  #oldestNeeded(group: GroupState): number | undefined {
    const needed = group.checkpointIndex + 1;
    for (const [i, segment] of this.#segments.entries()) {
      const end = this.#segments[i + 1]?.firstIndexes.get(group.group) ?? group.lastIndex + 1;
      if (needed < end) return segment.number;
    }
    return undefined;
  }

  /** Whether the oldest segment has an entry that some group needs. */
  #isOldestNeeded(): boolean {
    const oldest = this.#segments[0]!.number;
    if (oldest >= this.#heldSegment) return true;
    for (const group of this.groups.values()) {
      if (this.#oldestNeeded(group) === oldest) return true;
    }
    return false;
  }

  async #collect(): Promise<void> {
    while (!this.#closed && this.#segments[1]?.nameSynced && !this.#isOldestNeeded()) {
      const segment = this.#segments.shift()!;
      segment.file?.close();
      await this.#options.disk.removeAsync(this.#path(segment));
    }
  }

  #drop(file: DiskFile): void {
    if (this.#syncing) this.#dropped.push(file);
    else file.close();
  }

  #fail(error: unknown): Error {
    const failure = error instanceof Error ? error : new Error(String(error));
    this.#options.fatal(failure);
    return failure;
  }
}

function isOutOfFiles(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === 'EMFILE' || code === 'ENFILE';
}
