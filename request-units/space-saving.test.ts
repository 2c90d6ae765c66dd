import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SpaceSaving } from './space-saving.ts';

const streams = fc.array(
  fc.record({ name: fc.nat(60).map((n) => `n${n}`), weight: fc.integer({ min: 1, max: 50 }) }),
  { maxLength: 400 },
);

function exact(stream: readonly { name: string; weight: number }[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { name, weight } of stream) counts.set(name, (counts.get(name) ?? 0) + weight);
  return counts;
}

test('no name heavier than the total over the capacity is missed, and counts err upwards by their error', () => {
  fc.assert(
    fc.property(streams, fc.integer({ min: 1, max: 20 }), (stream, capacity) => {
      const sketch = new SpaceSaving(capacity);
      for (const { name, weight } of stream) sketch.add(name, weight);
      const counts = exact(stream);
      const total = stream.reduce((sum, { weight }) => sum + weight, 0);
      const kept = sketch.heaviest(capacity);
      expect(kept.length).toBe(Math.min(capacity, counts.size));
      expect(kept.reduce((sum, { count }) => sum + count, 0)).toBe(total);
      for (const { name, count, error } of kept) {
        const real = counts.get(name)!;
        expect(count).toBeGreaterThanOrEqual(real);
        expect(count - error).toBeLessThanOrEqual(real);
      }
      for (const [name, real] of counts) {
        if (real > total / capacity) expect(kept.map((one) => one.name)).toContain(name);
      }
    }),
  );
});

test('with room for all names it is exact, the heaviest first', () => {
  fc.assert(
    fc.property(streams, (stream) => {
      const sketch = new SpaceSaving(61);
      for (const { name, weight } of stream) sketch.add(name, weight);
      const expected = [...exact(stream)].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
      expect(sketch.heaviest(61)).toEqual(
        expected.map(([name, count]) => ({ name, count, error: 0 })),
      );
    }),
  );
});

test('what was long ago fades, and goes when next to nothing is left', () => {
  const sketch = new SpaceSaving(3);
  sketch.add('old', 100);
  sketch.add('small', 1);
  sketch.fade(0.5, 1);
  expect(sketch.heaviest(3)).toEqual([{ name: 'old', count: 50, error: 0 }]);
  sketch.add('new', 60);
  sketch.add('third', 1);
  sketch.add('fourth', 1);
  expect(sketch.heaviest(2).map(({ name }) => name)).toEqual(['new', 'old']);
  expect(sketch.count('fourth')).toBe(2);
  expect(sketch.count('third')).toBe(0);
  expect(sketch.heaviest(3, (name) => name !== 'new')[0]!.name).toBe('old');
});
