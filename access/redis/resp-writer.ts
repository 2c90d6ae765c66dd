// Replies as RESP2 or RESP3, into one growing buffer that many connections share within a tick.

import { copyBytes, viewed, type ViewedBuffer, writeInteger } from '../../universal-row/bytes.ts';
import { CommandError } from '../../universal-row/errors.ts';
import type { Reply } from '../../universal-row/reply.ts';
import { outOfRequestMemory } from './held-memory.ts';
import { valuesOf } from './resp-values.ts';
import { formatDouble } from '../../universal-row/transforms/redis/support/format-double.ts';

/** An answer that begins with it is an error. */
export const minus = 45;

export const initialBytes = 256 * 1024;
/** A larger buffer is released after the tick that needed it. */
const keepBytes = 4 * 1024 * 1024;
/** Longer answers are not recorded. The same answer takes fewer bytes as values, of which universal-row/once.ts keeps 1024. */
const mostRecordedBytes = 2048;

const wide = /[^\0-\xff]/;

const okBytes = Buffer.from('+OK\r\n');
/** A header on its way to the place before its items. */
const headerBytes = new Uint8Array(32);

/** Where errors, and the memory of long answers, are counted. */
export interface AnswerKeeper {
  /** An error was answered. */
  countError(text: string): void;
  /** False when there is not as much left. */
  keepAnswer(bytes: number): boolean;
}

export class RespWriter implements Reply {
  version = 2;
  buf: ViewedBuffer;
  pos = 0;
  /** Receiver of the count of replies; undefined where none are counted. */
  keeper: AnswerKeeper | undefined;

  constructor(bytes: number = initialBytes) {
    this.buf = viewed(Buffer.allocUnsafeSlow(bytes));
  }

  /** Begins anew, in another buffer when the last one is too large to keep. */
  reset(): void {
    if (this.buf.length > keepBytes) this.renew();
    else this.pos = 0;
  }

  /** Begins anew in another buffer: the last one is its caller's. */
  renew(buf: ViewedBuffer = viewed(Buffer.allocUnsafeSlow(initialBytes))): void {
    this.pos = 0;
    this.buf = buf;
  }

  reserve(n: number): void {
    const need = this.pos + n;
    if (need <= this.buf.length) return;
    const larger = viewed(Buffer.allocUnsafeSlow(Math.max(need, this.buf.length * 2)));
    this.buf.copy(larger, 0, 0, this.pos);
    this.buf = larger;
  }

  ok(): void {
    this.reserve(5);
    const { buf, pos } = this;
    for (let i = 0; i < 5; i++) buf[pos + i] = okBytes[i]!;
    this.pos = pos + 5;
  }

  simple(text: string): void {
    this.#line(43, text);
  }

  error(text: string): void {
    this.keeper?.countError(text);
    // A line break inside would end the reply early.
    this.#line(45, /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, ' ') : text);
  }

  #line(type: number, text: string): void {
    this.reserve(text.length * 3 + 3);
    this.buf[this.pos++] = type;
    // Texts that quote a client's bytes have one character for each.
    this.pos += this.buf.write(text, this.pos, wide.test(text) ? 'utf8' : 'latin1');
    this.#crlf();
  }

  integer(value: number): void {
    if (!Number.isSafeInteger(value)) {
      this.bigInteger(BigInt(value));
      return;
    }
    this.reserve(24);
    this.#header(58, value);
  }

  bigInteger(value: bigint): void {
    this.#line(58, value.toString());
  }

  bulk(b: Buffer, s: number, n: number): void {
    this.reserve(n + 24);
    const { buf } = this;
    const { view } = buf;
    let p = this.pos;
    // "$5\r\n" in one store, "$10\r\n" in two: most bulks are that short.
    if (n < 10) {
      view.setInt32(p, 0x24300d0a + (n << 16));
      p += 4;
    } else if (n < 100) {
      const tens = (n * 103) >>> 10;
      view.setInt32(p, 0x2430300d + (tens << 16) + ((n - tens * 10) << 8));
      buf[p + 4] = 10;
      p += 5;
    } else {
      this.#header(36, n);
      p = this.pos;
    }
    copyBytes(buf, p, b, s, n);
    p += n;
    view.setInt16(p, 0x0d0a);
    this.pos = p + 2;
  }

  bulkHead(n: number): void {
    this.reserve(24);
    this.#header(36, n);
  }

  bulkPart(b: Buffer, s: number, n: number): void {
    this.rawBytes(b, s, n);
  }

  bulkTail(): void {
    this.reserve(2);
    this.#crlf();
  }

  /** A string of bytes, one in each character. */
  latin1(value: string): void {
    this.reserve(value.length + 24);
    this.#header(36, value.length);
    this.pos += this.buf.write(value, this.pos, 'latin1');
    this.#crlf();
  }

  text(value: string): void {
    const n = Buffer.byteLength(value);
    this.reserve(n + 24);
    this.#header(36, n);
    this.pos += this.buf.write(value, this.pos, 'utf8');
    this.#crlf();
  }

  verbatim(value: string): void {
    if (this.version < 3) {
      this.text(value);
      return;
    }
    const n = Buffer.byteLength(value);
    this.reserve(n + 28);
    this.#header(61, n + 4);
    this.pos += this.buf.write('txt:', this.pos, 'latin1');
    this.pos += this.buf.write(value, this.pos, 'utf8');
    this.#crlf();
  }

  nil(): void {
    this.raw(this.version < 3 ? '$-1\r\n' : '_\r\n');
  }

  nilArray(): void {
    this.raw(this.version < 3 ? '*-1\r\n' : '_\r\n');
  }

  double(value: number, text: string = formatDouble(value)): void {
    if (this.version < 3) this.text(text);
    else this.#line(44, text);
  }

  boolean(value: boolean): void {
    if (this.version < 3) this.integer(value ? 1 : 0);
    else this.raw(value ? '#t\r\n' : '#f\r\n');
  }

  array(count: number): void {
    this.reserve(24);
    this.#header(42, count);
  }

  map(pairs: number): void {
    this.reserve(24);
    if (this.version < 3) this.#header(42, pairs * 2);
    else this.#header(37, pairs);
  }

  set(count: number): void {
    this.reserve(24);
    this.#header(this.version < 3 ? 42 : 126, count);
  }

  /** An out-of-band message in RESP3; an array in RESP2. */
  push(count: number): void {
    this.reserve(24);
    this.#header(this.version < 3 ? 42 : 62, count);
  }

  open(): number {
    return this.pos;
  }

  close(mark: number, kind: 'array' | 'set' | 'map', count: number): void {
    const end = this.pos;
    // The header is written behind the items first, to learn its length, then put before them.
    if (kind === 'array') this.array(count);
    else if (kind === 'set') this.set(count);
    else this.map(count);
    const { buf } = this;
    const length = this.pos - end;
    for (let i = 0; i < length; i++) headerBytes[i] = buf[end + i]!;
    buf.copyWithin(mark + length, mark, end);
    for (let i = 0; i < length; i++) buf[mark + i] = headerBytes[i]!;
  }

  mark(): number {
    return this.pos;
  }

  rollback(mark: number): void {
    this.pos = mark;
  }

  fork(mark: number): LongAnswer {
    const own = new LongAnswer(this.keeper);
    own.version = this.version;
    own.rawBytes(this.buf, mark, this.pos - mark);
    this.pos = mark;
    return own;
  }

  valuesFrom(mark: number): Uint8Array | undefined {
    const isShort = this.pos - mark <= mostRecordedBytes;
    return isShort ? valuesOf(this.buf, mark, this.pos) : undefined;
  }

  /** ASCII that is RESP already. */
  raw(text: string): void {
    this.reserve(text.length);
    const { buf } = this;
    let p = this.pos;
    for (let i = 0; i < text.length; i++) buf[p++] = text.charCodeAt(i);
    this.pos = p;
  }

  /** Bytes that are RESP already. */
  rawBytes(b: Buffer, s: number, n: number): void {
    this.reserve(n);
    copyBytes(this.buf, this.pos, b, s, n);
    this.pos += n;
  }

  #header(type: number, value: number): void {
    const { buf } = this;
    let p = this.pos;
    buf[p++] = type;
    if (value >= 0 && value < 10) buf[p++] = 48 + value;
    else if (value >= 10 && value < 100) {
      const tens = (value * 103) >>> 10;
      buf[p++] = 48 + tens;
      buf[p++] = 48 + value - tens * 10;
    } else p += writeInteger(buf, p, value);
    buf[p] = 13;
    buf[p + 1] = 10;
    this.pos = p + 2;
  }

  #crlf(): void {
    this.buf[this.pos] = 13;
    this.buf[this.pos + 1] = 10;
    this.pos += 2;
  }
}

const partBytes = 256 * 1024;

/** A finished part of a long answer: the first so many bytes of a buffer. */
interface Part {
  buf: ViewedBuffer;
  length: number;
}

/** The reply of one long command: parts that never move, so that no step copies earlier output. */
export class LongAnswer extends RespWriter {
  readonly #parts: Part[] = [];
  /** Bytes of the parts; `pos` counts from there. */
  #before = 0;
  #first: number | undefined = undefined;
  /** Bytes that its keeper has counted. */
  kept = 0;

  constructor(keeper: AnswerKeeper | undefined) {
    super(4096);
    this.keeper = keeper;
  }

  /** Bytes in all. */
  get length(): number {
    return this.#before + this.pos;
  }

  /** The first byte, which tells an error; undefined when there is none. */
  get firstByte(): number | undefined {
    return this.length === 0 ? undefined : (this.#first ?? this.buf[0]);
  }

  override reserve(n: number): void {
    if (this.pos + n <= this.buf.length) return;
    const bytes = Math.max(partBytes, n);
    if (this.keeper !== undefined) {
      if (!this.keeper.keepAnswer(bytes)) throw new CommandError(outOfRequestMemory);
      this.kept += bytes;
    }
    this.#seal();
    this.buf = viewed(Buffer.allocUnsafeSlow(bytes));
  }

  #seal(): void {
    if (this.pos === 0) return;
    this.#add({ buf: this.buf, length: this.pos });
    this.buf = viewed(this.buf.subarray(this.pos));
    this.pos = 0;
  }

  /** The parts, which are its caller's from here on. */
  take(): Buffer[] {
    this.#seal();
    return this.#parts.splice(0).map(({ buf, length }) => buf.subarray(0, length));
  }

  override open(): number {
    this.#seal();
    return this.#before;
  }

  override close(mark: number, kind: 'array' | 'set' | 'map', count: number): void {
    this.#seal();
    const header = new RespWriter(32);
    header.version = this.version;
    if (kind === 'array') header.array(count);
    else if (kind === 'set') header.set(count);
    else header.map(count);
    let at = 0;
    let index = 0;
    while (at < mark) at += this.#parts[index++]!.length;
    this.#parts.splice(index, 0, { buf: header.buf, length: header.pos });
    this.#before += header.pos;
    if (mark === 0) this.#first = header.buf[0];
  }

  override fork(mark: number): LongAnswer {
    const own = new LongAnswer(this.keeper);
    own.version = this.version;
    this.#seal();
    const moved: Part[] = [];
    while (this.#before > mark) {
      const { buf, length } = this.#parts.pop()!;
      this.#before -= length;
      const stays = Math.max(0, mark - this.#before);
      if (stays > 0) {
        this.#parts.push({ buf, length: stays });
        this.#before = mark;
      }
      moved.push({ buf: viewed(buf.subarray(stays)), length: length - stays });
    }
    for (const part of moved.reverse()) own.#add(part);
    if (mark > 0) return own;
    this.#first = undefined;
    own.kept = this.kept;
    this.kept = 0;
    return own;
  }

  #add(part: Part): void {
    this.#first ??= part.buf[0];
    this.#parts.push(part);
    this.#before += part.length;
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
      this.buf = part.buf;
      this.pos = part.length;
    }
    this.pos = mark - this.#before;
    if (mark === 0) this.#first = undefined;
  }
}
