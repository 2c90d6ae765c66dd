import { expect, test } from 'vitest';
import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import { FaultyDisk } from '../../disk/faulty-disk.ts';
import { seededRng } from '../group/log-fixture.ts';
import { FenceRecord } from './fence-record.ts';

test('a start after a failed sync is unclean in the same boot, where writes were acknowledged ahead of the disk', () => {
  const disk = new FaultyDisk({ rng: seededRng(1) });
  makeDurableDirectory(disk, '/pod');
  const strict = new FenceRecord(disk, '/pod', 'boot 1');
  strict.syncFailed();
  expect(new FenceRecord(disk, '/pod', 'boot 1').wasUnclean).toBe(false);
  const relaxed = new FenceRecord(disk, '/pod', 'boot 1');
  relaxed.relax();
  expect(new FenceRecord(disk, '/pod', 'boot 1').wasUnclean).toBe(false);
  relaxed.syncFailed();
  const next = new FenceRecord(disk, '/pod', 'boot 1');
  expect(next.wasUnclean).toBe(true);
  next.fence(new Map([[7, 3]]));
  expect(new FenceRecord(disk, '/pod', 'boot 1').wasUnclean).toBe(false);
});

test('writes are acknowledged ahead of the disk only once that is recorded, also at a second try', () => {
  let disk = new FaultyDisk({ rng: seededRng(1) });
  makeDurableDirectory(disk, '/pod');
  const record = new FenceRecord(disk, '/pod', 'boot 1');
  disk.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
  expect(() => record.relax()).toThrow('EIO');
  disk.fault = () => undefined;
  record.relax();
  disk = disk.crash();
  expect(new FenceRecord(disk, '/pod', 'boot 2').wasUnclean).toBe(true);
});
