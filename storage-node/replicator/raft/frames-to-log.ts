// Entries between the engine and the write-ahead log. On disk an entry's payload is its reference
// and the referenced bytes, or, of a change of members, its kind (u32) and data.

import { EntryKind } from '../engine/frames.ts';
import type { Entry, HardState } from '../engine/frames.ts';
import {
  EntryType,
  entryHeaderBytes,
  FrameKind,
  frameHeaderBytes,
  getU32,
  getU64,
  hardStateBytes,
  hardStateFlag,
  intentFlag,
  putFrameHeader,
  putU32,
  putU64,
  replicatedFlag,
} from '../wal/format.ts';
import type { SegmentReader } from '../wal/reader.ts';
import type { GroupState } from '../wal/table.ts';
import { referenceBytes } from './entry-reference.ts';

export interface LoggedEntry extends Entry {
  segment: number;
  /** Where its payload is; of entries without one, where the entry ends. */
  offset: number;
}

interface EncodedFrame {
  /** The frame is at the start; what follows belongs to no one. */
  bytes: Buffer;
  length: number;
  /** Where in it the payload of each entry begins. */
  payloadsAt: number[];
}

interface AppendFrame {
  group: number;
  term: number;
  /** Index of the first entry, or of the one that would come next. */
  index: number;
  hard: HardState | undefined;
  entries: readonly Entry[];
  payloads: readonly Uint8Array[];
}

/** Frames are made one after the other, here up to `mostScratchBytes`. */
let scratch = Buffer.alloc(256 * 1024);
const mostScratchBytes = 4 * 1024 * 1024;

/**
 * Encodes the frame. The bytes are valid until the next call: each tick encodes a frame per group, and new buffers would
 * have to be garbage-collected.
 */
export function encodeAppend(frame: AppendFrame): EncodedFrame {
  const { entries, payloads, hard } = frame;
  let length = frameHeaderBytes + (hard ? hardStateBytes : 0);
  for (const [i, entry] of entries.entries()) {
    length += entryHeaderBytes + entry.data.length + payloads[i]!.length;
    if (entry.kind !== EntryKind.normal) length += 4;
  }
  const b = memoryOf(length + 8);
  let at = frameHeaderBytes;
  if (hard) at = putHardState(b, at, hard);
  const payloadsAt: number[] = [];
  for (const [i, { kind, term, data }] of entries.entries()) {
    const isChange = kind !== EntryKind.normal;
    const payload = payloads[i]!;
    putU32(b, at, (isChange ? 4 : 0) + data.length + payload.length);
    b[at + 4] = entryType(kind, data);
    putU64(b, at + 8, term);
    at += entryHeaderBytes;
    if (isChange) {
      putU32(b, at, kind);
      at += 4;
    }
    b.set(data, at);
    at += data.length;
    payloadsAt.push(at);
    b.set(payload, at);
    at += payload.length;
  }
  const flags = replicatedFlag | (hard ? hardStateFlag : 0);
  const { group, term, index } = frame;
  putFrameHeader(b, length, FrameKind.append, flags, entries.length, group, term, index);
  return { bytes: b, length, payloadsAt };
}

/** So many bytes, all zero. */
function memoryOf(bytes: number): Buffer {
  if (bytes > mostScratchBytes) return Buffer.alloc(bytes);
  if (bytes > scratch.length) {
    const larger = Math.max(bytes, scratch.length * 2);
    scratch = Buffer.allocUnsafeSlow(Math.min(larger, mostScratchBytes));
  }
  return scratch.fill(0, 0, bytes);
}

/** A group begins to be known to the log. */
export function encodeCreateFrame(state: GroupState, replica: number): Buffer {
  const { group, term, lastIndex, configuration } = state;
  const length = frameHeaderBytes + 8 + configuration.length;
  const b = Buffer.alloc(length + 8);
  putU64(b, frameHeaderBytes, replica);
  b.set(configuration, frameHeaderBytes + 8);
  putFrameHeader(b, length, FrameKind.create, 0, 0, group, term, lastIndex);
  return b;
}

/**
 * Says that the state up to `index` came in a snapshot; without `hard` that it is about to. `positions` are the group's
 * from then on.
 */
export function encodeSnapshotFrame(
  group: number,
  index: number,
  hard: HardState | undefined,
  term: number,
  positions: Uint8Array,
): Buffer {
  const bodyAt = frameHeaderBytes + (hard ? hardStateBytes : 0);
  const length = bodyAt + positions.length;
  const b = Buffer.alloc(length + 8);
  if (hard) putHardState(b, frameHeaderBytes, hard);
  b.set(positions, bodyAt);
  const flags = hard ? hardStateFlag : intentFlag;
  putFrameHeader(b, length, FrameKind.snap, flags, 0, group, term, index);
  return b;
}

/** The entries of a frame that recovery reads. */
export function decodeAppend(frame: SegmentReader): LoggedEntry[] {
  const { buf, bodyEnd, bodyStart } = frame;
  const entries: LoggedEntry[] = [];
  let at = bodyStart + (frame.flags & hardStateFlag ? hardStateBytes : 0);
  for (let index = frame.index; at < bodyEnd; index++) {
    const isChange = buf[at + 4] === EntryType.configuration;
    const end = at + entryHeaderBytes + getU32(buf, at);
    const term = getU64(buf, at + 8);
    at += entryHeaderBytes;
    const kind = isChange ? getU32(buf, at) : EntryKind.normal;
    if (isChange) at += 4;
    const dataEnd = isChange ? end : Math.min(end, at + referenceBytes);
    const data = Uint8Array.from(buf.subarray(at, dataEnd));
    const offset = frame.offset + (dataEnd - bodyStart) + frameHeaderBytes;
    entries.push({ index, term, kind, data, segment: frame.number, offset });
    at = end;
  }
  return entries;
}

function entryType(kind: number, data: Uint8Array): number {
  if (kind !== EntryKind.normal) return EntryType.configuration;
  return data.length === 0 ? EntryType.nothing : EntryType.batch;
}

function putHardState(b: Buffer, at: number, hard: HardState): number {
  putU64(b, at, hard.term);
  putU64(b, at + 8, hard.vote);
  putU64(b, at + 16, hard.commit);
  return at + hardStateBytes;
}
