// The queues before the pod in the whole server: a plane that is held to few units, clients that ask for more.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';

let server: Polyrow;

const ask = async (method: string, path: string, body: object): Promise<void> => {
  const { status, body: answer } = await server.askAdmin(method, path, body);
  expect(status, JSON.stringify(answer)).toBeLessThan(300);
};
const set = (change: object): Promise<void> => ask('PATCH', '/v1/config', change);
const post = (path: string, body = '', signal?: AbortSignal): Promise<Response> =>
  fetch(`${server.influx}${path}`, { method: 'POST', body, ...(signal && { signal }) });
const write = (database: string): Promise<Response> => post(`/write?db=${database}`, 'm,a=b v=1 1');
const query = (q: string): Promise<string> =>
  post(`/query?db=d&q=${encodeURIComponent(q)}`).then((answer) => answer.text());

async function metric(name: string, kind: string): Promise<number> {
  const headers = { authorization: `Bearer ${server.adminToken}` };
  const page = await (await fetch(`${server.admin}/metrics`, { headers })).text();
  const line = new RegExp(`^polyrow_${name}\\{plane="influx",kind="${kind}"\\} (\\S+)$`, 'm');
  return Number(line.exec(page)?.[1] ?? Number.NaN);
}

async function balance(): Promise<number> {
  const page = await (await fetch(`${server.admin}/metrics`)).text();
  return Number(/^polyrow_pod_ru_balance\{plane="influx"\} (\S+)$/m.exec(page)?.[1]);
}

/** Many at once, and the order in which they were answered. */
async function flood(names: readonly string[]): Promise<string[]> {
  const order: string[] = [];
  await Promise.all(
    names.map(async (name) => {
      const isRead = name === 'read';
      if (isRead) expect(await query('SHOW MEASUREMENTS')).toContain('measurements');
      else expect((await write(name)).status).toBe(204);
      order.push(name);
    }),
  );
  return order;
}

beforeAll(async () => {
  server = await Polyrow.start();
  for (const name of ['d', 'normal', 'low']) await query(`CREATE DATABASE ${name}`);
  for (const writePriority of ['normal', 'low']) {
    await ask('PATCH', `/v1/tables/${writePriority}`, { writePriority });
  }
});
beforeEach(async () => {
  await set({ 'influx.ru-per-second': 0 });
});
afterAll(async () => {
  await server?.stop();
  await server?.remove();
});

/** So that everything that comes next has to wait, until so many units are there again. */
async function debt(units: number, perSecond: number): Promise<void> {
  const lines = (count: number): string =>
    Array.from({ length: count }, (_, i) => `m,a=b v=1 ${i}`).join('\n');
  // The first points teach the limiter their cost, while no request has to wait.
  const { headers } = await post('/write?db=d', lines(5000));
  const of5000 = Number(headers.get('x-polyrow-ru'));
  await set({ 'influx.ru-per-second': perSecond });
  expect((await post('/write?db=d', lines(Math.ceil((units * 5000) / of5000)))).status).toBe(204);
  await expect.poll(balance).toBeLessThan(-units / 2);
}

test('writes go first, equal ones with reads, low ones last', async () => {
  await debt(60, 60);
  const names = ['low', 'read', 'normal', 'd'].flatMap((name) => Array<string>(4).fill(name));
  const order = await flood(names);
  const mean = (name: string): number => {
    const places = order.flatMap((one, place) => (one === name ? [place] : []));
    return places.reduce((sum, place) => sum + place, 0) / places.length;
  };
  expect(mean('d')).toBeLessThan(mean('normal'));
  expect(mean('normal')).toBeLessThan(mean('low'));
  expect(mean('d')).toBeLessThan(mean('read'));
  expect(mean('read')).toBeLessThan(mean('low'));
  expect(await metric('pod_waited_total', 'write')).toBeGreaterThan(8);
  expect(await metric('pod_waited_total', 'read')).toBeGreaterThanOrEqual(3);
  expect(await metric('pod_waiting', 'write')).toBe(0);
});

test('clients that go leave nothing, queries can be killed, and a higher rate lets all in', async () => {
  await debt(10, 1);
  const gone = new AbortController();
  const left = Promise.allSettled(
    Array.from({ length: 10 }, () => post('/write?db=d', 'm v=1 1', gone.signal)),
  );
  await expect.poll(() => metric('pod_waiting', 'write')).toBe(10);
  gone.abort();
  await left;
  await expect.poll(() => metric('pod_waiting', 'write')).toBe(0);
  const killed = query('SELECT sum(v) FROM m');
  await expect.poll(() => metric('pod_waiting', 'read')).toBe(1);
  const shown = /\[(\d+),"SELECT sum/.exec(await query('SHOW QUERIES'));
  expect(shown).not.toBeNull();
  await query(`KILL QUERY ${shown![1]}`);
  expect(await killed).toContain('error');
  const letIn = async (): Promise<number> => {
    await set({ 'influx.ru-per-second': 0 });
    await debt(10, 1);
    const waits = write('d');
    await set({ 'influx.ru-per-second': 1_000_000 });
    return (await waits).status;
  };
  // On a busy machine the higher rate may come after the time that a write waits.
  await expect.poll(letIn).toBe(204);
});

test('a write that has waited its time is refused so that clients send it again', async () => {
  await debt(20, 1);
  const [v1, v2] = await Promise.all([
    write('d'),
    post('/api/v2/write?bucket=d&org=x', 'm,a=b v=1 1'),
  ]);
  expect(v1.status).toBe(500);
  expect(await v1.text()).toContain('timeout');
  expect(v2.status).toBe(503);
  expect(v2.headers.get('retry-after')).toBe('1');
});
