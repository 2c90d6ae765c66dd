// A checkpoint on disk, `snapshot-<number>`, little-endian:
//
//   header  "PolyrowM" | version u32 | number u64 | crc32 of these u32          24 bytes
//   frame   length u32 | crc32 u32 | a record batch of that length              any number
//   footer  0 u32 | crc32 u32 | frames u64 | bytes of batches u64               24 bytes
//
// The checksum of a frame or the footer covers its length and what follows the checksum.
//
// In version 1 the number is the applied index of `localGroup`, the only one there is. Version 2 is written where the
// engine holds rows of other groups: its first frame is no record batch, but the index of `localGroup` (f64, big-endian)
// and those of the others (applied-indexes.ts). The number then only says which snapshot is the newest.
//
// It is written under another name and renamed once it is synced, so a file with this name is whole
// unless the disk damaged it. That is an error, never a reason to start from an older one.

import { crc32 } from 'node:zlib';
import { makeDurableDirectory } from '../../universal-row/durable-names.ts';
import type { Disk, DiskFile } from '../../universal-row/environment.ts';
import type { AppliedIndexes } from '../applied-indexes.ts';

const magic = 'PolyrowM';
const oneGroup = 1;
const manyGroups = 2;
const localIndexBytes = 8;
const headerBytes = 24;
const frameHeaderBytes = 8;
const footerBytes = 24;
const namePattern = /^snapshot-(\d+)$/;

/** A snapshot that does not read back as it was written. */
class DamagedSnapshotError extends Error {
  override readonly name = 'DamagedSnapshotError';
  readonly path: string;
  readonly offset: number;

  constructor(path: string, offset: number, what: string) {
    super(`${path} is damaged at byte ${offset}: ${what}`);
    this.path = path;
    this.offset = offset;
  }
}

/**
 * Writes the batches as the snapshot of these indexes, and removes all others. Resolves to the size of the file.
 */
export async function writeSnapshot(
  disk: Disk,
  directory: string,
  applied: AppliedIndexes,
  batches: AsyncIterable<Buffer>,
): Promise<number> {
  makeDurableDirectory(disk, directory);
  const number = applied.hasOthers
    ? Math.max(newestSnapshot(disk, directory) + 1, applied.local)
    : applied.local;
  const name = `snapshot-${number}`;
  const path = `${directory}/${name}`;
  const file = disk.open(`${path}.tmp`, 'create');
  let size = 0;
  try {
    size = await writeFrames(file, number, applied, batches);
    await file.sync();
  } finally {
    file.close();
  }
  disk.rename(`${path}.tmp`, path);
  disk.syncDirectory(directory);
  for (const other of disk.list(directory)) {
    if (other === name || !/^snapshot-\d+(\.tmp)?$/.test(other)) continue;
    await disk.removeAsync(`${directory}/${other}`);
  }
  return size;
}

async function writeFrames(
  file: DiskFile,
  number: number,
  applied: AppliedIndexes,
  batches: AsyncIterable<Buffer>,
): Promise<number> {
  const header = Buffer.alloc(headerBytes);
  header.write(magic, 'latin1');
  header.writeUInt32LE(applied.hasOthers ? manyGroups : oneGroup, 8);
  header.writeBigUInt64LE(BigInt(number), 12);
  header.writeUInt32LE(crc32(header.subarray(0, 20)), 20);
  await file.writeAsync(header, 0, headerBytes, 0);
  let position = headerBytes;
  let frames = 0;
  let bytes = 0;
  const frameHeader = Buffer.alloc(frameHeaderBytes);
  const append = async (batch: Buffer): Promise<void> => {
    frameHeader.writeUInt32LE(batch.length, 0);
    frameHeader.writeUInt32LE(crc32(batch, crc32(frameHeader.subarray(0, 4))), 4);
    await file.writeAsync(frameHeader, 0, frameHeaderBytes, position);
    await file.writeAsync(batch, 0, batch.length, position + frameHeaderBytes);
    position += frameHeaderBytes + batch.length;
    frames++;
    bytes += batch.length;
  };
  if (applied.hasOthers) await append(encodeIndexes(applied));
  for await (const batch of batches) await append(batch);
  const footer = Buffer.alloc(footerBytes);
  footer.writeBigUInt64LE(BigInt(frames), 8);
  footer.writeBigUInt64LE(BigInt(bytes), 16);
  footer.writeUInt32LE(crc32(footer.subarray(8), crc32(footer.subarray(0, 4))), 4);
  await file.writeAsync(footer, 0, footerBytes, position);
  return position + footerBytes;
}

function encodeIndexes(applied: AppliedIndexes): Buffer {
  const local = Buffer.alloc(localIndexBytes);
  local.writeDoubleBE(applied.local);
  return Buffer.concat([local, applied.encodeOthers()]);
}

/** The number of the newest snapshot in the directory, or 0. */
export function newestSnapshot(disk: Disk, directory: string): number {
  let newest = 0;
  for (const name of disk.list(directory)) {
    const match = namePattern.exec(name);
    if (match !== null) newest = Math.max(newest, Number(match[1]));
  }
  return newest;
}

/**
 * Hands over the batches of a snapshot one by one, each valid until the next, and sets the indexes that it is of.
 * Returns the file's size.
 */
export function readSnapshot(
  disk: Disk,
  directory: string,
  number: number,
  applied: AppliedIndexes,
  apply: (batch: Buffer, length: number) => void,
): number {
  const path = `${directory}/snapshot-${number}`;
  const file = disk.open(path, 'read');
  try {
    const damaged = (offset: number, what: string): never => {
      throw new DamagedSnapshotError(path, offset, what);
    };
    const head = Buffer.alloc(headerBytes);
    const size = file.size();
    if (file.read(head, 0, headerBytes, 0) < headerBytes) damaged(0, 'cut short');
    if (head.toString('latin1', 0, 8) !== magic) damaged(0, 'not a snapshot');
    if (head.readUInt32LE(20) !== crc32(head.subarray(0, 20))) damaged(0, 'wrong checksum');
    const version = head.readUInt32LE(8);
    if (version !== oneGroup && version !== manyGroups) damaged(8, `unknown version ${version}`);
    if (head.readBigUInt64LE(12) !== BigInt(number)) damaged(12, 'the number is not the name’s');
    if (version === oneGroup) applied.local = number;
    let batch = Buffer.alloc(0);
    let position = headerBytes;
    let frames = 0;
    let bytes = 0;
    for (;;) {
      if (file.read(head, 0, frameHeaderBytes, position) < frameHeaderBytes) {
        damaged(position, 'cut short');
      }
      const length = head.readUInt32LE(0);
      const crc = head.readUInt32LE(4);
      if (length === 0) break;
      const at = position + frameHeaderBytes;
      if (at + length > size) damaged(position, 'a frame runs past the end');
      if (length > batch.length) batch = Buffer.alloc(length + (length >>> 1));
      if (file.read(batch, 0, length, at) < length) damaged(position, 'cut short');
      if (crc32(batch.subarray(0, length), crc32(head.subarray(0, 4))) !== crc) {
        damaged(position, 'wrong checksum');
      }
      if (version === manyGroups && frames === 0) {
        applied.local = batch.readDoubleBE(0);
        applied.readOthers(batch.subarray(localIndexBytes, length));
      } else apply(batch, length);
      position = at + length;
      frames++;
      bytes += length;
    }
    if (file.read(head, 0, footerBytes, position) < footerBytes) damaged(position, 'cut short');
    if (head.readUInt32LE(4) !== crc32(head.subarray(8), crc32(head.subarray(0, 4)))) {
      damaged(position, 'wrong checksum');
    }
    if (head.readBigUInt64LE(8) !== BigInt(frames) || head.readBigUInt64LE(16) !== BigInt(bytes)) {
      damaged(position, 'frames are missing');
    }
    if (position + footerBytes !== size) damaged(position + footerBytes, 'bytes after the end');
    return size;
  } finally {
    file.close();
  }
}
