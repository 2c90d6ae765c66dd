// Bytes are passed as (buffer, start, length) so that no view object is made for a key, a field or a
// value on the way from the socket to the engine. `Slice` is the out-parameter form of the same triple.

export const emptyBytes: Buffer = Buffer.alloc(0);

/** A view that a callee fills. Valid until the next call that may write to where it points. */
export class Slice {
  b: Buffer = emptyBytes;
  s = 0;
  n = 0;

  set(b: Buffer, s: number, n: number): void {
    this.b = b;
    this.s = s;
    this.n = n;
  }

  /** A view of the same bytes, for code that is not hot. */
  view(): Buffer {
    return this.b.subarray(this.s, this.s + this.n);
  }

  /** A copy that stays valid. */
  copy(): Buffer {
    return Buffer.from(this.view());
  }
}

export function equalBytes(
  a: Uint8Array,
  as: number,
  an: number,
  b: Uint8Array,
  bs: number,
  bn: number,
): boolean {
  if (an !== bn) return false;
  for (let i = 0; i < an; i++) if (a[as + i] !== b[bs + i]) return false;
  return true;
}

/** Unsigned lexicographic order, a prefix first: negative, zero or positive. */
export function compareBytes(
  a: Uint8Array,
  as: number,
  an: number,
  b: Uint8Array,
  bs: number,
  bn: number,
): number {
  const n = an < bn ? an : bn;
  for (let i = 0; i < n; i++) {
    const d = a[as + i]! - b[bs + i]!;
    if (d !== 0) return d;
  }
  return an - bn;
}

/** A buffer that carries a `DataView` of itself. */
export interface ViewedBuffer extends Buffer {
  view: DataView;
}

/**
 * Gives a long-lived buffer a view of itself, by which `copyBytes` moves short ranges four bytes at a
 * time. For the buffers between which values move on every command.
 */
export function viewed(b: Buffer): ViewedBuffer {
  (b as ViewedBuffer).view = new DataView(b.buffer, b.byteOffset, b.length);
  return b as ViewedBuffer;
}

// From here on the built-in copy, which makes a view object first, is the faster one (measured on
// Node 20).
const builtInCopyBytes = 512;

/** Below this a loop is faster than the built-in copy where there are no views to copy by. */
const shortCopyBytes = 32;

// The views of the buffers that were copied from and to last, which are mostly the next ones, too. To ask a buffer that has none
// costs as much as the copy of some ten bytes: V8 looks for it in every prototype of the buffer.
let lastFrom: Buffer = emptyBytes;
let lastFromView: DataView | undefined;
let lastTo: Buffer = emptyBytes;
let lastToView: DataView | undefined;

function viewToCopyFrom(b: Buffer): DataView | undefined {
  const { view } = b as Partial<ViewedBuffer>;
  if (view !== undefined) {
    lastFrom = b;
    lastFromView = view;
  }
  return view;
}

function viewToCopyTo(b: Buffer): DataView | undefined {
  const { view } = b as Partial<ViewedBuffer>;
  if (view !== undefined) {
    lastTo = b;
    lastToView = view;
  }
  return view;
}

/** Copies `n` bytes. The ranges must not overlap within one buffer. */
export function copyBytes(to: Buffer, ts: number, from: Buffer, fs: number, n: number): void {
  if (n < 8 || n > builtInCopyBytes) {
    copyOtherwise(to, ts, from, fs, n);
    return;
  }
  const tv = to === lastTo ? lastToView : viewToCopyTo(to);
  const fv = from === lastFrom ? lastFromView : viewToCopyFrom(from);
  if (tv === undefined || fv === undefined) {
    copyOtherwise(to, ts, from, fs, n);
    return;
  }
  const last = n - 8;
  for (let i = 0; i < last; i += 8) {
    tv.setInt32(ts + i, fv.getInt32(fs + i, true), true);
    tv.setInt32(ts + i + 4, fv.getInt32(fs + i + 4, true), true);
  }
  // The rest, by going over some bytes again.
  tv.setInt32(ts + last, fv.getInt32(fs + last, true), true);
  tv.setInt32(ts + last + 4, fv.getInt32(fs + last + 4, true), true);
}

function copyOtherwise(to: Buffer, ts: number, from: Buffer, fs: number, n: number): void {
  if (n < shortCopyBytes) for (let i = 0; i < n; i++) to[ts + i] = from[fs + i]!;
  else from.copy(to, ts, fs, fs + n);
}

/**
 * The decimal 64-bit integer that exactly fills the bytes, by Redis's strict rules (no plus sign, no
 * leading zeros, no spaces), or NaN. Beyond 2^53 the result is rounded: use `parseBigInteger` there.
 */
export function parseInteger(b: Uint8Array, s: number, n: number): number {
  if (n === 0 || n > 20) return NaN;
  let i = s;
  const end = s + n;
  const negative = b[i] === 45;
  if (negative && ++i === end) return NaN;
  const first = b[i]! - 48;
  if (first < 0 || first > 9) return NaN;
  if (first === 0) return i + 1 === end && !negative ? 0 : NaN;
  if (end - i > 15) {
    const big = parseBigInteger(b, s, n);
    return big === undefined ? NaN : Number(big);
  }
  let value = first;
  for (i++; i < end; i++) {
    const d = b[i]! - 48;
    if (d < 0 || d > 9) return NaN;
    value = value * 10 + d;
  }
  return negative ? -value : value;
}

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

/** As `parseInteger`, exact over the whole signed 64-bit range. */
export function parseBigInteger(b: Uint8Array, s: number, n: number): bigint | undefined {
  if (n === 0 || n > 20) return undefined;
  const text = Buffer.from(b.buffer, b.byteOffset + s, n).toString('latin1');
  if (!/^(?:0|-?[1-9][0-9]*)$/.test(text)) return undefined;
  const value = BigInt(text);
  return value < int64Min || value > int64Max ? undefined : value;
}

/** Writes an integer below 2^53 in decimal at `at`; returns how many bytes it took (at most 17). */
export function writeInteger(to: Uint8Array, at: number, value: number): number {
  let p = at;
  let v = value;
  if (v < 0) {
    to[p++] = 45;
    v = -v;
  }
  if (v < 10) {
    to[p++] = 48 + v;
    return p - at;
  }
  let digits = 0;
  let t = v;
  if (t <= 0x7fffffff) {
    let u = t | 0;
    while (u > 0) {
      digits++;
      u = (u / 10) | 0;
    }
    u = t | 0;
    for (let i = p + digits - 1; i >= p; i--) {
      const q = (u / 10) | 0;
      to[i] = 48 + (u - q * 10);
      u = q;
    }
    return p + digits - at;
  }
  while (t >= 1) {
    digits++;
    t = Math.floor(t / 10);
  }
  for (let i = p + digits - 1; i >= p; i--) {
    const q = Math.floor(v / 10);
    to[i] = 48 + (v - q * 10);
    v = q;
  }
  return p + digits - at;
}

const fnvBasis = 0x811c9dc5;

/**
 * FNV-1a over the bytes, finished so that low and high bits both spread. Unsigned 32 bits. It is
 * stable, so a client can make keys that collide: tables of client-chosen names use `keyedHash`.
 */
export function hashBytes(b: Uint8Array, s: number, n: number): number {
  let h = fnvBasis ^ n;
  const end = s + n;
  for (let i = s; i < end; i++) h = Math.imul(h ^ b[i]!, 0x01000193);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
  return (h ^ (h >>> 15)) >>> 0;
}
