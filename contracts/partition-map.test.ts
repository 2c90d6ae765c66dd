import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  evenRanges,
  firstPartition,
  lastSlot,
  type PartitionMap,
  partitionMapError,
  replaced,
  slotIndex,
  undivided,
} from './partition-map.ts';

function divided(count: number): PartitionMap {
  const partitions = evenRanges(count).map(([first, last], i) => ({
    number: firstPartition + i,
    first,
    last,
    model: 'memory',
  }));
  return { epoch: 1, partitions };
}

test('even ranges cover all slots and differ by one at most', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1024 }), (count) => {
      const map = divided(count);
      expect(partitionMapError(map)).toBeUndefined();
      const lengths = map.partitions.map(({ first, last }) => last - first + 1);
      expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThanOrEqual(1);
      const index = slotIndex(map);
      for (const [i, { first, last }] of map.partitions.entries()) {
        expect([index[first], index[last]]).toEqual([i, i]);
      }
    }),
  );
});

test('a split and a merge leave a valid map', () => {
  const map = divided(4);
  const [, second, third] = map.partitions;
  const halves = evenRanges(2, second!.first, second!.last).map(([first, last], i) => ({
    ...second!,
    number: firstPartition + 10 + i,
    first,
    last,
  }));
  const split = replaced(map, [second!.number], halves);
  expect(partitionMapError(split)).toBeUndefined();
  expect(split.epoch).toBe(2);
  expect(split.partitions).toHaveLength(5);
  const sources = [halves[1]!, third!];
  const merged = { ...third!, number: firstPartition + 20, first: halves[1]!.first };
  const after = replaced(
    split,
    sources.map(({ number }) => number),
    [merged],
  );
  expect(partitionMapError(after)).toBeUndefined();
  expect(after.partitions).toHaveLength(4);
});

test.each([
  ['none', [], '1 to 1024'],
  [
    'a gap',
    [
      [0, 5],
      [7, lastSlot],
    ],
    'slots 7',
  ],
  [
    'an overlap',
    [
      [0, 5],
      [5, lastSlot],
    ],
    'slots 5',
  ],
  ['an end too early', [[0, 5]], 'slot 6'],
  [
    'an empty one',
    [
      [0, 5],
      [6, 5],
    ],
    'slots 6 to 5',
  ],
] as const)('a map with %s is wrong', (_what, ranges, error) => {
  const partitions = ranges.map(([first, last], i) => ({
    number: firstPartition + i,
    first,
    last,
    model: 'kv',
  }));
  expect(partitionMapError({ epoch: 1, partitions })).toContain(error);
});

test('an undivided table is one partition under its own number', () => {
  expect(partitionMapError(undivided(3, 'kv'))).toBeUndefined();
});
