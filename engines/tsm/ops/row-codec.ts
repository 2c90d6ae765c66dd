// Rows of one measurement in the log, preceded by their new series and fields. Little-endian:
//
//   rows    = shard u32 | measurement u32
//             | new measurement? u8, if 1 its name text
//             | fields u32, each: number u32 | type u8 | name text                 new ones
//             | series u32, if any: first number u32, each: hash u32 | key text     new ones
//             | rows u32 | numbers | times | columns u32, each a column | bytes u32 | bytes of all strings
//   numbers = 2 or 4 u8 | u16* or u32*                              the series of each row
//   times   = 0 u8 | f64*
//           | 1 u8 | runs u32 | rows of each run u32* | times f64*  many rows of one time
//   column  = field u32 | type u8 | presence | values
//   presence = 0 u8                                                 every row has a value
//           | 1 u8 | count u32 | a bit a row
//           | 2 u8 | count u32 | rows u32*
//   values  = form u8 | as many as are present                      head/packed-column.ts
//           | 1, 2 or 4 u8 | the lengths of as many strings, in as many bytes each
//
// Values are as they are in memory, in the narrowest form that is found on the way: most integers and all
// booleans take a byte or two. More work than a copy and a look at each value is not worth it.

import type { Column } from '../../../universal-row/series/column.ts';
import {
  type FieldType,
  fieldTypeCodes,
  fieldTypes,
} from '../../../universal-row/series/field-type.ts';
import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import { Form, formBytes, narrowest, PackedColumn } from '../head/packed-column.ts';
import type { HeadTexts } from '../parts.ts';
import type { Scratch } from './scratch.ts';
import { putArray, putText, putU32, putU8, type OpReader } from './op-codec.ts';

/** A column to encode: of a batch or of an export. */
export type SourceColumn = Pick<Column, 'type' | 'numbers' | 'wide' | 'present'>;

const Presence = { all: 0, bits: 1, rows: 2 } as const;
const Times = { each: 0, runs: 1 } as const;
/** Fewer than one row in so many: their numbers are shorter than a bit a row. */
const listRatio = 32;

export function putSeriesNumbers(
  into: RecordBatchWriter,
  scratch: Scratch,
  series: Uint32Array,
  rows: number,
  seriesCount: number,
): void {
  if (seriesCount > 0x1_0000) {
    putU8(into, 4);
    putArray(into, series, rows);
    return;
  }
  const narrow = scratch.u16(rows);
  for (let i = 0; i < rows; i++) narrow[i] = series[i]!;
  putU8(into, 2);
  putArray(into, narrow, rows);
}

export function putTimes(
  into: RecordBatchWriter,
  scratch: Scratch,
  times: Float64Array,
  rows: number,
): void {
  let runs = 1;
  for (let i = 1; i < rows; i++) if (times[i] !== times[i - 1]) runs++;
  if (runs * 12 >= rows * 8) {
    putU8(into, Times.each);
    putArray(into, times, rows);
    return;
  }
  const lengths = scratch.u32(runs);
  const starts = scratch.f64(runs);
  let run = 0;
  let start = 0;
  for (let i = 1; i <= rows; i++) {
    if (i < rows && times[i] === times[start]) continue;
    lengths[run] = i - start;
    starts[run++] = times[start]!;
    start = i;
  }
  putU8(into, Times.runs);
  putU32(into, runs);
  putArray(into, lengths, runs);
  putArray(into, starts, runs);
}

/**
 * One column of the rows `selected`, or of the first `rows` when that is undefined. Returns how many of
 * them have a value; without any nothing is put.
 */
export function putColumn(
  into: RecordBatchWriter,
  scratch: Scratch,
  field: number,
  column: SourceColumn,
  rows: number,
  selected: Uint32Array | undefined,
  texts: HeadTexts,
): number {
  const { type, present } = column;
  // Positions in the column, and which rows of the entry they are; undefined when both are all rows.
  let from = selected;
  let to: Uint32Array | undefined;
  let count = rows;
  if (present !== undefined) {
    const there = scratch.u32(rows);
    to = scratch.u32(rows);
    count = 0;
    for (let i = 0; i < rows; i++) {
      const at = selected === undefined ? i : selected[i]!;
      if (present[at] !== 1) continue;
      there[count] = at;
      to[count++] = i;
    }
    if (count === 0) return 0;
    from = there;
    if (count === rows) {
      to = undefined;
      from = selected;
    }
  }
  putU32(into, field);
  putU8(into, fieldTypeCodes[type]);
  putPresence(into, scratch, to, count, rows);
  if (type === 'string') putLengths(into, scratch, column, from, count, texts);
  else putValues(into, scratch, column, from, count);
  return count;
}

function putPresence(
  into: RecordBatchWriter,
  scratch: Scratch,
  rowsThere: Uint32Array | undefined,
  count: number,
  rows: number,
): void {
  if (rowsThere === undefined) {
    putU8(into, Presence.all);
    return;
  }
  if (count * listRatio < rows) {
    putU8(into, Presence.rows);
    putU32(into, count);
    putArray(into, rowsThere, count);
    return;
  }
  const bits = scratch.bytes((rows + 7) >>> 3).fill(0);
  for (let k = 0; k < count; k++) {
    const row = rowsThere[k]!;
    bits[row >>> 3]! |= 1 << (row & 7);
  }
  putU8(into, Presence.bits);
  putU32(into, count);
  putArray(into, bits, bits.length);
}

function putValues(
  into: RecordBatchWriter,
  scratch: Scratch,
  column: SourceColumn,
  from: Uint32Array | undefined,
  count: number,
): void {
  const { type, wide } = column;
  if (wide !== undefined) {
    const bits = new BigInt64Array(wide.buffer, wide.byteOffset, wide.length);
    let values = bits;
    if (from !== undefined) {
      values = scratch.values(Form.i64, count) as BigInt64Array;
      for (let k = 0; k < count; k++) values[k] = bits[from[k]!]!;
    }
    putU8(into, Form.i64);
    putArray(into, values, count);
    return;
  }
  let numbers = column.numbers;
  if (from !== undefined) {
    const all = numbers;
    numbers = scratch.f64(count);
    for (let k = 0; k < count; k++) numbers[k] = all[from[k]!]!;
  }
  const form =
    type === 'float' ? Form.f64 : type === 'boolean' ? Form.i8 : narrowest(numbers, count);
  putU8(into, form);
  if (form === Form.f64) {
    putArray(into, numbers, count);
    return;
  }
  putNarrow(into, scratch, form, numbers, count);
}

/** One loop for each kind of array: a loop that meets all of them is several times slower. */
function putNarrow(
  into: RecordBatchWriter,
  scratch: Scratch,
  form: Form,
  numbers: Float64Array,
  count: number,
): void {
  const narrow = scratch.values(form, count);
  if (form === Form.i8) {
    const values = narrow as Int8Array;
    for (let k = 0; k < count; k++) values[k] = numbers[k]!;
  } else if (form === Form.i16) {
    const values = narrow as Int16Array;
    for (let k = 0; k < count; k++) values[k] = numbers[k]!;
  } else {
    const values = narrow as Int32Array;
    for (let k = 0; k < count; k++) values[k] = numbers[k]!;
  }
  putArray(into, narrow, count);
}

function putLengths(
  into: RecordBatchWriter,
  scratch: Scratch,
  column: SourceColumn,
  from: Uint32Array | undefined,
  count: number,
  texts: HeadTexts,
): void {
  const lengths = scratch.u32(count);
  let longest = 0;
  for (let k = 0; k < count; k++) {
    const n = column.numbers[from === undefined ? k : from[k]!]!;
    const length = texts.textEnds[n]! - (n === 0 ? 0 : texts.textEnds[n - 1]!);
    lengths[k] = length;
    if (length > longest) longest = length;
  }
  const bytes = longest < 0x100 ? 1 : longest < 0x1_0000 ? 2 : 4;
  putU8(into, bytes);
  if (bytes === 4) {
    putArray(into, lengths, count);
    return;
  }
  const narrow = bytes === 1 ? scratch.bytes(count) : scratch.u16(count);
  for (let k = 0; k < count; k++) narrow[k] = lengths[k]!;
  putArray(into, narrow, count);
}

/** The strings of a column, in the order of its lengths. They come when all columns have been put. */
export function putStrings(
  into: RecordBatchWriter,
  column: SourceColumn,
  rows: number,
  selected: Uint32Array | undefined,
  texts: HeadTexts,
): void {
  for (let i = 0; i < rows; i++) {
    const at = selected === undefined ? i : selected[i]!;
    if (column.present !== undefined && column.present[at] !== 1) continue;
    const n = column.numbers[at]!;
    const start = n === 0 ? 0 : texts.textEnds[n - 1]!;
    const end = texts.textEnds[n]!;
    into.reserve(end - start);
    texts.text.copy(into.buf, into.pos, start, end);
    into.pos += end - start;
  }
}

export function putNewField(
  into: RecordBatchWriter,
  number: number,
  type: FieldType,
  name: string,
): void {
  putU32(into, number);
  putU8(into, fieldTypeCodes[type]);
  putText(into, name);
}

/** The rows of one op, in memory of the reader. */
export interface EncodedRows {
  rows: number;
  series: Uint32Array;
  times: Float64Array;
  /** By number of the field. */
  columns: (PackedColumn | undefined)[];
  texts: HeadTexts;
}

/** Reads the part after the new series. `fields` is the measurement's number of fields. */
export function readRows(reader: OpReader, fields: number): EncodedRows {
  const rows = reader.u32();
  const series = readSeriesNumbers(reader, rows);
  const times = readTimes(reader, rows);
  const columns: (PackedColumn | undefined)[] = Array(fields).fill(undefined);
  const ends: TextEnds = { lengths: [], total: 0 };
  for (let left = reader.u32(); left > 0; left--) {
    const number = reader.u32();
    if (number >= fields) reader.damaged(`no field ${number}`);
    columns[number] = readColumn(reader, rows, ends);
  }
  const textBytes = reader.u32();
  const start = reader.skip(textBytes);
  const text = reader.buf.subarray(start, start + textBytes);
  const textEnds = cumulated(reader, ends);
  if ((textEnds[textEnds.length - 1] ?? 0) !== textBytes) reader.damaged('strings');
  return { rows, series, times, columns, texts: { text, textEnds } };
}

function readSeriesNumbers(reader: OpReader, rows: number): Uint32Array {
  const bytes = reader.u8();
  if (bytes === 4) return reader.u32Array(rows);
  if (bytes !== 2) reader.damaged('series');
  const narrow = reader.u16Array(rows);
  const series = reader.scratch.u32(rows);
  for (let i = 0; i < rows; i++) series[i] = narrow[i]!;
  return series;
}

function readTimes(reader: OpReader, rows: number): Float64Array {
  const kind = reader.u8();
  if (kind === Times.each) return reader.f64Array(rows);
  if (kind !== Times.runs) reader.damaged('times');
  const runs = reader.u32();
  const lengths = reader.u32Array(runs);
  const starts = reader.f64Array(runs);
  const times = reader.scratch.f64(rows);
  let at = 0;
  for (let run = 0; run < runs; run++) {
    const end = at + lengths[run]!;
    if (end > rows) reader.damaged('times');
    times.fill(starts[run]!, at, end);
    at = end;
  }
  if (at !== rows) reader.damaged('times');
  return times;
}

/** The lengths of strings, column by column. */
interface TextEnds {
  lengths: (Uint8Array | Uint16Array | Uint32Array)[];
  total: number;
}

function readColumn(reader: OpReader, rows: number, ends: TextEnds): PackedColumn {
  const type = fieldTypes[reader.u8()];
  if (type === undefined) return reader.damaged('type of field');
  const there = readPresence(reader, rows);
  const count = there?.length ?? rows;
  if (type !== 'string') {
    const form = reader.u8();
    if (form >= formBytes.length) reader.damaged('form of values');
    const values = reader.values(form as Form, count);
    return new PackedColumn(type, form as Form, values, count, there, rows);
  }
  const bytes = reader.u8();
  if (bytes !== 1 && bytes !== 2 && bytes !== 4) reader.damaged('lengths of strings');
  const lengths =
    bytes === 1
      ? reader.bytes(count)
      : bytes === 2
        ? reader.u16Array(count)
        : reader.u32Array(count);
  const values = reader.scratch.values(Form.i32, count) as Int32Array;
  for (let k = 0; k < count; k++) values[k] = ends.total + k;
  ends.lengths.push(lengths);
  ends.total += count;
  return new PackedColumn(type, Form.i32, values, count, there, rows);
}

/** Rows with a value, ascending; undefined for all. */
function readPresence(reader: OpReader, rows: number): Uint32Array | undefined {
  const kind = reader.u8();
  if (kind === Presence.all) return undefined;
  const count = reader.u32();
  if (kind > Presence.rows || count > rows) reader.damaged('presence');
  if (kind === Presence.rows) {
    const listed = reader.u32Array(count);
    for (let k = 0; k < count; k++) {
      if (listed[k]! >= rows || (k > 0 && listed[k]! <= listed[k - 1]!)) reader.damaged('presence');
    }
    return listed;
  }
  const bits = reader.bytes((rows + 7) >>> 3);
  const there = reader.scratch.u32(count);
  let found = 0;
  for (let row = 0; row < rows; row++) {
    if (((bits[row >>> 3]! >>> (row & 7)) & 1) === 1) there[found++] = row;
  }
  if (found !== count) reader.damaged('presence');
  return there;
}

function cumulated(reader: OpReader, { lengths, total }: TextEnds): Uint32Array {
  const ends = reader.scratch.u32(total);
  let at = 0;
  let end = 0;
  for (const some of lengths) {
    for (let k = 0; k < some.length; k++) {
      end += some[k]!;
      ends[at++] = end;
    }
  }
  return ends;
}
