// Values of a tag as ascending texts.

import { compareText } from '../../../universal-row/series/series-key.ts';
import { sliceElements, type Slices, sortedInSlices } from '../../../universal-row/slices.ts';
import type { ByteArena } from './byte-arena.ts';
import { valuesByText } from './key-ranks.ts';
import type { Tag } from './tag.ts';

// From here on sorting their bytes is worth it.
const manyValues = 1000;

/** Texts of the values with 1 in `chosen`, by value number; of all when it is undefined. */
export function* sortedTexts(
  tag: Tag,
  arena: ByteArena,
  chosen: Uint8Array | undefined,
): Slices<string[]> {
  const { values } = tag;
  const texts: string[] = [];
  // The order of escaped bytes differs from that of texts where a backslash stands before another
  // byte.
  if (values.count >= manyValues && !values.hasEscapes) {
    const ordered = yield* valuesByText(tag, arena);
    for (let i = 0; i < ordered.length; i++) {
      const v = ordered[i]!;
      if (chosen === undefined || chosen[v] === 1) texts.push(values.text(v));
      if (i % sliceElements === sliceElements - 1) yield;
    }
    return texts;
  }
  const { count } = values;
  for (let v = 1; v <= count; v++) {
    if (chosen === undefined || chosen[v] === 1) texts.push(values.text(v));
    if (v % sliceElements === 0) yield;
  }
  return yield* sortedInSlices(texts, compareText);
}
