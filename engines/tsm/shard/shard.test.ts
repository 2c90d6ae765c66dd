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
