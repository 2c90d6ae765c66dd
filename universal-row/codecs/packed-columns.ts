// A column in bytes, for codecs whose own arrays cost a type and a name or an offset a value.
//
//   column = type u8 | values
//     float     f64 little-endian each
//     integer   i64 little-endian each
//     boolean   count v, then a bit each, lowest first
//     text      packed scalars, all strings
//     any       packed scalars

import { PackedReader, PackedWriter } from '../packed-scalars.ts';
import type { Column } from '../row.ts';

const columnTypes = [
  'float',
  'integer',
  'boolean',
  'text',
  'any',
] as const satisfies readonly Column['type'][];

export function packColumn(column: Column): Buffer {
  const writer = new PackedWriter(1 + 8 * column.values.length);
  writer.byte(columnTypes.indexOf(column.type));
  switch (column.type) {
    case 'float':
    case 'integer':
      writer.raw(littleEndian(column.values));
      break;
    case 'boolean':
      packBits(writer, column.values);
      break;
    case 'text':
    case 'any':
      writer.scalars(column.values);
      break;
  }
  return writer.finish();
}

/** Throws `RangeError`. */
export function unpackColumn(bytes: Uint8Array): Column {
  const reader = new PackedReader(bytes);
  const type = columnTypes[reader.byte()];
  switch (type) {
    case 'float':
      return { type, values: new Float64Array(alignedWords(reader)) };
    case 'integer':
      return { type, values: new BigInt64Array(alignedWords(reader)) };
    case 'boolean': {
      const values = unpackBits(reader);
      reader.finish();
      return { type, values };
    }
    case 'text': {
      const values = reader.scalars();
      reader.finish();
      if (!values.every((value) => typeof value === 'string')) {
        throw new RangeError('text column holds something else');
      }
      return { type, values };
    }
    case 'any': {
      const values = reader.scalars();
      reader.finish();
      return { type, values };
    }
    default:
      throw new RangeError('unknown type of column');
  }
}

const hostIsLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

function littleEndian(values: Float64Array | BigInt64Array): Buffer {
  const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return hostIsLittleEndian ? bytes : Buffer.from(bytes).swap64();
}

/** The rest of the bytes in memory of their own, where a typed array can begin. */
function alignedWords(reader: PackedReader): ArrayBuffer {
  const view = reader.view(reader.left);
  if (view.length % 8 !== 0) throw new RangeError('column is not whole words');
  const words = new ArrayBuffer(view.length);
  const bytes = Buffer.from(words);
  view.copy(bytes);
  if (!hostIsLittleEndian) bytes.swap64();
  return words;
}

function packBits(writer: PackedWriter, values: readonly boolean[]): void {
  writer.varint(values.length);
  for (let i = 0; i < values.length; i += 8) {
    let byte = 0;
    for (let bit = 0; bit < 8; bit++) if (values[i + bit]) byte |= 1 << bit;
    writer.byte(byte);
  }
}

function unpackBits(reader: PackedReader): boolean[] {
  const count = reader.varint();
  const bits = reader.view(Math.ceil(count / 8));
  return Array.from({ length: count }, (_, i) => (bits[i >> 3]! & (1 << (i & 7))) !== 0);
}
