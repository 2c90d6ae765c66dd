// Rows as BSON, for peers that have a BSON library and nothing of ours:
//
//   { k: key, t: kind, n: version, s: ts, e: expireAt if any, v: value }
//
// Bytes are binaries, bigints are 64-bit integers, numbers are 32-bit integers or doubles.

import { deserialize, serialize, setInternalBufferSize } from 'bson';
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
import { decodeName, decodeStringName, encodeName } from './names.ts';
import { packColumn, unpackColumn } from './packed-columns.ts';

/** Values for the library. Names are encoded by us, so none has a special meaning. */
type Tree = Scalar | Tree[] | Map<string, Tree>;

const tag = 1;

// The library serializes into one buffer of 17 MiB, unless told to make that larger; it then stays so.
const comfortableBytes = 16 * 2 ** 20;

export const bsonCodec: RowCodec = {
  name: 'bson',
  tag,

  encode(row: URow): Buffer {
    const document = new Map<string, Tree>([
      ['k', encodeRowKey(row.key)],
      ['t', valueKinds.indexOf(row.value.kind)],
      ['n', row.attrs.version],
      ['s', row.attrs.ts],
    ]);
    if (row.attrs.expireAt !== undefined) document.set('e', row.attrs.expireAt);
    document.set('v', toTree(row.value));
    const bound = upperBound(document);
    if (bound > comfortableBytes) setInternalBufferSize(bound);
    const body = serialize(document);
    const out = Buffer.allocUnsafe(1 + body.length);
    out[0] = tag;
    out.set(body, 1);
    return out;
  },

  decode(bytes: Uint8Array): URow {
    return refusing('BSON', () => {
      if (bytes[0] !== tag) throw new RangeError('not BSON');
      const row = deserialize(bytes.subarray(1), { useBigInt64: true, promoteBuffers: true });
      const kind = valueKinds[row['t'] as number];
      if (kind === undefined) throw new RangeError('unknown kind');
      return {
        key: decodeRowKey(asBytes(row['k'])),
        value: fromTree(kind, row['v']),
        attrs: checkedAttributes(row['n'], row['s'], row['e']),
      };
    });
  },
};

function toTree(value: RowValue): Tree {
  switch (value.kind) {
    case 'primitive':
      checkScalar(value.value);
      return value.value;
    case 'map': {
      const fields = new Map<string, Tree>();
      for (const [field, fieldValue] of value.entries) {
        checkScalar(fieldValue);
        fields.set(encodeName(field), fieldValue);
      }
      return fields;
    }
    case 'columns': {
      const columns = new Map<string, Tree>();
      for (const [name, column] of value.columns) columns.set(encodeName(name), packColumn(column));
      return columns;
    }
    case 'document':
      return documentToTree(value.root, 0);
    case 'set':
    case 'ranked':
    case 'array':
    case 'stream': {
      const writer = new PackedWriter();
      packValue(writer, value);
      return writer.finish();
    }
  }
}

function documentToTree(value: DocumentValue, depth: number): Tree {
  if (depth > maxDocumentDepth) throw new RowValueError('document nested too deep');
  if (Array.isArray(value)) {
    return (value as readonly DocumentValue[]).map((item) => documentToTree(item, depth + 1));
  }
  if (value instanceof Map) {
    const fields = new Map<string, Tree>();
    for (const [name, field] of value as ReadonlyMap<string, DocumentValue>) {
      fields.set(encodeName(name), documentToTree(field, depth + 1));
    }
    return fields;
  }
  checkScalar(value as Scalar);
  return value as Scalar;
}

function fromTree(kind: RowValue['kind'], tree: unknown): RowValue {
  switch (kind) {
    case 'primitive':
      return { kind, value: asScalar(tree) };
    case 'map': {
      const fields = Object.entries(asObject(tree));
      return { kind, entries: fields.map(([name, v]) => [decodeName(name), asScalar(v)]) };
    }
    case 'columns': {
      const columns = new Map<string, Column>();
      for (const [name, column] of Object.entries(asObject(tree))) {
        columns.set(decodeStringName(name), unpackColumn(asBytes(column)));
      }
      return { kind, columns };
    }
    case 'document':
      return { kind, root: documentFromTree(tree, 0) };
    case 'set':
    case 'ranked':
    case 'array':
    case 'stream': {
      const reader = new PackedReader(asBytes(tree));
      const value = unpackValue(reader, kind);
      reader.finish();
      return value;
    }
  }
}

function documentFromTree(tree: unknown, depth: number): DocumentValue {
  if (depth > maxDocumentDepth) throw new RangeError('nested too deep');
  if (Array.isArray(tree)) return tree.map((item) => documentFromTree(item, depth + 1));
  if (typeof tree !== 'object' || tree === null || tree instanceof Uint8Array) {
    return asScalar(tree);
  }
  const fields = new Map<string, DocumentValue>();
  for (const [name, field] of Object.entries(asObject(tree))) {
    fields.set(decodeStringName(name), documentFromTree(field, depth + 1));
  }
  return fields;
}

function asScalar(value: unknown): Scalar {
  switch (typeof value) {
    case 'boolean':
    case 'number':
    case 'bigint':
    case 'string':
      return value;
    default:
      return value === null ? null : asBytes(value);
  }
}

function asBytes(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new RangeError('not bytes');
  return value;
}

/** A plain object: a date, a pattern or any other type of BSON that we never write is refused. */
function asObject(value: unknown): object {
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== plain) {
    throw new RangeError('not a document');
  }
  return value;
}

const plain = Object.prototype;

/** No tree takes more bytes in BSON. */
function upperBound(tree: Tree): number {
  if (typeof tree === 'string') return 16 + tree.length * 3;
  if (tree instanceof Uint8Array) return 16 + tree.length;
  let total = 16;
  if (Array.isArray(tree)) for (const item of tree) total += 16 + upperBound(item);
  if (tree instanceof Map) {
    for (const [name, field] of tree) total += 8 + name.length * 3 + upperBound(field);
  }
  return total;
}
