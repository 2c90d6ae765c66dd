// Limits on how fast a burst is spent, in the whole server, by real clients.

import { setTimeout as sleep } from 'node:timers/promises';
import { InfluxDB as InfluxV2, Point } from '@influxdata/influxdb-client';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { polyrow } from '../cli/polyrow-process.ts';
import { LimitedPolyrow } from './limited-polyrow.ts';

let limited: LimitedPolyrow;
beforeAll(async () => {
  limited = await LimitedPolyrow.start();
});
afterAll(() => limited.stop());

function cli(...words: string[]) {
  return polyrow([...words, '--data-dir', limited.server.dataDir]);
}

async function set(tenant: string, ...limits: string[]): Promise<void> {
  const { code, err } = await cli('limit', 'set', tenant, ...limits);
  expect([code, err]).toEqual([0, '']);
}

/** Units that the tenant has spent on a plane. */
async function spent(tenant: string, plane: string): Promise<number> {
  const found = (await limited.metrics()).matchAll(
    new RegExp(`^polyrow_tenant_ru_total\\{tenant="${tenant}",plane="${plane}".*\\} (.*)$`, 'gm'),
  );
  return [...found].reduce((sum, [, value]) => sum + Number(value), 0);
}

/** Units a second that it spends while `work` is done over and over, for so long. */
async function speed(
  tenant: string,
  plane: string,
  ms: number,
  work: () => Promise<unknown>,
): Promise<number> {
  const [before, from] = [await spent(tenant, plane), performance.now()];
  while (performance.now() - from < ms) await work();
  return ((await spent(tenant, plane)) - before) / ((performance.now() - from) / 1000);
}

/** Far less than what the busiest machine does without it. */
const peak = 200;
const pipelined = 50;

test('over Redis a burst is spent at the speed that is set, and at another one once that is', async () => {
  await limited.tenant('shop', 100, 1_000_000);
  const client = new Redis(limited.port, '127.0.0.1', { username: 'shop', password: 'shop' });
  const work = async (): Promise<unknown> => {
    const pipeline = client.pipeline();
    for (let i = 0; i < pipelined; i++) pipeline.set(`key:${i}`, 'value');
    return pipeline.exec();
  };
  try {
    expect(await speed('shop', 'redis', 1000, work)).toBeGreaterThan(2 * peak);
    await set('shop', `peakRuPerSecond=${peak}`);
    expect(await client.info('ru')).toContain(`ru_quota_peak:${peak}.000`);
    // A pipeline that is under way ends, and a tenth of a second's units may be there at once.
    const most = peak * 1.2 + pipelined;
    expect(await speed('shop', 'redis', 2000, work)).toBeLessThan(most);
    await set('shop', `peakRuPerSecond=${peak / 2}`);
    expect(await speed('shop', 'redis', 2000, work)).toBeLessThan(most / 2 + pipelined);
    await set('shop', 'peakRuPerSecond=none');
    expect(await speed('shop', 'redis', 1000, work)).toBeGreaterThan(2 * peak);
  } finally {
    client.disconnect();
  }
});

test('over InfluxDB’s protocol writes are, too', async () => {
  await limited.tenant('mill', 100, 1_000_000);
  await fetch(`${limited.server.influx}/query?u=mill&p=mill&q=CREATE+DATABASE+d`, {
    method: 'POST',
  });
  const influx = new InfluxV2({ url: limited.server.influx, token: 'mill:mill', timeout: 20_000 });
  let at = 0;
  const work = async (): Promise<unknown> => {
    const write = influx.getWriteApi('-', 'd', 'ms', { maxRetries: 5 });
    for (let i = 0; i < 200; i++) write.writePoint(new Point('m').intField('v', i).timestamp(++at));
    return write.close();
  };
  const free = await speed('mill', 'influx', 1000, work);
  // Merging is charged when it is done.
  await sleep(1500);
  const slow = Math.max(100, Math.round(free / 5));
  await set('mill', `peakRuPerSecond=${slow}`);
  expect(await speed('mill', 'influx', 3000, work)).toBeLessThan(slow * 1.5);
  await set('mill', 'peakRuPerSecond=none');
  expect(await speed('mill', 'influx', 1000, work)).toBeGreaterThan(slow * 1.5);
  expect(await limited.metrics()).toContain(
    'polyrow_tenant_peak_ru{tenant="mill",plane="influx"} 0',
  );
});

test('one that is less than the quota is refused, however it comes to be', async () => {
  const refused = (it: { code: number | null; err: string }): void => {
    expect(it.err).toContain('cannot be less than ruPerSecond');
    expect(it.code).not.toBe(0);
  };
  refused(await cli('tenant', 'create', 'x', ...flags(['ruPerSecond=100', 'peakRuPerSecond=99'])));
  expect((await cli('tenant', 'create', 'x', ...flags(['peakRuPerSecond=100']))).code).toBe(0);
  await set('x', 'ruPerSecond=100');
  refused(await cli('limit', 'set', 'x', 'peak-ru-per-second=99'));
  refused(await cli('tenant', 'alter', 'x', ...flags(['ruPerSecond=101'])));
  const { status } = await limited.server.askAdmin('PATCH', '/v1/tenants/x/limits', {
    peakRuPerSecond: 1,
  });
  expect(status).toBe(400);
  const { body } = await limited.server.askAdmin('GET', '/v1/tenants/x/limits');
  expect(body).toMatchObject({ limits: { ruPerSecond: 100, peakRuPerSecond: 100 } });
});

function flags(limits: readonly string[]): string[] {
  return limits.flatMap((limit) => ['--limit', limit]);
}
