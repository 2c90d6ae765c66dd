// Opens the log of an earlier process, checks it and returns its frames in order.
//
// A frame that cannot be read, at LSN X, is one of two things. It was never synced: a power cut
// tore it, it was never acknowledged, and the log ends there. Or it was on disk and is damaged:
// then cutting it would lose acknowledged writes. It was on disk
//
//   - if an intact frame behind it has a durable LSN beyond X,
//   - if a later segment has its final name, given only once all before it was synced,
//   - if it opens a segment that has its final name.
//
// Nothing behind an unsynced bad frame counts, even where intact: file systems write back in any order.
// All that no frame says was on disk is written again and synced: see universal-row/written-again.ts.

import type { Disk, DiskFile } from '../../../universal-row/environment.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import { lostBytes, writingAgain } from '../../../universal-row/written-again.ts';
import {
  FrameKind,
  getU64,
  hardStateBytes,
  hardStateFlag,
  intentFlag,
  parseSegmentName,
  replicatedFlag,
  segmentHeaderBytes,
  segmentName,
} from './format.ts';
import type { LogIdentity, SegmentHeader } from './format.ts';
import { giveUpBallast } from './ballast.ts';
import {
  isDiskFull,
  LogCorruptionError,
  LogMismatchError,
  LogWriteError,
  syncingNow,
} from './log-errors.ts';
import { SegmentReader, type Step, Window } from './reader.ts';
import { bury, getTable, newGroupState } from './table.ts';
import type { GroupState, LogTable } from './table.ts';
import { type Segment, segmentPath } from './segment.ts';

const yieldBytes = 8 * 1024 * 1024;
const replicaBytes = 8;

interface RecoveryOptions {
  disk: Disk;
  directory: string;
  cluster: number;
  pod: number;
  /** The volume the log must be on, when that is known. */
  volume: number | undefined;
  /** Cuts at damage instead of refusing to open. */
  acceptLoss: boolean;
  /** The first frame is the table with which the log begins: earlier segments are gone. */
  onTable(table: LogTable): void;
  /** Sees every APPEND, in order; its bytes stay until the answer. */
  onAppend(frame: SegmentReader): MaybePromise<void>;
  /** A replica of the group was removed: its earlier frames are void. */
  onRemoved?(group: number): void;
  onProgress: ((doneBytes: number, totalBytes: number) => void) | undefined;
}

/** A log that is ready to be appended to: cut, synced, and under its final names. */
export interface RecoveredLog {
  identity: LogIdentity;
  segments: Segment[];
  groups: Map<number, GroupState>;
  incarnation: number;
  /** Whether the last frame marks an orderly shutdown. */
  clean: boolean;
  /** Bytes cut off the end. */
  cutBytes: number;
}

interface SegmentFile {
  number: number;
  named: boolean;
  path: string;
}

export async function recoverLog(options: RecoveryOptions): Promise<RecoveredLog | undefined> {
  return new Recovery(options).run();
}

/** The highest number among the files, 0 when there are none. */
export function highestSegment(disk: Disk, directory: string): number {
  return listSegments(disk, directory).at(-1)?.number ?? 0;
}

function listSegments(disk: Disk, directory: string): SegmentFile[] {
  const files: SegmentFile[] = [];
  for (const name of disk.list(directory)) {
    const parsed = parseSegmentName(name);
    if (parsed) files.push({ ...parsed, path: `${directory}/${name}` });
  }
  return files.sort((a, b) => a.number - b.number);
}

/**
 * Start of the log: numbers run without a gap up to the highest final name, and on. Files before a
 * gap were deleted earlier, and are back because a power cut undid their removal.
 */
function firstOfChain(files: readonly SegmentFile[]): number {
  let first = files.findLastIndex((file) => file.named);
  while (first > 0 && files[first - 1]!.number === files[first]!.number - 1) first--;
  return Math.max(first, 0);
}

class Recovery {
  readonly #options: RecoveryOptions;
  readonly #window = new Window();
  readonly #groups = new Map<number, GroupState>();
  readonly #segments: Segment[] = [];
  #files: SegmentFile[] = [];
  #identity: LogIdentity | undefined;
  /** Where the last intact frame ends. */
  #lsn = 0;
  /** All before it was on disk, as the frames say. */
  #durableLsn = 0;
  #incarnation = 0;
  #clean = false;
  /** The log ends at this offset of this file; the files after it go. */
  #end: { file: number; offset: number } | undefined;
  #cutBytes = 0;
  #totalBytes = 0;
  #doneBytes = 0;
  #yieldAt = yieldBytes;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  async run(): Promise<RecoveredLog | undefined> {
    const { disk, directory } = this.#options;
    const all = listSegments(disk, directory);
    const first = firstOfChain(all);
    this.#files = all.slice(first);
    for (const file of this.#files) {
      const handle = disk.open(file.path, 'read');
      this.#totalBytes += handle.size();
      handle.close();
    }
    for (let i = 0; i < this.#files.length && this.#end === undefined; i++) await this.#scan(i);
    this.#options.onProgress?.(this.#totalBytes, this.#totalBytes);
    this.#removeRest(all.slice(0, first));
    await this.#secure();
    if (this.#identity === undefined || this.#segments.length === 0) return undefined;
    return {
      identity: this.#identity,
      segments: this.#segments,
      groups: this.#groups,
      incarnation: this.#incarnation,
      clean: this.#clean,
      cutBytes: this.#cutBytes,
    };
  }

  async #scan(i: number): Promise<void> {
    const file = this.#files[i]!;
    const handle = this.#options.disk.open(file.path, 'read');
    try {
      const reader = new SegmentReader(handle, file.number, this.#window);
      const header = reader.header();
      if (typeof header === 'string') {
        this.#stop(i, reader, 0, undefined, header);
        return;
      }
      if (i === 0) this.#adopt(file, header);
      const wrong = i === 0 ? '' : this.#linkError(i, header);
      if (wrong === '') await this.#scanFrames(i, reader, header);
      else this.#stop(i, reader, 0, undefined, wrong);
    } finally {
      handle.close();
    }
  }

  async #scanFrames(i: number, reader: SegmentReader, header: SegmentHeader): Promise<void> {
    const file = this.#files[i]!;
    const segment: Segment = {
      number: header.number,
      baseLsn: header.baseLsn,
      size: segmentHeaderBytes,
      named: file.named,
      nameSynced: file.named,
      hasUnsyncedCut: false,
      openingBytes: 0,
      firstIndexes: new Map(),
      file: undefined,
    };
    this.#lsn = header.baseLsn + segmentHeaderBytes;
    for (;;) {
      const step = reader.next();
      const opening = reader.offset === segmentHeaderBytes;
      if (step === 'bad' || (step === 'end' && opening)) {
        const reason = step === 'bad' ? reader.reason : 'the segment has no table';
        this.#stop(i, reader, reader.offset, header.baseLsn, reason);
        break;
      }
      if (step === 'end') break;
      const wrong =
        opening === (reader.kind === FrameKind.table)
          ? this.#note(reader, i)
          : 'a table is not where it should be';
      if (wrong !== '') {
        this.#damaged(i, reader.offset, wrong);
        this.#cut(i, reader.offset);
        break;
      }
      if (opening) {
        segment.openingBytes = reader.nextOffset;
        for (const g of this.#groups.values()) segment.firstIndexes.set(g.group, g.lastIndex + 1);
        this.#segments.push(segment);
      }
      if (reader.kind === FrameKind.append) {
        const waiting = this.#options.onAppend(reader);
        if (waiting instanceof Promise) await waiting;
      }
      segment.size = reader.nextOffset;
      this.#durableLsn = Math.max(this.#durableLsn, reader.durableLsn);
      this.#lsn = segment.baseLsn + segment.size;
      if (this.#doneBytes + segment.size >= this.#yieldAt) {
        this.#yieldAt = this.#doneBytes + segment.size + yieldBytes;
        this.#options.onProgress?.(this.#doneBytes + segment.size, this.#totalBytes);
        await new Promise(setImmediate);
      }
    }
    this.#doneBytes += reader.size;
  }

  #adopt(file: SegmentFile, header: SegmentHeader): void {
    const { cluster, pod, volume } = this.#options;
    if (header.cluster !== cluster || header.pod !== pod) {
      throw new LogMismatchError(
        `${file.path} is of cluster ${header.cluster}, pod ${header.pod}; ` +
          `this is cluster ${cluster}, pod ${pod}`,
      );
    }
    if (volume !== undefined && header.volume !== volume) {
      throw new LogMismatchError(
        `${file.path} is on volume ${header.volume}; the log of this pod is on volume ${volume}`,
      );
    }
    this.#identity = { cluster, pod, volume: header.volume };
  }

  /** Why a segment does not continue the one before it, or ''. */
  #linkError(i: number, header: SegmentHeader): string {
    const before = this.#files[i - 1]!;
    const { cluster, pod, volume } = this.#identity!;
    if (header.number !== before.number + 1) return `segment ${before.number + 1} is missing`;
    if (header.cluster !== cluster || header.pod !== pod || header.volume !== volume) {
      return 'the segment is of another log';
    }
    if (header.baseLsn === this.#lsn) return '';
    return `the segment begins at LSN ${header.baseLsn}, and the one before it ends at ${this.#lsn}`;
  }

  /** Processes a frame's effect on its group; returns an error, or ''. */
  #note(frame: SegmentReader, segment: number): string {
    const groups = this.#groups;
    this.#clean = frame.kind === FrameKind.clean;
    switch (frame.kind) {
      case FrameKind.table: {
        const table = getTable(frame.buf, frame.bodyStart, frame.bodyEnd);
        this.#incarnation = Math.max(this.#incarnation, table.incarnation);
        if (segment > 0) return '';
        for (const g of table.groups) groups.set(g.group, g);
        this.#options.onTable(table);
        return '';
      }
      case FrameKind.boot:
        this.#incarnation = Math.max(this.#incarnation, getU64(frame.buf, frame.bodyStart));
        return '';
      case FrameKind.clean:
      case FrameKind.mark:
        return '';
      case FrameKind.create:
        groups.set(frame.group, created(frame));
        return '';
      case FrameKind.tombstone: {
        const state = groups.get(frame.group) ?? newGroupState(frame.group);
        groups.set(frame.group, bury(state, getU64(frame.buf, frame.bodyStart)));
        this.#options.onRemoved?.(frame.group);
        return '';
      }
      default: {
        const group = groups.get(frame.group);
        return group ? noteGroupFrame(frame, group) : `group ${frame.group} was never created`;
      }
    }
  }

  /** The log cannot be read from here on. */
  #stop(
    i: number,
    reader: SegmentReader,
    offset: number,
    baseLsn: number | undefined,
    reason: string,
  ): void {
    const lsn = baseLsn === undefined ? this.#lsn : baseLsn + offset;
    const proof = this.#proofOf(i, reader, offset, lsn, baseLsn);
    if (proof !== '') this.#damaged(i, offset, `${reason}, but ${proof}`);
    this.#cut(i, offset);
  }

  /** How we know that the log was once on disk beyond `lsn`, or '' when it may never have been. */
  #proofOf(
    i: number,
    reader: SegmentReader,
    offset: number,
    lsn: number,
    baseLsn: number | undefined,
  ): string {
    if (this.#files[i]!.named && offset <= segmentHeaderBytes) {
      return 'the segment has its final name, so its beginning was on disk';
    }
    const named = this.#files.slice(i + 1).find((file) => file.named);
    if (named) return `${named.path} was named only when this was on disk`;
    const found = reader.findProof(offset + 8, lsn, baseLsn);
    if (found >= 0) return `the frame at offset ${found} says that this was on disk`;
    for (const file of this.#files.slice(i + 1)) {
      const handle = this.#options.disk.open(file.path, 'read');
      try {
        const later = new SegmentReader(handle, file.number, this.#window);
        const offsetThere = later.findProof(segmentHeaderBytes, lsn, undefined);
        if (offsetThere >= 0) {
          return `the frame at offset ${offsetThere} of ${file.path} says that this was on disk`;
        }
      } finally {
        handle.close();
      }
    }
    return '';
  }

  #damaged(i: number, offset: number, reason: string): void {
    if (this.#options.acceptLoss) return;
    let lastIndex = 0;
    for (const g of this.#groups.values()) lastIndex = Math.max(lastIndex, g.lastIndex);
    throw new LogCorruptionError(this.#files[i]!.path, offset, this.#lsn, lastIndex, reason);
  }

  #cut(file: number, offset: number): void {
    this.#end = { file, offset };
    this.#clean = false;
  }

  /** Removes segments after the end, and reappeared ones from before the beginning. */
  #removeRest(before: readonly SegmentFile[]): void {
    const { disk, directory } = this.#options;
    const rest = [...before];
    if (this.#end) {
      const { file, offset } = this.#end;
      // A segment without its table is no use: the one before it is the last.
      const firstGone = offset > segmentHeaderBytes ? file + 1 : file;
      const gone = this.#files.splice(firstGone);
      for (const { path } of gone) {
        const handle = disk.open(path, 'read');
        this.#cutBytes += handle.size();
        handle.close();
      }
      // The last first, so that the rest is a valid log at any time.
      rest.push(...gone.reverse());
    }
    for (const { path } of rest) disk.remove(path);
    if (rest.length > 0) disk.syncDirectory(directory);
  }

  async #secureSegment(segment: Segment, file: DiskFile): Promise<void> {
    const { disk, directory } = this.#options;
    this.#cutBytes += Math.max(0, file.size() - segment.size);
    const from = Math.min(segment.size, Math.max(0, this.#durableLsn - segment.baseLsn));
    try {
      await rewrite(file, from, segment.size);
    } catch (error) {
      // A file system that copies on write needs room for that.
      if (!isDiskFull(error)) throw error;
      if (!giveUpBallast(disk, directory)) throw noRoom(file, segment.size - from, error);
      disk.syncDirectory(directory);
      await rewrite(file, from, segment.size);
    }
    this.#readAgain(segment, file, from);
    syncingNow(() => file.syncNow());
  }

  /** What was given up may have left memory between the scan and the copy. Its frames were processed, but are gone. */
  #readAgain(segment: Segment, file: DiskFile, from: number): void {
    const reader = new SegmentReader(file, segment.number, this.#window);
    const header = reader.header();
    reader.nextOffset = Math.max(segmentHeaderBytes, from);
    let step: Step = 'frame';
    while (reader.nextOffset < segment.size && step === 'frame') step = reader.next();
    if (typeof header !== 'string' && step === 'frame' && reader.size === segment.size) return;
    const reason = typeof header === 'string' ? header : reader.reason || 'it is shorter now';
    throw lostBytes(file, reader.offset, reason);
  }

  /**
   * Writes and syncs what was read but may not be on disk yet: only then may new entries depend on
   * it. Gives the segments their final names, and leaves the last one open.
   */
  async #secure(): Promise<void> {
    const { disk, directory } = this.#options;
    const lastNamed = this.#segments.findLastIndex((segment) => segment.named);
    const doubtful = this.#segments.slice(Math.max(lastNamed, 0));
    for (const segment of doubtful) {
      const file = disk.open(segmentPath(directory, segment), 'append');
      try {
        await this.#secureSegment(segment, file);
        if (segment === this.#segments.at(-1)) segment.file = file;
      } finally {
        if (segment.file === undefined) file.close();
      }
    }
    // The name that a segment has must last until it has the next one.
    disk.syncDirectory(directory);
    if (!doubtful.some((segment) => !segment.named)) return;
    for (const segment of doubtful) {
      if (segment.named) continue;
      const { number } = segment;
      disk.rename(
        `${directory}/${segmentName(number, false)}`,
        `${directory}/${segmentName(number, true)}`,
      );
      segment.named = true;
      segment.nameSynced = true;
    }
    disk.syncDirectory(directory);
  }
}

/** Cuts the file to its size in the log, and writes its doubtful end again. */
async function rewrite(file: DiskFile, from: number, size: number): Promise<void> {
  if (file.size() > size) file.truncate(size);
  const doubted = writingAgain(file, from);
  while (doubted.next().done !== true) await new Promise(setImmediate);
}

function noRoom(file: DiskFile, bytes: number, cause: unknown): LogWriteError {
  const message =
    `disk full: the last ${bytes} bytes of ${file.path} cannot be written again, ` +
    'which is needed because an earlier sync may have failed';
  return new LogWriteError(message, { cause });
}

function noteGroupFrame(frame: SegmentReader, group: GroupState): string {
  switch (frame.kind) {
    case FrameKind.append: {
      const isReplicated = (frame.flags & replicatedFlag) !== 0;
      const next = group.lastIndex + 1;
      if (isReplicated ? frame.index > next : frame.index !== next) {
        return `entry ${frame.index} follows entry ${group.lastIndex}`;
      }
      group.lastIndex = frame.index + frame.count - 1;
      if (!isReplicated) group.commit = group.lastIndex;
      noteHardState(frame, group);
      return '';
    }
    case FrameKind.snap:
      notePositions(frame, group, frame.flags & hardStateFlag ? hardStateBytes : 0);
      if (frame.flags & intentFlag) return '';
      group.lastIndex = frame.index;
      group.commit = frame.index;
      noteHardState(frame, group);
      return '';
    case FrameKind.ckpt:
      group.checkpointIndex = Math.max(group.checkpointIndex, frame.index);
      notePositions(frame, group, 0);
      return '';
    default:
      return `a frame of kind ${frame.kind} belongs to a replicated group`;
  }
}

function created(frame: SegmentReader): GroupState {
  const group = newGroupState(frame.group);
  const { index, term } = frame;
  Object.assign(group, { lastIndex: index, commit: index, checkpointIndex: index });
  if (index > 0) group.term = term;
  notePositions(frame, group, replicaBytes);
  return group;
}

/** For a replicated group: the position at which its log begins. */
function notePositions(
  { buf, bodyStart, bodyEnd }: SegmentReader,
  group: GroupState,
  skip: number,
): void {
  const start = bodyStart + skip;
  if (bodyEnd > start) group.configuration = Uint8Array.from(buf.subarray(start, bodyEnd));
}

function noteHardState(frame: SegmentReader, group: GroupState): void {
  if ((frame.flags & hardStateFlag) === 0) return;
  const { buf, bodyStart } = frame;
  group.term = getU64(buf, bodyStart);
  group.vote = getU64(buf, bodyStart + 8);
  group.commit = getU64(buf, bodyStart + 16);
}
