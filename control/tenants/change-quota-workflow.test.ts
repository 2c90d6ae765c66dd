import { expect, test } from 'vitest';
import { MemoryStore } from '../metadata/memory-store-fixture.ts';
import { hasEnded, type WorkflowDefinition } from '../workflows/workflow.ts';
import { locks, Mortal, VirtualTimers } from '../workflows/workflow-fixture.ts';
import {
  changeQuotaRequest,
  changeQuotaWorkflows,
  type QuotaChange,
  undoQuotaRequest,
} from './change-quota-workflow.ts';
import { defaultQuotaChangeRules } from './quota-change-plan.ts';

const tenant = { name: 'shop', number: 7 };
const raise: QuotaChange = { tenant, to: 5000 };

/** A tenant and what its pool says. */
class Pool {
  readonly timers = new VirtualTimers();
  quota: number | undefined = 1000;
  /** Every quota that was set, and when. */
  readonly set: number[] = [];
  readonly setAt: number[] = [];
  highest = 600;
  /** From this quota on it has no room; from this on the tenant is throttled. */
  fullFrom = Infinity;
  throttlesFrom = Infinity;
  rules = defaultQuotaChangeRules;

  workflows(process: Mortal): WorkflowDefinition[] {
    return changeQuotaWorkflows(
      {
        quotaOf: () => this.quota,
        setQuota: async (_tenant, expected, quota) => {
          await process.point();
          const isExpected = this.quota === expected;
          if (isExpected) {
            this.quota = quota;
            this.set.push(quota);
            this.setAt.push(this.timers.now());
          }
          await process.point();
          return isExpected;
        },
        highestHour: async () => this.highest,
        refusal: async (_tenant, quota) => (quota >= this.fullFrom ? 'no room' : undefined),
        throttled: async () => (this.quota! >= this.throttlesFrom ? 0.2 : 0.1),
      },
      this.rules,
      this.timers,
    );
  }
}

/** Runs one change to its end, while `meanwhile` happens. */
async function run(
  pool: Pool,
  request: ReturnType<typeof changeQuotaRequest>,
  meanwhile?: (process: Mortal) => Promise<void>,
) {
  const store = new MemoryStore();
  const process = await Mortal.start(store, pool.timers, (one) => pool.workflows(one));
  await process.engine.submit(...request);
  await meanwhile?.(process);
  await pool.timers.until(() => hasEnded(process.engine.find(request[0])!));
  const document = process.engine.find(request[0])!;
  expect(locks(store)).toEqual([]);
  await process.engine.close();
  return document;
}

test('a change goes step by step, a minute each', async () => {
  const pool = new Pool();
  expect(await run(pool, changeQuotaRequest('1', raise))).toMatchObject({ status: 'done' });
  expect(pool.set).toEqual([1495, 2236, 3344, 5000]);
  pool.setAt.slice(1).forEach((at, i) => {
    expect(at - pool.setAt[i]!).toBeGreaterThanOrEqual(60_000);
  });
});

test('nothing is set below the highest hour of the week, unless it is forced', async () => {
  const pool = new Pool();
  const lower: QuotaChange = { tenant, to: 500 };
  const refused = await run(pool, changeQuotaRequest('1', lower));
  expect(refused).toMatchObject({ status: 'rolled-back' });
  expect(refused.error).toMatch(/highest hour is 600/);
  expect(pool.set).toEqual([]);
  await run(pool, changeQuotaRequest('2', { ...lower, isForced: true }));
  expect(pool.quota).toBe(500);
});

test.each([
  ['the pool is filled meanwhile', 'no room'],
  ['a step throttles more than before', 'throttles 20.0 %'],
])('when %s, the steps are undone in reverse', async (what, error) => {
  const pool = new Pool();
  const document = await run(pool, changeQuotaRequest('1', raise), async () => {
    await pool.timers.until(() => pool.set.length === 1);
    if (what.startsWith('the pool')) pool.fullFrom = 3000;
    else pool.throttlesFrom = 3000;
  });
  expect(document).toMatchObject({ status: 'rolled-back' });
  expect(document.error).toContain(error);
  const third = what.startsWith('the pool') ? [] : [3344, 2236];
  expect(pool.set).toEqual([1495, 2236, ...third, 1495, 1000]);
});

test('an operator who cancels has the steps undone', async () => {
  const pool = new Pool();
  const document = await run(pool, changeQuotaRequest('1', raise), async ({ engine }) => {
    await pool.timers.until(() => pool.set.length === 2);
    await engine.cancel('change-quota-1');
  });
  expect(document).toMatchObject({ status: 'rolled-back', error: 'it was cancelled' });
  expect(pool.set).toEqual([1495, 2236, 1495, 1000]);
});

test.each([
  ['a quota that an operator sets meanwhile stays', 1234],
  ['a tenant that is dropped meanwhile is let go', undefined],
])('%s', async (_what, quota) => {
  const pool = new Pool();
  const document = await run(pool, changeQuotaRequest('1', raise), async () => {
    await pool.timers.until(() => pool.set.length === 2);
    pool.quota = quota;
  });
  expect(document.status).toBe('rolled-back');
  expect(pool.quota).toBe(quota);
  expect(pool.set).toEqual([1495, 2236]);
});

test('a change that has ended is taken back at once, unless another came after it', async () => {
  const pool = new Pool();
  await run(pool, changeQuotaRequest('1', raise));
  pool.throttlesFrom = 0;
  await run(pool, undoQuotaRequest('2', raise, 1000));
  expect(pool.set.slice(-2)).toEqual([5000, 1000]);
  pool.quota = 1234;
  const late = await run(pool, undoQuotaRequest('3', raise, 1000));
  expect(late).toMatchObject({ status: 'rolled-back' });
  expect(pool.quota).toBe(1234);
});

test.each([
  ['one that succeeds', Infinity, 'done', 5000],
  ['one whose third step throttles', 3000, 'rolled-back', 1000],
] as const)(
  'wherever the process dies, and the one that goes on: %s',
  async (_what, throttlesFrom, status, quota) => {
    let deaths = 0;
    for (let diesAt = 0; ; diesAt++) {
      const store = new MemoryStore();
      const pool = new Pool();
      pool.throttlesFrom = throttlesFrom;
      // A lease is renewed within each wait, and not so often that renewals are all that there is to die at.
      pool.rules = { ...pool.rules, intervalMs: 5000 };
      const asker = await Mortal.start(store, pool.timers, (one) => pool.workflows(one));
      await asker.engine.close();
      const request = changeQuotaRequest('1', raise);
      await store.write([{ ...asker.engine.submission(...request), expected: 0 }]);
      const start = (at: number): Promise<Mortal> =>
        Mortal.start(store, pool.timers, (one) => pool.workflows(one), { diesAt: at });
      let process = await start(diesAt);
      // The second process dies as well, a few points on; the third one lives.
      for (const next of [5, Infinity]) {
        await pool.timers.until(() => process.isDead || hasEnded(process.engine.find(request[0])!));
        if (!process.isDead) break;
        deaths++;
        process = await start(next);
      }
      await pool.timers.until(() => hasEnded(process.engine.find(request[0])!));
      const told = `dies at ${diesAt}`;
      expect(process.engine.find(request[0])!.status, told).toBe(status);
      expect(pool.quota, told).toBe(quota);
      // No step is left out or done twice, forth or back.
      const steps = [1495, 2236, 3344];
      const expected =
        status === 'done' ? [...steps, 5000] : [...steps, ...steps.toReversed().slice(1), 1000];
      expect(pool.set, told).toEqual(expected);
      expect(locks(store), told).toEqual([]);
      const survived = process.points <= diesAt;
      await process.engine.close();
      if (survived && diesAt > 60) break;
    }
    expect(deaths).toBeGreaterThan(30);
  },
);
