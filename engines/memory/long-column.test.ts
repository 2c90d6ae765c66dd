import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FloatColumn, IntColumn } from './long-column.ts';

const chunk = 65_536;

test('numbers stay as they were set, however the column grows', () => {
  const place = fc.oneof(
    fc.nat(40),
    fc.integer({ min: chunk - 20, max: chunk + 20 }),
    fc.nat(5 * chunk),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(place, fc.integer({ min: 1 })), { maxLength: 60 }), (writes) => {
      const ints = new IntColumn();
      const floats = new FloatColumn();
      const model = new Map<number, number>();
      let [intBytes, floatBytes] = [0, 0];
      for (const [i, value] of writes) {
        intBytes += ints.reserve(i + 1);
        floatBytes += floats.reserve(i + 1);
        expect(ints.length).toBeGreaterThan(i);
        ints.set(i, value);
        floats.set(i, value / 3);
        model.set(i, value);
      }
      for (const [i, value] of model) {
        expect(ints.at(i)).toBe(value);
        expect(ints.get(i)).toBe(value);
        expect(floats.at(i)).toBe(value / 3);
        // Unset places are 0.
        const next = i + 1;
        if (!model.has(next)) expect(ints.get(next)).toBe(0);
      }
      expect(ints.byteLength).toBe(intBytes);
      expect(floats.byteLength).toBe(floatBytes);
      expect(ints.byteLength).toBe(4 * ints.length);
      expect(floats.byteLength).toBe(8 * floats.length);
    }),
    { numRuns: 60 },
  );
});

test('a large column grows by one chunk, and is empty again once cleared', () => {
  const column = new IntColumn();
  column.reserve(10 * chunk);
  expect(column.length).toBe(10 * chunk);
  expect(column.reserve(10 * chunk + 1)).toBe(4 * chunk);
  column.clear();
  expect(column.length).toBe(0);
  expect(column.byteLength).toBe(0);
  expect(column.get(0)).toBe(0);
  column.reserve(1);
  expect(column.at(0)).toBe(0);
});
