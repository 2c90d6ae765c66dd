// A message between two replicas, with the payloads of the entries in it:
//
//   group u64 | sender's incarnation u64 | framed message (engine/frames.ts) | payload bytes*
//
// one payload for each entry whose data is a reference, in order; for a snapshot one, the state.

import { FrameReader, FrameWriter, MessageType } from '../engine/frames.ts';
import type { Message } from '../engine/frames.ts';
import { Lane } from '../transport/transport.ts';
import { hasPayload, payloadBytes } from './entry-reference.ts';
import type { HeartbeatTimes } from './freshness.ts';
import { SnapshotType } from './snapshot-sender.ts';

export interface PeerMessage {
  group: number;
  incarnation: number;
  message: Message;
  payloads: readonly Uint8Array[];
  /** Times of heartbeats that are sent together, and of their answers. */
  times?: HeartbeatTimes | undefined;
}

const writer = new FrameWriter();

export function laneOf(type: number): Lane {
  if (type === MessageType.append || type === MessageType.appendResponse) return Lane.append;
  const isOurs = type === SnapshotType.chunk || type === SnapshotType.answer;
  const isSnapshot = type === MessageType.snapshot || isOurs;
  return isSnapshot ? Lane.snapshot : Lane.control;
}

/** Valid until the next call. */
export function encodePeerMessage(m: PeerMessage): Uint8Array {
  writer.reset().u64(m.group).u64(m.incarnation).framed(m.message);
  for (const payload of m.payloads) writer.bytes(payload);
  return writer.done();
}

/** A chunk of a snapshot is a view of `b`, all else is copied. Throws `FrameError` for anything that is no message. */
export function decodePeerMessage(b: Uint8Array): PeerMessage {
  const r = new FrameReader(b);
  const group = r.u64();
  const incarnation = r.u64();
  const message = r.framed();
  const payloads: Uint8Array[] = [];
  const isChunk = message.type === SnapshotType.chunk;
  while (r.at < r.end) payloads.push(isChunk ? r.view() : r.bytes());
  return { group, incarnation, message, payloads };
}

/**
 * The engine sizes messages by references; this cuts one into several by the payloads that these stand for. An entry
 * that is larger travels alone.
 */
export function splitMessage(message: Message, maxBytes: number): Message[] {
  const parts: Message[] = [];
  let part: Message = { ...message, entries: [] };
  let bytes = 0;
  for (const entry of message.entries) {
    const length = hasPayload(entry) ? payloadBytes(entry.data) : 0;
    const last = part.entries.at(-1);
    if (last && bytes + length > maxBytes) {
      parts.push(part);
      part = { ...message, index: last.index, logTerm: last.term, entries: [] };
      bytes = 0;
    }
    part.entries.push(entry);
    bytes += length;
  }
  parts.push(part);
  return parts;
}
