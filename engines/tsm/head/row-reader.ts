// Reads one series out of a table of the head: walks its rows, sorts them by time, merges those of
// one time, and collects the columns.

import type { Column } from '../../../universal-row/series/column.ts';
import type { Rows } from '../parts.ts';
import { sortByTime } from './sort-by-time.ts';
import type { HeadField, HeadTable } from './head-table.ts';
import { pageRows, pageShift } from './page-pool.ts';
import type { TextArena } from './text-arena.ts';

/** Rows of a series before this one, with times in the range, are deleted. */
export interface Deletion {
  readonly before: number;
  readonly from: number;
  readonly to: number;
  /** How many deletions of the head came before this one. */
  readonly number: number;
}

const offsetMask = pageRows - 1;
/** Memory for more rows than this is not kept for the next read. */
const keptRows = 32 * 1024;
const noNumbers = new Float64Array(0);

/** Memory for one column. */
interface Space {
  numbers: Float64Array;
  has: Uint8Array;
}

export class RowReader {
  readonly #texts: TextArena;
  #rows = new Uint32Array(64);
  #times = new Float64Array(64);
  /** Where the rows of each time end; in use when some have the same. */
  #ends = new Uint32Array(0);
  readonly #spaces: Space[] = [];

  constructor(texts: TextArena) {
    this.#texts = texts;
  }

  nothing(fields: number): Rows {
    return { count: 0, times: this.#times, columns: Array(fields).fill(undefined) };
  }

  /** `newest`, and the links from it, are rows plus one; rows from `limit` on are not read. */
  read(
    table: HeadTable,
    newest: number,
    limit: number,
    isOrdered: boolean,
    deletions: readonly Deletion[] | undefined,
    fields: readonly number[],
    from: number,
    to: number,
  ): Rows {
    const count = this.#collect(table, newest, limit, isOrdered, deletions, from, to);
    if (count === 0) return this.nothing(fields.length);
    this.#reserveTimes(count);
    const rows = this.#rows;
    const times = this.#times;
    for (let i = 0; i < count; i++) times[i] = table.timeOf(rows[i]!);
    if (!isOrdered) sortByTime(rows, times, count);
    const distinct = isOrdered ? count : this.#mergeTimes(count);
    const columns = fields.map((number, i) => {
      const field = table.fields[number];
      return field && this.#column(field, count, distinct, this.#space(i, count));
    });
    const result = { count: distinct, times, columns };
    if (count > keptRows) this.#forget();
    return result;
  }

  /** Rows in the range, in the order they came. */
  #collect(
    table: HeadTable,
    newest: number,
    limit: number,
    isOrdered: boolean,
    deletions: readonly Deletion[] | undefined,
    from: number,
    to: number,
  ): number {
    let rows = this.#rows;
    let count = 0;
    for (let next = newest; next !== 0; ) {
      const row = next - 1;
      const page = row >>> pageShift;
      const offset = row & offsetMask;
      const time = table.times[page]![offset]!;
      next = table.previous[page]![offset]!;
      if (row >= limit || time > to) continue;
      if (time < from) {
        if (isOrdered) break;
        continue;
      }
      if (deletions !== undefined && isDeleted(deletions, row, time)) continue;
      if (count === rows.length) {
        const longer = new Uint32Array(count * 2);
        longer.set(rows);
        this.#rows = longer;
        rows = longer;
      }
      rows[count++] = row;
    }
    rows.subarray(0, count).reverse();
    return count;
  }

  /** Leaves each time once in `times`, and in `ends` where its rows end. Returns how many there are. */
  #mergeTimes(count: number): number {
    if (this.#ends.length < count) this.#ends = new Uint32Array(this.#times.length);
    const times = this.#times;
    const ends = this.#ends;
    let distinct = 0;
    for (let i = 0; i < count; i++) {
      if (distinct > 0 && times[i] === times[distinct - 1]) distinct--;
      times[distinct] = times[i]!;
      ends[distinct++] = i + 1;
    }
    return distinct;
  }

  #column(field: HeadField, count: number, distinct: number, space: Space): Column | undefined {
    const { type, pages } = field;
    const { numbers, has } = space;
    let wide: BigInt64Array | undefined;
    let found = pages.gather(this.#rows, count, numbers, has);
    if (found < 0) {
      wide = new BigInt64Array(count);
      found = pages.gatherWide(this.#rows, count, wide, has);
    }
    if (found === 0) return undefined;
    if (distinct < count) found = this.#mergeValues(distinct, wide ?? numbers, has);
    return {
      type,
      numbers: wide === undefined && type !== 'string' ? numbers : noNumbers,
      wide: wide !== undefined && type === 'unsigned' ? new BigUint64Array(wide.buffer) : wide,
      texts: type === 'string' ? this.#decode(numbers, has, distinct) : undefined,
      present: found === distinct ? undefined : has,
    };
  }

  /** Keeps, for each time, the last row that has a value. Returns how many times have one. */
  #mergeValues(distinct: number, values: Float64Array | BigInt64Array, has: Uint8Array): number {
    const ends = this.#ends;
    let found = 0;
    let start = 0;
    for (let i = 0; i < distinct; i++) {
      const end = ends[i]!;
      let at = end - 1;
      while (at > start && has[at] === 0) at--;
      const there = has[at]!;
      if (there === 1) values[i] = values[at]!;
      has[i] = there;
      found += there;
      start = end;
    }
    return found;
  }

  #decode(places: Float64Array, has: Uint8Array, count: number): string[] {
    const texts: string[] = [];
    let place = -1;
    let text = '';
    for (let i = 0; i < count; i++) {
      if (has[i] === 1 && places[i] !== place) {
        place = places[i]!;
        text = this.#texts.text(place);
      }
      texts.push(has[i] === 1 ? text : '');
    }
    return texts;
  }

  #space(index: number, count: number): Space {
    let space = this.#spaces[index];
    if (space === undefined || space.numbers.length < count) {
      const length = roundedUp(count);
      space = { numbers: new Float64Array(length), has: new Uint8Array(length) };
      this.#spaces[index] = space;
    }
    return space;
  }

  #reserveTimes(count: number): void {
    if (this.#times.length < count) this.#times = new Float64Array(roundedUp(count));
  }

  /** The receiver keeps the arrays it was given; no array that large is kept here. */
  #forget(): void {
    this.#rows = new Uint32Array(64);
    this.#times = new Float64Array(64);
    this.#ends = new Uint32Array(0);
    this.#spaces.length = 0;
  }
}

function isDeleted(deletions: readonly Deletion[], row: number, time: number): boolean {
  return deletions.some(({ before, from, to }) => row < before && time >= from && time <= to);
}

function roundedUp(count: number): number {
  let length = 64;
  while (length < count) length *= 2;
  return length;
}
