import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyScalar, flatValues, rowsOf, runs } from '../arbitraries.ts';
import { decodeRecords, encodeRecords, type StoredRecord } from '../record.ts';
import { rowKey, type RowValue, type URow } from '../row.ts';
import { nameOf, sameRow } from '../row-equality.ts';
import { mapRow, reduceRecords, translators } from './registry.ts';
import { ReduceError, type ReduceFailure } from './translator.ts';

const timeoutMs = 1_800_000;
const values = flatValues(anyScalar);
const attrs = { version: 7, ts: 1_800_000_000_000, expireAt: 1_800_000_060_000 };

function rowOf(value: RowValue): URow {
  return { key: rowKey([Buffer.from('k')]), value, attrs };
}

function failureOf(reduce: () => unknown): ReduceFailure | 'none' {
  try {
    reduce();
    return 'none';
  } catch (error) {
    if (error instanceof ReduceError) return error.failure;
    throw error;
  }
}

describe.each(translators)('$type', (translator) => {
  const anyRowOfKind = rowsOf(values[translator.kind as keyof typeof values]);

  test(
    'reduce(map(row)) is the row, in whatever order the records come',
    () => {
      const shuffled = anyRowOfKind.chain((row) => {
        const records = translator.map(row);
        const all = { minLength: records.length, maxLength: records.length };
        return fc.tuple(fc.constant(row), fc.shuffledSubarray(records, all));
      });
      fc.assert(
        fc.property(shuffled, ([row, records]) => {
          expect(sameRow(translator.reduce(records), row)).toBe(true);
          expect(sameRow(reduceRecords(records), row)).toBe(true);
        }),
        { numRuns: runs(1_500, 1_000_000) },
      );
    },
    timeoutMs,
  );

  test('a row with any record missing, doubled or from elsewhere is an error, never a shorter row', () => {
    fc.assert(
      fc.property(anyRowOfKind, fc.nat(), (row, at) => {
        const records = translator.map(row);
        const lost = at % records.length;
        const without = records.filter((_, i) => i !== lost);
        const isMeta = records[lost]!.key.sub.length === 0;
        expect(failureOf(() => translator.reduce(without))).toBe(
          isMeta ? 'missing-meta' : 'missing-record',
        );
        const doubled = [...records, records[lost]!];
        expect(failureOf(() => translator.reduce(doubled))).toBe('unexpected-record');
        if (isMeta) return;
        const swapped = [...without, records.find((_, i) => i !== lost && i > 0) ?? records[0]!];
        expect(failureOf(() => translator.reduce(swapped))).not.toBe('none');
        const elsewhere = rowKey([...row.key.partition, 1], row.key.range);
        const moved = records.map((record, i) =>
          i === lost ? { ...record, key: { ...elsewhere, sub: record.key.sub } } : record,
        );
        expect(failureOf(() => translator.reduce(moved))).toBe('mixed-rows');
      }),
      { numRuns: 500 },
    );
  });

  test('every record of a row has its own key, and survives being stored', () => {
    fc.assert(
      fc.property(anyRowOfKind, (row) => {
        const records = translator.map(row);
        const names = records.map((record) => record.key.sub.map(nameOf).join(''));
        expect(new Set(names).size).toBe(records.length);
        expect(sameRow(reduceRecords(decodeRecords(encodeRecords(records))), row)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test('takes no row of another kind', () => {
    fc.assert(
      fc.property(rowsOf(fc.oneof(...Object.values(values))), (row) => {
        if (row.value.kind === translator.kind) return;
        expect(() => translator.map(row)).toThrow(`is not a ${translator.type}`);
        expect(failureOf(() => translator.reduce(mapRow(row)))).toBe('unexpected-record');
      }),
      { numRuns: 200 },
    );
  });
});

test('the records of each type', () => {
  const check = (value: RowValue, expected: [sub: unknown[], value: unknown][]) => {
    const records = mapRow(rowOf(value));
    const shown = records.map(({ key, value: v }) => [
      key.sub,
      v.kind === 'primitive' ? v.value : v.kind === 'array' ? v.elements : v,
    ]);
    expect(shown).toEqual(expected);
    for (const record of records) expect(record.attrs).toBe(attrs);
  };
  check({ kind: 'primitive', value: 'v' }, [[[], 'v']]);
  check({ kind: 'map', entries: [['f', 'v']] }, [
    [[], ['hash', 1]],
    [['f'], 'v'],
  ]);
  check({ kind: 'set', members: ['a', 'b'] }, [
    [[], ['set', 2]],
    [['a'], null],
    [['b'], null],
  ]);
  check({ kind: 'array', elements: ['x', 'x'] }, [
    [[], ['list', 2, 0]],
    [[0], 'x'],
    [[1], 'x'],
  ]);
  check({ kind: 'ranked', members: [['a', -0]] }, [
    [[], ['sorted-set', 1]],
    [['m', 'a'], -0],
    [['s', -0, 'a'], null],
  ]);
  check({ kind: 'set', members: [] }, [[[], ['set', 0]]]);
});

test('a list joins from any head, and a hole in it is an error', () => {
  const [meta, ...elements] = mapRow(rowOf({ kind: 'array', elements: ['a', 'b', 'c'] }));
  const at = (record: StoredRecord, position: number): StoredRecord => ({
    ...record,
    key: { ...record.key, sub: [position] },
  });
  const headed: StoredRecord = {
    ...meta!,
    value: { kind: 'array', elements: ['list', 3, -2] },
  };
  const [a, b, c] = elements;
  const joined = reduceRecords([at(c!, 0), at(b!, -1), headed, at(a!, -2)]);
  expect(joined.value).toEqual({ kind: 'array', elements: ['a', 'b', 'c'] });
  const hole = () => reduceRecords([headed, at(a!, -2), at(b!, -1), at(c!, 1)]);
  expect(failureOf(hole)).toBe('missing-record');
});

test('a sorted set whose two orders disagree is an error', () => {
  const [meta, member, score] = mapRow(rowOf({ kind: 'ranked', members: [['a', 1]] }));
  const other: StoredRecord = { ...score!, key: { ...score!.key, sub: ['s', 2, 'a'] } };
  expect(failureOf(() => reduceRecords([meta!, member!, other]))).toBe('missing-record');
  const stranger: StoredRecord = { ...score!, key: { ...score!.key, sub: ['s', 1, 'b'] } };
  expect(failureOf(() => reduceRecords([meta!, member!, stranger]))).toBe('missing-record');
});

test('a row keeps its own attributes when parts were written later', () => {
  const [meta, field] = mapRow(rowOf({ kind: 'map', entries: [['f', 'v']] }));
  const later = { ...field!, attrs: { version: 9, ts: attrs.ts + 5 } };
  expect(reduceRecords([meta!, later]).attrs).toEqual(attrs);
});

test('no translator takes columns or documents', () => {
  expect(() => mapRow(rowOf({ kind: 'document', root: null }))).toThrow('no translator');
});
