import fc from 'fast-check';
import { toReference } from 'flatbuffers/js/flexbuffers/reference.js';
import { describe, expect, test } from 'vitest';
import { anyBytes, anyRow, anyScalar, anyText, flatValues, rowsOf, runs } from '../arbitraries.ts';
import { rowKey, type DocumentValue, type RowValue, type URow } from '../row.ts';
import { sameColumn, sameDocument, sameRow, sameScalar } from '../row-equality.ts';
import type { Scalar } from '../scalar.ts';
import { bsonCodec } from './bson.ts';
import { CodecError } from './codec.ts';
import { flexBuffersCodec, readField } from './flexbuffers.ts';
import { codecs, decodeRow } from './registry.ts';

const timeoutMs = 600_000;
const attrs = { version: 12, ts: 1_800_000_000_000 };

function rowOf(value: RowValue): URow {
  return { key: rowKey([Buffer.from('user:1000')]), value, attrs };
}

describe.each(codecs)('$name', (codec) => {
  test(
    'round-trips every row',
    () => {
      fc.assert(
        fc.property(anyRow, (row) => {
          const bytes = codec.encode(row);
          expect(bytes[0]).toBe(codec.tag);
          expect(sameRow(decodeRow(bytes), row)).toBe(true);
        }),
        { numRuns: runs(3_000, 100_000) },
      );
    },
    timeoutMs,
  );

  test('round-trips from the middle of a larger buffer', () => {
    fc.assert(
      fc.property(anyRow, fc.nat({ max: 9 }), (row, before) => {
        const bytes = codec.encode(row);
        const larger = Buffer.alloc(before + bytes.length + 7, 0xff);
        bytes.copy(larger, before);
        const middle = larger.subarray(before, before + bytes.length);
        expect(sameRow(codec.decode(middle), row)).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  test('round-trips large values, and a great many', () => {
    const check = (value: RowValue) =>
      expect(sameRow(codec.decode(codec.encode(rowOf(value))), rowOf(value))).toBe(true);
    const megabyte = Buffer.alloc(2 ** 20, 'any \0 byte \xff', 'latin1');
    check({ kind: 'primitive', value: megabyte });
    check({ kind: 'primitive', value: megabyte.toString('latin1') });
    check({ kind: 'primitive', value: Buffer.alloc(20 * 2 ** 20, 7) });
    check({ kind: 'set', members: [megabyte, Buffer.of()] });
    check({ kind: 'map', entries: [[megabyte, megabyte]] });
    const many = Array.from({ length: 20_000 }, (_, i) => Buffer.from(`item ${i}`));
    check({ kind: 'array', elements: many });
    check({ kind: 'map', entries: many.map((field, i) => [field, i % 3 ? i : field]) });
    check({ kind: 'ranked', members: many.map((member, i) => [member, i / 7]) });
    check({
      kind: 'columns',
      columns: new Map([['load', { type: 'float', values: new Float64Array(100_000).fill(0.1) }]]),
    });
    check({ kind: 'document', root: many.map((_, i) => new Map([['a\0b', [`${i}`, i, null]]])) });
  });

  test('refuses damaged bytes, and never runs away with them', () => {
    fc.assert(
      fc.property(anyRow, fc.nat(), fc.nat({ max: 255 }), fc.boolean(), (row, at, byte, cut) => {
        const bytes = Buffer.from(codec.encode(row));
        if (!cut) bytes[1 + (at % (bytes.length - 1))] = byte;
        try {
          codec.decode(cut ? bytes.subarray(0, at % bytes.length) : bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(CodecError);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('refuses noise', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
        expect(() => codec.decode(Buffer.of(codec.tag, ...noise))).toThrow(CodecError);
      }),
      { numRuns: 2_000 },
    );
    expect(() => codec.decode(Buffer.of())).toThrow(CodecError);
    expect(() => decodeRow(Buffer.of(99))).toThrow('no codec writes rows that begin with 99');
  });

  test('refuses documents nested too deep, and scalars that would not come back', () => {
    let deep: DocumentValue = null;
    for (let i = 0; i < 129; i++) deep = [deep];
    const check = (value: RowValue, message: string) =>
      expect(() => codec.encode(rowOf(value))).toThrow(message);
    check({ kind: 'document', root: deep }, 'too deep');
    check({ kind: 'primitive', value: '\udfff' }, 'lone surrogate');
    check({ kind: 'map', entries: [[1, 2n ** 63n]] }, '64 bits');
  });
});

describe('one field of a row in FlexBuffers', () => {
  test('is the field that decoding all of it gives', () => {
    const maps = rowsOf(flatValues(anyScalar).map);
    fc.assert(
      fc.property(maps, anyScalar, (row, other) => {
        const bytes = flexBuffersCodec.encode(row);
        const entries = row.value.kind === 'map' ? row.value.entries : [];
        for (const [field, value] of entries) {
          expect(sameScalar(readField(bytes, field) as Scalar, value)).toBe(true);
        }
        if (!entries.some(([field]) => sameScalar(field, other))) {
          expect(readField(bytes, other)).toBeUndefined();
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('may be a column, or a field of a document', () => {
    const column = { type: 'float', values: Float64Array.of(1.5, NaN, -0) } as const;
    const columns = new Map([['load', column]]);
    const ofColumns = flexBuffersCodec.encode(rowOf({ kind: 'columns', columns }));
    const load = readField(ofColumns, 'load');
    expect(load !== undefined && sameColumn(load as typeof column, column)).toBe(true);
    expect(readField(ofColumns, 'idle')).toBeUndefined();

    const inner = new Map([['b', ['x', 2n]]]);
    const document = rowOf({ kind: 'document', root: new Map([['a', inner]]) });
    const found = readField(flexBuffersCodec.encode(document), 'a');
    expect(sameDocument(found as DocumentValue, inner)).toBe(true);
  });

  test('is absent from a row without named fields', () => {
    const row = rowOf({ kind: 'array', elements: ['a'] });
    expect(readField(flexBuffersCodec.encode(row), 'a')).toBeUndefined();
    expect(() => readField(bsonCodec.encode(row), 'a')).toThrow(CodecError);
  });
});

test("what is written is FlexBuffers: the library's own reader finds the fields", () => {
  const entries = [
    ['name', 'Ada'],
    ['visits', 70_000],
    [Buffer.from('bytes'), Buffer.of(0, 1, 0xff)],
  ] as const;
  const bytes = flexBuffersCodec.encode(rowOf({ kind: 'map', entries }));
  const root = toReference(Uint8Array.from(bytes.subarray(1)).buffer);
  expect((root.toObject() as unknown[])[5]).toEqual({
    sname: 'Ada',
    svisits: 70_000,
    bbytes: Uint8Array.of(0, 1, 0xff),
  });
});

test('names of fields never mean anything to a library', () => {
  fc.assert(
    fc.property(fc.oneof(anyText, anyBytes), anyScalar, (field, value) => {
      const row = rowOf({ kind: 'map', entries: [[field, value]] });
      for (const codec of codecs) expect(sameRow(codec.decode(codec.encode(row)), row)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

/** The most compact JSON that can hold a row: bytes as base64, short names. */
function jsonBytes(row: URow): number {
  const { partition, range } = row.key;
  const json = JSON.stringify({ partition, range, ...row.attrs, ...row.value }, (_, value) => {
    if (typeof value === 'bigint') return value.toString();
    if (value instanceof Map) return Object.fromEntries(value);
    if (value?.type === 'Buffer') return Buffer.from(value.data).toString('base64');
    return ArrayBuffer.isView(value) ? [...(value as Float64Array)] : value;
  });
  return Buffer.byteLength(json);
}

// Shares of requests and sizes after a published mix of businesses on one such database: comments,
// direct messages, tags, search, an ad joiner, deduplication and a cache of model outputs.
const businesses = [
  { share: 5, bytes: 100, kind: 'primitive' },
  { share: 2, bytes: 1_000, kind: 'array' },
  { share: 6, bytes: 1_000, kind: 'set' },
  { share: 15, bytes: 1_000, kind: 'ranked' },
  { share: 28, bytes: 10_000, kind: 'map' },
  { share: 53, bytes: 2_000, kind: 'primitive' },
] as const;

/** Bytes that look like what applications store: words and digits. */
function payload(n: number, seed: number): Buffer {
  const out = Buffer.alloc(n);
  let state = seed;
  for (let i = 0; i < n; i++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    out[i] = 97 + ((state >>> 16) % 26);
  }
  return out;
}

function valueOf(kind: (typeof businesses)[number]['kind'], bytes: number): RowValue {
  const items = Array.from({ length: bytes / 50 }, (_, i) => payload(50, i + 1));
  switch (kind) {
    case 'primitive':
      return { kind, value: payload(bytes, 1) };
    case 'array':
      return { kind, elements: items };
    case 'set':
      return { kind, members: items };
    case 'ranked':
      return { kind, members: items.map((item, i) => [item, 1_700_000_000 + i]) };
    case 'map':
      return { kind, entries: items.map((item, i) => [Buffer.from(`field:${i}`), item]) };
  }
}

test.each(codecs)('$name takes at most .8 of the bytes of JSON on a mix of rows', (codec) => {
  let ours = 0;
  let json = 0;
  for (const { share, bytes, kind } of businesses) {
    const row = rowOf(valueOf(kind, bytes));
    ours += share * codec.encode(row).length;
    json += share * jsonBytes(row);
  }
  expect(ours / json).toBeLessThanOrEqual(0.8);
});
