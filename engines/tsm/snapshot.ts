// The whole state as log entries: the catalog first, then the rows of each shard, preceded by their
// series and fields. Series are renumbered, as removed ones are left out.

import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { SnapshotSelection } from '../series-engine.ts';
import type { Column } from '../../universal-row/series/column.ts';
import { hashKey } from '../../universal-row/series/series-key.ts';
import type { CatalogState } from './catalog.ts';
import type { LiveShard } from './live-shard.ts';
import type { FieldInfo, SeriesIndex } from './parts.ts';
import type { ExportedRows } from './shard/shard.ts';
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
/** Rows of a measurement in one op. */
const opRows = 4096;

/** Selects from the state of this moment; the points are read later. */
export function exportSelected(
  catalog: CatalogState,
  shards: readonly LiveShard[],
  selection: SnapshotSelection,
): AsyncGenerator<Buffer> {
  const wantsDatabase = (name: string): boolean => selection.database?.(name) ?? true;
  const wantsShard = (number: number): boolean => selection.shard?.(number) ?? true;
  const wanted = shards.filter(
    ({ span }) => wantsDatabase(span.database) && wantsShard(span.number),
  );
  const exports = wanted.map((live) => ({
    database: live.span.database,
    rows: live.shard.exportRows(),
    // Made now: with a measurement dropped meanwhile its fields are forgotten.
    shard: new ShardExport(live.span.number, live.shard.index),
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

async function* entries(
  catalog: CatalogState,
  exports: readonly {
    database: string;
    rows: IterableIterator<ExportedRows>;
    shard: ShardExport;
  }[],
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
      for (const piece of rows) {
        shard.add(piece, into);
        if (into.pos < entryBytes) continue;
        given(database, into.pos - from);
        yield into.buf.subarray(0, into.pos);
        into.pos = 0;
        from = 0;
      }
      shard.finish(into);
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
  readonly #measurements = new Map<number, number>();
  /** By number: the new one plus one. */
  #numbers = new Uint32Array(1024);
  #seriesCount = 0;

  constructor(shard: number, index: SeriesIndex) {
    this.#shard = shard;
    this.#index = index;
    for (let measurement = 0; measurement < index.measurementCount; measurement++) {
      this.#fields.push([...index.fields(measurement)]);
    }
  }

  add({ series, measurement, rows }: ExportedRows, into: RecordBatchWriter): void {
    let gathering = this.#gatherings.get(measurement);
    if (gathering === undefined) {
      gathering = new Gathering();
      this.#gatherings.set(measurement, gathering);
    }
    for (let from = 0; from < rows.count; ) {
      const count = Math.min(rows.count - from, opRows - gathering.rows);
      gathering.series.fill(series, gathering.rows, gathering.rows + count);
      gathering.times.set(rows.times.subarray(from, from + count), gathering.rows);
      for (const [field, column] of rows.columns.entries()) {
        if (column !== undefined) gather(gathering, field, column, from, count);
      }
      gathering.rows += count;
      from += count;
      if (gathering.rows === opRows) this.#put(measurement, gathering, into);
    }
  }

  finish(into: RecordBatchWriter): void {
    for (const [measurement, gathering] of this.#gatherings) {
      if (gathering.rows > 0) this.#put(measurement, gathering, into);
    }
  }

  #put(measurement: number, gathering: Gathering, into: RecordBatchWriter): void {
    const scratch = this.#scratch;
    const { rows, series, times, columns } = gathering;
    scratch.clear();
    putU8(into, Op.rows);
    putU32(into, this.#shard);
    this.#putMeasurement(measurement, into);
    this.#putSeries(series, rows, into);
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
  #putSeries(series: Uint32Array, rows: number, into: RecordBatchWriter): void {
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
    putU32(into, fresh.length);
    if (fresh.length === 0) return;
    putU32(into, this.#seriesCount - fresh.length);
    for (const old of fresh) {
      const length = this.#index.keyLength(old);
      into.reserve(8 + length);
      const keyAt = into.pos + 8;
      this.#index.copyKey(old, into.buf, keyAt);
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
