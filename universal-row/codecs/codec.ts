// The serialized form of a row: one byte that names the codec, then the codec's own bytes. Both codecs
// write the same parts, each in its own way:
//
//   key        partition group | 00 | range group           (key-order.ts; the hash follows from it)
//   kind       the number of the value's kind
//   version, ts, expireAt
//   value      primitive    a scalar
//              map          scalars by name
//              columns      packed columns by name
//              document     the tree, its fields by name
//              set, ranked, array   packed (packed-values.ts)

import { decodeScalars, encodeScalars, endOfGroup } from '../key-order.ts';
import type { RowAttributes, RowValue, URow, URowKey } from '../row.ts';
import { rowKey } from '../row.ts';

export interface RowCodec {
  readonly name: string;
  /** The first byte of everything it encodes. */
  readonly tag: number;
  /** Throws `RowValueError` for a row that breaks its type's rules. */
  encode(row: URow): Buffer;
  /**
   * Throws `CodecError`, having allocated no more than in proportion to the bytes given. Bytes in the row
   * may be views of them.
   */
  decode(bytes: Uint8Array): URow;
}

/** Bytes that no codec wrote. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
}

/** Kinds by their number in stored bytes. Only ever added to. */
export const valueKinds = [
  'primitive',
  'map',
  'set',
  'ranked',
  'array',
  'columns',
  'document',
  'stream',
] as const satisfies readonly RowValue['kind'][];

const groupEnd = Buffer.of(0);

export function encodeRowKey(key: URowKey): Buffer {
  return Buffer.concat([encodeScalars(key.partition), groupEnd, encodeScalars(key.range)]);
}

export function decodeRowKey(bytes: Uint8Array): URowKey {
  const end = endOfGroup(bytes, 0, bytes.length);
  if (end === bytes.length) throw new RangeError('key without a range group');
  return rowKey(decodeScalars(bytes, 0, end), decodeScalars(bytes, end + 1));
}

/** Attributes as read from outside. Throws `RangeError`. */
export function checkedAttributes(version: unknown, ts: unknown, expireAt: unknown): RowAttributes {
  if (typeof version !== 'number' || typeof ts !== 'number') {
    throw new RangeError('attributes are not numbers');
  }
  if (expireAt === null || expireAt === undefined) return { version, ts };
  if (typeof expireAt !== 'number') throw new RangeError('expiry is not a number');
  return { version, ts, expireAt };
}

/** Runs a decoder and turns its exceptions on bad bytes into a `CodecError`. */
export function refusing<T>(codec: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (error instanceof CodecError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new CodecError(`damaged ${codec} row: ${reason}`, { cause: error });
  }
}
