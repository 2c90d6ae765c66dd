// How much of an index one slice looks at: counted by the work that grows with the series, not by time.

import { expect, test } from 'vitest';
import { FaultyDisk } from '../../../storage-node/disk/faulty-disk.ts';
import type { Slices } from '../../../universal-row/slices.ts';
import { seeded } from '../shard/testing/seeded.ts';
import { openSeriesIndex } from './series-index.ts';
import { wordSort } from './word-sort.ts';

/** Runs all slices; the most that `count` grew by in one. */
function mostOf<T>(slices: Slices<T>, count: () => number): { most: number; slices: number } {
  let most = 0;
  for (let n = 1; ; n++) {
    const before = count();
    const isDone = slices.next().done === true;
    most = Math.max(most, count() - before);
    if (isDone) return { most, slices: n };
  }
}

const seriesCount = 50_000;

function filled() {
  const index = openSeriesIndex(new FaultyDisk({ rng: seeded(1) }), 'index');
  index.addMeasurement('m');
  for (let n = 0; n < seriesCount; n++) {
    const key = Buffer.from(`m,host=h${(n * 7919) % seriesCount},rack=r${n % 10}`);
    index.addSeries(key, 0, key.length);
  }
  return index;
}

test('a pattern is tried on some values a slice', () => {
  const index = filled();
  let tried = 0;
  const matches = (value: string): boolean => {
    tried++;
    return value.endsWith('7');
  };
  const filter = { kind: 'match', tag: 'host', pattern: '7$', matches } as const;
  const selecting = mostOf(index.select(0, filter), () => tried);
  expect(tried).toBe(seriesCount + 1);
  expect(selecting.most).toBeLessThan(1000);
});

test('words are looked at, some a slice', () => {
  let looked = 0;
  const items = Uint32Array.from({ length: seriesCount }, (_, n) => n);
  const sorting = wordSort(items, {
    word: (item, depth) => {
      looked++;
      return depth === 0 ? (item % 10) + 1 : depth === 1 ? ((item * 7919) % seriesCount) + 1 : 0;
    },
    isLast: (word) => word === 0,
  });
  const { most } = mostOf(sorting, () => looked);
  expect(looked).toBeGreaterThan(2 * seriesCount);
  expect(most).toBeLessThan(seriesCount);
});

test.each([
  ['select', (index: ReturnType<typeof filled>) => index.select(0, undefined)],
  ['tag values', (index: ReturnType<typeof filled>) => index.tagValues(0, 'host', undefined)],
  [
    'groups',
    (index: ReturnType<typeof filled>) =>
      index.group(
        0,
        Uint32Array.from({ length: seriesCount }, (_, n) => n),
        ['host'],
      ),
  ],
])('%s takes slices', (_, work) => {
  expect(mostOf<unknown>(work(filled()), () => 0).slices).toBeGreaterThan(2);
});

test('one who goes away leaves the order to the next, who goes on with it', () => {
  const index = filled();
  const first = index.select(0, undefined);
  for (let n = 0; n < 10; n++) expect(first.next().done).toBe(false);
  first.return(new Uint32Array(0));
  const fresh = mostOf(filled().select(0, undefined), () => 0).slices;
  expect(mostOf(index.select(0, undefined), () => 0).slices).toBe(fresh - 10);
});
