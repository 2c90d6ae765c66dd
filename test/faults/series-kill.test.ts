// kill -9 of the InfluxDB side under load, while heads are flushed, and while files are merged. Every point
// of a write that was answered must be there afterwards with its values, and none that was never sent.
//
//   POLYROW_FULL=1    100 kills for each instead of a few
//   KILLS=n           that many; KILL_SEED=n repeats the moments of a run

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { database, post, SeriesWriter } from './series-workload.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const kills = Number(process.env['KILLS'] ?? (full ? 100 : 2));
const seed = seedFrom('KILL_SEED');
const killsPerDatabase = 10;

let server: Polyrow | undefined;
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

interface Phase {
  name: string;
  flags: readonly string[];
  /** Writers pause so long before the kill, so that other work is under way; at most. */
  pauseMs: number;
  /** Files of points must have been made meanwhile. */
  makesFiles: boolean;
}

const log = ['--wal.fsync', 'always', '--wal.segment-bytes', '256kb'];
const small = [...log, '--tsm.head-bytes', '1mb', '--wal.checkpoint-bytes', '1mb'];
const phases: Phase[] = [
  { name: 'load', flags: log, pauseMs: 0, makesFiles: false },
  { name: 'flushes', flags: small, pauseMs: 0, makesFiles: true },
  {
    name: 'compaction',
    flags: [...small, '--tsm.cold-after', '1'],
    pauseMs: 1600,
    makesFiles: true,
  },
];

test.each(phases)(
  `survives ${kills} kills during $name`,
  { timeout: 7_200_000 },
  async ({ flags, pauseMs, makesFiles }) => {
    const random = new Random(seed);
    server = await Polyrow.start({ flags });
    const polyrow = server;
    const writers = Array.from({ length: 5 }, (_, i) => new SeriesWriter(`w${i}`, random));
    await post(polyrow.influx, { q: `CREATE DATABASE ${database}` });
    for (let kill = 1; kill <= kills; kill++) {
      const where = `seed ${seed}, kill ${kill}`;
      const before = acknowledged(writers);
      const writing = writers.map((writer) => writer.run(polyrow));
      await expect
        .poll(() => acknowledged(writers), { timeout: 60_000, interval: 20 })
        .toBeGreaterThan(before);
      // A slow machine has written little by then.
      if (makesFiles) await expect.poll(() => pointFiles(polyrow).length).toBeGreaterThan(0);
      await sleep(random.below(1000));
      if (pauseMs > 0) {
        for (const writer of writers) writer.stop();
        await Promise.all(writing);
        await sleep(random.below(pauseMs));
      }
      await polyrow.kill();
      await Promise.all(writing);
      await polyrow.restart().catch((error: unknown) => {
        throw new Error(`${where}: no restart`, { cause: error });
      });
      for (const writer of writers) await writer.verify(polyrow, where);
      if (kill % killsPerDatabase !== 0 || kill === kills) continue;
      const changes = `DROP DATABASE ${database}; CREATE DATABASE ${database}`;
      await post(polyrow.influx, { q: changes });
      for (const writer of writers) writer.forget();
    }
    if (makesFiles) expect(pointFiles(polyrow).length).toBeGreaterThan(0);
    await polyrow.stop();
    await polyrow.restart();
    for (const writer of writers) await writer.verify(polyrow, 'after an orderly end');
  },
);

test('a kill during recovery harms nothing', async () => {
  const random = new Random(seed);
  server = await Polyrow.start({ flags: [...small, '--tsm.cold-after', '1'] });
  const polyrow = server;
  const writer = new SeriesWriter('w', random);
  await post(polyrow.influx, { q: `CREATE DATABASE ${database}` });
  const writing = writer.run(polyrow);
  await sleep(1500);
  await polyrow.kill();
  await writing;
  for (let i = 0; i < 5; i++) {
    const starting = polyrow.restart().then(
      () => true,
      () => false,
    );
    await sleep(100 + random.below(300));
    if (polyrow.running) await polyrow.kill();
    await starting;
  }
  await polyrow.restart();
  await writer.verify(polyrow, `seed ${seed}`);
  await polyrow.stop();
});

function acknowledged(writers: readonly SeriesWriter[]): number {
  return writers.reduce((sum, writer) => sum + writer.acknowledged.size, 0);
}

function pointFiles({ dataDir }: Polyrow): string[] {
  const names = readdirSync(join(dataDir, 'influx', 'data'), { recursive: true }) as string[];
  return names.filter((name) => name.endsWith('.tsm'));
}
