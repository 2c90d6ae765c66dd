// The index of a file, all of it in memory: 8 bytes a series and 40 bytes a block. On disk it is these
// columns of integers (encoding/integers.ts) one after another, each in chunks of 4,096 numbers:
//
//   by series   its number | its first block
//   by block    bytes of its columns | its first time | its last time less that
//               | rows << 2 | 1 if the next block is the same series', 2 if it is shared
//               | bytes of its directory record, checksum included
//
// Blocks lie one after another from the header on, and their records from the directory's offset on.

import { ByteReader } from '../encoding/byte-reader.ts';
import type { ByteWriter } from '../encoding/byte-writer.ts';
import { corrupt, maxBlockRows } from '../encoding/damage.ts';
import { decodeIntegers, encodeIntegers } from '../encoding/integers.ts';
import type { SlicedWork } from '../sliced-work.ts';
import type { BlockExtent } from './directory.ts';
import { BlockFlag, flagBits, type Footer, headerBytes } from './format.ts';
import { GrowingArray } from './growing-array.ts';

const chunkNumbers = 4096;

const makeUint32 = (length: number) => new Uint32Array(length);
const makeFloat64 = (length: number) => new Float64Array(length);

/** Collects index entries while a file is written. */
export class IndexBuilder {
  readonly #series = new GrowingArray(makeUint32);
  readonly #firstBlocks = new GrowingArray(makeUint32);
  readonly #dataBytes = new GrowingArray(makeUint32);
  readonly #minTimes = new GrowingArray(makeFloat64);
  readonly #spans = new GrowingArray(makeFloat64);
  readonly #rows = new GrowingArray(makeUint32);
  readonly #recordBytes = new GrowingArray(makeUint32);
  minTime = Infinity;
  maxTime = -Infinity;

  get series(): number {
    return this.#series.length;
  }

  get blocks(): number {
    return this.#rows.length;
  }

  /** Adds a series. Returns its position, which is needed to set its first block once that block is written. */
  addSeries(series: number): number {
    this.#series.push(series);
    this.#firstBlocks.push(0);
    return this.#series.length - 1;
  }

  setFirstBlock(place: number, block: number): void {
    this.#firstBlocks.array[place] = block;
  }

  addBlock(dataBytes: number, recordBytes: number, extent: BlockExtent): void {
    this.#dataBytes.push(dataBytes);
    this.#minTimes.push(extent.minTime);
    this.#spans.push(extent.maxTime - extent.minTime);
    this.#rows.push((extent.rows << flagBits) | (extent.shared ? BlockFlag.shared : 0));
    this.#recordBytes.push(recordBytes);
    this.minTime = Math.min(this.minTime, extent.minTime);
    this.maxTime = Math.max(this.maxTime, extent.maxTime);
  }

  /** The block after the last one belongs to the same series. */
  continueBlock(): void {
    this.#rows.array[this.#rows.length - 1]! |= BlockFlag.continued;
  }

  *writing(out: ByteWriter): SlicedWork {
    yield* writingNumbers(out, this.#series);
    yield* writingNumbers(out, this.#firstBlocks);
    yield* writingNumbers(out, this.#dataBytes);
    yield* writingNumbers(out, this.#minTimes);
    yield* writingNumbers(out, this.#spans);
    yield* writingNumbers(out, this.#rows);
    yield* writingNumbers(out, this.#recordBytes);
  }
}

const chunk = new Float64Array(chunkNumbers);

function* writingNumbers(
  out: ByteWriter,
  numbers: GrowingArray<Uint32Array> | GrowingArray<Float64Array>,
): SlicedWork {
  for (let at = 0; at < numbers.length; at += chunkNumbers) {
    const n = Math.min(chunkNumbers, numbers.length - at);
    chunk.set(numbers.array.subarray(at, at + n));
    encodeIntegers(out, chunk, n);
    yield;
  }
}

function readNumbers(from: ByteReader, n: number, take: (value: number, at: number) => void): void {
  for (let at = 0; at < n; at += chunkNumbers) {
    const length = Math.min(chunkNumbers, n - at);
    decodeIntegers(from, chunk, length);
    for (let i = 0; i < length; i++) take(chunk[i]!, at + i);
  }
}

export class FileIndex {
  readonly series: Uint32Array;
  readonly #firstBlocks: Uint32Array;
  /** One more than there are blocks: the last one's end. */
  readonly #dataOffsets: Float64Array;
  readonly #minTimes: Float64Array;
  readonly #maxTimes: Float64Array;
  /** With flags. */
  readonly #rows: Uint32Array;
  readonly #recordBytes: Uint32Array;
  readonly #recordOffsets: Float64Array;

  constructor(bytes: Buffer, footer: Footer) {
    // A chunk takes no less than three bytes: no more memory than that allows.
    const chunks =
      2 * Math.ceil(footer.series / chunkNumbers) + 5 * Math.ceil(footer.blocks / chunkNumbers);
    if (chunks * 3 > bytes.length) corrupt('the index is too short');
    const from = new ByteReader(bytes);
    const { series, blocks } = footer;
    this.series = new Uint32Array(series);
    this.#firstBlocks = new Uint32Array(series);
    this.#dataOffsets = new Float64Array(blocks + 1);
    this.#minTimes = new Float64Array(blocks);
    this.#maxTimes = new Float64Array(blocks);
    this.#rows = new Uint32Array(blocks);
    this.#recordBytes = new Uint32Array(blocks);
    this.#recordOffsets = new Float64Array(blocks);
    this.#read(from, footer);
    this.#check(footer);
  }

  #read(from: ByteReader, footer: Footer): void {
    const { series, blocks } = footer;
    readNumbers(from, series, (v, i) => {
      this.series[i] = v;
    });
    readNumbers(from, series, (v, i) => {
      this.#firstBlocks[i] = v;
    });
    let offset = headerBytes;
    this.#dataOffsets[0] = offset;
    readNumbers(from, blocks, (v, i) => {
      offset += v;
      this.#dataOffsets[i + 1] = offset;
    });
    readNumbers(from, blocks, (v, i) => {
      this.#minTimes[i] = v;
    });
    readNumbers(from, blocks, (v, i) => {
      this.#maxTimes[i] = this.#minTimes[i]! + v;
    });
    readNumbers(from, blocks, (v, i) => {
      this.#rows[i] = v;
    });
    let recordOffset = footer.directoryOffset;
    readNumbers(from, blocks, (v, i) => {
      this.#recordBytes[i] = v;
      this.#recordOffsets[i] = recordOffset;
      recordOffset += v;
    });
    from.finish();
    if (recordOffset !== footer.indexOffset) corrupt('the directory is not as long as its records');
  }

  #check(footer: Footer): void {
    const { series, blocks } = footer;
    if (this.#dataOffsets[blocks] !== footer.directoryOffset) {
      corrupt('the blocks do not end where the directory begins');
    }
    for (let i = 0; i < series; i++) {
      const ascending = i === 0 || this.series[i]! > this.series[i - 1]!;
      if (!ascending || this.#firstBlocks[i]! >= blocks) corrupt('the series are not in order');
    }
    for (let i = 0; i < blocks; i++) {
      const rows = this.rows(i);
      if (rows === 0 || rows > maxBlockRows || (this.isContinued(i) && i + 1 === blocks)) {
        corrupt('a block has an impossible number of rows');
      }
    }
  }

  get blocks(): number {
    return this.#rows.length;
  }

  /** Bytes of memory. */
  get bytes(): number {
    return this.series.length * 8 + this.#rows.length * 40;
  }

  /** -1 when it is not in the file. */
  firstBlock(series: number): number {
    let low = 0;
    let high = this.series.length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const found = this.series[middle]!;
      if (found === series) return this.#firstBlocks[middle]!;
      if (found < series) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** Whether a block of the series touches [from, to]. */
  touches(series: number, from: number, to: number): boolean {
    const first = this.firstBlock(series);
    for (let b = first; b >= 0; b = this.isContinued(b) ? b + 1 : -1) {
      if (this.#minTimes[b]! <= to && this.#maxTimes[b]! >= from) return true;
    }
    return false;
  }

  /** Adds 1 by number for each series of which a block touches [from, to]. */
  countTouched(from: number, to: number, counts: Uint16Array): void {
    const { series } = this;
    const firstBlocks = this.#firstBlocks;
    const touches = this.#touched(from, to);
    for (let i = 0; i < series.length; i++) counts[series[i]!]! += touches[firstBlocks[i]!]!;
  }

  /** By block: 1 if it, or one that it is continued by, touches [from, to]. */
  #touched(from: number, to: number): Uint8Array {
    const touches = new Uint8Array(this.#rows.length);
    for (let b = touches.length - 1; b >= 0; b--) {
      const isTouched = this.#minTimes[b]! <= to && this.#maxTimes[b]! >= from;
      touches[b] = isTouched || (this.isContinued(b) && touches[b + 1] === 1) ? 1 : 0;
    }
    return touches;
  }

  /** Blocks of several series that touch [from, to]. */
  sharedBlocks(from: number, to: number): number[] {
    const found: number[] = [];
    for (let b = 0; b < this.#rows.length; b++) {
      const touches = this.#minTimes[b]! <= to && this.#maxTimes[b]! >= from;
      if (touches && this.isShared(b)) found.push(b);
    }
    return found;
  }

  rows(block: number): number {
    return this.#rows[block]! >>> flagBits;
  }

  isContinued(block: number): boolean {
    return (this.#rows[block]! & BlockFlag.continued) !== 0;
  }

  isShared(block: number): boolean {
    return (this.#rows[block]! & BlockFlag.shared) !== 0;
  }

  minTime(block: number): number {
    return this.#minTimes[block]!;
  }

  maxTime(block: number): number {
    return this.#maxTimes[block]!;
  }

  dataOffset(block: number): number {
    return this.#dataOffsets[block]!;
  }

  recordOffset(block: number): number {
    return this.#recordOffsets[block]!;
  }

  recordBytes(block: number): number {
    return this.#recordBytes[block]!;
  }

  extent(block: number): BlockExtent {
    return {
      rows: this.rows(block),
      minTime: this.minTime(block),
      maxTime: this.maxTime(block),
      shared: this.isShared(block),
    };
  }
}
