// The file of a series index, `series.index`, little-endian, append-only but for its marks:
//
//   header  "PolyrowI" | version u32 | crc32 of these u32     16 bytes
//   marks   twice: bytes synced f64 | count u32 | crc32 u32   16 bytes each; the higher count holds
//   frames  length u32 | crc32 u32 | records                  see index-records.ts
//
// A mark is written after the frames it covers were synced, alternately to either place, and is not
// synced itself: it distinguishes a damaged synced frame from one that a crash tore. Without it
// such a frame counts as torn; at worst, frames synced right before a power cut are less strictly
// checked.
//
// The file is made under another name and renamed once it is synced, so one with this name has a
// header.

import { crc32 } from 'node:zlib';
import { viewed } from '../../../universal-row/bytes.ts';
import type { Disk, DiskFile } from '../../../universal-row/environment.ts';
import { lostBytes, writingAgain } from '../../../universal-row/written-again.ts';
import { CorruptFileError } from '../parts.ts';
import { type DiskWait, type SlicedWork, syncing, syncingDirectory } from '../sliced-work.ts';
import {
  BadRecordError,
  frameChecksum,
  frameHeaderBytes,
  type RecordWriter,
} from './index-records.ts';

export const indexFileName = 'series.index';
const newFileName = `${indexFileName}.new`;
const magic = 'PolyrowI';
const version = 1;
const headerBytes = 16;
const markBytes = 16;
export const firstFrameAt = headerBytes + 2 * markBytes;
const readBytes = 2 * 1024 * 1024;

export class IndexFile {
  readonly #disk: Disk;
  readonly #directory: string;
  #file: DiskFile | undefined = undefined;
  /** Where the next frame goes. */
  #end = firstFrameAt;
  #marks = 0;
  /** Up to here the file was synced when it was opened. */
  #synced = firstFrameAt;
  /** What an earlier process has written, its file's name too, may not be durable. */
  #mayBeUnsynced = false;
  /** A sync began that is not known to have succeeded. */
  #isSyncing = false;

  constructor(disk: Disk, directory: string) {
    this.#disk = disk;
    this.#directory = directory;
  }

  /** Hands over the records of each frame, `buf[start, end)`, and gets ready to append. */
  open(apply: (buf: Buffer, start: number, end: number) => void): void {
    const path = `${this.#directory}/${indexFileName}`;
    const unfinished = `${this.#directory}/${newFileName}`;
    if (this.#disk.exists(unfinished)) this.#disk.remove(unfinished);
    if (!this.#disk.exists(path)) return;
    const file = this.#disk.open(path, 'append');
    try {
      const synced = this.#readHeader(file);
      const size = file.size();
      if (size < synced) throw corrupt(file, size, `cut short: ${synced} bytes were synced`);
      this.#end = readFrames(file, { from: firstFrameAt, size, synced }, apply);
      if (this.#end < size) file.truncate(this.#end);
      this.#synced = synced;
      for (const _ of this.#writingAgain(file));
      this.#mayBeUnsynced = true;
      this.#file = file;
    } finally {
      if (this.#file === undefined) file.close();
    }
  }

  /**
   * Appends the records of the writer and syncs them. On failure they stay in the writer, and the call may be repeated.
   * Records may be added meanwhile. `logged` waits until the entries of these records are durable in the log.
   */
  *appending(writer: RecordWriter, logged?: DiskWait): SlicedWork {
    if (this.#isSyncing) yield* this.#openingAnew();
    if (this.#mayBeUnsynced && this.#file !== undefined) {
      yield* this.#syncing(this.#file);
      yield syncingDirectory(this.#disk, this.#directory);
      this.#mayBeUnsynced = false;
    }
    if (writer.isEmpty) {
      if (logged !== undefined) yield logged;
      return;
    }
    const file = this.#file;
    if (file === undefined) {
      yield* this.replacing(writer, logged);
      return;
    }
    const frames = writer.frames();
    const count = frames.length;
    if (logged !== undefined) yield logged;
    const end = yield* writingFrames(file, this.#end, frames, count);
    yield* this.#syncing(file);
    writer.drop(count);
    this.#end = end;
    writeMark(file, ++this.#marks, end);
  }

  /** Writes the frames to a new file, which replaces the old file. */
  *replacing(writer: RecordWriter, logged?: DiskWait): SlicedWork {
    const frames = writer.frames();
    const count = frames.length;
    if (logged !== undefined) yield logged;
    const path = `${this.#directory}/${indexFileName}`;
    const newPath = `${this.#directory}/${newFileName}`;
    const file = this.#disk.open(newPath, 'create');
    try {
      writeHeader(file);
      this.#end = yield* writingFrames(file, firstFrameAt, frames, count);
      this.#marks = 1;
      writeMark(file, this.#marks, this.#end);
      yield syncing(file);
    } finally {
      file.close();
    }
    this.close();
    this.#disk.rename(newPath, path);
    yield syncingDirectory(this.#disk, this.#directory);
    this.#file = this.#disk.open(path, 'append');
    this.#isSyncing = false;
    this.#mayBeUnsynced = false;
    writer.drop(count);
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  *#syncing(file: DiskFile): SlicedWork {
    this.#isSyncing = true;
    yield syncing(file);
    this.#isSyncing = false;
  }

  /**
   * The disk reports a failure only once to those who have the file open. A sync that was interrupted may take that
   * report, also of bytes that were written since, so these need a file opened before they are written.
   */
  *#openingAnew(): SlicedWork {
    const file = this.#disk.open(`${this.#directory}/${indexFileName}`, 'append');
    this.#file?.close();
    this.#file = file;
    if (this.#mayBeUnsynced) yield* this.#writingAgain(file);
    this.#isSyncing = false;
  }

  /** Writes what has no mark once more: an earlier sync may have given it up. */
  *#writingAgain(file: DiskFile): SlicedWork {
    yield* writingAgain(file, this.#synced);
    const from = this.#synced;
    const end = readFrames(file, { from, size: this.#end, synced: from }, () => undefined);
    if (end < this.#end) throw lostBytes(file, end, 'a frame is not whole');
  }

  /** Returns how far the file was surely synced. */
  #readHeader(file: DiskFile): number {
    const head = Buffer.alloc(firstFrameAt);
    if (file.read(head, 0, firstFrameAt, 0) < firstFrameAt) throw corrupt(file, 0, 'cut short');
    if (head.toString('latin1', 0, 8) !== magic) throw corrupt(file, 0, 'not a series index');
    if (head.readUInt32LE(12) !== crc32(head.subarray(0, 12))) {
      throw corrupt(file, 0, 'wrong checksum');
    }
    if (head.readUInt32LE(8) !== version) {
      throw corrupt(file, 8, `unknown version ${head.readUInt32LE(8)}`);
    }
    let synced = firstFrameAt;
    for (let at = headerBytes; at < firstFrameAt; at += markBytes) {
      if (head.readUInt32LE(at + 12) !== crc32(head.subarray(at, at + 12))) continue;
      const marks = head.readUInt32LE(at + 8);
      if (marks <= this.#marks) continue;
      this.#marks = marks;
      synced = head.readDoubleLE(at);
    }
    return synced;
  }
}

function writeHeader(file: DiskFile): void {
  const head = Buffer.alloc(firstFrameAt);
  head.write(magic, 'latin1');
  head.writeUInt32LE(version, 8);
  head.writeUInt32LE(crc32(head.subarray(0, 12)), 12);
  file.write(head, 0, firstFrameAt, 0);
}

function writeMark(file: DiskFile, count: number, synced: number): void {
  const mark = Buffer.alloc(markBytes);
  mark.writeDoubleLE(synced, 0);
  mark.writeUInt32LE(count, 8);
  mark.writeUInt32LE(crc32(mark.subarray(0, 12)), 12);
  file.write(mark, 0, markBytes, headerBytes + (count % 2) * markBytes);
}

/** The first `count`. Returns where they end. */
function* writingFrames(
  file: DiskFile,
  from: number,
  frames: readonly Buffer[],
  count: number,
): SlicedWork<number> {
  let at = from;
  for (let i = 0; i < count; i++) {
    const frame = frames[i]!;
    file.write(frame, 0, frame.length, at);
    at += frame.length;
    yield;
  }
  return at;
}

/** Returns where the whole frames end. */
function readFrames(
  file: DiskFile,
  { from, size, synced }: { from: number; size: number; synced: number },
  apply: (buf: Buffer, start: number, end: number) => void,
): number {
  let buf = viewed(Buffer.allocUnsafeSlow(Math.min(size - from, readBytes)));
  // Part of the file in `buf`: `held` bytes from `position` on.
  let held = 0;
  let position = from;
  for (let start = position; start < size; ) {
    const at = start - position;
    const inBuf = held - at;
    const length = inBuf < frameHeaderBytes ? 0 : frameHeaderBytes + buf.readUInt32LE(at);
    const need = Math.max(length, frameHeaderBytes);
    if (inBuf < need && start + need <= size) {
      const into = need <= buf.length ? buf : viewed(Buffer.allocUnsafeSlow(need));
      buf.copy(into, 0, at, held);
      buf = into;
      position = start;
      const more = file.read(buf, inBuf, Math.min(buf.length, size - start) - inBuf, start + inBuf);
      if (more === 0) throw corrupt(file, start, 'shorter than its size');
      held = inBuf + more;
      continue;
    }
    const isWhole =
      length > frameHeaderBytes &&
      start + length <= size &&
      buf.readUInt32LE(at + 4) === frameChecksum(buf, at, at + length);
    if (!isWhole) {
      if (start < synced) throw corrupt(file, start, 'wrong checksum');
      return start;
    }
    try {
      apply(buf, at + frameHeaderBytes, at + length);
    } catch (error) {
      if (!(error instanceof BadRecordError)) throw error;
      throw corrupt(file, start, error.message);
    }
    start += length;
  }
  return size;
}

function corrupt(file: DiskFile, offset: number, what: string): CorruptFileError {
  return new CorruptFileError(`${file.path} is damaged at byte ${offset}: ${what}`);
}
