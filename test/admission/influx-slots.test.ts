// Slots for requests of an InfluxDB plane that take more than one turn, in the whole server.

import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';

const points = 100_000;
const heavy = 'SELECT median(v) FROM m';
let server: Polyrow;

async function set(change: object): Promise<void> {
  const { status } = await server.askAdmin('PATCH', '/v1/config', change);
  expect(status).toBe(200);
}
const post = (path: string, body = '', signal?: AbortSignal): Promise<Response> =>
  fetch(`${server.influx}${path}`, { method: 'POST', body, ...(signal && { signal }) });
const query = async (q: string, signal?: AbortSignal): Promise<string> =>
  (await post(`/query?db=d&q=${encodeURIComponent(q)}`, '', signal)).text();
const lines = (measurement: string, from: number, count: number): string =>
  Array.from({ length: count }, (_, i) => `${measurement} v=${from + i} ${from + i}`).join('\n');

/** NaN where there is none. */
async function metric(name: string): Promise<number> {
  const page = await (await fetch(`${server.admin}/metrics`)).text();
  return Number(
    new RegExp(`^polyrow_pod_slots${name}\\{plane="influx"\\} (\\S+)$`, 'm').exec(page)?.[1],
  );
}

beforeAll(async () => {
  server = await Polyrow.start();
  await query('CREATE DATABASE d');
  for (let from = 0; from < points; from += 20_000) {
    expect((await post('/write?db=d', lines('m', from, 20_000))).status).toBe(204);
  }
}, 60_000);
beforeEach(async () => {
  await set({ 'mech.cr-cpu-slots': 'off', 'influx.ru-per-second': 0 });
  await set({ 'mech.cr-cpu-slots': 'on' });
});
afterAll(async () => {
  await server?.stop();
  await server?.remove();
});

test('of queries and large bodies a few are under way, the others wait, and all are answered', async () => {
  let mostUsed = 0;
  let mostSlots = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      mostUsed = Math.max(mostUsed, await metric('_used'));
      mostSlots = Math.max(mostSlots, await metric(''));
      await sleep(5);
    }
  })();
  const answers = await Promise.all([
    ...Array.from({ length: 40 }, () => query(heavy)),
    ...Array.from({ length: 20 }, async (_, i) => {
      const { status } = await post('/write?db=d', lines('n', i * 5000, 5000));
      return `${status}`;
    }),
  ]);
  isOver = true;
  await watching;
  for (const answer of answers.slice(0, 40)) expect(answer).toContain(`,${(points - 1) / 2}]`);
  expect(new Set(answers.slice(40))).toEqual(new Set(['204']));
  expect(await query('SELECT count(v) FROM n')).toContain(',100000]');
  expect(await metric('_waited_total')).toBeGreaterThan(10);
  expect(await metric('_waiting')).toBe(0);
  await expect.poll(() => metric('_used')).toBe(0);
  expect(mostSlots).toBeLessThanOrEqual(16);
  // Who has waited for its client comes back all the same.
  expect(mostUsed).toBeLessThan(40);
}, 60_000);

test('who waits can be killed, leave, and is let in when there are no slots any more', async () => {
  const gone = new AbortController();
  const all = Array.from({ length: 60 }, () => query(heavy));
  await expect.poll(() => metric('_waiting'), { interval: 5 }).toBeGreaterThan(3);
  const left = query(`${heavy} LIMIT 8`, gone.signal).catch(() => 'left');
  const killed = query(`${heavy} LIMIT 7`);
  let id: string | undefined;
  const find = async (): Promise<string | undefined> =>
    (id = /\[(\d+),"[^"]*LIMIT 7"/.exec(await query('SHOW QUERIES'))?.[1]);
  await expect.poll(find, { interval: 5, timeout: 10_000 }).toBeDefined();
  await query(`KILL QUERY ${id}`);
  expect(await killed).toContain('error');
  gone.abort();
  expect(await left).toBe('left');
  await set({ 'mech.cr-cpu-slots': 'off' });
  expect(await metric('')).toBeNaN();
  for (const answer of await Promise.all(all)) expect(answer).toContain('median');
  await set({ 'mech.cr-cpu-slots': 'on' });
  expect(await metric('_used')).toBe(0);
}, 60_000);

test('requests wait for units first, then for slots', async () => {
  await set({ 'influx.ru-per-second': 1000 });
  const answers = await Promise.all([
    ...Array.from({ length: 12 }, () => query(heavy)),
    ...Array.from({ length: 12 }, async (_, i) =>
      String((await post('/write?db=d', lines('u', i * 2000, 2000))).status),
    ),
  ]);
  for (const answer of answers.slice(0, 12)) expect(answer).toContain('median');
  expect(new Set(answers.slice(12))).toEqual(new Set(['204']));
  await expect.poll(() => metric('_used')).toBe(0);
}, 60_000);

test('clients that send slowly hold nobody up', async () => {
  const slow = Array.from({ length: 20 }, () => {
    const sending = request(`${server.influx}/write?db=d`, { method: 'POST' });
    const answered = new Promise<number>((resolve, reject) => {
      sending.on('response', (response) => resolve(response.resume().statusCode ?? 0));
      sending.on('error', reject);
    });
    sending.write(lines('s', 0, 10));
    return { sending, answered };
  });
  await sleep(100);
  expect(await query(heavy)).toContain('median');
  for (const { sending } of slow) sending.end();
  for (const { answered } of slow) expect(await answered).toBe(204);
  await expect.poll(() => metric('_used')).toBe(0);
}, 60_000);
