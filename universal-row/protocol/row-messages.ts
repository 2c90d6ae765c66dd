// Messages between a gateway and a pod of rows in another process. One frame carries many requests
// or many answers; docs/pod-protocol.md has the format.
//
// Requests of one lane run one after another, in the order in which they were sent, and are
// answered in that order; those of different lanes do not wait for each other. So an answer does
// not name its request. A gateway gives each connection with requests in flight a lane of its own.

import type { Arguments } from '../arguments.ts';
import type { RowWork } from '../row-work.ts';
import { WireError, type WireReader, type WireWriter } from './wire.ts';

/** Types of frames. */
export const RowFrame = {
  /** From the pod, first: the names of its transforms; requests call them by their place among these. */
  names: 16,
  requests: 17,
  answers: 18,
  /** A part of requests, or answers, that are too large for a frame; the last one ends them. */
  part: 19,
  lastPart: 20,
  /** Questions about the pod as a whole, and their answers: JSON. */
  question: 21,
  reply: 22,
} as const;

/** Items of a frame of requests. Each begins with its kind. */
export const Request = {
  session: 1,
  command: 2,
  transaction: 3,
  leave: 4,
  observe: 5,
  unobserve: 6,
  script: 7,
} as const;

/** Items of a frame of answers. */
export const Answer = {
  values: 1,
  refusal: 2,
  /** A row that is observed may have changed. */
  changed: 3,
  /** Observation has ended: the pod no longer leads these rows. */
  lost: 4,
  /** Values of a long answer, which continues. */
  part: 5,
} as const;

/** Reasons for which a request was refused. The request was not run. */
export const Refusal = {
  /** The text has the reason. */
  refused: 1,
  /** A limit was exceeded. The request may be sent again after the stated time. */
  throttled: 2,
  /** Another replica leads; its node is in the text. */
  notLeader: 3,
  /** The partition has another epoch. The gateway must look up the route again. */
  staleEpoch: 4,
  /** The deadline of the request had passed. */
  tooLate: 5,
} as const;

/** Text of a stale epoch where other partitions have taken the place of this one permanently: it was not done, nor will be. */
export const replacedText = 'replaced';

/** Settings for the commands of a lane from here on. */
export interface Session {
  tenant: number;
  /** The table they begin on, and the tables they can reach. */
  table: number;
  first: number;
  count: number;
  /** RESP version. */
  version: number;
  /** Epoch of the partition's route. */
  epoch: number;
  /** Whether answers tell their work. */
  isMetered: boolean;
}

export function writeSession(writer: WireWriter, lane: number, session: Session): void {
  writer.u8(Request.session);
  writer.varint(lane);
  writer.varint(session.tenant);
  writer.varint(session.table);
  writer.varint(session.first);
  writer.varint(session.count);
  writer.varint(session.epoch);
  writer.u8(session.version * 2 + (session.isMetered ? 1 : 0));
}

/** From here on tables are in no tenant's span: partitions of divided tables, function libraries. */
const tablesOfNoSpan = 0x4000_0000;

/** Reads it into `to`, behind the kind and the lane. */
export function readSession(reader: WireReader, to: Session): void {
  to.tenant = reader.varint();
  to.table = reader.varint();
  to.first = reader.varint();
  to.count = reader.varint();
  to.epoch = reader.varint();
  const flags = reader.u8();
  to.version = flags >>> 1;
  to.isMetered = (flags & 1) !== 0;
  const isIn =
    to.table >= tablesOfNoSpan || (to.table >= to.first && to.table < to.first + to.count);
  if ((to.version !== 2 && to.version !== 3) || !isIn) throw new WireError('not a session');
}

/** Bits beside a command. */
export const CommandFlag = {
  /** A table follows that is not the session's. */
  hasTable: 1,
  /** Followed by the milliseconds within which the command must begin. */
  hasDeadline: 2,
  /** Its number in the gateway's session follows. */
  hasSequence: 4,
  /** The command has waited for its keys, and is retried. */
  hasWaited: 8,
  /** Without an answer of its own it is answered nil, or a missing array. */
  emptyIsNil: 16,
  emptyIsNilArray: 32,
  /** The rights of a script follow. */
  hasRights: 64,
  /** The gateway's number of the client follows, for reports of changes. */
  hasClient: 128,
} as const;
const knownFlags = 255;

/** Fields of a command before its arguments. */
export class CommandHead {
  transform = 0;
  flags = 0;
  table = 0;
  deadlineMs = 0;
  sequence = 0;
  client = 0;
  /** User that runs the script: the name, a space, and the access rules; '' if unrestricted. */
  rights = '';

  reset(): void {
    this.flags = 0;
  }
}

/** Writes the part after the kind and the lane. */
export function writeCommand(writer: WireWriter, head: CommandHead, args: Arguments): void {
  const { flags } = head;
  writer.varint(head.transform);
  writer.u8(flags);
  if (flags !== 0) {
    if (flags & CommandFlag.hasTable) writer.varint(head.table);
    if (flags & CommandFlag.hasDeadline) writer.varint(head.deadlineMs);
    if (flags & CommandFlag.hasSequence) writer.varint(head.sequence);
    if (flags & CommandFlag.hasRights) writer.string(head.rights);
    if (flags & CommandFlag.hasClient) writer.varint(head.client);
  }
  const { count, starts, lens, buf } = args;
  writer.varint(count);
  writer.words(buf, starts, lens, count);
}

/** Reads a command; the words are ranges of the reader's buffer. */
export function readCommand(reader: WireReader, head: CommandHead, args: Arguments): void {
  head.transform = reader.varint();
  const flags = reader.u8();
  if (flags & ~knownFlags) throw new WireError('a command with unknown flags');
  head.flags = flags;
  if (flags !== 0) {
    if (flags & CommandFlag.hasTable) head.table = reader.varint();
    if (flags & CommandFlag.hasDeadline) head.deadlineMs = reader.varint();
    if (flags & CommandFlag.hasSequence) head.sequence = reader.varint();
    head.rights = flags & CommandFlag.hasRights ? reader.string() : '';
    if (flags & CommandFlag.hasClient) head.client = reader.varint();
  }
  const count = reader.varint();
  // Each word takes a byte at least.
  if (count === 0 || count > reader.left) throw new WireError('a command with too many words');
  args.reserve(count);
  const { starts, lens } = args;
  for (let i = 0; i < count; i++) {
    const n = reader.length();
    lens[i] = n;
    starts[i] = reader.skip(n);
  }
  args.count = count;
  args.buf = reader.buf;
  args.hasWaited = (flags & CommandFlag.hasWaited) !== 0;
}

/** Bits beside an answer. */
export const AnswerFlag = {
  /** Its work follows. */
  hasWork: 1,
  /** No value: the command waits for a key. */
  isEmpty: 2,
  /** A watched row was touched, so the transaction was not run. */
  notRun: 4,
  /** So many values are in it as commands were in the transaction. */
  isTransaction: 8,
  /** Messages of its scripts follow, before the values. */
  hasMessages: 16,
  /** Parts came before it: no value of it is here. */
  wasInParts: 32,
  /** The outcome is unknown: the command may or may not have been applied. */
  isUnknown: 64,
  /** Replaced words follow before the values. The command must use these words when it is retried. */
  hasWords: 128,
} as const;

/** Writes the words that took the place of those that end at `end`: a count, and each with its number. */
export function writeReplacedWords(writer: WireWriter, args: Arguments, end: number): void {
  const { count, starts, lens, buf } = args;
  let replaced = 0;
  for (let i = 0; i < count; i++) if (starts[i]! >= end) replaced++;
  writer.varint(replaced);
  for (let i = 0; i < count; i++) {
    if (starts[i]! < end) continue;
    writer.varint(i);
    writer.bytes(buf, starts[i], lens[i]);
  }
}

export function readReplacedWords(
  reader: WireReader,
  replace: (word: number, by: Buffer) => void,
): void {
  for (let left = reader.varint(); left > 0; left--) {
    const word = reader.varint();
    replace(word, reader.bytes());
  }
}

/** A bit for each counter that is not 0, then those. */
export function writeWork(writer: WireWriter, work: RowWork): void {
  const at = writer.pos;
  writer.u16(0);
  let mask = 0;
  // Written out, as it is done for each command; in the order of the bits.
  if (work.lookups !== 0) mask |= put(writer, 0, work.lookups);
  if (work.reads !== 0) mask |= put(writer, 1, work.reads);
  if (work.readBytes !== 0) mask |= put(writer, 2, work.readBytes);
  mask |= putRest(writer, work);
  if (work.logBytes !== 0) mask |= put(writer, 13, work.logBytes);
  if (work.misses !== 0) mask |= put(writer, 14, work.misses);
  if (work.scriptSteps !== 0) mask |= put(writer, 15, work.scriptSteps);
  writer.buf[at] = mask & 0xff;
  writer.buf[at + 1] = mask >>> 8;
}

function put(writer: WireWriter, bit: number, value: number): number {
  writer.varint(value);
  return 1 << bit;
}

function putRest(writer: WireWriter, work: RowWork): number {
  let mask = 0;
  if (work.seeks !== 0) mask |= put(writer, 3, work.seeks);
  if (work.walked !== 0) mask |= put(writer, 4, work.walked);
  if (work.fieldsWalked !== 0) mask |= put(writer, 5, work.fieldsWalked);
  if (work.scoresWalked !== 0) mask |= put(writer, 6, work.scoresWalked);
  if (work.arrayWalked !== 0) mask |= put(writer, 7, work.arrayWalked);
  if (work.values !== 0) mask |= put(writer, 8, work.values);
  if (work.fields !== 0) mask |= put(writer, 9, work.fields);
  if (work.scores !== 0) mask |= put(writer, 10, work.scores);
  if (work.elements !== 0) mask |= put(writer, 11, work.elements);
  if (work.removed !== 0) mask |= put(writer, 12, work.removed);
  return mask;
}

/** Adds the written figures to `to`. */
export function readWork(reader: WireReader, to: RowWork): void {
  const mask = reader.u16();
  if (mask & 1) to.lookups += reader.varint();
  if (mask & 2) to.reads += reader.varint();
  if (mask & 4) to.readBytes += reader.varint();
  // Most commands have no others but of the log.
  if (mask & 0x1ff8) readRest(reader, to, mask);
  if (mask & 0x2000) to.logBytes += reader.varint();
  if (mask & 0x4000) to.misses += reader.varint();
  if (mask & 0x8000) to.scriptSteps += reader.varint();
}

function readRest(reader: WireReader, to: RowWork, mask: number): void {
  if (mask & 0x8) to.seeks += reader.varint();
  if (mask & 0x10) to.walked += reader.varint();
  if (mask & 0x20) to.fieldsWalked += reader.varint();
  if (mask & 0x40) to.scoresWalked += reader.varint();
  if (mask & 0x80) to.arrayWalked += reader.varint();
  if (mask & 0x100) to.values += reader.varint();
  if (mask & 0x200) to.fields += reader.varint();
  if (mask & 0x400) to.scores += reader.varint();
  if (mask & 0x800) to.elements += reader.varint();
  if (mask & 0x1000) to.removed += reader.varint();
}
