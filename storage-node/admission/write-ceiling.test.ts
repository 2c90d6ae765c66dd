import { expect, test } from 'vitest';
import { WriteCeiling } from './write-ceiling.ts';

test('it is half while level 0 is compacted, and all of it when that is over', () => {
  const ceiling = new WriteCeiling();
  const check = (files: number, compactedBytes: number, part: number): void => {
    ceiling.observe({ files, flushedBytes: 0, compactedBytes });
    expect([files, compactedBytes, ceiling.part]).toEqual([files, compactedBytes, part]);
  };
  check(0, 0, 1);
  check(3, 0, 1);
  check(4, 0, 0.5);
  check(6, 0, 0.5);
  // It has ended since the last look.
  check(1, 1000, 0.5);
  check(1, 1000, 1);
  // A whole one lay between two looks.
  check(1, 2000, 0.5);
  check(2, 2000, 1);
});
