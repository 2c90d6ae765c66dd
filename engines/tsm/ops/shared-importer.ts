// Imports selected series from exports of several engines into an engine that is divided differently. No two exports
// have the same series. Unlike `ExportImporter`, this importer gives measurements, fields and series the next free
// numbers of the local shard, and merges shards of several exports that cover the same time.

import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import { keyedHash } from '../../../universal-row/keyed-hash.ts';
import { hashKey } from '../../../universal-row/series/series-key.ts';
import {
  type SeriesImporter,
  type SeriesShare,
  SeriesShareError,
  ShardGoneError,
} from '../../series-engine.ts';
import type { Catalog, CatalogState, ShardSpan } from '../catalog.ts';
import type { PackedColumn } from '../head/packed-column.ts';
import type { LiveShard } from '../live-shard.ts';
import type { SeriesIndex } from '../parts.ts';
import { putChange, putShard } from './change-codec.ts';
import { ExportWalker, type WalkedRows } from './export-walker.ts';
import { putColumn, putNewField, putSeriesNumbers, putStrings, putTimes } from './row-codec.ts';
import { Scratch } from './scratch.ts';
import { Op, putText, putU32, putU8 } from './op-codec.ts';

/** The engine that takes them. */
interface ImportTarget {
  readonly catalog: Catalog;
  readonly live: ReadonlyMap<number, LiveShard>;
}

/** The shard here that points of a shard of an export go to. */
interface Place extends Omit<ShardSpan, 'number'> {
  /** Nanoseconds that its times are later, as they count from its start. */
  readonly shift: number;
}

export class SharedImporter implements SeriesImporter {
  readonly #rename: (database: string) => string | undefined;
  readonly #share: SeriesShare;
  readonly #target: () => ImportTarget;
  readonly #walker = new ExportWalker();
  readonly #scratch = new Scratch();
  /** Where the points of each shard of the first export go. */
  #places: Map<number, Place> | undefined;
  /** Places whose shard this import has made. */
  readonly #made = new Set<Place>();
  #shard = -1;
  /** By number of a series in the shard of the export: its number here plus one, or 0 where it is not taken. */
  #numbers = new Uint32Array(1024);
  /** Keys of new series of the op at hand, as pairs of start and end. */
  #fresh: number[] = [];

  constructor(
    rename: (database: string) => string | undefined,
    share: SeriesShare,
    target: () => ImportTarget,
  ) {
    this.#rename = rename;
    this.#share = share;
    this.#target = target;
  }

  *put(entry: Buffer, wants: (shard: number) => boolean, into: RecordBatchWriter): Generator<void> {
    yield* this.#walker.walk(entry, {
      state: (state) => {
        this.#shard = -1;
        if (this.#places === undefined) this.#putState(state, into);
      },
      series: (shard, number, buf, start, end) => {
        const place = wants(shard) ? this.#places?.get(shard) : undefined;
        this.#addSeries(shard, place, number, buf, start, end);
      },
      rows: (rows, buf) => {
        const place = wants(rows.shard) ? this.#places?.get(rows.shard) : undefined;
        if (place !== undefined) this.#putRows(rows, place, buf, into);
      },
    });
  }

  /** Databases of an export before this one are there already. */
  #putState(state: CatalogState, into: RecordBatchWriter): void {
    const { catalog } = this.#target();
    const names = new Map<string, string>();
    for (const saved of state.databases) {
      const database = this.#rename(saved.name);
      if (database === undefined) continue;
      names.set(saved.name, database);
      const there = catalog.state(database);
      if (there === undefined) putChange(into, { kind: 'adoptDatabase', database, saved });
      for (const { name } of there === undefined ? [] : saved.policies) {
        if (catalog.policy(there!, name) === undefined) {
          throw new SeriesShareError(`some have retention policy ${name} and others have not`);
        }
      }
    }
    this.#places = new Map();
    for (const shard of state.shards) {
      const database = names.get(shard.database);
      if (database === undefined) continue;
      const { startSeconds, seconds } = this.#share.spanOf(shard);
      const shift = (shard.startSeconds - startSeconds) * 1e9;
      const { policy } = shard;
      this.#places.set(shard.number, { database, policy, startSeconds, seconds, shift });
    }
  }

  #liveShard({ database, policy, startSeconds }: Place): LiveShard | undefined {
    const { catalog, live } = this.#target();
    const state = catalog.state(database);
    const shards = (state && catalog.policy(state, policy)?.shards) ?? [];
    const found = shards.find((one) => one.startSeconds === startSeconds);
    return found && live.get(found.number);
  }

  #addSeries(
    shard: number,
    place: Place | undefined,
    number: number,
    buf: Buffer,
    start: number,
    end: number,
  ): void {
    this.#enter(shard);
    if (place === undefined) return;
    if (number >= this.#numbers.length) {
      const longer = new Uint32Array(this.#numbers.length * 2);
      longer.set(this.#numbers);
      this.#numbers = longer;
    }
    if (!this.#share.keeps(buf, start, end)) {
      this.#numbers[number] = 0;
      return;
    }
    const index = this.#liveShard(place)?.shard.index;
    const known = index?.findSeries(buf, start, end, keyedHash(buf, start, end)) ?? -1;
    if (known >= 0) {
      this.#numbers[number] = known + 1;
      return;
    }
    this.#fresh.push(start, end);
    this.#numbers[number] = (index?.seriesCount ?? 0) + this.#fresh.length / 2;
  }

  #enter(shard: number): void {
    if (shard === this.#shard) return;
    this.#shard = shard;
    this.#fresh = [];
  }

  #putRows(rows: WalkedRows, place: Place, buf: Buffer, into: RecordBatchWriter): void {
    this.#enter(rows.shard);
    const taken = new Uint32Array(rows.rows);
    let count = 0;
    for (let row = 0; row < rows.rows; row++) {
      if (this.#numbers[rows.series[row]!] !== 0) taken[count++] = row;
    }
    if (count === 0 && this.#fresh.length === 0) return;
    const selected = taken.subarray(0, count);
    const live = this.#liveShard(place);
    const number = live?.span.number ?? this.#target().catalog.nextShard;
    if (live === undefined && this.#made.has(place)) throw new ShardGoneError();
    if (live === undefined) {
      this.#made.add(place);
      const { shift: _shift, ...span } = place;
      putShard(into, { ...span, number });
    }
    this.#scratch.clear();
    putU8(into, Op.rows);
    putU32(into, number);
    const index = live?.shard.index;
    const columns = this.#putFields(rows, selected, index, into);
    this.#putSeries(index, buf, into);
    putU32(into, count);
    this.#putWhere(rows, place, selected, index, into);
    this.#putValues(rows, columns, selected, into);
    this.#fresh = [];
  }

  /** The measurement, and its fields that are new. Returns all columns with values, by their fields' numbers here. */
  #putFields(
    { measurement, fields, columns }: WalkedRows,
    selected: Uint32Array,
    index: SeriesIndex | undefined,
    into: RecordBatchWriter,
  ): Map<number, PackedColumn> {
    const known = index?.findMeasurement(measurement) ?? -1;
    putU32(into, known < 0 ? (index?.measurementCount ?? 0) : known);
    putU8(into, known < 0 ? 1 : 0);
    if (known < 0) putText(into, measurement);
    const found = new Map<number, PackedColumn>();
    let next = known < 0 ? 0 : index!.fields(known).length;
    const countAt = into.pos;
    putU32(into, 0);
    let put = 0;
    for (const [at, column] of columns.entries()) {
      if (column === undefined || !hasValue(column, selected)) continue;
      const { name, type } = fields[at]!;
      const field = known < 0 ? undefined : index!.findField(known, name);
      if (field !== undefined && field.type !== type) {
        throw new SeriesShareError(
          `field ${name} of ${measurement} is of type ${field.type} in some and of type ${type} in others`,
        );
      }
      if (field === undefined) {
        putNewField(into, next, type, name);
        put++;
      }
      found.set(field?.number ?? next++, column);
    }
    into.buf.writeUInt32LE(put, countAt);
    return found;
  }

  #putSeries(index: SeriesIndex | undefined, buf: Buffer, into: RecordBatchWriter): void {
    const fresh = this.#fresh;
    putU32(into, fresh.length / 2);
    if (fresh.length === 0) return;
    putU32(into, index?.seriesCount ?? 0);
    for (let i = 0; i < fresh.length; i += 2) {
      const start = fresh[i]!;
      const end = fresh[i + 1]!;
      putU32(into, hashKey(buf, start, end));
      putU32(into, end - start);
      into.reserve(end - start);
      into.pos += buf.copy(into.buf, into.pos, start, end);
    }
  }

  #putWhere(
    { series, times }: WalkedRows,
    { shift }: Place,
    selected: Uint32Array,
    index: SeriesIndex | undefined,
    into: RecordBatchWriter,
  ): void {
    const numbers = new Uint32Array(selected.length);
    const offsets = new Float64Array(selected.length);
    for (let i = 0; i < selected.length; i++) {
      const row = selected[i]!;
      numbers[i] = this.#numbers[series[row]!]! - 1;
      offsets[i] = times[row]! + shift;
    }
    const seriesCount = (index?.seriesCount ?? 0) + this.#fresh.length / 2;
    putSeriesNumbers(into, this.#scratch, numbers, selected.length, seriesCount);
    putTimes(into, this.#scratch, offsets, selected.length);
  }

  #putValues(
    { texts }: WalkedRows,
    columns: ReadonlyMap<number, PackedColumn>,
    selected: Uint32Array,
    into: RecordBatchWriter,
  ): void {
    putU32(into, columns.size);
    const unpacked = [...columns].map(([field, { type, numbers, wide, present }]) => {
      return { field, column: { type, numbers, wide, present } };
    });
    for (const { field, column } of unpacked) {
      putColumn(into, this.#scratch, field, column, selected.length, selected, texts);
    }
    const textAt = into.pos;
    putU32(into, 0);
    for (const { column } of unpacked) {
      if (column.type === 'string') putStrings(into, column, selected.length, selected, texts);
    }
    into.buf.writeUInt32LE(into.pos - textAt - 4, textAt);
  }
}

function hasValue({ rows }: PackedColumn, selected: Uint32Array): boolean {
  if (rows === undefined) return selected.length > 0;
  // Both ascend.
  for (let i = 0, k = 0; i < selected.length && k < rows.length; ) {
    if (rows[k] === selected[i]) return true;
    if (rows[k]! < selected[i]!) k++;
    else i++;
  }
  return false;
}
