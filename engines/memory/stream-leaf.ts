// The records of one leaf of a stream: sorted by key, each key without the prefix it shares with
// the one before.
//
//   record   shared length v | suffix length v | value length v | suffix | value      v = LEB128 varint
//
// A shared length of 0 is right for any record: so leaves can be cut and joined without touching the rest.

import { compareBytes, copyBytes, emptyBytes, viewed } from '../../universal-row/bytes.ts';

const initialKeyBytes = 64;

/** Walks the records of a leaf from its first one on. */
export class LeafCursor {
  b: Buffer = emptyBytes;
  /** The current record's place, and the next one's. */
  at = 0;
  next = 0;
  end = 0;
  key: Buffer = Buffer.allocUnsafe(initialKeyBytes);
  keyLength = 0;
  /** Bytes that its key has in common with the key before. */
  shared = 0;
  valueAt = 0;
  valueLength = 0;
  /** Records before the current one. */
  index = -1;
  /**
   * After `seek`: lengths of the prefixes that the target shares with the key before the current
   * one, and with the current one.
   */
  sharedBefore = 0;
  sharedHere = 0;

  open(b: Buffer, start: number, end: number): void {
    this.b = b;
    this.at = start;
    this.next = start;
    this.end = end;
    this.keyLength = 0;
    this.index = -1;
  }

  /** Goes to the next record; false at the end, where `at` is the end. */
  advance(): boolean {
    this.at = this.next;
    this.index++;
    if (this.next >= this.end) return false;
    const { b } = this;
    let p = this.next;
    let shared = b[p++]!;
    if (shared >= 0x80) {
      const read = readLong(b, p - 1);
      shared = read.value;
      p = read.next;
    }
    let suffix = b[p++]!;
    if (suffix >= 0x80) {
      const read = readLong(b, p - 1);
      suffix = read.value;
      p = read.next;
    }
    let value = b[p++]!;
    if (value >= 0x80) {
      const read = readLong(b, p - 1);
      value = read.value;
      p = read.next;
    }
    const length = shared + suffix;
    if (length > this.key.length) this.#growKey(length);
    const { key } = this;
    for (let i = 0; i < suffix; i++) key[shared + i] = b[p + i]!;
    this.shared = shared;
    this.keyLength = length;
    this.valueAt = p + suffix;
    this.valueLength = value;
    this.next = this.valueAt + value;
    return true;
  }

  /** Continues to the first record whose key is not below this one; whether it is the same. */
  seek(k: Uint8Array, s: number, n: number): boolean {
    this.sharedHere = 0;
    for (;;) {
      const before = this.sharedHere;
      this.sharedBefore = before;
      if (!this.advance()) return false;
      // An entry that shares a longer prefix with a smaller key than that key shares with the
      // target is smaller too.
      if (this.shared > before) continue;
      const { key, keyLength } = this;
      const most = keyLength < n ? keyLength : n;
      let common = this.shared;
      while (common < most && key[common] === k[s + common]) common++;
      this.sharedHere = common;
      if (common === n) return keyLength === n;
      if (common < keyLength && key[common]! > k[s + common]!) return false;
    }
  }

  #growKey(length: number): void {
    const larger = Buffer.allocUnsafe(length * 2);
    this.key.copy(larger, 0, 0, this.keyLength);
    this.key = larger;
  }
}

const long = { value: 0, next: 0 };

/** A varint of more than one byte. The returned object is valid until the next call. */
function readLong(b: Buffer, p: number): { value: number; next: number } {
  let value = 0;
  let scale = 1;
  for (;;) {
    const byte = b[p++]!;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) break;
    scale *= 128;
  }
  long.value = value;
  long.next = p;
  return long;
}

/** Compares the key of the record at `p`, which shares nothing, with another. */
export function compareFirstKey(b: Buffer, p: number, k: Uint8Array, s: number, n: number): number {
  let at = p + 1;
  let suffix = b[at++]!;
  if (suffix >= 0x80) {
    const read = readLong(b, at - 1);
    suffix = read.value;
    at = read.next;
  }
  if (b[at]! < 0x80) at++;
  else at = readLong(b, at).next;
  return compareBytes(b, at, suffix, k, s, n);
}

export function commonLength(
  a: Uint8Array,
  as: number,
  an: number,
  b: Uint8Array,
  bs: number,
  bn: number,
): number {
  const most = Math.min(an, bn);
  let n = 0;
  while (n < most && a[as + n] === b[bs + n]) n++;
  return n;
}

const keptBytes = 1 << 20;

/** Encoded records on their way into a leaf. */
export class LeafScratch {
  buf: Buffer = viewed(Buffer.allocUnsafeSlow(8192));
  n = 0;

  /** Bytes as they are. */
  copy(b: Buffer, start: number, end: number): void {
    this.#reserve(end - start);
    b.copy(this.buf, this.n, start, end);
    this.n += end - start;
  }

  begin(): void {
    this.n = 0;
    if (this.buf.length > keptBytes) this.buf = viewed(Buffer.allocUnsafeSlow(8192));
  }

  /** Appends a record, its key without the first `shared` bytes. */
  add(
    shared: number,
    kb: Uint8Array,
    ks: number,
    kn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void {
    const suffix = kn - shared;
    this.#reserve(suffix + vn + 15);
    this.#varint(shared);
    this.#varint(suffix);
    this.#varint(vn);
    const { buf } = this;
    const at = this.n;
    for (let i = 0; i < suffix; i++) buf[at + i] = kb[ks + shared + i]!;
    copyBytes(buf, at + suffix, vb, vs, vn);
    this.n = at + suffix + vn;
  }

  #reserve(more: number): void {
    if (this.n + more <= this.buf.length) return;
    const larger = viewed(Buffer.allocUnsafeSlow(Math.max(this.n + more, this.buf.length * 2)));
    this.buf.copy(larger, 0, 0, this.n);
    this.buf = larger;
  }

  #varint(value: number): void {
    let v = value;
    while (v >= 0x80) {
      this.buf[this.n++] = (v % 128) | 0x80;
      v = Math.floor(v / 128);
    }
    this.buf[this.n++] = v;
  }
}
