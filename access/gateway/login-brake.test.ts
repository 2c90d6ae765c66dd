import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { addressBrake, LoginBrake, userBrake } from './login-brake.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const options = { ...addressBrake, free: 2, firstMs: 100, maxMs: 400, patienceMs: 1000 };

/** Fails once more, and says how long it had to wait for that. */
async function fail(brake: LoginBrake, key: string): Promise<number> {
  const from = performance.now();
  let waited = -1;
  const done = brake.enter(key).then(() => {
    waited = performance.now() - from;
    brake.leave(key, true);
  });
  await vi.advanceTimersByTimeAsync(10_000);
  await done;
  return waited;
}

test('each failure costs more than the one before, up to a limit', async () => {
  const brake = new LoginBrake(options);
  const waits: number[] = [];
  for (let i = 0; i < 8; i++) waits.push(await fail(brake, 'a'));
  expect(waits).toEqual([0, 0, 0, 100, 200, 400, 400, 400]);
  expect(await fail(brake, 'b')).toBe(0);
});

test('attempts take turns, and those too far behind are refused', async () => {
  const brake = new LoginBrake(options);
  for (let i = 0; i < 6; i++) await fail(brake, 'a');
  const outcomes: boolean[] = [];
  for (let i = 0; i < 20; i++) {
    void brake.enter('a').then((entered) => {
      outcomes.push(entered);
      if (entered) brake.leave('a', true);
    });
  }
  await vi.advanceTimersByTimeAsync(0);
  expect(outcomes.filter((entered) => !entered).length).toBeGreaterThan(10);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(outcomes).toHaveLength(20);
  expect(outcomes.filter(Boolean).length).toBeLessThanOrEqual(5);
});

test('success costs nothing, however many at once', async () => {
  const brake = new LoginBrake(options);
  const all = Array.from({ length: 100 }, async () => {
    expect(await brake.enter('a')).toBe(true);
    brake.leave('a', false);
  });
  await Promise.all(all);
  expect(brake.size).toBe(0);
});

test('is forgotten after a while', async () => {
  const brake = new LoginBrake(options);
  for (let i = 0; i < 6; i++) await fail(brake, 'a');
  await vi.advanceTimersByTimeAsync(options.forgetMs);
  expect(await fail(brake, 'a')).toBe(0);
});

test('remembers no more than it may', async () => {
  const brake = new LoginBrake({ ...options, entries: 10 });
  for (let i = 0; i < 50; i++) await fail(brake, `from ${i}`);
  expect(brake.size).toBe(10);
});

test('guesses on a user hold nobody out', async () => {
  const brake = new LoginBrake(userBrake);
  for (let i = 0; i < 40; i++) await fail(brake, 'ann');
  const entered = Promise.all(Array.from({ length: 100 }, () => brake.enter('ann')));
  await vi.advanceTimersByTimeAsync(userBrake.maxMs);
  expect(await entered).not.toContain(false);
});
