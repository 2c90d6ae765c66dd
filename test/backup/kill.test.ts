// kill -9 during backups and restores. A backup is there whole or not at all, whatever came in between; a restore
// has taken effect or has not, and can be made again.
//
//   POLYROW_FULL=1    50 kills of each instead of a few
//   KILLS=n           that many; KILL_SEED=n repeats the moments of a run

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listBackups } from '../../storage-node/backup/manifest.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { isBuilt } from '../cli/polyrow-process.ts';
import type { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { BackupScene, query, writeLines } from './backup-commands.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const kills = Number(process.env['KILLS'] ?? (full ? 50 : 1));
const seed = seedFrom('KILL_SEED');
/** Milliseconds: a little longer than a backup or a restore of what is here takes. */
const longest = 500;

let scene: BackupScene;
beforeEach(() => {
  scene = new BackupScene();
});
afterEach(() => scene.remove());

/** Rows in both engines, and points: enough that a backup takes a while. */
async function fill(server: Polyrow, round: number): Promise<void> {
  const client = await server.client();
  for (const database of [0, 1]) {
    await client.text('SELECT', database);
    const keys = Array.from({ length: 4000 }, (_, i) => `${round}:${i}`);
    await client.pipeline(keys.map((key) => ['SET', key, key.repeat(30)]));
    await client.text('SET', 'round', round);
  }
  client.close();
  const lines = Array.from({ length: 4000 }, (_, i) => `m,r=${round} v=${i} ${(i + 1) * 1e9}`);
  await writeLines(server, 'd', lines.join('\n'));
}

/** Summary of the contents, by engine. */
async function contents(server: Polyrow): Promise<string[]> {
  const client = await server.client();
  const found: string[] = [];
  for (const database of [0, 1]) {
    await client.text('SELECT', database);
    found.push(`${await client.text('GET', 'round')} ${await client.text('DBSIZE')}`);
  }
  client.close();
  const points = await query(server, 'SELECT count(v) FROM m GROUP BY r', 'd').catch(() => null);
  found.push(JSON.stringify(points ?? null));
  return found;
}

describe.skipIf(!isBuilt)('a server killed', { timeout: 120_000 + kills * 60_000 }, () => {
  test(`${kills} times during a backup`, async () => {
    const random = new Random(seed);
    const source = await scene.server(['--wal.segment-bytes', '256kb']);
    await scene.answer(source, 'table', 'create', '1', '--model', 'kv');
    await query(source, 'CREATE DATABASE d');
    const states = new Map<string, string[]>();
    let interrupted = 0;
    for (let kill = 1; kill <= kills; kill++) {
      const where = `seed ${seed}, kill ${kill}`;
      await fill(source, kill);
      const expected = await contents(source);
      const known = new Set(states.keys());
      await scene.job(source, 'backups', { incremental: kill % 2 === 0 });
      await sleep(random.below(longest));
      await source.kill();
      await source.restart();
      expect(await contents(source), where).toEqual(expected);
      interrupted += listBackups(realDisk, scene.set).partial.length;
      // The interrupted backup is not read, and is removed on request.
      const again = await scene.backup(source, '--incremental', '--remove-interrupted');
      expect(again.interrupted, where).toEqual([]);
      const { code, err, backups } = await scene.verify();
      expect([code, err], where).toEqual([0, '']);
      for (const { id } of backups) if (!known.has(id)) states.set(id, expected);
    }
    // With so many, moments in the middle must have been among them.
    if (kills >= 10) expect(interrupted).toBeGreaterThan(0);
    const target = await scene.server();
    for (const [id, expected] of [...states].slice(-4)) {
      await scene.restore(target, '--backup', id, '--replace');
      expect(await contents(target), `seed ${seed}, ${id}`).toEqual(expected);
    }
  });

  test(`${kills} times during a restore`, async () => {
    const random = new Random(seed);
    const source = await scene.server();
    await query(source, 'CREATE DATABASE d');
    await scene.answer(source, 'table', 'create', '1', '--model', 'kv');
    await fill(source, 1);
    const expected = await contents(source);
    await scene.backup(source);
    await source.remove();
    const target = await scene.server(['--wal.segment-bytes', '256kb']);
    for (let kill = 1; kill <= kills; kill++) {
      const where = `seed ${seed}, kill ${kill}`;
      const before = await contents(target);
      await scene.job(target, 'restores', { replace: true });
      await sleep(random.below(longest));
      await target.kill();
      await target.restart();
      const after = await contents(target);
      // Each engine takes it on at once, but their logs are three.
      for (const [engine, found] of after.entries()) {
        expect([before[engine], expected[engine]], where).toContain(found);
      }
      if (kill % 2 === 0) {
        await scene.restore(target, '--replace');
        expect(await contents(target), where).toEqual(expected);
        const client = await target.client();
        await client.text('SET', 'round', `other ${kill}`);
        client.close();
      }
    }
    await scene.restore(target, '--replace');
    expect(await contents(target)).toEqual(expected);
  });
});
