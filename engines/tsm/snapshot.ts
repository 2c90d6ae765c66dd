// The state as log entries: the catalog first, then the contents of each shard.
//
// The whole state keeps its numbers, as later entries of the log name measurements, fields and series by them: each shard's index comes first,
// with the numbers of removed series, then its rows. A selection for importers has the series and fields in front of the rows that need them.
// Its series are numbered anew, as removed ones are left out.

import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { SnapshotSelection } from '../series-engine.ts';
import type { Column } from '../../universal-row/series/column.ts';
import { hashKey } from '../../universal-row/series/series-key.ts';
import type { CatalogState } from './catalog.ts';
import type { LiveShard } from './live-shard.ts';
import type { FieldInfo, SeriesIndex } from './parts.ts';
import type { ExportedRows, ShardContents } from './shard/shard.ts';
import { putState } from './ops/change-codec.ts';
import {
  putColumn,
  putNewField,
  putSeriesNumbers,
  putStrings,
  putTimes,
  type SourceColumn,
} from './ops/row-codec.ts';
import { Scratch } from './ops/scratch.ts';
import { Op, putText, putU32, putU8 } from './ops/op-codec.ts';

const entryBytes = 512 * 1024;
/** Rows of a measurement in one op, unless they exceed `entryBytes` before. */
const opRows = 4096;
/** Rows that are gathered between two looks at their bytes, where they have strings. */
const textRows = 16;

/** Of the state of this moment, all where there is no selection; the points are read later. */
export function exported(
  catalog: CatalogState,
  shards: readonly LiveShard[],
  selection?: SnapshotSelection,
): AsyncGenerator<Buffer> {
  if (selection === undefined) return entries(catalog, shards.map(wholeShard), () => {});
  const wantsDatabase = (name: string): boolean => selection.database?.(name) ?? true;
  const wantsShard = (number: number): boolean => selection.shard?.(number) ?? true;
  const wanted = shards.filter(
    ({ span }) => wantsDatabase(span.database) && wantsShard(span.number),
  );
  const exports = wanted.map(({ span, shard }) => ({
    database: span.database,
    rows: shard.export().rows,
    shard: new ShardExport(span.number, shard.index),
  }));
  return entries(
    {
      ...catalog,
      databases: catalog.databases.filter(({ name }) => wantsDatabase(name)),
      shards: catalog.shards.filter(({ database }) => wantsDatabase(database)),
    },
    exports,
    (database, bytes) => selection.given?.(database, bytes),
  );
}

/** A shard to be exported. It is made at once: with a measurement dropped meanwhile its fields are forgotten. */
interface Exported {
  readonly database: string;
  readonly rows: IterableIterator<ExportedRows>;
  readonly shard: ShardExport;
}

function wholeShard({ span, shard }: LiveShard): Exported {
  const contents = shard.export();
  const whole = new ShardExport(span.number, shard.index, contents);
  return { database: span.database, rows: contents.rows, shard: whole };
}

async function* entries(
  catalog: CatalogState,
  exports: readonly Exported[],
  given: NonNullable<SnapshotSelection['given']>,
): AsyncGenerator<Buffer> {
  const into = new RecordBatchWriter();
  putState(into, catalog);
  yield into.buf.subarray(0, into.pos);
  into.pos = 0;
  let opened = 0;
  try {
    for (const { database, rows, shard } of exports) {
      opened++;
      let from = into.pos;
      for (const _ of shard.put(rows, into)) {
        if (into.pos < entryBytes) continue;
        given(database, into.pos - from);
        yield into.buf.subarray(0, into.pos);
        into.pos = 0;
        from = 0;
      }
      given(database, into.pos - from);
    }
  } finally {
    // A reader that stops in the middle closes the files: only a generator that has begun can be ended.
    for (const { rows } of exports.slice(opened)) rows.next();
    for (const { rows } of exports) rows.return?.();
  }
  if (into.pos > 0) yield into.buf.subarray(0, into.pos);
}

/** One column of the rows gathered. */
interface Gathered {
  type: SourceColumn['type'];
  numbers: Float64Array;
  wide: BigInt64Array | undefined;
  present: Uint8Array;
}

class Gathering {
  rows = 0;
  /** As in memory. */
  bytes = 0;
  series = new Uint32Array(opRows);
  times = new Float64Array(opRows);
  readonly columns: (Gathered | undefined)[] = [];
  texts: Buffer[] = [];
  textEnds: number[] = [];
}

class ShardExport {
  readonly #shard: number;
  readonly #index: SeriesIndex;
  /** By number of the measurement. */
  readonly #fields: (readonly FieldInfo[])[] = [];
  readonly #scratch = new Scratch();
  readonly #gatherings = new Map<number, Gathering>();
  /** Set where numbers are kept. */
  readonly #contents: ShardContents | undefined;
  readonly #measurements = new Map<number, number>();
  /** By number: the new one plus one. */
  #numbers = new Uint32Array(1024);
  #seriesCount = 0;

  constructor(shard: number, index: SeriesIndex, contents?: ShardContents) {
    this.#shard = shard;
    this.#index = index;
    this.#contents = contents;
    for (let measurement = 0; measurement < index.measurementCount; measurement++) {
      this.#fields.push([...index.fields(measurement)]);
    }
  }

  /** Yields after some of it. */
  *put(rows: Iterable<ExportedRows>, into: RecordBatchWriter): Generator<void> {
    if (this.#contents !== undefined) yield* this.#putIndex(this.#contents, into);
    for (const piece of rows) {
      yield* this.#add(piece, into);
    }
    for (const [measurement, gathering] of this.#gatherings) {
      if (gathering.rows > 0) this.#put(measurement, gathering, into);
    }
  }

  *#add({ series, measurement, rows }: ExportedRows, into: RecordBatchWriter): Generator<void> {
    let gathering = this.#gatherings.get(measurement);
    if (gathering === undefined) {
      gathering = new Gathering();
      this.#gatherings.set(measurement, gathering);
    }
    const columns = rows.columns.filter((column) => column !== undefined);
    const hasTexts = columns.some(({ type }) => type === 'string');
    const rowBytes = 16 + 8 * columns.length;
    for (let from = 0; from < rows.count; ) {
      const fits = Math.ceil((entryBytes - gathering.bytes) / rowBytes);
      const most = Math.min(opRows - gathering.rows, hasTexts ? textRows : opRows, fits);
      const count = Math.min(rows.count - from, most);
      const textsBefore = gathering.textEnds.at(-1) ?? 0;
      gathering.series.fill(series, gathering.rows, gathering.rows + count);
      gathering.times.set(rows.times.subarray(from, from + count), gathering.rows);
      for (const [field, column] of rows.columns.entries()) {
        if (column !== undefined) gather(gathering, field, column, from, count);
      }
      gathering.rows += count;
      from += count;
      gathering.bytes += count * rowBytes + (gathering.textEnds.at(-1) ?? 0) - textsBefore;
      if (gathering.rows < opRows && gathering.bytes < entryBytes) continue;
      this.#put(measurement, gathering, into);
      yield;
    }
  }

  // ---- the index, where numbers are kept

  *#putIndex({ seriesCount, live }: ShardContents, into: RecordBatchWriter): Generator<void> {
    const index = this.#index;
    for (const measurement of this.#fields.keys()) {
      this.#beginRows(measurement, into);
      putU32(into, 0);
      this.#putNoRows(into);
      yield;
    }
    this.#seriesCount = seriesCount;
    let at = 0;
    for (let first = 0; first < seriesCount; ) {
      const measurement = index.measurementOf(first);
      const isLive = live[at] === first;
      const like = (series: number): boolean =>
        index.measurementOf(series) === measurement && (live[at] === series) === isLive;
      let end = first;
      let keyBytes = 0;
      for (; end < seriesCount && end - first < opRows && keyBytes < entryBytes; end++) {
        if (!like(end)) break;
        if (isLive) keyBytes += index.keyLength(live[at++]!);
      }
      if (isLive) {
        this.#beginRows(measurement, into);
        this.#putKeys(live.slice(at - (end - first), at), first, into);
        this.#putNoRows(into);
      } else {
        putU8(into, Op.gone);
        putU32(into, this.#shard);
        putU32(into, measurement);
        putU32(into, end - first);
      }
      first = end;
      yield;
    }
  }

  #putNoRows(into: RecordBatchWriter): void {
    putU32(into, 0);
    putSeriesNumbers(into, this.#scratch, new Uint32Array(0), 0, 0);
    putTimes(into, this.#scratch, new Float64Array(0), 0);
    putU32(into, 0);
    putU32(into, 0);
  }

  // ---- rows

  #beginRows(measurement: number, into: RecordBatchWriter): void {
    putU8(into, Op.rows);
    putU32(into, this.#shard);
    this.#putMeasurement(measurement, into);
  }

  #put(measurement: number, gathering: Gathering, into: RecordBatchWriter): void {
    const scratch = this.#scratch;
    const { rows, series, times, columns } = gathering;
    scratch.clear();
    this.#beginRows(measurement, into);
    if (this.#contents === undefined) this.#putNewSeries(series, rows, into);
    else putU32(into, 0);
    putU32(into, rows);
    putSeriesNumbers(into, scratch, series, rows, this.#seriesCount);
    putTimes(into, scratch, times, rows);
    const countAt = into.pos;
    putU32(into, 0);
    const texts = {
      text: Buffer.concat(gathering.texts),
      textEnds: Uint32Array.from(gathering.textEnds),
    };
    let put = 0;
    for (const [field, column] of columns.entries()) {
      if (column === undefined) continue;
      if (putColumn(into, scratch, field, column, rows, undefined, texts) > 0) put++;
    }
    into.buf.writeUInt32LE(put, countAt);
    const textAt = into.pos;
    putU32(into, 0);
    for (const column of columns) {
      if (column?.type === 'string') putStrings(into, column, rows, undefined, texts);
    }
    into.buf.writeUInt32LE(into.pos - textAt - 4, textAt);
    this.#begin(gathering);
  }

  #begin(gathering: Gathering): void {
    gathering.rows = 0;
    gathering.bytes = 0;
    gathering.texts = [];
    gathering.textEnds = [];
    for (const column of gathering.columns) {
      if (column === undefined) continue;
      column.present.fill(0);
      column.wide = undefined;
    }
  }

  /** The measurement's number, and at its first time its name and fields. */
  #putMeasurement(measurement: number, into: RecordBatchWriter): void {
    const known = this.#measurements.get(measurement);
    if (known !== undefined) {
      putU32(into, known);
      putU8(into, 0);
      putU32(into, 0);
      return;
    }
    const number = this.#measurements.size;
    this.#measurements.set(measurement, number);
    putU32(into, number);
    putU8(into, 1);
    putText(into, this.#index.measurementName(measurement));
    const fields = this.#fields[measurement] ?? [];
    putU32(into, fields.length);
    for (const { number: field, type, name } of fields) putNewField(into, field, type, name);
  }

  /** Puts the new ones among the series, and gives all their new numbers. */
  #putNewSeries(series: Uint32Array, rows: number, into: RecordBatchWriter): void {
    const fresh: number[] = [];
    for (let i = 0; i < rows; i++) {
      const old = series[i]!;
      if (old >= this.#numbers.length) this.#lengthen(old);
      if (this.#numbers[old] === 0) {
        this.#numbers[old] = ++this.#seriesCount;
        fresh.push(old);
      }
      series[i] = this.#numbers[old]! - 1;
    }
    this.#putKeys(fresh, this.#seriesCount - fresh.length, into);
  }

  /** `first`: the number by which the first of these is known from now on. */
  #putKeys(series: readonly number[], first: number, into: RecordBatchWriter): void {
    putU32(into, series.length);
    if (series.length === 0) return;
    putU32(into, first);
    for (const one of series) {
      const length = this.#index.keyLength(one);
      into.reserve(8 + length);
      const keyAt = into.pos + 8;
      this.#index.copyKey(one, into.buf, keyAt);
      putU32(into, hashKey(into.buf, keyAt, keyAt + length));
      putU32(into, length);
      into.pos += length;
    }
  }

  #lengthen(series: number): void {
    const longer = new Uint32Array(Math.max(series + 1, this.#numbers.length * 2));
    longer.set(this.#numbers);
    this.#numbers = longer;
  }
}

/** Appends `count` values of a column from `from` on. */
function gather(
  gathering: Gathering,
  field: number,
  column: Column,
  from: number,
  count: number,
): void {
  const { columns, rows } = gathering;
  while (columns.length <= field) columns.push(undefined);
  let into = columns[field];
  if (into === undefined) {
    into = {
      type: column.type,
      numbers: new Float64Array(opRows),
      wide: undefined,
      present: new Uint8Array(opRows),
    };
    columns[field] = into;
  }
  for (let i = 0; i < count; i++) {
    if (column.present === undefined || column.present[from + i] === 1) into.present[rows + i] = 1;
  }
  if (column.type === 'string') gatherTexts(gathering, into, column, from, count);
  else if (column.wide === undefined && into.wide === undefined) {
    into.numbers.set(column.numbers.subarray(from, from + count), rows);
  } else gatherWide(into, rows, column, from, count);
}

function gatherTexts(
  gathering: Gathering,
  into: Gathered,
  column: Column,
  from: number,
  count: number,
): void {
  const { rows, texts, textEnds } = gathering;
  for (let i = 0; i < count; i++) {
    if (into.present[rows + i] !== 1) continue;
    const text = Buffer.from(column.texts![from + i]!);
    into.numbers[rows + i] = textEnds.length;
    textEnds.push((textEnds.at(-1) ?? 0) + text.length);
    texts.push(text);
  }
}

function gatherWide(
  into: Gathered,
  rows: number,
  column: Column,
  from: number,
  count: number,
): void {
  if (into.wide === undefined) {
    into.wide = new BigInt64Array(opRows);
    for (let i = 0; i < rows; i++) {
      if (into.present[i] === 1) into.wide[i] = BigInt(into.numbers[i]!);
    }
  }
  for (let i = 0; i < count; i++) {
    if (into.present[rows + i] !== 1) continue;
    // A 64-bit array takes the bits of an unsigned one as they are.
    into.wide[rows + i] = column.wide?.[from + i] ?? BigInt(column.numbers[from + i]!);
  }
}
