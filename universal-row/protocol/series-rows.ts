// Rows and summaries of series between a pod of time series and a gateway: docs/pod-protocol.md has the form.

import type { BlockSummary, Column, ColumnSummary, Scalar, SeriesRows } from '../series/column.ts';
import { type FieldType, fieldTypeCodes, fieldTypes } from '../series/field-type.ts';
import { readBytes, readFloats, readSigned, readUnsigned, writeNumbers } from './typed-bytes.ts';
import { WireError, type WireReader, type WireWriter } from './wire.ts';

/** In the place of a column's type: no row has the field. */
const noColumn = 255;
const isWide = 8;
const hasPresent = 16;
const typeBits = 7;

/** Tags of scalars. */
const scalarTags = { none: 0, number: 1, signed: 2, unsigned: 3, text: 4 } as const;

/**
 * The row before which rows from `from` on are to be cut, so that they take about `maxBytes`: at least one more than
 * `from`.
 */
export function endOfPiece({ columns, count }: SeriesRows, from: number, maxBytes: number): number {
  let rowBytes = 8;
  const texts: (readonly string[])[] = [];
  for (const column of columns) {
    if (column === undefined) continue;
    rowBytes += column.present === undefined ? 8 : 9;
    if (column.texts !== undefined) texts.push(column.texts);
  }
  if (texts.length === 0) {
    return Math.min(count, from + Math.max(1, Math.floor(maxBytes / rowBytes)));
  }
  let row = from;
  for (let bytes = 0; row < count && (row === from || bytes < maxBytes); row++) {
    bytes += rowBytes;
    for (const column of texts) bytes += column[row]?.length ?? 0;
  }
  return row;
}

/** Writes rows `[from, to)`, without their kind. */
export function writeRows(writer: WireWriter, rows: SeriesRows, from: number, to: number): void {
  writer.signed(rows.base);
  writer.varint(to - from);
  writeNumbers(writer, rows.times, from, to);
  for (const column of rows.columns) {
    if (column === undefined) writer.u8(noColumn);
    else writeColumn(writer, column, from, to);
  }
}

function writeColumn(writer: WireWriter, column: Column, from: number, to: number): void {
  const { type, numbers, wide, texts, present } = column;
  const hasWide = wide !== undefined && (type === 'integer' || type === 'unsigned');
  writer.u8(fieldTypeCodes[type] | (hasWide ? isWide : 0) | (present ? hasPresent : 0));
  if (present !== undefined) writeNumbers(writer, present, from, to);
  if (type !== 'string') {
    writeNumbers(writer, hasWide ? wide : numbers, from, to);
    return;
  }
  for (let row = from; row < to; row++) {
    writer.string(present === undefined || present[row] === 1 ? texts![row]! : '');
  }
}

/** `fields`: of the request. */
export function readRows(reader: WireReader, fields: number): SeriesRows {
  const base = reader.signed();
  const count = reader.varint();
  const times = readFloats(reader, count);
  for (let row = 0; row < count; row++) {
    if (!Number.isSafeInteger(times[row])) throw new WireError('a row has no time');
  }
  const columns: (Column | undefined)[] = [];
  for (let i = 0; i < fields; i++) columns.push(readColumn(reader, count));
  return { kind: 'rows', base, times, count, columns };
}

const noNumbers = new Float64Array(0);

function readColumn(reader: WireReader, count: number): Column | undefined {
  const code = reader.u8();
  if (code === noColumn) return undefined;
  const type = typeOf(code & typeBits);
  if (code >= 32) throw new WireError('a column has no type');
  const present = code & hasPresent ? readBytes(reader, count) : undefined;
  if (present?.some((is) => is > 1) === true) {
    throw new WireError('a value is neither there nor missing');
  }
  if (code & isWide) {
    if (type !== 'integer' && type !== 'unsigned') throw new WireError('a column is too wide');
    const wide = type === 'integer' ? readSigned(reader, count) : readUnsigned(reader, count);
    return { type, numbers: noNumbers, wide, texts: undefined, present };
  }
  if (type !== 'string') {
    const numbers = readFloats(reader, count);
    return { type, numbers, wide: undefined, texts: undefined, present };
  }
  const texts: string[] = [];
  for (let row = 0; row < count; row++) texts.push(reader.string());
  return { type, numbers: noNumbers, wide: undefined, texts, present };
}

function typeOf(code: number): FieldType {
  const type = fieldTypes[code];
  if (type === undefined) throw new WireError('a column has no type');
  return type;
}

/** Writes a summary, without its kind. */
export function writeSummary(writer: WireWriter, summary: BlockSummary): void {
  writer.signed(summary.base);
  writer.f64(summary.minTime);
  writer.f64(summary.maxTime);
  writer.varint(summary.count);
  for (const column of summary.columns) {
    if (column === undefined) {
      writer.u8(noColumn);
      continue;
    }
    writer.u8(fieldTypeCodes[column.type]);
    writer.varint(column.count);
    writer.f64(column.firstTime);
    writer.f64(column.lastTime);
    writeScalar(writer, column.first);
    writeScalar(writer, column.last);
    writeScalar(writer, column.min);
    writeScalar(writer, column.max);
    writeScalar(writer, column.sum);
  }
}

/** `fields`: of the request. */
export function readSummary(reader: WireReader, fields: number): BlockSummary {
  const base = reader.signed();
  const minTime = reader.f64();
  const maxTime = reader.f64();
  const count = reader.varint();
  const columns: (ColumnSummary | undefined)[] = [];
  for (let i = 0; i < fields; i++) columns.push(readColumnSummary(reader));
  return { kind: 'summary', base, minTime, maxTime, count, columns };
}

function readColumnSummary(reader: WireReader): ColumnSummary | undefined {
  const code = reader.u8();
  if (code === noColumn) return undefined;
  const type = typeOf(code);
  const count = reader.varint();
  const firstTime = reader.f64();
  const lastTime = reader.f64();
  const first = readScalar(reader);
  const last = readScalar(reader);
  const min = readScalar(reader);
  const max = readScalar(reader);
  const sum = readScalar(reader);
  if (first === undefined || last === undefined || typeof sum === 'string') {
    throw new WireError('a summary lacks a value');
  }
  return { type, count, firstTime, lastTime, first, last, min, max, sum };
}

const mostSigned = 2n ** 63n;

function writeScalar(writer: WireWriter, value: Scalar | undefined): void {
  if (value === undefined) writer.u8(scalarTags.none);
  else if (typeof value === 'number') {
    writer.u8(scalarTags.number);
    writer.f64(value);
  } else if (typeof value === 'string') {
    writer.u8(scalarTags.text);
    writer.string(value);
  } else {
    const isSigned = value < mostSigned;
    writer.u8(isSigned ? scalarTags.signed : scalarTags.unsigned);
    writer.i64(isSigned ? value : BigInt.asIntN(64, value));
  }
}

function readScalar(reader: WireReader): Scalar | undefined {
  switch (reader.u8()) {
    case scalarTags.none:
      return undefined;
    case scalarTags.number:
      return reader.f64();
    case scalarTags.signed:
      return reader.i64();
    case scalarTags.unsigned:
      return BigInt.asUintN(64, reader.i64());
    case scalarTags.text:
      return reader.string();
    default:
      throw new WireError('a summary has no such value');
  }
}
