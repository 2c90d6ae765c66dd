// A record: a row, or a part of one under a sub-key (a field, a member, an element), for engines that store small pieces.
// translators/ splits rows into records and joins them again.
//
// A batch of records is one blob. v is a LEB128 varint, u48 six bytes little-endian:
//
//   batch   = record*
//   record  = head u8 | shared v, if any | suffix length v | suffix | attributes | value
//   head      bits 0-2 kind of the value, 3 attributes as in the record before, 4 key shares a prefix with
//             the record before, 5 has an expiry
//   attributes, unless shared:  version v | ts u48 | expireAt u48, if any
//   value     packed-values.ts
//
//   key     = hash u64 big-endian | partition group | 00 | range group | 00 | sub group      (key-order.ts)
//
// Keys sort by hash, so a partition is one run of them; then by range; then by sub-key, a row's own record
// before its parts. Records of one row share most of the key and all attributes, which are written once.

import { decodeScalars, encodeScalars, endOfGroup } from './key-order.ts';
import { PackedReader, PackedWriter } from './packed-scalars.ts';
import { flatKinds, packValue, unpackValue, type FlatValue } from './packed-values.ts';
import { partitionHash } from './partition-hash.ts';
import type { RowAttributes, URowKey } from './row.ts';
import { RowValueError, type Scalar } from './scalar.ts';

export interface RecordKey extends URowKey {
  /** Empty for the row's own record. */
  readonly sub: readonly Scalar[];
}

export interface StoredRecord {
  readonly key: RecordKey;
  readonly value: FlatValue;
  readonly attrs: RowAttributes;
}

/** Bytes that are not a batch of records, or one beyond the limits. */
export class RecordError extends Error {
  override readonly name = 'RecordError';
}

interface RecordLimits {
  records: number;
  /** Limit of one encoded key. */
  keyBytes: number;
  /** Limit of all decoded keys, shared prefixes counted each time, and all values. */
  totalBytes: number;
}

export const defaultRecordLimits: Readonly<RecordLimits> = {
  records: 4_000_000,
  keyBytes: 513 * 2 ** 20,
  totalBytes: 2 ** 30,
};

const hashBytes = 8;
const groupEnd = Buffer.of(0);

const sameAttributes = 0x08;
const sharedPrefix = 0x10;
const hasExpiry = 0x20;
const kindMask = 0x07;
const unknownBits = 0xc0;

export function encodeRecordKey(key: RecordKey): Buffer {
  const hash = Buffer.allocUnsafe(hashBytes);
  hash.writeBigUInt64BE(key.hash);
  return Buffer.concat([
    hash,
    encodeScalars(key.partition),
    groupEnd,
    encodeScalars(key.range),
    groupEnd,
    encodeScalars(key.sub),
  ]);
}

/** Throws `RecordError`. */
export function decodeRecordKey(bytes: Buffer): RecordKey {
  return refusing(() => new KeyDecoder().decode(bytes, 0));
}

export function encodeRecords(records: readonly StoredRecord[]): Buffer {
  const writer = new PackedWriter();
  let before: StoredRecord | undefined;
  let keyBefore: Buffer = Buffer.alloc(0);
  for (const record of records) {
    const key = encodeRecordKey(record.key);
    const shared = commonPrefix(keyBefore, key);
    const attrs = record.attrs;
    const same = before !== undefined && equalAttributes(before.attrs, attrs);
    writer.byte(
      flatKinds.indexOf(record.value.kind) |
        (same ? sameAttributes : 0) |
        (shared > 0 ? sharedPrefix : 0) |
        (!same && attrs.expireAt !== undefined ? hasExpiry : 0),
    );
    if (shared > 0) writer.varint(shared);
    writer.varint(key.length - shared);
    writer.raw(key.subarray(shared));
    if (!same) writeAttributes(writer, attrs);
    packValue(writer, record.value);
    before = record;
    keyBefore = key;
  }
  return writer.finish();
}

/** Throws `RecordError` for anything but the output of `encodeRecords`, within the limits. */
export function decodeRecords(
  blob: Uint8Array,
  limits: Readonly<RecordLimits> = defaultRecordLimits,
): StoredRecord[] {
  return refusing(() => {
    const records: StoredRecord[] = [];
    const reader = new PackedReader(blob);
    const keys = new KeyDecoder();
    let key: Buffer = Buffer.alloc(0);
    let attrs: RowAttributes | undefined;
    let keyBytes = 0;
    if (blob.length > limits.totalBytes) throw new RangeError('too large');
    while (reader.left > 0) {
      if (records.length === limits.records) throw new RangeError('too many records');
      const head = reader.byte();
      const kind = flatKinds[head & kindMask];
      if (kind === undefined || (head & unknownBits) !== 0) throw new RangeError('unknown kind');
      const shared = head & sharedPrefix ? reader.varint() : 0;
      const suffix = reader.view(reader.varint());
      const length = shared + suffix.length;
      keyBytes += length;
      if (shared > key.length) throw new RangeError('shared prefix is not there');
      if (length > limits.keyBytes || keyBytes + blob.length > limits.totalBytes) {
        throw new RangeError('keys too large');
      }
      key = Buffer.concat([key.subarray(0, shared), suffix], length);
      if ((head & sameAttributes) === 0) attrs = readAttributes(reader, (head & hasExpiry) !== 0);
      if (attrs === undefined) throw new RangeError('no attributes');
      records.push({ key: keys.decode(key, shared), value: unpackValue(reader, kind), attrs });
    }
    return records;
  });
}

function writeAttributes(writer: PackedWriter, attrs: RowAttributes): void {
  for (const time of [attrs.ts, attrs.expireAt ?? 0]) {
    if (!Number.isInteger(time) || time < 0 || time >= 2 ** 48) {
      throw new RowValueError(`time ${time} is not a whole number of milliseconds since 1970`);
    }
  }
  if (!Number.isSafeInteger(attrs.version) || attrs.version < 0) {
    throw new RowValueError(`version ${attrs.version} is not a whole number`);
  }
  writer.varint(attrs.version);
  writer.uint48(attrs.ts);
  if (attrs.expireAt !== undefined) writer.uint48(attrs.expireAt);
}

function readAttributes(reader: PackedReader, withExpiry: boolean): RowAttributes {
  const version = reader.varint();
  const ts = reader.uint48();
  return withExpiry ? { version, ts, expireAt: reader.uint48() } : { version, ts };
}

function equalAttributes(a: RowAttributes, b: RowAttributes): boolean {
  return a.version === b.version && a.ts === b.ts && a.expireAt === b.expireAt;
}

function commonPrefix(a: Buffer, b: Buffer): number {
  const n = Math.min(a.length, b.length);
  let i = 0;
  while (i < n && a[i] === b[i]) i++;
  return i;
}

/** Decodes keys of which each may begin as the one before: groups that are wholly shared are kept. */
class KeyDecoder {
  #row: URowKey | undefined;
  #subStart = 0;

  /** `shared` bytes are as in the call before. */
  decode(bytes: Buffer, shared: number): RecordKey {
    let row = this.#row;
    if (row === undefined || shared < this.#subStart) {
      if (bytes.length < hashBytes) throw new RangeError('key too short');
      const partitionEnd = endOfGroup(bytes, hashBytes, bytes.length);
      const rangeEnd = endOfGroup(bytes, partitionEnd + 1, bytes.length);
      if (rangeEnd >= bytes.length) throw new RangeError('key without its groups');
      const partition = decodeScalars(bytes, hashBytes, partitionEnd);
      const range = decodeScalars(bytes, partitionEnd + 1, rangeEnd);
      const hash = bytes.readBigUInt64BE();
      if (hash !== partitionHash(partition)) throw new RangeError('key under a wrong hash');
      row = { hash, partition, range };
      this.#row = row;
      this.#subStart = rangeEnd + 1;
    }
    return { ...row, sub: decodeScalars(bytes, this.#subStart) };
  }
}

function refusing<T>(decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new RecordError(`damaged records: ${error.message}`, { cause: error });
  }
}
