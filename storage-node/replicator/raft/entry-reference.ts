// Reference to an entry's payload in the engine, the same on every replica:
//
//   replica u64 | first position u64 | incarnation u32 | proposals u32 | payload bytes u32 | CRC-32 u32
//
// and a payload: (length u32 | bytes)*, one for each proposal of the entry.

import { EntryKind } from '../engine/frames.ts';
import type { Entry } from '../engine/frames.ts';
import { crc32 } from '../../../universal-row/crc32.ts';
import { getU32, getU64, putU32, putU64 } from '../wal/format.ts';

export const referenceBytes = 32;

interface EntryReference {
  /** Replica and incarnation that proposed the entry. */
  replica: number;
  incarnation: number;
  firstPosition: number;
  proposals: number;
}

export function makeReference(id: EntryReference, payload: Uint8Array): Uint8Array {
  const b = new Uint8Array(referenceBytes);
  putU64(b, 0, id.replica);
  putU64(b, 8, id.firstPosition);
  putU32(b, 16, id.incarnation);
  putU32(b, 20, id.proposals);
  putU32(b, 24, payload.length);
  putU32(b, 28, crc32(0, payload, 0, payload.length));
  return b;
}

export function readReference(b: Uint8Array): EntryReference {
  return {
    replica: getU64(b, 0),
    firstPosition: getU64(b, 8),
    incarnation: getU32(b, 16),
    proposals: getU32(b, 20),
  };
}

export function payloadBytes(reference: Uint8Array): number {
  return getU32(reference, 24);
}

export function isPayloadOf(reference: Uint8Array, payload: Uint8Array): boolean {
  return (
    reference.length === referenceBytes &&
    payloadBytes(reference) === payload.length &&
    getU32(reference, 28) === crc32(0, payload, 0, payload.length)
  );
}

export function joinProposals(proposals: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const proposal of proposals) length += 4 + proposal.length;
  const b = new Uint8Array(length);
  let at = 0;
  for (const proposal of proposals) {
    putU32(b, at, proposal.length);
    b.set(proposal, at + 4);
    at += 4 + proposal.length;
  }
  return b;
}

/** Views into the payload. Its checksum was right: only a bug of ours makes one that ends early. */
export function splitProposals(payload: Uint8Array): Uint8Array[] {
  const proposals: Uint8Array[] = [];
  for (let at = 0; at < payload.length; ) {
    const end = at + 4 + getU32(payload, at);
    if (end > payload.length) throw new RangeError('the payload of an entry is cut short');
    proposals.push(payload.subarray(at + 4, end));
    at = end;
  }
  return proposals;
}

/** Whether the engine's data of an entry refers to a payload. */
export function hasPayload(entry: Entry): boolean {
  return (
    entry.kind === EntryKind.normal &&
    entry.data.length === referenceBytes &&
    payloadBytes(entry.data) > 0
  );
}
