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
        for (const latency of latencies) delay.succeeded(latency);
        const median = latencies.toSorted((a, b) => a - b)[Math.ceil(latencies.length / 2) - 1]!;
        expect(Math.abs(delay.median() / median - 1)).toBeLessThan(0.05);
        const total = elapsed + delay.delay(elapsed);
        expect(total).toBeGreaterThanOrEqual(median * 0.95);
        expect(total).toBeLessThanOrEqual(Math.max(elapsed, median * 1.05) + 1e-9);
      },
    ),
  );
});

test('never longer than the cap; that long before anything succeeded', () => {
  const delay = new ErrorDelay({ enabled: true, capMs: 40 });
  expect(delay.delay(1)).toBe(39);
  for (let i = 0; i < 10; i++) delay.succeeded(500);
  expect(delay.delay(1)).toBe(39);
  expect(delay.delay(60)).toBe(0);
});

test('the last thousand successes count, and the few that come late do not change much', () => {
  const delay = new ErrorDelay({ enabled: true });
  const succeed = (latency: number, times: number): number => {
    for (let i = 0; i < times; i++) delay.succeeded(latency);
    return delay.median();
  };
  expect(succeed(50, 5000)).toBeCloseTo(50, -1);
  expect(succeed(5, 1000) / 5).toBeCloseTo(1, 1);
  expect(succeed(80, 20) / 5).toBeCloseTo(1, 1);
  expect(succeed(20, 1000) / 20).toBeCloseTo(1, 1);
});

test('off unless asked for', () => {
  const delay = new ErrorDelay();
  delay.succeeded(50);
  expect(delay.delay(1)).toBe(0);
});
