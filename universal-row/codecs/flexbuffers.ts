// Rows as FlexBuffers, in which one field can be read without decoding the rest:
//
//   [ key, kind, version, ts, expireAt or null, value ]
//
// 32-bit integers are stored in their slot; other numbers and all bigints are indirect, so a number
// is told from a bigint by its type and no slot is wider than an offset. An array of a document
// begins with a null, which keeps it from becoming a typed vector: those of strings, as the library
// writes them, cannot be read back when a string contains NUL.

import { Builder } from 'flatbuffers/js/flexbuffers/builder.js';
import { PackedReader, PackedWriter } from '../packed-scalars.ts';
import { packValue, unpackValue } from '../packed-values.ts';
import { maxDocumentDepth, type Column, type DocumentValue } from '../row.ts';
import type { RowValue, URow } from '../row.ts';
import { RowValueError, checkScalar, type Scalar } from '../scalar.ts';
import {
  checkedAttributes,
  decodeRowKey,
  encodeRowKey,
  refusing,
  valueKinds,
  type RowCodec,
} from './codec.ts';
import { FlexReader, FlexType, type FlexValue } from './flexbuffers-reader.ts';
import { decodeName, decodeStringName, encodeName } from './names.ts';
import { packColumn, unpackColumn } from './packed-columns.ts';

const tag = 2;

const Part = { key: 0, kind: 1, version: 2, ts: 3, expireAt: 4, value: 5 } as const;

export const flexBuffersCodec: RowCodec = {
  name: 'flexbuffers',
  tag,

  encode(row: URow): Buffer {
    // Nothing is shared, so that every byte of a row is read once (see FlexReader).
    const builder = new Builder(2048, false, false, false);
    builder.startVector();
    addBytes(builder, encodeRowKey(row.key));
    builder.addInt(valueKinds.indexOf(row.value.kind));
    addScalar(builder, row.attrs.version);
    addScalar(builder, row.attrs.ts);
    addScalar(builder, row.attrs.expireAt ?? null);
    addValue(builder, row.value);
    builder.end();
    const body = builder.finish();
    const out = Buffer.allocUnsafe(1 + body.length);
    out[0] = tag;
    out.set(body, 1);
    return out;
  },

  decode(bytes: Uint8Array): URow {
    return refusing('FlexBuffers', () => {
      const reader = open(bytes);
      const parts = reader.vector(reader.root());
      if (parts.length !== 6) throw new RangeError('not a row');
      return {
        key: decodeRowKey(reader.blob(parts[Part.key]!)),
        value: readValue(reader, readKind(reader, parts[Part.kind]!), parts[Part.value]!),
        attrs: checkedAttributes(
          readScalar(reader, parts[Part.version]!),
          readScalar(reader, parts[Part.ts]!),
          readScalar(reader, parts[Part.expireAt]!),
        ),
      };
    });
  },
};

/**
 * One field of a serialized map, one column, or one top-level field of a document, found without
 * decoding the others; undefined when there is none. Throws `CodecError`.
 */
export function readField(bytes: Uint8Array, name: Scalar): DocumentValue | Column | undefined {
  return refusing('FlexBuffers', () => {
    const reader = open(bytes);
    const root = reader.root();
    const kind = readKind(reader, reader.at(root, Part.kind));
    const value = reader.at(root, Part.value);
    if (value.type !== FlexType.map) return undefined;
    const field = reader.find(value, Buffer.from(encodeName(name)));
    if (field === undefined) return undefined;
    if (kind === 'columns') return unpackColumn(reader.blob(field));
    return kind === 'map' ? readScalar(reader, field) : readDocument(reader, field, 1);
  });
}

function open(bytes: Uint8Array): FlexReader {
  if (bytes[0] !== tag) throw new RangeError('not FlexBuffers');
  return new FlexReader(bytes, 1);
}

function addValue(builder: Builder, value: RowValue): void {
  switch (value.kind) {
    case 'primitive':
      return addScalar(builder, value.value);
    case 'map':
      builder.startMap();
      for (const [field, fieldValue] of value.entries) {
        builder.addKey(encodeName(field));
        addScalar(builder, fieldValue);
      }
      return builder.end();
    case 'columns':
      builder.startMap();
      for (const [name, column] of value.columns) {
        builder.addKey(encodeName(name));
        addBytes(builder, packColumn(column));
      }
      return builder.end();
    case 'document':
      return addDocument(builder, value.root, 0);
    case 'set':
    case 'ranked':
    case 'array':
    case 'stream': {
      const writer = new PackedWriter();
      packValue(writer, value);
      return addBytes(builder, writer.finish());
    }
  }
}

function addDocument(builder: Builder, value: DocumentValue, depth: number): void {
  if (depth > maxDocumentDepth) throw new RowValueError('document nested too deep');
  if (Array.isArray(value)) {
    builder.startVector();
    builder.add(null);
    for (const item of value as readonly DocumentValue[]) addDocument(builder, item, depth + 1);
    builder.end();
  } else if (value instanceof Map) {
    builder.startMap();
    for (const [name, field] of value as ReadonlyMap<string, DocumentValue>) {
      builder.addKey(encodeName(name));
      addDocument(builder, field, depth + 1);
    }
    builder.end();
  } else {
    addScalar(builder, value as Scalar);
  }
}

function addScalar(builder: Builder, value: Scalar): void {
  checkScalar(value);
  if (typeof value === 'number') {
    if ((value | 0) === value && !Object.is(value, -0)) builder.addInt(value);
    else builder.addFloat(value, true);
  } else if (typeof value === 'bigint') {
    // The library writes a 64-bit integer from a bigint, a narrower one from a number.
    const narrow = BigInt.asIntN(32, value) === value;
    builder.addInt(narrow ? Number(value) : (value as unknown as number), true);
  } else if (value instanceof Uint8Array) {
    addBytes(builder, value);
  } else {
    builder.add(value);
  }
}

/** The library writes all of the memory a view is of: it gets a copy with memory of its own. */
function addBytes(builder: Builder, bytes: Uint8Array): void {
  builder.add(bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes));
}

function readKind(reader: FlexReader, value: FlexValue): RowValue['kind'] {
  const kind = valueKinds[reader.number(value)];
  if (kind === undefined) throw new RangeError('unknown kind');
  return kind;
}

function readValue(reader: FlexReader, kind: RowValue['kind'], value: FlexValue): RowValue {
  switch (kind) {
    case 'primitive':
      return { kind, value: readScalar(reader, value) };
    case 'map': {
      const fields = reader.map(value);
      return {
        kind,
        entries: fields.map(([name, v]) => [decodeName(name), readScalar(reader, v)]),
      };
    }
    case 'columns': {
      const columns = new Map<string, Column>();
      for (const [name, column] of reader.map(value)) {
        columns.set(decodeStringName(name), unpackColumn(reader.blob(column)));
      }
      return { kind, columns };
    }
    case 'document':
      return { kind, root: readDocument(reader, value, 0) };
    case 'set':
    case 'ranked':
    case 'array':
    case 'stream': {
      const packed = new PackedReader(reader.blob(value));
      const container = unpackValue(packed, kind);
      packed.finish();
      return container;
    }
  }
}

function readDocument(reader: FlexReader, value: FlexValue, depth: number): DocumentValue {
  if (depth > maxDocumentDepth) throw new RangeError('nested too deep');
  if (value.type === FlexType.vector) {
    const items = reader.vector(value).slice(1);
    return items.map((item) => readDocument(reader, item, depth + 1));
  }
  if (value.type !== FlexType.map) return readScalar(reader, value);
  const fields = new Map<string, DocumentValue>();
  for (const [name, field] of reader.map(value)) {
    fields.set(decodeStringName(name), readDocument(reader, field, depth + 1));
  }
  return fields;
}

function readScalar(reader: FlexReader, value: FlexValue): Scalar {
  switch (value.type) {
    case FlexType.null:
      return null;
    case FlexType.bool:
      return reader.boolean(value);
    case FlexType.indirectInt:
      return reader.bigint(value);
    case FlexType.string:
      return reader.string(value);
    case FlexType.blob:
      return reader.blob(value);
    default:
      return reader.number(value);
  }
}
