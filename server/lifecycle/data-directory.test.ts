import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
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

test('what is no directory is refused', () => {
  const file = join(path, 'file');
  writeFileSync(file, '');
  for (const wrong of [file, join(file, 'below')]) {
    expect(() => DataDirectory.open(wrong)).toThrow(
      /^cannot make the data directory: .*\(--data-dir\)$/,
    );
  }
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

describe.skipIf(process.getuid === undefined)('modes', () => {
  const modeOf = (name: string): string => (statSync(join(path, name)).mode & 0o777).toString(8);

  function make(name: string, mode: number, isDirectory = false): void {
    if (isDirectory) mkdirSync(join(path, name));
    else writeFileSync(join(path, name), '');
    chmodSync(join(path, name), mode);
  }

  test('what an earlier release left open to others is closed, and told once', () => {
    make('metadata', 0o755, true);
    make('metadata/000004.log', 0o644);
    make('redis', 0o755, true);
    make('redis/wal', 0o700, true);
    chmodSync(path, 0o755);
    const first = DataDirectory.open(path);
    first.unlock();
    expect([modeOf('.'), modeOf('metadata'), modeOf('metadata/000004.log')]).toEqual([
      '700',
      '700',
      '600',
    ]);
    expect(first.remarks).toEqual([
      expect.stringContaining('could open 3 files and directories'),
      expect.stringMatching(/mode of the data directory .* was 0755: it is 0700 now/),
    ]);
    const second = DataDirectory.open(path);
    second.unlock();
    expect(second.remarks).toEqual([]);
  });

  test('a directory that holds other files keeps its mode, and these files theirs', () => {
    make('photo.jpg', 0o644);
    make('metadata', 0o755, true);
    symlinkSync(join(path, 'photo.jpg'), join(path, 'metadata', 'link'));
    chmodSync(path, 0o755);
    const data = DataDirectory.open(path);
    data.unlock();
    expect([modeOf('.'), modeOf('metadata'), modeOf('photo.jpg')]).toEqual(['755', '700', '644']);
    expect(data.remarks.at(-1)).toContain('holds other files as well');
  });

  test('a directory to which everyone may write is refused when it cannot be closed', () => {
    make('photo.jpg', 0o644);
    chmodSync(path, 0o777);
    expect(() => DataDirectory.open(path)).toThrow('everyone may write to the data directory');
  });
});
