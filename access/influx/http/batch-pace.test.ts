import { expect, test } from 'vitest';
import { BatchPace } from './batch-pace.ts';

function rowsAfter(batches: number, msPerRow: number, pace = new BatchPace()): number {
  for (let i = 0; i < batches; i++) pace.took(pace.rows, pace.rows * msPerRow);
  return pace.rows;
}

test('batches grow while they take little time, and shrink where they take long', () => {
  const pace = new BatchPace();
  expect(rowsAfter(1, 0.001, pace)).toBe(1000);
  expect(rowsAfter(20, 0.0001, pace)).toBe(8000);
  expect(rowsAfter(1, 0.01, pace)).toBe(4000);
  expect(rowsAfter(20, 1, pace)).toBe(250);
});

test('a batch takes between three and six milliseconds in the long run', () => {
  for (const msPerRow of [0.0006, 0.001, 0.004, 0.02]) {
    const ms = rowsAfter(20, msPerRow) * msPerRow;
    expect(ms).toBeGreaterThanOrEqual(3);
    expect(ms).toBeLessThanOrEqual(6);
  }
});

test('a small batch says nothing of larger ones', () => {
  const pace = new BatchPace();
  for (let i = 0; i < 10; i++) pace.took(10, 0.01);
  expect(pace.rows).toBe(500);
});
