// Several calls of one group side by side: rows of the same time become one.

import type { Column } from '../../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import {
  type Chunk,
  chunkRows,
  ColumnBuilder,
  compareTimes,
  pending,
  type Stream,
} from '../vector.ts';

/** Every stream has one column; undefined for a call of a field that no source has. */
export function combine(
  streams: readonly (Stream | undefined)[],
  types: readonly FieldType[],
  descending: boolean,
): Stream {
  if (streams.length === 1 && streams[0] !== undefined) return streams[0];
  return new Combine(streams, types, descending);
}

class Combine implements Stream {
  readonly #streams: (Stream | undefined)[];
  readonly #chunks: (Chunk | undefined)[];
  readonly #rows: Int32Array;
  readonly #builders: readonly ColumnBuilder[];
  readonly #sign: number;

  constructor(
    streams: readonly (Stream | undefined)[],
    types: readonly FieldType[],
    descending: boolean,
  ) {
    this.#streams = [...streams];
    this.#chunks = streams.map(() => undefined);
    this.#rows = new Int32Array(streams.length);
    this.#builders = types.map((type) => new ColumnBuilder(type));
    this.#sign = descending ? -1 : 1;
  }

  next(): Chunk | typeof pending | undefined {
    let isDone = true;
    for (let i = 0; i < this.#streams.length; i++) {
      if (!this.#load(i)) return pending;
      if (this.#chunks[i] !== undefined) isDone = false;
    }
    if (isDone) return undefined;
    return this.#together() ?? this.#rowByRow();
  }

  #load(i: number): boolean {
    const stream = this.#streams[i];
    if (stream === undefined || this.#chunks[i] !== undefined) return true;
    const chunk = stream.next();
    if (chunk === pending) return false;
    if (chunk === undefined) this.#streams[i] = undefined;
    else {
      this.#chunks[i] = chunk;
      this.#rows[i] = 0;
    }
    return true;
  }

  /** Chunks of the same times, as aggregates by bucket have, need no copying. */
  #together(): Chunk | undefined {
    const first = this.#chunks.find((chunk) => chunk !== undefined)!;
    for (let i = 0; i < this.#chunks.length; i++) {
      const chunk = this.#chunks[i];
      if (chunk === undefined) continue;
      if (this.#rows[i] !== 0 || chunk.count !== first.count) return undefined;
      if (chunk === first) continue;
      for (let row = 0; row < first.count; row++) {
        const mine = first.times[row]!;
        if (compareTimes(chunk.base, chunk.times[row]!, first.base, mine) !== 0) return undefined;
      }
    }
    const columns = this.#chunks.map((chunk): Column | undefined => chunk?.columns[0]);
    this.#chunks.fill(undefined);
    return { base: first.base, times: first.times, count: first.count, columns };
  }

  #rowByRow(): Chunk {
    const times = new Float64Array(chunkRows);
    let outBase = 0;
    let count = 0;
    while (count < chunkRows) {
      const earliest = this.#earliest();
      if (earliest === undefined) break;
      const chunk = this.#chunks[earliest]!;
      const offset = chunk.times[this.#rows[earliest]!]!;
      if (count === 0) outBase = chunk.base + Math.floor(offset / 1e9);
      const time = compareTimes(chunk.base, offset, outBase, 0);
      if (Math.abs(time) > Number.MAX_SAFE_INTEGER) break;
      times[count++] = time;
      let mustLoad = false;
      for (let i = 0; i < this.#chunks.length; i++) {
        mustLoad = this.#take(i, chunk.base, offset) || mustLoad;
      }
      if (mustLoad) break;
    }
    const columns = this.#builders.map((builder) => builder.take());
    return { base: outBase, times, count, columns };
  }

  #earliest(): number | undefined {
    let best: number | undefined;
    for (let i = 0; i < this.#chunks.length; i++) {
      const chunk = this.#chunks[i];
      if (chunk === undefined) continue;
      if (best === undefined) {
        best = i;
        continue;
      }
      const other = this.#chunks[best]!;
      const order = compareTimes(
        chunk.base,
        chunk.times[this.#rows[i]!]!,
        other.base,
        other.times[this.#rows[best]!]!,
      );
      if (order * this.#sign < 0) best = i;
    }
    return best;
  }

  /** Adds the stream's value at the time, if it has one; true when its chunk is used up. */
  #take(i: number, base: number, offset: number): boolean {
    const chunk = this.#chunks[i];
    const builder = this.#builders[i]!;
    const row = this.#rows[i]!;
    if (chunk === undefined || compareTimes(chunk.base, chunk.times[row]!, base, offset) !== 0) {
      builder.pushNull();
      return false;
    }
    builder.pushFrom(chunk.columns[0], row);
    this.#rows[i] = row + 1;
    if (row + 1 < chunk.count) return false;
    this.#chunks[i] = undefined;
    return true;
  }
}
