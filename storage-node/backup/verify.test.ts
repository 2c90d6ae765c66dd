// Any damage of a backup is found and reported with its file, and none of the backup is restored.

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { batchOf, TestSeriesCache } from '../../engines/tsm/testing/point-batches.ts';
import { realDisk } from '../disk/real-disk.ts';
import type { Pod } from '../pod.ts';
import type { SeriesPod } from '../series-pod.ts';
import { BackupFixture, put } from './backup-fixture.ts';
import type { BackupManifest } from './manifest-content.ts';
import { SeriesRestore } from './series-restore.ts';
import { verifyBackup } from './verify.ts';

const f = new BackupFixture();
let full: BackupManifest;
let second: BackupManifest;
let target: Pod;
let seriesTarget: SeriesPod;

beforeAll(async () => {
  const rows = await f.pod('rows', 'memory');
  const series = await f.seriesPod('series');
  const pods = { memory: rows, tsm: series };
  const cache = new TestSeriesCache();
  const points = (from: number) =>
    Array.from({ length: 500 }, (_, n) => ({
      series: `m,host=${n % 7}`,
      time: BigInt(from + n) * 1_000_000_000n,
      fields: { v: n / 3, s: `text ${n}` },
    }));
  void series.change({ kind: 'createDatabase', database: 'd' });
  await series.write('d', '', batchOf(cache, points(0)));
  for (let i = 0; i < 300; i++) await put(rows, 0, `key ${i}`, `value ${i * i}`);
  full = await f.backup(pods);
  await series.write('d', '', batchOf(cache, points(10_000_000)));
  for (let i = 0; i < 300; i += 2) await put(rows, 0, `key ${i}`, `changed ${i}`);
  second = await f.backup(pods, full);
  target = await f.pod('target', 'memory');
  seriesTarget = await f.seriesPod('series target');
});
afterAll(() => f.close());

async function problems(id: string): Promise<readonly string[]> {
  return (await verifyBackup(realDisk, f.set, id)).problems;
}

/** Both parts of the newest backup; the first refusal. */
async function restored(): Promise<string> {
  const failures: string[] = [];
  const rows = () => f.restore(second, 'memory', target);
  const series = () =>
    new SeriesRestore({
      disk: realDisk,
      pod: seriesTarget,
      sources: [f.parts(second, 'tsm')],
      moves: [{ from: 0, to: 0 }],
      replace: false,
    });
  for (const make of [rows, series]) {
    try {
      const restore = make();
      try {
        await restore.load();
      } finally {
        await restore.release();
      }
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  expect(target.heldTables()).toEqual([]);
  expect(seriesTarget.databases()).toEqual([]);
  return failures.join('\n');
}

test('what is whole has no problems', async () => {
  expect(await verifyBackup(realDisk, f.set, full.id)).toMatchObject({
    problems: [],
    parts: [
      { model: 'memory', kind: 'all', rows: 300 },
      { model: 'tsm', kind: 'all', shards: 1, points: 500 },
    ],
  });
  expect(await verifyBackup(realDisk, f.set, second.id)).toMatchObject({
    problems: [],
    parent: full.id,
    parts: [
      { model: 'memory', kind: 'entries', rows: 300, changes: 150 },
      { model: 'tsm', kind: 'shards', shards: 1, points: 500 },
    ],
  });
  expect(await restored()).toBe('');
});

describe('damage', () => {
  /** Puts something else in place of each file of both backups, one at a time. */
  async function eachFile(
    check: (path: string, whole: Buffer, isManifest: boolean) => Promise<void>,
  ): Promise<void> {
    for (const { id } of [full, second]) {
      for (const name of readdirSync(join(f.set, id))) {
        const path = join(f.set, id, name);
        const whole = readFileSync(path);
        await check(path, whole, name === 'manifest.json');
        writeFileSync(path, whole);
      }
    }
    expect([...(await problems(full.id)), ...(await problems(second.id))]).toEqual([]);
  }

  test('of any file, a flipped byte here or there', async () => {
    await eachFile(async (path, whole) => {
      const id = path.split('/').at(-2)!;
      for (let i = 0; i < 12; i++) {
        const damaged = Buffer.from(whole);
        const place = Math.floor((whole.length / 12) * i);
        damaged[place]! ^= 0x10;
        writeFileSync(path, damaged);
        expect((await problems(id)).join(), `${path} ${place}`).toContain(path);
        expect(await restored(), `${path} ${place}`).toContain(path);
      }
    });
  });

  test('of any file, which is cut short or gone', async () => {
    await eachFile(async (path, whole) => {
      const id = path.split('/').at(-2)!;
      for (const length of [0, 10, Math.floor(whole.length / 2), whole.length - 1]) {
        writeFileSync(path, whole.subarray(0, length));
        expect((await problems(id)).join(), `${path} ${length}`).toContain(path);
        expect(await restored(), `${path} ${length}`).toContain(path);
      }
      rmSync(path);
      expect((await problems(id)).join()).toContain(path);
      expect(await restored()).toContain(path);
    });
  });

  test('of the full backup breaks the chain', async () => {
    const path = join(f.set, full.id, 'manifest.json');
    const whole = readFileSync(path);
    writeFileSync(path, whole.subarray(1));
    expect((await problems(second.id)).join()).toContain(path);
    writeFileSync(path, whole);
  });

  test('a file too many', async () => {
    const path = join(f.set, full.id, 'stranger.chunk');
    writeFileSync(path, '');
    expect(await problems(full.id)).toEqual([expect.stringContaining('does not belong here')]);
    rmSync(path);
  });
});
