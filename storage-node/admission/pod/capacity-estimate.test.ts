import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CapacityEstimate } from './capacity-estimate.ts';

const busy = { units: 950, utilization: 0.95, isLimiting: false };

test('nothing is known until three busy samples in a row', () => {
  const estimate = new CapacityEstimate();
  for (const second of [busy, busy, { ...busy, utilization: 0.5 }, busy, busy]) {
    estimate.observe(second);
    expect(estimate.perSecond).toBe(0);
  }
  estimate.observe(busy);
  expect(estimate.perSecond).toBeCloseTo(1000);
});

test('an idle thread leaves the estimate as it is, unless the estimate itself limits requests', () => {
  const estimate = new CapacityEstimate(1000);
  estimate.observe({ units: 1000, utilization: 0.2, isLimiting: false });
  expect(estimate.perSecond).toBe(1000);
  for (let second = 0; second < 10; second++) {
    estimate.observe({ units: estimate.perSecond, utilization: 0.2, isLimiting: true });
  }
  expect(estimate.perSecond).toBeGreaterThan(5000);
});

test('the estimate follows what a saturated pod does, and is never negative or endless', () => {
  const second = fc.record({
    units: fc.double({ min: 0, max: 1e7, noNaN: true }),
    utilization: fc.double({ min: 0.01, max: 1, noNaN: true }),
    isLimiting: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(second, { maxLength: 100 }), (seconds) => {
      const estimate = new CapacityEstimate();
      for (const one of seconds) {
        estimate.observe(one);
        expect(estimate.perSecond).toBeGreaterThanOrEqual(0);
        expect(estimate.perSecond).toBeLessThanOrEqual(1e9);
      }
      for (let i = 0; i < 60; i++) estimate.observe(busy);
      // From 1e9 down.
      expect(estimate.perSecond).toBeLessThan(1e9 * 0.8 ** 60 + 1001);
      expect(estimate.perSecond).toBeGreaterThan(999);
    }),
  );
});
