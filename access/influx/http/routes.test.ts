import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Principal } from '../statements/principal.ts';
import type { Credentials } from '../tenants/credentials.ts';
import { InfluxServer, type InfluxServerOptions } from './server.ts';
import { HttpClient } from './testing/http-client.ts';
import { MemorySeriesStore } from './testing/memory-series-store.ts';
import { PeopleAuthenticator } from './testing/people-authenticator.ts';

let store: MemorySeriesStore;
let server: InfluxServer;
let client: HttpClient;

async function start(more: Partial<InfluxServerOptions> = {}): Promise<void> {
  server = new InfluxServer({
    host: '127.0.0.1',
    port: 0,
    store,
    report: (_level, message) => {
      throw new Error(message);
    },
    ...more,
  });
  client = new HttpClient(await server.listen());
}

async function stop(): Promise<void> {
  client.close();
  await server.close();
}

beforeEach(async () => {
  store = new MemorySeriesStore('d');
  await start();
});
afterEach(stop);

const get = async (path: string) => {
  const { status, text } = await client.send(path);
  return [status, text === '' ? '' : (JSON.parse(text) as unknown)];
};

describe('about the server', () => {
  test('ping', async () => {
    for (const method of ['GET', 'HEAD']) {
      const { status, headers, text } = await client.send('/ping', { method });
      expect([status, text]).toEqual([204, '']);
      expect(headers).toMatchObject({ 'x-influxdb-version': '1.8.10', 'x-influxdb-build': 'OSS' });
    }
    expect(await get('/ping?verbose=true')).toEqual([200, { version: '1.8.10' }]);
    expect(await get('/ping?verbose=false')).toEqual([204, '']);
    expect((await client.send('/ping', { method: 'POST' })).status).toBe(405);
  });

  test('status, health and readiness', async () => {
    expect(await get('/status')).toEqual([204, '']);
    const health = {
      checks: [],
      message: 'ready for queries and writes',
      name: 'influxdb',
      status: 'pass',
      version: '1.8.10',
    };
    expect(await get('/health')).toEqual([200, health]);
    expect(await get('/api/v2/health')).toEqual([200, health]);
    const [status, ready] = await get('/ready');
    expect([status, ready]).toEqual([
      200,
      { status: 'ready', started: expect.any(String), up: '0h0m0s' },
    ]);
  });

  test('unknown paths', async () => {
    const { status, headers, text } = await client.send('/nothing');
    expect([status, headers['content-type'], text]).toEqual([
      404,
      'text/plain; charset=utf-8',
      '404 page not found\n',
    ]);
    expect(await get('/api/v2/nothing')).toEqual([
      404,
      { code: 'not found', message: 'path not found' },
    ]);
  });

  test('options', async () => {
    for (const path of ['/query', '/write', '/nothing']) {
      expect((await client.send(path, { method: 'OPTIONS' })).status).toBe(200);
    }
  });

  test('Flux is told to be missing', async () => {
    const body = '{"query":"from(bucket:\\"d\\")","type":"flux"}';
    const { status, text } = await client.send('/api/v2/query?org=o', { body });
    expect([status, JSON.parse(text)]).toEqual([
      501,
      { code: 'not implemented', message: expect.stringContaining('InfluxQL') },
    ]);
  });
});

describe('buckets', () => {
  const names = async (query: string) => {
    const { text } = await client.send(`/api/v2/buckets?${query}`);
    return (JSON.parse(text) as { buckets: { name: string }[] }).buckets.map(({ name }) => name);
  };
  const create = (value: unknown) =>
    client.send('/api/v2/buckets', { body: JSON.stringify(value) });

  test('are databases and their policies', async () => {
    store.change({ kind: 'createRetentionPolicy', database: 'd', name: 'week', policy: {} });
    store.change({ kind: 'createDatabase', database: 'e' });
    expect(await names('')).toEqual(['d', 'd/week', 'e']);
    expect(await names('name=d%2Fweek')).toEqual(['d/week']);
    expect(await names('name=d%2Fautogen')).toEqual(['d']);
    expect(await names('limit=1&offset=1')).toEqual(['d/week']);
    expect(await get('/api/v2/buckets?name=x')).toEqual([
      404,
      { code: 'not found', message: 'bucket "x" not found' },
    ]);
  });

  test('are made', async () => {
    const rules = [{ type: 'expire', everySeconds: 7200 }];
    const { status, text } = await create({ orgID: '1', name: 'new', retentionRules: rules });
    expect(status).toBe(201);
    const bucket = JSON.parse(text) as { id: string; name: string };
    expect(bucket).toMatchObject({
      name: 'new',
      retentionRules: [{ type: 'expire', everySeconds: 7200 }],
    });
    expect(store.database('new')?.retentionPolicies[0]?.duration).toBe(7_200_000_000_000n);
    expect(await get(`/api/v2/buckets/${bucket.id}`)).toEqual([200, bucket]);
    expect((await create({ name: 'new/other', retentionRules: [] })).status).toBe(201);
    expect(await names('')).toEqual(['d', 'new', 'new/other']);
    expect((await client.send('/api/v2/write?bucket=new/other', { body: 'm v=1' })).status).toBe(
      204,
    );
  });

  test('are not made twice, or of nothing', async () => {
    const again = await create({ name: 'd' });
    expect([again.status, JSON.parse(again.text)]).toEqual([
      422,
      { code: 'conflict', message: 'bucket with name d already exists' },
    ]);
    for (const value of [{}, 1, null, { name: '' }, { name: '/x' }]) {
      expect((await create(value)).status).toBe(400);
    }
    expect((await client.send('/api/v2/buckets', { body: '{' })).status).toBe(400);
    expect((await create({ name: 'x', retentionRules: [{ everySeconds: -1 }] })).status).toBe(422);
  });

  test('belong to whatever organisation is asked for', async () => {
    const [status, answer] = await get('/api/v2/orgs?org=mine');
    expect([status, answer]).toEqual([
      200,
      expect.objectContaining({ orgs: [expect.objectContaining({ name: 'mine' })] }),
    ]);
    expect(await get('/api/v2/setup')).toEqual([200, { allowed: false }]);
  });
});

describe('credentials', () => {
  const people: Record<string, Principal> = {
    admin: { name: 'admin', isAdmin: true, mayRead: () => true, mayWrite: () => true },
    ro: { name: 'ro', isAdmin: false, mayRead: () => true, mayWrite: () => false },
  };
  const find = (credentials: Credentials) =>
    credentials.kind === 'token'
      ? people[credentials.token]
      : credentials.password === 'right'
        ? people[credentials.user]
        : undefined;
  const basic = (user: string, password: string) =>
    `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const write = async (query: string, authorization?: string) => {
    const { status, text, headers } = await client.send(`/write?db=d${query}`, {
      body: 'm v=1',
      headers: authorization === undefined ? {} : { Authorization: authorization },
    });
    return [status, text === '' ? '' : JSON.parse(text).error, headers['www-authenticate']];
  };

  test('are ignored where nobody asks for them', async () => {
    expect(await write('', basic('root', 'root'))).toEqual([204, '', undefined]);
    expect(await write('&u=root&p=root', 'Token ')).toEqual([204, '', undefined]);
  });

  test('come in four ways', async () => {
    await stop();
    const authenticator = new PeopleAuthenticator(store, find);
    await start({ authenticator });
    const ways: [string, string?][] = [
      ['&u=admin&p=right'],
      ['', basic('admin', 'right')],
      ['', 'Token admin:right'],
      ['', 'Token admin'],
      ['', 'Bearer admin'],
    ];
    for (const way of ways) expect(await write(...way)).toEqual([204, '', undefined]);
    const password = { kind: 'password', user: 'admin', password: 'right' };
    const token = { kind: 'token', token: 'admin' };
    expect(authenticator.seen).toEqual([password, password, password, token, token]);
  });

  test('are needed, and must be right', async () => {
    await stop();
    await start({ authenticator: new PeopleAuthenticator(store, find) });
    const realm = 'Basic realm="InfluxDB"';
    const unreadable = [401, 'unable to parse authentication credentials', realm];
    expect(await write('')).toEqual(unreadable);
    expect(await write('', 'Basic x')).toEqual(unreadable);
    expect(await write('', 'Digest x')).toEqual(unreadable);
    expect(await write('', 'Token ')).toEqual(unreadable);
    expect(await write('', basic('admin', 'wrong'))).toEqual([401, 'authorization failed', realm]);
    expect(await write('', basic('ro', 'right'))).toEqual([
      403,
      '"ro" user is not authorized to write to database "d"',
      undefined,
    ]);
    const v2 = await client.send('/api/v2/write?bucket=d', { body: 'm v=1' });
    expect([v2.status, JSON.parse(v2.text)]).toEqual([
      401,
      { code: 'unauthorized', message: 'unauthorized access' },
    ]);
    expect((await client.send('/ping')).status).toBe(204);
    expect((await client.send('/health')).status).toBe(200);
  });
});
