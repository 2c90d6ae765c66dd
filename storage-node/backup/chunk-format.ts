// A chunk file of a backup, all numbers little-endian:
//
//   file   = header | frame* | footer
//   header = "PolyrowB" | version u32 | 0 u32                                             16 bytes
//   frame  = packed length u32 | raw length u32 | crc32 u32 | packed bytes
//   footer = 0 u32 | 0 u32 | crc32 u32 | 0 u32 | frames u64 | raw bytes u64               32 bytes
//
// A frame's bytes are packed by themselves (raw deflate), so that a reader needs memory for one,
// and damage has a place. The checksum of a frame covers its lengths and the packed bytes, the
// footer's covers everything else in it. The manifest has the SHA-256 of the file as a whole.

import { crc32 } from 'node:zlib';
import type { DiskFile } from '../../universal-row/environment.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';

export const chunkMagic = 'PolyrowB';
export const chunkVersion = 1;
export const chunkHeaderBytes = 16;
export const frameHeaderBytes = 12;
export const chunkFooterBytes = 32;
/** Largest unpacked size of one frame. A record larger than the usual frame has one of its own. */
export const maxFrameBytes = 1024 * 1024 * 1024;

/** Location of chunk files: a `Disk`, or a disk of another node. */
export interface ChunkDisk {
  exists(path: string): MaybePromise<boolean>;
  open(path: string, mode: 'read' | 'create'): ChunkHandle;
}

export interface ChunkHandle extends Pick<DiskFile, 'path' | 'writeAsync' | 'sync' | 'close'> {
  size(): MaybePromise<number>;
  read(...at: Parameters<DiskFile['read']>): MaybePromise<number>;
}

/** A chunk file's entry in the manifest. */
export interface ChunkFile {
  /** In the directory of the backup. */
  readonly name: string;
  readonly bytes: number;
  readonly rawBytes: number;
  readonly frames: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

export function chunkHeader(): Buffer {
  const header = Buffer.alloc(chunkHeaderBytes);
  header.write(chunkMagic, 'latin1');
  header.writeUInt32LE(chunkVersion, 8);
  return header;
}

export function frameHeader(packed: Buffer, rawLength: number): Buffer {
  const header = Buffer.allocUnsafe(frameHeaderBytes);
  header.writeUInt32LE(packed.length, 0);
  header.writeUInt32LE(rawLength, 4);
  header.writeUInt32LE(frameCrc(header, packed), 8);
  return header;
}

export function frameCrc(header: Buffer, packed: Buffer): number {
  return crc32(packed, crc32(header.subarray(0, 8)));
}

export function chunkFooter(frames: number, rawBytes: number): Buffer {
  const footer = Buffer.alloc(chunkFooterBytes);
  footer.writeBigUInt64LE(BigInt(frames), 16);
  footer.writeBigUInt64LE(BigInt(rawBytes), 24);
  footer.writeUInt32LE(footerCrc(footer), 8);
  return footer;
}

export function footerCrc(footer: Buffer): number {
  return crc32(footer.subarray(12, chunkFooterBytes), crc32(footer.subarray(0, 8)));
}
