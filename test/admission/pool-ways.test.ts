// The ways in which gateways can go by a quota, by several gateways in processes of their own, under a load that comes
// to one of them for the most part.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, type TestContext } from 'vitest';
import type { PoolPolicy } from '../../access/admission/pool-tenant.ts';
import { PoolProcesses } from './pool-processes.ts';

/** Units a second. */
const quota = 2000;
const times = { secondMs: 500, leaseMs: 5000 };

interface Gateways {
  pool: PoolProcesses;
  a: string;
  b: string;
  c: string;
}

/** Three gateways, of which the first one is asked for most. */
async function start(policy: PoolPolicy, { onTestFinished }: TestContext): Promise<Gateways> {
  const pool = new PoolProcesses(policy, times);
  onTestFinished(() => pool.remove());
  pool.quotas.set(1, quota);
  pool.startScheduler(true);
  const [a, b, c] = [pool.startGateway(), pool.startGateway(), pool.startGateway()];
  await expect.poll(() => pool.shares(1), { timeout: 15_000 }).toEqual([667, 667, 667]);
  return { pool, a, b, c };
}

/** Each is asked for so many quotas. */
function ask(pool: PoolProcesses, parts: Readonly<Record<string, number>>): void {
  const perSecond = pool.quotas.get(1)!;
  for (const [name, part] of Object.entries(parts)) {
    pool.load(name, 1, (part * perSecond * times.secondMs) / 1000);
  }
}

/** Units a second that gateways spend that live, over so long. */
async function speed(pool: PoolProcesses, ms: number): Promise<number> {
  const [before, from] = [await pool.states(1), performance.now()];
  await sleep(ms);
  const after = await pool.states(1);
  const seconds = (performance.now() - from) / 1000;
  let used = 0;
  for (const [name, state] of after) used += state.used - (before.get(name)?.used ?? 0);
  return used / seconds;
}

/**
 * Within 5 % of so many units a second, after some time. What is spent in each two seconds until then is no more than
 * the quota and what a second of it has left over.
 */
async function settlesAt(pool: PoolProcesses, expected: number): Promise<void> {
  const most = pool.quotas.get(1)! * (3 / 2 + 0.05);
  const end = performance.now() + 40_000;
  for (;;) {
    const found = await speed(pool, 2000);
    expect(found).toBeLessThan(most);
    if (Math.abs(found / expected - 1) < 0.05) return;
    if (performance.now() > end) throw new Error(`${found} units a second, and not ${expected}`);
  }
}

/** What is spent while nearly all is asked of the first gateway: of others `few` units a second. */
const few = 0.1 * quota;
const skewed = { split: quota / 3 + few, gossip: quota, hash: quota };
/** And while there is nobody to carry what gateways say. */
const unheard = { ...skewed, hash: quota / 3 + few };

test.for(['split', 'gossip', 'hash'] as const)(
  '%s: whoever is killed, and whatever the quota is, it holds, and no more',
  { concurrent: true, timeout: 240_000 },
  async (way, context) => {
    const { pool, a, b, c } = await start(way, context);
    ask(pool, { [a]: 3, [b]: 0.05, [c]: 0.05 });
    await settlesAt(pool, skewed[way]);
    expect(await speed(pool, 10_000)).toBeLessThan(quota * 1.05);

    await pool.killScheduler();
    await settlesAt(pool, unheard[way]);
    pool.startScheduler(false);
    await settlesAt(pool, skewed[way]);

    ask(pool, { [a]: 3, [b]: 0.6, [c]: 0.6 });
    await settlesAt(pool, quota);
    // With leases it is the tracker.
    await pool.killGateway(a);
    ask(pool, { [b]: 3 });
    await settlesAt(pool, quota);

    for (const perSecond of [10_000, 500]) {
      pool.setQuota(1, perSecond);
      ask(pool, { [b]: 4, [c]: 0.7 });
      await sleep(times.secondMs);
      await settlesAt(pool, perSecond);
    }
    pool.setQuota(1, 0);
    await expect.poll(() => pool.shares(1)).toEqual([0, 0]);
    pool.setQuota(1, quota);
    ask(pool, { [b]: 4, [c]: 0.7 });
    await settlesAt(pool, quota);
    expect(await speed(pool, 10_000)).toBeLessThan(quota * 1.05);
  },
);

test('one way follows the other', async (context) => {
  const { pool, a, b, c } = await start('shares', context);
  ask(pool, { [a]: 4, [b]: 0.6, [c]: 0.6 });
  await settlesAt(pool, quota);
  for (const way of ['hash', 'gossip', 'split', 'hash', 'shares'] as const) {
    pool.setPolicy(way);
    await settlesAt(pool, quota);
  }
}, 180_000);
