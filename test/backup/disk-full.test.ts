// No room for a backup, or for a restore: it is said, nothing is left of it, and the server goes on. Needs the
// right to mount a small tmpfs.

import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isBuilt } from '../cli/polyrow-process.ts';
import { Polyrow } from '../support/polyrow.ts';
import { BackupScene } from './backup-commands.ts';

const directory = mkdtempSync(join(tmpdir(), 'polyrow-full-'));
const mounted =
  spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', directory]).status === 0;
if (!mounted) console.warn('skipped: no right to mount a tmpfs for a disk that is full');

let scene: BackupScene;
beforeEach(() => {
  scene = new BackupScene();
});
afterEach(() => scene.remove());
afterAll(() => {
  if (mounted) spawnSync('umount', [directory]);
  rmdirSync(directory);
});

/** Rows that cannot be packed. */
async function fill(server: Polyrow, megabytes: number): Promise<void> {
  const client = await server.client();
  for (let i = 0; i < megabytes; i++) {
    await client.command('SET', `key:${i}`, randomBytes(1 << 20));
  }
  client.close();
}

async function sizeOf(server: Polyrow): Promise<string> {
  const client = await server.client();
  const size = await client.text('DBSIZE');
  client.close();
  return size;
}

describe.skipIf(!mounted || !isBuilt)('a full disk', () => {
  test('under a backup', async () => {
    const server = await scene.server();
    await fill(server, 60);
    const set = join(directory, 'set');
    const { code, err } = await scene.run(server, 'backup', '--to', set);
    expect([code, err]).toEqual([1, expect.stringMatching(/no space/i)]);
    expect(readdirSync(set)).toEqual([]);
    rmSync(set, { recursive: true });
    expect(await sizeOf(server)).toBe(':60');
    await scene.backup(server);
    expect(await scene.verify()).toMatchObject({ code: 0, interrupted: [] });
  });

  test.each(['memory', 'kv'])('under a restore to the %s engine', async (model) => {
    const server = await scene.server();
    await fill(server, 60);
    await scene.backup(server);
    await server.remove();
    const dataDir = join(directory, 'data');
    mkdirSync(dataDir);
    const target = await Polyrow.start({ dataDir, flags: ['--redis.default-model', model] });
    scene.servers.push(target);
    const client = await target.client();
    await client.text('SET', 'mine', '1');
    const { code, err } = await scene.run(target, 'restore', scene.set, '--replace');
    expect([code, err]).toEqual([1, expect.stringMatching(/space|room|full/i)]);
    expect(await client.text('GET', 'mine')).toBe('"1"');
    expect(await client.text('DBSIZE')).toBe(':1');
    client.close();
    await target.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });
});
