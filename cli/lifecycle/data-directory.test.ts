import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DataDirectory, formatVersion, lockHolder } from './data-directory.ts';

let path: string;
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'polyrow-data-'));
});
afterEach(() => rmSync(path, { recursive: true }));

function lockedBy(owner: object): void {
  writeFileSync(join(path, 'lock'), JSON.stringify(owner));
}

test('a directory is made, locked, and let go', () => {
  const below = join(path, 'a', 'b');
  const data = DataDirectory.open(below);
  expect(lockHolder(below)).toBe(process.pid);
  expect(readFileSync(join(below, 'version'), 'utf8').trim()).toBe(String(formatVersion));
  data.unlock();
  expect(lockHolder(below)).toBeUndefined();
  expect(readdirSync(below)).toEqual(['version']);
});

test('a living owner keeps others out and is named', async () => {
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  try {
    lockedBy({ pid: other.pid, started: '' });
    expect(() => DataDirectory.open(path)).toThrow(`in use by process ${other.pid}`);
  } finally {
    other.kill('SIGKILL');
    await once(other, 'exit');
  }
  DataDirectory.open(path).unlock();
});

test('a pid that belongs to a later process is no owner', () => {
  lockedBy({ pid: process.ppid, started: '1' });
  const data = DataDirectory.open(path);
  expect(lockHolder(path)).toBe(process.pid);
  data.unlock();
});

test('a lock file that cannot be read is taken over', () => {
  writeFileSync(join(path, 'lock'), 'rubbish');
  DataDirectory.open(path).unlock();
  expect(existsSync(join(path, 'lock'))).toBe(false);
});

test('the marker stays until a clean stop', () => {
  const first = DataDirectory.open(path);
  expect(first.wasUnclean).toBe(false);
  first.markUnclean();
  first.unlock();

  const second = DataDirectory.open(path);
  expect(second.wasUnclean).toBe(true);
  second.markUnclean();
  second.markClean();
  second.unlock();

  const third = DataDirectory.open(path);
  expect(third.wasUnclean).toBe(false);
  third.unlock();
});

test('a newer format is refused, a damaged version file too', () => {
  writeFileSync(join(path, 'version'), `${formatVersion + 1}\n`);
  expect(() => DataDirectory.open(path)).toThrow('written by a newer Polyrow');
  writeFileSync(join(path, 'version'), 'x');
  expect(() => DataDirectory.open(path)).toThrow('damaged');
  expect(readdirSync(path)).toEqual(['version']);
});
