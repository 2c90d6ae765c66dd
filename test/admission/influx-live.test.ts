// Limits of the InfluxDB plane in the whole server: settings, metrics, restarts.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';

let server: Polyrow;

const ask = async (method: string, path: string, body: object): Promise<void> => {
  const { status, body: answer } = await server.askAdmin(method, path, body);
  expect(status, JSON.stringify(answer)).toBeLessThan(300);
};
const set = (change: object): Promise<void> => ask('PATCH', '/v1/config', change);
const post = (path: string, body = ''): Promise<Response> =>
  fetch(`${server.influx}${path}&u=acme&p=acme`, { method: 'POST', body });
const write = async (): Promise<number> => (await post('/write?db=d', 'm v=1 1')).status;
const query = async (q: string): Promise<string> =>
  (await post(`/query?db=d&q=${encodeURIComponent(q)}`)).text();
const metrics = async (): Promise<Map<string, number>> => {
  const headers = { authorization: `Bearer ${server.adminToken}` };
  const page = await (await fetch(`${server.admin}/metrics`, { headers })).text();
  const ours = /^polyrow_tenant_(\w+)\{tenant="acme",plane="influx"\} (\S+)$/gm;
  return new Map([...page.matchAll(ours)].map(([, name, value]) => [name!, Number(value)]));
};
/** So many at once. */
const burst = (count: number): Promise<number[]> =>
  Promise.all(Array.from({ length: count }, write));

beforeAll(async () => {
  server = await Polyrow.start({ flags: ['--admission.write-wait-ms', '200'] });
  await ask('POST', '/v1/tenants', { name: 'acme', password: 'acme', limits: { ruPerSecond: 5 } });
  await query('CREATE DATABASE d');
});
afterAll(async () => {
  await server?.stop();
  await server?.remove();
});

test('limits hold, and every switch takes effect at once', async () => {
  const refuses = async (): Promise<boolean> => (await burst(40)).includes(500);
  expect(await refuses()).toBe(true);
  await set({ 'admission.mode': 'off' });
  expect(await refuses()).toBe(false);
  await set({ 'admission.mode': 'dry-run' });
  expect(await refuses()).toBe(false);
  expect((await metrics()).get('would_refuse_total')).toBeGreaterThan(20);
  await set({ 'admission.mode': 'enforce' });
  expect(await refuses()).toBe(true);
  await set({ 'ru.metering': 'off' });
  expect(await refuses()).toBe(false);
  await set({ 'ru.metering': 'on' });
  expect(await refuses()).toBe(true);
});

test('what waits and what is refused is in the metrics', async () => {
  const { status } = await server.askAdmin('PATCH', '/v1/tenants/acme', {
    limits: { ruPerSecond: 10 },
  });
  expect(status).toBe(200);
  await burst(40);
  const found = await metrics();
  expect(found.get('quota_ru')).toBe(10);
  expect(found.get('refused_total')).toBeGreaterThan(0);
  expect(found.get('waited_total')).toBeGreaterThan(0);
  expect(found.get('queries_waiting')).toBe(0);
  expect(found.has('saved_ru')).toBe(true);
});

test('a limit is there after a restart', async () => {
  await server.restart();
  expect((await burst(60)).includes(500)).toBe(true);
  await set({ 'admission.mode': 'off' });
  expect(await query('SELECT v FROM m')).toContain('[["1970-01-01T00:00:00.000000001Z",1]]');
});

test('a server that stops answers who waits', async () => {
  await set({ 'admission.mode': 'enforce', 'admission.write-wait-ms': 60_000 });
  await ask('PATCH', '/v1/tenants/acme', { limits: { ruPerSecond: 1 } });
  const waiting = burst(30);
  await expect.poll(async () => (await metrics()).get('waiting')).toBeGreaterThan(10);
  await server.stop();
  expect(new Set(await waiting)).toEqual(new Set([204]));
  await server.restart();
});
