// The whole server with a kv table that is much larger than its cache: a tenant that keeps the disk busy, and one that
// asks for a record at a time.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { LimitedPolyrow } from './limited-polyrow.ts';
import { ConnectionLost, type RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';

const rows = 10_000;
const clients = 8;
const keysEach = 300;

let server: LimitedPolyrow;
const value = (tenant: string, i: number): string => `${tenant} ${i} ${'x'.repeat(200)}`;

beforeAll(async () => {
  server = await LimitedPolyrow.start([
    ...['--redis.default-model', 'kv', '--kv.cache-bytes', '0', '--wal.fsync', 'no'],
  ]);
  for (const name of ['busy', 'calm']) {
    await server.tenant(name, 0);
    const client = await server.client(name);
    for (let from = 0; from < rows; from += 500) {
      const words = ['MSET'];
      for (let i = from; i < from + 500; i++) words.push(`k${i}`, value(name, i));
      await client.command(...words);
    }
    client.socket.destroy();
  }
  await (await server.client('calm')).command('BGSAVE');
});
afterAll(() => server.server.remove());

async function metric(name: string): Promise<number> {
  const page = await server.metrics();
  const found = new RegExp(`^polyrow_pod_reads_${name}\\{model="kv"\\} (\\S+)$`, 'm').exec(page);
  return Number(found?.[1]);
}

/** Reads rows in an order of its own until it is told to stop; resolves to how many were wrong. */
async function flood(client: RespClient, seed: number, hasEnded: () => boolean): Promise<number> {
  let wrong = 0;
  for (let round = 0; !hasEnded(); round++) {
    const numbers = Array.from(
      { length: keysEach },
      (_, i) => ((seed + 1) * 7919 + (round * keysEach + i) * 3571) % rows,
    );
    const reply = await client.command('MGET', ...numbers.map((i) => `k${i}`));
    if (reply.type !== '*') return Infinity;
    const shown = reply.items.map(show);
    numbers.forEach((i, n) => {
      if (shown[n] !== JSON.stringify(value('busy', i))) wrong++;
    });
  }
  return wrong;
}

async function read(calm: RespClient, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const number = (i * 4241) % rows;
    expect(await calm.text('GET', `k${number}`)).toBe(JSON.stringify(value('calm', number)));
  }
}

test('both have right answers, the one has workers of its own, and the line can be switched off', async () => {
  let hasEnded = false;
  const all = await Promise.all(Array.from({ length: clients }, () => server.client('busy')));
  const floods = all.map((client, n) => flood(client, n, () => hasEnded));
  const calm = await server.client('calm');
  await read(calm, 100);
  expect(await metric('waited_total')).toBeGreaterThan(0);
  expect(await metric('extra_total')).toBeGreaterThan(0);
  const { status } = await server.server.askAdmin('PATCH', '/v1/config', {
    'admission.fair-scheduling': 'off',
  });
  expect(status).toBe(200);
  const waited = await metric('waited_total');
  await read(calm, 30);
  expect(await metric('waited_total')).toBe(waited);
  expect(await metric('waiting')).toBe(0);
  await server.server.askAdmin('PATCH', '/v1/config', { 'admission.fair-scheduling': 'on' });
  await read(calm, 30);
  expect(await metric('waited_total')).toBeGreaterThan(waited);
  hasEnded = true;
  expect(await Promise.all(floods)).toEqual(all.map(() => 0));
  await expect.poll(() => metric('running')).toBe(0);
});

test('the server stops while reads wait, and has all rows when it is started again', async () => {
  const all = await Promise.all(Array.from({ length: clients }, () => server.client('busy')));
  const floods = all.map((client, n) =>
    flood(client, n, () => false).catch((error: unknown) => error),
  );
  const calm = await server.client('calm');
  await read(calm, 20);
  await server.server.stop();
  for (const end of await Promise.all(floods)) expect(end).toBeInstanceOf(ConnectionLost);
  await server.server.restart();
  await read(await server.client('calm'), 20);
});

test('a tenant is dropped while its reads wait', async () => {
  const all = await Promise.all(Array.from({ length: clients }, () => server.client('busy')));
  const floods = all.map((client, n) =>
    flood(client, n, () => false).catch((error: unknown) => error),
  );
  const calm = await server.client('calm');
  await read(calm, 20);
  const { status } = await server.server.askAdmin('DELETE', '/v1/tenants/busy');
  expect(status).toBeLessThan(300);
  await Promise.all(floods);
  await read(calm, 20);
  await expect.poll(() => metric('running')).toBe(0);
  expect(await metric('waiting')).toBe(0);
});
