// A file system without room under the InfluxDB side: writes are refused and say why, queries go on, and when
// there is room again so do writes, without a restart. Needs the right to mount a small tmpfs.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { database, post, query, write } from './series-workload.ts';

const directory = mkdtempSync(join(tmpdir(), 'polyrow-series-full-'));
const mounted =
  spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=96m', 'tmpfs', directory]).status === 0;
if (!mounted) console.warn('skipped: no right to mount a tmpfs for a disk that is full');

afterAll(() => {
  if (mounted) spawnSync('umount', [directory]);
  rmdirSync(directory);
});

const pointsPerBody = 1000;

/** Points that do not shrink much. */
function body(n: number): string {
  return Array.from({ length: pointsPerBody }, (_, i) => {
    const k = n * pointsPerBody + i;
    const noise = Array.from({ length: 6 }, (_, j) => Math.sin(k * 7 + j)).join();
    return `full,part=${k % 3} n=${k}i,s="${noise}" ${1_600_000_000_000_000_000n + BigInt(k)}`;
  }).join('\n');
}

async function numbers(server: Polyrow): Promise<number> {
  const [result] = await query(server, 'SELECT count(n), min(n), max(n), sum(n) FROM "full"');
  expect(result!.error).toBeUndefined();
  const [, count, min, max, sum] = result!.series![0]!.values[0] as [string, ...number[]];
  // All bodies from the first to some last one, whole.
  expect([min, max, sum]).toEqual([0, count! - 1, (count! * (count! - 1)) / 2]);
  return count!;
}

describe.skipIf(!mounted)('a full disk', () => {
  test.each(['always', 'everysec'])('fsync %s', { timeout: 300_000 }, async (policy) => {
    const dataDir = join(directory, 'data');
    const filler = join(directory, 'filler');
    const flags = [
      ...['--wal.fsync', policy, '--wal.segment-bytes', '4mb', '--wal.checkpoint-bytes', '8mb'],
      ...['--tsm.head-bytes', '4mb'],
    ];
    const server = await Polyrow.start({ dataDir, flags });
    try {
      await post(server.influx, { q: `CREATE DATABASE ${database}` });
      let written = 0;
      for (; written < 10; written++) expect((await write(server, body(written))).status).toBe(204);
      // Another file takes the space.
      fill(filler);
      let refusal = '';
      while (refusal === '' && written < 2000) {
        const response = await write(server, body(written));
        if (response.status === 204) written++;
        else {
          expect(response.status).toBeGreaterThanOrEqual(500);
          refusal = await response.text();
        }
      }
      expect(refusal).toMatch(/disk|space|room/i);
      expect((await write(server, body(written))).status).toBeGreaterThanOrEqual(500);
      expect((await fetch(`${server.influx}/ping`)).status).toBe(204);
      // Acknowledged writes happened, refused ones did not: but for the first parts of the one that met the full disk, as a
      // body that takes long is written in parts.
      const has = await numbers(server);
      expect(has).toBeGreaterThanOrEqual(written * pointsPerBody);
      expect(has).toBeLessThan((written + 1) * pointsPerBody);

      rmSync(filler);
      await expect
        .poll(async () => (await write(server, body(written))).status, {
          timeout: 20_000,
          interval: 200,
        })
        .toBe(204);
      for (let n = 1; n < 5; n++) expect((await write(server, body(written + n))).status).toBe(204);
      expect(await numbers(server)).toBe((written + 5) * pointsPerBody);
      await server.kill();
      await server.restart();
      expect(await numbers(server)).toBe((written + 5) * pointsPerBody);
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
