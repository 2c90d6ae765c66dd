// Several gateways in several processes share the quotas of tenants, even when some of them die.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { leaseMs, PoolProcesses, secondMs } from './pool-processes.ts';

const quota = 9000;
/** Units of a short second, beyond those of a whole one: that is what the scheduler takes it for. */
const muchMore = 12_000;
let pool: PoolProcesses;

beforeEach(() => {
  pool = new PoolProcesses();
  pool.quotas.set(1, quota);
});
afterEach(() => pool.remove());

function sum(all: readonly number[]): number {
  return all.reduce((total, one) => total + one, 0);
}

async function settled(expected: number[]): Promise<void> {
  await expect.poll(() => pool.shares(1)).toEqual(expected);
}

/** The fractions in force never exceed the quota during this time. */
async function staysWithin(ms: number): Promise<void> {
  const until = performance.now() + ms;
  while (performance.now() < until) {
    expect(sum(await pool.shares(1))).toBeLessThanOrEqual(quota + 3);
    await sleep(20);
  }
}

test('shares follow those who come and go, and where they are needed', async () => {
  pool.startScheduler(true);
  const a = pool.startGateway();
  await settled([9000]);
  const b = pool.startGateway();
  await settled([4500, 4500]);
  const c = pool.startGateway();
  await settled([3000, 3000, 3000]);
  pool.load(a, 1, muchMore);
  await expect.poll(async () => (await pool.shares(1))[0]!).toBeGreaterThan(8000);
  expect(sum(await pool.shares(1))).toBeGreaterThanOrEqual(quota - 3);
  pool.load(a, 1, 0);
  pool.load(b, 1, muchMore);
  await expect.poll(async () => (await pool.shares(1))[1]!).toBeGreaterThan(8000);
  await pool.endGateway(b);
  await expect.poll(async () => sum(await pool.shares(1))).toBeGreaterThanOrEqual(quota - 3);
  await pool.killGateway(c);
  await settled([9000]);
});

test('without a scheduler shares stay; another one loses and doubles nothing', async () => {
  pool.startScheduler(true);
  const [a, b, c] = [pool.startGateway(), pool.startGateway(), pool.startGateway()];
  await settled([3000, 3000, 3000]);
  pool.load(a, 1, muchMore);
  await expect.poll(async () => (await pool.shares(1))[0]!).toBeGreaterThan(8000);
  await pool.killScheduler();
  const shares = await pool.shares(1);
  pool.load(b, 1, muchMore);
  await sleep(3 * leaseMs);
  expect(await pool.shares(1)).toEqual(shares);
  await pool.killGateway(c);
  pool.startScheduler(false);
  await staysWithin(2 * leaseMs);
  await expect.poll(async () => sum(await pool.shares(1))).toBeGreaterThan(quota - 3);
  // Both want all there is.
  const [one, two] = await pool.shares(1);
  expect(one! + two!).toBeLessThanOrEqual(quota + 3);
});

test('a quota that changes under load is in force everywhere at once', async () => {
  pool.startScheduler(true);
  const [a, b] = [pool.startGateway(), pool.startGateway()];
  await settled([4500, 4500]);
  for (const name of [a, b]) pool.load(name, 1, 1000);
  await sleep(10 * secondMs);
  for (const perSecond of [90_000, 900, 9000]) {
    const before = await pool.shares(1);
    const was = pool.quotas.get(1)!;
    pool.setQuota(1, perSecond);
    const since = performance.now();
    await expect
      .poll(async () => Math.abs(sum(await pool.shares(1)) - perSecond), { interval: 5 })
      .toBeLessThanOrEqual(3);
    expect(performance.now() - since).toBeLessThan(1000);
    expect(sum(before)).toBeLessThanOrEqual(was + 3);
  }
  // All that is served in the end is the quota.
  await sleep(5 * secondMs);
  const used = async (): Promise<number> =>
    sum([...(await pool.states(1)).values()].map((state) => state.used));
  const [from, at] = [await used(), performance.now()];
  await sleep(3000);
  const rate = ((await used()) - from) / ((performance.now() - at) / 1000);
  expect(rate).toBeLessThan(quota * 1.1);
  expect(rate).toBeGreaterThan(quota * 0.8);
});

test('clocks of the day that jump change nothing', async () => {
  pool.startScheduler(true);
  const [a, b] = [pool.startGateway(), pool.startGateway()];
  await settled([4500, 4500]);
  for (const name of [a, b]) pool.load(name, 1, 500);
  for (const ms of [86_400_000, -2 * 86_400_000, 3_600_000]) {
    pool.jump(ms);
    await staysWithin(leaseMs);
    expect(sum(await pool.shares(1))).toBeGreaterThan(quota - 3);
  }
});
