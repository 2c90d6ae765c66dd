// A limit on what queries may cost, of a tenant that may have one on all its requests besides.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { TenantLimiter } from '../../access/admission/tenant-limiter.ts';
import { ChargeClass } from '../../request-units/meter.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { type LimitedInflux, limitedInflux } from './limited-influx.ts';

let it: LimitedInflux;
beforeEach(async () => {
  it = await limitedInflux();
  it.server.control.addTenant('acme');
  await it.server.result('acme:acme', 'CREATE DATABASE d');
  const lines = Array.from({ length: 20_000 }, (_, i) => `m v=${i} ${i}`).join('\n');
  await it.server.write('acme:acme', lines);
  it.setLimits('acme', { queryRuPerSecond: 20 });
});
afterEach(() => it.close());

const heavy = 'SELECT median(v) FROM m';
const query = async (q = heavy) => {
  const begun = performance.now();
  const { text, headers } = await it.server.query('acme:acme', q);
  return { text, ru: Number(headers.get('x-polyrow-ru')), ms: performance.now() - begun };
};
const limiter = (): TenantLimiter => it.admission.classLimiterOf(1)!;
const balance = (): number => limiter().balance(systemClock.monotonic());
/** Queries owe as much as this. */
function owe(units: number): void {
  const lru = balance() + units;
  it.meter.account(1).charge(ChargeClass.scan, 0, false, lru, 1, 1, 1, 1);
  limiter().settle(systemClock.monotonic());
}

test('queries wait until theirs is paid, and writes do not', async () => {
  const charged = (): number => it.meter.account(1).lruOf(ChargeClass.scan);
  const before = charged();
  const first = await query();
  expect(first.text).toContain('9999.5');
  await expect.poll(() => charged() - before).toBeGreaterThan(first.ru / 2);
  owe(40);
  const second = query();
  await expect.poll(() => limiter().waiting).toBe(1);
  expect((await it.server.write('acme:acme', 'm v=1')).status).toBe(204);
  const { text, ms } = await second;
  expect(text).toContain('median');
  expect(ms).toBeGreaterThan(300);
  expect(limiter().counters).toMatchObject({ waited: 1, refused: 0 });
  expect(it.admission.limiterOf(1)).toBeUndefined();
});

test('a query that waits is seen and killed, by statements that do not wait', async () => {
  owe(1000);
  const waiting = query();
  await expect.poll(() => limiter().waiting).toBe(1);
  const { text } = await query('SHOW QUERIES');
  const { results } = JSON.parse(text) as { results: { series: { values: string[][] }[] }[] };
  const [id] = results[0]!.series[0]!.values.find(([, q]) => q?.startsWith('SELECT') === true)!;
  expect((await query(`KILL QUERY ${id}`)).text).toBe('{"results":[{"statement_id":0}]}\n');
  const killed = await waiting;
  expect(killed.text).toContain('query interrupted');
  expect(killed.ru).toBe(0);
  expect(limiter().waiting).toBe(0);
});

test('a query goes when its client does, and goes on when the limit is taken away', async () => {
  owe(1000);
  const leaving = new AbortController();
  const path = `/query?db=d&q=${encodeURIComponent(heavy)}`;
  const left = it.server.send('acme:acme', path, { signal: leaving.signal }).catch(() => 'left');
  await expect.poll(() => limiter().waiting).toBe(1);
  leaving.abort();
  expect(await left).toBe('left');
  await expect.poll(() => limiter().waiting).toBe(0);
  const waiting = query();
  await expect.poll(() => limiter().waiting).toBe(1);
  it.setLimits('acme', { queryRuPerSecond: 0 });
  expect((await waiting).text).toContain('9999.5');
  expect(limiter()).toBeUndefined();
});

test('is answered as a statement that failed when too many wait, in words that name what is limited', async () => {
  it.admission.setRules({ queryQueueLength: 1 });
  owe(1000);
  const waiting = query();
  await expect.poll(() => limiter().waiting).toBe(1);
  const { results } = JSON.parse((await query()).text) as { results: { error: string }[] };
  expect(results[0]!.error).toMatch(/^RU limit, tenant=acme kind=query retry after 30 s$/);
  expect(limiter().counters.refused).toBe(1);
  it.setLimits('acme', { queryRuPerSecond: 0 });
  await waiting;
});

test('the limit of all requests holds as well', async () => {
  it.setLimits('acme', { ruPerSecond: 20 });
  it.limiter('acme').collect(systemClock.monotonic());
  const { units } = it.limiter('acme').queries;
  units.settle(units.balance + 10);
  owe(2);
  const { text, ms } = await query();
  expect(text).toContain('9999.5');
  expect(ms).toBeGreaterThan(400);
  expect(limiter().counters.waited).toBe(1);
  expect(it.limiter('acme').queryLimiter.counters.waited).toBe(1);
  // One that is killed in the second line gives back what was taken at the first.
  owe(0);
  await sleep(100);
  units.settle(units.balance + 150);
  const waiting = query();
  await expect.poll(() => it.limiter('acme').queryLimiter.waiting).toBe(1);
  const shown = await query('SHOW QUERIES');
  const id = /\[(\d+),"SELECT/.exec(shown.text)?.[1];
  await query(`KILL QUERY ${id}`);
  expect((await waiting).text).toContain('query interrupted');
  await expect.poll(() => balance()).toBeGreaterThan(0);
});

test('within it in the long run', async () => {
  it.setLimits('acme', { queryRuPerSecond: 40 });
  const spent = (): number => it.meter.account(1).lruOf(ChargeClass.scan);
  owe(0);
  const [begun, before] = [performance.now(), spent()];
  let dearest = 0;
  while (performance.now() - begun < 3000) dearest = Math.max(dearest, (await query()).ru);
  const seconds = (performance.now() - begun) / 1000;
  expect(spent() - before).toBeLessThan(40 * seconds + 2 * dearest + 1);
  expect(spent() - before).toBeGreaterThan(40 * seconds * 0.6 - dearest);
});
