// Rows of several inputs as one stream in the order of time. Rows of the same time come in the order of
// the inputs.

import type { Column } from '../../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import type { Ref } from '../plan/plan.ts';
import { type InputStream, isSummary } from '../sources/input.ts';
import {
  type Chunk,
  chunkRows,
  ColumnBuilder,
  compareTimes,
  noNumbers,
  pending,
  repeated,
  type Stream,
} from '../vector.ts';

/** Beyond this many seconds from the base, keys of the heap are made anew. */
const rebaseAfter = 40 * 86_400;
/** Inputs looked at between two looks at the clock. */
const loadsPerStep = 32;
/** Places for values in a piece: there is memory for all of them at once. */
const pieceValues = 1024 * 1024;
const fewestRows = 16;

export function merge(
  inputs: readonly InputStream[],
  refs: readonly Ref[],
  descending: boolean,
): Stream {
  return inputs.length === 1 ? new OnlyStream(inputs[0]!) : new Merge(inputs, refs, descending);
}

class OnlyStream implements Stream {
  readonly #input: InputStream;

  constructor(input: InputStream) {
    this.#input = input;
  }

  next(): Chunk | typeof pending | undefined {
    return rowsOf(this.#input.next());
  }
}

/** Summaries are returned only on request. */
function rowsOf(item: ReturnType<InputStream['next']>): Chunk | typeof pending | undefined {
  if (item === undefined || item === pending) return item;
  return isSummary(item) ? pending : item;
}

class Merge implements Stream {
  readonly #inputs: readonly InputStream[];
  readonly #sign: number;
  /** By input: its last chunk, and the next row in it. */
  readonly #chunks: (Chunk | undefined)[];
  readonly #rows: Int32Array;
  /** By input: time of its next row, in nanoseconds after `base`, negative in a descending merge. */
  readonly #keys: Float64Array;
  /** Inputs, the one with the earliest row first. */
  readonly #heap: Int32Array;
  #size = 0;
  /** Inputs that have to be asked before anything can continue. */
  #waiting: number[];
  #base = NaN;

  // Rows picked, and not yet copied: valid until an input is asked again.
  readonly #picked: Int32Array;
  readonly #pickedRows: Int32Array;
  #pickedCount = 0;

  #outBase = 0;
  #outCount = 0;
  #outTimes: Float64Array;
  /** Rows of a piece: fewer where there are many columns. */
  readonly #pieceRows: number;
  readonly #columns: readonly MergedColumn[];

  constructor(inputs: readonly InputStream[], refs: readonly Ref[], descending: boolean) {
    this.#inputs = inputs;
    this.#sign = descending ? -1 : 1;
    const types = refs.map(({ type }) => (type === 'tag' || type === undefined ? 'string' : type));
    this.#chunks = inputs.map(() => undefined);
    this.#rows = new Int32Array(inputs.length);
    this.#keys = new Float64Array(inputs.length);
    this.#heap = new Int32Array(inputs.length);
    this.#waiting = inputs.map((_, i) => i).reverse();
    const most = Math.floor(pieceValues / Math.max(1, types.length));
    this.#pieceRows = Math.max(fewestRows, Math.min(chunkRows, most));
    this.#picked = new Int32Array(this.#pieceRows);
    this.#pickedRows = new Int32Array(this.#pieceRows);
    this.#outTimes = new Float64Array(this.#pieceRows);
    this.#columns = types.map((type) => new MergedColumn(type, this.#pieceRows));
  }

  next(): Chunk | typeof pending | undefined {
    for (let loads = 0; this.#waiting.length > 0; loads++) {
      if (loads === loadsPerStep) return pending;
      this.#load(this.#waiting[this.#waiting.length - 1]!);
    }
    while (this.#size > 0 && this.#waiting.length === 0) {
      if (Math.abs(this.#keys[this.#heap[0]!]!) > rebaseAfter * 1e9) this.#rebase();
      if (this.#outCount + this.#pickedCount === this.#pieceRows || !this.#fits())
        return this.#emit();
      this.#pick();
    }
    if (this.#waiting.length > 0) {
      this.#copy();
      return pending;
    }
    return this.#outCount + this.#pickedCount > 0 ? this.#emit() : undefined;
  }

  /** Asks an input for more. */
  #load(input: number): void {
    const chunk = rowsOf(this.#inputs[input]!.next());
    if (chunk === pending || chunk?.count === 0) return;
    this.#waiting.pop();
    this.#chunks[input] = chunk;
    if (chunk === undefined) return;
    this.#rows[input] = 0;
    if (Number.isNaN(this.#base)) this.#base = chunk.base;
    this.#setKey(input);
    this.#heap[this.#size] = input;
    this.#up(this.#size++);
  }

  #setKey(input: number): void {
    const chunk = this.#chunks[input]!;
    const time = chunk.times[this.#rows[input]!]!;
    this.#keys[input] = this.#sign * compareTimes(chunk.base, time, this.#base, 0);
  }

  /** Whether the next row's time can be told from the base of the piece that is being made. */
  #fits(): boolean {
    const input = this.#heap[0]!;
    const chunk = this.#chunks[input]!;
    const time = chunk.times[this.#rows[input]!]!;
    if (this.#outCount + this.#pickedCount === 0) {
      this.#outBase = chunk.base + Math.floor(time / 1e9);
      return true;
    }
    const offset = compareTimes(chunk.base, time, this.#outBase, 0);
    return Math.abs(offset) <= Number.MAX_SAFE_INTEGER;
  }

  #pick(): void {
    const input = this.#heap[0]!;
    const chunk = this.#chunks[input]!;
    const row = this.#rows[input]!;
    const at = this.#pickedCount++;
    this.#picked[at] = input;
    this.#pickedRows[at] = row;
    const offset = compareTimes(chunk.base, chunk.times[row]!, this.#outBase, 0);
    this.#outTimes[this.#outCount + at] = offset;
    if (row + 1 < chunk.count) {
      this.#rows[input] = row + 1;
      this.#setKey(input);
      this.#down(0);
    } else {
      this.#heap[0] = this.#heap[--this.#size]!;
      this.#down(0);
      this.#waiting.push(input);
    }
  }

  #rebase(): void {
    const top = this.#heap[0]!;
    const chunk = this.#chunks[top]!;
    this.#base = chunk.base + Math.floor(chunk.times[this.#rows[top]!]! / 1e9);
    for (let i = 0; i < this.#size; i++) this.#setKey(this.#heap[i]!);
    for (let i = (this.#size >> 1) - 1; i >= 0; i--) this.#down(i);
  }

  #copy(): void {
    const count = this.#pickedCount;
    const columns = this.#columns;
    for (let i = 0; i < count; i++) {
      const from = this.#chunks[this.#picked[i]!]!.columns;
      const row = this.#pickedRows[i]!;
      for (let c = 0; c < columns.length; c++) columns[c]!.set(this.#outCount + i, from[c], row);
    }
    this.#outCount += count;
    this.#pickedCount = 0;
  }

  #emit(): Chunk {
    this.#copy();
    const chunk: Chunk = {
      base: this.#outBase,
      times: this.#outTimes,
      count: this.#outCount,
      columns: this.#columns.map((column) => column.take(this.#outCount)),
    };
    this.#outTimes = new Float64Array(this.#pieceRows);
    this.#outCount = 0;
    return chunk;
  }

  #isBefore(a: number, b: number): boolean {
    const difference = this.#keys[a]! - this.#keys[b]!;
    return difference < 0 || (difference === 0 && a < b);
  }

  #up(from: number): void {
    const heap = this.#heap;
    const input = heap[from]!;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(input, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = input;
  }

  #down(from: number): void {
    const heap = this.#heap;
    const size = this.#size;
    if (size === 0) return;
    const input = heap[from]!;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && this.#isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!this.#isBefore(heap[child]!, input)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = input;
  }
}

/** A column of the piece that is being made. */
class MergedColumn {
  readonly #type: FieldType;
  readonly #rows: number;
  #numbers = noNumbers;
  #texts: string[] | undefined;
  #present = new Uint8Array(0);
  #values = 0;
  /** Once there are integers that are no doubles, all goes here. */
  #wide: ColumnBuilder | undefined;

  /** For pieces of so many rows. */
  constructor(type: FieldType, rows: number) {
    this.#type = type;
    this.#rows = rows;
    this.#start();
  }

  set(row: number, from: Column | undefined, fromRow: number): void {
    if (this.#wide !== undefined) {
      this.#wide.pushFrom(from, fromRow);
      return;
    }
    if (from === undefined || (from.present !== undefined && from.present[fromRow] === 0)) return;
    if (from.wide !== undefined) {
      this.#wide = this.#widened(row);
      this.#wide.pushFrom(from, fromRow);
      return;
    }
    if (this.#texts === undefined) this.#numbers[row] = from.numbers[fromRow]!;
    else this.#texts[row] = from.texts![fromRow]!;
    this.#present[row] = 1;
    this.#values++;
  }

  /**
   * Column of the values set in the last `count` rows; undefined if there are none. The builder
   * starts over.
   */
  take(count: number): Column | undefined {
    const column = this.#wide === undefined ? this.#narrow(count) : this.#wide.take();
    this.#start();
    return column;
  }

  #narrow(count: number): Column | undefined {
    if (this.#values === 0) return undefined;
    return {
      type: this.#type,
      numbers: this.#numbers,
      wide: undefined,
      texts: this.#texts,
      present: this.#values === count ? undefined : this.#present,
    };
  }

  #start(): void {
    this.#wide = undefined;
    if (this.#type === 'string') this.#texts = repeated('', this.#rows);
    else this.#numbers = new Float64Array(this.#rows);
    this.#present = new Uint8Array(this.#rows);
    this.#values = 0;
  }

  #widened(rows: number): ColumnBuilder {
    const builder = new ColumnBuilder(this.#type);
    const before: Column = {
      type: this.#type,
      numbers: this.#numbers,
      wide: undefined,
      texts: this.#texts,
      present: this.#present,
    };
    for (let row = 0; row < rows; row++) builder.pushFrom(before, row);
    return builder;
  }
}
