// What an earlier process has written to the file of an index, and a power cut after it.

import { expect, test } from 'vitest';
import { FaultyDisk } from '../../../storage-node/disk/faulty-disk.ts';
import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import type { SeriesIndex } from '../parts.ts';
import { seeded } from '../shard/testing/seeded.ts';
import { openSeriesIndex } from './series-index.ts';

test.each([1, 2, 3, 4, 5, 6, 7, 8])('is synced before anything relies on it (%i)', (seed) => {
  let disk = new FaultyDisk({ rng: seeded(seed) });
  const add = (index: SeriesIndex, key: string): void => {
    const keys = Buffer.from(key);
    index.addSeries(keys, 0, keys.length);
  };
  makeDurableDirectory(disk, 'data');
  const first = openSeriesIndex(disk, 'data');
  add(first, 'm,k=1');
  first.persist();
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
  let disk = new FaultyDisk({ rng: seeded(seed) });
  const add = (index: SeriesIndex, key: string): void => {
    const keys = Buffer.from(key);
    index.addSeries(keys, 0, keys.length);
  };
  makeDurableDirectory(disk, 'data');
  const first = openSeriesIndex(disk, 'data');
  add(first, 'm,k=1');
  first.persist();
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
