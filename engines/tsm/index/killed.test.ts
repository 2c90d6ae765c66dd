// What an earlier process has written to the file of an index, and a power cut after it.

import { expect, test } from 'vitest';
import { FaultyDisk } from '../../../storage-node/disk/faulty-disk.ts';
import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import { systemClock } from '../../../universal-row/environment.ts';
import type { SeriesIndex } from '../parts.ts';
import { seeded } from '../shard/testing/seeded.ts';
import { SlicedRun } from '../sliced-work.ts';
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

/** With 99 more series, which are not durable. */
function indexOfHundred(seed: number): { disk: FaultyDisk; index: SeriesIndex } {
  const { disk, index } = indexOfOne(seed);
  for (let i = 2; i <= 100; i++) add(index, `m,k=${'x'.repeat(50)}${i}`);
  return { disk, index };
}

function failNext(disk: FaultyDisk, what: 'sync' | 'write', code: string): void {
  disk.fault = (operation) => {
    if (operation !== what) return undefined;
    disk.fault = () => undefined;
    return code;
  };
}

function failNextSync(disk: FaultyDisk): void {
  failNext(disk, 'sync', 'EIO');
}

/** An earlier process had written 99 of its series, and the first sync of this one has failed. */
function nextWithFailedSync(seed: number): { disk: FaultyDisk; index: SeriesIndex } {
  const before = indexOfHundred(seed);
  before.index.persisting().next();
  const disk = before.disk.kill();
  const index = openSeriesIndex(disk, 'data');
  failNextSync(disk);
  expect(() => index.persist()).toThrow('EIO');
  return { disk, index };
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])('is written again after a failed sync (%i)', (seed) => {
  const { disk: before, index: first } = indexOfHundred(seed);
  let disk = before;
  failNextSync(disk);
  expect(() => first.persist()).toThrow('EIO');
  if (seed % 2 === 0) first.persist();
  else {
    disk = disk.kill();
    openSeriesIndex(disk, 'data').persist();
  }
  disk = disk.crash();
  expect(openSeriesIndex(disk, 'data').seriesCount).toBe(100);
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'is written again after a failed sync of the next process (%i)',
  (seed) => {
    const { disk, index } = nextWithFailedSync(seed);
    index.persist();
    expect(openSeriesIndex(disk.crash(), 'data').seriesCount).toBe(100);
  },
);

test('opens only where all that was read of it is read again, for what was given up may leave memory', () => {
  const opened = new Set<number | 'lost bytes'>();
  for (let seed = 1; seed <= 10; seed++) {
    for (let reads = 1; reads <= 12; reads++) {
      const { disk: before, index } = indexOfHundred(seed);
      let disk = before;
      failNextSync(disk);
      expect(() => index.persist()).toThrow('EIO');
      disk = disk.kill();
      let left = reads;
      disk.fault = (operation) => {
        if (operation === 'read' && --left === 0) disk.evict();
        return undefined;
      };
      let next: SeriesIndex;
      try {
        next = openSeriesIndex(disk, 'data');
        opened.add(next.seriesCount);
      } catch (error) {
        expect((error as Error).message).toContain('lost bytes');
        opened.add('lost bytes');
        disk = disk.kill();
        next = openSeriesIndex(disk, 'data');
      }
      const { seriesCount } = next;
      next.persist();
      disk = disk.crash();
      expect(openSeriesIndex(disk, 'data').seriesCount).toBe(seriesCount);
    }
  }
  expect(opened).toEqual(new Set([1, 100, 'lost bytes']));
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'is written again where the failure of its sync is reported to an earlier one under way (%i)',
  async (seed) => {
    const { disk, index } = indexOfHundred(seed);
    const run = new SlicedRun(() => index.persisting());
    disk.stallSyncs();
    while (run.waiting === undefined) run.slice(systemClock, 1000, false);
    failNextSync(disk);
    try {
      run.slice(systemClock, 1000, true);
    } catch (error) {
      expect((error as Error).message).toContain('EIO');
      index.persist();
    }
    disk.resumeSyncs();
    for (let i = 0; i < 10; i++) await new Promise(setImmediate);
    expect(openSeriesIndex(disk.crash(), 'data').seriesCount).toBe(100);
  },
);

test.each(['a full disk', 'memory that was freed'])(
  'is written again after a failed sync and %s, or says that it cannot be',
  (fault) => {
    const counts = new Set<number>();
    for (let seed = 1; seed <= 20; seed++) {
      const { disk, index } = nextWithFailedSync(seed);
      if (fault === 'a full disk') {
        failNext(disk, 'write', 'ENOSPC');
        expect(() => index.persist()).toThrow('ENOSPC');
      } else disk.evict();
      add(index, 'm,k=last');
      let isDurable = true;
      try {
        index.persist();
      } catch (error) {
        isDurable = false;
        expect((error as Error).message).toContain('lost bytes');
        expect(() => index.persist()).toThrow('lost bytes');
      }
      const { seriesCount } = openSeriesIndex(disk.crash(), 'data');
      if (isDurable) expect(seriesCount).toBe(101);
      counts.add(seriesCount);
    }
    expect(counts).toContain(101);
    if (fault !== 'a full disk') expect(counts.size).toBeGreaterThan(1);
  },
);
