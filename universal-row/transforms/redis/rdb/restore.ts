// RESTORE: makes a row of the bytes that DUMP gave. They may come from anywhere: all of them are read and found
// right before anything is written.

import type { Arguments } from '../../../arguments.ts';
import { emptyBytes, Slice } from '../../../bytes.ts';
import { CommandError, syntaxError } from '../../../errors.ts';
import type { Reply } from '../../../reply.ts';
import { type Row, type Rows, type RowUse, Shape } from '../../../rows.ts';
import { step, stepBytes, type Steps, type StepTransform } from '../../../steps.ts';
import { TimedMap } from '../../../timed-map.ts';
import type { ByteList } from '../support/byte-list.ts';
import { dropRow } from '../support/typed-row.ts';
import { Crc64 } from './crc64.ts';
import { badData, footerBytes, newestVersion } from './format.ts';
import { ValueReader } from './value-reader.ts';

const busyKey = new CommandError('BUSYKEY Target key name already exists.');
const idleError = new CommandError('ERR Invalid IDLETIME value, must be >= 0');
const frequencyError = new CommandError('ERR Invalid FREQ value, must be >= 0 and <= 255');
const ttlError = new CommandError('ERR Invalid TTL value, must be >= 0');
const payloadError = new CommandError('ERR DUMP payload version or checksum are wrong');

const payloadWord = 3;
/** A payload is short up to here: compressed it may stand for a hundred times as much. */
const shortPayload = 4096;

interface Options {
  replaces: boolean;
  /** Milliseconds since 1970; 0 for never. */
  expireAt: number;
  use: RowUse | undefined;
}

/** Reads the words, and looks at the key and the checksum's place, in Redis's order. */
function readOptions(rows: Rows, args: Arguments): Options {
  let replaces = false;
  let isAbsolute = false;
  let use: RowUse | undefined;
  for (let word = 4; word < args.count; word++) {
    const hasNext = word + 1 < args.count;
    if (args.is(word, 'REPLACE')) replaces = true;
    else if (args.is(word, 'ABSTTL')) isAbsolute = true;
    else if (args.is(word, 'IDLETIME') && hasNext && use?.frequency === undefined) {
      const seconds = args.integer(++word);
      if (seconds < 0) throw idleError;
      use = { idleMs: seconds * 1000 };
    } else if (args.is(word, 'FREQ') && hasNext && use?.idleMs === undefined) {
      const frequency = args.integer(++word);
      if (frequency < 0 || frequency > 255) throw frequencyError;
      use = { frequency };
    } else throw syntaxError;
  }
  const { buf, starts, lens } = args;
  if (!replaces && rows.find(buf, starts[1]!, lens[1]!) !== 0) throw busyKey;
  const ttl = args.integer(2);
  if (ttl < 0) throw ttlError;
  const start = starts[payloadWord]!;
  const n = lens[payloadWord]!;
  if (n < footerBytes || buf.readUInt16LE(start + n - footerBytes) > newestVersion) {
    throw payloadError;
  }
  return { replaces, expireAt: ttl === 0 || isAbsolute ? ttl : rows.now + ttl, use };
}

function readerOf(args: Arguments): ValueReader {
  const { buf, starts, lens } = args;
  return new ValueReader(buf, starts[payloadWord]!, lens[payloadWord]! - footerBytes);
}

/** All that the payload says has to be its value. */
function checkEnd(args: Arguments, reader: ValueReader): void {
  const end = args.starts[payloadWord]! + args.lens[payloadWord]! - footerBytes;
  if (reader.end !== end) throw badData;
}

export function restore(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.lens[payloadWord]! > shortPayload) return restoreInSteps;
  const options = readOptions(rows, args);
  const start = args.starts[payloadWord]!;
  const summed = args.lens[payloadWord]! - 8;
  const crc = new Crc64();
  crc.add(args.buf, start, summed);
  if (!crc.equals(args.buf, start + summed)) throw payloadError;
  const reader = readerOf(args);
  for (const _ of reader.elements());
  checkEnd(args, reader);
  const isLive = begin(rows, args, reader.shape, options);
  if (isLive) {
    put(rows, args, reader.shape, reader.list, options.expireAt);
    finish(rows, args, reader, options.use);
  }
  reply.ok();
}

function* restoreInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const options = yield* step(() => readOptions(rows, args));
  yield* checkSum(args);
  const checked = readerOf(args);
  for (const _ of checked.elements()) {
    checked.list.clear();
    yield;
  }
  checkEnd(args, checked);
  const { shape } = checked;
  const isLive = yield* step(() => begin(rows, args, shape, options));
  if (isLive) {
    const reader = readerOf(args);
    const write = (): void => put(rows, args, shape, reader.list, options.expireAt);
    for (const _ of reader.elements()) {
      yield* step(write);
      reader.list.clear();
    }
    yield* step(() => {
      write();
      finish(rows, args, reader, options.use);
    });
  }
  reply.ok();
}

function* checkSum(args: Arguments): Steps {
  const start = args.starts[payloadWord]!;
  const summed = args.lens[payloadWord]! - 8;
  const crc = new Crc64();
  for (let at = 0; at < summed; at += stepBytes) {
    yield;
    crc.add(args.buf, start + at, Math.min(stepBytes, summed - at));
  }
  if (!crc.equals(args.buf, start + summed)) throw payloadError;
}

/** Makes room under the key; false when the value has expired already. */
function begin(rows: Rows, args: Arguments, shape: Shape, options: Options): boolean {
  const { buf, starts, lens } = args;
  if (options.replaces) dropRow(rows, args, 1);
  if (options.expireAt !== 0 && options.expireAt <= rows.now) return false;
  if (shape !== Shape.value) {
    if (shape === Shape.timed) {
      new TimedMap().create(rows, buf, starts[1]!, lens[1]!, options.expireAt);
      return true;
    }
    const row = rows.create(buf, starts[1]!, lens[1]!, shape);
    if (options.expireAt !== 0) rows.setExpireAt(row, options.expireAt);
  }
  return true;
}

function put(rows: Rows, args: Arguments, shape: Shape, list: ByteList, expireAt: number): void {
  const { buf, starts, lens } = args;
  if (list.count === 0) return;
  if (shape === Shape.value) {
    rows.putValue(buf, starts[1]!, lens[1]!, list.buf, 0, list.length(0), expireAt);
    return;
  }
  const row = rows.find(buf, starts[1]!, lens[1]!);
  if (shape === Shape.timed) return putTimed(rows, row, list);
  for (let i = 0; i < list.count; i++) {
    putElement(rows, row, shape, list, i);
    if (shape === Shape.map || shape === Shape.stream) i++;
  }
}

const timed = new TimedMap();
const value = new Slice();

function putTimed(rows: Rows, row: Row, list: ByteList): void {
  const { buf } = list;
  timed.load(rows, row);
  for (let i = 0; i < list.count; i += 2) {
    value.set(buf, list.start(i + 1), list.length(i + 1));
    timed.put(rows, row, buf, list.start(i), list.length(i), value, list.score(i));
  }
  timed.save(rows, row);
  value.b = emptyBytes;
}

/** Sets the row's properties after all of its elements. */
function finish(
  rows: Rows,
  args: Arguments,
  { shape, state }: ValueReader,
  use: RowUse | undefined,
): void {
  if (shape !== Shape.stream && use === undefined) return;
  const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
  if (shape === Shape.stream) rows.setStreamState(row, state, 0, state.length);
  if (use !== undefined) rows.setUse?.(row, use);
}

function putElement(rows: Rows, row: Row, shape: Shape, list: ByteList, i: number): void {
  const { buf } = list;
  const at = list.start(i);
  const n = list.length(i);
  if (shape === Shape.array) rows.push(row, false, buf, at, n);
  else if (shape === Shape.set) rows.putField(row, buf, at, n, buf, 0, 0);
  else if (shape === Shape.ranked) rows.putScore(row, buf, at, n, list.score(i));
  else if (shape === Shape.stream) {
    rows.addStreamRecord(row, buf, at, n, buf, list.start(i + 1), list.length(i + 1));
  } else rows.putField(row, buf, at, n, buf, list.start(i + 1), list.length(i + 1));
}
