import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyAttributes, anyGroup, anyScalar, flatValues } from './arbitraries.ts';
import {
  RecordError,
  decodeRecordKey,
  decodeRecords,
  defaultRecordLimits,
  encodeRecordKey,
  encodeRecords,
  type StoredRecord,
} from './record.ts';
import { compareGroups } from './key-order.ts';
import { packValue } from './packed-values.ts';
import { PackedWriter } from './packed-scalars.ts';
import { rowKey, type URow } from './row.ts';
import { sameRow } from './row-equality.ts';
import { mapRow } from './translators/registry.ts';

const anyRecord: fc.Arbitrary<StoredRecord> = fc
  .tuple(
    anyGroup,
    anyGroup,
    anyGroup,
    fc.oneof(...Object.values(flatValues(anyScalar))),
    anyAttributes,
  )
  .map(([partition, range, sub, value, attrs]) => ({
    key: { ...rowKey(partition, range), sub },
    value,
    attrs,
  }));

/** Records as of a few rows, so that keys and attributes repeat. */
const anyBatch = fc
  .array(fc.tuple(anyRecord, fc.array(anyGroup, { maxLength: 4 })))
  .map((rows) =>
    rows.flatMap(([record, subs]) => [
      record,
      ...subs.map((sub) => ({ ...record, key: { ...record.key, sub } })),
    ]),
  );

function same(a: StoredRecord, b: StoredRecord): boolean {
  return sameRow(a, b) && compareGroups(a.key.sub, b.key.sub) === 0;
}

test('a batch decodes to exactly the records it was made of', () => {
  fc.assert(
    fc.property(anyBatch, (records) => {
      const decoded = decodeRecords(encodeRecords(records));
      expect(decoded.length).toBe(records.length);
      for (const [i, record] of records.entries()) expect(same(decoded[i]!, record)).toBe(true);
    }),
    { numRuns: 1_500 },
  );
});

test('a key decodes to itself; keys sort by hash, then range, then sub-key', () => {
  fc.assert(
    fc.property(anyRecord, anyRecord, fc.boolean(), (a, other, sameRange) => {
      expect(same({ ...a, key: decodeRecordKey(encodeRecordKey(a.key)) }, a)).toBe(true);
      const range = sameRange ? a.key.range : other.key.range;
      const b = { ...a.key, range, sub: other.key.sub };
      const order = compareGroups(a.key.range, range) || compareGroups(a.key.sub, b.sub);
      const encoded = Buffer.compare(encodeRecordKey(a.key), encodeRecordKey(b));
      expect(Math.sign(encoded)).toBe(Math.sign(order));
    }),
    { numRuns: 1_500 },
  );
});

/** Bytes of a batch that are neither key nor value, a record. Shared key bytes count for nothing. */
function overhead(records: StoredRecord[]): number {
  let total = encodeRecords(records).length;
  let before: Buffer = Buffer.alloc(0);
  for (const record of records) {
    const key = encodeRecordKey(record.key);
    let shared = 0;
    while (shared < key.length && key[shared] === before[shared]) shared++;
    total -= key.length - shared;
    before = key;
    const packed = new PackedWriter();
    packValue(packed, record.value);
    total -= packed.length;
  }
  return total / records.length;
}

test('a batch costs at most 12 bytes a record beyond keys and values, attributes included', () => {
  const attrs = { version: 3_000_000_000, ts: 1_800_000_000_000, expireAt: 1_800_086_400_000 };
  const b = (text: string) => Buffer.from(text);
  const key = rowKey([b('user:1000')]);
  const hash = (fields: number): URow => ({
    key,
    value: {
      kind: 'map',
      entries: Array.from({ length: fields }, (_, i) => [b(`field${i}`), b(`value${i}`)]),
    },
    attrs,
  });
  expect(overhead(mapRow(hash(1)))).toBeLessThanOrEqual(12);
  expect(overhead(mapRow(hash(1000)))).toBeLessThan(4);
  const ranked: URow = { key, value: { kind: 'ranked', members: [[b('a'), 1]] }, attrs };
  expect(overhead(mapRow(ranked))).toBeLessThanOrEqual(12);
  // One that shares nothing with any other, as a blind SET writes it.
  const string: URow = {
    key,
    value: { kind: 'primitive', value: b('x'.repeat(1000)) },
    attrs: { version: 20_000, ts: attrs.ts },
  };
  expect(overhead(mapRow(string))).toBeLessThanOrEqual(12);
});

test('refuses what is damaged, wherever the damage is', () => {
  fc.assert(
    fc.property(
      anyBatch,
      fc.nat(),
      fc.nat({ max: 255 }),
      fc.boolean(),
      (records, at, byte, cut) => {
        const blob = Buffer.from(encodeRecords(records));
        if (blob.length === 0) return;
        if (!cut) blob[at % blob.length] = byte;
        try {
          decodeRecords(cut ? blob.subarray(0, at % blob.length) : blob);
        } catch (error) {
          expect(error).toBeInstanceOf(RecordError);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

test('refuses a hash that is not that of the partition', () => {
  const key = encodeRecordKey({ ...rowKey(['a']), sub: [] });
  key[3]! ^= 1;
  expect(() => decodeRecordKey(key)).toThrow('wrong hash');
});

test('keeps to its limits before it allocates', () => {
  const attrs = { version: 1, ts: 1 };
  const row: URow = {
    key: rowKey([Buffer.alloc(1000, 1)]),
    value: { kind: 'set', members: Array.from({ length: 100 }, (_, i) => i) },
    attrs,
  };
  const blob = encodeRecords(mapRow(row));
  const check = (limits: Partial<typeof defaultRecordLimits>, message: string) =>
    expect(() => decodeRecords(blob, { ...defaultRecordLimits, ...limits })).toThrow(message);
  expect(decodeRecords(blob)).toHaveLength(101);
  check({ records: 100 }, 'too many records');
  check({ keyBytes: 1000 }, 'keys too large');
  // The shared prefix of 1 KB counts for each of the 101 keys.
  check({ totalBytes: 100_000 }, 'keys too large');
});

test('refuses a value that says it is longer than the bytes there are', () => {
  const none: URow = {
    key: rowKey([]),
    value: { kind: 'primitive', value: null },
    attrs: { version: 1, ts: 1 },
  };
  const blob = encodeRecords(mapRow(none));
  // In place of the null: bytes, 2^48 of them.
  const lie = Buffer.concat([blob.subarray(0, -1), Buffer.from('0780808080808040', 'hex')]);
  expect(() => decodeRecords(lie)).toThrow('cut short');
});
