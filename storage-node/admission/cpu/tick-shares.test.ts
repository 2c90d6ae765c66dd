import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TickShares, tickSharesDefaults } from './tick-shares.ts';

/** A round in which tenants ask in this order, each for so many milliseconds. Who was not within its part, in order. */
function round(shares: TickShares, from: number, asks: readonly (readonly [number, number])[]) {
  let now = from;
  const beyond: number[] = [];
  shares.begin(now);
  for (const [tenant, ms] of asks) {
    if (!shares.asked(tenant, now)) beyond.push(tenant);
    now += ms;
  }
  return beyond;
}

const turns = (count: number, of: (i: number) => number, ms = 0.01): [number, number][] =>
  Array.from({ length: count }, (_, i) => [of(i), ms]);

test('where all ask for as much nobody is beyond its part, however long the round', () => {
  const shares = new TickShares();
  expect(
    round(
      shares,
      0,
      turns(100, (i) => i % 10),
    ),
  ).toEqual([]);
});

test('one that asks for most of a round is, and the others are not', () => {
  const shares = new TickShares();
  const beyond = round(
    shares,
    0,
    turns(100, (i) => (i % 20 === 0 ? 2 : 1)),
  );
  expect(beyond.length).toBeGreaterThan(80);
  expect(new Set(beyond)).toEqual(new Set([1]));
});

test('who asked lately counts, also in rounds in which it does not', () => {
  const shares = new TickShares();
  round(shares, 0, [[2, 0.01]]);
  const beside = round(
    shares,
    50,
    turns(50, () => 1),
  );
  // Everything except each tenant's free part, and its own use.
  expect(beside.length).toBeGreaterThan(40);
  for (const at of [150, 300]) {
    round(
      shares,
      at,
      turns(1, () => 1),
    );
  }
  expect(
    round(
      shares,
      450,
      turns(50, () => 1),
    ),
  ).toEqual([]);
});

test('parts go by weights', () => {
  const shares = new TickShares();
  shares.setWeight(1, 9);
  const beyond = round(
    shares,
    0,
    turns(100, (i) => (i % 10 === 0 ? 2 : 1)),
  );
  expect(beyond).toEqual([]);
  shares.setWeight(1, 1);
  expect(
    new Set(
      round(
        shares,
        10,
        turns(100, (i) => (i % 10 === 0 ? 2 : 1)),
      ),
    ),
  ).toEqual(new Set([1]));
});

test('there is always somebody within its part, and who is beyond has had more than it', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.tuple(fc.integer({ min: 0, max: 5 }), fc.double({ min: 0, max: 1, noNaN: true })),
      ),
      (asks) => {
        const shares = new TickShares();
        const had = new Map<number, number>();
        let now = 0;
        shares.begin(now);
        for (const [tenant, ms] of asks) {
          const isWithin = shares.asked(tenant, now);
          const own = had.get(tenant) ?? 0;
          had.set(tenant, own);
          const mean = now / had.size;
          if (!isWithin) expect(own).toBeGreaterThan(tickSharesDefaults.headroom * mean);
          else expect(own).toBeLessThanOrEqual(1.5 * mean + tickSharesDefaults.freeMs + 1e-9);
          now += ms;
          had.set(tenant, own + ms);
        }
      },
    ),
  );
});

test('who is forgotten asks as anybody new', () => {
  const shares = new TickShares();
  shares.setWeight(1, 5);
  round(shares, 0, [[1, 1]]);
  shares.forget(1);
  expect(round(shares, 10, [[1, 1]])).toEqual([]);
});
