// RESP requests out of a stream of chunks: arrays of bulk strings, and inline commands (a line of words).
// https://redis.io/docs/latest/develop/reference/protocol-spec/
//
// A command that is complete in one chunk is parsed in place, and its arguments point into the
// chunk. One that is cut goes into a buffer of the parser's own, which grows with the bytes that
// arrive and not with what a header announces. Parsing resumes where it stopped, so a long command
// that comes in many pieces is read once.

import type { Arguments } from '../../universal-row/arguments.ts';
import { emptyBytes } from '../../universal-row/bytes.ts';
import type { MemoryAccount } from '../admission/request-memory.ts';
import { CarryBuffers, carryBuffers, leastCarryBytes } from './carry-buffers.ts';

/** The stream is not RESP; the text goes to the client before it is disconnected. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** There is no memory for the rest of a command. */
export class OutOfRequestMemory extends Error {
  override readonly name = 'OutOfRequestMemory';
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

/** Counts the memory of commands that have come in part. */
type RequestBudget = Pick<MemoryAccount, 'add' | 'reserve' | 'release'>;

/** Redis's own limits for unauthenticated clients. */
export const unauthenticatedLimits: ParserLimits = {
  ...defaultLimits,
  bulkBytes: 16_384,
  words: 10,
};

/** Two places of 4 bytes. */
const bytesPerWord = 8;
const largeCarryBytes = 64 * 1024;
/** A copy of more takes a good part of a millisecond. */
const manyCarryBytes = 1024 * 1024;
/** The smallest buffer, with places for the words of an ordinary command. A connection is never refused one. */
const smallestCarryBytes = leastCarryBytes + 32 * bytesPerWord;

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

  /** Bytes of `buf` that the budget counts. */
  private counted = 0;
  /** Bytes of released buffers that arguments still point into. */
  private lent = 0;
  private readonly budget: RequestBudget | undefined;

  /** Throws `OutOfRequestMemory` from `push`, `next` and `detach` when the budget has no room. */
  constructor(limits: ParserLimits = defaultLimits, budget?: RequestBudget) {
    this.limits = limits;
    this.budget = budget;
  }

  /** Bytes taken in and not yet given out as a command. */
  get pending(): number {
    return this.end - this.pos;
  }

  /**
   * Whether the words of the last command may stay in place while the command waits. They must be in a buffer owned
   * by the parser, and take up at least a quarter of it. See `lend`.
   */
  mayLend(args: Arguments): boolean {
    if (!this.carrying || args.buf !== this.buf) return false;
    return (this.pos - args.starts[0]!) * 4 >= this.buf.length;
  }

  /** The current command has an incomplete string, so there is no command to run. */
  get awaitsMore(): boolean {
    return this.bulk >= 0 && this.pos + this.bulk + 2 > this.end;
  }

  /** The buffer has no room for the next large read of a long string: the bytes received so far would be copied. */
  get isFull(): boolean {
    const { length } = this.buf;
    if (!this.carrying || length < manyCarryBytes || this.bulk < 0) return false;
    return this.end + largeCarryBytes > length && this.pos + this.bulk + 2 > length;
  }

  /** Copies what has come of a long string where `isFull`, into a buffer with room for more. Throws `OutOfRequestMemory`. */
  makeRoom(args: Arguments): void {
    if (this.isFull) this.#carry(this.wordsLeft > 0 ? this.begun : this.pos, largeCarryBytes, args);
  }

  /** A command has arrived in part: some of its words are missing. */
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

  /** Moves the unparsed bytes to the front of a buffer of our own with room for `more`. */
  #carry(from: number, more: number, args: Arguments): void {
    const kept = this.end - from;
    let capacity = leastCarryBytes;
    if (this.carrying && this.buf.length <= largeCarryBytes) capacity = this.buf.length;
    // At least half of it is for further input: so a byte is copied only a few times, even with
    // small chunks.
    if (kept + more > capacity / 2) capacity = (kept + more) * 2;
    // When the length of the current string is known, growth stops there and takes steps of four:
    // the part copied at once, and left to the garbage collector, is a quarter of it.
    if (this.bulk >= 0) {
      const needed = this.pos - from + this.bulk + 2;
      if (needed >= kept + more) capacity = stepOf(needed, capacity);
      // No more is needed when the command ends with the available input.
      else if (this.wordsLeft === 1) capacity = kept + more;
    }
    const counted = this.#reserve(capacity, args);
    const larger = carryBuffers.take(capacity);
    this.buf.copy(larger, 0, from, this.end);
    if (this.wordsLeft > 0) {
      for (let i = 0; i < args.count; i++) args.starts[i] = args.starts[i]! - from;
      args.buf = larger;
    }
    this.#letGo();
    this.buf = larger;
    this.counted = counted;
    this.carrying = true;
    this.pos -= from;
    this.begun -= from;
    this.end = kept;
  }

  /** Counts a buffer that is about to be made, and the places of the words in it. */
  #reserve(capacity: number, args: Arguments): number {
    if (this.budget === undefined) return 0;
    const places = this.wordsLeft > 0 ? args.starts.length * bytesPerWord : 0;
    const bytes = CarryBuffers.lengthFor(capacity) + places;
    if (this.budget.reserve('request', bytes)) return bytes;
    // Small commands of otherwise silent clients wait as well when other clients have taken all
    // memory.
    if (bytes <= smallestCarryBytes) {
      this.budget.add('request', bytes);
      return bytes;
    }
    this.drop();
    throw new OutOfRequestMemory('no memory for the rest of a command');
  }

  /** Discards all input that was not returned as a command. */
  drop(): void {
    this.#letGo();
    this.buf = emptyBytes;
    this.pos = 0;
    this.end = 0;
    this.wordsLeft = 0;
    this.bulk = -1;
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
      if (!buf.subarray(p, end).includes(cr)) return noHeader;
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
    // Nothing behind `end` is looked at: there may be a lot of room left in a large buffer.
    const found = buf.subarray(pos, Math.min(end, pos + this.limits.lineBytes + 2)).indexOf(lf);
    const at = pos + found;
    if (found < 0) {
      if (end - pos > this.limits.lineBytes) {
        throw new ProtocolError('Protocol error: too big inline request');
      }
      return false;
    }
    if (at - pos > this.limits.lineBytes) {
      throw new ProtocolError('Protocol error: too big inline request');
    }
    this.pos = at + 1;
    const stop = at > pos && buf[at - 1] === cr ? at - 1 : at;
    if (!splitLine(buf, pos, stop, args)) {
      throw new ProtocolError('Protocol error: unbalanced quotes in request');
    }
    return true;
  }

  /** Copies the unparsed rest of the last chunk, whose memory is about to be reused. */
  detach(args: Arguments): void {
    const from = this.wordsLeft > 0 ? this.begun : this.pos;
    // A large buffer of which little is left is exchanged for a small one.
    if (this.carrying && (this.end - from) * 8 > this.buf.length) return;
    if (this.carrying && this.buf.length <= largeCarryBytes) return;
    if (from < this.end) this.#carry(from, 0, args);
    else {
      this.#letGo();
      this.buf = emptyBytes;
      this.pos = 0;
      this.end = 0;
    }
  }

  /** The words of the last command are looked at even after the next `push`, `detach` or `release`. */
  lend(): void {
    this.#endLoan();
    this.isLent = true;
  }

  #endLoan(): void {
    if (this.lent === 0) return;
    this.budget!.release('request', this.lent);
    this.lent = 0;
  }

  /** Releases a large buffer once all of its input has been used. */
  release(): void {
    this.#endLoan();
    if (this.pos >= this.end && this.wordsLeft === 0) {
      this.#letGo();
      this.buf = emptyBytes;
      this.pos = 0;
      this.end = 0;
    }
  }

  #letGo(): void {
    if (this.carrying && !this.isLent) carryBuffers.give(this.buf);
    if (this.isLent) this.lent += this.counted;
    else if (this.counted !== 0) this.budget!.release('request', this.counted);
    this.counted = 0;
    this.carrying = false;
    this.isLent = false;
  }
}

/** The buffer on the way to one of `needed` bytes. Strings of one length have buffers of the same sizes, which fit again. */
function stepOf(needed: number, capacity: number): number {
  if (capacity <= largeCarryBytes) return Math.min(needed, capacity);
  let size = needed;
  while (size >= 4 * capacity) size = Math.ceil(size / 4);
  return size;
}

/** Not a length: the header has not come whole yet. */
const noHeader = -1;

function invalidLength(multi: boolean): string {
  return multi ? 'Protocol error: invalid multibulk length' : 'Protocol error: invalid bulk length';
}

function printable(c: string): string {
  return c >= ' ' && c <= '~' ? c : '?';
}

function isSpace(c: number): boolean {
  return c === 32 || (c >= 9 && c <= 13) || c === 0;
}

/** Puts the words of a line into `args`; false when its quotes do not match. */
function splitLine(line: Buffer, from: number, end: number, args: Arguments): boolean {
  // Words are never longer than they are written.
  const out = Buffer.allocUnsafe(end - from);
  args.buf = out;
  args.count = 0;
  let p = 0;
  let i = from;
  for (;;) {
    while (i < end && isSpace(line[i]!)) i++;
    if (i >= end) return true;
    const start = p;
    let quote = 0;
    for (; ; i++) {
      if (i >= end) {
        if (quote !== 0) return false;
        break;
      }
      const c = line[i]!;
      if (quote === doubleQuote && c === backslash && i + 1 < end) {
        i++;
        const high = i + 2 < end && line[i] === 120 ? hexDigit(line[i + 1]!) : -1;
        const low = high < 0 ? -1 : hexDigit(line[i + 2]!);
        if (low >= 0) {
          out[p++] = high * 16 + low;
          i += 2;
        } else out[p++] = escapes.get(line[i]!) ?? line[i]!;
      } else if (quote === singleQuote && c === backslash && line[i + 1] === singleQuote) {
        if (i + 1 >= end) return false;
        i++;
        out[p++] = singleQuote;
      } else if (quote !== 0 && c === quote) {
        if (i + 1 < end && !isSpace(line[i + 1]!)) return false;
        i++;
        break;
      } else if (quote !== 0) out[p++] = c;
      else if (isSpace(c)) break;
      else if (c === doubleQuote || c === singleQuote) quote = c;
      else out[p++] = c;
    }
    if (args.count === args.starts.length) args.reserve(args.count + 1);
    args.starts[args.count] = start;
    args.lens[args.count] = p - start;
    args.count++;
  }
}

const doubleQuote = 34;
const singleQuote = 39;
const backslash = 92;

/** The value of a hexadecimal digit, or -1. */
function hexDigit(c: number): number {
  if (c >= 48 && c <= 57) return c - 48;
  const lower = c | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

/** Meaning of letters after a backslash. */
const escapes: ReadonlyMap<number, number> = new Map([
  [110, lf],
  [114, cr],
  [116, 9],
  [98, 8],
  [97, 7],
]);
