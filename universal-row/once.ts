// Writes that a gateway may send again, as it cannot know whether they were applied. Each has a
// number; the table of numbers, of ordinary rows beside those that the writes change, records which
// were applied, and their answers. So it is part of their log entries, of checkpoints and of
// snapshots.
//
// A number is 65,536 times a sequence, which only grows, plus a slot, which no two writes of a
// gateway have at a time. The table has one row a slot: its size is bounded by the writes in
// flight. The row:
//
//   key     varint node of the gateway, varint slot
//   value   varint incarnation of the node, varint sequence, and the answer (protocol/values.ts), if it was kept

import { Slice } from './bytes.ts';
import type { Transform } from './command.ts';
import { CommandError, outcomeUnknown, ReadFault } from './errors.ts';
import { copyValue, ValueWriter } from './protocol/values.ts';
import { WireReader, WireWriter } from './protocol/wire.ts';
import type { Reply } from './reply.ts';
import type { Rows } from './rows.ts';
import type { StepTransform } from './steps.ts';

/** The table of numbers, in each group that has several replicas; in no tenant's span. */
export const onceTable = 0x6fff_ffff;

export const mostSlots = 65_536;

/** Longer answers are not kept: a retry is then told only that the write was applied. */
const maxAnswerBytes = 1024;
const answerLost = 'ERR the command was done, and its answer is lost';

/** Identity of a write, by which a pod recognises it when it is sent again. */
export interface NumberedWrite {
  /** Node number of the gateway. */
  readonly node: number;
  readonly incarnation: number;
  readonly number: number;
  /** The first table of its span. */
  readonly first: number;
}

const key = new WireWriter(32);
const value = new WireWriter(maxAnswerBytes + 64);
const answer = new ValueWriter(256);
const slice = new Slice();
const reader = new WireReader();

/** Transform of a write that must be applied once, whether or not its answer arrives. */
export function once(transform: Transform, write: NumberedWrite): Transform {
  const run = (rows: Rows, args: Parameters<Transform>[1], reply: Reply): StepTransform | void => {
    if (wasDone(rows, write, reply)) return;
    const from = reply.mark();
    let long: StepTransform | void;
    try {
      long = transform(rows, args, reply);
    } catch (error) {
      // Changes written before the failure stay.
      if (error instanceof CommandError) noteFailure(rows, write, error);
      throw error;
    }
    // Without an answer it waits, and has done nothing.
    if (long === undefined && reply.mark() !== from) note(rows, write, reply, from);
    return long && noting(long, write);
  };
  const numbered: Numbered = Object.assign(run, { write });
  return transform.busy === undefined ? run : Object.assign(numbered, { busy: transform.busy });
}

/** A transform that is applied once. */
export interface Numbered extends Transform {
  readonly write?: NumberedWrite;
  /** Answers from the record that `recordOf` has found; of commands that run as one, for all of them. */
  readonly answer?: (reply: Reply) => void;
  /** Of commands that run as one: what `refuse` does for one of them. */
  readonly refuse?: (rows: Rows, reply: Reply, error: string) => boolean;
}

export function isNumbered(transform: Transform): boolean {
  return (transform as Numbered).write !== undefined;
}

/** Answers a write that is refused now. False for one that was done before: that is answered from its record. */
export function refuse(transform: Transform, rows: Rows, reply: Reply, error: string): boolean {
  const { write, refuse: own } = transform as Numbered;
  if (own !== undefined) return own(rows, reply, error);
  if (write !== undefined && wasDone(rows, write, reply)) return false;
  reply.error(error);
  return true;
}

/** Answers a numbered write that was done, from the rows of a group that takes no more. False where it was not done. */
export function answerIfDone(
  transform: Transform,
  engine: { holds(table: number): boolean; table(table: number): RowLookup },
  reply: Reply,
): boolean {
  const { write, answer: answerAll } = transform as Numbered;
  if (write === undefined || !engine.holds(onceTable)) return false;
  useKey(write);
  const rows = engine.table(onceTable);
  const row = rows.find(key.buf, 0, key.pos);
  if (row === 0) return false;
  rows.value(row, slice);
  if (answerAll === undefined) return answerDone(write, reply);
  if (!isRecorded(write)) return false;
  answerAll(reply);
  return true;
}

type RowLookup = Pick<Rows, 'find' | 'value'>;

/** Its last step, which belongs to the log entry, records it. */
function noting(long: StepTransform, write: NumberedWrite): StepTransform {
  return function* (rows, args, reply) {
    yield* long(rows, args, reply);
    for (;;) {
      try {
        note(rows, write, undefined, 0);
        return;
      } catch (error) {
        if (!(error instanceof ReadFault)) throw error;
        yield error;
      }
    }
  };
}

function useKey({ node, number }: NumberedWrite): void {
  key.reset(false);
  key.varint(node);
  key.varint(number % mostSlots);
}

/** Whether it was done, or is older than one that was: it is answered then. */
function wasDone(rows: Rows, write: NumberedWrite, reply: Reply): boolean {
  return find(rows, write) && answerDone(write, reply);
}

/** Whether its slot has a row, which `slice` then has. */
function find(rows: Rows, write: NumberedWrite): boolean {
  const home = rows.table;
  rows.useTable(onceTable - write.first);
  useKey(write);
  const row = rows.find(key.buf, 0, key.pos);
  if (row !== 0) rows.value(row, slice);
  rows.useTable(home);
  return row !== 0;
}

/** Whether `slice` is of this write, or of a later one in its slot. The reader is then where the answer is. */
function isRecorded(write: NumberedWrite): boolean {
  reader.set(slice.b, slice.s, slice.s + slice.n);
  const incarnation = reader.varint();
  const sequence = reader.varint();
  if (incarnation < write.incarnation) return false;
  const own = Math.floor(write.number / mostSlots);
  if (incarnation === write.incarnation && sequence < own) return false;
  // The slot has been taken by another write, so no caller waits for this one.
  isOther = incarnation !== write.incarnation || sequence !== own;
  return true;
}

let isOther = false;

/** `slice` has the row of its slot. */
function answerDone(write: NumberedWrite, reply: Reply): boolean {
  if (!isRecorded(write)) return false;
  if (isOther) reply.error(outcomeUnknown);
  else if (reader.left > 0) copyValue(reader, reply);
  else reply.error(answerLost);
  return true;
}

/** The record of a write: the answers in it, if they were kept. Undefined where there is none. */
export function recordOf(rows: Rows, write: NumberedWrite): boolean {
  return find(rows, write) && isRecorded(write);
}

/** After `recordOf`, or before `Numbered.answer`: the kept answers, in a buffer that is used again; or the text of an error. */
export function recordedAnswers(): WireReader | string {
  if (isOther) return outcomeUnknown;
  return reader.left > 0 ? reader : answerLost;
}

/** Records a write, with its answers where these can be kept. */
export function record(rows: Rows, write: NumberedWrite, answers?: Uint8Array): void {
  value.reset(false);
  value.varint(write.incarnation);
  value.varint(Math.floor(write.number / mostSlots));
  if (answers !== undefined && answers.length <= maxAnswerBytes) {
    value.raw(Buffer.from(answers.buffer, answers.byteOffset, answers.length), 0, answers.length);
  }
  const home = rows.table;
  rows.useTable(onceTable - write.first);
  useKey(write);
  rows.putValue(key.buf, 0, key.pos, value.buf, 0, value.pos, 0);
  rows.useTable(home);
}

function noteFailure(rows: Rows, write: NumberedWrite, error: CommandError): void {
  answer.reset(false);
  answer.error(error.message);
  note(rows, write, answer, 0);
}

/** `reply` has the answer from `from` on, where it can be kept. */
function note(rows: Rows, write: NumberedWrite, reply: Reply | undefined, from: number): void {
  record(rows, write, reply?.valuesFrom?.(from));
}
