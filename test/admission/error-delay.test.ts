// Refusals that take as long as what is served, for balancers that send requests to where fewest are under way.

import { afterEach, expect, test } from 'vitest';
import { ChargeClass } from '../../request-units/meter.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { show } from '../support/resp-value.ts';
import { type LimitedInflux, limitedInflux } from './limited-influx.ts';
import { LimitedServer } from './limited-server.ts';

let redis: LimitedServer | undefined;
let influx: LimitedInflux | undefined;
afterEach(async () => {
  await redis?.stop();
  await influx?.close();
  redis = undefined;
  influx = undefined;
});

async function timed<T>(what: Promise<T>): Promise<{ ms: number; answer: T }> {
  const begun = performance.now();
  const answer = await what;
  return { ms: performance.now() - begun, answer };
}

test('over Redis: up to the median of what was served, and no longer than the cap', async () => {
  redis = await LimitedServer.start(100, { commandWaitMs: 0, delaysErrors: true });
  const { errorDelay } = redis.tenants.admission;
  const client = await redis.client();
  expect(await client.text('SET', 'k', 'v')).toBe('+OK');
  // The usual time of a command has been learnt.
  expect(errorDelay.median()).toBeLessThan(50);
  redis.owe(9);
  const refused = async () => {
    const { ms, answer } = await timed(client.text('SET', 'k', 'v'));
    expect(answer).toMatch(/^-TRYAGAIN RU limit: tenant=red kind=write/);
    return ms;
  };
  for (let i = 0; i < 2000; i++) errorDelay.succeeded(60);
  const ms = await refused();
  expect(ms).toBeGreaterThan(50);
  for (let i = 0; i < 2000; i++) errorDelay.succeeded(5000);
  const capped = await refused();
  expect(capped).toBeGreaterThan(95);
  // A pipeline is delayed once.
  const commands = Array.from({ length: 1000 }, (_, i) => ['SET', i, i]);
  const { ms: all, answer } = await timed(client.pipeline(commands));
  expect(answer.every((one) => show(one).startsWith('-TRYAGAIN'))).toBe(true);
  expect(all).toBeLessThan(1500);
  redis.tenants.admission.setRules({ delaysErrors: false });
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(await refused()).toBeLessThan(50);
});

test('over InfluxDB: writes and queries, with the body unread', async () => {
  influx = await limitedInflux({ writeWaitMs: 0, delaysErrors: true });
  const it = influx;
  it.server.control.addTenant('acme');
  await it.server.result('acme:acme', 'CREATE DATABASE d');
  it.setLimits('acme', { ruPerSecond: 100, queryRuPerSecond: 10 });
  const { errorDelay } = it.admission;
  const write = () => timed(it.server.write('acme:acme', 'm v=1'));
  expect((await write()).answer.status).toBe(204);
  await expect.poll(() => errorDelay.median()).toBeLessThan(1000);
  for (let i = 0; i < 2000; i++) errorDelay.succeeded(70);
  it.indebt('acme', 5000);
  const refused = await write();
  expect(refused.answer.status).toBe(500);
  expect(refused.answer.headers.get('retry-after')).not.toBeNull();
  expect(refused.ms).toBeGreaterThan(60);
  // A query that there is no room for.
  it.admission.setRules({ queryQueueLength: 0 });
  const account = it.meter.account(it.server.principals.tenant('acme')!.number);
  account.charge(ChargeClass.scan, 0, false, 1000, 1, 1, 1, 1);
  it.admission
    .classLimiterOf(it.server.principals.tenant('acme')!.number)!
    .settle(systemClock.monotonic());
  const query = await timed(it.server.query('acme:acme', 'SELECT * FROM m'));
  expect(query.answer.text).toContain('kind=query');
  expect(query.ms).toBeGreaterThan(60);
  it.setLimits('acme', { ruPerSecond: 0, queryRuPerSecond: 0 });
});
