import { batchRequest } from '../../../contracts/pod-admission.ts';
import { afterEach, expect, test, vi } from 'vitest';
import { ChargeClass, Meter } from '../../../request-units/meter.ts';
import { PodCapacity } from './pod-capacity.ts';
import { CpuScheduler } from '../cpu/cpu-scheduler.ts';

afterEach(() => {
  vi.useRealTimers();
});

/** A pod of 1000 units a second; tenant 1 is guaranteed 600 of them, tenant 2 nothing. */
function setUp(): {
  meter: Meter;
  capacity: PodCapacity;
  spend: (tenant: number, units: number) => void;
} {
  const meter = new Meter({ plane: 'redis', run: 'test' });
  const capacity = new PodCapacity({ podRate: 1000, accounts: () => meter.all(), now: 0 });
  capacity.setTenant(1, 600, 0);
  capacity.setTenant(2, 0, 0);
  const spend = (tenant: number, units: number): void => {
    meter.account(tenant).charge(ChargeClass.write, 0, false, units, 1, 1, 1, 1);
  };
  return { meter, capacity, spend };
}

test('who is guaranteed nothing has what is left, and the guaranteed their own whatever is left', () => {
  const { capacity, spend } = setUp();
  spend(2, 500);
  capacity.take(0);
  expect(capacity.mayBegin(2, 0)).toBe(false);
  expect(capacity.mayBegin(1, 0)).toBe(true);
  // 300 are owed.
  expect(capacity.mayBegin(2, 299)).toBe(false);
  expect(capacity.mayBegin(2, 310)).toBe(true);
  spend(1, 200);
  capacity.take(310);
  expect(capacity.mayBegin(1, 310)).toBe(false);
});

test('it is due at every look while there is little left, and now and then while there is much', () => {
  const { capacity, spend } = setUp();
  capacity.take(0);
  expect([5, 20, 25].map((now) => capacity.isDue(now))).toEqual([false, false, true]);
  // The bucket holds 200.
  spend(2, 120);
  capacity.take(25);
  expect(capacity.isDue(30)).toBe(true);
  expect(capacity.isDue(49)).toBe(false);
});

test('over ten seconds the pod does what it can, and the guaranteed get their part of it', () => {
  vi.useFakeTimers({
    now: 0,
    toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'],
  });
  const { capacity, spend } = setUp();
  const monotonic = (): number => performance.now();
  const queue = new CpuScheduler({ clock: { now: monotonic, monotonic }, sliceMs: 2 });
  queue.setCapacity(capacity);
  const done = [0, 0, 0];
  const again = (tenant: number): void => {
    queue.enqueue(
      batchRequest(tenant, () => {
        spend(tenant, 1);
        capacity.take(monotonic());
        done[tenant]!++;
        again(tenant);
      }),
    );
  };
  for (let i = 0; i < 20; i++) again(i % 2 === 0 ? 1 : 2);
  vi.advanceTimersByTime(10_000);
  const total = done[1]! + done[2]!;
  expect(total).toBeGreaterThan(9500);
  expect(total).toBeLessThan(10_500);
  expect(done[1]).toBeGreaterThan(5400);
});
