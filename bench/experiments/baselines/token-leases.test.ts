import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LeasedQuota, QuotaTracker } from './token-leases.ts';

/** Servers that are asked for so many units each millisecond; an answer takes one more. */
function run(
  tracker: QuotaTracker,
  perMs: (server: number, now: number) => number,
  { servers, ms }: { servers: number; ms: number },
): { admitted: Float64Array; asks: Float64Array; mostWaiting: number } {
  const sides = Array.from({ length: servers }, () => ({
    quota: new LeasedQuota(0),
    waiting: 0,
    due: Infinity,
    granted: 0,
    refusedMs: 0,
    leaseMs: 0,
  }));
  const admitted = new Float64Array(ms);
  const asks = new Float64Array(ms);
  let mostWaiting = 0;
  for (let now = 0; now < ms; now++) {
    sides.forEach((side, s) => {
      const { quota } = side;
      const next = (): void => {
        const wanted = quota.ask(now);
        if (wanted === 0) return;
        asks[now]!++;
        side.granted = tracker.ask(String(s), wanted, quota.seen, now);
        side.refusedMs = tracker.refusedMs;
        side.leaseMs = tracker.leaseMs;
        side.due = now + 1;
      };
      if (now >= side.due) {
        side.due = Infinity;
        quota.answer(side.granted, side.refusedMs, side.leaseMs, now);
        for (let n = side.waiting; n > 0; n--) {
          const decision = quota.decideAgain(1, now);
          if (decision === 'wait') continue;
          side.waiting--;
          if (decision === 'yes') admitted[now]!++;
        }
        next();
      }
      for (let n = perMs(s, now); n > 0; n--) {
        const decision = quota.decide(1, now);
        if (decision === 'yes') admitted[now]!++;
        else if (decision === 'wait') side.waiting++;
        next();
      }
      mostWaiting = Math.max(mostWaiting, side.waiting);
    });
  }
  return { admitted, asks, mostWaiting };
}

const total = (values: Float64Array): number => values.reduce((sum, value) => sum + value, 0);

test('a slow key is asked for request by request', () => {
  const result = run(new QuotaTracker(1000, 0), (server, now) => (now % 10 === server ? 1 : 0), {
    servers: 2,
    ms: 2000,
  });
  expect(total(result.admitted)).toBe(400);
  expect(total(result.asks)).toBe(400);
});

test('a fast one is leased: the tracker is asked far less often, and the quota holds', () => {
  const result = run(new QuotaTracker(10_000, 0), () => 3, { servers: 5, ms: 5000 });
  // 15,000 a second against 10,000 and what may be saved up in a second.
  expect(total(result.admitted)).toBeLessThanOrEqual(60_000);
  expect(total(result.admitted)).toBeGreaterThan(58_500);
  for (let second = 0; second < 5; second++) {
    const asked = total(result.asks.subarray(second * 1000, second * 1000 + 1000));
    expect(asked).toBeLessThanOrEqual(2000);
  }
});

test('wherever requests come, no more is admitted than one bucket would', () => {
  const phase = fc.array(fc.nat(12), { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(phase, { minLength: 1, maxLength: 6 }), (phases) => {
      const ms = phases.length * 400;
      const { admitted } = run(
        new QuotaTracker(5000, 0, { burstSeconds: 0.1 }),
        (server, now) => phases[Math.floor(now / 400)]![server]!,
        { servers: 4, ms },
      );
      expect(total(admitted)).toBeLessThanOrEqual((5000 * ms) / 1000 + 500);
    }),
    { numRuns: 40 },
  );
});

test('without its tracker a server decides alone, and tries again', () => {
  const quota = new LeasedQuota(0, { aloneRate: 100, retryMs: 1000 });
  expect(quota.decide(1, 0)).toBe('wait');
  expect(quota.ask(0)).toBe(1);
  expect(quota.decide(1, 10)).toBe('wait');
  expect(quota.ask(10)).toBe(0);
  quota.unreachable();
  expect(quota.decideAgain(1, 50)).toBe('yes');
  expect(quota.decideAgain(1, 50)).toBe('yes');
  let admitted = 0;
  for (let now = 100; now < 1000; now++) {
    if (quota.decide(1, now) === 'yes') admitted++;
    expect(quota.ask(now)).toBe(0);
  }
  // The bucket was full at 100 ms, and was filled with 90 since.
  expect(admitted).toBe(189);
  expect(quota.ask(1000)).toBeGreaterThan(0);
  quota.answer(1, 0, 0, 1001);
  expect(quota.decide(1, 1002)).toBe('yes');
  expect(quota.decide(1, 1002)).toBe('wait');
});

test('units of a lease are not kept for ever', () => {
  const quota = new LeasedQuota(0, { keepMs: 100 });
  quota.decide(1, 0);
  quota.ask(0);
  quota.answer(10, 0, 0, 1);
  expect(quota.decideAgain(1, 1)).toBe('yes');
  expect(quota.decide(1, 100)).toBe('yes');
  expect(quota.decide(1, 102)).toBe('wait');
});
