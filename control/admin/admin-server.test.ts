import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import type { MetricSample } from '../monitor/metric-sample.ts';
import { AdminFixture } from './admin-fixture.ts';

let admin: AdminFixture;
const ask: AdminFixture['ask'] = (...words) => admin.ask(...words);

beforeEach(async () => {
  admin = await AdminFixture.start(realDisk);
});
afterEach(async () => {
  await admin.close();
  expect(admin.errors).toEqual([]);
});

describe('health', () => {
  test('alive all along, ready only while running without problems', async () => {
    let problems: string[] = [];
    admin.health.addCheck(() => Promise.resolve(problems));
    const check = async (status: number, reasons: string[]) => {
      const answer = await ask('GET', '/readyz', undefined, '');
      expect(answer.status).toBe(status);
      expect((answer.json() as { reasons?: string[] }).reasons ?? []).toEqual(reasons);
      expect((await ask('GET', '/healthz', undefined, '')).status).toBe(status);
      expect((await ask('GET', '/livez')).status).toBe(200);
    };
    await check(503, ['starting']);
    admin.health.phase = 'running';
    await check(200, []);
    problems = ['memory: no space left on the disk'];
    await check(503, problems);
    admin.health.phase = 'draining';
    await check(503, ['draining']);
  });
});

describe('metrics', () => {
  const counter = (value: number, command: string): MetricSample => ({
    name: 'polyrow_redis_commands_total',
    help: 'Commands executed.',
    type: 'counter',
    value,
    labels: { command },
  });

  test('show what the plane counts now', async () => {
    admin.samples = [counter(3, 'get'), counter(4, 'set')];
    await ask('GET', '/metrics');
    admin.samples = [counter(5, 'get')];
    const { text } = await ask('GET', '/metrics');
    expect(text).toContain('# HELP polyrow_redis_commands_total Commands executed.');
    expect(text).toContain('# TYPE polyrow_redis_commands_total counter');
    expect(text).toContain('polyrow_redis_commands_total{command="get"} 5');
    expect(text).not.toContain('command="set"');
    expect(text).toContain('process_resident_memory_bytes');
  });
});

test('a number that makes no sense is left out of the metrics, alone', async () => {
  const gauge = (name: string, value: number): MetricSample => {
    return { name: `polyrow_${name}`, help: 'x', type: 'gauge', value };
  };
  admin.samples = [gauge('odd', NaN), gauge('even', 2)];
  const { status, text } = await ask('GET', '/metrics');
  expect(status).toBe(200);
  expect(text).toContain('polyrow_even 2\n');
  expect(text).not.toContain('NaN');
});

describe('tables', () => {
  test('are made, listed, described, altered and reset', async () => {
    const made = await ask('POST', '/v1/tables', { table: 1, model: 'kv', name: 'orders' });
    expect([made.status, made.json()]).toEqual([
      201,
      {
        id: 1,
        name: 'orders',
        model: 'kv',
        readOnly: false,
        ttlDefaultMs: 0,
        maxRowBytes: 0,
        consistency: { kind: 'strong' },
        shardingKind: 'hash',
        partitions: 1,
        writePriority: 'normal',
        quotaMode: 'server',
        cacheBypass: false,
        tenant: 'default',
        database: 1,
        explicit: true,
        rows: 0,
      },
    ]);
    const altered = await ask('PATCH', '/v1/tables/orders', { readOnly: true });
    expect(altered.json()).toMatchObject({ id: 1, readOnly: true });
    const { tables } = (await ask('GET', '/v1/tables')).json() as { tables: { name: string }[] };
    expect(tables.map((table) => table.name)).toEqual(['db0', 'orders', 'db2']);
    await ask('DELETE', '/v1/tables/1');
    expect((await ask('GET', '/v1/tables/1')).json()).toMatchObject({
      name: 'db1',
      explicit: false,
    });
  });

  test('of InfluxDB are made by name; what decides between tenants is for operators', async () => {
    const body = { table: 'metrics', model: 'series', quotaMode: 'hard', consistency: 'bounded' };
    const made = await ask('POST', '/v1/tables', body);
    expect([made.status, made.json()]).toEqual([
      201,
      {
        name: 'metrics',
        model: 'series',
        readOnly: false,
        ttlDefaultMs: 0,
        maxRowBytes: 0,
        consistency: { kind: 'bounded', maxStalenessMs: 5000, maxLagEntries: 10_000 },
        shardingKind: 'hash',
        partitions: 1,
        writePriority: 'high',
        quotaMode: 'hard',
        cacheBypass: false,
        tenant: 'default',
        database: 'metrics',
        explicit: true,
      },
    ]);
    await admin.addTenants();
    const asShop = (method: string, page: string, body?: object) =>
      ask(method, page, body, admin.secrets['shop']);
    await ask('POST', '/v1/tables', { table: 'shop/d', model: 'series', writePriority: 'low' });
    const changed = await asShop('PATCH', '/v1/tables/d', { readOnly: true });
    expect(changed.json()).toMatchObject({ tenant: 'shop', readOnly: true, writePriority: 'low' });
    for (const change of [{ writePriority: 'high' }, { quotaMode: 'stacked' }, { partitions: 1 }]) {
      expect((await asShop('PATCH', '/v1/tables/d', change)).status).toBe(403);
      expect((await asShop('POST', '/v1/tables', { table: 1, ...change })).status).toBe(403);
    }
    expect((await asShop('DELETE', '/v1/tables/d')).status).toBe(403);
    expect((await asShop('GET', '/v1/tables/metrics')).status).toBe(404);
    expect((await ask('DELETE', '/v1/tables/shop%2Fd')).json()).toMatchObject({ explicit: false });
  });

  test('refusals have a status and a reason', async () => {
    const check = async (
      status: number,
      reason: string,
      method: string,
      page: string,
      b?: object,
    ) => {
      const answer = await ask(method, page, b);
      expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(reason)]);
    };
    await check(404, 'no table 9', 'GET', '/v1/tables/9');
    await check(400, 'must be equal to one of', 'PATCH', '/v1/tables/1', { model: 'tape' });
    await check(400, 'must NOT have additional', 'PATCH', '/v1/tables/1', { colour: 'red' });
    await check(400, 'must be boolean', 'PATCH', '/v1/tables/1', { readOnly: 'true' });
    await check(400, "required property 'table'", 'POST', '/v1/tables', { model: 'kv' });
    admin.rows = 5;
    await check(409, 'holds 5 rows', 'PATCH', '/v1/tables/1', { model: 'kv' });
    await check(404, 'no such page: GET /nowhere', 'GET', '/nowhere');
  });
});

test('lists of tenants and users are answered in parts', async () => {
  await admin.addTenants();
  for (const name of ['ann', 'bob', 'cid']) {
    await admin.tenants.setUser({ tenant: 'shop', name, change: {} });
  }
  const names = async (page: string, member: string): Promise<string[]> => {
    const all = (await ask('GET', page)).json() as Record<string, { name: string }[]>;
    return all[member]!.map(({ name }) => name);
  };
  expect(await names('/v1/tenants?limit=2', 'tenants')).toEqual(['default', 'shop']);
  expect(await names('/v1/tenants?after=1', 'tenants')).toEqual(['mill']);
  const users = '/v1/tenants/shop/users';
  expect(await names(`${users}?limit=2`, 'users')).toEqual(['ann', 'bob']);
  expect(await names(`${users}?after=bob`, 'users')).toEqual(['cid', 'default']);
  for (const page of ['/v1/tenants?limit=1001', `${users}?limit=1001`]) {
    expect((await ask('GET', page)).status).toBe(400);
  }
});

test('settings change all or none', async () => {
  const wrong = await ask('PATCH', '/v1/config', { 'log.level': 'debug', nothing: 1 });
  expect([wrong.status, wrong.json()]).toEqual([400, { error: 'there is no setting nothing' }]);
  expect(admin.settings.get('log.level')).toBe('info');
  expect((await ask('PATCH', '/v1/config', { 'log.level': 'debug' })).status).toBe(200);
  expect(admin.settings.get('log.level')).toBe('debug');
});

describe('who may ask', () => {
  const statusFor = async (page: string, authorization = '') =>
    (await ask('GET', page, undefined, '', authorization === '' ? {} : { authorization })).status;

  test('whoever has a token; on this machine health and metrics are for all', async () => {
    expect(await statusFor('/v1/tables')).toBe(401);
    expect(await statusFor('/v1/tables', 'Bearer wrong')).toBe(401);
    expect(await statusFor('/v1/tables', 'Basic b3BlcmF0b3I=')).toBe(401);
    expect(await statusFor('/v1/tables', `Bearer ${admin.secrets['operator']}`)).toBe(200);
    expect(await statusFor('/nowhere')).toBe(401);
    for (const page of ['/', '/metrics', '/healthz']) expect(await statusFor(page)).not.toBe(401);
    // A caller with a token is identified by it.
    expect(await statusFor('/metrics', 'Bearer wrong')).toBe(401);
  });

  test('from elsewhere nobody without a token sees more than whether it lives', async () => {
    await admin.restart({ isLocal: false });
    const statuses: Record<string, number> = {};
    const pages = ['/', '/livez', '/readyz', '/healthz', '/metrics', '/v1/openapi.json', '/none'];
    for (const page of pages) statuses[page] = await statusFor(page);
    expect(statuses).toEqual({
      '/': 401,
      '/livez': 200,
      '/readyz': 503,
      '/healthz': 401,
      '/metrics': 401,
      '/v1/openapi.json': 401,
      '/none': 401,
    });
  });

  test('nobody without a token who came under another name', async () => {
    // fetch does not let a caller choose this header.
    const { request } = await import('node:http');
    const status = await new Promise((resolve, reject) => {
      request(`${admin.url}/metrics`, { headers: { host: 'evil.example' } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect(status).toBe(403);
  });

  test('each not too often', async () => {
    await admin.addTenants();
    await admin.restart({ requestsPerSecond: () => 2 });
    const statuses = [];
    for (let n = 0; n < 10; n++) {
      statuses.push((await ask('GET', '/v1/whoami', undefined, 'shop')).status);
    }
    expect(statuses.slice(0, 8)).toEqual(Array(8).fill(200));
    expect(statuses.at(-1)).toBe(429);
    const refused = await ask('GET', '/v1/whoami', undefined, 'shop');
    expect(refused.headers.get('retry-after')).toBe('1');
    expect((await ask('GET', '/v1/whoami', undefined, 'mill')).status).toBe(200);
    // Guessing callers are slowed down by address, without an effect on others.
    const guesses = [];
    for (let n = 0; n < 12; n++)
      guesses.push((await ask('GET', '/v1/whoami', undefined, 'x')).status);
    expect(guesses[0]).toBe(401);
    expect(guesses.at(-1)).toBe(429);
    expect((await ask('GET', '/v1/whoami', undefined, 'operator')).status).toBe(200);
  });

  test('a HEAD asks for as much as a GET', async () => {
    expect((await ask('HEAD', '/v1/tenants', undefined, '')).status).toBe(401);
    expect((await ask('HEAD', '/v1/tenants')).status).toBe(200);
  });

  test('a body that is no JSON is told so, without any of it', async () => {
    const response = await fetch(`${admin.url}/v1/tenants`, {
      method: 'POST',
      body: 'hush',
      headers: {
        authorization: `Bearer ${admin.secrets['operator']}`,
        'content-type': 'application/json',
      },
    });
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: 'the body is not JSON' },
    ]);
    expect(JSON.stringify(admin.audit.read(0, 10, { looks: true }))).not.toContain('hush');
  });

  test.each([
    ['/v1/%zz', 400],
    [`/v1/tenants/${'x'.repeat(2000)}`, 414],
    ['//v1/tenants', 404],
    ['/v1/tenants/', 404],
    ['/v1/tenants?limit=x', 400],
    ['/v1/tenants?limit=1&limit=2', 400],
    ['/v1/tenants?unknown=1', 400],
    ['/v1/tenants/a%00b', 404],
  ])('a path that makes no sense is answered as all errors are: %s', async (path, status) => {
    const answer = await ask('GET', path);
    expect([answer.status, Object.keys(answer.json() as object)]).toEqual([status, ['error']]);
  });

  test('a body has a limit', async () => {
    const wish = { name: 'shop', password: 'x'.repeat(70_000) };
    expect((await ask('POST', '/v1/tenants', wish)).status).toBe(413);
  });
});
