import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { addressLimits, LoginLimiter, userLimits } from './login-limiter.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const options = { ...addressLimits, free: 2, firstMs: 100, maxMs: 400, patienceMs: 1000 };

/** Fails once more, and says how long it had to wait for that. */
async function fail(limiter: LoginLimiter, key: string): Promise<number> {
  const from = performance.now();
  let waited = -1;
  const done = limiter.enter(key).then(() => {
    waited = performance.now() - from;
    limiter.leave(key, true);
  });
  await vi.advanceTimersByTimeAsync(10_000);
  await done;
  return waited;
}

test('each failure costs more than the one before, up to a limit', async () => {
  const limiter = new LoginLimiter(options);
  const waits: number[] = [];
  for (let i = 0; i < 8; i++) waits.push(await fail(limiter, 'a'));
  expect(waits).toEqual([0, 0, 0, 100, 200, 400, 400, 400]);
  expect(await fail(limiter, 'b')).toBe(0);
});

test('attempts take turns, and those too far behind are refused', async () => {
  const limiter = new LoginLimiter(options);
  for (let i = 0; i < 6; i++) await fail(limiter, 'a');
  const outcomes: boolean[] = [];
  for (let i = 0; i < 20; i++) {
    void limiter.enter('a').then((entered) => {
      outcomes.push(entered);
      if (entered) limiter.leave('a', true);
    });
  }
  await vi.advanceTimersByTimeAsync(0);
  expect(outcomes.filter((entered) => !entered).length).toBeGreaterThan(10);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(outcomes).toHaveLength(20);
  expect(outcomes.filter(Boolean).length).toBeLessThanOrEqual(5);
});

test('success costs nothing, however many at once', async () => {
  const limiter = new LoginLimiter(options);
  const all = Array.from({ length: 100 }, async () => {
    expect(await limiter.enter('a')).toBe(true);
    limiter.leave('a', false);
  });
  await Promise.all(all);
  expect(limiter.size).toBe(0);
});

test('is forgotten after a while', async () => {
  const limiter = new LoginLimiter(options);
  for (let i = 0; i < 6; i++) await fail(limiter, 'a');
  await vi.advanceTimersByTimeAsync(options.forgetMs);
  expect(await fail(limiter, 'a')).toBe(0);
});

test('remembers no more than it may', async () => {
  const limiter = new LoginLimiter({ ...options, entries: 10 });
  for (let i = 0; i < 50; i++) await fail(limiter, `from ${i}`);
  expect(limiter.size).toBe(10);
});

test('guesses on a user hold nobody out', async () => {
  const limiter = new LoginLimiter(userLimits);
  for (let i = 0; i < 40; i++) await fail(limiter, 'ann');
  const entered = Promise.all(Array.from({ length: 100 }, () => limiter.enter('ann')));
  await vi.advanceTimersByTimeAsync(userLimits.maxMs);
  expect(await entered).not.toContain(false);
});
