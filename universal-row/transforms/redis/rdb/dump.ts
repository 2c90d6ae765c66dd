// DUMP: a row's value in the RDB format, in the encodings that Redis 7.0 would have it in.

import type { Arguments } from '../../../arguments.ts';
import { emptyBytes, parseBigInteger, Slice } from '../../../bytes.ts';
import type { Reply } from '../../../reply.ts';
import type { ReadFault } from '../../../errors.ts';
import { type Row, type Rows, Shape } from '../../../rows.ts';
import {
  isLong,
  runNow,
  shortWork,
  step,
  stepBytes,
  type Steps,
  type StepTransform,
} from '../../../steps.ts';
import { encodingLimits as limits } from '../support/encoding-limits.ts';
import { formatDouble } from '../support/format-double.ts';
import {
  eachElementInSteps,
  eachFieldInSteps,
  eachRankInSteps,
  type Undo,
} from '../support/long-walks.ts';
import { Crc64 } from './crc64.ts';
import { RdbType, timesVersion, writtenVersion } from './format.ts';
import { ListpackWriter } from './listpack-writer.ts';
import { writeTimed } from './timed-writer.ts';
import { writeStream } from './stream-writer.ts';
import { ValueWriter } from './value-writer.ts';

/** Bytes of a node of a list, as list-max-listpack-size of -2 has it. */
const nodeBytes = 8192;
const plainNode = 1;
const packedNode = 2;

const value = new Slice();

export function dump(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
  if (row === 0) {
    reply.nil();
    return;
  }
  const shape = rows.shape(row);
  const isValue = shape === Shape.value;
  if (isValue ? rows.count(row) > shortWork.bytes : isLong(rows, row)) return dumpInSteps;
  if (shape >= Shape.stream) {
    runNow(dumpInSteps(rows, args, reply));
    return;
  }
  const writer = new ValueWriter();
  switch (shape) {
    case Shape.value:
      writeValue(rows, row, writer);
      break;
    case Shape.map:
      writeHash(rows, row, writer);
      break;
    case Shape.set:
      writeSet(rows, row, writer);
      break;
    case Shape.ranked:
      writeRanked(rows, row, writer);
      break;
    default:
      writeList(rows, row, writer);
  }
  const crc = new Crc64();
  writeVersion(writer, writtenVersion);
  crc.add(writer.buf, 0, writer.length);
  const payload = complete(writer, crc);
  reply.bulk(payload, 0, payload.length);
}

function writeVersion(writer: ValueWriter, version: number): void {
  writer.byte(version);
  writer.byte(0);
}

function complete(writer: ValueWriter, crc: Crc64): Buffer {
  writer.reserve(8);
  crc.write(writer.buf, writer.length);
  return writer.buf.subarray(0, writer.length + 8);
}

function writeValue(rows: Rows, row: Row, writer: ValueWriter): void {
  writer.byte(RdbType.string);
  rows.value(row, value);
  writer.string(value.b, value.s, value.n);
  value.b = emptyBytes;
}

function writeListpack(type: number, listpack: ListpackWriter, writer: ValueWriter): void {
  listpack.finish();
  writer.byte(type);
  writer.string(listpack.buf, 0, listpack.length);
}

function writeHash(rows: Rows, row: Row, writer: ValueWriter): void {
  const listpack = new ListpackWriter();
  let isCompact = rows.count(row) <= limits.hashEntries;
  const most = limits.hashValueBytes;
  if (isCompact) {
    rows.eachField(row, (fb, fs, fn, vb, vs, vn) => {
      isCompact = fn <= most && vn <= most;
      if (!isCompact) return true;
      listpack.add(fb, fs, fn);
      listpack.add(vb, vs, vn);
      return false;
    });
  }
  if (isCompact) {
    writeListpack(RdbType.hashListpack, listpack, writer);
    return;
  }
  writer.byte(RdbType.hash);
  writer.count(rows.count(row));
  rows.eachField(row, (fb, fs, fn, vb, vs, vn) => {
    writer.string(fb, fs, fn);
    writer.string(vb, vs, vn);
  });
}

function writeSet(rows: Rows, row: Row, writer: ValueWriter): void {
  const integers = rows.count(row) <= limits.setIntegers ? integersOf(rows, row) : undefined;
  if (integers !== undefined) {
    writeIntset(integers, writer);
    return;
  }
  writer.byte(RdbType.set);
  writer.count(rows.count(row));
  rows.eachField(row, (b, s, n) => writer.string(b, s, n));
}

/** The members, if all are integers. */
function integersOf(rows: Rows, row: Row): bigint[] | undefined {
  const integers: bigint[] = [];
  rows.eachField(row, (b, s, n) => {
    const integer = parseBigInteger(b, s, n);
    if (integer === undefined) return true;
    integers.push(integer);
    return false;
  });
  return integers.length === rows.count(row) ? integers : undefined;
}

function writeIntset(integers: bigint[], writer: ValueWriter): void {
  integers.sort((a, b) => (a < b ? -1 : 1));
  const fits = (bits: number): boolean =>
    integers.every((integer) => BigInt.asIntN(bits, integer) === integer);
  const width = fits(16) ? 2 : fits(32) ? 4 : 8;
  const b = Buffer.allocUnsafe(8 + width * integers.length);
  b.writeUInt32LE(width, 0);
  b.writeUInt32LE(integers.length, 4);
  integers.forEach((integer, i) => {
    if (width === 8) b.writeBigInt64LE(integer, 8 + 8 * i);
    else b.writeIntLE(Number(integer), 8 + width * i, width);
  });
  writer.byte(RdbType.setIntset);
  writer.string(b, 0, b.length);
}

function writeRanked(rows: Rows, row: Row, writer: ValueWriter): void {
  const count = rows.count(row);
  const listpack = new ListpackWriter();
  let isCompact = count <= limits.rankedEntries;
  if (isCompact) {
    rows.eachByRank(row, 0, count, false, (b, s, n, score) => {
      isCompact = n <= limits.rankedValueBytes;
      if (!isCompact) return true;
      listpack.add(b, s, n);
      const text = Buffer.from(formatDouble(score), 'latin1');
      listpack.add(text, 0, text.length);
      return false;
    });
  }
  if (isCompact) {
    writeListpack(RdbType.rankedListpack, listpack, writer);
    return;
  }
  writer.byte(RdbType.ranked);
  writer.count(count);
  // From the highest, as Redis writes them.
  rows.eachByRank(row, 0, count, true, (b, s, n, score) => {
    writer.string(b, s, n);
    writer.double(score);
  });
}

/** The nodes of a list. */
class ListNodes implements Undo {
  readonly #writer: ValueWriter;
  readonly #countAt: number;
  readonly #node = new ListpackWriter();
  #count = 0;
  #countAtMark = 0;

  constructor(writer: ValueWriter) {
    this.#writer = writer;
    writer.byte(RdbType.listQuicklist2);
    this.#countAt = writer.length;
    writer.wideCount(0);
  }

  add(b: Buffer, s: number, n: number): void {
    if (n > nodeBytes) {
      this.flush();
      this.#writer.count(plainNode);
      this.#writer.string(b, s, n);
      this.#count++;
      return;
    }
    if (this.#node.length + n + 11 > nodeBytes && this.#node.count > 0) this.flush();
    this.#node.add(b, s, n);
  }

  flush(): void {
    if (this.#node.count === 0) return;
    this.#node.finish();
    this.#writer.count(packedNode);
    this.#writer.string(this.#node.buf, 0, this.#node.length);
    this.#node.clear();
    this.#count++;
  }

  finish(): void {
    this.flush();
    this.#writer.setWideCount(this.#countAt, this.#count);
  }

  mark(): number {
    this.flush();
    this.#countAtMark = this.#count;
    return this.#writer.length;
  }

  rollback(mark: number): void {
    this.#node.clear();
    this.#count = this.#countAtMark;
    this.#writer.length = mark;
  }
}

function writeList(rows: Rows, row: Row, writer: ValueWriter): void {
  const nodes = new ListNodes(writer);
  rows.eachElement(row, 0, rows.count(row), false, (b, s, n) => nodes.add(b, s, n));
  nodes.finish();
}

function* dumpInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { buf, starts, lens } = args;
  const payload = yield* dumped(rows, () => rows.find(buf, starts[1]!, lens[1]!));
  reply.bulk(payload, 0, payload.length);
}

/** The payload of the row that `find` finds in each step. */
export function* dumped(
  rows: Rows,
  find: () => Row,
): Generator<ReadFault | undefined, Buffer, undefined> {
  const [shape, count] = yield* step((): [Shape, number] => {
    const row = find();
    return [rows.shape(row), rows.count(row)];
  });
  const writer = new ValueWriter();
  const undo: Undo = {
    mark: () => writer.length,
    rollback(mark) {
      writer.length = mark;
    },
  };
  if (shape === Shape.value) {
    yield* step(() => {
      writer.length = 0;
      writeValue(rows, find(), writer);
    });
  } else if (shape === Shape.map) {
    writer.byte(RdbType.hash);
    writer.count(count);
    const each = (fb: Buffer, fs: number, fn: number, vb: Buffer, vs: number, vn: number): void => {
      writer.string(fb, fs, fn);
      writer.string(vb, vs, vn);
    };
    yield* eachFieldInSteps(rows, find, each, undo);
  } else if (shape === Shape.set) {
    writer.byte(RdbType.set);
    writer.count(count);
    yield* eachFieldInSteps(rows, find, (b, s, n) => writer.string(b, s, n), undo);
  } else if (shape === Shape.ranked) {
    writer.byte(RdbType.ranked);
    writer.count(count);
    const each = (b: Buffer, s: number, n: number, score: number): void => {
      writer.string(b, s, n);
      writer.double(score);
    };
    yield* eachRankInSteps(rows, find, count, each, undo);
  } else if (shape === Shape.timed) yield* writeTimed(rows, find, writer);
  else if (shape === Shape.stream) yield* writeStream(rows, find, writer);
  else {
    const nodes = new ListNodes(writer);
    const each = (b: Buffer, s: number, n: number): void => nodes.add(b, s, n);
    yield* eachElementInSteps(rows, find, 0, count, false, each, nodes);
    nodes.finish();
  }
  writeVersion(writer, shape === Shape.timed ? timesVersion : writtenVersion);
  const crc = new Crc64();
  for (let at = 0; at < writer.length; at += stepBytes) {
    yield;
    crc.add(writer.buf, at, Math.min(stepBytes, writer.length - at));
  }
  return complete(writer, crc);
}
