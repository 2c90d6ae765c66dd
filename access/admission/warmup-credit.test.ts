import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from '../../request-units/token-bucket.ts';
import { WarmupCredit } from './warmup-credit.ts';

test('the quota counts three times for 300 seconds, and once from then on', () => {
  const credit = new WarmupCredit(1000);
  expect(credit.factor(1000)).toBe(3);
  expect(credit.left(100, 1000)).toBe(60_000);
  expect(credit.left(100, 151_000)).toBe(30_000);
  expect(credit.factor(300_999)).toBe(3);
  expect(credit.factor(301_000)).toBe(1);
  expect(credit.left(100, 301_000)).toBe(0);
  expect(credit.left(100, 999_000)).toBe(0);
});

test('whoever was made long ago, or nobody knows when, has none', () => {
  expect(new WarmupCredit(-300_000).factor(0)).toBe(1);
  expect(new WarmupCredit(-Infinity).factor(0)).toBe(1);
  expect(new WarmupCredit(-Infinity).left(100, 0)).toBe(0);
});

test('a factor of 1, and no time, are no credit', () => {
  expect(new WarmupCredit(0, { factor: 1 }).left(100, 0)).toBe(0);
  expect(new WarmupCredit(0, { seconds: 0 }).factor(0)).toBe(1);
});

test('it is given once, however often whoever gives it starts anew, and whatever becomes of the quota', () => {
  const options = { seconds: 20 };
  const step = fc.record({ gap: fc.nat(5000), cost: fc.integer({ min: 1, max: 300 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), fc.nat(100), (steps, restartAt) => {
      const quota = 100;
      let credit = new WarmupCredit(0, options);
      let bucket = new TokenBucket(quota * 3, quota * 3, 0);
      let now = 0;
      let taken = 0;
      let restarts = 0;
      steps.forEach(({ gap, cost }, i) => {
        now += gap;
        // Work at the end of each second.
        const rate = quota * credit.factor(now);
        bucket.reshape(rate, rate, now);
        if (i === restartAt) {
          credit = new WarmupCredit(0, options);
          bucket = new TokenBucket(rate, rate, now);
          restarts++;
        }
        if (bucket.take(cost, now)) taken += cost;
      });
      // A new bucket holds one second's units, as for a tenant without a credit.
      const most = (quota * now) / 1000 + 2 * quota * 20 + (1 + restarts) * 3 * quota;
      // A step may be past the end before the bucket is told of it.
      expect(taken).toBeLessThanOrEqual(most + 2 * quota * 5);
    }),
  );
});
