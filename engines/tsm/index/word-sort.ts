// Sorts items by keys that are sequences of 32-bit words, word by word from the first: a word and
// its item make one 64-bit number, and typed arrays sort numbers fastest, without a call per
// comparison.

import { sliceElements, type Slices } from '../../../universal-row/slices.ts';

export interface WordSource {
  /** The `depth`-th word of an item's key. Not asked for beyond a last one. */
  word(item: number, depth: number): number;
  /** Whether keys equal up to and including this word are equal. */
  isLast(word: number): boolean;
}

// Fewer are sorted one by one.
const fewItems = 12;
/** Pairs that are sorted in one go: some milliseconds. */
const sortedAtOnce = 32 * 1024;

/** Sorts in place. Of equal keys the lower item comes first, when it did before. */
export function* wordSort(items: Uint32Array, words: WordSource): Slices<void> {
  const pairs = new BigUint64Array(items.length);
  // The halves of the pairs, the lower one first.
  const halves = new Uint32Array(pairs.buffer);
  // Ranges yet to be sorted: start, end, depth. Not recursion: a key may have thousands of words.
  const ranges = [0, items.length, 0];
  let looked = 0;
  while (ranges.length > 0) {
    const sharedFrom = ranges.pop()!;
    const end = ranges.pop()!;
    const start = ranges.pop()!;
    looked += end - start;
    if (looked > sliceElements) {
      looked = 0;
      yield;
    }
    if (end - start <= fewItems) {
      insertionSort(items, start, end, sharedFrom, words);
      continue;
    }
    const depth = yield* fillPairs(items, start, end, sharedFrom, words, halves);
    if (depth < 0) continue;
    yield* sortPairs(pairs.subarray(start, end));
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

/** Runs that are sorted in one go, and then merged. */
function* sortPairs(pairs: BigUint64Array): Slices<void> {
  const count = pairs.length;
  if (count <= sortedAtOnce) {
    pairs.sort();
    return;
  }
  for (let start = 0; start < count; start += sortedAtOnce) {
    pairs.subarray(start, start + sortedAtOnce).sort();
    yield;
  }
  let from = halvesOf(pairs);
  let to = new Uint32Array(2 * count);
  for (let length = sortedAtOnce; length < count; length *= 2) {
    for (let start = 0; start < count; start += 2 * length) {
      yield* merge(from, to, start, Math.min(start + length, count), length);
    }
    [from, to] = [to, from];
  }
  const halves = halvesOf(pairs);
  if (from.buffer !== halves.buffer) halves.set(from);
}

function halvesOf(pairs: BigUint64Array): Uint32Array<ArrayBuffer> {
  return new Uint32Array(pairs.buffer as ArrayBuffer, pairs.byteOffset, 2 * pairs.length);
}

/** Pairs [start, middle) and so many from `middle` on. */
function* merge(
  from: Uint32Array,
  to: Uint32Array,
  start: number,
  middle: number,
  length: number,
): Slices<void> {
  const end = Math.min(middle + length, from.length / 2);
  let a = start;
  let b = middle;
  for (let at = start; at < end; ) {
    const stop = Math.min(end, at + sortedAtOnce);
    for (; at < stop; at++) {
      let isFirst = b >= end;
      if (!isFirst && a < middle) {
        const x = from[2 * a + 1]!;
        const y = from[2 * b + 1]!;
        isFirst = x < y || (x === y && from[2 * a]! < from[2 * b]!);
      }
      const next = isFirst ? a++ : b++;
      to[2 * at] = from[2 * next]!;
      to[2 * at + 1] = from[2 * next + 1]!;
    }
    yield;
  }
}

/** Pairs of the first words that differ, and their depth; -1 when none do. */
function* fillPairs(
  items: Uint32Array,
  start: number,
  end: number,
  from: number,
  words: WordSource,
  halves: Uint32Array,
): Slices<number> {
  let looked = 0;
  for (let depth = from; ; depth++) {
    const first = words.word(items[start]!, depth);
    let same = true;
    for (let i = start; i < end; ) {
      const stop = Math.min(end, i + 4 * sliceElements);
      looked += stop - i;
      for (; i < stop; i++) {
        const word = words.word(items[i]!, depth);
        halves[2 * i] = items[i]!;
        halves[2 * i + 1] = word;
        if (word !== first) same = false;
      }
      if (looked < 4 * sliceElements) continue;
      looked = 0;
      yield;
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
