import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { Trial } from '../conformance/trial.ts';
import { KvEngine } from './kv-engine.ts';
import { LevelZeroCounter, parseLevelStats } from './level-stats.ts';
import { LevelBatch, LevelStore } from './level-store.ts';

const mebibyte = 1024 * 1024;
const root = mkdtempSync(join(tmpdir(), 'polyrow-level-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function table(...rows: string[]): string {
  return [
    '                               Compactions',
    'Level  Files Size(MB) Time(sec) Read(MB) Write(MB)',
    '--------------------------------------------------',
    ...rows,
    '',
  ].join('\n');
}

/** Statistics of level 0: files, MiB stored, and MiB written into it. */
function levelZero(files: number, size: number, written: number): string {
  return table(`  0 ${files} ${size} 1 0 ${written}`, '  1 7 58 2 241 238');
}

test('rows of levels are read, whatever stands above them', () => {
  expect(parseLevelStats(levelZero(2, 17, 134))).toEqual(
    new Map([
      [0, { files: 2, bytes: 17 * mebibyte, readBytes: 0, writtenBytes: 134 * mebibyte }],
      [
        1,
        { files: 7, bytes: 58 * mebibyte, readBytes: 241 * mebibyte, writtenBytes: 238 * mebibyte },
      ],
    ]),
  );
  expect(parseLevelStats(table()).size).toBe(0);
});

test('what came into level 0 and is not there any more was compacted', () => {
  const counter = new LevelZeroCounter();
  const compacted = (stats: string | undefined): number =>
    counter.read(stats).compactedBytes / mebibyte;
  // 10 MiB were there from before.
  expect(compacted(levelZero(3, 14, 4))).toBe(0);
  expect(compacted(levelZero(4, 20, 10))).toBe(0);
  expect(compacted(levelZero(1, 5, 10))).toBe(15);
  // Rounded otherwise, or not to be had at the moment.
  expect(compacted(levelZero(1, 6, 10))).toBe(15);
  expect(compacted(undefined)).toBe(15);
  expect(counter.read(undefined).files).toBe(0);
  // Opened again, with 5 MiB there.
  counter.closed();
  expect(compacted(table('  0 1 5 0 0 0'))).toBe(15);
  expect(compacted(table())).toBe(20);
  expect(counter.read(table()).flushedBytes).toBe(10 * mebibyte);
});

test('a LevelDB that is written to tells what it compacts', async () => {
  const store = new LevelStore(join(root, 'db'), { writeBufferBytes: mebibyte });
  await store.open();
  expect(store.levelZero()).toEqual({ files: 0, bytes: 0, flushedBytes: 0, compactedBytes: 0 });
  let compacted = 0;
  const write = async (): Promise<void> => {
    const batch = new LevelBatch();
    // Keys all over the place, so that files of level 0 overlap and must be merged.
    for (let i = 0; i < 64; i++) batch.put(randomBytes(8), randomBytes(4096));
    await store.write(batch);
    const now = store.levelZero();
    expect(now.compactedBytes).toBeGreaterThanOrEqual(compacted);
    compacted = now.compactedBytes;
  };
  for (let i = 0; i < 96; i++) await write();
  for (let left = 200; store.levelZero().files >= 4 && left > 0; left--) await sleep(10);
  const { files, bytes, flushedBytes, compactedBytes } = store.levelZero();
  expect(files).toBeLessThan(4);
  expect(flushedBytes).toBeGreaterThan(12 * mebibyte);
  expect(compactedBytes).toBeGreaterThan(8 * mebibyte);
  expect(Math.abs(flushedBytes - bytes - compactedBytes)).toBeLessThanOrEqual(2 * mebibyte);
  await store.reopen();
  expect(store.levelZero().compactedBytes).toBeGreaterThanOrEqual(compactedBytes);
  await store.close();
  expect(store.levelZero().files).toBe(0);
});

test('the stats of the engine have what write tokens are worked out from', async () => {
  const trial = await Trial.open({
    model: 'kv',
    supports: { rollback: true, reopen: true },
    create: (directory) => new KvEngine({ directory, level: { writeBufferBytes: mebibyte } }),
    newDirectory: () => join(root, 'engine'),
  });
  const stats = (): Record<string, number> => trial.engine.stats().extra;
  for (let i = 0; i < 40; i++) {
    await trial.run((v) => {
      // The same keys again and again, so that what is flushed overlaps.
      for (let j = 0; j < 10; j++) v.put(`k${j}`, randomBytes(30_000).toString('base64'));
    });
    // Or the last of them would be all that is written.
    trial.engine.endTick();
    while (stats()['kv_waiting_bytes']! > 0) await sleep(1);
  }
  for (let left = 200; stats()['kv_level0_files']! >= 4 && left > 0; left--) await sleep(10);
  const of = (name: string): number => stats()[`kv_level0_${name}`] ?? NaN;
  expect(of('files')).toBeLessThan(4);
  expect(of('flushed_bytes_total')).toBeGreaterThan(4 * mebibyte);
  expect(of('compacted_bytes_total')).toBeGreaterThan(2 * mebibyte);
  expect(of('compacted_bytes_total')).toBeLessThanOrEqual(
    of('flushed_bytes_total') - of('bytes') + 2 * mebibyte,
  );
  await trial.close();
});
