// Ascending lists of names as one, in which each name is once.

import { type Slices, sliceElements, sortedInSlices } from '../../../universal-row/slices.ts';
import { compareText } from '../../../universal-row/series/series-key.ts';

export function* mergedNames(lists: readonly (readonly string[])[]): Slices<string[]> {
  const filled = lists.filter(({ length }) => length > 0);
  if (filled.length <= 1) return [...(filled[0] ?? [])];
  const names = new Set<string>();
  for (const list of filled) {
    for (let i = 0; i < list.length; i++) {
      names.add(list[i]!);
      if (i % sliceElements === sliceElements - 1) yield;
    }
  }
  return yield* sortedInSlices([...names], compareText);
}
