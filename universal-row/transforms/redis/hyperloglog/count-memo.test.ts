import { expect, test } from 'vitest';
import { memoizedCount } from './count-memo.ts';
import { estimateOf } from './estimate.ts';
import { hashed, hashElement } from './hash.ts';
import { Sketch } from './sketch.ts';

function add(sketch: Sketch, element: string): void {
  const bytes = Buffer.from(element);
  hashElement(bytes, 0, bytes.length);
  sketch.raise(hashed.index, hashed.count);
}

test('counts once for the same registers, whatever key has them been under before', () => {
  const sketch = new Sketch();
  sketch.clear();
  sketch.toDense();
  let counted = 0;
  const count = (key: string): bigint | undefined => {
    const name = Buffer.from(key);
    return memoizedCount(sketch.b, 0, name, 0, name.length, () => {
      counted++;
      return estimateOf(sketch.b, 0, sketch.length);
    });
  };
  const seen = new Set<bigint | undefined>();
  for (let i = 0; i < 50; i++) {
    for (let k = 0; k < 20; k++) add(sketch, `${i} ${k}`);
    const exact = estimateOf(sketch.b, 0, sketch.length);
    expect(count('visits')).toBe(exact);
    expect(count('visits')).toBe(exact);
    seen.add(exact);
  }
  expect(seen.size).toBe(50);
  expect(counted).toBe(50);
  // More keys than there are places for.
  for (let i = 0; i < 1000; i++) expect(count(`key ${i}`)).toBe(count('visits'));
});
