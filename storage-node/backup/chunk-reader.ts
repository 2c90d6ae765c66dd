// Reads chunk files back, frame by frame, and checks all there is to check of them.

import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { createInflateRaw, inflateRaw } from 'node:zlib';
import {
  type ChunkDisk,
  chunkFooterBytes,
  type ChunkFile,
  type ChunkHandle,
  chunkHeaderBytes,
  chunkMagic,
  chunkVersion,
  footerCrc,
  frameCrc,
  frameHeaderBytes,
  maxFrameBytes,
} from './chunk-format.ts';
import { DamagedBackupError } from './damage.ts';

const unpack = promisify(inflateRaw);
const readBytes = 512 * 1024;
/** Larger data is decompressed into its destination, in pieces of 256 kB. */
const unpackedAtOnce = 1024 * 1024;
const pieceBytes = 256 * 1024;

/** A frame's bytes and where they stand, for the error if they are damaged. */
export interface Frame {
  readonly bytes: Buffer;
  readonly path: string;
  readonly offset: number;
}

/**
 * The frames of the files, in order. Throws `DamagedBackupError` where one is not what was written, and `RangeError` for
 * one that unpacks to more than `mostBytes`, before it is unpacked.
 */
export async function* readChunks(
  disk: ChunkDisk,
  directory: string,
  files: readonly ChunkFile[],
  mostBytes: number = maxFrameBytes,
): AsyncGenerator<Frame> {
  for (const file of files) yield* readChunk(disk, `${directory}/${file.name}`, file, mostBytes);
}

/** Checks that a file equals its entry in the manifest. Throws `DamagedBackupError`. */
export async function checkFile(
  disk: ChunkDisk,
  directory: string,
  expected: ChunkFile,
): Promise<void> {
  const path = `${directory}/${expected.name}`;
  const file = await open(disk, path, expected);
  try {
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafe(readBytes);
    for (let at = 0; at < expected.bytes; ) {
      const n = await readAt(file, buffer, at, Math.min(readBytes, expected.bytes - at));
      hash.update(buffer.subarray(0, n));
      at += n;
      await new Promise(setImmediate);
    }
    if (hash.digest('hex') === expected.sha256) return;
  } finally {
    file.close();
  }
  // Frames name the place of damage. They cover all but a few unused bytes.
  for await (const _ of readChunk(disk, path, expected, maxFrameBytes));
  throw new DamagedBackupError(path, undefined, 'its SHA-256 is not that of the manifest');
}

async function* readChunk(
  disk: ChunkDisk,
  path: string,
  expected: ChunkFile,
  mostBytes: number,
): AsyncGenerator<Frame> {
  const file = await open(disk, path, expected);
  const damaged = (offset: number, what: string): never => {
    throw new DamagedBackupError(path, offset, what);
  };
  try {
    const head = Buffer.alloc(chunkFooterBytes);
    await readAt(file, head, 0, chunkHeaderBytes);
    if (head.toString('latin1', 0, 8) !== chunkMagic) damaged(0, 'it is no chunk file');
    const version = head.readUInt32LE(8);
    if (version !== chunkVersion || head.readUInt32LE(12) !== 0) {
      damaged(8, `version ${version} is not known`);
    }
    let at = chunkHeaderBytes;
    let frames = 0;
    let rawBytes = 0;
    for (;;) {
      if (at + chunkFooterBytes > expected.bytes) damaged(at, 'it has no end');
      await readAt(file, head, at, frameHeaderBytes);
      const packedLength = head.readUInt32LE(0);
      const rawLength = head.readUInt32LE(4);
      if (packedLength === 0) break;
      const start = at + frameHeaderBytes;
      if (start + packedLength + chunkFooterBytes > expected.bytes || rawLength > maxFrameBytes) {
        damaged(at, 'a frame runs past the end');
      }
      if (rawLength > mostBytes) {
        throw new RangeError(
          `${path} at byte ${at}: a frame of ${rawLength} bytes, beyond ${mostBytes}`,
        );
      }
      const packed = Buffer.allocUnsafe(packedLength);
      await readAt(file, packed, start, packedLength);
      if (frameCrc(head, packed) !== head.readUInt32LE(8)) damaged(at, 'wrong checksum of a frame');
      const bytes = await unpacked(packed, rawLength);
      if (bytes === undefined) damaged(at, 'a frame cannot be unpacked');
      else yield { bytes, path, offset: at };
      at = start + packedLength;
      frames++;
      rawBytes += rawLength;
    }
    await readAt(file, head, at, chunkFooterBytes);
    if (head.readUInt32LE(8) !== footerCrc(head)) damaged(at, 'wrong checksum of the end');
    const isWhole =
      at + chunkFooterBytes === expected.bytes &&
      head.readBigUInt64LE(16) === BigInt(frames) &&
      head.readBigUInt64LE(24) === BigInt(rawBytes) &&
      frames === expected.frames &&
      rawBytes === expected.rawBytes;
    if (!isWhole) damaged(at, 'frames are missing');
  } finally {
    file.close();
  }
}

async function open(disk: ChunkDisk, path: string, expected: ChunkFile): Promise<ChunkHandle> {
  if (!(await disk.exists(path))) throw new DamagedBackupError(path, undefined, 'it is missing');
  const file = disk.open(path, 'read');
  const size = await file.size();
  if (size === expected.bytes) return file;
  file.close();
  const what = `it has ${size} bytes instead of ${expected.bytes}`;
  throw new DamagedBackupError(path, Math.min(size, expected.bytes), what);
}

async function readAt(
  file: ChunkHandle,
  into: Buffer,
  at: number,
  length: number,
): Promise<number> {
  const n = await file.read(into, 0, length, at);
  if (n === length) return n;
  throw new DamagedBackupError(file.path, at + n, 'it became shorter while it was read');
}

async function unpacked(packed: Buffer, rawLength: number): Promise<Buffer | undefined> {
  try {
    if (rawLength > unpackedAtOnce) return await unpackedInPieces(packed, rawLength);
    // The limit protects against a wrong length.
    const bytes = await unpack(packed, { maxOutputLength: Math.max(rawLength, 1) });
    return bytes.length === rawLength ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** Putting all pieces together at the end would be one step, and take the memory twice. */
async function unpackedInPieces(packed: Buffer, rawLength: number): Promise<Buffer | undefined> {
  const bytes = Buffer.allocUnsafeSlow(rawLength);
  const unpacker = createInflateRaw({ chunkSize: pieceBytes });
  unpacker.end(packed);
  let at = 0;
  for await (const piece of unpacker as AsyncIterable<Buffer>) {
    // Leaving the loop ends the unpacker.
    if (at + piece.length > rawLength) return undefined;
    at += piece.copy(bytes, at);
    await new Promise(setImmediate);
  }
  return at === rawLength ? bytes : undefined;
}
