// kill -9 under load. A process that dies loses nothing it had handed to the operating system, whatever the
// fsync policy; so every acknowledged write must be there, and of the others a prefix.
//
//   POLYROW_FULL=1    200 kills for each policy and model instead of a few
//   KILLS=n           that many; KILL_SEED=n repeats the moments of a run

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { CrashWriter, emptied } from './crash-workload.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const kills = Number(process.env['KILLS'] ?? (full ? 200 : 2));
const seed = seedFrom('KILL_SEED');

let server: Polyrow | undefined;
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

describe.each(['memory', 'kv'])('the %s model', (model) => {
  test.each(['always', 'everysec', 'no'])(
    `survives ${kills} kills under load with fsync %s`,
    { timeout: 3_600_000 },
    async (policy) => {
      const random = new Random(seed);
      // Small segments and checkpoints, so that kills hit the change from one to the next.
      const small = ['--wal.segment-bytes', '256kb', '--wal.checkpoint-bytes', '1mb'];
      const flags = ['--wal.fsync', policy, '--redis.default-model', model, ...small];
      server = await Polyrow.start({ flags });
      const writers = Array.from({ length: 5 }, (_, i) => new CrashWriter(`${i}`, random));
      for (let kill = 1; kill <= kills; kill++) {
        const where = `seed ${seed}, kill ${kill}`;
        const clients = await Promise.all(writers.map(() => server!.client()));
        const writing = writers.map((writer, i) => writer.run(clients[i]!));
        // On a machine with much else to do the first answers may take their time.
        while (!writers.some((writer) => writer.acknowledged > 0)) await sleep(10);
        await sleep(random.below(700));
        await server.kill();
        await Promise.all(writing);
        await server.restart().catch((error: unknown) => {
          throw new Error(`${where}: no restart`, { cause: error });
        });
        const reader = await server.client();
        for (const writer of writers) {
          const survived = await writer.verify(reader);
          expect(survived, `${where}: acknowledged and lost`).toBeGreaterThanOrEqual(
            writer.acknowledged,
          );
          writer.continueFrom(survived);
        }
        reader.close();
        if (kill % 10 === 0) await emptied(server, writers);
      }
      await server.stop();
    },
  );
});

test('a kill during recovery harms nothing', async () => {
  const random = new Random(seed);
  server = await Polyrow.start({ flags: ['--wal.fsync', 'no', '--wal.segment-bytes', '256kb'] });
  const writer = new CrashWriter('0', random);
  const client = await server.client();
  const writing = writer.run(client);
  await sleep(1500);
  await server.kill();
  await writing;
  for (let i = 0; i < 5; i++) {
    const starting = server.restart().then(
      () => true,
      () => false,
    );
    await sleep(100 + random.below(250));
    if (server.running) await server.kill();
    await starting;
  }
  await server.restart();
  const reader = await server.client();
  expect(await writer.verify(reader)).toBeGreaterThanOrEqual(writer.acknowledged);
  await server.stop();
});
