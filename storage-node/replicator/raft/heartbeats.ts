// One message with the heartbeats of all groups to a node, and the answers to that node's heartbeats:
//
//   0 u64 | sender's incarnation u64 | count u32 | item*
//   item = type u32 | group u64 | to u64 | from u64 | term u64 | commit u64 | times (freshness.ts)
//   times = sent u64 | echo u64 | incarnation of the echo u64 | age u64 | applied by the leader u64, in microseconds
//
// Heartbeats that carry the context of a read are sent separately. Questions and answers of strong reads (read-rounds.ts)
// are items as well, with all times zero.

import { FrameReader, FrameWriter, MessageType } from '../engine/frames.ts';
import type { Message } from '../engine/frames.ts';
import type { HeartbeatTimes } from './freshness.ts';
import type { PeerMessage } from './peer-message.ts';
import { AskType } from './read-rounds.ts';

export interface Heartbeat {
  group: number;
  message: Message;
  times: HeartbeatTimes;
}

const itemBytes = 84;
const unknownAge = Number.MAX_SAFE_INTEGER;
const noBytes = new Uint8Array(0);
const writer = new FrameWriter();

export function isPlainHeartbeat({ type, context }: Message): boolean {
  const isOne = type === MessageType.heartbeat || type === MessageType.heartbeatResponse;
  return isOne && context.length === 0;
}

/** Whether it is an item: a node that does not know its type leaves it out. */
export function travelsWithOthers(message: Message): boolean {
  const { type } = message;
  return type === AskType.question || type === AskType.answer || isPlainHeartbeat(message);
}

/** No group has the number 0. */
export function areHeartbeats(bytes: Uint8Array): boolean {
  for (let at = 0; at < 8; at++) if (bytes[at] !== 0) return false;
  return bytes.length >= 8;
}

/** Valid until the next call. */
export function encodeHeartbeats(
  incarnation: number,
  heartbeats: readonly Heartbeat[],
): Uint8Array {
  writer.reset().u64(0).u64(incarnation).u32(heartbeats.length);
  for (const { group, message, times } of heartbeats) {
    const { type, to, from, term, commit } = message;
    writer.u32(type).u64(group).u64(to).u64(from).u64(term).u64(commit);
    const { sent, echo, echoLife, age } = times;
    writer.u64(microseconds(sent)).u64(microseconds(echo)).u64(echoLife);
    writer.u64(age === Infinity ? unknownAge : microseconds(age)).u64(times.commit);
  }
  return writer.done();
}

/** Throws `FrameError` for anything else. */
export function decodeHeartbeats(bytes: Uint8Array): PeerMessage[] {
  const reader = new FrameReader(bytes);
  reader.u64();
  const incarnation = reader.u64();
  const messages: PeerMessage[] = [];
  for (let left = reader.count(itemBytes); left > 0; left--) {
    const type = reader.u32();
    const group = reader.u64();
    const ids = { to: reader.u64(), from: reader.u64(), term: reader.u64() };
    const message: Message = {
      ...ids,
      type,
      commit: reader.u64(),
      logTerm: 0,
      index: 0,
      vote: 0,
      reject: false,
      rejectHint: 0,
      context: noBytes,
      entries: [],
      snapshot: undefined,
      responses: [],
      hasHardState: false,
    };
    const times = decodeTimes(reader);
    if (!travelsWithOthers(message)) continue;
    messages.push({ group, incarnation, message, payloads: [], times });
  }
  return messages;
}

/** Down: a clock's value that comes back is never ahead of the clock. */
function microseconds(milliseconds: number): number {
  return Math.max(0, Math.floor(milliseconds * 1000));
}

function decodeTimes(reader: FrameReader): HeartbeatTimes {
  const sent = reader.u64() / 1000;
  const echo = reader.u64() / 1000;
  const echoLife = reader.u64();
  const age = reader.u64();
  // The truncated fraction makes the state a little older than stated.
  const ms = age === unknownAge ? Infinity : (age + 1) / 1000;
  return { sent, echo, echoLife, age: ms, commit: reader.u64() };
}
