// Policies of a plane's thread that are changed while tenants wait for it: each has all its answers, in order.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { show } from '../support/resp-value.ts';
import { LimitedPolyrow } from './limited-polyrow.ts';

const perPipeline = 20;

/** What is set one after the other, and back in the end. */
const changes: readonly Readonly<Record<string, string>>[] = [
  { 'admission.turn-order': 'least-granted' },
  { 'admission.turn-order': 'most-requested' },
  { 'mech.cr-heaps': 'off' },
  { 'admission.turn-order': 'arrival', 'mech.cr-heaps': 'on' },
  { 'mech.ab-43-r3': 'on' },
  { 'admission.turn-order': 'most-requested' },
  { 'mech.cr-layers': 'off' },
  { 'admission.turn-order': 'virtual-finish-time' },
  { 'mech.ab-43-r3': 'off', 'mech.cr-layers': 'on' },
];

let limited: LimitedPolyrow;
let isOver: boolean;

beforeEach(async () => {
  isOver = false;
  limited = await LimitedPolyrow.start();
  await limited.tenant('flood', 0);
  await limited.tenant('light', 0);
}, 30_000);
afterEach(async () => {
  isOver = true;
  await limited?.stop();
});

async function set(change: object): Promise<void> {
  const { status } = await limited.server.askAdmin('PATCH', '/v1/config', change);
  expect(status).toBe(200);
}

async function metric(name: string, plane: string): Promise<number> {
  const page = await limited.metrics();
  return Number(new RegExp(`^polyrow_${name}\\{plane="${plane}"\\} (\\S+)$`, 'm').exec(page)?.[1]);
}

/** Through all changes; after each one `count` goes up before the next. */
async function changeAll(count: () => number): Promise<void> {
  for (const change of changes) {
    await set(change);
    const before = count();
    await expect.poll(count, { timeout: 20_000 }).toBeGreaterThan(before + 3);
    await sleep(100);
  }
}

/** Commands that take long each, and between them some that count. Returns how many there were. */
async function floodRedis(key: string): Promise<number> {
  const client = await limited.client('flood');
  let sent = 0;
  while (!isOver) {
    const commands = Array.from({ length: perPipeline }, (_, i) =>
      i % 2 === 0 ? ['LPOS', 'long', 'none'] : ['INCR', key],
    );
    const answers = (await client.pipeline(commands)).map(show);
    expect(answers.filter((_, i) => i % 2 === 1)).toEqual(
      Array.from({ length: perPipeline / 2 }, () => `:${++sent}`),
    );
  }
  return sent;
}

test('Redis clients, while the order of tenants and the cap on one of them change', async () => {
  const first = await limited.client('flood');
  await first.pipeline(
    Array.from({ length: 100 }, () => ['RPUSH', 'long', ...Array<string>(300).fill('x')]),
  );
  const flood = Array.from({ length: 6 }, (_, i) => floodRedis(`n${i}`));
  const light = await limited.client('light');
  let count = 0;
  const lightEnd = (async () => {
    while (!isOver) expect(await light.text('INCR', 'n')).toBe(`:${++count}`);
  })();
  await changeAll(() => count);
  isOver = true;
  const sent = await Promise.all(flood);
  await lightEnd;
  for (const [i, total] of sent.entries()) {
    expect(total).toBeGreaterThan(0);
    expect(await first.text('GET', `n${i}`)).toBe(`"${total}"`);
  }
  expect(await metric('turns_waited_total', 'redis')).toBeGreaterThan(50);
  expect(await metric('turns_held_total', 'redis')).toBeGreaterThan(0);
  expect(await metric('turns_waiting', 'redis')).toBe(0);
}, 120_000);

test('InfluxDB clients, writes and queries, while both change', async () => {
  const of = (tenant: string): RequestInit => ({
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${tenant}:${tenant}`)}` },
  });
  const query = async (tenant: string, q: string): Promise<string> => {
    const path = `${limited.server.influx}/query?db=d&q=${encodeURIComponent(q)}`;
    return (await fetch(path, of(tenant))).text();
  };
  const write = async (tenant: string, body: string): Promise<void> => {
    const answer = await fetch(`${limited.server.influx}/write?db=d`, { ...of(tenant), body });
    expect(answer.status, await answer.text()).toBe(204);
  };
  for (const tenant of ['flood', 'light']) await query(tenant, 'CREATE DATABASE d');
  const points = 5000;
  const floods = Array.from({ length: 4 }, async (_, n) => {
    let written = 0;
    while (!isOver) {
      const from = written;
      const lines = Array.from({ length: points }, (__, i) => `m,n=${n} v=1 ${from + i}`);
      await write('flood', lines.join('\n'));
      written += points;
      if ((written / points) % 4 === 0) {
        const text = await query('flood', `SELECT count(v) FROM m WHERE n='${n}'`);
        expect(text).toContain(`,${written}]`);
      }
    }
    return written;
  });
  let count = 0;
  const light = (async () => {
    while (!isOver) await write('light', `m v=1 ${++count}`);
  })();
  await changeAll(() => count);
  isOver = true;
  const total = (await Promise.all(floods)).reduce((sum, written) => sum + written, 0);
  await light;
  expect(await query('flood', 'SELECT count(v) FROM m')).toContain(`,${total}]`);
  expect(await query('light', 'SELECT count(v) FROM m')).toContain(`,${count}]`);
  expect(await metric('turns_waited_total', 'influx')).toBeGreaterThan(50);
  expect(await metric('turns_waiting', 'influx')).toBe(0);
}, 120_000);
