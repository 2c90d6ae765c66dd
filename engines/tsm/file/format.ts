// Layout of a file, front to back. format.md has the details.
//
//   header     "PolyrowT" | version u32 | 0 u32
//   blocks     columns: bytes | crc32 u32
//   directory  a record for each block | crc32 u32
//   index      where blocks begin and end, in the file and in time; whose they are
//   footer     64 bytes
//
// Every checksum is seeded with its bytes' offset in the file (a directory record's with that in the
// directory), so that bytes read from the wrong place, though whole, are not taken for the right ones.

import { crc32 } from 'node:zlib';

export const headerBytes = 16;
export const footerBytes = 64;
export const crcBytes = 4;
const magic = Buffer.from('PolyrowT', 'latin1');
const version = 1;

export function checksum(bytes: Buffer, start: number, end: number, offset: number): number {
  const seed = offset % 0x1_0000_0000;
  // The checksum of zero bytes is the seed, but native `crc32` treats an empty buffer as absent.
  return start === end ? seed : crc32(bytes.subarray(start, end), seed);
}

/** Flags of a block in the index. */
export const BlockFlag = {
  /** The next block is the same series'. */
  continued: 1,
  /** Its rows are of several series. */
  shared: 2,
} as const;
/** Bits that flags take. */
export const flagBits = 2;

export interface Footer {
  readonly series: number;
  readonly blocks: number;
  readonly indexCrc: number;
  readonly directoryOffset: number;
  readonly indexOffset: number;
  /** Infinity and -Infinity in a file without rows. */
  readonly minTime: number;
  readonly maxTime: number;
}

export function makeHeader(): Buffer {
  const b = Buffer.alloc(headerBytes);
  magic.copy(b);
  b.writeUInt32LE(version, 8);
  return b;
}

export function makeFooter(footer: Footer, offset: number): Buffer {
  const b = Buffer.alloc(footerBytes);
  magic.copy(b);
  b.writeUInt32LE(version, 8);
  b.writeUInt32LE(footer.series, 12);
  b.writeUInt32LE(footer.blocks, 16);
  b.writeUInt32LE(footer.indexCrc, 20);
  b.writeDoubleLE(footer.directoryOffset, 24);
  b.writeDoubleLE(footer.indexOffset, 32);
  b.writeDoubleLE(footer.minTime, 40);
  b.writeDoubleLE(footer.maxTime, 48);
  b.writeUInt32LE(checksum(b, 0, 60, offset), 60);
  return b;
}

/** The footer at the offset, or a description of its damage. */
export function readFooter(b: Buffer, offset: number): Footer | string {
  if (!b.subarray(0, 8).equals(magic)) return 'there is no footer';
  if (b.readUInt32LE(60) !== checksum(b, 0, 60, offset)) return 'wrong checksum of the footer';
  if (b.readUInt32LE(8) !== version) return 'unknown version';
  const footer = {
    series: b.readUInt32LE(12),
    blocks: b.readUInt32LE(16),
    indexCrc: b.readUInt32LE(20),
    directoryOffset: b.readDoubleLE(24),
    indexOffset: b.readDoubleLE(32),
    minTime: b.readDoubleLE(40),
    maxTime: b.readDoubleLE(48),
  };
  const { directoryOffset, indexOffset } = footer;
  const inOrder =
    directoryOffset >= headerBytes && directoryOffset <= indexOffset && indexOffset <= offset;
  return inOrder ? footer : 'the parts are not in order';
}
