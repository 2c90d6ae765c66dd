import fc from 'fast-check';
import { expect, test } from 'vitest';
import { WarmupCredit } from './warmup-credit.ts';

test('the credit is 300 seconds of twice the quota beyond it, at no more than that speed', () => {
  const credit = new WarmupCredit(100, 0);
  expect(credit.left).toBe(60_000);
  let taken = 0;
  for (let now = 0; now < 1000; now++) while (credit.take(1, now)) taken++;
  // What the speed allows in a second, and what it had saved up.
  expect(taken).toBeGreaterThanOrEqual(399);
  expect(taken).toBeLessThanOrEqual(400);
  for (let now = 1000; now < 400_000; now += 10) while (credit.take(1, now)) taken++;
  expect(taken).toBe(60_000);
  expect(credit.left).toBe(0);
});

test('it is given once: nothing fills it, and a restart knows what is spent', () => {
  const step = fc.record({ gap: fc.nat(5000), cost: fc.integer({ min: 1, max: 300 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), fc.nat(100), (steps, restartAt) => {
      let credit = new WarmupCredit(100, 0, { options: { seconds: 20 } });
      let now = 0;
      let taken = 0;
      steps.forEach(({ gap, cost }, i) => {
        now += gap;
        if (i === restartAt) {
          credit = new WarmupCredit(100, now, { options: { seconds: 20 }, spent: taken });
        }
        if (credit.take(cost, now)) taken += cost;
        expect(credit.left).toBeCloseTo(4000 - taken, 6);
      });
      expect(taken).toBeLessThanOrEqual(4000);
    }),
  );
});

test('a factor of 1 is no credit', () => {
  expect(new WarmupCredit(100, 0, { options: { factor: 1 } }).take(1, 0)).toBe(false);
});
