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

test('minutes of a span are told, those without a report as 0', () => {
  let now = 0;
  const loads = new GroupLoads(() => now);
  for (let i = 0; i < 17; i++) {
    now += collectMs;
    loads.add(new Map([[16, i < 5 ? 200 : 600]]));
  }
  now += 120_000;
  expect(loads.minutesOf(16, { from: 0, to: 4 })).toEqual([20, 60, 60, 0]);
  expect(loads.minutesOf(17, { from: 0, to: 2 })).toEqual([0, 0]);
});
