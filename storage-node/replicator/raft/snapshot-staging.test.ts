import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { realDisk } from '../../disk/real-disk.ts';
import { removeStagings, SnapshotStaging } from './snapshot-staging.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-staging-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

test('chunks come back whole and in order, and other work has its turns between them', async () => {
  const staging = new SnapshotStaging(realDisk, directory, 7, 'one');
  const sizes = [1, 128 * 1024, 0, ...Array.from({ length: 80 }, () => 100_000)];
  sizes.forEach((size, i) => staging.add(Buffer.alloc(size, i + 1)));
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  let next = 0;
  for await (const chunk of staging.chunks()) {
    const size = sizes[next++]!;
    expect(chunk).toEqual(Buffer.alloc(size, next));
  }
  isOver = true;
  expect(next).toBe(sizes.length);
  // Eight megabytes, half a megabyte in a step.
  expect(turns).toBeGreaterThanOrEqual(12);
  staging.remove();
  expect(readdirSync(directory)).toEqual([]);
});

test('what an earlier process left is removed', () => {
  new SnapshotStaging(realDisk, directory, 7, 'one').add(Buffer.from('rows'));
  expect(readdirSync(directory)).toHaveLength(1);
  removeStagings(realDisk, directory);
  expect(readdirSync(directory)).toEqual([]);
});
