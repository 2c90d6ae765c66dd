// What an earlier process has left of a checkpoint, and a power cut after it.

import { expect, test } from 'vitest';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import { localGroup } from '../applied-indexes.ts';
import { MemoryEngine } from './memory-engine.ts';
import { Random, put } from './testing/oracle.ts';

const directory = 'data';
const seeds = Array.from({ length: 60 }, (_, n) => n + 1);

test.each(seeds)('is synced before the log relies on it (%i)', async (seed) => {
  const random = new Random(seed);
  let disk = new FaultyDisk({ rng: { next: () => random.below(2 ** 32) / 2 ** 32 } });
  const open = async (): Promise<MemoryEngine> => {
    const engine = new MemoryEngine({ disk, directory });
    await engine.open();
    return engine;
  };
  const engine = await open();
  put(engine.table(0), 'a key', 'a value');
  engine.commit(7, localGroup);
  // It is killed between two calls.
  let calls = seed % 20;
  disk.fault = () => (calls-- <= 0 ? 'EIO' : undefined);
  await engine.checkpoint().catch(() => {});
  disk = disk.kill();
  const found = (await open()).appliedIndex;
  disk = disk.crash();
  expect((await open()).appliedIndex).toBe(found);
});
