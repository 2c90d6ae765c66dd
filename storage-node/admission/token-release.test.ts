import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenRelease } from './token-release.ts';

test('no limit before the first period, and in one without tokens counted', () => {
  const release = new TokenRelease({}, 0);
  expect(release.take(1e12, 0)).toBe(true);
  release.begin(100, true, 10);
  expect(release.take(1e12, 10)).toBe(false);
  release.begin(Infinity, false, 20);
  expect(release.take(1e12, 20)).toBe(true);
  expect(release.balance(30)).toBe(Infinity);
  expect(release.wait(1e12, 30)).toBe(0);
});

test('each tick adds what remains over the ticks that remain', () => {
  const release = new TokenRelease({ periodMs: 1000, overloadedTickMs: 100 }, 0);
  release.begin(6000, true, 0);
  // 10 ticks, the first at once; the bucket holds a sixtieth, less than a tick would add.
  expect(release.balance(0)).toBe(100);
  expect(release.balance(99)).toBe(100);
  expect(release.take(100, 99)).toBe(true);
  expect(release.take(1, 99)).toBe(false);
  expect(release.balance(100)).toBeCloseTo(5900 / 60);
  const fine = new TokenRelease({ periodMs: 1000, overloadedTickMs: 1 }, 0);
  fine.begin(6000, true, 0);
  expect(fine.balance(0)).toBe(6);
  expect(fine.take(6, 0)).toBe(true);
  expect(fine.balance(1)).toBeCloseTo(6);
  // Late callers lose nothing but what the bucket cannot hold.
  expect(fine.balance(11)).toBeCloseTo(66);
  expect(fine.balance(500)).toBeCloseTo(fine.capacity);
});

test('an even load uses the period up with ticks of a millisecond', () => {
  const release = new TokenRelease({}, 0);
  const total = 480e6;
  release.begin(total, true, 0);
  let used = 0;
  const each = total / 15_000;
  let waiting = 0;
  for (let now = 0; now < 15_000; now++) {
    waiting += each;
    const most = Math.min(waiting, Math.max(0, release.balance(now)));
    if (most > 0 && release.take(most, now)) {
      waiting -= most;
      used += most;
    }
  }
  expect(used).toBeLessThanOrEqual(total);
  expect((total - used) / total).toBeLessThanOrEqual(0.02);
});

test('a piece larger than the bucket takes a full one, and those after it wait for its debt', () => {
  const release = new TokenRelease({ periodMs: 1000, overloadedTickMs: 10 }, 0);
  release.begin(6000, true, 0);
  expect(release.take(500, 0)).toBe(false);
  expect(release.wait(500, 0)).toBeGreaterThan(0);
  const at = release.wait(500, 0);
  expect(release.take(500, at)).toBe(true);
  expect(release.balance(at)).toBeLessThan(-300);
  expect(release.take(0.001, at)).toBe(false);
  const wait = release.wait(1, at);
  expect(release.take(1, at + wait - 1)).toBe(false);
  expect(release.take(1, at + wait)).toBe(true);
});

test('a debt is taken into the next period, what is in hand is not', () => {
  const release = new TokenRelease({}, 0);
  release.begin(6000, true, 0);
  release.debit(50, 0);
  release.begin(6000, true, 1);
  // Two ticks have taken off a little.
  expect(release.balance(1)).toBeCloseTo(-50 + 2 * 0.4 + 0.4);
  release.begin(6000, true, 14_000);
  expect(release.balance(14_000)).toBeCloseTo(6000 / 15_000);
});

test('the end of a period gives nothing more', () => {
  const release = new TokenRelease({}, 0);
  release.begin(6000, true, 0);
  const left = release.balance(60_000);
  expect(release.take(left, 60_000)).toBe(true);
  expect(release.balance(90_000)).toBe(0);
  expect(release.take(1, 90_000)).toBe(false);
  expect(release.wait(1, 90_000)).toBe(Infinity);
});

test('whatever is taken, no more than the total is given, nor in a tick more than a sixtieth of what remains', () => {
  const step = fc.record({
    after: fc.nat(400),
    share: fc.double({ min: 0, max: 0.05, noNaN: true }),
    how: fc.constantFrom('take', 'debit', 'back'),
  });
  fc.assert(
    fc.property(
      fc.constantFrom(1, 7, 250),
      fc.integer({ min: 1, max: 1e9 }),
      fc.array(step, { maxLength: 200 }),
      (tickMs, total, steps) => {
        const release = new TokenRelease({ overloadedTickMs: tickMs }, 0);
        release.begin(total, true, 0);
        const slack = total * 1e-9;
        let now = 0;
        let used = 0;
        let tick = -1;
        let burst = 0;
        let most = 0;
        for (const { after, share, how } of steps) {
          now += after;
          const remaining = total - release.allocated;
          release.balance(now);
          if (Math.floor(now / tickMs) !== tick) {
            tick = Math.floor(now / tickMs);
            burst = 0;
            most = remaining / 60;
          }
          const cost = Math.min(share * total, release.capacity);
          if (how === 'take' && release.take(cost, now)) {
            used += cost;
            burst += cost;
          } else if (how === 'debit') {
            release.debit(cost, now);
            used += cost;
          } else if (how === 'back' && used > 0) {
            const back = Math.min(cost, used, burst);
            release.debit(-back, now);
            used -= back;
            burst -= back;
          }
          expect(burst).toBeLessThanOrEqual(most + slack);
          expect(release.allocated).toBeLessThanOrEqual(total + slack);
          expect(release.balance(now)).toBeLessThanOrEqual(release.capacity + slack);
          // Everything in hand or gone was made available first.
          expect(release.balance(now) + used).toBeLessThanOrEqual(release.allocated + slack);
        }
      },
    ),
  );
});
