// The directory's record of a block:
//
//   runs                 a shared block only: series uvarint | (gap uvarint | rows uvarint)* ; the gap is
//                        from the series before, the first one's from 0
//   bytes of the times   uvarint, as all bytes without the checksum behind them
//   columns              uvarint
//   for each column      field gap uvarint: less the one before, less 1; the first one's is its number
//                        | kind u8: type, 8 if some row lacks it, 16 and 32 if the first, the last row does
//                        | bytes uvarint
//                        and in a block that is not shared
//                        | bytes of the rest uvarint
//                        | rows with a value uvarint, if some lack it
//                        | nanoseconds from the block's first time uvarint, if 16
//                        | nanoseconds to the block's last time uvarint, if 32
//                        | summary (summary.ts)

import { fieldTypeCodes, fieldTypes } from '../../../universal-row/series/field-type.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { ColumnSummary } from '../../../universal-row/series/column.ts';
import { ByteReader } from '../encoding/byte-reader.ts';
import { ByteWriter } from '../encoding/byte-writer.ts';
import { corrupt } from '../encoding/damage.ts';
import { crcBytes } from './format.ts';
import { readSummary, writeSummary } from './summary.ts';

const typeMask = 7;
const someLack = 8;
const firstLacks = 16;
const lastLacks = 32;

/** Series of the rows in a shared block. */
export interface Runs {
  /** Ascending. */
  readonly series: Uint32Array;
  /** Behind the last row of each. */
  readonly ends: Uint32Array;
}

export interface BlockExtent {
  readonly rows: number;
  readonly minTime: number;
  readonly maxTime: number;
  readonly shared: boolean;
}

/** Writes records column by column. */
export class RecordWriter {
  readonly #columns = new ByteWriter(1024);
  readonly #summary = new ByteWriter(256);
  #count = 0;
  #nextField = 0;

  begin(): void {
    this.#columns.clear();
    this.#count = 0;
    this.#nextField = 0;
  }

  /** Fields ascending. Without a summary in a shared block. */
  column(
    field: number,
    type: FieldType,
    bytes: number,
    lacking: boolean,
    summary: ColumnSummary | undefined,
    extent: BlockExtent,
  ): void {
    const out = this.#columns;
    const first = summary !== undefined && summary.firstTime !== extent.minTime;
    const last = summary !== undefined && summary.lastTime !== extent.maxTime;
    out.uvarint(field - this.#nextField);
    const lacks = (lacking ? someLack : 0) | (first ? firstLacks : 0) | (last ? lastLacks : 0);
    out.u8(fieldTypeCodes[type] | lacks);
    out.uvarint(bytes);
    this.#count++;
    this.#nextField = field + 1;
    if (summary === undefined) return;
    const rest = this.#summary;
    rest.clear();
    if (lacking) rest.uvarint(summary.count);
    if (first) rest.uvarint(summary.firstTime - extent.minTime);
    if (last) rest.uvarint(extent.maxTime - summary.lastTime);
    writeSummary(rest, summary);
    out.uvarint(rest.length);
    out.bytes(rest.view());
  }

  finish(out: ByteWriter, timesBytes: number, runs: Runs | undefined): void {
    if (runs !== undefined) writeRuns(out, runs);
    out.uvarint(timesBytes);
    out.uvarint(this.#count);
    out.bytes(this.#columns.view());
  }
}

function writeRuns(out: ByteWriter, runs: Runs): void {
  const { series, ends } = runs;
  out.uvarint(series.length);
  for (let i = 0; i < series.length; i++) {
    out.uvarint(i === 0 ? series[i]! : series[i]! - series[i - 1]!);
    out.uvarint(i === 0 ? ends[i]! : ends[i]! - ends[i - 1]!);
  }
}

// Fields stored per column.
const cell = { field: 0, kind: 1, offset: 2, length: 3, restAt: 4, restEnd: 5 } as const;
const cells = 6;

/** A record as it was read. Columns are numbered from 0 in the order of their fields. */
export class BlockRecord {
  readonly timesBytes: number;
  readonly runs: Runs | undefined;
  readonly columns: number;
  readonly #extent: BlockExtent;
  readonly #bytes: Buffer;
  /** `cells` numbers a column: in one array, as records come and go. */
  readonly #cells: number[] = [];

  /** The bytes are kept for the summaries. */
  constructor(bytes: Buffer, start: number, end: number, extent: BlockExtent) {
    this.#bytes = bytes;
    this.#extent = extent;
    const from = new ByteReader(bytes, start, end);
    this.runs = extent.shared ? readRuns(from, extent.rows) : undefined;
    this.timesBytes = from.uvarint();
    this.columns = from.uvarint();
    let offset = this.timesBytes + crcBytes;
    let field = 0;
    for (let i = 0; i < this.columns; i++) {
      field += from.uvarint();
      const kind = from.u8();
      const length = from.uvarint();
      const rest = extent.shared ? 0 : from.uvarint();
      const restAt = from.skip(rest);
      if (fieldTypes[kind & typeMask] === undefined) corrupt('a field has an unknown type');
      this.#cells.push(field, kind, offset, length, restAt, restAt + rest);
      offset += length + crcBytes;
      field++;
    }
    from.finish();
  }

  /** The field's column, or -1. */
  find(field: number): number {
    // Mostly a block has all fields.
    if (this.#cells[field * cells] === field) return field;
    for (let i = 0; i < this.columns; i++) if (this.#cells[i * cells] === field) return i;
    return -1;
  }

  type(column: number): FieldType {
    return fieldTypes[this.#cell(column, cell.kind) & typeMask]!;
  }

  /** Bytes from the beginning of the block. */
  offset(column: number): number {
    return this.#cell(column, cell.offset);
  }

  length(column: number): number {
    return this.#cell(column, cell.length);
  }

  /** Summary of a column of an unshared block. Undefined when not enough was recorded. */
  summary(column: number): ColumnSummary | undefined {
    const { rows, minTime, maxTime } = this.#extent;
    const kind = this.#cell(column, cell.kind);
    const from = new ByteReader(
      this.#bytes,
      this.#cell(column, cell.restAt),
      this.#cell(column, cell.restEnd),
    );
    const count = (kind & someLack) === 0 ? rows : from.uvarint();
    const firstTime = (kind & firstLacks) === 0 ? minTime : minTime + from.uvarint();
    const lastTime = (kind & lastLacks) === 0 ? maxTime : maxTime - from.uvarint();
    return readSummary(from, this.type(column), count, firstTime, lastTime);
  }

  #cell(column: number, which: number): number {
    return this.#cells[column * cells + which]!;
  }
}

function readRuns(from: ByteReader, rows: number): Runs {
  const count = from.uvarint();
  if (count > rows) corrupt('a shared block has more series than rows');
  const runs = { series: new Uint32Array(count), ends: new Uint32Array(count) };
  let series = 0;
  let end = 0;
  for (let i = 0; i < count; i++) {
    series += from.uvarint();
    end += from.uvarint();
    runs.series[i] = series;
    runs.ends[i] = end;
  }
  if (end !== rows) corrupt('the series of a shared block have not its rows');
  return runs;
}

/** Which run is the series', or -1. */
export function findRun(runs: Runs, series: number): number {
  let low = 0;
  let high = runs.series.length - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = runs.series[middle]!;
    if (found === series) return middle;
    if (found < series) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
