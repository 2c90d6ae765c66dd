// The values that a command answers, in a form of no protocol. A gateway copies them into its own as they come, without
// making objects of them.
//
//   00 nil          01 missing array    02 OK            03 status: line       04 error: line
//   05 integer: signed varint           06 integer beyond 2^52: line of its digits
//   07 bytes: varint length, bytes      08 text for people: string
//   09 double: 8 bytes                  0a double: 8 bytes, string as it is printed
//   0b false        0c true
//   0d array: varint count              0e map: varint pairs                   0f set: varint count
//   80..ff bytes of 0..127: the bytes
//
// A line is a varint, twice its length, plus 1 if it is UTF-8 and not latin1, and the line.

import { copyBytes } from '../bytes.ts';
import { CommandError } from '../errors.ts';
import type { Reply } from '../reply.ts';
import { WireError, type WireReader, WireWriter } from './wire.ts';

const Tag = {
  nil: 0,
  nilArray: 1,
  ok: 2,
  simple: 3,
  error: 4,
  integer: 5,
  bigInteger: 6,
  bytes: 7,
  verbatim: 8,
  double: 9,
  printedDouble: 10,
  false: 11,
  true: 12,
  array: 13,
  map: 14,
  set: 15,
  shortBytes: 0x80,
} as const;

/** Maximum nesting depth, for the stack of counts. */
const maxDepth = 128;
// Integers of the signed varint: 2^52 - 1 either way.
const maxSmall = 2 ** 52 - 1;

/** A reply as values. */
export class ValueWriter extends WireWriter implements Reply {
  /** RESP version, for transforms whose replies differ in more than their encoding. */
  version = 2;
  /** Counts the memory of long answers; false when there is no more. */
  keep: ((bytes: number) => boolean) | undefined;

  ok(): void {
    this.u8(Tag.ok);
  }

  simple(text: string): void {
    this.#tagged(Tag.simple, text);
  }

  error(text: string): void {
    this.#tagged(Tag.error, text);
  }

  /** Texts that quote a client's bytes have one character for each: so they are latin1 unless they cannot be. */
  #tagged(tag: number, text: string): void {
    const isWide = /[^\0-\xff]/.test(text);
    const n = isWide ? Buffer.byteLength(text) : text.length;
    this.reserve(n + 10);
    this.u8(tag);
    this.varint(n * 2 + (isWide ? 1 : 0));
    this.pos += this.buf.write(text, this.pos, isWide ? 'utf8' : 'latin1');
  }

  integer(value: number): void {
    if (value > maxSmall || value < -maxSmall) {
      this.bigInteger(BigInt(value));
      return;
    }
    this.reserve(9);
    this.buf[this.pos++] = Tag.integer;
    this.signed(value);
  }

  bigInteger(value: bigint): void {
    this.#tagged(Tag.bigInteger, value.toString());
  }

  bulk(b: Buffer, s: number, n: number): void {
    this.reserve(n + 9);
    if (n < 0x80) this.buf[this.pos++] = Tag.shortBytes | n;
    else {
      this.buf[this.pos++] = Tag.bytes;
      this.varint(n);
    }
    copyBytes(this.buf, this.pos, b, s, n);
    this.pos += n;
  }

  bulkHead(n: number): void {
    // Of a long answer no value is in two parts.
    this.reserve(n + 9);
    this.buf[this.pos++] = Tag.bytes;
    this.varint(n);
  }

  bulkPart(b: Buffer, s: number, n: number): void {
    this.reserve(n);
    copyBytes(this.buf, this.pos, b, s, n);
    this.pos += n;
  }

  bulkTail(): void {
    // Its length tells where it ends.
  }

  /** A string as UTF-8 bulk. */
  text(value: string): void {
    const n = Buffer.byteLength(value);
    this.reserve(n + 9);
    if (n < 0x80) this.buf[this.pos++] = Tag.shortBytes | n;
    else {
      this.buf[this.pos++] = Tag.bytes;
      this.varint(n);
    }
    this.pos += this.buf.write(value, this.pos, 'utf8');
  }

  verbatim(value: string): void {
    const n = Buffer.byteLength(value);
    this.reserve(n + 9);
    this.u8(Tag.verbatim);
    this.varint(n);
    this.pos += this.buf.write(value, this.pos, 'utf8');
  }

  nil(): void {
    this.u8(Tag.nil);
  }

  nilArray(): void {
    this.u8(Tag.nilArray);
  }

  double(value: number, text?: string): void {
    this.reserve(text === undefined ? 9 : text.length + 19);
    this.u8(text === undefined ? Tag.double : Tag.printedDouble);
    this.f64(value);
    if (text === undefined) return;
    this.varint(text.length);
    this.pos += this.buf.write(text, this.pos, 'latin1');
  }

  boolean(value: boolean): void {
    this.u8(value ? Tag.true : Tag.false);
  }

  array(count: number): void {
    this.#header(Tag.array, count);
  }

  map(pairs: number): void {
    this.#header(Tag.map, pairs);
  }

  set(count: number): void {
    this.#header(Tag.set, count);
  }

  #header(tag: number, count: number): void {
    this.reserve(9);
    this.buf[this.pos++] = tag;
    this.varint(count);
  }

  open(): number {
    return this.pos;
  }

  close(mark: number, kind: 'array' | 'set' | 'map', count: number): void {
    const end = this.pos;
    // The header is written behind the items first, to learn its length, then put before them.
    this[kind](count);
    const length = this.pos - end;
    const header = Buffer.from(this.buf.subarray(end, this.pos));
    this.buf.copyWithin(mark + length, mark, end);
    header.copy(this.buf, mark);
  }

  mark(): number {
    return this.pos;
  }

  rollback(mark: number): void {
    this.pos = mark;
  }

  fork(mark: number): LongValues {
    const own = new LongValues(this.keep);
    own.version = this.version;
    own.raw(this.buf, mark, this.pos - mark);
    this.pos = mark;
    return own;
  }

  valuesFrom(mark: number): Uint8Array | undefined {
    return this.buf.subarray(mark, this.pos);
  }
}

const partBytes = 256 * 1024;
const outOfMemory = new CommandError(
  'OOM command not allowed: requests and answers in memory take up all that they may',
);

/** The answer of one long command: parts that never move. No value is in two of them. */
export class LongValues extends ValueWriter {
  readonly #parts: Buffer[] = [];
  /** Bytes of the parts; `pos` counts from there. */
  #before = 0;
  /** Bytes that were counted by `keep`. */
  kept = 0;

  constructor(keep: ValueWriter['keep']) {
    super(4096);
    this.keep = keep;
  }

  /** Bytes in all. */
  get length(): number {
    return this.#before + this.pos;
  }

  override reserve(n: number): void {
    if (this.pos + n <= this.buf.length) return;
    const bytes = Math.max(partBytes, n);
    if (this.keep !== undefined) {
      if (!this.keep(bytes)) throw outOfMemory;
      this.kept += bytes;
    }
    this.#seal();
    this.buf = Buffer.allocUnsafeSlow(bytes);
  }

  #seal(): void {
    if (this.pos === 0) return;
    this.#parts.push(this.buf.subarray(0, this.pos));
    this.#before += this.pos;
    this.buf = this.buf.subarray(this.pos);
    this.pos = 0;
  }

  /** The parts, which are its caller's from here on. */
  take(): Buffer[] {
    this.#seal();
    return this.#parts.splice(0);
  }

  override open(): number {
    this.#seal();
    return this.#before;
  }

  override close(mark: number, kind: 'array' | 'set' | 'map', count: number): void {
    this.#seal();
    const header = new ValueWriter(16);
    header[kind](count);
    let at = 0;
    let index = 0;
    while (at < mark) at += this.#parts[index++]!.length;
    this.#parts.splice(index, 0, header.view());
    this.#before += header.pos;
  }

  override fork(mark: number): LongValues {
    const own = new LongValues(this.keep);
    own.version = this.version;
    this.#seal();
    const moved: Buffer[] = [];
    while (this.#before > mark) {
      const part = this.#parts.pop()!;
      this.#before -= part.length;
      const stays = Math.max(0, mark - this.#before);
      if (stays > 0) {
        this.#parts.push(part.subarray(0, stays));
        this.#before = mark;
      }
      moved.push(part.subarray(stays));
    }
    for (const part of moved.reverse()) {
      own.#parts.push(part);
      own.#before += part.length;
    }
    if (mark > 0) return own;
    own.kept = this.kept;
    this.kept = 0;
    return own;
  }

  override valuesFrom(mark: number): Uint8Array | undefined {
    return mark < this.#before ? undefined : super.valuesFrom(mark - this.#before);
  }

  override mark(): number {
    return this.length;
  }

  override rollback(mark: number): void {
    while (this.#before > mark) {
      const part = this.#parts.pop()!;
      this.#before -= part.length;
      this.buf = part;
      this.pos = part.length;
    }
    this.pos = mark - this.#before;
  }
}

/** Copies the next value, with all its contents. Throws a `WireError` for an invalid one. */
export function copyValue(reader: WireReader, reply: Reply): void {
  const items = copyOne(reader, reply);
  if (items > 0) copyItems(reader, reply, items);
}

function copyItems(reader: WireReader, reply: Reply, count: number): void {
  let left = count;
  const outer: number[] = [];
  for (;;) {
    const inner = copyOne(reader, reply);
    left--;
    if (inner > 0) {
      if (outer.length + 1 >= maxDepth) throw new WireError('values are nested too deeply');
      outer.push(left);
      left = inner;
    }
    while (left === 0) {
      if (outer.length === 0) return;
      left = outer.pop()!;
    }
  }
}

/** Copies all values up to the end of the reader. */
export function copyValues(reader: WireReader, reply: Reply): void {
  while (reader.pos < reader.end) copyOne(reader, reply);
}

/** Copies a value, of a collection its header; returns how many values are in it. */
function copyOne(reader: WireReader, reply: Reply): number {
  const tag = reader.u8();
  if (tag >= Tag.shortBytes) {
    const n = tag & 0x7f;
    reply.bulk(reader.buf, reader.skip(n), n);
    return 0;
  }
  switch (tag) {
    case Tag.ok:
      reply.ok();
      return 0;
    case Tag.integer:
      reply.integer(reader.signed());
      return 0;
    case Tag.nil:
      reply.nil();
      return 0;
    case Tag.bytes: {
      const n = reader.length();
      reply.bulk(reader.buf, reader.skip(n), n);
      return 0;
    }
    case Tag.array:
    case Tag.set:
    case Tag.map: {
      // Each value takes a byte at least.
      const count = reader.varint();
      if (tag === Tag.array) reply.array(count);
      else if (tag === Tag.set) reply.set(count);
      else {
        reply.map(count);
        return count * 2;
      }
      return count;
    }
    default:
      copyRare(tag, reader, reply);
      return 0;
  }
}

function copyRare(tag: number, reader: WireReader, reply: Reply): void {
  switch (tag) {
    case Tag.simple:
      reply.simple(line(reader));
      break;
    case Tag.error:
      reply.error(line(reader));
      break;
    case Tag.nilArray:
      reply.nilArray();
      break;
    case Tag.false:
    case Tag.true:
      reply.boolean(tag === Tag.true);
      break;
    case Tag.double:
      reply.double(reader.f64());
      break;
    case Tag.printedDouble: {
      const value = reader.f64();
      reply.double(value, reader.string());
      break;
    }
    case Tag.verbatim:
      reply.verbatim(reader.string());
      break;
    case Tag.bigInteger:
      reply.bigInteger(digits(line(reader)));
      break;
    default:
      throw new WireError(`no value begins with ${tag}`);
  }
}

function line(reader: WireReader): string {
  const size = reader.varint();
  const n = Math.floor(size / 2);
  const at = reader.skip(n);
  return reader.buf.toString(size % 2 === 1 ? 'utf8' : 'latin1', at, at + n);
}

function digits(text: string): bigint {
  if (!/^-?\d{1,64}$/.test(text)) throw new WireError('not an integer');
  return BigInt(text);
}
