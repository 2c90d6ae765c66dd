// The series of a shard by number: the shape of each, and its place in the columns of its measurement.
// Keys are not stored, but put together from these when one is wanted.

import { compareBytes, copyBytes, viewed } from '../../../universal-row/bytes.ts';
import type { ByteArena } from './byte-arena.ts';
import { GrowingUint32, type MemoryTally } from './growing.ts';
import type { KeyShape } from './measurement-index.ts';
import { matchBytes } from './match-bytes.ts';
import { hasBit, setBit } from './value-column.ts';

const comma = 0x2c;
const nothing = -1;
/** Ordinal of a removed series that is known by its number alone. */
const noOrdinal = 0xffffffff;

export class SeriesRows {
  /** By number. */
  readonly shapes: KeyShape[] = [];
  readonly arena: ByteArena;
  readonly #tally: MemoryTally;
  readonly #shapeOf: GrowingUint32;
  readonly #ordinalOf: GrowingUint32;
  #removedBits = new Uint32Array(0);
  #scratchA: Buffer = viewed(Buffer.allocUnsafeSlow(256));
  #scratchB: Buffer = viewed(Buffer.allocUnsafeSlow(256));

  constructor(arena: ByteArena, tally: MemoryTally) {
    this.arena = arena;
    this.#tally = tally;
    this.#shapeOf = new GrowingUint32(tally);
    this.#ordinalOf = new GrowingUint32(tally);
  }

  get count(): number {
    return this.#shapeOf.length;
  }

  shapeOf(series: number): KeyShape {
    return this.shapes[this.#shapeOf.array[series]!]!;
  }

  ordinalOf(series: number): number {
    return this.#ordinalOf.array[series]!;
  }

  /** A new series; `values` has a value number for each tag of the shape. Returns its number. */
  append(shape: KeyShape, values: readonly number[]): number {
    const series = this.count;
    const measurement = shape.measurement;
    const ordinal = measurement.series.length;
    const tags = shape.tags;
    if (!shape.isUsed) measurement.useShape(shape);
    measurement.series.push(series);
    this.#shapeOf.push(shape.number);
    this.#ordinalOf.push(ordinal);
    for (let i = 0; i < tags.length; i++) tags[i]!.append(ordinal, values[i]!);
    return series;
  }

  /** A number that is taken by a series removed long ago. */
  appendRemoved(shape: KeyShape): void {
    this.#shapeOf.push(shape.number);
    this.#ordinalOf.push(noOrdinal);
    this.#setRemoved(this.count - 1);
  }

  isRemoved(series: number): boolean {
    const word = series >>> 5;
    return word < this.#removedBits.length && hasBit(this.#removedBits, series);
  }

  remove(series: number): void {
    this.#setRemoved(series);
    const shape = this.shapeOf(series);
    shape.measurement.noteRemoved();
    for (const tag of shape.tags) tag.noteRemoved();
  }

  equalsKey(series: number, keys: Buffer, start: number, end: number): boolean {
    const shape = this.shapeOf(series);
    const ordinal = this.ordinalOf(series);
    const tags = shape.tags;
    let at = matchBytes(shape.measurement.key, keys, start, end);
    for (let i = 0; i < tags.length && at >= 0; i++) {
      const tag = tags[i]!;
      at = matchBytes(tag.prefix, keys, at, end);
      if (at >= 0) at = tag.values.match(tag.column.get(ordinal), keys, at, end);
    }
    return at === end;
  }

  keyLength(series: number): number {
    const shape = this.shapeOf(series);
    const ordinal = this.ordinalOf(series);
    let length = shape.measurement.key.length;
    for (const tag of shape.tags) {
      tag.values.locate(tag.column.get(ordinal));
      length += tag.prefix.length + this.arena.length;
    }
    return length;
  }

  /** Returns where the key ends in `into`. */
  copyKey(series: number, into: Buffer, at: number): number {
    const shape = this.shapeOf(series);
    const ordinal = this.ordinalOf(series);
    const arena = this.arena;
    copyBytes(into, at, shape.measurement.key, 0, shape.measurement.key.length);
    let end = at + shape.measurement.key.length;
    for (const tag of shape.tags) {
      copyBytes(into, end, tag.prefix, 0, tag.prefix.length);
      end += tag.prefix.length;
      tag.values.locate(tag.column.get(ordinal));
      copyBytes(into, end, arena.buf, arena.start, arena.length);
      end += arena.length;
    }
    return end;
  }

  /** A buffer that holds the key from its start, until the next call. */
  keyBytes(series: number): Buffer {
    this.#scratchA = this.#withRoom(this.#scratchA, this.keyLength(series));
    this.copyKey(series, this.#scratchA, 0);
    return this.#scratchA;
  }

  /** Order of the keys of two series by their bytes. */
  compare(a: number, b: number): number {
    const shape = this.shapeOf(a);
    if (shape !== this.shapeOf(b)) return this.#compareCopies(a, b);
    const x = this.ordinalOf(a);
    const y = this.ordinalOf(b);
    const tags = shape.tags;
    for (let i = 0; i < tags.length; i++) {
      const tag = tags[i]!;
      const v = tag.column.get(x);
      const w = tag.column.get(y);
      if (v !== w) return tag.values.compare(v, w, i === tags.length - 1 ? nothing : comma);
    }
    return 0;
  }

  #compareCopies(a: number, b: number): number {
    const lengthA = this.keyLength(a);
    const lengthB = this.keyLength(b);
    this.#scratchB = this.#withRoom(this.#scratchB, lengthB);
    const bytesA = this.keyBytes(a);
    this.copyKey(b, this.#scratchB, 0);
    return compareBytes(bytesA, 0, lengthA, this.#scratchB, 0, lengthB);
  }

  #withRoom(buf: Buffer, length: number): Buffer {
    return length <= buf.length ? buf : viewed(Buffer.allocUnsafeSlow(length * 2));
  }

  #setRemoved(series: number): void {
    const before = this.#removedBits;
    if (series >>> 5 >= before.length) {
      this.#removedBits = new Uint32Array((this.count >>> 4) + 8);
      this.#removedBits.set(before);
      this.#tally.bytes += this.#removedBits.byteLength - before.byteLength;
    }
    setBit(this.#removedBits, series);
  }
}
