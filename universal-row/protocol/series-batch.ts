// Batches of points between a gateway and a pod of time series: docs/pod-protocol.md has the form. A batch that is
// large goes as several, each of some rows.

import { viewed } from '../bytes.ts';
import { fieldTypeCodes, fieldTypes } from '../series/field-type.ts';
import type { PointBatch, PointColumn, PointGroup } from '../series/point-batch.ts';
import type { SeriesCache } from '../series/series-cache.ts';
import { decodeSeriesKey } from '../series/series-key.ts';
import { readBytes, readFloats, readSigned, readWords, writeNumbers } from './typed-bytes.ts';
import { WireError, type WireReader, type WireWriter } from './wire.ts';

/** Bits beside the type of a column. */
const isWide = 8;
const hasPresent = 16;
const typeBits = 7;

/** Places of series in a message by their handles. Its array is used again. */
class KeyPlaces {
  /** The place plus one; 0 for none. */
  #places = new Uint32Array(0);
  readonly handles: number[] = [];

  begin(cache: SeriesCache): void {
    for (const handle of this.handles) this.#places[handle] = 0;
    this.handles.length = 0;
    if (this.#places.length >= cache.size) return;
    this.#places = new Uint32Array(Math.max(cache.size, this.#places.length * 2));
  }

  /** True if the handle is new. */
  add(handle: number): boolean {
    if (this.#places[handle] !== 0) return false;
    this.#places[handle] = this.handles.push(handle);
    return true;
  }

  of(handle: number): number {
    return this.#places[handle]! - 1;
  }
}

/** Rows `[from, to)` of a group. */
interface RowRange {
  readonly group: PointGroup;
  readonly from: number;
  readonly to: number;
}

/** Writes batches, one at a time. */
export class BatchWriter {
  readonly #keys = new KeyPlaces();
  #batch: PointBatch | undefined;
  #group = 0;
  #row = 0;
  /** Rows written of the batch. */
  written = 0;

  begin(batch: PointBatch): void {
    this.#batch = batch;
    this.#group = 0;
    this.#row = 0;
    this.written = 0;
  }

  /** Whether rows are left to be written. */
  get hasMore(): boolean {
    const batch = this.#batch;
    if (batch === undefined) return false;
    const { groups } = batch;
    while (this.#group < groups.length && this.#row >= groups[this.#group]!.rows) {
      this.#group++;
      this.#row = 0;
    }
    return this.#group < groups.length;
  }

  /** Writes rows of about `maxBytes`, at least one. */
  write(writer: WireWriter, maxBytes: number): void {
    const batch = this.#batch!;
    this.#keys.begin(batch.cache);
    const ranges = this.#choose(batch, maxBytes);
    writer.signed(batch.baseSeconds);
    this.#writeKeys(writer, batch.cache);
    writer.varint(ranges.length);
    for (const range of ranges) this.#writeGroup(writer, batch, range);
  }

  #choose(batch: PointBatch, maxBytes: number): RowRange[] {
    const ranges: RowRange[] = [];
    let bytes = 0;
    while (this.hasMore && bytes < maxBytes) {
      const group = batch.groups[this.#group]!;
      const from = this.#row;
      const texts = group.columns.filter(({ type }) => type === 'string');
      const rowBytes = 12 + 9 * group.columns.length;
      while (this.#row < group.rows && (bytes < maxBytes || this.#row === from)) {
        const row = this.#row++;
        const handle = group.series[row]!;
        if (this.#keys.add(handle)) {
          bytes += batch.cache.keyEnd(handle) - batch.cache.keyStart(handle) + 3;
        }
        bytes += rowBytes;
        for (const column of texts)
          if (hasRow(column, row)) bytes += textLength(batch, column, row);
      }
      ranges.push({ group, from, to: this.#row });
      this.written += this.#row - from;
    }
    return ranges;
  }

  #writeKeys(writer: WireWriter, cache: SeriesCache): void {
    const { handles } = this.#keys;
    writer.varint(handles.length);
    for (const handle of handles) {
      const start = cache.keyStart(handle);
      writer.bytes(cache.keys(handle), start, cache.keyEnd(handle) - start);
    }
  }

  #writeGroup(writer: WireWriter, batch: PointBatch, { group, from, to }: RowRange): void {
    writer.string(group.measurement);
    writer.varint(to - from);
    writer.reserve((to - from) * 4);
    for (let row = from; row < to; row++) writer.u32(this.#keys.of(group.series[row]!));
    writeNumbers(writer, group.times, from, to);
    const columns = group.columns.filter((column) => countIn(column, from, to) > 0);
    writer.varint(columns.length);
    for (const column of columns) writeColumn(writer, batch, column, from, to);
  }
}

function hasRow({ present }: PointColumn, row: number): boolean {
  return present === undefined || present[row] === 1;
}

function countIn({ present }: PointColumn, from: number, to: number): number {
  if (present === undefined) return to - from;
  let count = 0;
  for (let row = from; row < to; row++) count += present[row]!;
  return count;
}

function textStart({ textEnds }: PointBatch, { numbers }: PointColumn, row: number): number {
  const text = numbers[row]!;
  return text === 0 ? 0 : textEnds[text - 1]!;
}

function textLength(batch: PointBatch, column: PointColumn, row: number): number {
  return batch.textEnds[column.numbers[row]!]! - textStart(batch, column, row);
}

function writeColumn(
  writer: WireWriter,
  batch: PointBatch,
  column: PointColumn,
  from: number,
  to: number,
): void {
  const { field, type, numbers, wide, present } = column;
  const isSparse = countIn(column, from, to) < to - from;
  writer.string(field);
  writer.u8(fieldTypeCodes[type] | (wide ? isWide : 0) | (isSparse ? hasPresent : 0));
  if (isSparse) writeNumbers(writer, present!, from, to);
  if (type !== 'string') {
    writeNumbers(writer, wide ?? numbers, from, to);
    return;
  }
  for (let row = from; row < to; row++) {
    writer.u32(hasRow(column, row) ? textLength(batch, column, row) : 0);
  }
  for (let row = from; row < to; row++) {
    if (!hasRow(column, row)) continue;
    writer.raw(batch.text, textStart(batch, column, row), textLength(batch, column, row));
  }
}

// ---- reading

/** Where a reader finds the handles of series keys. */
export interface KeyTable {
  readonly cache: SeriesCache;
  /** The handle of the key `buf[start, end)`, which is copied if it is new. */
  handleOf(buf: Buffer, start: number, end: number): number;
}

class ReadColumn implements PointColumn {
  readonly field: string;
  readonly type: PointColumn['type'];
  readonly numbers: Float64Array;
  readonly wide: BigInt64Array | undefined;
  readonly present: Uint8Array | undefined;
  readonly count: number;

  constructor(column: PointColumn) {
    this.field = column.field;
    this.type = column.type;
    this.numbers = column.numbers;
    this.wide = column.wide;
    this.present = column.present;
    this.count = column.count;
  }
}

/** Texts of a batch, as its columns have them one after the other. */
class TextsRead {
  readonly ends: number[] = [];
  readonly parts: Buffer[] = [];
  bytes = 0;
}

/** Reads a batch, whose arrays are its own. Throws a `WireError`. */
export function readBatch(reader: WireReader, table: KeyTable): PointBatch {
  const baseSeconds = reader.signed();
  const keys = readKeys(reader, table);
  const groups: PointGroup[] = [];
  const texts = new TextsRead();
  const count = reader.varint();
  // A group has a measurement, rows and columns: at least three bytes.
  if (count * 3 > reader.left) throw new WireError('a message ends too early');
  let rows = 0;
  for (let i = 0; i < count; i++) {
    const group = readGroup(reader, table.cache, keys, texts);
    rows += group.rows;
    groups.push(group);
  }
  const { cache } = table;
  return {
    cache,
    generation: cache.generation,
    baseSeconds,
    rows,
    groups,
    text: viewed(Buffer.concat(texts.parts)),
    textEnds: Uint32Array.from(texts.ends),
  };
}

function readKeys(reader: WireReader, table: KeyTable): Uint32Array {
  const count = reader.varint();
  if (count > reader.left) throw new WireError('a message ends too early');
  const handles = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    const length = reader.length();
    if (length === 0) throw new WireError('a series has no key');
    const at = reader.skip(length);
    handles[i] = table.handleOf(reader.buf, at, at + length);
  }
  return handles;
}

const comma = 0x2c;

function readGroup(
  reader: WireReader,
  cache: SeriesCache,
  keys: Uint32Array,
  texts: TextsRead,
): PointGroup {
  const measurement = reader.string();
  const rows = reader.varint();
  const series = readWords(reader, rows);
  const prefix = Buffer.from(measurement.replace(/[, ]/g, '\\$&'));
  // Rows of a series often come together.
  let checked = -1;
  for (let row = 0; row < rows; row++) {
    const place = series[row]!;
    if (place >= keys.length) throw new WireError('a point has no series');
    if (place !== checked) expectOf(cache, keys[place]!, measurement, prefix);
    checked = place;
    series[row] = keys[place]!;
  }
  const times = readFloats(reader, rows);
  for (let row = 0; row < rows; row++) {
    if (!Number.isSafeInteger(times[row])) throw new WireError('a point has no time');
  }
  const columns: PointColumn[] = [];
  const count = reader.varint();
  if (count * 2 > reader.left) throw new WireError('a message ends too early');
  for (let i = 0; i < count; i++) columns.push(readColumn(reader, rows, texts));
  return { measurement, rows, series, times, columns };
}

/** A series of another measurement would be found by none of the two. */
function expectOf(cache: SeriesCache, handle: number, measurement: string, prefix: Buffer): void {
  const keys = cache.keys(handle);
  const start = cache.keyStart(handle);
  const length = cache.keyEnd(handle) - start;
  const isOf =
    length >= prefix.length &&
    keys.compare(prefix, 0, prefix.length, start, start + prefix.length) === 0 &&
    (length === prefix.length || keys[start + prefix.length] === comma);
  if (isOf) return;
  // Bytes that are no UTF-8 are in keys as they are.
  const name = decodeSeriesKey(keys, start, start + length);
  if (name.measurement !== measurement) {
    throw new WireError('a series is of another measurement');
  }
}

function readColumn(reader: WireReader, rows: number, texts: TextsRead): PointColumn {
  const field = reader.string();
  const code = reader.u8();
  const type = fieldTypes[code & typeBits];
  if (type === undefined || code >= 32) throw new WireError('a field has no type');
  const isInteger = type === 'integer' || type === 'unsigned';
  const hasWide = (code & isWide) !== 0;
  if (hasWide && !isInteger) throw new WireError('a field is too wide');
  const present = code & hasPresent ? readBytes(reader, rows) : undefined;
  let count = rows;
  if (present !== undefined) {
    count = 0;
    for (const is of present) {
      if (is > 1) throw new WireError('a value is neither there nor missing');
      count += is;
    }
  }
  const wide = hasWide ? readSigned(reader, rows) : undefined;
  let numbers: Float64Array = noNumbers;
  if (type === 'string') numbers = readTexts(reader, rows, present, texts);
  else if (!hasWide) numbers = readFloats(reader, rows);
  else numbers = new Float64Array(rows);
  if (!hasWide && type !== 'float' && type !== 'string') expectWhole(type, numbers, present);
  return new ReadColumn({ field, type, numbers, wide, present, count });
}

const noNumbers = new Float64Array(0);

function expectWhole(
  type: 'integer' | 'unsigned' | 'boolean',
  numbers: Float64Array,
  present: Uint8Array | undefined,
): void {
  const least = type === 'integer' ? -Number.MAX_SAFE_INTEGER : 0;
  const most = type === 'boolean' ? 1 : Number.MAX_SAFE_INTEGER;
  for (let row = 0; row < numbers.length; row++) {
    if (present !== undefined && present[row] === 0) continue;
    const value = numbers[row]!;
    if (!Number.isInteger(value) || value < least || value > most) {
      throw new WireError(`a value is no ${type}`);
    }
  }
}

/** Numbers of the texts among those of the batch. */
function readTexts(
  reader: WireReader,
  rows: number,
  present: Uint8Array | undefined,
  texts: TextsRead,
): Float64Array {
  const lengths = readWords(reader, rows);
  const numbers = new Float64Array(rows);
  let bytes = 0;
  for (let row = 0; row < rows; row++) {
    if (present !== undefined && present[row] === 0) continue;
    bytes += lengths[row]!;
    if (bytes > reader.left) throw new WireError('a message ends too early');
    numbers[row] = texts.ends.push(texts.bytes + bytes) - 1;
  }
  const at = reader.skip(bytes);
  texts.parts.push(reader.buf.subarray(at, at + bytes));
  texts.bytes += bytes;
  return numbers;
}
