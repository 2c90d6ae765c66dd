import { inOneGo } from '../../../universal-row/slices.ts';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { wordSort } from './word-sort.ts';

const word = fc.oneof(fc.integer({ min: 1, max: 3 }), fc.constantFrom(0x7fffffff, 0xffffffff));

/** Order of sequences of words that end with 0. */
function compare(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; ; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0 || a[i] === undefined) return difference;
  }
}

test('sorts as comparing does, equal keys as they were', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(word, { maxLength: 6 }), { maxLength: 200, size: 'max' }),
      (keys) => {
        const items = Uint32Array.from(keys.keys());
        const words = {
          word: (item: number, depth: number) => keys[item]![depth] ?? 0,
          isLast: (last: number) => last === 0,
        };
        inOneGo(wordSort(items, words));
        const expected = [...keys.keys()].sort((a, b) => compare(keys[a]!, keys[b]!) || a - b);
        expect([...items]).toEqual(expected);
      },
    ),
  );
});

test('sorts keys with thousands of words in common', () => {
  const items = Uint32Array.from({ length: 40 }, (_, i) => i);
  const longest = 20_000;
  // The higher the item, the shorter its key, and each is the beginning of the longer ones.
  const words = {
    word: (item: number, depth: number) => (depth < longest - item ? 1 : 0),
    isLast: (last: number) => last === 0,
  };
  inOneGo(wordSort(items, words));
  expect([...items]).toEqual(Array.from({ length: 40 }, (_, i) => 39 - i));
});
