// Segments that no group needs any more.

import { expect, test } from 'vitest';
import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import { FaultyDisk } from '../../disk/faulty-disk.ts';
import { Random } from '../simulation/timeline.ts';
import { Ballast } from './ballast.ts';
import { FrameKind } from './format.ts';
import { newGroupState } from './table.ts';
import { Wal } from './wal.ts';

const directory = '/log';

function emptyWal(): Wal {
  const disk = new FaultyDisk({ rng: new Random(1) });
  makeDurableDirectory(disk, directory);
  const fatal = (error: unknown): never => {
    throw error;
  };
  const ballast = new Ballast(disk, directory, fatal);
  const identity = { cluster: 1, pod: 1, volume: 5 };
  const wal = new Wal(
    { disk, directory, segmentBytes: 2048, identity, incarnation: 1, ballast, fatal },
    [],
    new Map(),
  );
  wal.create(1);
  return wal;
}

/** Frames of no group, until the next segment has begun and has its name. */
async function roll(wal: Wal): Promise<void> {
  const before = wal.segmentCount;
  while (wal.segmentCount === before) wal.appendNumbers(FrameKind.boot, undefined, 0, 1, 0, 5);
  await wal.sync();
  await wal.settle();
}

test('a group whose last entries were replaced by fewer does not keep a segment', async () => {
  const wal = emptyWal();
  const state = { ...newGroupState(7), lastIndex: 100, checkpointIndex: 98 };
  wal.groups.set(7, state);
  await roll(wal);
  expect(wal.segmentCount).toBe(2);
  // A new leader has replaced 99 and 100, which were not committed, by another 99.
  state.lastIndex = 99;
  expect(wal.pinning()).toEqual([7]);
  state.checkpointIndex = 99;
  expect(wal.pinning()).toEqual([]);
  await wal.collect();
  expect(wal.segmentCount).toBe(1);
});
