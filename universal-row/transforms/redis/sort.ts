// SORT: the elements of a list, set or sorted set, ordered by their own value or by values of other
// rows, returned as they are or as values of other rows, or stored as a list.

import { type Arguments, isRounded, parseFloatBytes } from '../../arguments.ts';
import { emptyBytes } from '../../bytes.ts';
import { CommandError, syntaxError, wrongType } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { isLong, step, type Steps, type StepTransform } from '../../steps.ts';
import {
  eachElementInSteps,
  eachFieldInSteps,
  eachOf,
  eachRankInSteps,
  eachSized,
  sorted as sortedInSteps,
} from './support/long-walks.ts';
import { patternOf, resolve, type SortPattern } from './support/sort-pattern.ts';
import { createRow, dropRow } from './support/typed-row.ts';

const notDoubles = new CommandError("ERR One or more scores can't be converted into double");

interface SortOptions {
  descending: boolean;
  alpha: boolean;
  /** Keeps the order they are in: BY something that is no pattern. */
  unsorted: boolean;
  offset: number;
  /** Negative for no limit. */
  limit: number;
  by: SortPattern | undefined;
  gets: SortPattern[];
  storeWord: number;
}

interface Item {
  bytes: Buffer;
  score: number;
  /** Sort key with ALPHA; undefined when the pattern resolves to nothing. */
  weight: Buffer | undefined;
}

function parseOptions(args: Arguments, mayStore: boolean): SortOptions {
  const options: SortOptions = {
    descending: false,
    alpha: false,
    unsorted: false,
    offset: 0,
    limit: -1,
    by: undefined,
    gets: [],
    storeWord: 0,
  };
  for (let i = 2; i < args.count; i++) {
    const left = args.count - i - 1;
    if (args.is(i, 'ASC')) options.descending = false;
    else if (args.is(i, 'DESC')) options.descending = true;
    else if (args.is(i, 'ALPHA')) options.alpha = true;
    else if (left >= 2 && args.is(i, 'LIMIT')) {
      options.offset = args.integer(++i);
      options.limit = args.integer(++i);
    } else if (left >= 1 && mayStore && args.is(i, 'STORE')) options.storeWord = ++i;
    else if (left >= 1 && args.is(i, 'BY')) {
      options.by = patternOf(args.bytes(++i));
      // Once said it holds, even if another BY follows.
      if (options.by.star < 0) options.unsorted = true;
    } else if (left >= 1 && args.is(i, 'GET')) options.gets.push(patternOf(args.bytes(++i)));
    else throw syntaxError;
  }
  return options;
}

/** SORT of very many elements. */
function* runInSteps(rows: Rows, args: Arguments, reply: Reply, mayStore: boolean): Steps {
  const options = parseOptions(args, mayStore);
  const find = (): Row => rows.find(args.buf, args.starts[1]!, args.lens[1]!);
  const row = find();
  const shape = rows.shape(row);
  orderStored(options, shape, args);
  const size = rows.count(row);
  // To its final size at once: a list that grows is copied in one step, with a note for the collector of each young item.
  const items = Array<Item>(size);
  let count = 0;
  const undo = {
    mark: () => count,
    rollback: (mark: number) => {
      count = mark;
    },
  };
  const add = (b: Buffer, s: number, n: number): void => {
    items[count++] = { bytes: Buffer.from(b.subarray(s, s + n)), score: 0, weight: undefined };
  };
  const reverse = options.unsorted && options.descending;
  if (shape === Shape.set) yield* eachFieldInSteps(rows, find, add, undo);
  else if (shape === Shape.ranked) yield* eachRankInSteps(rows, find, size, add, undo);
  else yield* eachElementInSteps(rows, find, 0, size, false, add, undo);
  let places: Uint32Array = new Uint32Array(options.unsorted ? count : 0);
  if (options.unsorted) {
    const isReversed = reverse && shape !== Shape.set;
    for (let i = 0; i < places.length; i++) places[i] = isReversed ? places.length - 1 - i : i;
  } else {
    let allDoubles = true;
    yield* eachOf(count, (i) => {
      if (!weigh(rows, items[i]!, options)) allDoubles = false;
    });
    if (!allDoubles) throw notDoubles;
    const compare = comparison(options);
    places = yield* sortedInSteps(count, (x, y) => compare(items[x]!, items[y]!));
  }
  const from = Math.max(0, options.offset);
  const chosen = places.subarray(from, options.limit < 0 ? places.length : from + options.limit);
  const output = Array<Buffer | undefined>(chosen.length * Math.max(1, options.gets.length));
  yield* eachOf(chosen.length, (i) => {
    const projected = project(rows, [items[chosen[i]!]!], options.gets);
    for (const [j, bytes] of projected.entries()) output[i * projected.length + j] = bytes;
  });
  const bytesOf = (i: number): number => output[i]?.length ?? 0;
  const { storeWord } = options;
  if (storeWord === 0) {
    reply.array(output.length);
    yield* eachSized(output.length, bytesOf, (i) => answerOne(output[i], reply));
    return;
  }
  yield* step(() => {
    if (output.length === 0) dropRow(rows, args, storeWord);
    else createRow(rows, args, storeWord, Shape.array);
  });
  yield* eachSized(output.length, bytesOf, (i) => {
    const list = rows.find(args.buf, args.starts[storeWord]!, args.lens[storeWord]!);
    rows.push(list, false, output[i] ?? emptyBytes, 0, bytesOf(i));
  });
  reply.integer(output.length);
}

const longSort: StepTransform = (rows, args, reply) => runInSteps(rows, args, reply, true);
const longSortRo: StepTransform = (rows, args, reply) => runInSteps(rows, args, reply, false);

/** Sets have no defined order: results stored, or passed to a script, must not depend on it. */
function orderStored(options: SortOptions, shape: Shape, args: Arguments): void {
  if (!options.unsorted || shape !== Shape.set) return;
  if (options.storeWord === 0 && !args.isOfScript) return;
  options.unsorted = false;
  options.alpha = true;
  options.by = undefined;
}

function runSort(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  mayStore: boolean,
): StepTransform | void {
  const options = parseOptions(args, mayStore);
  const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
  const shape = rows.shape(row);
  if (shape === Shape.value || shape === Shape.map || shape >= Shape.stream) throw wrongType;
  if (isLong(rows, row)) return mayStore ? longSort : longSortRo;
  orderStored(options, shape, args);
  const sorted = row === 0 ? [] : readItems(rows, row, shape, options);
  if (!options.unsorted) sortItems(rows, sorted, options);
  const offset = Math.max(0, options.offset);
  const end = options.limit < 0 ? sorted.length : offset + options.limit;
  const output = project(rows, sorted.slice(offset, end), options.gets);
  if (options.storeWord !== 0) store(rows, args, options.storeWord, output, reply);
  else answer(output, reply);
}

/** All elements as they stand, in the direction asked for if they are not to be sorted. */
function readItems(rows: Rows, row: Row, shape: Shape, options: SortOptions): Item[] {
  const items: Item[] = [];
  const add = (b: Buffer, s: number, n: number): void => {
    items.push({ bytes: Buffer.from(b.subarray(s, s + n)), score: 0, weight: undefined });
  };
  const size = rows.count(row);
  const reverse = options.unsorted && options.descending;
  if (shape === Shape.set) rows.eachField(row, add);
  else if (shape === Shape.ranked) rows.eachByRank(row, 0, size, reverse, add);
  else rows.eachElement(row, reverse ? size - 1 : 0, size, reverse, add);
  return items;
}

function sortItems(rows: Rows, items: Item[], options: SortOptions): void {
  let allDoubles = true;
  for (const item of items) if (!weigh(rows, item, options)) allDoubles = false;
  if (!allDoubles) throw notDoubles;
  items.sort(comparison(options));
}

/** Determines the item's sort key; false when that must be a number and is none. */
function weigh(rows: Rows, item: Item, { by, alpha }: SortOptions): boolean {
  item.weight = by === undefined ? item.bytes : resolve(rows, by, item.bytes);
  if (alpha || item.weight === undefined) return true;
  item.score = leadingSpaceDouble(item.weight);
  return !Number.isNaN(item.score);
}

function comparison({ descending, alpha }: SortOptions): (x: Item, y: Item) => number {
  const direction = descending ? -1 : 1;
  const compare = alpha ? compareWeights : compareScores;
  return (x, y) => direction * compare(x, y);
}

/** As strtod, which passes over leading spaces, makes 0 of nothing, and ends at a zero byte. */
function leadingSpaceDouble(all: Buffer): number {
  const end = all.indexOf(0);
  const bytes = end < 0 ? all : all.subarray(0, end);
  let s = 0;
  while (s < bytes.length && (bytes[s] === 32 || (bytes[s]! >= 9 && bytes[s]! <= 13))) s++;
  if (bytes.length === 0) return 0;
  const value = parseFloatBytes(bytes, s, bytes.length - s);
  return isRounded(bytes, s, bytes.length - s, value) ? NaN : value;
}

function compareScores(x: Item, y: Item): number {
  if (x.score !== y.score) return x.score < y.score ? -1 : 1;
  return Buffer.compare(x.bytes, y.bytes);
}

function compareWeights(x: Item, y: Item): number {
  if (x.weight === undefined || y.weight === undefined) {
    return Number(x.weight !== undefined) - Number(y.weight !== undefined);
  }
  return Buffer.compare(x.weight, y.weight);
}

/** The elements themselves, or for each of them the values of all GET patterns. */
function project(
  rows: Rows,
  items: readonly Item[],
  gets: readonly SortPattern[],
): (Buffer | undefined)[] {
  if (gets.length === 0) return items.map((item) => item.bytes);
  return items.flatMap((item) => gets.map((get) => resolve(rows, get, item.bytes)));
}

function answer(output: readonly (Buffer | undefined)[], reply: Reply): void {
  reply.array(output.length);
  for (const bytes of output) answerOne(bytes, reply);
}

function answerOne(bytes: Buffer | undefined, reply: Reply): void {
  if (bytes === undefined) reply.nil();
  else reply.bulk(bytes, 0, bytes.length);
}

function store(
  rows: Rows,
  args: Arguments,
  word: number,
  output: readonly (Buffer | undefined)[],
  reply: Reply,
): void {
  if (output.length === 0) {
    dropRow(rows, args, word);
  } else {
    const list = createRow(rows, args, word, Shape.array);
    for (const bytes of output) rows.push(list, false, bytes ?? emptyBytes, 0, bytes?.length ?? 0);
  }
  reply.integer(output.length);
}

export function sort(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return runSort(rows, args, reply, true);
}

export function sortRo(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return runSort(rows, args, reply, false);
}
