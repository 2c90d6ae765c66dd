// A file system without room: writes are refused and say why, reads go on, and when there is room again so
// do writes, without a restart. Needs the right to mount a small tmpfs.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { isError, show, textOf } from '../support/resp-value.ts';

const directory = mkdtempSync(join(tmpdir(), 'polyrow-full-'));
const mounted =
  spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', directory]).status === 0;
if (!mounted) console.warn('skipped: no right to mount a tmpfs for a disk that is full');

afterAll(() => {
  if (mounted) spawnSync('umount', [directory]);
  rmdirSync(directory);
});

describe.skipIf(!mounted).each(['memory', 'kv'])('a full disk, %s model', (model) => {
  test.each(['always', 'everysec'])('fsync %s', async (policy) => {
    const dataDir = join(directory, 'data');
    const filler = join(directory, 'filler');
    const flags = ['--redis.default-model', model, '--wal.fsync', policy];
    const small = ['--wal.segment-bytes', '4mb', '--wal.checkpoint-bytes', '1gb'];
    const server = await Polyrow.start({ dataDir, flags: [...flags, ...small] });
    try {
      const client = await server.client();
      await client.command('SET', 'before', 'value');
      // Another file takes the space.
      fill(filler);
      let written = 0;
      let refusal = '';
      while (refusal === '' && written < 2000) {
        const reply = await client.command('SET', `key:${written}`, 'v'.repeat(50_000));
        if (isError(reply)) refusal = textOf(reply);
        else written++;
      }
      expect(refusal).toMatch(/^[A-Z]+ .*(disk|space|room)/i);
      expect(await client.text('INCR', 'counter')).toMatch(/^-[A-Z]+ /);
      expect(await client.text('GET', 'before')).toBe('"value"');
      expect(await client.text('PING')).toBe('+PONG');
      // Refused writes did not happen, acknowledged ones did.
      expect(await client.text('EXISTS', `key:${written}`, 'counter')).toBe(':0');
      expect(await client.text('DBSIZE')).toBe(`:${written + 1}`);
      const transaction = await client.pipeline([['MULTI'], ['SET', 'x', 1], ['EXEC']]);
      expect(transaction.map(show).join(' ')).toMatch(/-(MISCONF|EXECABORT) /);

      rmSync(filler);
      await expect
        .poll(() => client.text('SET', 'after', 'value'), { timeout: 10_000, interval: 200 })
        .toBe('+OK');
      expect(await client.text('INCR', 'counter')).toBe(':1');
      client.close();
      await server.kill();
      await server.restart();
      const reader = await server.client();
      expect(await reader.text('DBSIZE')).toBe(`:${written + 3}`);
      expect(await reader.text('MGET', 'before', 'after', 'counter')).toBe(
        '*["value" "value" "1"]',
      );
      reader.close();
      await server.stop();
    } finally {
      await server.remove();
      rmSync(filler, { force: true });
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

/** Takes every byte the file system has left. */
function fill(path: string): void {
  for (const size of [1 << 20, 4096, 1]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(size), { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}
