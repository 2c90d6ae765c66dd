import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from './token-bucket.ts';

const steps = fc.array(fc.record({ wait: fc.nat(3000), cost: fc.integer({ min: 1, max: 200 }) }), {
  maxLength: 100,
});

test('in any span no more is taken than the capacity and what the span brings', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 300 }), fc.nat(300), (all, rate, capacity) => {
      const bucket = new TokenBucket(rate, capacity, 0);
      const taken: { at: number; cost: number }[] = [];
      let now = 0;
      for (const { wait, cost } of all) {
        now += wait;
        const had = bucket.balance(now);
        const done = bucket.take(cost, now);
        expect(done).toBe(had >= cost);
        if (done) taken.push({ at: now, cost });
      }
      taken.forEach((first, i) => {
        let sum = 0;
        for (const { at, cost } of taken.slice(i)) {
          sum += cost;
          expect(sum).toBeLessThanOrEqual(capacity + (rate * (at - first.at)) / 1000 + 1e-6);
        }
      });
    }),
  );
});

test('after the wait it tells the cost is there, and not before', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const bucket = new TokenBucket(70, 150, 0);
      let now = 0;
      for (const { wait, cost } of all) {
        now += wait;
        const needed = bucket.wait(cost, now);
        if (cost > 150) expect(needed).toBe(Infinity);
        else {
          if (needed > 1) expect(bucket.take(cost, now + needed - 1)).toBe(false);
          now += Math.max(0, needed - 1) + 1.001;
          expect(bucket.take(cost, now)).toBe(true);
        }
      }
    }),
  );
});

test('a debit may leave a debt, which is paid before anything is taken', () => {
  const bucket = new TokenBucket(100, 50, 0);
  bucket.debit(150, 0);
  expect(bucket.balance(0)).toBe(-100);
  expect(bucket.takeSome(10, 500)).toBe(0);
  expect(bucket.take(1, 1000)).toBe(false);
  expect(bucket.wait(25, 1000)).toBe(250);
  expect(bucket.takeSome(80, 1250)).toBe(25);
  bucket.debit(-1000, 1250);
  expect(bucket.balance(1250)).toBe(50);
});

test('a new shape keeps what is there, as far as it goes', () => {
  const bucket = new TokenBucket(100, 100, 0);
  bucket.debit(60, 0);
  bucket.reshape(10, 30, 100);
  expect(bucket.balance(100)).toBe(30);
  bucket.debit(30, 100);
  expect(bucket.balance(1100)).toBe(10);
});

test('what is owed is waited for', () => {
  const bucket = new TokenBucket(100, 100, 0, 10);
  expect(bucket.admit(1, 0)).toBe(true);
  bucket.debit(599, 0);
  expect(bucket.balance(0)).toBe(-500);
  expect(bucket.waitForAny(0)).toBe(5000);
  expect(bucket.admit(1, 4900)).toBe(false);
  expect(bucket.admit(1, 5100)).toBe(true);
});

test('a debt has a floor, which no change of the rate brings nearer', () => {
  const bucket = new TokenBucket(10, 10, 0, 10);
  bucket.debit(1e9, 0);
  expect(bucket.balance(0)).toBe(-100);
  bucket.reshape(1, 10, 0);
  bucket.debit(50, 0);
  expect(bucket.balance(0)).toBe(-100);
  expect(bucket.waitForAny(0)).toBe(100_000);
});

test('without a rate nothing is let in once it is spent', () => {
  const bucket = new TokenBucket(0, 0, 0, 10);
  expect(bucket.admit(1, 1000)).toBe(false);
  expect(bucket.waitForAny(1000)).toBe(Infinity);
});

test('in the long run no more is spent than is refilled, whatever the costs turn out to be', () => {
  const rate = 1000;
  const bucket = new TokenBucket(rate, rate, 0, 10);
  let spent = 0;
  let state = 3;
  const seconds = 2000;
  for (let step = 1; step <= seconds * 100; step++) {
    const now = step * 10;
    // Admitted requests turn out to cost 1 to 100 units, and demand always exceeds the quota.
    for (let i = 0; i < 3; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const cost = 1 + ((state >>> 8) % 100);
      if (!bucket.admit(1, now)) continue;
      spent += cost;
      bucket.debit(cost - 1, now);
    }
  }
  expect(spent / (rate * seconds)).toBeLessThanOrEqual(1.01);
  expect(spent / (rate * seconds)).toBeGreaterThan(0.98);
});
