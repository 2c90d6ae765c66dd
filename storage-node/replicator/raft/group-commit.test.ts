import { expect, test } from 'vitest';
import type { Clock } from '../../../universal-row/environment.ts';
import type { Wal } from '../wal/wal.ts';
import { GroupCommit } from './group-commit.ts';

test.each([
  ['by this sync', 10],
  ['by another sync before', 20],
])('what is on disk %s needs no more ticks', async (_how, durableLsn) => {
  let now = 0;
  let syncs = 0;
  const wal = {
    ...{ endLsn: 20, durableLsn, unsettled: false },
    sync: async () => {
      syncs++;
      wal.durableLsn = wal.endLsn;
    },
  };
  const failures: Error[] = [];
  const commit = new GroupCommit(
    wal as unknown as Wal,
    { monotonic: () => now } as Clock,
    () => {},
    (error) => void failures.push(error),
  );
  commit.policy = 'everysec';
  commit.relaxed(() => {});
  expect(commit.needsTicks).toBe(true);
  now += 1000;
  commit.request();
  await commit.stop();
  expect(commit.needsTicks).toBe(false);
  expect(syncs).toBe(durableLsn === 10 ? 1 : 0);
  expect(failures).toEqual([]);
});
