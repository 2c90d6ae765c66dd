// Invariants of commands that return random elements.

import { expect, test } from 'vitest';
import type { Harness } from './harness.ts';

/** Items of a flat answer of bulk strings, as harness.ts writes it. */
export function items(answer: string): string[] {
  return [...answer.matchAll(/"([^"]*)"/g)].map((match) => match[1]!);
}

/** `command` answers random elements of `all` elements when a count is put behind it. */
export function testRandomCounts(make: () => Harness, command: string, all: readonly string[]) {
  const size = all.length;
  // From few to nearly all: each way of choosing has its turn.
  const counts = [1, 2, Math.floor(size / 3), Math.floor(size / 2), size - 2, size - 1, size];

  test.each(counts)(`${command} %i answers that many different ones`, (count) => {
    const answered = items(make().run(`${command} ${count}`));
    expect(answered).toHaveLength(count);
    expect(new Set(answered).size).toBe(count);
    expect(all).toEqual(expect.arrayContaining(answered));
  });

  test(`${command} with a negative count answers that many, with repeats`, () => {
    const answered = items(make().run(`${command} ${-5 * size}`));
    expect(answered).toHaveLength(5 * size);
    expect(all).toEqual(expect.arrayContaining(answered));
    expect(new Set(answered).size).toBeLessThanOrEqual(size);
  });

  test.each(['', `${Math.floor(size / 4)}`, `${Math.floor(size / 2)}`, '-7'])(
    `${command} %s gives each the same chance`,
    (count) => {
      const harness = make();
      const times = new Map(all.map((element) => [element, 0]));
      let total = 0;
      for (let i = 0; i < 2000; i++) {
        for (const element of items(harness.run(`${command} ${count}`))) {
          times.set(element, times.get(element)! + 1);
          total++;
        }
      }
      const expected = total / size;
      // Seven standard deviations: it does not happen by chance.
      const tolerance = 7 * Math.sqrt(expected);
      for (const seen of times.values()) expect(Math.abs(seen - expected)).toBeLessThan(tolerance);
    },
  );
}

/** Walks with a scan command to the end, and returns all items seen and how many calls it took. */
export function scanAll(harness: Harness, command: string, options: string): [string[], number] {
  const seen: string[] = [];
  let cursor = '0';
  let calls = 0;
  do {
    const [next, ...page] = items(harness.run(`${command} ${cursor} ${options}`));
    cursor = next!;
    seen.push(...page);
    calls++;
  } while (cursor !== '0');
  return [seen, calls];
}
