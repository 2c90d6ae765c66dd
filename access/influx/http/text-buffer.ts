// Bytes of an answer being written: a growing buffer with JSON encoding. Numbers and texts are
// printed as by Go's encoder, because clients and tests compare answers with InfluxDB's.

import { writeInteger } from '../../../universal-row/bytes.ts';

// Characters that stand for themselves in a JSON string of Go's encoder, which escapes for HTML too.
const plain = new Uint8Array(128).fill(1, 0x20);
for (const c of '"\\<>&') plain[c.charCodeAt(0)] = 0;

const special = /["\\<>&\u2028\u2029\ufffd\p{Cc}\p{Cs}]/gu;

export class TextBuffer {
  buf: Buffer;
  length = 0;
  /** How often bytes were taken away. */
  takes = 0;

  constructor(capacity = 16 * 1024) {
    this.buf = Buffer.allocUnsafeSlow(capacity);
  }

  /** Makes room for `bytes` more. */
  ensure(bytes: number): void {
    const needed = this.length + bytes;
    if (needed <= this.buf.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.buf.length * 2));
    this.buf.copy(grown, 0, 0, this.length);
    this.buf = grown;
  }

  byte(value: number): void {
    if (this.length === this.buf.length) this.ensure(1);
    this.buf[this.length++] = value;
  }

  /** Text of ASCII characters only. */
  ascii(text: string): void {
    const { length } = text;
    this.ensure(length);
    const { buf } = this;
    const at = this.length;
    if (length > 32) buf.write(text, at, 'latin1');
    else for (let i = 0; i < length; i++) buf[at + i] = text.charCodeAt(i);
    this.length = at + length;
  }

  bytes(bytes: Buffer): void {
    const { length } = bytes;
    this.ensure(length);
    bytes.copy(this.buf, this.length);
    this.length += length;
  }

  text(text: string): void {
    this.ensure(text.length * 3);
    this.length += this.buf.write(text, this.length);
  }

  /** A whole number within ±2^53. */
  integer(value: number): void {
    this.ensure(20);
    this.length += writeInteger(this.buf, this.length, value);
  }

  /** The lowest `digits` decimal digits, with leading zeros. At most 9, and there must be room. */
  padded(value: number, digits: number): void {
    const { buf } = this;
    let rest = value | 0;
    for (let i = this.length + digits - 1; i >= this.length; i--) {
      const q = (rest / 10) | 0;
      buf[i] = 48 + rest - q * 10;
      rest = q;
    }
    this.length += digits;
  }

  /**
   * A JSON number. Infinities and NaN are null. JavaScript and Go agree on the shortest digits and
   * on where exponents begin, but for minus zero.
   */
  number(value: number): void {
    if (Number.isSafeInteger(value) && (value !== 0 || 1 / value > 0)) this.integer(value);
    else if (value === 0) this.ascii('-0');
    else this.ascii(Number.isFinite(value) ? String(value) : 'null');
  }

  /** A string of JSON, quotes included. */
  quoted(text: string): void {
    const { length } = text;
    this.ensure(length + 2);
    const { buf } = this;
    const start = this.length;
    let at = start;
    buf[at++] = 0x22;
    for (let i = 0; i < length; i++) {
      const c = text.charCodeAt(i);
      if (c > 126 || plain[c] === 0) {
        this.#quotedSlowly(text);
        return;
      }
      buf[at++] = c;
    }
    buf[at++] = 0x22;
    this.length = at;
  }

  #quotedSlowly(text: string): void {
    this.byte(0x22);
    this.text(text.replace(special, escaped));
    this.byte(0x22);
  }

  /** Returns the bytes written, owned by the caller; the buffer starts over. */
  take(): Buffer {
    const taken = this.buf.subarray(0, this.length);
    this.buf = Buffer.allocUnsafeSlow(Math.max(this.buf.length, 16 * 1024));
    this.length = 0;
    this.takes++;
    return taken;
  }
}

function escaped(c: string): string {
  switch (c) {
    case '"':
      return '\\"';
    case '\\':
      return '\\\\';
    case '\n':
      return '\\n';
    case '\r':
      return '\\r';
    case '\t':
      return '\\t';
    case '\x7f':
      return c;
    default: {
      const code = c.charCodeAt(0);
      // C1 controls are nothing special to Go; half of a surrogate pair is no character.
      if (code >= 0x80 && code < 0xa0) return c;
      const shown = code >= 0xd800 && code < 0xe000 ? 0xfffd : code;
      return `\\u${shown.toString(16).padStart(4, '0')}`;
    }
  }
}

/** A float as CSV has it: never with an exponent. */
export function plainFloat(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value);
  const [mantissa, exponentText] = text.split('e');
  if (exponentText === undefined) return text;
  const exponent = Number(exponentText);
  const sign = text.startsWith('-') ? '-' : '';
  const [whole, fraction = ''] = mantissa!.slice(sign.length).split('.');
  const digits = whole + fraction;
  const point = whole!.length + exponent;
  return point <= 0
    ? `${sign}0.${'0'.repeat(-point)}${digits}`
    : `${sign}${digits.padEnd(point, '0')}`;
}
