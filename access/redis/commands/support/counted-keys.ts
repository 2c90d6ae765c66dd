// Where the keys are in commands that say how many there are: `ZUNION 2 a b`, `BZMPOP 0 1 a MIN`.

import type { KeyFinder } from '../spec.ts';

/**
 * Keys counted by the word `countWord` and following it, and before them the one in `storeWord` if not 0. None when
 * the count is wrong: the command will be refused.
 */
export function countedKeys(countWord: number, storeWord = 0): KeyFinder {
  return (args) => {
    const count = countWord < args.count ? args.integerOrNaN(countWord) : NaN;
    if (!(count >= 1 && count <= args.count - countWord - 1)) return [];
    const words = storeWord === 0 ? [] : [storeWord];
    for (let i = 1; i <= count; i++) words.push(countWord + i);
    return words;
  };
}
