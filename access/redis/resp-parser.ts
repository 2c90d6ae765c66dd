// RESP requests out of a stream of chunks: arrays of bulk strings, and inline commands (a line of words).
// https://redis.io/docs/latest/develop/reference/protocol-spec/
//
// A command that lies whole in one chunk is parsed where it lies, and its words point into the chunk.
// One that is cut goes into a buffer of the parser's own, which grows with the bytes that arrive and
// not with what a header announces. Parsing resumes where it stopped, so a long command that comes in
// many pieces is read once.

import type { Arguments } from '../../universal-row/arguments.ts';
import { emptyBytes } from '../../universal-row/bytes.ts';
import { carryBuffers, leastCarryBytes } from './carry-buffers.ts';

/** The stream is not RESP; the text goes to the client before it is disconnected. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

export interface ParserLimits {
  /** Bytes of one bulk string. */
  bulkBytes: number;
  /** Bytes of an inline command, and of a header line. */
  lineBytes: number;
  /** Words of one command. */
  words: number;
  /** Bytes that may wait for the rest of a command. */
  queryBytes: number;
}

export const defaultLimits: ParserLimits = {
  bulkBytes: 512 * 1024 * 1024,
  lineBytes: 64 * 1024,
  words: 0x7fffffff,
  queryBytes: 1024 * 1024 * 1024,
};

/** Redis's own limits for a client that has not said who it is. */
export const unauthenticatedLimits: ParserLimits = {
  ...defaultLimits,
  bulkBytes: 16_384,
  words: 10,
};

const cr = 13;
const lf = 10;
const star = 42;
const dollar = 36;

export class RespParser {
  limits: ParserLimits;
  private buf: Buffer = emptyBytes;
  private end = 0;
  /** Where the next command, or the rest of the one under way, begins. */
  private pos = 0;
  /** True when `buf` is ours to append to. */
  private carrying = false;
  /** Words of a command that is not done yet point into `buf`. */
  private isLent = false;
  // The command under way: words still to come (0: none under way), where it began.
  private wordsLeft = 0;
  private begun = 0;
  /** Length of the bulk string under way, -1 while its header is to come. */
  private bulk = -1;

  constructor(limits: ParserLimits = defaultLimits) {
    this.limits = limits;
  }

  /** Bytes taken in and not yet given out as a command. */
  get pending(): number {
    return this.end - this.pos;
  }

  /** Some words of a command have come, and others have not. */
  get isWithinCommand(): boolean {
    return this.wordsLeft > 0;
  }

  /** Adds the first `length` bytes of a chunk, which must stay unchanged while words point into it or until `detach`. */
  push(chunk: Buffer, length: number, args: Arguments): void {
    const from = this.wordsLeft > 0 ? this.begun : this.pos;
    const kept = this.end - from;
    if (kept === 0) {
      this.#letGo();
      this.buf = chunk;
      this.end = length;
      this.pos = 0;
      return;
    }
    if (kept + length > this.limits.queryBytes) {
      throw new ProtocolError(
        `Protocol error: query of more than ${this.limits.queryBytes} bytes (client-query-buffer-limit)`,
      );
    }
    if (!this.carrying || this.end + length > this.buf.length) {
      this.#carry(from, length, args);
    }
    chunk.copy(this.buf, this.end, 0, length);
    this.end += length;
  }

  /** Moves what is left to the front of a buffer of our own with room for `more`. */
  #carry(from: number, more: number, args: Arguments): void {
    const kept = this.end - from;
    let capacity = Math.max(leastCarryBytes, this.carrying ? this.buf.length : 0);
    // At least half of it is for what comes next: a byte is copied a few times, however little comes at a time.
    if (kept + more > capacity / 2) capacity = (kept + more) * 2;
    // When the length of the string under way is known, doubling stops there.
    if (this.bulk >= 0) {
      const needed = this.pos - from + this.bulk + 2;
      if (needed >= kept + more && needed < capacity) capacity = needed;
    }
    const larger = carryBuffers.take(capacity);
    this.buf.copy(larger, 0, from, this.end);
    if (this.wordsLeft > 0) {
      for (let i = 0; i < args.count; i++) args.starts[i] = args.starts[i]! - from;
      args.buf = larger;
    }
    this.#letGo();
    this.buf = larger;
    this.carrying = true;
    this.pos -= from;
    this.begun -= from;
    this.end = kept;
  }

  /**
   * Reads the next command into `args`. True when there is one; false when more bytes are needed.
   * Empty commands are skipped. Throws `ProtocolError`.
   */
  next(args: Arguments): boolean {
    for (;;) {
      if (this.wordsLeft === 0) {
        if (this.pos >= this.end) return false;
        if (this.buf[this.pos] !== star) {
          if (!this.#inline(args)) return false;
          if (args.count > 0) return true;
          continue;
        }
        const count = this.#header(true);
        if (count === noHeader) return false;
        if (count <= 0) continue;
        this.wordsLeft = count;
        args.count = 0;
        args.buf = this.buf;
      }
      return this.#words(args);
    }
  }

  /** Reads the words of the command under way, as far as they have come. */
  #words(args: Arguments): boolean {
    const { buf, end } = this;
    let { pos, bulk, wordsLeft } = this;
    let count = args.count;
    for (;;) {
      if (bulk < 0) {
        // The usual header is `$`, one to three digits, CR LF.
        if (pos + 3 < end && buf[pos] === dollar) {
          let p = pos + 1;
          let d = buf[p]! - 48;
          if (d >= 0 && d <= 9) {
            let length = d;
            p++;
            d = buf[p]! - 48;
            if (d >= 0 && d <= 9) {
              length = length * 10 + d;
              p++;
              d = p < end ? buf[p]! - 48 : -1;
              if (d >= 0 && d <= 9) {
                length = length * 10 + d;
                p++;
              }
            }
            if (p + 1 < end && buf[p] === cr) {
              bulk = length;
              pos = p + 2;
            }
          }
        }
        if (bulk < 0) {
          this.pos = pos;
          const length = this.#bulkHeader(args, count, wordsLeft);
          if (length === noHeader) return false;
          bulk = length;
          pos = this.pos;
        }
      }
      if (pos + bulk + 2 > end) {
        args.count = count;
        this.pos = pos;
        this.bulk = bulk;
        this.wordsLeft = wordsLeft;
        return false;
      }
      if (count === args.starts.length) args.reserve(count + 1);
      args.starts[count] = pos;
      args.lens[count] = bulk;
      count++;
      pos += bulk + 2;
      bulk = -1;
      if (--wordsLeft === 0) break;
    }
    args.count = count;
    args.buf = buf;
    this.pos = pos;
    this.begun = pos;
    this.bulk = -1;
    this.wordsLeft = 0;
    return true;
  }

  #bulkHeader(args: Arguments, count: number, wordsLeft: number): number {
    args.count = count;
    this.wordsLeft = wordsLeft;
    this.bulk = -1;
    if (this.pos >= this.end) return noHeader;
    if (this.buf[this.pos] !== dollar) {
      const got = String.fromCharCode(this.buf[this.pos]!);
      throw new ProtocolError(`Protocol error: expected '$', got '${printable(got)}'`);
    }
    return this.#header(false);
  }

  /** Reads a `*n` or `$n` line at `pos`; moves behind it. */
  #header(multi: boolean): number {
    const { buf, pos, end } = this;
    let p = pos + 1;
    const stop = Math.min(end, pos + 32);
    while (p < stop && buf[p] !== cr) p++;
    if (p + 1 >= end && p - pos < 32) return noHeader;
    if (buf[p] !== cr) {
      // Longer than any number: look for the end of the line only to say which limit it breaks.
      if (end - pos > this.limits.lineBytes) {
        throw new ProtocolError(`Protocol error: too big ${multi ? 'mbulk' : 'bulk'} count string`);
      }
      if (buf.indexOf(cr, p) < 0 || buf.indexOf(cr, p) >= end) return noHeader;
      throw new ProtocolError(invalidLength(multi));
    }
    let i = pos + 1;
    const negative = buf[i] === 45;
    if (negative) i++;
    let value = 0;
    if (i === p || p - i > 10) throw new ProtocolError(invalidLength(multi));
    for (; i < p; i++) {
      const d = buf[i]! - 48;
      if (d < 0 || d > 9) throw new ProtocolError(invalidLength(multi));
      value = value * 10 + d;
    }
    if (multi) {
      if (!negative && value > this.limits.words) {
        throw new ProtocolError(
          this.limits.words < 1000
            ? 'Protocol error: unauthenticated multibulk length'
            : 'Protocol error: invalid multibulk length',
        );
      }
      this.begun = pos;
    } else if (negative || value > this.limits.bulkBytes) {
      throw new ProtocolError(
        !negative && this.limits.words < 1000
          ? 'Protocol error: unauthenticated bulk length'
          : 'Protocol error: invalid bulk length',
      );
    }
    this.pos = p + 2;
    return negative ? 0 : value;
  }

  /** An inline command: words split by spaces, with quotes as in redis-cli. */
  #inline(args: Arguments): boolean {
    const { buf, pos, end } = this;
    const at = buf.indexOf(lf, pos);
    if (at < 0 || at >= end) {
      if (end - pos > this.limits.lineBytes) {
        throw new ProtocolError('Protocol error: too big inline request');
      }
      return false;
    }
    if (at - pos > this.limits.lineBytes) {
      throw new ProtocolError('Protocol error: too big inline request');
    }
    this.pos = at + 1;
    const words = splitLine(buf.subarray(pos, at > pos && buf[at - 1] === cr ? at - 1 : at));
    if (words === undefined)
      throw new ProtocolError('Protocol error: unbalanced quotes in request');
    args.count = 0;
    args.reserve(words.length);
    args.buf = Buffer.concat(words);
    let s = 0;
    for (const word of words) {
      args.starts[args.count] = s;
      args.lens[args.count] = word.length;
      s += word.length;
      args.count++;
    }
    return true;
  }

  /** Copies what is left of the last chunk, whose memory is about to be used again. */
  detach(args: Arguments): void {
    if (this.carrying) return;
    const from = this.wordsLeft > 0 ? this.begun : this.pos;
    if (from < this.end) this.#carry(from, 0, args);
    else {
      this.buf = emptyBytes;
      this.pos = 0;
      this.end = 0;
    }
  }

  /** The words of the last command are looked at even after the next `push`, `detach` or `release`. */
  lend(): void {
    this.isLent = true;
  }

  /** Lets go of a large buffer once all that was in it has been used. */
  release(): void {
    if (this.pos >= this.end && this.wordsLeft === 0) {
      this.#letGo();
      this.buf = emptyBytes;
      this.pos = 0;
      this.end = 0;
    }
  }

  #letGo(): void {
    if (this.carrying && !this.isLent) carryBuffers.give(this.buf);
    this.carrying = false;
    this.isLent = false;
  }
}

/** Not a length: the header has not come whole yet. */
const noHeader = -1;

function invalidLength(multi: boolean): string {
  return multi ? 'Protocol error: invalid multibulk length' : 'Protocol error: invalid bulk length';
}

function printable(c: string): string {
  return c >= ' ' && c <= '~' ? c : '?';
}

const space = /[\s\0]/;

/** The words of a line, or undefined when its quotes do not match. */
function splitLine(line: Buffer): Buffer[] | undefined {
  const text = line.toString('latin1');
  const words: Buffer[] = [];
  let i = 0;
  for (;;) {
    while (i < text.length && space.test(text[i]!)) i++;
    if (i >= text.length) return words;
    let word = '';
    let quote = '';
    for (; ; i++) {
      const c = text[i];
      if (c === undefined) {
        if (quote !== '') return undefined;
        break;
      }
      if (quote === '"') {
        if (
          c === '\\' &&
          text[i + 1] === 'x' &&
          /^[0-9a-fA-F]{2}$/.test(text.slice(i + 2, i + 4))
        ) {
          word += String.fromCharCode(Number.parseInt(text.slice(i + 2, i + 4), 16));
          i += 3;
        } else if (c === '\\' && i + 1 < text.length) {
          i++;
          const escaped = text[i]!;
          word += escapes[escaped] ?? escaped;
        } else if (c === '"') {
          if (i + 1 < text.length && !space.test(text[i + 1]!)) return undefined;
          i++;
          break;
        } else word += c;
      } else if (quote === "'") {
        if (c === '\\' && text[i + 1] === "'") {
          i++;
          word += "'";
        } else if (c === "'") {
          if (i + 1 < text.length && !space.test(text[i + 1]!)) return undefined;
          i++;
          break;
        } else word += c;
      } else if (space.test(c)) break;
      else if (c === '"' || c === "'") quote = c;
      else word += c;
    }
    words.push(Buffer.from(word, 'latin1'));
  }
}

const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  a: '\x07',
};
