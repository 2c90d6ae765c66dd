// Sorts items by keys that are sequences of 32-bit words, word by word from the first: a word and its item
// make one 64-bit number, and numbers are what a typed array sorts fastest, without a call per comparison.

export interface WordSource {
  /** The `depth`-th word of an item's key. Not asked for beyond a last one. */
  word(item: number, depth: number): number;
  /** Whether keys equal up to and including this word are equal. */
  isLast(word: number): boolean;
}

// Fewer are sorted one by one.
const fewItems = 12;

/** Sorts in place. Of equal keys the lower item comes first, when it did before. */
export function wordSort(items: Uint32Array, words: WordSource): void {
  const pairs = new BigUint64Array(items.length);
  // The halves of the pairs, the lower one first.
  const halves = new Uint32Array(pairs.buffer);
  // Ranges yet to be sorted: start, end, depth. Not recursion: a key may have thousands of words.
  const ranges = [0, items.length, 0];
  while (ranges.length > 0) {
    const sharedFrom = ranges.pop()!;
    const end = ranges.pop()!;
    const start = ranges.pop()!;
    if (end - start <= fewItems) {
      insertionSort(items, start, end, sharedFrom, words);
      continue;
    }
    const depth = fillPairs(items, start, end, sharedFrom, words, halves);
    if (depth < 0) continue;
    pairs.subarray(start, end).sort();
    let run = start;
    for (let i = start; i < end; i++) {
      items[i] = halves[2 * i]!;
      const word = halves[2 * i + 1]!;
      if (i + 1 < end && halves[2 * i + 3] === word) continue;
      if (i > run && !words.isLast(word)) ranges.push(run, i + 1, depth + 1);
      run = i + 1;
    }
  }
}

/** Pairs of the first words that differ, and their depth; -1 when none do. */
function fillPairs(
  items: Uint32Array,
  start: number,
  end: number,
  from: number,
  words: WordSource,
  halves: Uint32Array,
): number {
  for (let depth = from; ; depth++) {
    const first = words.word(items[start]!, depth);
    let same = true;
    for (let i = start; i < end; i++) {
      const word = words.word(items[i]!, depth);
      halves[2 * i] = items[i]!;
      halves[2 * i + 1] = word;
      if (word !== first) same = false;
    }
    if (!same) return depth;
    if (words.isLast(first)) return -1;
  }
}

function insertionSort(
  items: Uint32Array,
  start: number,
  end: number,
  depth: number,
  words: WordSource,
): void {
  for (let i = start + 1; i < end; i++) {
    const item = items[i]!;
    let at = i;
    for (; at > start && isBefore(item, items[at - 1]!, depth, words); at--) {
      items[at] = items[at - 1]!;
    }
    items[at] = item;
  }
}

function isBefore(a: number, b: number, from: number, words: WordSource): boolean {
  for (let depth = from; ; depth++) {
    const x = words.word(a, depth);
    const y = words.word(b, depth);
    if (x !== y) return x < y;
    if (words.isLast(x)) return false;
  }
}
