import { expect, test } from 'vitest';
import { qualityOf } from './quality.ts';

const tried = [
  { name: 'GET', size: 64 },
  { name: 'GET', size: 512 },
  { name: 'SET', size: 64 },
];
const changes = { cpu: 0 };

test('a table that is right on a machine of another speed is right', () => {
  const found = [1, 2, 5, 3].map((micros) => ({ measured: 2 * micros, charged: micros }));
  const mixed = [10, 20, 40, 7].map((micros) => ({ measured: 3 * micros, charged: micros }));
  const quality = qualityOf({ tried, found, mixed, referenceWindows: 1, changes });
  expect(quality.slowness).toEqual({ alone: 2, mixed: 3 });
  expect(quality.medianError).toBe(0);
  expect(quality.r2).toBe(1);
  expect(quality.mixed).toHaveLength(3);
});

test('errors are shares of what was measured, by operation', () => {
  const found = [
    { measured: 10, charged: 12 },
    { measured: 10, charged: 9 },
    { measured: 10, charged: 5 },
    { measured: 1, charged: 1 },
  ];
  const mixed = [
    { measured: 10, charged: 20 },
    { measured: 20, charged: 10 },
    { measured: 1, charged: 1 },
  ];
  const quality = qualityOf({ tried, found, mixed, referenceWindows: 1, changes });
  expect(quality.byOperation['GET']!.median).toBeCloseTo(0.15);
  expect(quality.byOperation['GET']!.worst).toBeCloseTo(0.2);
  expect(quality.byOperation['SET']!.median).toBeCloseTo(0.5);
  expect(quality.medianError).toBeCloseTo(0.2);
  expect(quality.r2).toBeLessThan(0);
});
