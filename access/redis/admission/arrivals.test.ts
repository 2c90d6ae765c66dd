import { expect, test } from 'vitest';
import { Arrivals } from './arrivals.ts';

test('tells when the bytes of a command came', () => {
  const arrivals = new Arrivals();
  expect(arrivals.at(10)).toBeUndefined();
  arrivals.note(0, 100, 1000);
  arrivals.note(0, 200, 1100);
  expect(arrivals.at(1)).toBe(1000);
  expect(arrivals.at(100)).toBe(1000);
  expect(arrivals.at(101)).toBe(1100);
  expect(arrivals.at(201)).toBeUndefined();
});

test('what came shortly after counts as come with it', () => {
  const arrivals = new Arrivals();
  arrivals.note(0, 100, 1000);
  arrivals.note(0, 200, 1049);
  arrivals.note(0, 300, 1050);
  expect(arrivals.at(150)).toBe(1000);
  expect(arrivals.at(250)).toBe(1050);
});

test('forgets what has been run', () => {
  const arrivals = new Arrivals();
  arrivals.note(0, 100, 1000);
  arrivals.note(100, 200, 1001);
  expect(arrivals.at(50)).toBe(1001);
  expect(arrivals.at(150)).toBe(1001);
});

test('never says that a byte came later than it did, however many came', () => {
  const arrivals = new Arrivals();
  for (let i = 1; i <= 1000; i++) arrivals.note(0, i * 10, i * 60);
  for (let i = 1; i <= 1000; i++) expect(arrivals.at(i * 10)).toBeLessThanOrEqual(i * 60);
});
