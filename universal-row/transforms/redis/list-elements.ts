// Elements inside lists: by index, by range, by value.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, equalBytes, Slice } from '../../bytes.ts';
import { CommandError, indexOutOfRange, noSuchKey, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { isLong, step, stepElements, type Steps, type StepTransform } from '../../steps.ts';
import { answerElements } from './list-ends.ts';
import { eachElementInSteps, finder, Tally } from './support/long-walks.ts';
import { integerAtLeast } from './support/ranged-integer.ts';
import { sizeOf, typedRow } from './support/typed-row.ts';

const rankIsZero = new CommandError(
  "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list",
);
const negativeCount = new CommandError("ERR COUNT can't be negative");
const negativeMaxLen = new CommandError("ERR MAXLEN can't be negative");
const int64Min = -(2n ** 63n);

const element = new Slice();

export function llen(rows: Rows, args: Arguments, reply: Reply): void {
  reply.integer(sizeOf(rows, typedRow(rows, args, 1, Shape.array)));
}

export function lindex(rows: Rows, args: Arguments, reply: Reply): void {
  const row = typedRow(rows, args, 1, Shape.array);
  if (row === 0) {
    reply.nil();
    return;
  }
  const index = args.integer(2);
  const at = index < 0 ? rows.count(row) + index : index;
  if (at >= 0 && rows.element(row, at, element)) {
    reply.bulk(element.b, element.s, element.n);
    element.b = emptyBytes;
  } else {
    reply.nil();
  }
}

export function lset(rows: Rows, args: Arguments, reply: Reply): void {
  const row = typedRow(rows, args, 1, Shape.array);
  if (row === 0) throw noSuchKey;
  const index = args.integer(2);
  const size = rows.count(row);
  const at = index < 0 ? size + index : index;
  if (at < 0 || at >= size) throw indexOutOfRange;
  rows.setElement(row, at, args.buf, args.starts[3]!, args.lens[3]!);
  reply.ok();
}

function* lrangeInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const find = finder(rows, args, 1, Shape.array);
  const { from, count } = rangeOf(args, sizeOf(rows, find()));
  reply.array(count);
  yield* eachElementInSteps(rows, find, from, count, false, (b, s, n) => reply.bulk(b, s, n));
}

/** The positions that words 2 and 3 mean in a list of this size. */
function rangeOf(args: Arguments, size: number): { from: number; count: number } {
  let from = args.integer(2);
  let to = args.integer(3);
  if (from < 0) from = Math.max(0, size + from);
  if (to < 0) to += size;
  if (to >= size) to = size - 1;
  return { from, count: Math.max(0, to - from + 1) };
}

export function lrange(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  let from = args.integer(2);
  let to = args.integer(3);
  const row = typedRow(rows, args, 1, Shape.array);
  const size = sizeOf(rows, row);
  if (from < 0) from = Math.max(0, size + from);
  if (to < 0) to += size;
  if (to >= size) to = size - 1;
  if (from > to) {
    reply.array(0);
    return;
  }
  if (isLong(rows, row, to - from + 1)) return lrangeInSteps;
  reply.array(to - from + 1);
  answerElements(rows, row, from, to - from + 1, false, reply);
}

function* ltrimInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const find = finder(rows, args, 1, Shape.array);
  const size = sizeOf(rows, find());
  const { from, count } = rangeOf(args, size);
  const behind = size - from - count;
  for (let left = behind; left > 0; left -= stepElements) {
    yield* step(() => {
      const n = Math.min(left, stepElements);
      rows.removeElements(find(), from + count + left - n, n);
    });
  }
  for (let left = from; left > 0; left -= stepElements) {
    yield* step(() => rows.removeElements(find(), 0, Math.min(left, stepElements)));
  }
  reply.ok();
}

export function ltrim(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  let from = args.integer(2);
  let to = args.integer(3);
  const row = typedRow(rows, args, 1, Shape.array);
  const size = sizeOf(rows, row);
  reply.ok();
  if (row === 0) return;
  if (from < 0) from = Math.max(0, size + from);
  if (to < 0) to += size;
  if (to >= size) to = size - 1;
  if (from > to) {
    rows.drop(row);
    return;
  }
  if (isLong(rows, row, size - (to - from + 1))) return ltrimInSteps;
  if (to + 1 < size) rows.removeElements(row, to + 1, size - to - 1);
  if (from > 0) rows.removeElements(row, 0, from);
}

/** Finds the first element equal to the word; -1 when there is none. */
function seek(rows: Rows, row: Row, args: Arguments, word: number): number {
  let found = -1;
  walkMatches(rows, row, args, word, false, Infinity, (index) => {
    found = index;
    return true;
  });
  return found;
}

/** Tells `visit` the index of each element equal to the word, of the `limit` first seen, until it is truthy. */
function walkMatches(
  rows: Rows,
  row: Row,
  args: Arguments,
  word: number,
  reverse: boolean,
  limit: number,
  visit: (index: number) => boolean | void,
): void {
  const { buf } = args;
  const s = args.starts[word]!;
  const n = args.lens[word]!;
  const step = reverse ? -1 : 1;
  const size = rows.count(row);
  let index = reverse ? size - 1 : 0;
  rows.eachElement(row, index, Math.min(limit, size), reverse, (eb, es, en) => {
    const stop = equalBytes(eb, es, en, buf, s, n) && visit(index) === true;
    index += step;
    return stop;
  });
}

/** As `walkMatches`, of all elements. */
function* matchesInSteps(
  rows: Rows,
  args: Arguments,
  word: number,
  reverse: boolean,
  limit: number,
  matches: (index: number) => boolean | void,
  found: number[],
): Steps {
  const find = finder(rows, args, 1, Shape.array);
  const { buf } = args;
  const s = args.starts[word]!;
  const n = args.lens[word]!;
  const size = sizeOf(rows, find());
  const from = reverse ? size - 1 : 0;
  const seen = new Tally();
  let count = 0;
  // Saved position: the number of matches found, and the visitor's state.
  const undo = {
    mark() {
      count = found.length;
      return seen.mark();
    },
    rollback(mark: number) {
      found.length = count;
      seen.rollback(mark);
    },
  };
  yield* eachElementInSteps(
    rows,
    find,
    from,
    Math.min(limit, size),
    reverse,
    (eb, es, en) => {
      const index = reverse ? from - seen.value : seen.value;
      seen.value++;
      return equalBytes(eb, es, en, buf, s, n) && matches(index) === true;
    },
    undo,
  );
}

function* lremInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const wanted = args.integer(2);
  const limit = wanted === 0 ? Infinity : Math.abs(wanted);
  const found: number[] = [];
  const add = (index: number): boolean => found.push(index) >= limit;
  yield* matchesInSteps(rows, args, 3, wanted < 0, Infinity, add, found);
  if (wanted >= 0) found.reverse();
  const find = finder(rows, args, 1, Shape.array);
  for (let i = 0; i < found.length; ) {
    const last = found[i]!;
    let first = last;
    let next = i + 1;
    while (next < found.length && next - i < stepElements && found[next] === first - 1) {
      first--;
      next++;
    }
    yield* step(() => rows.removeElements(find(), first, last - first + 1));
    i = next;
  }
  reply.integer(found.length);
}

export function lrem(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const wanted = args.integer(2);
  const row = typedRow(rows, args, 1, Shape.array);
  if (isLong(rows, row)) return lremInSteps;
  if (row === 0) {
    reply.integer(0);
    return;
  }
  const limit = wanted === 0 ? Infinity : Math.abs(wanted);
  const found: number[] = [];
  walkMatches(rows, row, args, 3, wanted < 0, Infinity, (index) => found.push(index) >= limit);
  if (wanted >= 0) found.reverse();
  removeAt(rows, row, found);
  reply.integer(found.length);
}

/** Removes elements by index, given from the last to the first, neighbours in one go. */
function removeAt(rows: Rows, row: Row, indexes: readonly number[]): void {
  for (let i = 0; i < indexes.length; ) {
    const last = indexes[i]!;
    let first = last;
    while (++i < indexes.length && indexes[i] === first - 1) first--;
    rows.removeElements(row, first, last - first + 1);
  }
}

function* linsertInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const found: number[] = [];
  const add = (index: number): boolean => found.push(index) > 0;
  yield* matchesInSteps(rows, args, 3, false, Infinity, add, found);
  const [pivot] = found;
  if (pivot === undefined) {
    reply.integer(-1);
    return;
  }
  const find = finder(rows, args, 1, Shape.array);
  const at = args.is(2, 'AFTER') ? pivot + 1 : pivot;
  yield* step(() => rows.insertElement(find(), at, args.buf, args.starts[4]!, args.lens[4]!));
  reply.integer(rows.count(find()));
}

export function linsert(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const after = args.is(2, 'AFTER');
  if (!after && !args.is(2, 'BEFORE')) throw syntaxError;
  const row = typedRow(rows, args, 1, Shape.array);
  if (isLong(rows, row)) return linsertInSteps;
  if (row === 0) {
    reply.integer(0);
    return;
  }
  const pivot = seek(rows, row, args, 3);
  if (pivot < 0) {
    reply.integer(-1);
    return;
  }
  rows.insertElement(row, after ? pivot + 1 : pivot, args.buf, args.starts[4]!, args.lens[4]!);
  reply.integer(rows.count(row));
}

interface LposOptions {
  rank: number;
  /** -1 when not given, and then one index is answered. */
  count: number;
  maxLen: number;
}

function* lposInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { rank, count, maxLen } = parseLposOptions(args);
  const one = count === -1;
  const toSkip = Math.abs(rank) - 1;
  const limit = (one ? 1 : count === 0 ? Infinity : count) + toSkip;
  const found: number[] = [];
  const most = maxLen === 0 ? Infinity : maxLen;
  const add = (index: number): boolean => found.push(index) >= limit;
  yield* matchesInSteps(rows, args, 2, rank < 0, most, add, found);
  if (!one) reply.array(Math.max(0, found.length - toSkip));
  else if (found.length <= toSkip) reply.nil();
  for (let i = toSkip; i < found.length; i++) {
    if ((i & 4095) === 4095) yield;
    reply.integer(found[i]!);
  }
}

export function lpos(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { rank, count, maxLen } = parseLposOptions(args);
  const row = typedRow(rows, args, 1, Shape.array);
  if (isLong(rows, row, maxLen === 0 ? Infinity : maxLen)) return lposInSteps;
  const one = count === -1;
  const limit = one ? 1 : count === 0 ? Infinity : count;
  const found: number[] = [];
  let toSkip = Math.abs(rank) - 1;
  if (row !== 0) {
    walkMatches(rows, row, args, 2, rank < 0, maxLen === 0 ? Infinity : maxLen, (index) => {
      if (toSkip-- > 0) return false;
      return found.push(index) >= limit;
    });
  }
  if (!one) {
    reply.array(found.length);
    for (const index of found) reply.integer(index);
  } else if (found.length > 0) {
    reply.integer(found[0]!);
  } else {
    reply.nil();
  }
}

function parseLposOptions(args: Arguments): LposOptions {
  const options = { rank: 1, count: -1, maxLen: 0 };
  for (let i = 3; i < args.count; i += 2) {
    if (i + 1 === args.count) throw syntaxError;
    if (args.is(i, 'RANK')) {
      options.rank = args.integer(i + 1);
      // In Redis the negation of this value overflows and stays negative, so it acts as -1.
      if (options.rank < -(2 ** 62) && args.bigInteger(i + 1) === int64Min) options.rank = -1;
      if (options.rank === 0) throw rankIsZero;
    } else if (args.is(i, 'COUNT')) {
      options.count = integerAtLeast(args, i + 1, 0, negativeCount);
    } else if (args.is(i, 'MAXLEN')) {
      options.maxLen = integerAtLeast(args, i + 1, 0, negativeMaxLen);
    } else {
      throw syntaxError;
    }
  }
  return options;
}
