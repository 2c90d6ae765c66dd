import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ValueColumn, hasBit } from './value-column.ts';
import { ValueSet } from './value-set.ts';

/** Runs of series that have the tag, each after a gap of series that lack it. */
const runs = fc.array(
  fc.record({
    gap: fc.oneof(fc.nat(3), fc.nat(400)),
    length: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 200 })),
    highest: fc.constantFrom(1, 3, 255, 256, 65535, 65536, 70_000_000),
  }),
  { maxLength: 12 },
);

test('holds the values it was given, dense or sparse', () => {
  const seen = { sparse: 0, dense: 0 };
  fc.assert(
    fc.property(runs, fc.array(fc.nat(5)), fc.boolean(), (parts, numbers, complement) => {
      const column = new ValueColumn({ bytes: 0 });
      const expected: number[] = [];
      for (const { gap, length, highest } of parts) {
        for (let i = 0; i < gap; i++) expected.push(0);
        for (let i = 0; i < length; i++) {
          const value = 1 + ((i * 7919) % highest);
          column.append(expected.length, value);
          expected.push(value);
        }
      }
      for (let i = 0; i < 40; i++) expected.push(0);
      seen[column.isSparse ? 'sparse' : 'dense']++;
      expect(expected.map((_, ordinal) => column.get(ordinal))).toEqual(expected);

      const sorted = Uint32Array.from(new Set(numbers)).sort();
      const set = new ValueSet(sorted, complement);
      const bits = new Uint32Array((expected.length + 31) >>> 5);
      column.mark(set.table(Math.max(...expected, 5)), bits, expected.length);
      const wanted = expected.map((value) => numbers.includes(value) !== complement);
      expect(expected.map((_, ordinal) => hasBit(bits, ordinal))).toEqual(wanted);
      if (!column.isSparse || set.has(0)) return;
      const listed: number[] = [];
      column.collectSparse(set, listed);
      expect(listed).toEqual(wanted.flatMap((has, ordinal) => (has ? [ordinal] : [])));
    }),
    { numRuns: 60 },
  );
  expect(Math.min(seen.sparse, seen.dense)).toBeGreaterThan(0);
});

test('a tag that few series have takes memory for those', () => {
  const tally = { bytes: 0 };
  const column = new ValueColumn(tally);
  for (let ordinal = 0; ordinal < 1_000_000; ordinal += 1000) column.append(ordinal, 1);
  expect(tally.bytes).toBeLessThan(16_000);
  for (let ordinal = 1_000_000; ordinal < 2_000_000; ordinal++) column.append(ordinal, 2);
  expect(column.isSparse).toBe(false);
  expect(tally.bytes).toBeLessThan(4_000_000);
  expect([column.get(999_000), column.get(999_001), column.get(1_999_999)]).toEqual([1, 0, 2]);
});

test('sets of values are those of their numbers', () => {
  const set = fc
    .tuple(fc.uniqueArray(fc.nat(20)), fc.boolean())
    .map(([numbers, complement]) => new ValueSet(Uint32Array.from(numbers).sort(), complement));
  fc.assert(
    fc.property(set, set, (a, b) => {
      for (let value = 0; value <= 21; value++) {
        expect(a.inverse().has(value)).toBe(!a.has(value));
        expect(a.union(b).has(value)).toBe(a.has(value) || b.has(value));
        expect(a.intersection(b).has(value)).toBe(a.has(value) && b.has(value));
        expect(a.table(21)[value]).toBe(a.has(value) ? 1 : 0);
      }
    }),
  );
});
