import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../universal-row/environment.ts';
import { LocalGroup } from '../replicator/group/local-group.ts';
import { realDisk } from './real-disk.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/polyrow-disk-`);
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

test('files are written, read, cut, renamed, listed and removed', async () => {
  const path = `${directory}/a`;
  const file = realDisk.open(path, 'create');
  file.write(Buffer.from('..hello'), 2, 5, 0);
  await file.writeAsync(Buffer.from(' world'), 0, 6, 5);
  await file.sync();
  file.syncNow();
  const into = Buffer.alloc(20);
  expect(file.read(into, 1, 19, 6)).toBe(5);
  expect(into.toString('latin1', 1, 6)).toBe('world');
  file.truncate(4);
  file.close();

  realDisk.rename(path, `${directory}/b`);
  realDisk.syncDirectory(directory);
  expect(realDisk.list(directory)).toEqual(['b']);
  // At a position, wherever the end is.
  const again = realDisk.open(`${directory}/b`, 'append');
  again.write(Buffer.from('J'), 0, 1, 0);
  expect(again.size()).toBe(4);
  again.close();
  realDisk.remove(`${directory}/b`);
  expect(realDisk.exists(`${directory}/b`)).toBe(false);
});

test('failures carry their code; a missing directory is empty', () => {
  expect(() => realDisk.open(`${directory}/none`, 'read')).toThrow(
    expect.objectContaining({ code: 'ENOENT' }),
  );
  expect(realDisk.list(`${directory}/none`)).toEqual([]);
  expect(realDisk.freeBytes(directory)).toBeGreaterThan(0);
});

test('holds a log through full segments, truncation and another start', async () => {
  const seen: number[] = [];
  const open = (appliedIndex: number) =>
    LocalGroup.open({
      disk: realDisk,
      directory: `${directory}/log`,
      fsync: 'always',
      segmentBytes: 4096,
      ballastBytes: 1 << 20,
      clock: systemClock,
      ids: { cluster: 1, pod: 1 },
      group: 1,
      appliedIndex,
      apply: (_buf, _start, _end, index) => {
        seen.push(index);
      },
    });
  let log = await open(0);
  const value = Buffer.alloc(500, 'v');
  for (let i = 0; i < 40; i++) {
    log.begin();
    log.writer.value(0, value, 0, 8, value, 0, 500, 0);
    log.end();
    await new Promise((resolve) => log.whenSettled(log.endTick(), resolve));
  }
  log.truncate(20);
  await log.close();
  const names = realDisk.list(`${directory}/log`);
  expect(names).toContain('ballast');
  expect(names).not.toContain('seg-0000000001');

  log = await open(20);
  expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => 21 + i));
  expect(log.status()).toMatchObject({ cleanStart: true, lastIndex: 40, incarnation: 2 });
  await log.close();
});

test('a file that is closed under a call does not pass it to the next file', async () => {
  for (let i = 0; i < 50; i++) {
    const file = realDisk.open(`${directory}/a${i}`, 'create');
    const calls = [file.writeAsync(Buffer.alloc(1 << 20, 'a'), 0, 1 << 20, 0), file.sync()];
    file.close();
    const next = realDisk.open(`${directory}/b${i}`, 'create');
    next.write(Buffer.from('b'), 0, 1, 0);
    await Promise.all(calls);
    expect(next.size()).toBe(1);
    next.close();
    await expect(file.sync()).rejects.toThrow('is closed');
  }
});
