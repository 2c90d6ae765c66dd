// Summary stored for a column, so that aggregates over a whole block decode nothing:
//
//   boolean  u8: min | max << 1 | first << 2 | last << 3
//   string   nothing when they are long, else first text | last text
//   numeric  form u8 | …
//     form & 31 = 0 to 15   min svarint | max - min, first - min, last - min uvarint; all times 10^form
//                 16        min, max, first, last: doubles
//                 17        min, max, first, last: 8-byte integers
//     form & 32: the sum is 8 bytes, a double or an integer; else svarint, times 10^form

import type { Column, ColumnSummary, Scalar } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { ByteReader } from '../encoding/byte-reader.ts';
import type { ByteWriter } from '../encoding/byte-writer.ts';
import { corrupt } from '../encoding/damage.ts';
import { toDecimals } from '../encoding/floats.ts';

const doubles = 16;
const longs = 17;
const longSum = 32;
const maxExponent = 15;
/** Largest total length of the first and the last text, in UTF-16 units. */
const maxTextUnits = 64;
const twoTo32 = 0x1_0000_0000;
const powersOfTen = Float64Array.from({ length: maxExponent + 1 }, (_, e) => 10 ** e);

/** Summary of the first `rows` rows; at least one must have a value. */
export function summarise(column: Column, times: Float64Array, rows: number): ColumnSummary {
  const { type, present } = column;
  let firstRow = 0;
  let lastRow = rows - 1;
  let count = rows;
  if (present !== undefined) {
    while (present[firstRow] === 0) firstRow++;
    while (present[lastRow] === 0) lastRow--;
    count = 0;
    for (let i = firstRow; i <= lastRow; i++) count += present[i]!;
  }
  const known = {
    type,
    count,
    first: scalarAt(column, firstRow),
    firstTime: times[firstRow]!,
    last: scalarAt(column, lastRow),
    lastTime: times[lastRow]!,
  };
  if (type === 'string') return { ...known, min: undefined, max: undefined, sum: undefined };
  if (column.wide !== undefined) return { ...known, ...wideAggregates(column, rows) };
  return { ...known, ...aggregates(column, firstRow, lastRow, count) };
}

type Aggregates = Pick<ColumnSummary, 'min' | 'max' | 'sum'>;

function aggregates(column: Column, firstRow: number, lastRow: number, count: number): Aggregates {
  const { type, numbers, present } = column;
  let min = numbers[firstRow]!;
  let max = min;
  let sum = 0;
  for (let i = firstRow; i <= lastRow; i++) {
    if (present !== undefined && present[i] === 0) continue;
    const v = numbers[i]!;
    if (v < min) min = v;
    if (v > max) max = v;
    sum += v;
  }
  if (type === 'boolean') return { min, max, sum: undefined };
  const exact = type === 'float' || Math.max(-min, max) * count <= Number.MAX_SAFE_INTEGER;
  return { min, max, sum: exact ? sum : exactSum(column, firstRow, lastRow) };
}

/** Sum of safe integers, in two halves, each of which stays exact. */
function exactSum(column: Column, firstRow: number, lastRow: number): number | bigint {
  const { type, numbers, present } = column;
  let high = 0;
  let low = 0;
  for (let i = firstRow; i <= lastRow; i++) {
    if (present !== undefined && present[i] === 0) continue;
    const v = numbers[i]!;
    const h = Math.floor(v / twoTo32);
    high += h;
    low += v - h * twoTo32;
  }
  return asScalar(wrapped(BigInt(high) * BigInt(twoTo32) + BigInt(low), type));
}

function wideAggregates(column: Column, rows: number): Aggregates {
  const { type, present } = column;
  const wide = column.wide!;
  let min: bigint | undefined;
  let max: bigint | undefined;
  let sum = 0n;
  for (let i = 0; i < rows; i++) {
    if (present !== undefined && present[i] === 0) continue;
    const v = wide[i]!;
    if (min === undefined || v < min) min = v;
    if (max === undefined || v > max) max = v;
    sum += v;
  }
  return { min: asScalar(min ?? 0n), max: asScalar(max ?? 0n), sum: asScalar(wrapped(sum, type)) };
}

function wrapped(sum: bigint, type: FieldType): bigint {
  return type === 'unsigned' ? BigInt.asUintN(64, sum) : BigInt.asIntN(64, sum);
}

/** Small integers are numbers. */
function asScalar(value: bigint): number | bigint {
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}

function scalarAt(column: Column, row: number): Scalar {
  if (column.texts !== undefined) return column.texts[row]!;
  if (column.wide !== undefined) return asScalar(column.wide[row]!);
  return column.numbers[row]!;
}

/** Times, count and type are written elsewhere. */
export function writeSummary(out: ByteWriter, s: ColumnSummary): void {
  if (s.type === 'string') {
    const [first, last] = [s.first as string, s.last as string];
    if (first.length + last.length > maxTextUnits) return;
    out.text(first);
    out.text(last);
    return;
  }
  const four = [s.min, s.max, s.first, s.last] as (number | bigint)[];
  if (s.type === 'boolean') {
    out.u8(four.reduce<number>((bits, flag, i) => bits | (Number(flag) << i), 0));
    return;
  }
  const scaled = four.map(Number);
  const small = four.every((value) => typeof value === 'number');
  const exponent = small ? toDecimals(scaled, 4, scaledFour) : -1;
  if (exponent >= 0 && scaledFour[1]! - scaledFour[0]! <= Number.MAX_SAFE_INTEGER) {
    writeScaled(out, s.sum!, exponent, s.type);
    return;
  }
  if (s.type === 'float') {
    out.u8(doubles | longSum);
    for (const value of scaled) out.f64(value);
    out.f64(Number(s.sum));
    return;
  }
  out.u8(longs | longSum);
  for (const value of four) out.i64(BigInt(value));
  out.i64(BigInt(s.sum!));
}

const scaledFour = new Float64Array(4);
const scaledSum = new Float64Array(1);

function writeScaled(
  out: ByteWriter,
  sum: number | bigint,
  exponent: number,
  type: FieldType,
): void {
  const [min, max, first, last] = scaledFour as unknown as [number, number, number, number];
  // The sum has few decimals by luck: it is rounded at each addition.
  const decimals = typeof sum === 'number' ? toDecimals([sum], 1, scaledSum) : -1;
  const numerator = scaledSum[0]! * 10 ** (exponent - decimals);
  const fits =
    decimals >= 0 &&
    decimals <= exponent &&
    Number.isSafeInteger(numerator) &&
    numerator / 10 ** exponent === sum;
  out.u8(fits ? exponent : exponent | longSum);
  out.svarint(min);
  out.uvarint(max - min);
  out.uvarint(first - min);
  out.uvarint(last - min);
  if (fits) out.svarint(numerator);
  else if (type === 'float') out.f64(Number(sum));
  else out.i64(BigInt(sum));
}

/** Undefined when there is not enough on record. */
export function readSummary(
  from: ByteReader,
  type: FieldType,
  count: number,
  firstTime: number,
  lastTime: number,
): ColumnSummary | undefined {
  if (type === 'string') {
    if (from.left === 0) return undefined;
    const first = from.text();
    const last = from.text();
    const [min, max, sum] = [undefined, undefined, undefined];
    return { type, count, first, firstTime, last, lastTime, min, max, sum };
  }
  const form = from.u8();
  if (type === 'boolean') {
    const min = form & 1;
    const max = (form >> 1) & 1;
    const first = (form >> 2) & 1;
    const last = (form >> 3) & 1;
    return { type, count, first, firstTime, last, lastTime, min, max, sum: undefined };
  }
  const kind = form & ~longSum;
  if (kind > maxExponent) return readLong(from, kind, type, count, firstTime, lastTime);
  const power = powersOfTen[kind]!;
  const least = from.svarint();
  const min = least / power;
  const max = (least + from.uvarint()) / power;
  const first = (least + from.uvarint()) / power;
  const last = (least + from.uvarint()) / power;
  const sum = (form & longSum) === 0 ? from.svarint() / power : readNumber(from, type);
  return { type, count, first, firstTime, last, lastTime, min, max, sum };
}

function readLong(
  from: ByteReader,
  kind: number,
  type: FieldType,
  count: number,
  firstTime: number,
  lastTime: number,
): ColumnSummary {
  if (kind !== (type === 'float' ? doubles : longs)) corrupt('a summary has an unknown form');
  const min = readNumber(from, type);
  const max = readNumber(from, type);
  const first = readNumber(from, type);
  const last = readNumber(from, type);
  const sum = readNumber(from, type);
  return { type, count, first, firstTime, last, lastTime, min, max, sum };
}

function readNumber(from: ByteReader, type: FieldType): number | bigint {
  if (type === 'float') return from.f64();
  const value = from.i64();
  return asScalar(type === 'unsigned' ? BigInt.asUintN(64, value) : value);
}
