// Splits, merges and moves while clients write, and while the server is killed.
//
//   POLYROW_FULL=1          50 changes, and 200 kills
//   CHANGES=n, KILLS=n      that many; PARTITION_SEED=n repeats the choices of a run

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { TablePartitions } from '../../control/metadata/partition-catalog.ts';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { RespClient } from '../support/resp-client.ts';
import { text } from './reply-items.ts';
import { chooseChange, PartitionLoad } from './partition-load.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const changes = Number(process.env['CHANGES'] ?? (full ? 50 : 8));
const kills = Number(process.env['KILLS'] ?? (full ? 200 : 4));
const seed = seedFrom('PARTITION_SEED');
const page = '/v1/tables/0/partitions';
const unlimited = ['--admin.requests-per-second', '0'];

let server: Polyrow | undefined;
afterEach(async () => {
  await server?.remove();
  server = undefined;
});

async function partitions(): Promise<TablePartitions> {
  return (await server!.askAdmin('GET', page)).body as TablePartitions;
}

async function changed(): Promise<TablePartitions> {
  for (;;) {
    const now = await partitions();
    if (now.change === undefined) return now;
    await sleep(30);
  }
}

async function fill(client: RespClient, rows: number): Promise<void> {
  for (let from = 0; from < rows; from += 1000) {
    await client.pipeline(
      Array.from({ length: 1000 }, (_, i) => ['SET', `row:${from + i}`, 'x'.repeat(100)]),
    );
  }
}

test(`${changes} random changes under load`, { timeout: 3_600_000 }, async () => {
  const random = new Random(seed);
  server = await Polyrow.start({ flags: unlimited });
  const loads = Array.from({ length: 4 }, (_, i) => new PartitionLoad(`w${i}`, random));
  const reader = await server.client();
  const rows = full ? 200_000 : 20_000;
  await fill(reader, rows);
  const clients = await Promise.all(loads.map(() => server!.client()));
  for (const [i, load] of loads.entries()) await load.begin(clients[i]!);
  const running = loads.map((load, i) => load.run(clients[i]!));
  for (let change = 1; change <= changes; change++) {
    const before = await partitions();
    const order = chooseChange(before, random);
    const where = `seed ${seed}, change ${change}: ${JSON.stringify(order)}`;
    const begun = await server.askAdmin('POST', page, order);
    expect(begun.status, where).toBe(202);
    const after = await changed();
    expect(after.failure, where).toBeUndefined();
    expect(after.epoch, where).toBe(before.epoch + 1);
  }
  for (const load of loads) load.stop();
  await Promise.all(running);
  const sum = async (): Promise<number> =>
    (await partitions()).partitions.reduce((all, one) => all + (one.rows ?? 0), 0);
  const size = Number(text(await reader.command('DBSIZE')));
  expect(size).toBe(await sum());
  for (const load of loads) await load.verify(reader, `seed ${seed}`);
  expect(Math.min(...loads.map(({ answered }) => answered))).toBeGreaterThan(0);
  for (let i = 0; i < rows; i += 97) {
    expect(await reader.text('STRLEN', `row:${i}`), `row ${i}`).toBe(':100');
  }
  await server.restart();
  const again = await server.client();
  expect(Number(text(await again.command('DBSIZE')))).toBe(size);
  for (const load of loads) await load.verify(again, `seed ${seed}, after a restart`);
  if (full)
    console.log(`slowest answers: ${loads.map(({ slowest }) => slowest.toFixed(0)).join(', ')} ms`);
});

test(`${kills} kills during changes under load`, { timeout: 3_600_000 }, async () => {
  const random = new Random(seed);
  const small = ['--wal.segment-bytes', '256kb', '--wal.checkpoint-bytes', '1mb'];
  server = await Polyrow.start({ flags: ['--wal.fsync', 'no', ...small, ...unlimited] });
  const loads = Array.from({ length: 4 }, (_, i) => new PartitionLoad(`w${i}`, random));
  const first = await server.client();
  await fill(first, 5000);
  for (const load of loads) await load.begin(first);
  const size = Number(text(await first.command('DBSIZE')));
  for (let kill = 1; kill <= kills; kill++) {
    const order = chooseChange(await changed(), random);
    const where = `seed ${seed}, kill ${kill}: ${JSON.stringify(order)}`;
    const clients = await Promise.all(loads.map(() => server!.client()));
    const running = loads.map((load, i) => load.run(clients[i]!));
    const begun = await server.askAdmin('POST', page, order);
    expect(begun.status, where).toBe(202);
    await sleep(random.below(250));
    await server.kill();
    await Promise.all(running);
    await server.restart();
    const reader = await server.client();
    for (const load of loads) await load.verify(reader, where);
    const answer = text(await reader.command('DBSIZE'));
    expect(Number(answer), `${where}: ${answer}`).toBeGreaterThanOrEqual(size);
    const after = await changed();
    expect(after.failure, where).toBeUndefined();
    for (const load of loads) await load.verify(reader, `${where}, when it is done`);
    reader.close();
  }
});

test('a database that is swapped while it is copied is not divided, and loses nothing', async () => {
  server = await Polyrow.start({ flags: unlimited });
  const [first, other] = await Promise.all([server.client(), server.client()]);
  const rows = 30_000;
  await fill(first, rows);
  await other.command('SELECT', 1);
  await other.pipeline(Array.from({ length: 10 }, (_, i) => ['SET', `other:${i}`, i]));
  await other.command('SELECT', 5);
  const begun = server.askAdmin('POST', page, { kind: 'split', partition: 0 });
  const isCopied = async (): Promise<boolean> => (await partitions()).change !== undefined;
  while (!(await isCopied())) await sleep(1);
  const swapped = await other.text('SWAPDB', 0, 1);
  expect((await begun).status).toBe(202);
  const after = await changed();
  const sizes: string[] = [];
  for (const db of [0, 1]) {
    await other.command('SELECT', db);
    sizes.push(await other.text('DBSIZE'));
  }
  // It is refused only if the copy was quicker.
  if (swapped === '+OK') {
    expect(after.failure).toContain('swapped');
    expect(sizes).toEqual([':10', `:${rows}`]);
  } else expect(sizes).toEqual([`:${rows}`, ':10']);
});
