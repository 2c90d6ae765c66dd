// One shard's series file and inverted index, all of it in memory: per tag a dictionary of values and a
// column of value numbers by series. A series is a row of small numbers, so ten million of them, with ten
// tags each, take less memory than their keys alone would.
//
//   index-state.ts        contents: measurements, shapes of keys, series, the table of keys
//   measurement-index.ts  fields and tags; tag.ts: values, their column, their postings
//   ordinal-filter.ts     which series a filter selects; key-order.ts: in which order
//   index-file.ts         the file; index-records.ts: its records

import { assert } from '../../../universal-row/assert.ts';
import type { Disk } from '../../../universal-row/environment.ts';
import { keyedHash } from '../../../universal-row/keyed-hash.ts';
import { type FieldType, fieldTypeCodes } from '../../../universal-row/series/field-type.ts';
import { compareText, hashKey, partEnd } from '../../../universal-row/series/series-key.ts';
import type { SeriesFilter } from '../../../contracts/series-store.ts';
import type { FieldInfo, SeriesChoice, SeriesGroups, SeriesIndex } from '../parts.ts';
import { sliceElements, type Slices } from '../../../universal-row/slices.ts';
import { type DiskWait, finished, type SlicedWork } from '../sliced-work.ts';
import { groupByTags } from './group-by-tags.ts';
import { IndexFile } from './index-file.ts';
import { Op, RecordWriter } from './index-records.ts';
import { IndexReplay } from './index-replay.ts';
import { IndexState } from './index-state.ts';
import type { KeyShape } from './measurement-index.ts';
import { matchingOrdinals, OrdinalFilter } from './ordinal-filter.ts';
import type { MeasurementIndex } from './measurement-index.ts';
import { sortedTexts } from './sorted-texts.ts';

const equals = 0x3d;
/** The file is written anew when this many of its series, and most of them, are removed. */
const compactFrom = 10_000;
/** Series processed between two yields where each takes one or two array accesses. */
const chosenAtOnce = 16 * sliceElements;
/** The longest varint and the op of a record. */
const numberBytes = 6;

/**
 * Creates the index of a directory, or opens it in the state of its last persist, or somewhat
 * later. Throws `CorruptFileError` when the persisted part is damaged.
 */
export function openSeriesIndex(disk: Disk, directory: string): SeriesIndex {
  disk.makeDirectory(directory);
  const file = new IndexFile(disk, directory);
  const state = new IndexState();
  const replay = new IndexReplay(state);
  file.open((buf, start, end) => replay.apply(buf, start, end));
  const index = new FileSeriesIndex(file, state);
  const live = state.rows.count - state.removedCount;
  if (state.removedCount < compactFrom || state.removedCount < live) return index;
  return compacted(file, state);
}

class FileSeriesIndex implements SeriesIndex {
  readonly #file: IndexFile;
  readonly #state: IndexState;
  /** Records not in the file yet. */
  readonly #writer = new RecordWriter();
  /** Value numbers of the series that is being added, and 1 for those that are new. */
  readonly #values: number[] = [];
  readonly #isNew: number[] = [];

  constructor(file: IndexFile, state: IndexState) {
    this.#file = file;
    this.#state = state;
  }

  get seriesCount(): number {
    return this.#state.rows.count;
  }

  get bytes(): number {
    return this.#state.tally.bytes + this.#writer.bytes;
  }

  get measurementCount(): number {
    return this.#state.measurements.length;
  }

  findMeasurement(name: string): number {
    return this.#state.measurementNamed(name)?.number ?? -1;
  }

  addMeasurement(name: string): number {
    const known = this.#state.measurementNamed(name);
    if (known !== undefined) return known.number;
    const key = Buffer.from(name.replace(/[, ]/g, '\\$&'));
    return this.addMeasurementKey(key, 0, key.length).number;
  }

  /** As `addMeasurement` of one that is new, by its name as in series keys. */
  addMeasurementKey(key: Buffer, start: number, end: number): MeasurementIndex {
    this.#writer.begin(Op.measurement, end - start + numberBytes);
    this.#writer.run(key, start, end);
    return this.#state.addMeasurement(key, start, end);
  }

  measurementName(measurement: number): string {
    return this.#measurement(measurement).name;
  }

  liveSeriesOf(measurement: number): number {
    const { series, removed } = this.#measurement(measurement);
    return series.length - removed;
  }

  fields(measurement: number): readonly FieldInfo[] {
    return this.#measurement(measurement).fields;
  }

  findField(measurement: number, name: string): FieldInfo | undefined {
    return this.#measurement(measurement).field(name);
  }

  addField(measurement: number, name: string, type: FieldType): FieldInfo {
    const known = this.#measurement(measurement).field(name);
    if (known !== undefined) {
      assert(known.type === type, 'a field keeps its type');
      return known;
    }
    const bytes = Buffer.from(name);
    this.#writer.begin(Op.field, bytes.length + 3 * numberBytes);
    this.#writer.varint(measurement);
    this.#writer.u8(fieldTypeCodes[type]);
    this.#writer.run(bytes, 0, bytes.length);
    return this.#measurement(measurement).addField(name, type);
  }

  findSeries(keys: Buffer, start: number, end: number, hash: number): number {
    return this.#state.table.find(keys, start, end, hash);
  }

  addSeries(keys: Buffer, start: number, end: number): number {
    const shape = this.#takeApart(keys, start, end);
    const tags = shape.tags;
    const writer = this.#writer;
    const arena = this.#state.arena;
    writer.begin(Op.series, end - start + (2 + 2 * tags.length) * numberBytes);
    writer.varint(shape.number);
    writer.u32(hashKey(keys, start, end));
    for (let i = 0; i < tags.length; i++) {
      const value = this.#values[i]!;
      if (this.#isNew[i] === 1) {
        writer.u8(0);
        tags[i]!.values.locate(value);
        writer.run(arena.buf, arena.start, arena.start + arena.length);
      } else writer.varint(value);
    }
    return this.#state.addSeries(shape, this.#values, keyedHash(keys, start, end));
  }

  removeSeries(series: number): void {
    if (this.isRemoved(series)) return;
    this.#writer.begin(Op.removed, numberBytes);
    this.#writer.varint(series);
    this.#state.removeSeries(series);
  }

  isRemoved(series: number): boolean {
    return this.#state.rows.isRemoved(series);
  }

  measurementOf(series: number): number {
    return this.#state.rows.shapeOf(series).measurement.number;
  }

  key(series: number): string {
    const rows = this.#state.rows;
    return rows.keyBytes(series).toString('utf8', 0, rows.keyLength(series));
  }

  compareKeys(a: number, b: number): number {
    return this.#state.rows.compare(a, b);
  }

  copyKey(series: number, into: Buffer, at: number): number {
    return this.#state.rows.copyKey(series, into, at);
  }

  keyLength(series: number): number {
    return this.#state.rows.keyLength(series);
  }

  *tagKeys(measurement: number, filter: SeriesFilter | undefined): Slices<string[]> {
    const index = this.#measurement(measurement);
    if (filter === undefined && index.removed === 0) {
      return index.tags.map((tag) => tag.name).sort(compareText);
    }
    const shapes = new Set<KeyShape>();
    yield* this.#eachLive(index, filter, (ordinal) => {
      shapes.add(this.#state.rows.shapeOf(index.series.array[ordinal]!));
    });
    const names = new Set<string>();
    for (const shape of shapes) for (const tag of shape.tags) names.add(tag.name);
    return [...names].sort(compareText);
  }

  *tagValues(measurement: number, tag: string, filter: SeriesFilter | undefined): Slices<string[]> {
    const index = this.#measurement(measurement);
    const about = index.tag(tag);
    if (about === undefined) return [];
    const { arena } = this.#state;
    if (filter === undefined) {
      const live = about.liveValues(index.series.length, (o) => this.#isLive(index, o));
      return yield* sortedTexts(about, arena, live);
    }
    const found = new Uint8Array(about.values.count + 1);
    yield* this.#eachLive(index, filter, (ordinal) => {
      found[about.column.get(ordinal)] = 1;
    });
    return yield* sortedTexts(about, arena, found);
  }

  tagValueCount(measurement: number, tag: string): number {
    const index = this.#measurement(measurement);
    const about = index.tag(tag);
    if (about === undefined) return 0;
    return about.liveCount(index.series.length, (o) => this.#isLive(index, o));
  }

  hasTagValue(measurement: number, tag: string, value: string): boolean {
    const index = this.#measurement(measurement);
    const about = index.tag(tag);
    const number = about?.values.findText(value) ?? 0;
    if (number <= 0) return false;
    const live = about!.liveValues(index.series.length, (o) => this.#isLive(index, o));
    return live === undefined || live[number] === 1;
  }

  tagValue(series: number, tag: string): string {
    const { rows } = this.#state;
    const about = rows.shapeOf(series).measurement.tag(tag);
    const value = about === undefined ? 0 : about.column.get(rows.ordinalOf(series));
    return value === 0 ? '' : about!.values.text(value);
  }

  *select(
    measurement: number,
    filter: SeriesFilter | undefined,
    choice?: SeriesChoice,
  ): Slices<Uint32Array> {
    const index = this.#measurement(measurement);
    const order = this.#state.orders[measurement]!;
    let some: Uint32Array | undefined;
    if (choice === undefined) {
      some = filter === undefined ? undefined : yield* matchingOrdinals(index, filter);
      if (index.removed > 0) some = some?.filter((o) => this.#isLive(index, o));
    } else {
      // The view that chooses knows no series that come later.
      const count = index.series.length;
      const matches = filter === undefined ? undefined : yield* OrdinalFilter.of(index, filter);
      const few = matches === undefined ? undefined : yield* matches.few();
      some = yield* this.#chosen(index, few, count, choice);
      if (few === undefined && matches !== undefined) some = yield* matches.among(some);
    }
    if (some === undefined) return yield* this.#liveSeries(index, yield* order.all());
    if (choice?.isUnordered !== true) some = yield* order.sort(some);
    return yield* this.#liveSeries(index, some);
  }

  /** Live, chosen ones of the ordinals (undefined: all), ascending. */
  *#chosen(
    index: MeasurementIndex,
    ordinals: Uint32Array | undefined,
    all: number,
    choice: SeriesChoice,
  ): Slices<Uint32Array> {
    const count = ordinals?.length ?? all;
    const isChosen = choice.chooser(count);
    const { rows } = this.#state;
    const numbers = index.series.array;
    const chosen = new Uint32Array(count);
    let found = 0;
    for (let i = 0; i < count; i++) {
      if (i % chosenAtOnce === chosenAtOnce - 1) yield;
      const ordinal = ordinals === undefined ? i : ordinals[i]!;
      const series = numbers[ordinal]!;
      if (!isChosen(series) || (index.removed > 0 && rows.isRemoved(series))) continue;
      chosen[found++] = ordinal;
    }
    return found === count ? chosen : chosen.slice(0, found);
  }

  group(measurement: number, series: Uint32Array, tags: readonly string[]): Slices<SeriesGroups> {
    return groupByTags(this.#measurement(measurement), this.#state.rows, series, tags);
  }

  persist(): void {
    finished(this.persisting());
  }

  persisting(logged?: DiskWait): SlicedWork {
    return this.#file.appending(this.#writer, logged);
  }

  /** Replaces the file by one that holds only this index's records. */
  persistAnew(): void {
    finished(this.#file.replacing(this.#writer));
  }

  get hasRemoved(): boolean {
    return this.#state.hasRemoved;
  }

  skipSeries(measurement: number, count: number): void {
    this.#writer.begin(Op.gone, 2 * numberBytes);
    this.#writer.varint(measurement);
    this.#writer.varint(count);
    this.#state.skipSeries(this.#measurement(measurement), count);
  }

  close(): void {
    this.#file.close();
  }

  #measurement(number: number): MeasurementIndex {
    const measurement = this.#state.measurements[number];
    assert(measurement !== undefined, 'a measurement is one of this index');
    return measurement;
  }

  #isLive(index: MeasurementIndex, ordinal: number): boolean {
    return !this.#state.rows.isRemoved(index.series.array[ordinal]!);
  }

  *#eachLive(
    index: MeasurementIndex,
    filter: SeriesFilter | undefined,
    visit: (ordinal: number) => void,
  ): Slices<void> {
    const some = filter === undefined ? undefined : yield* matchingOrdinals(index, filter);
    const count = some === undefined ? index.series.length : some.length;
    for (let i = 0; i < count; i++) {
      const ordinal = some === undefined ? i : some[i]!;
      if (index.removed === 0 || this.#isLive(index, ordinal)) visit(ordinal);
      if (i % (4 * sliceElements) === 4 * sliceElements - 1) yield;
    }
  }

  /** Numbers of the series that are not removed. */
  *#liveSeries(index: MeasurementIndex, ordinals: Uint32Array): Slices<Uint32Array> {
    const series = new Uint32Array(ordinals.length);
    const numbers = index.series.array;
    let count = 0;
    for (let i = 0; i < ordinals.length; i++) {
      if (i % chosenAtOnce === chosenAtOnce - 1) yield;
      const number = numbers[ordinals[i]!]!;
      if (index.removed === 0 || !this.#state.rows.isRemoved(number)) series[count++] = number;
    }
    return count === series.length ? series : series.slice(0, count);
  }

  /** Shape of a key; its values go to `#values`. New tags and values are added. */
  #takeApart(keys: Buffer, start: number, end: number): KeyShape {
    let at = partEnd(keys, start, end, false);
    const measurement =
      this.#state.findMeasurement(keys, start, at) ?? this.addMeasurementKey(keys, start, at);
    let shape = measurement.root;
    let count = 0;
    while (at < end) {
      shape = shape.likelyChild(keys, at, end) ?? this.#child(shape, keys, at, end);
      const tag = shape.tag!;
      const known = tag.values.count;
      const value = tag.values.internPart(keys, at + tag.prefix.length, end);
      at = tag.values.partEnd;
      this.#values[count] = value;
      this.#isNew[count++] = value > known ? 1 : 0;
    }
    return shape;
  }

  /** The child of a shape for the tag key at `at`, where a comma stands. */
  #child(shape: KeyShape, keys: Buffer, at: number, end: number): KeyShape {
    const keyEnd = partEnd(keys, at + 1, end, true);
    assert(keys[keyEnd] === equals && keyEnd < end, 'a tag of a series key has a value');
    const measurement = shape.measurement;
    const writer = this.#writer;
    let tag = measurement.findTag(keys, at + 1, keyEnd);
    if (tag === undefined) {
      writer.begin(Op.tag, keyEnd - at + 2 * numberBytes);
      writer.varint(measurement.number);
      writer.run(keys, at + 1, keyEnd);
      tag = measurement.addTag(keys, at + 1, keyEnd);
    }
    const known = shape.child(tag);
    if (known !== undefined) return known;
    writer.begin(Op.shape, 2 * numberBytes);
    writer.varint(shape.number);
    writer.varint(tag.number);
    return this.#state.addShape(shape, tag);
  }
}

/** The same index without the state of removed series, and a file of that. */
function compacted(file: IndexFile, old: IndexState): FileSeriesIndex {
  const index = new FileSeriesIndex(file, new IndexState());
  for (const measurement of old.measurements) {
    index.addMeasurementKey(measurement.key, 0, measurement.key.length);
    for (const field of measurement.fields) {
      index.addField(measurement.number, field.name, field.type);
    }
  }
  const { rows } = old;
  for (let series = 0; series < rows.count; series++) {
    if (rows.isRemoved(series)) {
      const measurement = rows.shapeOf(series).measurement.number;
      let count = 1;
      while (
        series + 1 < rows.count &&
        rows.isRemoved(series + 1) &&
        rows.shapeOf(series + 1).measurement.number === measurement
      ) {
        series++;
        count++;
      }
      index.skipSeries(measurement, count);
      continue;
    }
    const keys = rows.keyBytes(series);
    const length = rows.keyLength(series);
    index.addSeries(keys, 0, length);
  }
  index.persistAnew();
  return index;
}
