// The write-ahead log on disk: segments of frames, all numbers little-endian.
//
//   seg-0000000001, seg-0000000002 …, and seg-….new for one whose predecessor is not surely on disk yet
//
//   segment = header 64 bytes | TABLE frame | frame*
//   header  = magic 8 | version u32 | 0 u32 | cluster u64 | pod u64 | volume u64 | number u64
//             | base LSN u64 | 0 u32 | crc32 u32 of the 60 bytes before it
//
//   frame   = length u32 | crc32 u32 | kind u8 | flags u8 | count u16 | 0 u32
//             | group u64 | term u64 | index u64 | durable LSN u64 | body | zeros to a multiple of 8
//
// The length counts header and body. The checksum covers all that follows it up to the length, and
// is seeded with the segment's number, so that a frame of another segment is never taken for one of
// this. An LSN is a byte position across segments: the segment's base plus the offset. The durable
// LSN of a frame is the end of the log known to be on disk when the frame was written; see
// recovery.ts.
//
//   APPEND     count entries of a group from `index` on, after its hard state if `flags` has bit 0
//              hard state = term u64 | vote u64 | commit u64
//              With bit 1 it is of a replicated group, and takes the place of all entries from `index` on.
//              entry      = length u32 | type u8 | 0 u24 | term u64 | payload
//   SNAP       the state up to `index` is elsewhere; the group's next entry is index + 1. With bit 0 of `flags`
//              it is what a replica was sent, and begins with its hard state. With bit 2 that is about to happen
//   TRUNC      the group's first index          (replicated groups)
//   CREATE     replica id u64; the group's log begins after `index`
//   TOMBSTONE  replica id u64, never to return  (replicated groups)
//   CKPT       an engine holds everything up to `index` durably
//              CREATE, SNAP and CKPT of a replicated group end with its positions (../raft/log-position.ts)
//   TABLE      what all groups are at, opens each segment; table.ts
//   BOOT       incarnation u64 | boot id u64 | volume u64
//   CLEAN      orderly shutdown
//   MARK       only its durable LSN

import { crc32 } from '../../../universal-row/crc32.ts';

export const segmentHeaderBytes = 64;
export const frameHeaderBytes = 48;
export const entryHeaderBytes = 16;
export const defaultSegmentBytes = 64 * 1024 * 1024;
/** The count of a frame is a u16. */
export const maxFrameEntries = 0xffff;

export const FrameKind = {
  append: 1,
  snap: 2,
  trunc: 3,
  create: 4,
  tombstone: 5,
  ckpt: 6,
  table: 7,
  boot: 8,
  clean: 9,
  mark: 10,
} as const;
export type FrameKind = (typeof FrameKind)[keyof typeof FrameKind];
export const lastFrameKind = FrameKind.mark;

export const EntryType = { batch: 1, configuration: 2, nothing: 3 } as const;

/** Flag of an APPEND, or SNAP, that begins with hard state. */
export const hardStateFlag = 1;
/** Flag of a SNAP of a replicated group that is about to be installed. */
export const intentFlag = 4;
/** Flag of an APPEND of a replicated group. */
export const replicatedFlag = 2;
export const hardStateBytes = 24;

export const at = {
  length: 0,
  crc: 4,
  kind: 8,
  flags: 9,
  count: 10,
  zero: 12,
  group: 16,
  term: 24,
  index: 32,
  durableLsn: 40,
} as const;

const magic = Buffer.from('PolyrowL', 'latin1');
const version = 1;
const unnamedSuffix = '.new';

/** Owner of a log. */
export interface LogIdentity {
  cluster: number;
  pod: number;
  /** Drawn at random when the log is created: tells a disk from another one mounted in its place. */
  volume: number;
}

export interface SegmentHeader extends LogIdentity {
  number: number;
  baseLsn: number;
}

export function paddedLength(length: number): number {
  return Math.ceil(length / 8) * 8;
}

export function putU64(b: Uint8Array, p: number, value: number): void {
  putU32(b, p, value);
  putU32(b, p + 4, value < 0x1_0000_0000 ? 0 : Math.floor(value / 0x1_0000_0000));
}

export function putU32(b: Uint8Array, p: number, value: number): void {
  b[p] = value;
  b[p + 1] = value >>> 8;
  b[p + 2] = value >>> 16;
  b[p + 3] = value >>> 24;
}

export function getU32(b: Uint8Array, p: number): number {
  return (b[p]! | (b[p + 1]! << 8) | (b[p + 2]! << 16) | (b[p + 3]! << 24)) >>> 0;
}

/** Beyond 2^53 the answer is rounded: nothing of ours gets there. */
export function getU64(b: Uint8Array, p: number): number {
  return getU32(b, p) + getU32(b, p + 4) * 0x1_0000_0000;
}

export function putSegmentHeader(b: Buffer, header: SegmentHeader): void {
  b.fill(0, 0, segmentHeaderBytes);
  magic.copy(b);
  putU32(b, 8, version);
  putU64(b, 16, header.cluster);
  putU64(b, 24, header.pod);
  putU64(b, 32, header.volume);
  putU64(b, 40, header.number);
  putU64(b, 48, header.baseLsn);
  putU32(b, 60, crc32(0, b, 0, 60));
}

/** The header, or a description of its damage. */
export function getSegmentHeader(b: Buffer): SegmentHeader | string {
  if (b.length < segmentHeaderBytes) return 'the segment is shorter than its header';
  if (!b.subarray(0, 8).equals(magic)) return 'the segment has no header';
  if (getU32(b, 60) !== crc32(0, b, 0, 60)) return 'the checksum of the header does not match';
  if (getU32(b, 8) !== version) {
    return `the segment has format version ${getU32(b, 8)}, and this program reads version ${version}`;
  }
  return {
    cluster: getU64(b, 16),
    pod: getU64(b, 24),
    volume: getU64(b, 32),
    number: getU64(b, 40),
    baseLsn: getU64(b, 48),
  };
}

/**
 * Fills the header of a frame whose body is in place at `frameHeaderBytes`, except the fields that
 * depend on the frame's position, which `sealFrame` sets. Pads with zeros; the buffer has room for
 * them.
 */
export function putFrameHeader(
  b: Uint8Array,
  length: number,
  kind: FrameKind,
  flags: number,
  count: number,
  group: number,
  term: number,
  index: number,
): void {
  putU32(b, at.length, length);
  b[at.kind] = kind;
  b[at.flags] = flags;
  b[at.count] = count;
  b[at.count + 1] = count >>> 8;
  putU32(b, at.zero, 0);
  putU64(b, at.group, group);
  putU64(b, at.term, term);
  putU64(b, at.index, index);
  for (let p = length, end = paddedLength(length); p < end; p++) b[p] = 0;
}

/** Completes the frame at the start of the buffer for the segment with this number. */
export function sealFrame(b: Uint8Array, segment: number, durableLsn: number): void {
  putU64(b, at.durableLsn, durableLsn);
  putU32(b, at.crc, crc32(segment >>> 0, b, at.kind, getU32(b, at.length)));
}

/** Bytes whose checksum is taken in one step. */
const sealedAtOnce = 1024 * 1024;

/** As `sealFrame`, in steps: others are served between them. */
export async function sealLargeFrame(
  b: Uint8Array,
  segment: number,
  durableLsn: number,
): Promise<void> {
  putU64(b, at.durableLsn, durableLsn);
  const end = getU32(b, at.length);
  let sum = segment >>> 0;
  for (let from = at.kind; from < end; from += sealedAtOnce) {
    if (from > at.kind) await new Promise(setImmediate);
    sum = crc32(sum, b, from, Math.min(end, from + sealedAtOnce));
  }
  putU32(b, at.crc, sum);
}

/**
 * Whether the checksum of the frame at `p`, which is in the buffer as a whole, matches its bytes.
 */
export function isIntact(b: Uint8Array, p: number, segment: number): boolean {
  const end = p + getU32(b, p + at.length);
  return getU32(b, p + at.crc) === crc32(segment >>> 0, b, p + at.kind, end);
}

/** `named`: under its final name, which it gets once its predecessor is surely on disk. */
export function segmentName(number: number, named: boolean): string {
  return `seg-${String(number).padStart(10, '0')}${named ? '' : unnamedSuffix}`;
}

export function parseSegmentName(name: string): { number: number; named: boolean } | undefined {
  const match = /^seg-(\d{10,15})(\.new)?$/.exec(name);
  return match ? { number: Number(match[1]), named: match[2] === undefined } : undefined;
}
