import { expect, test } from 'vitest';
import { CollectionHistory, writeUnits } from './abase-units.ts';

/** The same numbers in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test('a write of 4 kB to three replicas is 6 units', () => {
  expect(writeUnits(4096, 3)).toBe(6);
  expect(writeUnits(2048, 1)).toBe(1);
});

test('knows the lengths of collections met lately, and guesses the others in the middle', () => {
  const random = seeded(7);
  const normal = (): number =>
    Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const lengths = Array.from({ length: 40 }, () => Math.ceil(100 * Math.exp(normal())));
  const history = new CollectionHistory();
  const errors: number[] = [];
  for (let call = 0; call < 400; call++) {
    const key = Math.floor(random() * lengths.length);
    const length = lengths[key]!;
    const hash = Math.imul(key + 1, 0x85ebca6b);
    if (call >= 100) errors.push(Math.abs(history.expectedLength(hash) - length) / length);
    history.observe(hash, length, length * 20);
  }
  errors.sort((a, b) => a - b);
  expect(errors[errors.length >> 1]).toBeLessThan(0.2);
  expect(history.expectedItemBytes).toBeCloseTo(20);
  const middle = history.expectedLength(0x7fffffff);
  expect(middle).toBeGreaterThan(30);
  expect(middle).toBeLessThan(300);
});

test('a collection that is not there is known to be empty', () => {
  const history = new CollectionHistory();
  history.observe(-5, 0, 0);
  expect(history.expectedLength(-5)).toBe(0);
  expect(history.expectedLength(6)).toBe(1);
});
