// Fields are scalars, most often bytes; BSON and FlexBuffers name a field by text without NUL. A
// name's first letter is the type of the field, which also avoids names that a library treats
// specially (`__proto__`, `$ref`, `_bsontype`).
//
//   s   a string                 b   bytes that are UTF-8, as text
//   l   other bytes, as latin1   k   any other scalar: its ordered encoding, as latin1
//
// NUL is written 01 02 and 01 is written 01 01.

import { isUtf8 } from 'node:buffer';
import { decodeScalars, encodeScalars } from '../key-order.ts';
import { checkScalar, type Scalar } from '../scalar.ts';

export function encodeName(field: Scalar): string {
  if (typeof field === 'string') {
    checkScalar(field);
    return `s${escape(field)}`;
  }
  if (field instanceof Uint8Array) {
    const bytes = Buffer.from(field.buffer, field.byteOffset, field.byteLength);
    return isUtf8(bytes) ? `b${escape(bytes.toString())}` : `l${escape(bytes.toString('latin1'))}`;
  }
  return `k${escape(encodeScalars([field]).toString('latin1'))}`;
}

/** Throws `RangeError`. */
export function decodeName(name: string): Scalar {
  const text = unescape(name.slice(1));
  switch (name[0]) {
    case 's':
      return text;
    case 'b':
      return Buffer.from(text);
    case 'l':
      return Buffer.from(text, 'latin1');
    case 'k': {
      const [field, ...more] = decodeScalars(Buffer.from(text, 'latin1'));
      if (field !== undefined && more.length === 0) return field;
    }
  }
  throw new RangeError('unknown kind of field name');
}

/** Decodes a name of a document or of columns, whose names are strings. Throws `RangeError`. */
export function decodeStringName(name: string): string {
  if (name[0] !== 's') throw new RangeError('field name is not a string');
  return unescape(name.slice(1));
}

function escape(text: string): string {
  return text.replaceAll('\x01', '\x01\x01').replaceAll('\0', '\x01\x02');
}

function unescape(text: string): string {
  if (!text.includes('\x01')) return text;
  const between = text.split('\x01\x01').map((part) => part.replaceAll('\x01\x02', '\0'));
  return between.join('\x01');
}
