// Tenants of a real server: they come, work beside each other, and go with all that is theirs, also when the
// server is killed in between.
//
//   TENANT_KILLS=n    that many kills while tenants come and go instead of a few; TENANT_SEED=n repeats a run

import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { EmbeddedDocumentStore } from '../../control/metadata/embedded-document-store.ts';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { RespClient } from '../support/resp-client.ts';
import { isBuilt } from '../cli/polyrow-process.ts';
import { seedFrom } from '../support/seed.ts';

const kills = Number(
  process.env['TENANT_KILLS'] ?? (process.env['POLYROW_FULL'] === '1' ? 1000 : 5),
);
const seed = seedFrom('TENANT_SEED');

let server: Polyrow;
afterEach(() => server.remove());

async function createTenant(name: string, more: object = {}): Promise<number> {
  const made = await server.askAdmin('POST', '/v1/tenants', { name, password: 'hush', ...more });
  expect(made.status).toBe(201);
  return (made.body as { number: number }).number;
}

async function redis(user: string, password = 'hush'): Promise<RespClient> {
  const client = await RespClient.connect(server.redisPort);
  expect(await client.text('AUTH', user, password)).toBe('+OK');
  return client;
}

async function influx(user: string, statement: string): Promise<{ status: number; text: string }> {
  const query = new URLSearchParams({ q: statement }).toString();
  const response = await fetch(`${server.influx}/query?${query}`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${user}:hush`).toString('base64')}` },
  });
  return { status: response.status, text: await response.text() };
}

async function write(user: string, database: string, line: string): Promise<number> {
  const response = await fetch(`${server.influx}/write?db=${database}`, {
    method: 'POST',
    body: line,
    headers: { authorization: `Basic ${Buffer.from(`${user}:hush`).toString('base64')}` },
  });
  return response.status;
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${server.admin}/metrics`)).text();
  const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))];
  return values.reduce((sum, [, value]) => sum + Number(value), 0);
}

interface Listed {
  name: string;
  number: number;
  state: string;
}

async function tenants(): Promise<Listed[]> {
  const { body } = await server.askAdmin('GET', '/v1/tenants');
  return (body as { tenants: Listed[] }).tenants;
}

describe.skipIf(!isBuilt)('a server', () => {
  test('keeps the token of its first start, and asks for it', async () => {
    server = await Polyrow.start();
    const token = server.adminToken;
    expect(server.lifeOutput).toContain(token);
    expect(statSync(join(server.dataDir, 'admin-token')).mode & 0o777).toBe(0o600);
    expect((await fetch(`${server.admin}/v1/tenants`)).status).toBe(401);
    await server.restart();
    expect(server.adminToken).toBe(token);
    expect(server.lifeOutput).not.toContain(token);
    expect((await server.askAdmin('GET', '/v1/tenants')).status).toBe(200);
    await server.restart(['--admin.token', 'of-the-settings']);
    const asked = await server.askAdmin('GET', '/v1/whoami', undefined, 'of-the-settings');
    expect(asked.body).toEqual({ role: 'operator', name: 'admin.token' });
    expect((await server.askAdmin('GET', '/v1/whoami')).status).toBe(200);
    expect((await fetch(`${server.admin}/metrics`)).status).toBe(401);
  });

  test('serves several tenants, each for itself', async () => {
    server = await Polyrow.start();
    for (const name of ['shop', 'mill']) await createTenant(name);
    const [shop, mill, nobody] = [await redis('shop'), await redis('mill'), await server.client()];
    await shop.command('SET', 'k', 'of the shop');
    await influx('shop', 'CREATE DATABASE metrics');
    expect(await write('shop', 'metrics', 'cpu v=1')).toBe(204);
    expect(await mill.text('GET', 'k')).toBe('(nil)');
    expect(await nobody.text('DBSIZE')).toBe(':0');
    expect((await influx('mill', 'SHOW DATABASES')).text).not.toContain('metrics');
    const { body } = await server.askAdmin('GET', '/v1/tenants/shop/databases');
    expect(body).toEqual({
      databases: [
        { kind: 'redis', name: 0, rows: 1 },
        { kind: 'influx', name: 'metrics' },
      ],
    });
    const spent = await server.askAdmin('GET', '/v1/ru?tenant=shop&by=plane');
    const { usage } = spent.body as { usage: { plane: string; ru: number }[] };
    expect(usage.map(({ plane }) => plane)).toEqual(['influx', 'redis']);
    expect(usage.every(({ ru }) => ru >= 1)).toBe(true);
    for (const client of [shop, mill, nobody]) client.close();
  });

  test('knows after a restart what was spent before it', async () => {
    server = await Polyrow.start();
    await createTenant('shop');
    const shop = await redis('shop');
    await shop.pipeline(Array.from({ length: 100 }, () => ['SET', 'k', 'v']));
    shop.close();
    const spent = async () => {
      const { body } = await server.askAdmin('GET', '/v1/ru?tenant=shop&by=class&slot=hour');
      const { usage } = body as { usage: { class: string; ru: number }[] };
      return usage.find((row) => row.class === 'write')?.ru ?? 0;
    };
    const before = await spent();
    expect(before).toBeGreaterThanOrEqual(100);
    await server.restart();
    expect(await spent()).toBe(before);
  });

  test('takes back at once what it takes back', async () => {
    server = await Polyrow.start();
    await createTenant('shop');
    const made = await server.askAdmin('POST', '/v1/tenants/shop/tokens', {});
    const { id, secret } = made.body as { id: string; secret: string };
    const [byToken, byPassword] = [await redis('shop', secret), await redis('shop')];
    const writes = async () => {
      const response = await fetch(`${server.influx}/query?q=SHOW+DATABASES`, {
        headers: { authorization: `Token ${secret}` },
      });
      return response.status;
    };
    expect(await writes()).toBe(200);
    await server.askAdmin('DELETE', `/v1/tenants/shop/tokens/${id}`);
    expect(await writes()).toBe(401);
    await expect.poll(() => byToken.closed).toBe(true);
    expect(await byPassword.text('PING')).toBe('+PONG');
    // No write is taken once the change is answered.
    await server.askAdmin('PATCH', '/v1/tenants/shop/tables/0', { readOnly: true });
    expect(await byPassword.text('SET', 'k', 'v')).toMatch(/^-/);
    await server.askAdmin('PATCH', '/v1/tenants/shop/users/default', { enabled: false });
    await expect.poll(() => byPassword.closed).toBe(true);
  });

  test('changes tables of a tenant, and takes them back with it', async () => {
    server = await Polyrow.start();
    await createTenant('shop');
    const shop = await redis('shop');
    const page = '/v1/tenants/shop/tables';
    expect((await server.askAdmin('PATCH', `${page}/1`, { model: 'kv' })).status).toBe(200);
    expect((await server.askAdmin('PATCH', `${page}/2`, { readOnly: true })).status).toBe(200);
    await shop.command('SELECT', '1');
    expect(await shop.text('SET', 'k', 'v')).toBe('+OK');
    await shop.command('SELECT', '2');
    expect(await shop.text('SET', 'k', 'v')).toMatch(/^-/);
    // One that holds rows moves them while its clients go on.
    const begun = await server.askAdmin('PATCH', `${page}/1`, { model: 'memory' });
    expect([begun.status, begun.body]).toEqual([200, expect.objectContaining({ rows: 1 })]);
    const model = async (): Promise<unknown> =>
      ((await server.askAdmin('GET', `${page}/1`)).body as { model: string }).model;
    await expect.poll(model).toBe('memory');
    await shop.command('SELECT', '1');
    expect(await shop.text('GET', 'k')).toBe('"v"');
    shop.close();
    await server.restart(['--redis.default-model', 'kv']);
    const tables = await server.askAdmin('GET', page);
    expect((tables.body as { tables: { model: string; rows: number }[] }).tables[1]).toMatchObject({
      model: 'memory',
      rows: 1,
    });
    expect((await server.askAdmin('DELETE', '/v1/tenants/shop')).status).toBe(200);
    expect(await metric('polyrow_engine_rows')).toBe(0);
  });

  test('keeps rows where they are when the default model changes', async () => {
    server = await Polyrow.start();
    await createTenant('shop');
    let shop = await redis('shop');
    await shop.command('SET', 'k', 'v');
    shop.close();
    await server.restart(['--redis.default-model', 'kv']);
    shop = await redis('shop');
    expect(await shop.text('GET', 'k')).toBe('"v"');
    const models = (
      (await server.askAdmin('GET', '/v1/tenants/shop/tables')).body as {
        tables: { model: string }[];
      }
    ).tables.map(({ model }) => model);
    expect(models.slice(0, 2)).toEqual(['memory', 'kv']);
    shop.close();
  });

  test('lets go of a tenant that writes all the while', async () => {
    server = await Polyrow.start();
    await createTenant('shop');
    await influx('shop', 'CREATE DATABASE metrics');
    let answered = 0;
    const clients = await Promise.all(Array.from({ length: 4 }, () => redis('shop')));
    const writers = clients.map(async (client, i) => {
      for (let n = 0; ; n++) {
        await client.pipeline(
          Array.from({ length: 20 }, (_, k) => ['SET', `k${i}-${n}-${k}`, 'v']),
        );
        answered++;
      }
    });
    const points = (async () => {
      for (let n = 0; ; n++) {
        if ((await write('shop', 'metrics', `cpu v=${n} ${n}`)) !== 204) return;
      }
    })();
    const ended = Promise.allSettled([...writers, points]);
    while (answered < 20) await sleep(10);
    expect((await server.askAdmin('DELETE', '/v1/tenants/shop')).status).toBe(200);
    const outcomes = await ended;
    expect(outcomes.slice(0, 4).map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    expect(await tenants()).toMatchObject([{ name: 'default' }]);
    expect(await metric('polyrow_engine_rows')).toBe(0);
    expect(await metric('polyrow_series_databases')).toBe(0);
    for (const client of clients) client.close();
  });

  test(`leaves no orphans when it is killed ${kills} times while tenants come and go`, {
    timeout: 3_600_000,
  }, async () => {
    const random = new Random(seed);
    server = await Polyrow.start({ flags: ['--admin.requests-per-second', '0'] });
    let made = 0;
    for (let kill = 1; kill <= kills; kill++) {
      const coming = comeAndGo(() => `t${++made}`, random).catch(() => {});
      await sleep(random.below(400));
      await server.kill();
      await coming;
      await server.restart();
      await expectNoOrphans(`seed ${seed}, kill ${kill}`);
    }
    const { dataDir } = server;
    await server.stop();
    await expectWholeMetadata(dataDir);
  });
});

/** Makes tenants, gives them something, and drops some of them, until the server is gone. */
async function comeAndGo(name: () => string, random: Random): Promise<void> {
  const there: string[] = (await tenants()).map((tenant) => tenant.name).slice(1);
  for (;;) {
    const tenant = name();
    await server.askAdmin('POST', '/v1/tenants', { name: tenant, databases: 2, password: 'hush' });
    there.push(tenant);
    await server.askAdmin('POST', `/v1/tenants/${tenant}/users`, { name: 'ann', password: 'hush' });
    await server.askAdmin('POST', `/v1/tenants/${tenant}/tokens`, { user: 'ann' });
    await server.askAdmin('POST', '/v1/tokens', { role: 'tenant', tenant });
    await server.askAdmin('PATCH', `/v1/tenants/${tenant}/tables/1`, { ttlDefaultMs: 3_600_000 });
    await server.askAdmin('POST', `/v1/tenants/${tenant}/databases`, { name: 'metrics' });
    const client = await redis(tenant);
    await client.command('SET', 'k', 'v');
    client.close();
    while (there.length > 3) {
      const [gone] = there.splice(random.below(there.length), 1);
      await server.askAdmin('DELETE', `/v1/tenants/${gone}`);
    }
  }
}

/** Dropped tenants are gone completely; existing ones are complete, and no other data is left. */
async function expectNoOrphans(where: string): Promise<void> {
  const isSettled = async () => (await tenants()).every(({ state }) => state === 'active');
  await expect.poll(isSettled, { timeout: 20_000, message: where }).toBe(true);
  const there = (await tenants()).slice(1);
  let rows = 0;
  let databases = 0;
  for (const { name } of there) {
    const { body } = await server.askAdmin('GET', `/v1/tenants/${name}/databases`);
    for (const database of (body as { databases: { kind: string; rows?: number }[] }).databases) {
      if (database.kind === 'redis') rows += database.rows ?? 0;
      else databases++;
    }
    const client = await redis(name);
    client.close();
  }
  expect([where, await metric('polyrow_engine_rows')]).toEqual([where, rows]);
  expect([where, await metric('polyrow_series_databases')]).toEqual([where, databases]);
}

/** Every document belongs to a tenant that is there, and none has what another one has, too. */
async function expectWholeMetadata(dataDir: string): Promise<void> {
  const store = await EmbeddedDocumentStore.open(join(dataDir, 'metadata'));
  const documents = async <T>(collection: string): Promise<T[]> =>
    (await store.list(collection)).map(({ body }) => body as T);
  const all = await documents<Listed & { firstTable: number; databases: number }>('tenants');
  const names = new Set(all.map(({ name }) => name));
  expect(new Set(all.map(({ number }) => number)).size).toBe(all.length);
  const spans = all.toSorted((a, b) => a.firstTable - b.firstTable);
  spans.slice(1).forEach((span, i) => {
    expect(span.firstTable).toBeGreaterThanOrEqual(spans[i]!.firstTable + spans[i]!.databases);
  });
  for (const collection of ['users', 'tokens', 'adminTokens', 'tables']) {
    const owners = await documents<{ tenant?: string }>(collection);
    const orphans = owners.filter(({ tenant = 'default' }) => !names.has(tenant));
    expect([collection, orphans]).toEqual([collection, []]);
  }
  expect((await store.list('names')).map(({ id }) => id)).toEqual([...names].sort());
  await store.close();
  expect(existsSync(join(dataDir, 'audit'))).toBe(true);
  expect(readFileSync(join(dataDir, 'admin-token'), 'utf8')).toMatch(/^\S{43}\n$/);
}
