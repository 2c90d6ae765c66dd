// Values of a tag as ascending texts.

import { compareText } from '../../../universal-row/series/series-key.ts';
import type { ByteArena } from './byte-arena.ts';
import { valuesByText } from './key-ranks.ts';
import type { Tag } from './tag.ts';

// From here on sorting their bytes is worth it.
const manyValues = 1000;

/** Of the values with 1 in `chosen`, by value number; of all when it is undefined. */
export function sortedTexts(tag: Tag, arena: ByteArena, chosen: Uint8Array | undefined): string[] {
  const { values } = tag;
  const texts: string[] = [];
  // The order of the bytes is not that of the texts where a backslash stands before another byte.
  if (values.count >= manyValues && !values.hasEscapes) {
    for (const v of valuesByText(tag, arena)) {
      if (chosen === undefined || chosen[v] === 1) texts.push(values.text(v));
    }
    return texts;
  }
  for (let v = 1; v <= values.count; v++) {
    if (chosen === undefined || chosen[v] === 1) texts.push(values.text(v));
  }
  return texts.sort(compareText);
}
