import { CommandError, notAFloat, notAnInteger } from './errors.ts';
import { emptyBytes, parseBigInteger, parseInteger } from './bytes.ts';

/** A command's words as ranges of the buffer they arrived in. Word 0 is the command's name. */
export class Arguments {
  buf: Buffer = emptyBytes;
  count = 0;
  /** The command has waited for its keys, and is tried again. */
  hasWaited = false;
  /** Whether the words are of a command that a script calls. */
  isOfScript = false;
  starts: Int32Array;
  lens: Int32Array;

  /** With room for `capacity` words. */
  constructor(capacity = 32) {
    this.starts = new Int32Array(capacity);
    this.lens = new Int32Array(capacity);
  }

  /** Makes room for `count` words, keeping those there. */
  reserve(count: number): void {
    if (count <= this.starts.length) return;
    const capacity = Math.max(count, this.starts.length * 2);
    const starts = new Int32Array(capacity);
    starts.set(this.starts);
    const lens = new Int32Array(capacity);
    lens.set(this.lens);
    this.starts = starts;
    this.lens = lens;
  }

  /** Releases memory after an unusually long command. The words of that command are lost. */
  shrink(): void {
    if (this.starts.length <= 4096) return;
    this.count = 0;
    this.starts = new Int32Array(32);
    this.lens = new Int32Array(32);
  }

  /** Returns a copy of the words in a separate buffer. */
  copy(): Arguments {
    const { count, starts, lens, buf } = this;
    const copy = new Arguments(count);
    let total = 0;
    for (let i = 0; i < count; i++) total += lens[i]!;
    copy.buf = Buffer.allocUnsafe(total);
    let at = 0;
    for (let i = 0; i < count; i++) {
      const s = starts[i]!;
      const n = lens[i]!;
      buf.copy(copy.buf, at, s, s + n);
      copy.starts[i] = at;
      copy.lens[i] = n;
      at += n;
    }
    copy.count = count;
    copy.hasWaited = this.hasWaited;
    return copy;
  }

  /** Bytes of a word, as a view. */
  bytes(i: number): Buffer {
    const s = this.starts[i]!;
    return this.buf.subarray(s, s + this.lens[i]!);
  }

  /**
   * Replaces an argument by other bytes: for values that a waiting command has determined and must
   * keep.
   */
  replace(word: number, by: Uint8Array): void {
    const end = this.buf.length;
    this.buf = Buffer.concat([this.buf, by]);
    this.starts[word] = end;
    this.lens[word] = by.length;
  }

  text(i: number): string {
    const s = this.starts[i]!;
    return this.buf.toString('utf8', s, s + this.lens[i]!);
  }

  /** One character a byte, for error texts: they echo the exact input. */
  latin1(i: number, maxBytes = Infinity): string {
    const s = this.starts[i]!;
    return this.buf.toString('latin1', s, s + Math.min(this.lens[i]!, maxBytes));
  }

  /** Whether a word is this keyword, given in upper case, in any case. */
  is(i: number, keyword: string): boolean {
    const n = this.lens[i]!;
    if (i >= this.count || n !== keyword.length) return false;
    const s = this.starts[i]!;
    for (let k = 0; k < n; k++) {
      let c = this.buf[s + k]!;
      if (c >= 97 && c <= 122) c -= 32;
      if (c !== keyword.charCodeAt(k)) return false;
    }
    return true;
  }

  /** A signed 64-bit integer, rounded beyond 2^53. Throws Redis's error otherwise. */
  integer(i: number): number {
    const value = parseInteger(this.buf, this.starts[i]!, this.lens[i]!);
    if (Number.isNaN(value)) throw notAnInteger;
    return value;
  }

  /** As `integer`, NaN instead of the error. */
  integerOrNaN(i: number): number {
    return parseInteger(this.buf, this.starts[i]!, this.lens[i]!);
  }

  bigInteger(i: number): bigint {
    const value = parseBigInteger(this.buf, this.starts[i]!, this.lens[i]!);
    if (value === undefined) throw notAnInteger;
    return value;
  }

  /** A double in any form strtod takes, inf included; never NaN. */
  float(i: number, error: CommandError = notAFloat): number {
    const s = this.starts[i]!;
    const value = parseFloatBytes(this.buf, s, this.lens[i]!);
    if (Number.isNaN(value)) throw error;
    if (isRounded(this.buf, s, this.lens[i]!, value)) throw error;
    return value;
  }
}

/** Whether a number too small or too large for a double was rounded to 0 or infinity. */
export function isRounded(b: Buffer, s: number, n: number, value: number): boolean {
  if (value !== 0 && Number.isFinite(value)) return false;
  if (value !== 0) return b[s + n - 1]! <= 57;
  for (let i = s; i < s + n; i++) {
    const c = b[i]! | 32;
    if (c === 101) return false;
    if (c >= 49 && c <= 57) return true;
  }
  return false;
}

/** A decimal double that exactly fills the bytes (`1`, `-2.5`, `1E8`, `+inf`, hex as strtod), or NaN. */
export function parseFloatBytes(b: Buffer, s: number, n: number): number {
  if (n === 0 || n > 400) return NaN;
  // Most scores are short whole numbers, often with leading zeros.
  let v = 0;
  let i = s;
  const end = s + n;
  if (n <= 15) {
    for (; i < end; i++) {
      const d = b[i]! - 48;
      if (d < 0 || d > 9) break;
      v = v * 10 + d;
    }
    if (i === end) return v;
  }
  const text = b.toString('latin1', s, end);
  if (/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) return Number(text);
  const special = /^([+-]?)(?:inf|infinity)$/i.exec(text);
  if (special) return special[1] === '-' ? -Infinity : Infinity;
  const hex = /^([+-]?)0x([0-9a-f]{1,13})$/i.exec(text);
  if (hex) return (hex[1] === '-' ? -1 : 1) * Number.parseInt(hex[2]!, 16);
  return NaN;
}
