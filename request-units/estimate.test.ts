import { expect, test } from 'vitest';
import { ReadHistory, StatementHistory } from './estimate.ts';

/** The same numbers in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test('begins with 1 kB that nobody has in a cache', () => {
  const history = new ReadHistory();
  expect(history).toMatchObject({ expectedBytes: 1024, expectedHit: 0, readUnits: 0.5 });
});

test('what comes from a cache is cheap, never free', () => {
  const history = new ReadHistory();
  for (let i = 0; i < 150; i++) history.observe(4096, true);
  expect(history).toMatchObject({ expectedBytes: 4096, expectedHit: 1, readUnits: 0.1 });
  expect(history.between(0.2, 3)).toBeCloseTo(0.2);
});

test('follows a cache that grows cold within the window', () => {
  const random = seeded(1);
  const history = new ReadHistory();
  for (let i = 0; i < 500; i++) history.observe(2048, true);
  const units: number[] = [];
  for (let i = 0; i < 120; i++) {
    history.observe(2048, random() < 0.02);
    units.push(history.readUnits);
  }
  // Soon by the last few reads, and surely once the window has gone by.
  expect(units[fastReads]).toBeGreaterThan(0.85);
  expect(Math.abs(units[100]! - 0.98)).toBeLessThan(0.098);
});

const fastReads = 10;

test('the last window alone counts', () => {
  const history = new ReadHistory();
  for (let i = 0; i < 100; i++) history.observe(1_000_000, false);
  for (let i = 0; i < 100; i++) history.observe(100, i % 2 === 0);
  expect(history.expectedBytes).toBe(100);
  expect(history.expectedHit).toBe(0.5);
});

test('statements of a kind cost what those before them did, about', () => {
  const history = new StatementHistory();
  expect(history.expected(1)).toBe(1);
  history.observe(1, 100);
  expect(history.expected(1)).toBe(100);
  expect(history.expected(2)).toBe(1);
  for (let i = 0; i < 30; i++) history.observe(1, 20);
  expect(history.expected(1)).toBeCloseTo(20, 0);
});

test('of kinds those are forgotten that were not met for longest', () => {
  const history = new StatementHistory();
  for (let kind = 0; kind < 10_000; kind++) {
    history.observe(kind, 5);
    history.observe(0, 7);
  }
  expect(history.expected(0)).toBeCloseTo(7);
  expect([history.expected(9999), history.expected(1)]).toEqual([5, 1]);
});
