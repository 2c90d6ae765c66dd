// A disk that fails, a process that ends and a power cut, at each call that flushing and compaction make.

import { describe, expect, test } from 'vitest';
import { FaultyDisk } from '../../../storage-node/disk/faulty-disk.ts';
import { readManifest } from './manifest.ts';
import { fileName, newManifestName, pointFiles } from './shard-files.ts';
import { seeded } from './testing/seeded.ts';
import { directory, ShardTrial } from './testing/shard-trial.ts';

interface Broken {
  readonly trial: ShardTrial;
  readonly disk: FaultyDisk;
  /** The call was reached. */
  readonly failed: boolean;
}

/** Flushes and compacts, meeting a failure at the n-th call. From then on the disk works again. */
function breakAt(n: number, code: string): Broken {
  const rng = seeded(n);
  const disk = new FaultyDisk({ rng });
  const trial = new ShardTrial(disk, rng);
  for (let i = 0; i < 2; i++) {
    for (let j = 0; j < 4; j++) trial.write();
    trial.flush();
  }
  trial.delete();
  trial.write();
  let calls = 0;
  disk.fault = () => (calls++ === n ? code : undefined);
  let failed = false;
  for (const work of [() => trial.flush(), () => trial.compactFully()]) {
    try {
      work();
    } catch (error) {
      failed = true;
      expect((error as NodeJS.ErrnoException).code).toBe(code);
    }
  }
  disk.fault = () => undefined;
  return { trial, disk, failed: failed || calls > n };
}

/** Every call in turn, until there are no more. */
function atEachCall(code: string, check: (broken: Broken) => void): number {
  for (let n = 0; ; n++) {
    const broken = breakAt(n, code);
    if (!broken.failed) return n;
    check(broken);
  }
}

function expectNoOrphans(disk: FaultyDisk): void {
  const listed = readManifest(disk, directory)?.files ?? [];
  expect(pointFiles(disk, directory)).toEqual(listed.map(({ number }) => fileName(number)).sort());
  expect(disk.exists(`${directory}/${newManifestName}`)).toBe(false);
}

describe('a failure during flush and compaction', () => {
  test('leaves the shard as it was, and is got over', () => {
    const calls = atEachCall('ENOSPC', ({ trial, disk }) => {
      trial.checkAll();
      trial.flush();
      trial.compactFully();
      trial.checkAll();
      expect(trial.shard.stats()).toMatchObject({ files: 1, headPoints: 0 });
      trial.reopen(disk);
      trial.checkAll();
      expectNoOrphans(disk);
    });
    expect(calls).toBeGreaterThan(20);
  });

  test('the end of the process there loses nothing and leaves nothing behind', () => {
    atEachCall('EIO', ({ trial, disk }) => {
      const after = disk.evict().kill();
      trial.reopen(after);
      trial.checkAll();
      expectNoOrphans(after);
    });
  });

  test('a power cut there loses nothing', () => {
    atEachCall('EIO', ({ trial, disk }) => {
      const after = disk.crash();
      trial.reopen(after);
      trial.checkAll();
      expectNoOrphans(after);
    });
  });

  test.each(['the same process', 'the next process'])(
    'what %s flushes after it survives a power cut',
    (process) => {
      atEachCall('EIO', ({ trial, disk }) => {
        let living = disk;
        if (process === 'the next process') {
          living = disk.evict().kill();
          trial.reopen(living);
        }
        trial.write();
        trial.flush();
        trial.compactFully();
        trial.reopen(living.crash());
        trial.checkAll();
      });
    },
  );
});

test('a disk without room is served from, and flushed to when there is room again', () => {
  const rng = seeded(7);
  const disk = new FaultyDisk({ rng });
  const trial = new ShardTrial(disk, rng);
  for (let i = 0; i < 20; i++) trial.write();
  trial.flush();
  for (let i = 0; i < 20; i++) trial.write();
  disk.capacityBytes = disk.usedBytes() + 100;
  for (let i = 0; i < 2; i++) {
    expect(() => trial.flush()).toThrow(/ENOSPC/);
    trial.write();
    trial.checkAll();
  }
  disk.capacityBytes = Infinity;
  trial.flush();
  trial.flush();
  trial.checkAll();
  expect(trial.shard.stats()).toMatchObject({ files: 3, headPoints: 0 });
});
