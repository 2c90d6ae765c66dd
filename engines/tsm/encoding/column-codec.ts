// A column of a block:
//
//   code u8, plus 128 when rows lack a value
//   | presence: whole numbers, 1 for a row with a value, if so
//   | what the code says, of the values alone
//
//   codes 0 to 9   integers.ts       codes 32 to 34   strings.ts
//         16 to 19 floats.ts         code  40         booleans: whole numbers 0 and 1
//
// Timestamps are integers, all of them present.

import type { Column } from '../../../universal-row/series/column.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { ByteReader } from './byte-reader.ts';
import type { ByteWriter } from './byte-writer.ts';
import { corrupt } from './damage.ts';
import { decodeFloats, encodeFloats } from './floats.ts';
import {
  decodeCoded,
  decodeIntegers,
  decodeWideIntegers,
  encodeIntegers,
  encodeWideIntegers,
  isWide,
  type WideArray,
} from './integers.ts';
import { decodeStrings, encodeStrings } from './strings.ts';
import { decodeWholes, encodeWholes } from './whole-numbers.ts';

const sparse = 0x80;
const booleanCode = 40;

let dense = new Float64Array(4096);
let flags = new Float64Array(4096);

/** Writes `count` of the rows from `start` on; at least one has a value. */
export function encodeColumn(out: ByteWriter, column: Column, start: number, count: number): void {
  const at = out.length;
  const { present } = column;
  if (present === undefined || !present.subarray(start, start + count).includes(0)) {
    encodeValues(out, column, start, count, undefined);
    return;
  }
  if (count > flags.length) flags = new Float64Array(count);
  for (let i = 0; i < count; i++) flags[i] = present[start + i]!;
  // The code comes before the presence, and is known after it.
  out.u8(0);
  encodeWholes(out, flags, count);
  const codeAt = out.length;
  encodeValues(out, column, start, count, present);
  const code = out.buffer[codeAt]!;
  out.buffer[at] = code | sparse;
  out.buffer.copyWithin(codeAt, codeAt + 1, out.length);
  out.length--;
}

function encodeValues(
  out: ByteWriter,
  column: Column,
  start: number,
  count: number,
  present: Uint8Array | undefined,
): void {
  const { type, wide, texts } = column;
  if (type === 'string') {
    const some = (texts ?? []).slice(start, start + count);
    const values = present === undefined ? some : some.filter((_, i) => present[start + i] === 1);
    encodeStrings(out, values, values.length);
    return;
  }
  if (wide !== undefined && type !== 'float' && type !== 'boolean') {
    const some = wide.subarray(start, start + count);
    const values = present === undefined ? some : some.filter((_, i) => present[start + i] === 1);
    encodeWideIntegers(out, values, values.length);
    return;
  }
  let values = start === 0 ? column.numbers : column.numbers.subarray(start, start + count);
  let n = count;
  if (present !== undefined) {
    n = keepPresent(values, present, start, count);
    values = dense;
  }
  if (type === 'float') encodeFloats(out, values, n);
  else if (type !== 'boolean') encodeIntegers(out, values, n);
  else {
    out.u8(booleanCode);
    encodeWholes(out, values, n);
  }
}

function keepPresent(
  values: Float64Array,
  present: Uint8Array,
  start: number,
  count: number,
): number {
  if (count > dense.length) dense = new Float64Array(count);
  let n = 0;
  for (let i = 0; i < count; i++) if (present[start + i] === 1) dense[n++] = values[i]!;
  return n;
}

/** Reusable buffer for decoded columns. The arrays grow on demand. */
export class ColumnBuffer {
  #numbers = new Float64Array(0);
  #present = new Uint8Array(0);
  #signed = new BigInt64Array(0);
  #unsigned = new BigUint64Array(0);

  numbers(n: number): Float64Array {
    if (n > this.#numbers.length) this.#numbers = new Float64Array(n);
    return this.#numbers;
  }

  present(n: number): Uint8Array {
    if (n > this.#present.length) this.#present = new Uint8Array(n);
    return this.#present;
  }

  wide(n: number, type: FieldType): WideArray {
    if (type === 'unsigned') {
      if (n > this.#unsigned.length) this.#unsigned = new BigUint64Array(n);
      return this.#unsigned;
    }
    if (n > this.#signed.length) this.#signed = new BigInt64Array(n);
    return this.#signed;
  }

  get bytes(): number {
    return (
      this.#numbers.byteLength +
      this.#present.byteLength +
      this.#signed.byteLength +
      this.#unsigned.byteLength
    );
  }
}

const none = new Float64Array(0);

/** Reads `rows` rows, which must be all there is. The column is in the buffer, until its next use. */
export function decodeColumn(
  from: ByteReader,
  type: FieldType,
  rows: number,
  into: ColumnBuffer,
): Column {
  const code = from.u8();
  const present = (code & sparse) !== 0 ? decodePresence(from, rows, into) : undefined;
  const column = decodeValues(from, code & ~sparse, type, rows, present, into);
  from.finish();
  return column;
}

function decodePresence(from: ByteReader, rows: number, into: ColumnBuffer): Uint8Array {
  const present = into.present(rows);
  if (rows > flags.length) flags = new Float64Array(rows);
  decodeWholes(from, flags, 0, rows);
  let wrong = 0;
  for (let i = 0; i < rows; i++) {
    const flag = flags[i]!;
    if (flag > 1) wrong++;
    present[i] = flag;
  }
  if (wrong > 0) corrupt('a row is neither with a value nor without');
  return present;
}

function decodeValues(
  from: ByteReader,
  code: number,
  type: FieldType,
  rows: number,
  present: Uint8Array | undefined,
  into: ColumnBuffer,
): Column {
  const n = present === undefined ? rows : countPresent(present, rows);
  if (type === 'string') {
    const values = decodeStrings(from, code, n);
    const texts = present === undefined ? values : spread(values, present, rows);
    return { type, numbers: none, wide: undefined, texts, present };
  }
  if (isWide(code) && (type === 'integer' || type === 'unsigned')) {
    const wide = into.wide(rows, type);
    decodeWideIntegers(from, code, wide, n);
    if (present !== undefined) scatter(wide, present, rows, n);
    return { type, numbers: none, wide, texts: undefined, present };
  }
  const numbers = into.numbers(rows);
  if (type === 'float') decodeFloats(from, code, numbers, n);
  else if (type !== 'boolean') decodeCoded(from, code, numbers, n);
  else if (code === booleanCode) decodeWholes(from, numbers, 0, n);
  else corrupt('booleans have an unknown encoding');
  if (present !== undefined) scatter(numbers, present, rows, n);
  return { type, numbers, wide: undefined, texts: undefined, present };
}

function countPresent(present: Uint8Array, rows: number): number {
  let n = 0;
  for (let i = 0; i < rows; i++) n += present[i]!;
  return n;
}

function spread(values: readonly string[], present: Uint8Array, rows: number): string[] {
  const texts: string[] = [];
  for (let i = 0, k = 0; i < rows; i++) texts.push(present[i] === 1 ? values[k++]! : '');
  return texts;
}

/** Moves the first `n` values to the rows they are of, the last one first. */
function scatter<T>(
  values: { [index: number]: T },
  present: Uint8Array,
  rows: number,
  n: number,
): void {
  // Once there are as many values as rows left, all are in their places.
  for (let i = rows - 1, k = n; k <= i; i--) if (present[i] === 1) values[i] = values[--k]!;
}

export function encodeTimes(
  out: ByteWriter,
  times: Float64Array,
  start: number,
  count: number,
): void {
  encodeIntegers(out, start === 0 ? times : times.subarray(start, start + count), count);
}

/** Reads `rows` times, which must be all there is. */
export function decodeTimes(from: ByteReader, rows: number, to: Float64Array): void {
  decodeIntegers(from, to, rows);
  from.finish();
}
