// The value numbers of one tag by the ordinal of the series in its measurement; 0 where a series lacks
// the tag. Series come one after the other, so a column is only ever extended.
//
// Cells are as wide as the largest value number needs. A column is dense while it is used, from the first
// series with the tag to the last, and sparse otherwise: a tag that few series have must cost nothing for
// all the others, or a client that invents tag keys could fill the memory.

import type { MemoryTally } from './growing.ts';
import type { ValueSet } from './value-set.ts';

type Cells = Uint8Array | Uint16Array | Uint32Array;

/** A dense column turns sparse with fewer values than one in this many cells ... */
const sparseBelow = 16;
/** ... and a sparse one dense with as many as one in this many. */
const denseFrom = 4;

export class ValueColumn {
  readonly #tally: MemoryTally;
  /** Dense: by ordinal - base. Sparse: beside `ordinals`. */
  #cells: Cells = new Uint8Array(8);
  /** Sparse: ordinals of the series that have a value, ascending. */
  #ordinals: Uint32Array | undefined = undefined;
  /** The highest value that fits a cell. */
  #highest = 0xff;
  #base = 0;
  /** One after the last ordinal with a value. */
  #end = 0;
  #count = 0;

  constructor(tally: MemoryTally) {
    this.#tally = tally;
    tally.bytes += this.#cells.byteLength;
  }

  /** Few series have the tag, and `collectSparse` lists them. */
  get isSparse(): boolean {
    return this.#ordinals !== undefined;
  }

  get(ordinal: number): number {
    if (this.#ordinals !== undefined) return this.#search(this.#ordinals, ordinal);
    if (ordinal < this.#base || ordinal >= this.#end) return 0;
    return this.#cells[ordinal - this.#base]!;
  }

  /** `ordinal` is higher than any before, `value` not 0. */
  append(ordinal: number, value: number): void {
    const next = ordinal - this.#base;
    // The common case: one more series with a tag that all have.
    if (ordinal === this.#end && next < this.#cells.length && value <= this.#highest) {
      if (this.#ordinals === undefined && this.#count > 0) {
        this.#cells[next] = value;
        this.#count++;
        this.#end = ordinal + 1;
        return;
      }
    }
    if (this.#count === 0) this.#base = ordinal;
    const count = this.#count + 1;
    const span = ordinal + 1 - this.#base;
    if (this.#ordinals === undefined) {
      if (span > 64 && span > count * sparseBelow) this.#makeSparse();
    } else if (span <= count * denseFrom) this.#makeDense(span);
    const index = this.#ordinals === undefined ? span - 1 : this.#count;
    this.#reserve(index + 1, value);
    this.#cells[index] = value;
    if (this.#ordinals !== undefined) this.#ordinals[index] = ordinal;
    this.#count = count;
    this.#end = ordinal + 1;
  }

  /**
   * `count` is the number of ordinals so far. Sets the bit of every one whose value number v has
   * `accepts[v]` 1.
   */
  mark(accepts: Uint8Array, bits: Uint32Array, count: number): void {
    if (this.#ordinals !== undefined) {
      this.#markSparse(this.#ordinals, accepts, bits, count);
      return;
    }
    if (accepts[0] === 1) {
      for (let o = 0; o < this.#base && o < count; o++) setBit(bits, o);
      for (let o = this.#end; o < count; o++) setBit(bits, o);
    }
    markCells(this.#cells, this.#base, Math.min(this.#end, count), accepts, bits);
  }

  /** Adds the ordinals of a sparse column that have a value of the set, ascending. */
  collectSparse(values: ValueSet, into: number[]): void {
    for (let i = 0; i < this.#count; i++) {
      if (values.has(this.#cells[i]!)) into.push(this.#ordinals![i]!);
    }
  }

  #markSparse(ordinals: Uint32Array, accepts: Uint8Array, bits: Uint32Array, count: number): void {
    let from = 0;
    for (let i = 0; i <= this.#count; i++) {
      const ordinal = i < this.#count ? ordinals[i]! : count;
      if (accepts[0] === 1) for (let o = from; o < ordinal; o++) setBit(bits, o);
      if (i < this.#count && accepts[this.#cells[i]!] === 1) setBit(bits, ordinal);
      from = ordinal + 1;
    }
  }

  #search(ordinals: Uint32Array, ordinal: number): number {
    let low = 0;
    let high = this.#count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ordinals[middle]! < ordinal) low = middle + 1;
      else high = middle;
    }
    return low < this.#count && ordinals[low] === ordinal ? this.#cells[low]! : 0;
  }

  #reserve(length: number, value: number): void {
    const before = this.#cells;
    const width = Math.max(before.BYTES_PER_ELEMENT, value < 256 ? 1 : value < 65536 ? 2 : 4);
    let capacity = before.length;
    if (length > capacity) capacity = Math.max(length, capacity + (capacity >>> 1));
    if (capacity > before.length || width > before.BYTES_PER_ELEMENT) {
      this.#cells = cellsOf(width, capacity);
      this.#cells.set(before);
      this.#highest = 2 ** (8 * width) - 1;
      this.#tally.bytes += this.#cells.byteLength - before.byteLength;
    }
    const ordinals = this.#ordinals;
    if (ordinals !== undefined && ordinals.length < capacity) {
      this.#ordinals = new Uint32Array(capacity);
      this.#ordinals.set(ordinals);
      this.#tally.bytes += this.#ordinals.byteLength - ordinals.byteLength;
    }
  }

  #makeSparse(): void {
    const before = this.#cells;
    const ordinals = new Uint32Array(this.#count + 8);
    const cells = cellsOf(before.BYTES_PER_ELEMENT, this.#count + 8);
    let at = 0;
    for (let i = 0; i < this.#end - this.#base; i++) {
      if (before[i] === 0) continue;
      ordinals[at] = this.#base + i;
      cells[at++] = before[i]!;
    }
    this.#cells = cells;
    this.#ordinals = ordinals;
    this.#tally.bytes += cells.byteLength + ordinals.byteLength - before.byteLength;
  }

  #makeDense(span: number): void {
    const before = this.#cells;
    const ordinals = this.#ordinals!;
    const cells = cellsOf(before.BYTES_PER_ELEMENT, span + (span >>> 1));
    for (let i = 0; i < this.#count; i++) cells[ordinals[i]! - this.#base] = before[i]!;
    this.#cells = cells;
    this.#ordinals = undefined;
    this.#tally.bytes += cells.byteLength - before.byteLength - ordinals.byteLength;
  }
}

export function setBit(bits: Uint32Array, index: number): void {
  bits[index >>> 5]! |= 1 << (index & 31);
}

export function hasBit(bits: Uint32Array, index: number): boolean {
  return ((bits[index >>> 5]! >>> (index & 31)) & 1) === 1;
}

function cellsOf(width: number, length: number): Cells {
  if (width === 1) return new Uint8Array(length);
  return width === 2 ? new Uint16Array(length) : new Uint32Array(length);
}

/** `cells[0]` belongs to ordinal `base`. */
function markCells(
  cells: Cells,
  base: number,
  end: number,
  accepts: Uint8Array,
  bits: Uint32Array,
): void {
  let o = base;
  while (o < end) {
    // A word at a time.
    const wordEnd = Math.min((o | 31) + 1, end);
    const at = o >>> 5;
    let word = bits[at]!;
    for (; o < wordEnd; o++) word |= accepts[cells[o - base]!]! << (o & 31);
    bits[at] = word;
  }
}
