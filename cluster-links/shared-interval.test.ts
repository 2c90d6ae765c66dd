import { afterEach, expect, test, vi } from 'vitest';
import { everyInterval } from './shared-interval.ts';

afterEach(() => void vi.useRealTimers());

test('those of one interval have one timer, which stops with the last of them', () => {
  vi.useFakeTimers();
  const ticks: string[] = [];
  const stopA = everyInterval(100, () => ticks.push('a'));
  vi.advanceTimersByTime(50);
  const stopB = everyInterval(100, () => ticks.push('b'));
  const stopC = everyInterval(70, () => ticks.push('c'));
  expect(vi.getTimerCount()).toBe(2);
  vi.advanceTimersByTime(50);
  expect(ticks).toEqual(['a', 'b']);
  vi.advanceTimersByTime(20);
  expect(ticks).toEqual(['a', 'b', 'c']);
  stopC();
  stopA();
  stopA();
  vi.advanceTimersByTime(80);
  expect(ticks).toEqual(['a', 'b', 'c', 'b']);
  stopB();
  expect(vi.getTimerCount()).toBe(0);
  const stop = everyInterval(100, () => ticks.push('d'));
  stopB();
  vi.advanceTimersByTime(100);
  expect(ticks.at(-1)).toBe('d');
  stop();
  expect(vi.getTimerCount()).toBe(0);
});

test('a member may end, and end others, in its turn', () => {
  vi.useFakeTimers();
  const ticks: string[] = [];
  const stops: (() => void)[] = [];
  for (const name of ['a', 'b', 'c']) {
    stops.push(
      everyInterval(100, () => {
        ticks.push(name);
        if (name === 'a') for (const stop of stops.slice(0, 2)) stop();
      }),
    );
  }
  vi.advanceTimersByTime(200);
  expect(ticks).toEqual(['a', 'c', 'c']);
  stops[2]!();
  expect(vi.getTimerCount()).toBe(0);
});
