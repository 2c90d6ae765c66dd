import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ChargeClass, Meter } from '../../request-units/meter.ts';
import { noLimits, type TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { AdmissionRules } from './admission-rules.ts';
import { GatewayAdmission } from './gateway-admission.ts';
import type { LimitedQuery } from './query-limiter.ts';
import type { LimiterWaiter } from './admission-rules.ts';
import type { TenantLimiter } from './tenant-limiter.ts';

beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const clock = { now: () => 0, monotonic: () => performance.now() };

function tenant(ruPerSecond: number, burstRu = 0, number = 1): TenantDefinition {
  const limits = { ...noLimits, ruPerSecond, burstRu };
  return { name: `t${number}`, number, state: 'active', firstTable: 16, databases: 16, limits };
}

interface Setup {
  meter: Meter;
  admission: GatewayAdmission;
  limiter: TenantLimiter;
}

function setUp(definition: TenantDefinition, rules: Partial<AdmissionRules> = {}): Setup {
  const meter = new Meter({ plane: 'redis', run: 'test' });
  const admission = new GatewayAdmission({ clock, rules, accountOf: (n) => meter.account(n) });
  return { meter, admission, limiter: admission.follow(definition)! };
}

/** One request that costs so much; whether it was let in at once. */
function request({ meter, limiter }: Setup, cost: number): boolean {
  const now = clock.monotonic();
  if (!limiter.admit(now, 1500)) return false;
  meter.account(limiter.tenant).charge(ChargeClass.write, 0, false, cost, 1, 1, 1, 1);
  limiter.settle(now);
  return true;
}

function waiter(ms: number, ends: boolean[]): LimiterWaiter {
  return { deadline: clock.monotonic() + ms, end: (admitted) => void ends.push(admitted) };
}

test('a tenant without a limit has no limiter', () => {
  const { admission } = setUp(tenant(100));
  expect(admission.follow(tenant(0, 0, 2))).toBeUndefined();
  expect(admission.limiterOf(2)).toBeUndefined();
});

test('what is spent in the long run is the quota, whatever a request costs', () => {
  const setup = setUp(tenant(1000));
  let spent = 0;
  for (let ms = 0; ms < 100_000; ms += 2) {
    vi.advanceTimersByTime(2);
    const cost = 1 + ((ms * 7) % 90);
    if (request(setup, cost)) spent += cost;
  }
  expect(spent / 100_000).toBeGreaterThan(0.98);
  expect(spent / 100_000).toBeLessThan(1.02);
});

test('a burst is let through at once', () => {
  const setup = setUp(tenant(100, 400));
  let admitted = 0;
  while (request(setup, 1)) admitted++;
  expect(admitted).toBe(500);
});

test('of a limit that holds for several gateways this one has a share', () => {
  const setup = setUp(tenant(1000));
  const { admission, limiter } = setup;
  admission.setShares(new Map([[1, 0.25]]), 0.5);
  let admitted = 0;
  while (request(setup, 1)) admitted++;
  expect(admitted).toBe(250);
  admission.endSecond();
  expect(admission.demands()).toEqual([{ tenant: 1, quota: 1000, used: 250, lacking: 0 }]);
  // How much stands behind one that waits is not known.
  limiter.wait(waiter(1500, []), clock.monotonic());
  expect(admission.demands()).toMatchObject([{ lacking: 250 }]);
  admission.setShares(new Map(), 0.5);
  expect(limiter.quota.perSecond).toBe(500);
  admission.follow(tenant(3000));
  expect(limiter.quota.perSecond).toBe(1500);
});

test('while there is plenty requests pass uncharged for a while, and for no more than is there', () => {
  const { meter, limiter } = setUp(tenant(10_000));
  const charge = (requests: number): void => {
    meter.account(1).charge(ChargeClass.write, 0, false, requests, 1, 1, requests, requests);
  };
  const passed = (): number => {
    let requests = 0;
    while (limiter.pass() || limiter.passAgain(clock.monotonic())) requests++;
    return requests;
  };
  limiter.settle(clock.monotonic());
  // Half of what is there.
  const first = passed();
  expect(first).toBeGreaterThan(4000);
  expect(first).toBeLessThanOrEqual(5000);
  expect(limiter.isDue).toBe(true);
  charge(first);
  limiter.settle(clock.monotonic());
  expect(passed()).toBe(0);
  vi.advanceTimersByTime(1000);
  limiter.settle(clock.monotonic());
  expect(limiter.pass()).toBe(true);
  // The cost of requests has to be measured from time to time.
  vi.advanceTimersByTime(60);
  expect(passed()).toBeLessThan(1024);
});

test('who is charged as it ends passes unseen while there is plenty, and gets the quota in the end', () => {
  const setup = setUp(tenant(1000));
  const { limiter, meter } = setup;
  let [spent, passed, seen] = [0, 0, 0];
  for (let ms = 0; ms < 100_000; ms += 5) {
    vi.advanceTimersByTime(5);
    const cost = 1 + ((ms * 7) % 50);
    // A second in which little is asked for, and one in which more is than the quota.
    if (ms % 2000 < 1000 && ms % 100 > 0) continue;
    if (limiter.passCharged(clock.monotonic())) {
      meter.account(1).charge(ChargeClass.write, 0, false, cost, 1, 1, 1, 1);
      passed++;
    } else if (request(setup, cost)) seen++;
    else continue;
    spent += cost;
  }
  expect(passed).toBeGreaterThan(500);
  expect(seen).toBeGreaterThan(500);
  expect(spent / 100_000).toBeGreaterThan(0.7);
  expect(spent / 100_000).toBeLessThan(1.02);
});

test('nobody passes unseen while others wait', () => {
  const setup = setUp(tenant(1000));
  while (request(setup, 10));
  setup.limiter.wait(waiter(5000, []), clock.monotonic());
  expect(setup.limiter.passCharged(clock.monotonic())).toBe(false);
});

test('who waits is let in in order, as units come', () => {
  const setup = setUp(tenant(100));
  while (request(setup, 1));
  const order: number[] = [];
  for (let i = 0; i < 5; i++) {
    const one: LimiterWaiter = { deadline: Infinity, end: () => void order.push(i) };
    setup.limiter.wait(one, clock.monotonic());
  }
  expect(setup.limiter.admit(clock.monotonic(), 1500)).toBe(false);
  vi.advanceTimersByTime(32);
  expect(order.length).toBeGreaterThanOrEqual(2);
  expect(order.length).toBeLessThanOrEqual(4);
  vi.advanceTimersByTime(50);
  expect(order).toEqual([0, 1, 2, 3, 4]);
  expect(setup.limiter.counters.waited).toBe(5);
});

test('whose turn it is goes on for the units of a millisecond, and then comes after the others', () => {
  const setup = setUp(tenant(20_000));
  while (request(setup, 1));
  const order: string[] = [];
  // Pipelines of which each command that is not let in waits again.
  const goOn = (name: string): void => {
    if (request(setup, 1)) {
      order.push(name);
      goOn(name);
    } else setup.limiter.wait({ deadline: Infinity, end: () => next(name) }, clock.monotonic());
  };
  const next = (name: string): void => {
    order.push(name);
    setup.meter.account(1).charge(ChargeClass.write, 0, false, 1, 1, 1, 1, 1);
    setup.limiter.settle(clock.monotonic());
    goOn(name);
  };
  for (const name of ['a', 'b', 'c']) goOn(name);
  vi.advanceTimersByTime(1000);
  const turns = order.filter((name, i) => name !== order[i - 1]).length;
  // Not a thousandth of a second for a command each, and everyone in turn.
  expect(order.length).toBeGreaterThan(19_000);
  expect(turns).toBeLessThan(1100);
  for (const name of ['a', 'b', 'c']) {
    expect(order.filter((one) => one === name).length / order.length).toBeCloseTo(1 / 3, 1);
  }
});

test('who has waited too long is told so, and who has left is not', () => {
  const setup = setUp(tenant(1));
  request(setup, 1000);
  const ends: boolean[] = [];
  const gone = waiter(500, ends);
  setup.limiter.wait(waiter(1000, ends), clock.monotonic());
  setup.limiter.wait(waiter(100, ends), clock.monotonic());
  setup.limiter.wait(gone, clock.monotonic());
  setup.limiter.leave(gone);
  vi.advanceTimersByTime(125);
  expect(ends).toEqual([false]);
  vi.advanceTimersByTime(900);
  expect(ends).toEqual([false, false]);
  expect(setup.limiter.waiting).toBe(0);
});

test('what is owed is told to who is refused', () => {
  const setup = setUp(tenant(100));
  request(setup, 600);
  expect(setup.limiter.refuse(clock.monotonic())).toBe(5000);
  setup.admission.endSecond();
  expect(setup.limiter.use.lastSecond).toBe(600);
});

test('a raised quota lets in who waits, and one that is taken away everyone', () => {
  const setup = setUp(tenant(1));
  request(setup, 11);
  const ends: boolean[] = [];
  setup.limiter.wait(waiter(60_000, ends), clock.monotonic());
  setup.limiter.wait(waiter(60_000, ends), clock.monotonic());
  vi.advanceTimersByTime(500);
  expect(ends).toEqual([]);
  setup.admission.follow(tenant(10_000));
  vi.advanceTimersByTime(5);
  expect(ends).toEqual([true, true]);
  request(setup, 1e9);
  setup.limiter.wait(waiter(60_000, ends), clock.monotonic());
  setup.admission.follow(tenant(0));
  expect(ends).toEqual([true, true, true]);
});

test('a cut quota keeps what is owed', () => {
  const setup = setUp(tenant(1000));
  request(setup, 3000);
  setup.admission.follow(tenant(100));
  expect(setup.limiter.balance(clock.monotonic())).toBeCloseTo(-2000);
});

test('the burst package and what others leave come after the share', () => {
  const setup = setUp(tenant(100), { burstRu: 50, allocation: 'stacked', gatewayRu: 1000 });
  let admitted = 0;
  for (let ms = 0; ms < 10_000; ms++) {
    vi.advanceTimersByTime(1);
    if (request(setup, 1)) admitted++;
  }
  // One a millisecond: all of it fits beside the others, who want nothing.
  expect(admitted).toBeGreaterThan(9000);
  expect(setup.limiter.counters.burstRu).toBeGreaterThan(100);
  expect(setup.limiter.counters.spareRu).toBeGreaterThan(5000);
});

test('the only limited tenant may take the whole burst package, one of several half of it at most', () => {
  for (const [others, most] of [
    [0, 50],
    [1, 25],
  ] as const) {
    const setup = setUp(tenant(100), { burstRu: 50, allocation: 'hard' });
    for (let other = 0; other < others; other++) setup.admission.follow(tenant(100, 0, 2 + other));
    vi.advanceTimersByTime(1000);
    for (let n = 0; n < 500; n++) request(setup, 1);
    expect(setup.limiter.counters.burstRu).toBe(most);
  }
});

test('dry, nothing waits, and what would have is counted', () => {
  const setup = setUp(tenant(100), { dryRun: true });
  for (let i = 0; i < 1000; i++) expect(request(setup, 1)).toBe(true);
  const { wouldWait, wouldRefuse, refused } = setup.limiter.counters;
  expect(wouldWait).toBeGreaterThan(100);
  expect(wouldRefuse).toBeGreaterThan(600);
  expect(wouldWait + wouldRefuse).toBe(900);
  expect(refused).toBe(0);
});

test('what a second leaves is there for queries, and what they cost is not taken from the next', () => {
  const setup = setUp(tenant(100));
  for (let second = 0; second < 10; second++) {
    request(setup, 40);
    vi.advanceTimersByTime(1000);
    setup.admission.endSecond();
  }
  const { queries } = setup.limiter;
  expect(queries.units.balance).toBeCloseTo(600);
  expect(queries.units.spend(500)).toBe(true);
  const before = setup.limiter.balance(clock.monotonic());
  setup.meter.account(1).charge(ChargeClass.scan, 0, false, 550, 1, 1, 1, 1);
  setup.limiter.settleQuery(500, 550, clock.monotonic());
  setup.limiter.settle(clock.monotonic());
  expect(setup.limiter.balance(clock.monotonic())).toBe(before);
  expect(queries.units.balance).toBeCloseTo(50);
});

test('while a debt is paid off nothing is left for queries', () => {
  const setup = setUp(tenant(100));
  request(setup, 600);
  for (let second = 0; second < 8; second++) {
    vi.advanceTimersByTime(1000);
    setup.admission.endSecond();
  }
  // 500 were owed, and 100 can be kept: two seconds are left.
  expect(setup.limiter.queries.units.balance).toBeCloseTo(200);
});

test('requests that take their time are settled one by one', () => {
  const setup = setUp(tenant(100));
  const { limiter, meter } = setup;
  const holds = [1, 2, 3].map(() => {
    expect(limiter.admit(clock.monotonic(), 1500)).toBe(true);
    return limiter.hold();
  });
  expect(limiter.balance(clock.monotonic())).toBe(97);
  const account = meter.account(1);
  account.charge(ChargeClass.write, 0, false, 50, 1, 1, 1, 1);
  limiter.settleHeld(holds[0]!, clock.monotonic());
  expect(limiter.balance(clock.monotonic())).toBeCloseTo(48);
  // The second one came to nothing.
  limiter.settleHeld(holds[1]!, clock.monotonic());
  expect(limiter.balance(clock.monotonic())).toBeCloseTo(49);
  account.charge(ChargeClass.write, 0, false, 149, 1, 1, 1, 1);
  limiter.settleHeld(holds[2]!, clock.monotonic());
  expect(limiter.balance(clock.monotonic())).toBeCloseTo(-99);
  setup.admission.endSecond();
  expect(limiter.use.lastSecond).toBe(199);
});

interface Asked extends LimitedQuery {
  ended: boolean | undefined;
}

function query(cost: number, ms = Infinity): Asked {
  const arrivedAt = clock.monotonic();
  const asked: Asked = {
    cost,
    arrivedAt,
    deadline: arrivedAt + ms,
    ended: undefined,
    end: (admitted) => (asked.ended = admitted),
  };
  return asked;
}

test('queries wait in line for what is left over, and run in order as it comes', () => {
  const { limiter } = setUp(tenant(100));
  const { queryLimiter: line } = limiter;
  vi.advanceTimersByTime(1000);
  const [first, second, third] = [query(90), query(50), query(1)];
  expect(line.arrive(first, clock.monotonic())).toBe('run');
  expect(line.arrive(second, clock.monotonic())).toBe('wait');
  // There would be enough for this one, but others come first.
  expect(line.arrive(third, clock.monotonic())).toBe('wait');
  vi.advanceTimersByTime(350);
  expect([second.ended, third.ended]).toEqual([undefined, undefined]);
  vi.advanceTimersByTime(150);
  expect([second.ended, third.ended]).toEqual([true, true]);
  expect(line.counters).toMatchObject({ admitted: 3, waited: 2, refused: 0 });
});

test('a query is out of the line when it leaves, or its time is up; a line has an end', () => {
  const { limiter, admission } = setUp(tenant(1), { queryQueueLength: 2 });
  const { queryLimiter: line } = limiter;
  const [first, second, third] = [query(1000), query(1000, 500), query(1)];
  expect(line.arrive(query(5000), clock.monotonic())).toBe('wait');
  expect(line.arrive(first, clock.monotonic())).toBe('wait');
  expect(line.arrive(second, clock.monotonic())).toBe('full');
  expect(line.leave(first, clock.monotonic())).toBe(true);
  expect(line.arrive(second, clock.monotonic())).toBe('wait');
  vi.advanceTimersByTime(600);
  expect(second.ended).toBe(false);
  expect(line.arrive(third, clock.monotonic())).toBe('wait');
  admission.forget(1);
  expect([third.ended, third.cost]).toEqual([true, 0]);
});

test('one that costs more than can be saved runs when nothing more can be, and carries its debt', () => {
  const { limiter } = setUp(tenant(10));
  const expensive = query(1000);
  vi.advanceTimersByTime(500);
  expect(limiter.queryLimiter.arrive(expensive, clock.monotonic())).toBe('wait');
  vi.advanceTimersByTime(59_000);
  expect(expensive.ended).toBeUndefined();
  vi.advanceTimersByTime(1000);
  expect(expensive.ended).toBe(true);
  expect(limiter.queries.units.balance).toBeCloseTo(-400, -1);
});

test('what was spent dry is not held against anybody later', () => {
  const setup = setUp(tenant(10), { dryRun: true, debtSeconds: 3600 });
  for (let i = 0; i < 100; i++) request(setup, 100);
  expect(setup.limiter.queryLimiter.arrive(query(5000), clock.monotonic())).toBe('run');
  expect(setup.limiter.queryLimiter.counters.wouldWait).toBe(1);
  setup.admission.setRules({ dryRun: false });
  expect(setup.limiter.balance(clock.monotonic())).toBe(10);
  expect(setup.limiter.queries.units.balance).toBe(0);
});

test('a limit on scans counts scans only', () => {
  const { admission, meter } = setUp({
    ...tenant(1000),
    limits: { ...noLimits, ruPerSecond: 1000, scanRuPerSecond: 100 },
  });
  const scans = (): TenantLimiter => admission.classLimiterOf(1)!;
  expect(scans().quota.perSecond).toBe(100);
  meter.account(1).charge(ChargeClass.write, 0, false, 5000, 1, 1, 1, 1);
  meter.account(1).charge(ChargeClass.scan, 0, false, 30, 1, 1, 1, 1);
  admission.endSecond();
  expect(scans().use.lastSecond).toBe(30);
  expect(scans().balance(clock.monotonic())).toBeGreaterThan(0);
  expect(admission.follow({ ...tenant(0), limits: noLimits })).toBeUndefined();
  expect(admission.classLimiterOf(1)).toBeUndefined();
});

test('the quota of a new tenant counts several times, until it is not new any more', () => {
  const setup = setUp({ ...tenant(100), createdAt: -4000 }, { warmupSeconds: 10 });
  const { admission, limiter } = setup;
  let spent = 0;
  const perSecond: number[] = [];
  for (let ms = 0; ms < 10_000; ms += 10) {
    vi.advanceTimersByTime(10);
    for (let i = 0; i < 5; i++) if (request(setup, 1)) spent++;
    if (ms % 1000 !== 990) continue;
    admission.endSecond();
    perSecond.push(spent);
    spent = 0;
  }
  for (const units of perSecond.slice(1, 6)) expect(units).toBeCloseTo(300, -1);
  for (const units of perSecond.slice(7)) expect(units).toBeCloseTo(100, -1);
  expect(limiter.warmupLeft(clock.monotonic())).toBe(0);
});
