import fc from 'fast-check';
import { expect, test } from 'vitest';
import { poolLeaseMs } from './pool-messages.ts';
import { limited, PoolWorld } from './pool-fixture.ts';

function world(quota = 900): PoolWorld {
  const made = new PoolWorld();
  made.quotas.set(1, quota);
  made.startScheduler({ learnMs: 0 });
  return made;
}

/** So many seconds in which each gateway is asked for so much. */
function run(pool: PoolWorld, seconds: number, asked: Readonly<Record<string, number>> = {}): void {
  for (let i = 0; i < seconds; i++) {
    for (const [name, units] of Object.entries(asked)) pool.ask(name, 1, units);
    pool.pass(1000);
  }
}

test('who joins gets an equal share at once, and who says goodbye leaves his at once', () => {
  const pool = world();
  const a = pool.join();
  expect(pool.shareOf(a, 1)).toBe(900);
  const b = pool.join();
  expect([pool.shareOf(a, 1), pool.shareOf(b, 1)]).toEqual([450, 450]);
  pool.end(b, 'goodbye');
  expect(pool.shareOf(a, 1)).toBe(900);
});

test('the share of one that dies comes back when its lease is over', () => {
  const pool = world();
  const [a, b] = [pool.join(), pool.join()];
  run(pool, 2);
  pool.end(b, 'nothing');
  run(pool, 9);
  expect(pool.shareOf(a, 1)).toBe(450);
  run(pool, 2);
  expect(pool.shareOf(a, 1)).toBe(900);
});

test('shares move to who needs them, down to a floor', () => {
  const pool = world();
  const [a, b, c] = [pool.join(), pool.join(), pool.join()];
  run(pool, 20, { [a]: 2000 });
  expect(pool.shareOf(b, 1)).toBeCloseTo(30, 0);
  expect(pool.shareOf(a, 1)).toBeCloseTo(840, 0);
  expect(pool.inForce(1)).toBeCloseTo(900, 6);
  run(pool, 20, { [c]: 2000 });
  expect(pool.shareOf(c, 1)).toBeCloseTo(840, 0);
});

test('of a gateway whose reports are stale nothing is taken, and nothing is given to it', () => {
  const pool = world();
  const [a, b, c] = [pool.join(), pool.join(), pool.join()];
  run(pool, 3, { [a]: 300, [b]: 300, [c]: 300 });
  pool.loss = (message) => message.type === 'report' && message.gateway === c;
  run(pool, 4, { [a]: 300, [b]: 300 });
  const before = pool.shareOf(c, 1);
  run(pool, 4, { [a]: 600 });
  expect(pool.shareOf(c, 1)).toBe(before);
  expect(pool.shareOf(a, 1)).toBeGreaterThan(400);
});

test('a quota that changes is in force at once, in the parts that there were', () => {
  const pool = world();
  const [a, b] = [pool.join(), pool.join()];
  run(pool, 15, { [a]: 2000 });
  const part = pool.shareOf(a, 1) / 900;
  pool.sent = 0;
  pool.setQuota(1, 90_000);
  expect(pool.shareOf(a, 1) / 90_000).toBeCloseTo(part, 9);
  pool.setQuota(1, 0);
  expect(pool.members.get(b)!.admission.limiterOf(1)).toBeUndefined();
  pool.setQuota(1, 10);
  expect(pool.inForce(1)).toBeCloseTo(10, 9);
  expect(pool.shareOf(a, 1) / 10).toBeCloseTo(part, 9);
  // No messages were necessary.
  expect(pool.sent).toBe(0);
});

test('a tenant that gets its first limit is shared out at once', () => {
  const pool = world();
  const [a, b] = [pool.join(), pool.join()];
  pool.setQuota(2, 100);
  expect([pool.shareOf(a, 2), pool.shareOf(b, 2)]).toEqual([50, 50]);
});

test('without a scheduler shares stay; another one learns them, and gives back that of one that is gone', () => {
  const pool = world();
  const [a, b, c] = [pool.join(), pool.join(), pool.join()];
  run(pool, 20, { [a]: 2000 });
  const shares = [a, b, c].map((name) => pool.shareOf(name, 1));
  pool.scheduler = undefined;
  run(pool, 60, { [a]: 2000, [b]: 2000 });
  expect([a, b, c].map((name) => pool.shareOf(name, 1))).toEqual(shares);
  pool.end(c, 'nothing');
  pool.startScheduler();
  run(pool, 8);
  expect(pool.shareOf(a, 1)).toBeCloseTo(shares[0]!, 0);
  expect(pool.inForce(1)).toBeLessThanOrEqual(900 - shares[2]! + 1e-6);
  // One that comes meanwhile has some of what is known.
  const d = pool.join();
  expect(pool.shareOf(d, 1)).toBeGreaterThan(200);
  expect(pool.inForce(1)).toBeLessThanOrEqual(900 - shares[2]! + 1e-6);
  run(pool, 4);
  expect(pool.inForce(1)).toBeCloseTo(900, 6);
});

test('what a gateway told long ago, before it was given its share, is not believed by another scheduler', () => {
  const pool = world();
  const a = pool.join();
  pool.delayMs = () => 2950;
  const b = pool.join();
  pool.delayMs = () => 0;
  run(pool, 2);
  expect([a, b].map((name) => pool.shareOf(name, 1))).toEqual([450, 450]);
  pool.pass(900);
  pool.startScheduler();
  // First comes what was under way for so long, then what they tell now.
  pool.pass(100);
  const shares = pool.scheduler!.sharesOf(1);
  expect([a, b].map((name) => shares.get(name))).toEqual([450, 450]);
  run(pool, 12);
  expect([a, b].map((name) => pool.shareOf(name, 1))).toEqual([450, 450]);
});

test('nobody is given what another may still go by', () => {
  const pool = world();
  const [a, b] = [pool.join(), pool.join()];
  run(pool, 2);
  // Orders are lost: both keep what they have, and there is nothing for the third one.
  pool.loss = (message) => message.type === 'order';
  const c = pool.join();
  run(pool, 2);
  expect([a, b, c].map((name) => pool.shareOf(name, 1))).toEqual([450, 450, 0]);
  pool.loss = () => false;
  run(pool, 2);
  expect(pool.inForce(1)).toBeCloseTo(900, 6);
  expect(pool.shareOf(c, 1)).toBeCloseTo(300, 6);
});

/** A query at a gateway, and whether it has begun. */
function query(pool: PoolWorld, name: string, cost: number): { begun: boolean; answer: string } {
  const state = { begun: false, answer: '' };
  const end = (admitted: boolean): void => void (state.begun = admitted);
  const one = { cost, arrivedAt: pool.ms, deadline: Infinity, end };
  state.answer = pool.members.get(name)!.admission.limiterOf(1)!.queryLimiter.arrive(one, pool.ms);
  return state;
}

function balances(pool: PoolWorld): number[] {
  return [...pool.members.values()].map(
    ({ admission }) => admission.limiterOf(1)!.queries.units.balance,
  );
}

function sum(all: readonly number[]): number {
  return all.reduce((total, one) => total + one, 0);
}

test('what was saved up goes to the gateway where a query waits, and is nowhere twice', () => {
  const pool = world();
  const [a] = [pool.join(), pool.join(), pool.join()];
  run(pool, 31);
  const total = sum(balances(pool));
  expect(total).toBeGreaterThan(25_000);
  // More than the gateway has itself, and no more than it could save up.
  const expensive = query(pool, a, 17_000);
  expect(expensive.answer).toBe('wait');
  run(pool, 2);
  expect(expensive.begun).toBe(true);
  expect(sum(balances(pool))).toBeCloseTo(total - 17_000 + 2 * 900, 3);
  for (const left of balances(pool)) expect(left).toBeGreaterThanOrEqual(-1e-6);
});

test('without loans it waits until its own gateway has saved up so much', () => {
  const pool = world();
  const [a] = [pool.join(), pool.join(), pool.join()];
  pool.scheduler!.setRules({ lends: false });
  run(pool, 31);
  const expensive = query(pool, a, 17_000);
  run(pool, 20);
  expect(expensive.begun).toBe(false);
  run(pool, 10);
  expect(expensive.begun).toBe(true);
});

test('a gateway that was not heard of for long gives nothing away', () => {
  const pool = world();
  const [a, b] = [pool.join(), pool.join()];
  run(pool, 20);
  pool.delayMs = () => 15_000;
  const expensive = query(pool, a, 15_000);
  run(pool, 14);
  const before = balances(pool)[1]!;
  run(pool, 2);
  // By now it has the order to lend, which is old.
  expect(balances(pool)[1]).toBeGreaterThanOrEqual(before);
  expect(pool.members.get(b)!.agent.isMember).toBe(false);
  pool.delayMs = () => 0;
  run(pool, 20);
  expect(expensive.begun).toBe(true);
  expect(pool.inForce(1)).toBeCloseTo(900, 6);
});

test('undivided, each goes by all of the quota', () => {
  const pool = world();
  const [a, b] = [pool.join(), pool.join()];
  pool.scheduler!.setRules({ splits: false });
  pool.deliver();
  expect([pool.shareOf(a, 1), pool.shareOf(b, 1)]).toEqual([900, 900]);
  pool.scheduler!.setRules({ splits: true, moves: false });
  pool.deliver();
  expect([pool.shareOf(a, 1), pool.shareOf(b, 1)]).toEqual([450, 450]);
});

test('wall clocks that jump change nothing', () => {
  const pool = world();
  const [a, b] = [pool.join(), pool.join()];
  run(pool, 5);
  pool.wallMs = 1e12;
  run(pool, 5, { [a]: 100 });
  pool.wallMs = -1e12;
  run(pool, 5, { [b]: 100 });
  expect(pool.inForce(1)).toBeCloseTo(900, 6);
  expect(pool.scheduler!.gateways()).toEqual([a, b]);
});

test('ten thousand tenants that rest cost next to nothing', () => {
  const pool = new PoolWorld();
  for (let tenant = 1; tenant <= 10_000; tenant++) pool.quotas.set(tenant, 1000);
  pool.startScheduler({ learnMs: 0 });
  for (let i = 0; i < 3; i++) pool.join();
  pool.pass(62_000);
  expect(pool.inForce(9999)).toBeCloseTo(1000, 6);
  const sizes: number[] = [];
  pool.loss = (message) => {
    sizes.push(JSON.stringify(message).length);
    return false;
  };
  pool.pass(2000);
  expect(Math.max(...sizes)).toBeLessThan(300);
});

const step = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('scheduler' as const), isQuick: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('join' as const), first: fc.constant(0) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('goodbye' as const), which: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('dies' as const), which: fc.nat(9) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('quota' as const),
      tenant: fc.integer({ min: 1, max: 4 }),
      to: fc.integer({ min: 0, max: 100_000 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      which: fc.nat(9),
      tenant: fc.integer({ min: 1, max: 4 }),
      times: fc.double({ min: 0, max: 3, noNaN: true }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.constantFrom(100, 400, 1000),
    }),
  },
);

// The same runs each time, or with POLYROW_FULL=1 many others.
const full = process.env['POLYROW_FULL'] === '1';

test(
  'whatever joins, leaves, changes, is lost or late: the shares come to the quota',
  () => {
    let steps = 0;
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 700, maxLength: 1500, size: 'max' }),
        fc.integer({ min: 1, max: 2 ** 31 - 1 }),
        fc.constantFrom(0, 0.02, 0.1),
        (all, seed, lost) => {
          const pool = new PoolWorld();
          let state = seed;
          const chance = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
          for (let tenant = 1; tenant <= 4; tenant++) pool.quotas.set(tenant, 1000 * tenant);
          pool.startScheduler({ learnMs: 0 });
          pool.loss = () => chance() < lost;
          pool.delayMs = () => (chance() < 0.3 ? chance() * 2500 : 0);
          let learnsUntil = 0;
          const names = (): string[] => [...pool.members.keys()];
          for (const one of all) {
            steps++;
            if (one.kind === 'join' && pool.members.size < 8) pool.join(one.first);
            else if (one.kind === 'goodbye' || one.kind === 'dies') {
              const name = names()[one.which];
              if (name !== undefined) pool.end(name, one.kind === 'dies' ? 'nothing' : 'goodbye');
            } else if (one.kind === 'quota') pool.setQuota(one.tenant, one.to);
            else if (one.kind === 'ask') {
              const name = names()[one.which];
              const quota = pool.quotas.get(one.tenant)!;
              if (name !== undefined && quota > 0) pool.ask(name, one.tenant, one.times * quota);
            } else if (one.kind === 'pass') pool.pass(one.ms);
            else if (one.kind === 'scheduler') {
              // Another one, at once or with the next step of this kind.
              if (pool.scheduler === undefined || one.isQuick) pool.startScheduler();
              else pool.scheduler = undefined;
              learnsUntil = pool.ms + poolLeaseMs + 1000;
            }
            for (const [tenant, quota] of pool.quotas) {
              if (quota === 0) continue;
              const inForce = pool.inForce(tenant);
              if (inForce > quota * (1 + 1e-7)) throw new Error(`${inForce} in force of ${quota}`);
              const { scheduler } = pool;
              if (scheduler === undefined || scheduler.gateways().length === 0) continue;
              const off = pool.planned(tenant) - quota;
              if (off > 1e-6) throw new Error(`${off} too much planned`);
              if (off < -1e-6 && pool.ms > learnsUntil) throw new Error(`${-off} not planned`);
            }
          }
          if (pool.scheduler === undefined) pool.startScheduler();
          pool.loss = () => false;
          pool.delayMs = () => 0;
          pool.join();
          pool.pass(25_000);
          for (const [tenant, quota] of pool.quotas) {
            if (quota > 0) expect(Math.abs(pool.inForce(tenant) / quota - 1)).toBeLessThan(1e-6);
          }
        },
      ),
      // One of a thousand steps takes minutes to make smaller: the seed is told, and is enough.
      { numRuns: full ? 5000 : 110, endOnFailure: true, ...(full ? {} : { seed: 20_261_121 }) },
    );
    expect(steps).toBeGreaterThan(100_000);
  },
  full ? 1_200_000 : 120_000,
);

test('a limiter made later has its part from the beginning', () => {
  const pool = world();
  const [a] = [pool.join(), pool.join()];
  const { admission, agent } = pool.members.get(a)!;
  admission.forget(1);
  agent.follow(limited(1, 2000));
  expect(admission.limiterOf(1)!.quota.perSecond).toBe(1000);
});
