// Tables whose quota mode is not that of the server.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ChargeClass, Meter } from '../../request-units/meter.ts';
import type { QuotaMode } from '../../contracts/table-properties.ts';
import { noLimits, type TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { AdmissionRules } from './admission-rules.ts';
import { GatewayAdmission } from './gateway-admission.ts';
import type { TenantLimiter } from './tenant-limiter.ts';

beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const clock = { now: () => 0, monotonic: () => performance.now() };
const limits = { ...noLimits, ruPerSecond: 100 };
const red: TenantDefinition = {
  name: 'red',
  number: 1,
  state: 'active',
  firstTable: 16,
  databases: 16,
  limits,
};

interface Setup {
  meter: Meter;
  admission: GatewayAdmission;
  limiter: TenantLimiter;
}

function setUp(rules: Partial<AdmissionRules>): Setup {
  const meter = new Meter({ plane: 'redis', run: 'test' });
  const all = { gatewayRu: 1000, ...rules };
  const admission = new GatewayAdmission({ clock, rules: all, accountOf: (n) => meter.account(n) });
  return { meter, admission, limiter: admission.follow(red)! };
}

/** Requests of one unit let in at once, in so many seconds in which five come each hundredth. */
function served({ meter, limiter }: Setup, mode: QuotaMode, seconds: number): number {
  let admitted = 0;
  for (let ms = 0; ms < 1000 * seconds; ms += 10) {
    vi.advanceTimersByTime(10);
    for (let i = 0; i < 5; i++) {
      const now = clock.monotonic();
      if (!limiter.admit(now, 1500, mode)) continue;
      admitted++;
      meter.account(limiter.tenant).charge(ChargeClass.write, 0, false, 1, 1, 1, 1, 1);
      limiter.settle(now);
    }
  }
  return admitted;
}

/** Waits at the limiter for a table of this mode, which may become another one. */
class Waiter {
  readonly deadline: number;
  quotaMode: QuotaMode;
  admitted: boolean | undefined;

  constructor(limiter: TenantLimiter, quotaMode: QuotaMode, ms = 60_000) {
    this.deadline = clock.monotonic() + ms;
    this.quotaMode = quotaMode;
    limiter.wait(this, clock.monotonic());
  }

  end(admitted: boolean): void {
    this.admitted = admitted;
  }
}

test('a table has what others leave, whatever holds for the server', () => {
  const setup = setUp({ allocation: 'hard' });
  expect(served(setup, 'server', 10)).toBeLessThan(1200);
  expect(served(setup, 'hard', 10)).toBeLessThan(1200);
  expect(setup.limiter.counters.spareRu).toBe(0);
  expect(served(setup, 'stacked', 10)).toBeGreaterThan(4800);
});

test('a table has its quota only, whatever holds for the server', () => {
  const setup = setUp({ allocation: 'stacked' });
  expect(served(setup, 'server', 10)).toBeGreaterThan(4800);
  const before = setup.limiter.counters.spareRu;
  expect(served(setup, 'hard', 10)).toBeLessThan(1200);
  expect(setup.limiter.counters.spareRu).toBe(before);
});

test('nothing is borrowed where the capacity of the gateway is not known', () => {
  expect(served(setUp({ gatewayRu: 0 }), 'stacked', 10)).toBeLessThan(1200);
});

/** A tenant with a debt of one minute of its quota. */
function inDebt(rules: Partial<AdmissionRules> = {}): Setup {
  const setup = setUp({ debtSeconds: 60, ...rules });
  const { meter, limiter } = setup;
  meter.account(1).charge(ChargeClass.background, 0, false, 6000, 1, 1, 1, 1);
  limiter.settle(clock.monotonic());
  // Unused units of other tenants are available from the next tenth of a second on.
  vi.advanceTimersByTime(1500);
  return setup;
}

test('who may use what others leave need not wait for those who may not', () => {
  const { limiter } = inDebt();
  const hard = new Waiter(limiter, 'hard');
  expect(limiter.admit(clock.monotonic(), 0, 'hard')).toBe(false);
  expect(limiter.admit(clock.monotonic(), 0, 'stacked')).toBe(true);
  const stacked = new Waiter(limiter, 'stacked');
  // Those who may stay in line among themselves.
  expect(limiter.admit(clock.monotonic(), 0, 'stacked')).toBe(false);
  vi.advanceTimersByTime(100);
  expect([hard.admitted, stacked.admitted]).toEqual([undefined, true]);
  expect(limiter.waiting).toBe(1);
});

test('many that wait have all that others leave', () => {
  const { limiter, meter } = inDebt();
  let ended = 0;
  const again = (): void => {
    limiter.wait(
      {
        deadline: Infinity,
        quotaMode: 'stacked',
        end: () => {
          ended++;
          meter.account(1).charge(ChargeClass.write, 0, false, 1, 1, 1, 1, 1);
          limiter.settle(clock.monotonic());
          again();
        },
      },
      clock.monotonic(),
    );
  };
  for (let i = 0; i < 50; i++) again();
  vi.advanceTimersByTime(10_000);
  expect(ended).toBeGreaterThan(7000);
  expect(ended).toBeLessThan(11_000);
});

test('a mode that changes holds for those who wait, too', () => {
  const { admission, limiter } = inDebt();
  const waiters = [new Waiter(limiter, 'hard'), new Waiter(limiter, 'hard')];
  vi.advanceTimersByTime(500);
  expect(waiters.map(({ admitted }) => admitted)).toEqual([undefined, undefined]);
  waiters[1]!.quotaMode = 'stacked';
  admission.quotaModesChanged();
  vi.advanceTimersByTime(50);
  expect(waiters.map(({ admitted }) => admitted)).toEqual([undefined, true]);
  admission.setRules({ allocation: 'stacked' });
  waiters[0]!.quotaMode = 'server';
  admission.quotaModesChanged();
  vi.advanceTimersByTime(200);
  expect(waiters[0]!.admitted).toBe(true);
  expect(limiter.waiting).toBe(0);
});

test('nothing is left of who waited and went', () => {
  const { limiter } = inDebt();
  const [late, gone] = [new Waiter(limiter, 'hard', 100), new Waiter(limiter, 'hard')];
  vi.advanceTimersByTime(200);
  expect(late.admitted).toBe(false);
  expect(limiter.leave(gone)).toBe(true);
  expect(limiter.waiting).toBe(0);
  expect(limiter.nextServe(clock.monotonic())).toBe(Infinity);
});
