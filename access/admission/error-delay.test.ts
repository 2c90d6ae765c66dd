import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ErrorDelay } from './error-delay.ts';

test('an error takes as long as the median success, whatever they are', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0.05, max: 90, noNaN: true }), { minLength: 1, maxLength: 200 }),
      fc.double({ min: 0, max: 100, noNaN: true }),
      (latencies, elapsed) => {
        const delay = new ErrorDelay({ enabled: true });
        latencies.forEach((latency, i) => delay.succeeded(latency, i * 10));
        const median = latencies.toSorted((a, b) => a - b)[Math.ceil(latencies.length / 2) - 1]!;
        const now = latencies.length * 10;
        expect(Math.abs(delay.median(now) / median - 1)).toBeLessThan(0.05);
        const total = elapsed + delay.delay(elapsed, now);
        expect(total).toBeGreaterThanOrEqual(Math.min(median, 100) * 0.95);
        expect(total).toBeLessThanOrEqual(Math.max(elapsed, median * 1.05));
      },
    ),
  );
});

test('never longer than the cap; that long before anything succeeded', () => {
  const delay = new ErrorDelay({ enabled: true, capMs: 40 });
  expect(delay.delay(1, 0)).toBe(39);
  for (let i = 0; i < 10; i++) delay.succeeded(500, 0);
  expect(delay.delay(1, 200)).toBe(39);
  expect(delay.delay(60, 200)).toBe(0);
});

test('old successes are forgotten, unless there are none since', () => {
  const delay = new ErrorDelay({ enabled: true });
  for (let now = 0; now < 20_000; now += 10) delay.succeeded(50, now);
  for (let now = 20_000; now < 32_000; now += 10) delay.succeeded(5, now);
  expect(delay.median(32_000)).toBeCloseTo(5, 0);
  expect(delay.median(100_000)).toBeCloseTo(5, 0);
  delay.succeeded(20, 200_000);
  expect(delay.median(200_200) / 20).toBeCloseTo(1, 1);
});

test('off unless asked for', () => {
  const delay = new ErrorDelay();
  delay.succeeded(50, 0);
  expect(delay.delay(1, 200)).toBe(0);
});
