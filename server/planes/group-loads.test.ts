import { expect, test } from 'vitest';
import { collectMs, GroupLoads } from './group-loads.ts';

test('units of a whole minute are told in the next one', () => {
  let now = 0;
  const loads = new GroupLoads(() => now);
  const pass = (units: number): void => {
    now += collectMs;
    loads.add(new Map([[16, units]]));
  };
  for (let i = 0; i < 5; i++) pass(200);
  expect(loads.unitsOf(16)).toBeUndefined();
  // The minute that began has its own.
  for (let i = 0; i < 6; i++) pass(600);
  expect(loads.unitsOf(16)).toBeCloseTo(20);
  pass(600);
  expect(loads.unitsOf(16)).toBeCloseTo(60);
  expect(loads.unitsOf(17)).toBeUndefined();
  loads.forget(16);
  expect(loads.unitsOf(16)).toBeUndefined();
});

test('a clock that is set back is no time', () => {
  let now = 600_000;
  const loads = new GroupLoads(() => now);
  now = 300_000;
  loads.add(new Map([[16, 1e6]]));
  now += collectMs;
  loads.add(new Map([[16, 100]]));
  now = 360_000;
  expect(loads.unitsOf(16)).toBeCloseTo(10);
});
