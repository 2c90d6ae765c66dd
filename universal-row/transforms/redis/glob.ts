// Redis's glob patterns (KEYS, SCAN MATCH, PSUBSCRIBE, ACL, CONFIG GET), over bytes:
//
//   *  any bytes      ?  one byte      [abc] [a-z] [^a]  one byte of a set      \x  x itself
//
// Every part but `*` takes exactly one byte, so a pattern is a list of segments between stars: the first
// is tied to the start of the text, the last to its end, and each other one may take the leftmost place
// where it fits. A match is linear in the text whatever the pattern is: plain segments are searched
// for with Knuth, Morris and Pratt's algorithm, those with `?` and sets with bit-parallel shift-and.
// The latter takes 32 positions at a time, so the length of such a segment is bounded.
//
// Redis's oddities are kept: an unclosed set ends with the pattern, ranges compare signed bytes,
// and only the empty pattern matches the empty string.

import { CommandError } from '../../errors.ts';

const star = 42;
const question = 63;
const open = 91;
const backslash = 92;
const close = 93;
const caret = 94;
const dash = 45;

/** A position that any byte fits; from here on numbers of sets. Below are bytes. */
const anyByte = 256;
const firstSet = 257;

/** Segments up to this length are compared in place: that is bounded, and needs no tables. */
const shortSegment = 16;
/** `?` and sets in a segment between two stars, together with the bytes between them, at most. */
export const maxClassPositions = 1024;

const tooComplex = new CommandError(
  `ERR pattern is too complex: between two stars at most ${maxClassPositions} bytes with ? or []`,
);

interface Segment {
  readonly from: number;
  readonly to: number;
  /** The length of the longest border of each prefix; for long plain segments. */
  failure: Int32Array | undefined;
  /** For each byte the positions it fits, 32 a word; for long segments with classes. */
  masks: Uint32Array | undefined;
}

export class Glob {
  /** Positions looked at by all matches so far. */
  work = 0;

  readonly #positions: Int32Array;
  /** 256 bits each. */
  readonly #sets: Uint32Array[] = [];
  readonly #segments: Segment[] = [];
  readonly #hasStar: boolean;
  /** Byte each byte is compared as. */
  readonly #fold: Uint8Array;

  /** The pattern is `pb[ps, ps + pn)`. Throws `CommandError` for a segment that is too long to be searched for. */
  constructor(pb: Uint8Array, ps: number, pn: number, ignoreCase = false) {
    this.#fold = ignoreCase ? lowerCase : sameCase;
    const positions = new Int32Array(pn);
    const end = ps + pn;
    let count = 0;
    let begin = 0;
    let hasStar = false;
    for (let p = ps; p < end; ) {
      const c = pb[p]!;
      if (c === star) {
        hasStar = true;
        this.#segments.push(segment(begin, count));
        begin = count;
        do p++;
        while (p < end && pb[p] === star);
      } else if (c === question) {
        positions[count++] = anyByte;
        p++;
      } else if (c === open) {
        const set = new Uint32Array(8);
        p = readSet(pb, p + 1, end, ignoreCase, set);
        positions[count++] = firstSet + this.#sets.push(set) - 1;
      } else {
        const at = c === backslash && p + 1 < end ? p + 1 : p;
        positions[count++] = this.#fold[pb[at]!]!;
        p = at + 1;
      }
    }
    this.#segments.push(segment(begin, count));
    this.#hasStar = hasStar;
    this.#positions = positions;
    // The first and the last are compared at one place.
    for (let i = 1; i < this.#segments.length - 1; i++) this.#prepare(this.#segments[i]!);
  }

  #prepare(part: Segment): void {
    const { from, to } = part;
    if (to - from <= shortSegment) return;
    if (this.#isPlain(part)) {
      part.failure = failureOf(this.#positions, from, to);
      return;
    }
    if (to - from > maxClassPositions) throw tooComplex;
    const words = (to - from + 31) >>> 5;
    const masks = new Uint32Array(256 * words);
    for (let i = from; i < to; i++) {
      const word = (i - from) >>> 5;
      const bit = 1 << ((i - from) & 31);
      for (let byte = 0; byte < 256; byte++) {
        if (this.#fits(this.#positions[i]!, byte)) masks[byte * words + word]! |= bit;
      }
    }
    part.masks = masks;
  }

  #isPlain({ from, to }: Segment): boolean {
    for (let i = from; i < to; i++) if (this.#positions[i]! >= anyByte) return false;
    return true;
  }

  #fits(position: number, byte: number): boolean {
    if (position < anyByte) return this.#fold[byte] === position;
    if (position === anyByte) return true;
    return (this.#sets[position - firstSet]![byte >>> 5]! & (1 << (byte & 31))) !== 0;
  }

  /** Whether all of `b[s, s + n)` matches. */
  matches(b: Uint8Array, s: number, n: number): boolean {
    const segments = this.#segments;
    const first = segments[0]!;
    const last = segments[segments.length - 1]!;
    if (n === 0) return !this.#hasStar && last.to === 0;
    if (!this.#hasStar) return last.to === n && this.#fitsAt(last, b, s);
    if (last.to > n || !this.#fitsAt(first, b, s)) return false;
    const end = s + n - (last.to - last.from);
    if (!this.#fitsAt(last, b, end)) return false;
    let at = s + first.to;
    for (let i = 1; i < segments.length - 1; i++) {
      at = this.#search(segments[i]!, b, at, end);
      if (at < 0) return false;
    }
    return at <= end;
  }

  #fitsAt({ from, to }: Segment, b: Uint8Array, at: number): boolean {
    const positions = this.#positions;
    for (let i = from; i < to; i++) {
      this.work++;
      if (!this.#fits(positions[i]!, b[at + i - from]!)) return false;
    }
    return true;
  }

  /** The end of the leftmost place in `b[at, end)` where the segment fits; -1 when there is none. */
  #search(part: Segment, b: Uint8Array, at: number, end: number): number {
    const length = part.to - part.from;
    if (at + length > end) return -1;
    if (part.failure !== undefined) return this.#searchPlain(part, part.failure, b, at, end);
    if (part.masks !== undefined) return this.#searchClasses(length, part.masks, b, at, end);
    const fold = this.#fold;
    const head = this.#positions[part.from]!;
    const stop = end - length;
    for (let i = at; i <= stop; i++) {
      if (head < anyByte) {
        const from = i;
        while (i <= stop && fold[b[i]!] !== head) i++;
        this.work += i - from;
        if (i > stop) return -1;
      }
      if (this.#fitsAt(part, b, i)) return i + length;
    }
    return -1;
  }

  #searchPlain(
    { from, to }: Segment,
    failure: Int32Array,
    b: Uint8Array,
    at: number,
    end: number,
  ): number {
    const positions = this.#positions;
    const fold = this.#fold;
    const length = to - from;
    let matched = 0;
    let work = 0;
    let found = -1;
    for (let i = at; i < end; i++) {
      const byte = fold[b[i]!]!;
      work++;
      while (matched > 0 && positions[from + matched] !== byte) {
        matched = failure[matched - 1]!;
        work++;
      }
      if (positions[from + matched] === byte && ++matched === length) {
        found = i + 1;
        break;
      }
    }
    this.work += work;
    return found;
  }

  #searchClasses(
    length: number,
    masks: Uint32Array,
    b: Uint8Array,
    at: number,
    end: number,
  ): number {
    const words = (length + 31) >>> 5;
    const state = new Uint32Array(words);
    const lastBit = 1 << ((length - 1) & 31);
    for (let i = at; i < end; i++) {
      const row = b[i]! * words;
      let carry = 1;
      for (let word = 0; word < words; word++) {
        const before = state[word]!;
        state[word] = ((before << 1) | carry) & masks[row + word]!;
        carry = before >>> 31;
      }
      this.work += words;
      if ((state[words - 1]! & lastBit) !== 0) return i + 1;
    }
    return -1;
  }
}

function segment(from: number, to: number): Segment {
  return { from, to, failure: undefined, masks: undefined };
}

function failureOf(positions: Int32Array, from: number, to: number): Int32Array {
  const failure = new Int32Array(to - from);
  let border = 0;
  for (let i = 1; i < failure.length; i++) {
    while (border > 0 && positions[from + i] !== positions[from + border]) {
      border = failure[border - 1]!;
    }
    if (positions[from + i] === positions[from + border]) border++;
    failure[i] = border;
  }
  return failure;
}

/** Reads a set from behind its bracket into `bits`; returns where the next part begins. */
function readSet(
  pb: Uint8Array,
  from: number,
  end: number,
  ignoreCase: boolean,
  bits: Uint32Array,
): number {
  let p = from;
  const negated = p < end && pb[p] === caret;
  if (negated) p++;
  while (p < end && pb[p] !== close) {
    if (pb[p] === backslash && p + 1 < end) {
      // Redis compares an escaped byte of a set in its own case even when it ignores case elsewhere.
      addByte(bits, pb[p + 1]!);
      p += 2;
    } else if (p + 2 < end && pb[p + 1] === dash) {
      addRange(bits, pb[p]!, pb[p + 2]!, ignoreCase);
      p += 3;
    } else {
      if (ignoreCase) addFolded(bits, lowerCase[pb[p]!]!);
      else addByte(bits, pb[p]!);
      p++;
    }
  }
  if (negated) for (let word = 0; word < 8; word++) bits[word] = ~bits[word]!;
  return p < end ? p + 1 : p;
}

function addByte(bits: Uint32Array, byte: number): void {
  bits[byte >>> 5]! |= 1 << (byte & 31);
}

function addFolded(bits: Uint32Array, byte: number): void {
  addByte(bits, byte);
  if (byte >= 97 && byte <= 122) addByte(bits, byte - 32);
}

function addRange(bits: Uint32Array, a: number, z: number, ignoreCase: boolean): void {
  const low = Math.min(signed(a), signed(z));
  const high = Math.max(signed(a), signed(z));
  const from = ignoreCase ? lower(low) : low;
  const to = ignoreCase ? lower(high) : high;
  for (let c = from; c <= to; c++) {
    if (!ignoreCase) addByte(bits, c & 255);
    else if (c < 65 || c > 90) addFolded(bits, c & 255);
  }
}

function lower(c: number): number {
  return c >= 65 && c <= 90 ? c + 32 : c;
}

function signed(c: number): number {
  return (c << 24) >> 24;
}

const sameCase = Uint8Array.from({ length: 256 }, (_, c) => c);
const lowerCase = Uint8Array.from({ length: 256 }, (_, c) => lower(c));
