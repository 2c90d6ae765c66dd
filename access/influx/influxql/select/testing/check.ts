// A list of queries and answers as a test: each is asked with rows in small chunks, in large ones, and
// with summaries of blocks, which must make no difference.

import { expect, test } from 'vitest';
import type { SelectContext } from '../context.ts';
import { NaiveStore } from './naive-store.ts';
import { shown } from './select.ts';

const settings = [
  { chunkRows: 2, blockRows: 0 },
  { chunkRows: 1000, blockRows: 0 },
  { chunkRows: 3, blockRows: 2 },
];

/** Data with times in seconds; an answer is `name{tags} columns: row; row`, series by series. */
export function check(
  title: string,
  data: string,
  cases: readonly (readonly [query: string, ...answer: string[]])[],
  over: Partial<SelectContext> = {},
): void {
  test.each(cases)(`${title}: %s`, async (query, ...lines) => {
    for (const options of settings) {
      const store = new NaiveStore(options).load(inNanoseconds(data));
      expect(await shown(query, store, over)).toBe(lines.join('\n'));
      expect(store.openScans).toBe(0);
    }
  });
}

function inNanoseconds(data: string): string {
  return data.replace(/(-?\d+)$/gm, (_, seconds: string) =>
    String(BigInt(seconds) * 1_000_000_000n),
  );
}
