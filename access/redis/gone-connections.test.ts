import { afterEach, expect, test, vi } from 'vitest';
import { GoneConnections } from './gone-connections.ts';

afterEach(() => vi.restoreAllMocks());

test('connections are disposed of in order, some in each round of the event loop', async () => {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const gone = new GoneConnections();
  const seen: (number | string)[] = [];
  for (let n = 0; n < 5; n++) {
    gone.add({
      dispose: () => {
        seen.push(n);
        now += 2.5;
        if (n === 4) gone.add({ dispose: () => seen.push('late') });
      },
    });
  }
  const leftAfter: number[] = [];
  while (gone.waiting > 0) {
    await new Promise(setImmediate);
    leftAfter.push(gone.waiting);
  }
  expect(seen).toEqual([0, 1, 2, 3, 4, 'late']);
  expect(leftAfter[0]).toBe(3);
});
