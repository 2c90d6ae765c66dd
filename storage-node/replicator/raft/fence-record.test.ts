import { expect, test } from 'vitest';
import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import { FaultyDisk } from '../../disk/faulty-disk.ts';
import { seededRng } from '../group/log-fixture.ts';
import { FenceRecord } from './fence-record.ts';

test('a start after a failed sync is unclean in the same boot, where writes were acknowledged ahead of the disk', () => {
  const disk = new FaultyDisk({ rng: seededRng(1) });
  makeDurableDirectory(disk, '/pod');
  const strict = new FenceRecord(disk, '/pod', 'boot 1');
  strict.logFailed();
  expect(new FenceRecord(disk, '/pod', 'boot 1').wasUnclean).toBe(false);
  const relaxed = new FenceRecord(disk, '/pod', 'boot 1');
  relaxed.relax();
  expect(new FenceRecord(disk, '/pod', 'boot 1').wasUnclean).toBe(false);
  relaxed.logFailed();
  const next = new FenceRecord(disk, '/pod', 'boot 1');
  expect(next.wasUnclean).toBe(true);
  next.fence(new Map([[7, 3]]));
  expect(new FenceRecord(disk, '/pod', 'boot 1').wasUnclean).toBe(false);
});

test('a start after a failed sync is unclean also where the disk takes no new file', () => {
  const disk = new FaultyDisk({ rng: seededRng(1) });
  makeDurableDirectory(disk, '/pod');
  const record = new FenceRecord(disk, '/pod', 'boot 1');
  record.fence(new Map([[7, 3]]));
  record.relax();
  disk.fault = (operation) =>
    operation === 'sync' || operation === 'create' ? 'ENOSPC' : undefined;
  record.logFailed();
  // As by each one that notices.
  record.logFailed();
  disk.fault = () => undefined;
  const next = new FenceRecord(disk, '/pod', 'boot 1');
  expect(next.wasUnclean).toBe(true);
  expect(next.fenceOf(7)).toBe(3);
  next.fence(new Map([[8, 4]]));
  const last = new FenceRecord(disk, '/pod', 'boot 1');
  expect([last.wasUnclean, last.fenceOf(7), last.fenceOf(8)]).toEqual([false, 3, 4]);
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

test.each(['lifted', 'settled'] as const)(
  'what is %s later than a failed sync is recorded',
  (what) => {
    const disk = new FaultyDisk({ rng: seededRng(1) });
    makeDurableDirectory(disk, '/pod');
    const record = new FenceRecord(disk, '/pod', 'boot 1');
    record.fence(new Map([[7, 3]]));
    record.relax();
    disk.fault = (operation) => (operation === 'create' ? 'ENOSPC' : undefined);
    record.logFailed();
    disk.fault = () => undefined;
    if (what === 'lifted') record.lifted(7);
    else record.settled();
    const next = new FenceRecord(disk, '/pod', 'boot 1');
    expect([next.wasUnclean, next.fenceOf(7)]).toEqual(what === 'lifted' ? [true, 0] : [false, 3]);
  },
);

test('a full disk has the room of the ballast for the record', () => {
  const disk = new FaultyDisk({ rng: seededRng(1) });
  makeDurableDirectory(disk, '/pod');
  disk.open('/pod/ballast', 'create');
  disk.fault = (operation) =>
    operation === 'create' && disk.exists('/pod/ballast') ? 'ENOSPC' : undefined;
  const record = new FenceRecord(disk, '/pod', 'boot 1');
  record.relax();
  expect(new FenceRecord(disk, '/pod', 'boot 2').wasUnclean).toBe(true);
});
