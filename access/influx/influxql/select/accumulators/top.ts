// top and bottom: the n best rows of each bucket, in the order of their times.

import type { Column } from '../../../../../universal-row/series/column.ts';
import { compareText } from '../../../../../universal-row/series/series-key.ts';
import { QueryError } from '../../result.ts';
import { ColumnBuilder, compareTimes, has, scalarAt } from '../vector.ts';
import type { Accumulator, AccumulatorOptions, DenseRows, Points, Scalar } from './accumulator.ts';

interface Entry {
  readonly value: number | bigint;
  readonly base: number;
  readonly offset: number;
  readonly aux: readonly (Scalar | undefined)[];
}

const bytesPerEntry = 96;

/** Without tags the best rows of all; with tags the best row of each set of their values competes. */
export class Top implements Accumulator {
  readonly #options: AccumulatorOptions;
  readonly #size: number;
  readonly #sign: 1 | -1;
  /** By slot, the worst first (a heap). */
  readonly #heaps: (Entry[] | undefined)[] = [];
  /** By slot and set of tag values. */
  readonly #bestByTags: (Map<string, Entry> | undefined)[] = [];
  #tags = '';

  /** `sign` is 1 for top, -1 for bottom. */
  constructor(options: AccumulatorOptions, sign: 1 | -1) {
    this.#options = options;
    this.#size = options.parameter ?? 1;
    this.#sign = sign;
  }

  grow(): void {}

  startSeries(tag: (name: string) => string): void {
    this.#tags = this.#options.tags.map(tag).join('\0');
  }

  add(slot: number, rows: DenseRows, from: number, to: number): void {
    if (this.#options.tags.length > 0) return this.#addByTags(slot, rows, from, to);
    const heap = (this.#heaps[slot] ??= []);
    const { column } = rows;
    for (let i = from; i < to; i++) {
      const value = scalarAt(column, i) as number | bigint;
      if (heap.length === this.#size) {
        const worst = heap[0]!;
        // The common case without making an entry.
        if (this.#sign === 1 ? value < worst.value : value > worst.value) continue;
      }
      this.#offer(heap, this.#entry(rows, i, value));
    }
  }

  addSummary(): void {
    throw new QueryError('a summary where rows are needed');
  }

  finish(): void {
    this.#bestByTags.forEach((best, slot) => {
      if (best === undefined) return;
      const heap: Entry[] = [];
      this.#heaps[slot] = heap;
      const keys = [...best.keys()].sort(compareText).reverse();
      for (const key of keys) this.#offer(heap, best.get(key)!);
    });
  }

  points(slots: Int32Array): Points {
    const { type, aux } = this.#options;
    const builder = new ColumnBuilder(type);
    const auxBuilders = aux.map((each) => new ColumnBuilder(each.type));
    const places: number[] = [];
    const bases: number[] = [];
    const offsets: number[] = [];
    slots.forEach((slot, place) => {
      const entries = [...(this.#heaps[slot] ?? [])];
      entries.sort((a, b) => -this.#order(a, b));
      entries.sort((a, b) => compareTimes(a.base, a.offset, b.base, b.offset));
      for (const entry of entries) {
        places.push(place);
        bases.push(entry.base);
        offsets.push(entry.offset);
        builder.push(entry.value);
        auxBuilders.forEach((auxBuilder, i) => {
          const value = entry.aux[i];
          if (value === undefined) auxBuilder.pushNull();
          else auxBuilder.push(value);
        });
      }
    });
    return {
      count: places.length,
      places: Int32Array.from(places),
      times: { bases: Float64Array.from(bases), offsets: Float64Array.from(offsets) },
      column: builder.take(),
      aux: auxBuilders.map((each): Column | undefined => each.take()),
    };
  }

  #addByTags(slot: number, rows: DenseRows, from: number, to: number): void {
    const best = (this.#bestByTags[slot] ??= new Map<string, Entry>());
    let current = best.get(this.#tags);
    for (let i = from; i < to; i++) {
      const value = scalarAt(rows.column, i) as number | bigint;
      if (
        current !== undefined &&
        (this.#sign === 1 ? value < current.value : value > current.value)
      ) {
        continue;
      }
      const entry = this.#entry(rows, i, value);
      if (current !== undefined && this.#order(current, entry) >= 0) continue;
      current = entry;
      best.set(this.#tags, entry);
    }
  }

  #entry(rows: DenseRows, row: number, value: number | bigint): Entry {
    const from = rows.rowIds === undefined ? row : rows.rowIds[row]!;
    const aux = this.#options.aux.map(({ index }) => {
      const column = rows.chunk.columns[index];
      return has(column, from) ? scalarAt(column, from) : undefined;
    });
    return { value, base: rows.base, offset: rows.times[row]!, aux };
  }

  /** Negative when a is worse: a smaller value (for bottom a larger one), or the same one later. */
  #order(a: Entry, b: Entry): number {
    if (a.value !== b.value) return a.value < b.value ? -this.#sign : this.#sign;
    return -compareTimes(a.base, a.offset, b.base, b.offset);
  }

  #offer(heap: Entry[], entry: Entry): void {
    if (heap.length < this.#size) {
      this.#options.memory.reserve(bytesPerEntry);
      let at = heap.push(entry) - 1;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        if (this.#order(heap[at]!, heap[parent]!) >= 0) return;
        [heap[at], heap[parent]] = [heap[parent]!, heap[at]!];
        at = parent;
      }
      return;
    }
    if (this.#order(heap[0]!, entry) >= 0) return;
    heap[0] = entry;
    for (let at = 0; ; ) {
      let worst = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && this.#order(heap[child]!, heap[worst]!) < 0) worst = child;
      }
      if (worst === at) return;
      [heap[at], heap[worst]] = [heap[worst]!, heap[at]!];
      at = worst;
    }
  }
}
