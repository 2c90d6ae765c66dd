import { expect, test } from 'vitest';
import type { Ref } from '../plan/plan.ts';
import type { Chunk } from '../vector.ts';
import { pending } from '../vector.ts';
import { merge } from './merge.ts';

test('pieces of many columns have few rows', () => {
  const rows = 5000;
  const input = () => {
    let isRead = false;
    const chunk: Chunk = {
      base: 0,
      times: Float64Array.from({ length: rows }, (_, i) => i),
      count: rows,
      columns: [],
    };
    return {
      next: () => {
        if (isRead) return undefined;
        isRead = true;
        return chunk;
      },
    };
  };
  const sizes = (columns: number): number[] => {
    const refs = Array.from(
      { length: columns },
      (_, i): Ref => ({ name: `f${i}`, type: 'float', isCast: false }),
    );
    const stream = merge([input(), input()], refs, false);
    const found: number[] = [];
    for (let piece = stream.next(); piece !== undefined; piece = stream.next()) {
      if (piece !== pending) found.push(piece.count);
    }
    expect(found.reduce((sum, size) => sum + size, 0)).toBe(2 * rows);
    return found;
  };
  expect(Math.max(...sizes(10))).toBe(4096);
  expect(Math.max(...sizes(10_000))).toBe(104);
});
