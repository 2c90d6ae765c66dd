import { expect, test } from 'vitest';
import { RateLimit } from './rate-limit.ts';

let now = 0;
const limitOf = (perSecond: number): RateLimit =>
  new RateLimit(
    () => perSecond,
    2,
    () => now,
  );

test('what was not used may be used at once, then so many a second', () => {
  const limit = limitOf(5);
  const take = (caller: string, times: number): number[] =>
    Array.from({ length: times }, () => limit.take(caller));
  expect(take('a', 10)).toEqual(Array(10).fill(0));
  expect(limit.take('a')).toBeGreaterThan(0);
  expect(limit.take('b')).toBe(0);
  now += 400;
  expect(take('a', 3)).toEqual([0, 0, 1]);
  now += 60_000;
  expect(take('a', 11).filter((after) => after === 0)).toHaveLength(10);
});

test('it says when to come again', () => {
  const limit = limitOf(0.1);
  expect(limit.take('a')).toBe(0);
  expect(limit.take('a')).toBe(10);
});

test('0 is no limit', () => {
  const limit = limitOf(0);
  for (let n = 0; n < 1000; n++) expect(limit.take('a')).toBe(0);
});

test('many callers take bounded room, and those who ask are remembered', () => {
  const limit = limitOf(1);
  expect([limit.take('a'), limit.take('a'), limit.take('a') > 0]).toEqual([0, 0, true]);
  for (let n = 0; n < 9_000; n++) limit.take(`n${n}`);
  expect(limit.take('a')).toBeGreaterThan(0);
  for (let n = 0; n < 10_000; n++) limit.take(`m${n}`);
  expect(limit.take('a')).toBe(0);
});
