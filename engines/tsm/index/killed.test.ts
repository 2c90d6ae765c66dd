// What an earlier process has written to the file of an index, and a power cut after it.

import { expect, test } from 'vitest';
import { FaultyDisk } from '../../../storage-node/disk/faulty-disk.ts';
import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import type { SeriesIndex } from '../parts.ts';
import { seeded } from '../shard/testing/seeded.ts';
import { openSeriesIndex } from './series-index.ts';

function add(index: SeriesIndex, key: string): void {
  const keys = Buffer.from(key);
  index.addSeries(keys, 0, keys.length);
}

/** With one series, which is durable. */
function indexOfOne(seed: number): { disk: FaultyDisk; index: SeriesIndex } {
  const disk = new FaultyDisk({ rng: seeded(seed) });
  makeDurableDirectory(disk, 'data');
  const index = openSeriesIndex(disk, 'data');
  add(index, 'm,k=1');
  index.persist();
  return { disk, index };
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])('is synced before anything relies on it (%i)', (seed) => {
  const { disk: before, index: first } = indexOfOne(seed);
  let disk = before;
  add(first, 'm,k=2');
  const work = first.persisting();
  // It is killed after the write, before the sync.
  const step = work.next();
  expect(step.done).toBe(false);
  disk = disk.kill();
  const second = openSeriesIndex(disk, 'data');
  expect(second.seriesCount).toBe(2);
  second.persist();
  disk = disk.crash();
  expect(openSeriesIndex(disk, 'data').seriesCount).toBe(2);
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])('is written again after a sync that failed (%i)', (seed) => {
  const { disk: before, index: first } = indexOfOne(seed);
  let disk = before;
  for (let i = 2; i <= 100; i++) add(first, `m,k=${'x'.repeat(50)}${i}`);
  disk.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
  expect(() => first.persist()).toThrow('EIO');
  disk.fault = () => undefined;
  if (seed % 2 === 0) first.persist();
  else {
    disk = disk.kill();
    openSeriesIndex(disk, 'data').persist();
  }
  disk = disk.crash();
  expect(openSeriesIndex(disk, 'data').seriesCount).toBe(100);
});
