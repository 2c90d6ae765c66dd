// No other user of the machine can read what the server writes: every file and directory is looked at.

import { chmodSync, lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { RespClient } from '../support/resp-client.ts';
import { isBuilt, polyrow } from './polyrow-process.ts';

/** Paths below it, the directory itself as '', with a mode that lets others do anything. */
function openToOthers(directory: string): string[] {
  const paths = ['', ...readdirSync(directory, { recursive: true, encoding: 'utf8' })];
  return paths.filter((path) => (lstatSync(join(directory, path)).mode & 0o077) !== 0);
}

test.skipIf(!isBuilt)('data directory and backups are for their owner alone', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'polyrow-modes-'));
  const backups = mkdtempSync(join(tmpdir(), 'polyrow-modes-backup-'));
  // As a volume or a package makes it.
  chmodSync(dataDir, 0o755);
  const server = await Polyrow.start({ dataDir, flags: ['--redis.default-model', 'kv'] });
  try {
    const run = async (...words: string[]): Promise<void> => {
      const done = await polyrow([...words, '--data-dir', dataDir]);
      expect([done.code, words]).toEqual([0, words]);
    };
    await run('tenant', 'create', 'shop');
    const client = await RespClient.connect(server.redisPort);
    for (let i = 0; i < 100; i++) await client.command('SET', `key ${i}`, 'x'.repeat(1000));
    client.close();
    await fetch(`${server.influx}/query?q=CREATE%20DATABASE%20d`, { method: 'POST' });
    await fetch(`${server.influx}/write?db=d`, { method: 'POST', body: 'm v=1 1' });
    await run('backup', '--to', backups);
    expect(openToOthers(dataDir)).toEqual([]);
    expect(openToOthers(backups)).toEqual([]);
    expect(server.output).toMatch(/mode of the data directory .* was 0755: it is 0700 now/);
    // A checkpoint and files of points come with the stop.
    await server.stop();
    expect(openToOthers(dataDir)).toEqual([]);
  } finally {
    await server.remove();
    rmSync(dataDir, { recursive: true });
    rmSync(backups, { recursive: true });
  }
});
