// Request units of a whole server: over HTTP, in metrics, of background work, of rows on disk.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Polyrow } from '../support/polyrow.ts';
import type { RespClient, Word } from '../support/resp-client.ts';
import { itemsOf, textOf } from '../support/resp-value.ts';

async function numbers(client: RespClient, ...words: Word[]): Promise<Record<string, number>> {
  const items = itemsOf(await client.command(...words));
  const found: Record<string, number> = {};
  for (let i = 0; i + 1 < items.length; i += 2) {
    if (items[i + 1]!.type !== '*') found[textOf(items[i]!)] = Number(textOf(items[i + 1]!));
  }
  return found;
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`${what}: not within a minute`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function adminHeaders(server: Polyrow): Record<string, string> {
  const token = readFileSync(join(server.dataDir, 'admin-token'), 'utf8').trim();
  return { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
}

async function metrics(server: Polyrow): Promise<Map<string, number>> {
  const page = await fetch(`${server.admin}/metrics`, { headers: adminHeaders(server) });
  const found = new Map<string, number>();
  for (const [, name, value] of (await page.text()).matchAll(/^(polyrow_\S+) (\S+)$/gm)) {
    found.set(name!, Number(value));
  }
  return found;
}

let server: Polyrow;
let client: RespClient;

beforeAll(async () => {
  server = await Polyrow.start();
  client = await server.client();
  await query('CREATE DATABASE d');
});
afterAll(() => server?.remove());

const ruOf = (response: Response): number => Number(response.headers.get('x-polyrow-ru'));

async function query(q: string, database = 'd'): Promise<Response> {
  const parameters = new URLSearchParams({ db: database, q });
  return await fetch(`${server.influx}/query?${parameters.toString()}`, { method: 'POST' });
}

async function write(lines: string, database = 'd'): Promise<Response> {
  return await fetch(`${server.influx}/write?db=${database}`, { method: 'POST', body: lines });
}

function points(count: number, measurement: string): string {
  const lines = Array.from(
    { length: count },
    (_, i) => `${measurement},host=h${i % 10} v=${i}.5 ${1_600_000_000 + i}000000000`,
  );
  return lines.join('\n');
}

describe('over HTTP', () => {
  test('a write costs by its points', async () => {
    const one = await write(points(1, 'm'));
    expect(one.status).toBe(204);
    expect(ruOf(one)).toBeGreaterThanOrEqual(1);
    const many = await write(points(20_000, 'm'));
    expect(ruOf(many)).toBeGreaterThan(3 * ruOf(one));
  });

  test('a query costs by the points it reads', async () => {
    await write(points(30_000, 'q'));
    const few = await query('SELECT stddev(v) FROM q WHERE time < 1600000100s');
    await few.text();
    const many = await query('SELECT stddev(v) FROM q');
    expect(await many.text()).toContain('stddev');
    expect(ruOf(few)).toBeGreaterThanOrEqual(1);
    expect(ruOf(many)).toBeGreaterThan(2 * ruOf(few));
  });

  test('an answer of unknown length says it at its end', async () => {
    const { request } = await import('node:http');
    await write(points(50_000, 'long'));
    const parameters = new URLSearchParams({ db: 'd', q: 'SELECT v FROM long' });
    const trailers = await new Promise<NodeJS.Dict<string>>((resolve, reject) => {
      request(`${server.influx}/query?${parameters.toString()}`, (response) => {
        expect(response.headers.trailer).toBe('X-Polyrow-RU');
        expect(response.headers['x-polyrow-ru']).toBeUndefined();
        response.resume();
        response.on('end', () => resolve(response.trailers));
        response.on('error', reject);
      }).end();
    });
    expect(Number(trailers['x-polyrow-ru'])).toBeGreaterThan(10);
  });

  test('what was refused costs nothing', async () => {
    for (const refused of [
      await write('m v=1', 'nosuchdatabase'),
      await query('SELEKT'),
      await fetch(`${server.influx}/query?db=d`),
    ]) {
      expect(refused.status).toBeGreaterThanOrEqual(400);
      expect(refused.headers.get('x-polyrow-ru')).toBe('0');
    }
  });

  test('EXPLAIN ANALYZE tells it', async () => {
    const text = await (await query('EXPLAIN ANALYZE SELECT mean(v) FROM q')).text();
    expect(text).toMatch(/RU: \d+\.\d+/);
    expect(text).toMatch(/PRU: cpu \d+\.\d+, memory \d+\.\d+, io \d+\.\d+, network \d+\.\d+/);
  });

  test('headers add up to what metrics say was charged', async () => {
    const name = (kind: string) =>
      `polyrow_tenant_ru_total{tenant="default",plane="influx",class="${kind}"}`;
    const charged = async (): Promise<number> => {
      const found = await metrics(server);
      return (found.get(name('write')) ?? 0) + (found.get(name('scan')) ?? 0);
    };
    const before = await charged();
    let told = 0;
    for (let i = 1; i <= 20; i++) {
      const response =
        i % 2 === 0 ? await query('SELECT count(v) FROM q') : await write(points(i * 50, 's'));
      await response.text();
      told += ruOf(response);
    }
    const after = await until('the last charge', async () => {
      const now = await charged();
      return now - before > told - 0.1 ? now : undefined;
    });
    expect(after - before).toBeCloseTo(told, 1);
  });

  test('merging what was written is charged to the background', async () => {
    const name = 'polyrow_tenant_ru_total{tenant="default",plane="influx",class="background"}';
    await write(points(5000, 'merged'));
    await until('merging', async () => {
      const units = (await metrics(server)).get(name) ?? 0;
      return units > 0 ? units : undefined;
    });
  });
});

describe('over Redis', () => {
  test('rows that expire by themselves are charged to the background', async () => {
    await client.pipeline(
      Array.from({ length: 500 }, (_, i) => ['SET', `gone${i}`, 'x', 'PX', 20]),
    );
    const stats = await until('expiry', async () => {
      const now = await numbers(client, 'RU', 'STATS');
      return now['background_ru']! > 0 ? now : undefined;
    });
    expect(stats['background_cpu']).toBeGreaterThan(0);
    expect(stats['background_io']).toBeGreaterThan(0);
  });

  test('a checkpoint is charged to those whose rows are in it', async () => {
    const before = await numbers(client, 'RU', 'STATS');
    await client.pipeline(
      Array.from({ length: 1000 }, (_, i) => ['SET', `kept${i}`, 'x'.repeat(500)]),
    );
    await client.command('SELECT', 2);
    await client.pipeline(
      Array.from({ length: 1000 }, (_, i) => ['SET', `kept${i}`, 'x'.repeat(500)]),
    );
    const written = (await numbers(client, 'RU', 'STATS'))['db2_ru']!;
    await client.command('SAVE');
    const after = await numbers(client, 'RU', 'STATS');
    await client.command('SELECT', 0);
    expect(after['background_ru']!).toBeGreaterThan(before['background_ru']!);
    expect(after['db2_ru']!).toBeGreaterThan(written);
  });

  test('metrics are by tenant, plane and class', async () => {
    await client.command('GET', 'a');
    const found = await metrics(server);
    const names = [...found.keys()].filter((name) => name.startsWith('polyrow_tenant_'));
    for (const kind of ['read', 'write', 'other']) {
      const labels = `{tenant="default",plane="redis",class="${kind}"}`;
      expect(found.get(`polyrow_tenant_ru_total${labels}`)).toBeGreaterThan(0);
      expect(found.get(`polyrow_tenant_requests_total${labels}`)).toBeGreaterThan(0);
    }
    expect(names).toContain('polyrow_tenant_rejected_total{tenant="default",plane="redis"}');
    expect(
      found.get('polyrow_pru_total{plane="redis",class="read",dimension="cpu"}'),
    ).toBeGreaterThan(0);
  });

  test('metering is switched off and on while the server runs', async () => {
    const set = async (value: string): Promise<void> => {
      const answer = await fetch(`${server.admin}/v1/config`, {
        method: 'PATCH',
        headers: adminHeaders(server),
        body: JSON.stringify({ 'ru.metering': value }),
      });
      expect(answer.status).toBe(200);
    };
    await set('off');
    expect(await client.text('RU', 'LAST')).toContain('metering is off');
    const unmetered = await query('SHOW DATABASES');
    expect(unmetered.status).toBe(200);
    expect(unmetered.headers.has('x-polyrow-ru')).toBe(false);
    await set('on');
    await client.command('SET', 'a', '1');
    expect((await numbers(client, 'RU', 'LAST'))['ru']).toBeGreaterThan(0);
    expect(ruOf(await query('SHOW DATABASES'))).toBeGreaterThan(0);
  });
});

test('a table that cannot be used keeps the server from starting', async () => {
  await expect(
    Polyrow.start({ flags: ['--ru.table', join(import.meta.dirname, 'nothing.json')] }),
  ).rejects.toThrow(/ru\.table/);
});

describe('rows on disk', () => {
  let kv: Polyrow;
  let rows: RespClient;

  beforeAll(async () => {
    kv = await Polyrow.start({
      flags: ['--redis.default-model', 'kv', '--kv.cache-bytes', '200kb'],
    });
    rows = await kv.client();
  });
  afterAll(() => kv?.remove());

  test('cost more when they have to be read than when they are in the cache', async () => {
    const value = 'x'.repeat(1024);
    for (let from = 0; from < 3000; from += 500) {
      await rows.pipeline(
        Array.from({ length: 500 }, (_, i) => [
          'SET',
          `key${String(from + i).padStart(13, '0')}`,
          value,
        ]),
      );
    }
    const costs: { io: number; ru: number; cpu: number; network: number }[] = [];
    for (let i = 0; i < 40; i++) {
      const key = `key${String((i * 701) % 3000).padStart(13, '0')}`;
      await rows.command('GET', key);
      costs.push((await numbers(rows, 'RU', 'LAST')) as unknown as (typeof costs)[number]);
    }
    const misses = costs.filter(({ io }) => io > 0);
    expect(misses.length).toBeGreaterThan(10);
    for (const miss of misses) {
      expect(miss.ru).toBeCloseTo(1, 1);
      expect(miss.io).toBeCloseTo(1, 1);
      expect(miss.network).toBeCloseTo(1, 1);
    }
    // Merging may move the row between two reads of it, and then it is read again.
    const hit = await until('a read from the cache', async () => {
      await rows.command('GET', `key${'0'.repeat(13)}`);
      const cost = await numbers(rows, 'RU', 'LAST');
      return cost['io'] === 0 ? cost : undefined;
    });
    expect(hit['ru']).toBeLessThan(0.9);
    expect(hit['ru']).toBeGreaterThanOrEqual(0.1);
  });

  test('are merged at their writer’s cost', async () => {
    const stats = await until('merging', async () => {
      const now = await numbers(rows, 'RU', 'STATS');
      return now['background_ru']! > 0 ? now : undefined;
    });
    expect(stats['background_io']).toBeGreaterThan(0);
  });
});
