import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EmbeddedDocumentStore } from '../metadata/embedded-document-store.ts';
import { TableCatalog } from '../metadata/table-catalog.ts';
import type { MetricSample } from '../monitor/metric-sample.ts';
import { AdminServer, type AdminServerOptions } from './admin-server.ts';
import { Health } from './health.ts';
import { MetricsPage } from './metrics-page.ts';

let path: string;
let store: EmbeddedDocumentStore;
let health: Health;
let options: AdminServerOptions;
let server: AdminServer;
let url: string;
let rows: number;
let samples: MetricSample[];
let problems: string[];
let settings: Map<string, string>;

beforeEach(async () => {
  path = mkdtempSync(join(tmpdir(), 'polyrow-admin-'));
  store = await EmbeddedDocumentStore.open(path);
  const catalog = await TableCatalog.open(store, { databases: 3, defaultModel: 'memory' });
  rows = 0;
  await catalog.attach({
    rowCount: () => Promise.resolve(rows),
    setTables: () => Promise.resolve(),
  });
  health = new Health();
  problems = [];
  health.addCheck(() => Promise.resolve(problems));
  const metrics = new MetricsPage();
  samples = [];
  metrics.addSource(() => Promise.resolve(samples));
  settings = new Map([['log.level', 'info']]);
  options = {
    health,
    metrics,
    catalog,
    config: {
      list: () => [],
      check: (key) => (settings.has(key) ? undefined : `there is no setting ${key}`),
      change: (key, value) => void settings.set(key, value),
    },
    token: '',
    version: '1.2.3',
    onError: (error) => {
      throw error;
    },
  };
  await restart();
});
afterEach(async () => {
  await server.close();
  await store.close();
  rmSync(path, { recursive: true });
});

async function restart(change: Partial<AdminServerOptions> = {}): Promise<void> {
  await server?.close();
  server = new AdminServer({ ...options, ...change });
  url = await server.listen('127.0.0.1', 0);
}

async function ask(method: string, page: string, body?: object, headers = {}) {
  const json = body === undefined ? {} : { body: JSON.stringify(body) };
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const response = await fetch(url + page, { method, headers: { ...type, ...headers }, ...json });
  const text = await response.text();
  return { status: response.status, text, json: () => JSON.parse(text) as unknown };
}

describe('health', () => {
  test('alive all along, ready only while running without problems', async () => {
    const check = async (status: number, reasons: string[]) => {
      const answer = await ask('GET', '/readyz');
      expect(answer.status).toBe(status);
      expect((answer.json() as { reasons?: string[] }).reasons ?? []).toEqual(reasons);
      expect((await ask('GET', '/healthz')).status).toBe(status);
      expect((await ask('GET', '/livez')).status).toBe(200);
    };
    await check(503, ['starting']);
    health.phase = 'running';
    await check(200, []);
    problems = ['memory: no space left on the disk'];
    await check(503, problems);
    health.phase = 'draining';
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
    samples = [counter(3, 'get'), counter(4, 'set')];
    await ask('GET', '/metrics');
    samples = [counter(5, 'get')];
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
  samples = [gauge('odd', NaN), gauge('even', 2)];
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
    rows = 5;
    await check(409, 'holds 5 rows', 'PATCH', '/v1/tables/1', { model: 'kv' });
    await check(404, 'no such page: GET /nowhere', 'GET', '/nowhere');
  });
});

test('settings change all or none', async () => {
  const wrong = await ask('PATCH', '/v1/config', { 'log.level': 'debug', nothing: 1 });
  expect([wrong.status, wrong.json()]).toEqual([400, { error: 'there is no setting nothing' }]);
  expect(settings.get('log.level')).toBe('info');
  expect((await ask('PATCH', '/v1/config', { 'log.level': 'debug' })).status).toBe(200);
  expect(settings.get('log.level')).toBe('debug');
});

describe('who may ask', () => {
  test('with a token, whoever has it; health is for all', async () => {
    await restart({ token: 'hush' });
    const statusWith = async (authorization: string) =>
      (await ask('GET', '/v1/tables', undefined, { authorization })).status;
    expect(await statusWith('')).toBe(401);
    expect(await statusWith('Bearer wrong')).toBe(401);
    expect(await statusWith('Bearer hush')).toBe(200);
    expect((await ask('GET', '/metrics')).status).toBe(401);
    expect((await ask('GET', '/livez')).status).toBe(200);
  });

  test('without one, nobody who came under another name', async () => {
    // fetch does not let a caller choose this header.
    const { request } = await import('node:http');
    const status = await new Promise((resolve, reject) => {
      request(`${url}/v1/tables`, { headers: { host: 'evil.example' } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect(status).toBe(403);
  });
});
