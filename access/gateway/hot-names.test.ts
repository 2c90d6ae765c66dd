import { expect, test } from 'vitest';
import { HotNames, HotSampler } from './hot-names.ts';
import { Random } from '../../test/support/random.ts';

const samplers = new WeakMap<HotNames, HotSampler>();

/** Records a request as its server does. */
function touch(
  hot: HotNames,
  [tenant, database, name]: [number, number | string, string],
  cost: number,
  bytes: number,
): void {
  let sampler = samplers.get(hot);
  if (sampler === undefined) samplers.set(hot, (sampler = new HotSampler(hot)));
  if ((sampler.left -= cost) < 0) sampler.record(tenant, database, name, cost, bytes);
}

/** Requests of some seconds, at most so many a second. */
function run(hot: HotNames, clock: { ms: number }, seconds: number, request: () => void): void {
  for (let s = 0; s < seconds; s++) {
    for (let i = 0; i < 20_000; i++) request();
    clock.ms += 1000;
    hot.tick();
  }
}

function started(): { hot: HotNames; clock: { ms: number } } {
  const clock = { ms: 0 };
  const random = new Random(5);
  const time = { now: () => clock.ms, monotonic: () => clock.ms };
  return { hot: new HotNames(time, { next: () => random.next() }), clock };
}

test('a name is found by what is spent on it, by how often, and by its bytes', () => {
  const { hot, clock } = started();
  let n = 0;
  run(hot, clock, 20, () => {
    // One request in a hundred is expensive, one in ten goes to one name, one in fifty is large.
    const i = n++;
    const [name, cost, bytes] =
      i % 100 === 3
        ? (['expensive', 200, 10] as const)
        : i % 10 === 1
          ? (['often', 1, 10] as const)
          : i % 50 === 7
            ? (['large', 1, 5000] as const)
            : ([`other${(i * 7919) % 5000}`, 1, 10] as const);
    touch(hot, [0, 0, name], cost, bytes);
  });
  const [expensive] = hot.top('ru', 3);
  expect(expensive!.name).toBe('expensive');
  // 200 requests a second of 200 units.
  expect(expensive!.ru).toBeGreaterThan(40_000 * 0.8);
  expect(expensive!.ru).toBeLessThan(40_000 * 1.2);
  const [often] = hot.top('rate', 3);
  expect(often!.name).toBe('often');
  expect(often!.rate).toBeGreaterThan(2000 * 0.7);
  expect(often!.rate).toBeLessThan(2000 * 1.3);
  expect(hot.top('bytes', 3)[0]!.name).toBe('large');
});

test('with few requests each is seen, and what is over is forgotten', () => {
  const { hot, clock } = started();
  for (let i = 0; i < 3; i++) touch(hot, [4, 'db', 'a'], 2, 100);
  touch(hot, [4, 'db', 'b'], 5, 1);
  clock.ms += 1000;
  expect(hot.top('rate', 9)).toEqual([
    { tenant: 4, database: 'db', name: 'a', ru: 6, rate: 3, bytes: 100 },
    { tenant: 4, database: 'db', name: 'b', ru: 5, rate: 1, bytes: 1 },
  ]);
  expect(hot.spent).toBe(11);
  for (let s = 0; s < 600; s++) {
    clock.ms += 1000;
    hot.tick();
  }
  expect(hot.top('rate', 9)).toEqual([]);
});

test('tenants see their own, and names that are no text are shown as bytes', () => {
  const { hot, clock } = started();
  touch(hot, [1, 3, 'mine'], 1, 1);
  touch(hot, [2, 0, 'theirs'], 1, 1);
  touch(hot, [1, 0, '\xff\x00\n'], 1, 1);
  touch(hot, [1, 0, Buffer.from('für').toString('latin1')], 1, 1);
  touch(hot, [1, 0, 'x'.repeat(1000)], 1, 1);
  clock.ms += 1000;
  const names = hot.top('rate', 9, 1).map(({ database, name }) => [database, name]);
  expect(names).toHaveLength(4);
  expect(names).toContainEqual([3, 'mine']);
  expect(names).toContainEqual([0, '\\xff\\x00\\x0a']);
  expect(names).toContainEqual([0, 'für']);
  expect(names).toContainEqual([0, `${'x'.repeat(256)}…`]);
});

test('however many names there are, few are kept', () => {
  const { hot, clock } = started();
  let n = 0;
  run(hot, clock, 5, () => {
    touch(hot, [0, 0, `name${n++}`], 1, 1);
  });
  expect(hot.top('ru', Infinity).length).toBeLessThanOrEqual(512);
});

test('one that stands for many counts as many', () => {
  const { hot, clock } = started();
  hot.add(0, 'db', 'm,k=a', 500, 50, 10_000);
  hot.add(0, 'db', 'm,k=b', 100, 10, 2000);
  clock.ms += 1000;
  expect(hot.spent).toBe(60);
  expect(hot.top('rate', 1)).toEqual([
    { tenant: 0, database: 'db', name: 'm,k=a', ru: 50, rate: 500, bytes: 20 },
  ]);
});

test('a burst after a lull is not sampled request by request', () => {
  const { hot } = started();
  let samples = 0;
  const sampled = hot.sampled.bind(hot);
  hot.sampled = (...args): void => {
    samples++;
    sampled(...args);
  };
  for (let i = 0; i < 1_000_000; i++) touch(hot, [1, 0, i % 2 === 0 ? 'hot' : `k${i}`], 300, 100);
  expect(samples).toBeLessThan(3000);
  expect(hot.spent).toBeGreaterThan(0.8 * 300_000_000);
  expect(hot.top('ru', 1)[0]!.name).toBe('hot');
});
