// A shard against its model, whatever happens to it. A failing run names its seed.

import { describe, expect, test } from 'vitest';
import { FaultyDisk } from '../../../storage-node/disk/faulty-disk.ts';
import { seeded } from './testing/seeded.ts';
import { ShardTrial } from './testing/shard-trial.ts';

describe('a shard is what was written to it', () => {
  test.each(Array.from({ length: 24 }, (_, i) => i + 1))('seed %i', (seed) => {
    const rng = seeded(seed);
    const trial = new ShardTrial(new FaultyDisk({ rng }), rng);
    for (let i = 0; i < 200; i++) trial.step();
    trial.checkAll();
    trial.flush();
    trial.checkAll();
    trial.compactFully();
    trial.checkAll();
    trial.endScans();
    expect(trial.shard.stats()).toMatchObject({ headPoints: 0, tombstones: 0 });
    expect(trial.shard.stats().files).toBeLessThanOrEqual(1);
  });
});

describe('nothing is lost where the disk takes its time', () => {
  test.each(Array.from({ length: 12 }, (_, i) => i + 1))('seed %i', async (seed) => {
    const rng = seeded(seed);
    let disk = new FaultyDisk({ rng });
    const trial = new ShardTrial(disk, rng);
    // Some slices wait for what others have left to the disk.
    trial.blocks = () => rng.next() < 0.1;
    for (let crash = 0; crash < 4; crash++) {
      for (let i = 0; i < 120; i++) {
        trial.step();
        if (rng.next() < 0.6) await new Promise((resolve) => setImmediate(resolve));
      }
      trial.endScans();
      disk = disk.crash();
      trial.reopen(disk);
      trial.checkAll();
    }
    trial.flush();
    trial.compactFully();
    trial.checkAll();
    trial.endScans();
    expect(trial.shard.stats()).toMatchObject({ headPoints: 0, tombstones: 0 });
  });

  test('and no slice waits for it', async () => {
    const rng = seeded(1);
    const disk = new FaultyDisk({ rng });
    const trial = new ShardTrial(disk, rng);
    for (let i = 0; i < 30; i++) trial.write();
    const done = async (slice: () => boolean): Promise<void> => {
      while (trial.slice(slice)) await trial.shard.waiting;
    };
    const waits: Promise<void>[] = [];
    disk.stallSyncs();
    trial.shard.sealHead();
    const work = done(() => {
      const more = trial.shard.flushSlice(0, false);
      if (trial.shard.waiting !== undefined) waits.push(trial.shard.waiting);
      return more;
    });
    trial.write();
    trial.checkAll();
    expect(trial.shard.isFlushing).toBe(true);
    disk.resumeSyncs();
    await work;
    // Its directory and manifest, the file and its name, the index and its name, the manifest again.
    expect(new Set(waits).size).toBeGreaterThanOrEqual(7);
    trial.delete();
    await done(() => trial.shard.persistSlice(0, false));
    await done(() => trial.shard.compactSlice(0, false));
    trial.reopen(disk.crash());
    trial.checkAll();
  });
});
