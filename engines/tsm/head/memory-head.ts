// The newest points of a shard, in memory: for each measurement a table of columns in the order the
// points came, to which a batch is appended column by column.
//
// A read sees the head as it was at a mark: rows appended and deletions made later mean nothing to it.
// Nothing but `release` ever removes a row.

import type { Column } from '../../../universal-row/series/column.ts';
import type { HeadTexts, Rows } from '../parts.ts';
import type { HeadMark, ShardHead } from '../shard/shard-types.ts';
import { HeadTable } from './head-table.ts';
import { Form, PackedColumn, packColumn } from './packed-column.ts';
import { type PagePool, pageRows, pageShift } from './page-pool.ts';
import { type Deletion, RowReader } from './row-reader.ts';
import { SeriesState } from './series-state.ts';
import { TextArena } from './text-arena.ts';

const offsetMask = pageRows - 1;
/** Columns that reading a row touches besides its fields: its time and the row before it. */
const ownColumns = 2;

class Mark {
  /** By ordinal of the table; later tables have none. */
  readonly tableRows: Uint32Array;
  readonly deletions: number;

  constructor(tableRows: Uint32Array, deletions: number) {
    this.tableRows = tableRows;
    this.deletions = deletions;
  }
}

export class MemoryHead implements ShardHead {
  rows = 0;
  longestRead = 0;
  readonly #pool: PagePool;
  readonly #tables: HeadTable[] = [];
  readonly #tableOf = new Map<number, HeadTable>();
  readonly #series = new SeriesState();
  readonly #texts = new TextArena();
  readonly #deletions = new Map<number, Deletion[]>();
  #deletionCount = 0;
  #tableBytes = 0;
  readonly #reader = new RowReader(this.#texts);

  constructor(pool: PagePool) {
    this.#pool = pool;
  }

  get points(): number {
    return this.rows;
  }

  get bytes(): number {
    return this.#tableBytes + this.#series.bytes + this.#texts.bytes;
  }

  append(
    measurement: number,
    rows: number,
    series: Uint32Array,
    times: Float64Array,
    columns: readonly (Column | undefined)[],
    texts: HeadTexts,
  ): void {
    if (rows === 0) return;
    const table = this.#table(measurement);
    this.#tableBytes -= table.bytes;
    for (const [number, column] of columns.entries()) {
      if (column === undefined) continue;
      const packed = packColumn(column, rows);
      if (packed.count === 0) continue;
      table.appendColumn(
        number,
        packed.type === 'string' ? this.#keepTexts(packed, texts) : packed,
      );
    }
    this.#chain(table, rows, series, times);
    this.#tableBytes += table.bytes;
    this.rows += rows;
  }

  #table(measurement: number): HeadTable {
    let table = this.#tableOf.get(measurement);
    if (table === undefined) {
      table = new HeadTable(measurement, this.#tables.length, this.#pool);
      this.#tables.push(table);
      this.#tableOf.set(measurement, table);
    }
    return table;
  }

  /** Adds the rows themselves to the table and to their series. */
  #chain(table: HeadTable, rows: number, series: Uint32Array, times: Float64Array): void {
    table.reserve(rows);
    let greatest = 0;
    for (let i = 0; i < rows; i++) if (series[i]! > greatest) greatest = series[i]!;
    const state = this.#series;
    state.reserve(greatest);
    const { last, minTime, maxTime, unordered, rows: rowsOf } = state;
    let row = table.rows;
    let longest = 0;
    for (let i = 0; i < rows; ) {
      const timePage = table.times[row >>> pageShift]!;
      const previousPage = table.previous[row >>> pageShift]!;
      const first = row & offsetMask;
      const end = Math.min(rows, i + pageRows - first);
      for (let offset = first; i < end; i++, offset++) {
        const number = series[i]!;
        const time = times[i]!;
        const before = last[number]!;
        timePage[offset] = time;
        previousPage[offset] = before;
        last[number] = ++row;
        const count = ++rowsOf[number]!;
        if (count > longest) longest = count;
        if (before === 0) {
          state.table[number] = table.ordinal;
          minTime[number] = time;
          maxTime[number] = time;
        } else if (time > maxTime[number]!) {
          maxTime[number] = time;
        } else {
          unordered[number] = 1;
          if (time < minTime[number]!) minTime[number] = time;
        }
      }
    }
    table.rows = row;
    this.longestRead = Math.max(this.longestRead, longest * (table.fields.length + ownColumns));
  }

  /** The column with places in the arena for values. */
  #keepTexts(column: PackedColumn, texts: HeadTexts): PackedColumn {
    const { count, values } = column;
    const places = new Float64Array(count);
    let greatest = 0;
    for (let k = 0; k < count; k++) {
      const n = values[k] as number;
      const start = n === 0 ? 0 : texts.textEnds[n - 1]!;
      const place = this.#texts.add(texts.text, start, texts.textEnds[n]!);
      places[k] = place;
      if (place > greatest) greatest = place;
    }
    const fits = greatest <= 0x7fff_ffff;
    return new PackedColumn(
      'string',
      fits ? Form.i32 : Form.f64,
      fits ? Int32Array.from(places) : places,
      count,
      column.rows,
      column.rowCount,
    );
  }

  series(): Uint32Array {
    const { last } = this.#series;
    const found = new Uint32Array(last.length);
    let count = 0;
    for (let series = 0; series < last.length; series++) {
      if (last[series] !== 0) found[count++] = series;
    }
    return found.slice(0, count);
  }

  has(series: number): boolean {
    return this.#series.has(series);
  }

  minTimeOf(series: number): number {
    return this.has(series) ? this.#series.minTime[series]! : Infinity;
  }

  maxTimeOf(series: number): number {
    return this.has(series) ? this.#series.maxTime[series]! : -Infinity;
  }

  mark(): HeadMark {
    const tableRows = Uint32Array.from(this.#tables, (table) => table.rows);
    return new Mark(tableRows, this.#deletionCount);
  }

  delete(series: number, from: number, to: number): void {
    if (!this.has(series)) return;
    const table = this.#tables[this.#series.table[series]!]!;
    let deletions = this.#deletions.get(series);
    if (deletions === undefined) this.#deletions.set(series, (deletions = []));
    deletions.push({ before: table.rows, from, to, number: this.#deletionCount++ });
  }

  /** The next call overwrites the rows returned. */
  read(series: number, fields: readonly number[], from: number, to: number, mark?: HeadMark): Rows {
    if (!this.has(series)) return this.#reader.nothing(fields.length);
    const table = this.#tables[this.#series.table[series]!]!;
    let limit = table.rows;
    let deletions = this.#deletions.get(series);
    if (mark instanceof Mark) {
      limit = mark.tableRows[table.ordinal] ?? 0;
      deletions = deletions?.filter(({ number }) => number < mark.deletions);
    }
    const isOrdered = this.#series.unordered[series] === 0;
    const newest = this.#series.last[series]!;
    return this.#reader.read(table, newest, limit, isOrdered, deletions, fields, from, to);
  }

  /** Gives the memory back. Nothing may be read from now on. */
  release(): void {
    for (const table of this.#tables) table.release();
    this.#tables.length = 0;
    this.#tableOf.clear();
    this.#series.last.fill(0);
    this.rows = 0;
    this.#tableBytes = 0;
  }
}
