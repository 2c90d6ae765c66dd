// Backups and restores cost request units: of those whose rows and points they are about.

import { afterEach, beforeEach, expect, test } from 'vitest';
import { isBuilt } from '../cli/polyrow-process.ts';
import type { Polyrow } from '../support/polyrow.ts';
import { BackupScene } from './backup-commands.ts';

let scene: BackupScene;
beforeEach(() => {
  scene = new BackupScene();
});
afterEach(() => scene.remove());

interface Spent {
  readonly redis: number;
  readonly influx: number;
}

/** Background work charged to a tenant so far. */
async function background(server: Polyrow, tenant: string): Promise<Spent> {
  // Merging is charged within a second of the write that causes it.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  const of = async (plane: string): Promise<number> => {
    const path = `/v1/ru?tenant=${tenant}&by=class&slot=hour&plane=${plane}`;
    const { body } = await server.askAdmin('GET', path);
    const { usage } = body as { usage: { class: string; ru: number }[] };
    return usage.find((row) => row.class === 'background')?.ru ?? 0;
  };
  return { redis: await of('redis'), influx: await of('influx') };
}

async function fill(server: Polyrow, tenant: string): Promise<void> {
  await server.askAdmin('POST', '/v1/tenants', { name: tenant, password: 'hush' });
  await server.askAdmin('PATCH', `/v1/tenants/${tenant}/tables/1`, { model: 'kv' });
  await change(server, tenant, 3000);
}

async function change(server: Polyrow, tenant: string, count: number): Promise<void> {
  const client = await server.client();
  await client.text('AUTH', tenant, 'hush');
  for (const database of ['0', '1']) {
    await client.text('SELECT', database);
    const value = 'v'.repeat(300);
    await client.pipeline(Array.from({ length: count }, (_, i) => ['SET', `k${i}`, value]));
  }
  client.close();
  const post = (path: string, body: string) =>
    fetch(`${server.influx}${path}&u=${tenant}&p=hush`, { method: 'POST', body });
  await post('/query?q=CREATE+DATABASE+d', '');
  const lines = Array.from({ length: count }, (_, i) => `m,h=${i % 9} v=${i},s="t${i}" ${i + 1}`);
  expect((await post('/write?db=d', lines.join('\n'))).status).toBe(204);
}

const more = (after: Spent, before: Spent): Spent => ({
  redis: after.redis - before.redis,
  influx: after.influx - before.influx,
});

test.skipIf(!isBuilt)('full and incremental backups, and restores', async () => {
  // No checkpoint comes in between.
  const server = await scene.server(['--wal.checkpoint-bytes', '1gb']);
  for (const tenant of ['shop', 'mill']) await fill(server, tenant);
  const [shop, mill] = [await background(server, 'shop'), await background(server, 'mill')];
  expect(await background(server, 'shop')).toEqual(shop);

  await scene.backup(server, '--tenant', 'shop');
  const full = more(await background(server, 'shop'), shop);
  expect(full.redis).toBeGreaterThan(1);
  expect(full.influx).toBeGreaterThan(0.1);
  expect(await background(server, 'mill')).toEqual(mill);

  await change(server, 'shop', 300);
  const before = await background(server, 'shop');
  const second = await scene.backup(server, '--tenant', 'shop', '--incremental');
  expect(second.kind).toBe('incremental');
  const incremental = more(await background(server, 'shop'), before);
  expect(incremental.redis).toBeGreaterThan(0.1);
  expect(incremental.influx).toBeGreaterThan(0.1);
  expect(await background(server, 'mill')).toEqual(mill);

  const unchanged = await background(server, 'shop');
  await scene.restore(server, '--tenant', 'shop', '--as', 'copy');
  const copy = await background(server, 'copy');
  expect(copy.redis).toBeGreaterThan(full.redis);
  expect(copy.influx).toBeGreaterThan(full.influx);
  expect(await background(server, 'shop')).toEqual(unchanged);
  expect(await background(server, 'mill')).toEqual(mill);

  // A backup of everything is charged to all of them.
  await scene.backup(server);
  const everyone = more(await background(server, 'mill'), mill);
  expect(everyone.redis / full.redis).toBeGreaterThan(0.5);
  expect(everyone.redis / full.redis).toBeLessThan(2);
});
