// Chunks of a backup that another node writes to a directory here.

import { expect, test } from 'vitest';
import type { Json } from '../../control/metadata/document-store.ts';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import { seededRng } from '../../storage-node/replicator/group/log-fixture.ts';
import { makeDurableDirectory } from '../../universal-row/durable-names.ts';
import { ClusterPlanes } from './cluster-planes.ts';

type Handler = (body: Json) => Promise<Json>;
type Parameters = ConstructorParameters<typeof ClusterPlanes>;

const directory = '/backup';
const path = `${directory}/a-000001.chunk`;
const first = { path, action: 'write', position: 0, bytes: base64('first') };
const second = { path, action: 'write', position: 5, bytes: base64('second') };

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function planes() {
  const disk = new FaultyDisk({ rng: seededRng(1) });
  makeDurableDirectory(disk, directory);
  const handlers = new Map<string, Handler>();
  const metadata = {
    handlers: { on: (name: string, handler: Handler) => void handlers.set(name, handler) },
  } as unknown as Parameters[1];
  const all = new ClusterPlanes({} as Parameters[0], metadata, {} as Parameters[2], disk);
  const chunk = (request: Json): Promise<Json> => handlers.get('backup/chunk')!(request);
  return { all, disk, chunk };
}

test('pieces are written, synced, and read back', async () => {
  const { all, disk, chunk } = planes();
  const close = all.open(directory);
  expect(await chunk({ path, action: 'size' })).toEqual({ size: -1 });
  await chunk(first);
  await chunk(second);
  await chunk({ path, action: 'sync' });
  disk.syncDirectory(directory);
  expect(await chunk({ path, action: 'size' })).toEqual({ size: 11 });
  const read = { path, action: 'read', position: 3, length: 100 };
  expect(await chunk(read)).toEqual({ bytes: base64('stsecond') });
  close();
  await expect(chunk(first)).rejects.toThrow('is of no backup');
  expect(disk.crash().contents(path).toString()).toBe('firstsecond');
});

test('a piece that the disk could not write fails the sync, also where that happened before the last piece', async () => {
  const { all, disk, chunk } = planes();
  all.open(directory);
  await chunk(first);
  disk.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
  expect(() => disk.open(path, 'append').syncNow()).toThrow('EIO');
  disk.fault = () => undefined;
  await chunk(second);
  await expect(chunk({ path, action: 'sync' })).rejects.toThrow('EIO');
});

test('a chunk begins anew with its first piece, and ends with its backup', async () => {
  const { all, disk, chunk } = planes();
  const close = all.open(directory);
  await chunk(first);
  await chunk(second);
  await chunk(first);
  expect(disk.contents(path).toString()).toBe('first');
  close();
  all.open(directory);
  await expect(chunk(second)).rejects.toThrow('is not being written');
  await expect(chunk({ path, action: 'sync' })).rejects.toThrow('is not being written');
});
