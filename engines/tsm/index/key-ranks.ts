// All series of a measurement in the order of their keys, without building the keys: the values of
// each tag are ranked, and then series are sorted by ranks. As words, a series is
//
//   rank of tag key, rank of value | rank of tag key, rank of value | ... | 0
//
// A rank orders bytes as they appear in the key: `key=` of a tag, and of a value also the comma
// behind it, or nothing where the key ends: 'a!' comes before 'a,' but after 'a'.

import type { Slices } from '../../../universal-row/slices.ts';
import type { MeasurementIndex } from './measurement-index.ts';
import type { SeriesRows } from './series-rows.ts';
import type { Tag } from './tag.ts';
import type { ByteArena } from './byte-arena.ts';
import { type WordSource, wordSort } from './word-sort.ts';

const comma = 0x2c;

/** Walks the series that exist at the start; more may be added meanwhile. */
export function* ordinalsByKey(
  measurement: MeasurementIndex,
  rows: SeriesRows,
): Slices<Uint32Array> {
  const ordinals = new Uint32Array(measurement.series.length);
  for (let o = 0; o < ordinals.length; o++) ordinals[o] = o;
  const isUniform = measurement.shapes.length === 1;
  const ranks = yield* tagRanks(measurement, rows.arena);
  yield* wordSort(ordinals, new KeyWords(measurement, rows, ranks, isUniform));
  return ordinals;
}

/** By bytes, as if at the end of a key. */
export function* valuesByText(tag: Tag, arena: ByteArena): Slices<Uint32Array> {
  const items = new Uint32Array(tag.values.count);
  for (let i = 0; i < items.length; i++) items[i] = (i + 1) * 2;
  yield* wordSort(items, new ValueWords(tag, arena));
  return items.map((item) => item >>> 1);
}

/** Items are value numbers times two, plus one where a comma follows. */
class ValueWords implements WordSource {
  readonly #tag: Tag;
  readonly #arena: ByteArena;

  constructor(tag: Tag, arena: ByteArena) {
    this.#tag = tag;
    this.#arena = arena;
  }

  /** Three bytes, and how many of them there are: a text comes before all that it begins. */
  word(item: number, depth: number): number {
    this.#tag.values.locate(item >>> 1);
    const { buf, start, length } = this.#arena;
    const at = depth * 3;
    const left = length - at;
    if (left >= 3) {
      const i = start + at;
      return ((buf[i]! << 24) | (buf[i + 1]! << 16) | (buf[i + 2]! << 8) | 3) >>> 0;
    }
    let word = 0;
    for (let i = 0; i < left; i++) word |= buf[start + at + i]! << (24 - 8 * i);
    let bytes = Math.max(left, 0);
    if ((item & 1) === 1 && left >= 0) {
      word |= comma << (24 - 8 * left);
      bytes++;
    }
    return (word | bytes) >>> 0;
  }

  isLast(word: number): boolean {
    return (word & 0xff) < 3;
  }
}

/** Ranks of a tag's key and values in comparisons. From 1. */
interface TagRanks {
  key: number;
  /** By value number times `stride`, plus one where a comma follows and `stride` is 2. */
  values: Uint32Array;
  stride: number;
}

class KeyWords implements WordSource {
  readonly #measurement: MeasurementIndex;
  readonly #rows: SeriesRows;
  readonly #ranks: TagRanks[];
  /** All series have the same tags, so these tell nothing apart. */
  readonly #isUniform: boolean;

  constructor(
    measurement: MeasurementIndex,
    rows: SeriesRows,
    ranks: TagRanks[],
    isUniform: boolean,
  ) {
    this.#measurement = measurement;
    this.#rows = rows;
    this.#ranks = ranks;
    this.#isUniform = isUniform;
  }

  word(ordinal: number, depth: number): number {
    const tags = this.#rows.shapeOf(this.#measurement.series.array[ordinal]!).tags;
    const index = this.#isUniform ? depth : depth >>> 1;
    if (index >= tags.length) return 0;
    const tag = tags[index]!;
    const ranks = this.#ranks[tag.number]!;
    if (!this.#isUniform && (depth & 1) === 0) return ranks.key;
    const value = tag.column.get(ordinal);
    if (ranks.stride === 1) return ranks.values[value]!;
    return ranks.values[2 * value + (index < tags.length - 1 ? 1 : 0)]!;
  }

  isLast(word: number): boolean {
    return word === 0;
  }
}

function* tagRanks(measurement: MeasurementIndex, arena: ByteArena): Slices<TagRanks[]> {
  const tags = [...measurement.tags];
  const isLastSomewhere = new Uint8Array(tags.length);
  const isFollowedSomewhere = new Uint8Array(tags.length);
  for (const shape of measurement.shapes) {
    shape.tags.forEach((tag, i) => {
      (i === shape.tags.length - 1 ? isLastSomewhere : isFollowedSomewhere)[tag.number] = 1;
    });
  }
  const ranks: TagRanks[] = [];
  for (const tag of tags) {
    const endings = isLastSomewhere[tag.number] === 1 ? [0] : [];
    if (isFollowedSomewhere[tag.number] === 1) endings.push(1);
    ranks.push({ key: 0, ...(yield* valueRanks(tag, arena, endings)) });
  }
  const byKey = tags.map((tag) => tag).sort((a, b) => Buffer.compare(a.prefix, b.prefix));
  byKey.forEach((tag, i) => {
    ranks[tag.number]!.key = i + 1;
  });
  return ranks;
}

function* valueRanks(
  tag: Tag,
  arena: ByteArena,
  endings: readonly number[],
): Slices<{ values: Uint32Array; stride: number }> {
  const count = tag.values.count;
  const stride = endings.length;
  const items = new Uint32Array(count * stride);
  let at = 0;
  for (let v = 1; v <= count; v++) for (const ending of endings) items[at++] = v * 2 + ending;
  yield* wordSort(items, new ValueWords(tag, arena));
  const values = new Uint32Array((count + 1) * stride);
  for (let i = 0; i < items.length; i++) {
    values[stride === 2 ? items[i]! : items[i]! >>> 1] = i + 1;
  }
  return { values, stride };
}
