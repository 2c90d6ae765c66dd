// Taking the members with the lowest or highest scores out of sorted sets, waiting for some if need be.

import type { Arguments } from '../../arguments.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { Row, Rows } from '../../rows.ts';
import { Shape } from '../../rows.ts';
import { isLong, step, stepElements, type Steps, type StepTransform } from '../../steps.ts';
import { ByteList } from './support/byte-list.ts';
import { integerAtLeast } from './support/ranged-integer.ts';
import { checkTimeout } from './support/timeout.ts';
import { sizeOf, typedRow } from './support/typed-row.ts';

const tooFewKeys = new CommandError('ERR numkeys should be greater than 0');
const countTooSmall = new CommandError('ERR count should be greater than 0');

/** The members being popped: they must outlive their removal. */
const popped = new ByteList();

function remember(b: Buffer, s: number, n: number, score: number): void {
  popped.add(b, s, n, score);
}

/** Takes `count` members, of the `size` there are, from the row and answers each with its score. */
function pop(
  rows: Rows,
  row: Row,
  size: number,
  count: number,
  highest: boolean,
  pairs: boolean,
  reply: Reply,
): void {
  popped.clear();
  rows.eachByRank(row, 0, count, highest, remember);
  for (let i = 0; i < count; i++) {
    const s = popped.start(i);
    const n = popped.length(i);
    if (pairs) reply.array(2);
    reply.bulk(popped.buf, s, n);
    reply.double(popped.score(i));
    if (count < size) rows.removeField(row, popped.buf, s, n);
  }
  if (count === size) rows.drop(row);
  popped.clear();
}

/** As `pop`, from the row in this word. */
function* popInSteps(
  rows: Rows,
  args: Arguments,
  word: number,
  count: number,
  highest: boolean,
  pairs: boolean,
  reply: Reply,
): Steps {
  for (let left = count; left > 0; ) {
    const n = Math.min(left, stepElements >>> 2);
    yield* step(() => {
      const row = typedRow(rows, args, word, Shape.ranked);
      pop(rows, row, rows.count(row), n, highest, pairs, reply);
    });
    left -= n;
  }
}

function popOneInSteps(highest: boolean): StepTransform {
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const size = sizeOf(rows, typedRow(rows, args, 1, Shape.ranked));
    const count = Math.min(integerAtLeast(args, 2, 0), size);
    const pairs = reply.version > 2;
    reply.array(pairs ? count : count * 2);
    yield* popInSteps(rows, args, 1, count, highest, pairs, reply);
  };
}

const longPops = { lowest: popOneInSteps(false), highest: popOneInSteps(true) };

export function zpopmin(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return popFromOne(rows, args, false, reply);
}

export function zpopmax(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return popFromOne(rows, args, true, reply);
}

function popFromOne(
  rows: Rows,
  args: Arguments,
  highest: boolean,
  reply: Reply,
): StepTransform | void {
  if (args.count > 3) throw syntaxError;
  const wanted = args.count === 3 ? integerAtLeast(args, 2, 0) : 1;
  const row = typedRow(rows, args, 1, Shape.ranked);
  const size = sizeOf(rows, row);
  const count = Math.min(wanted, size);
  if (args.count === 3 && isLong(rows, row, count)) {
    return highest ? longPops.highest : longPops.lowest;
  }
  // RESP3 has pairs only where there may be several.
  const pairs = args.count === 3 && reply.version > 2;
  reply.array(pairs ? count : count * 2);
  if (count > 0) pop(rows, row, size, count, highest, pairs, reply);
}

export function bzpopmin(rows: Rows, args: Arguments, reply: Reply): void {
  popFromAny(rows, args, false, reply);
}

export function bzpopmax(rows: Rows, args: Arguments, reply: Reply): void {
  popFromAny(rows, args, true, reply);
}

function popFromAny(rows: Rows, args: Arguments, highest: boolean, reply: Reply): void {
  checkTimeout(args, args.count - 1);
  const word = firstFull(rows, args, 1, args.count - 2);
  if (word === 0) return;
  const row = typedRow(rows, args, word, Shape.ranked);
  reply.array(3);
  reply.bulk(args.buf, args.starts[word]!, args.lens[word]!);
  pop(rows, row, rows.count(row), 1, highest, false, reply);
}

/** The first of the words whose key has a sorted set, or 0. Keys after it may hold anything. */
function firstFull(rows: Rows, args: Arguments, first: number, last: number): number {
  rows.expect(first, last, 1);
  for (let i = first; i <= last; i++) if (typedRow(rows, args, i, Shape.ranked) !== 0) return i;
  return 0;
}

export function zmpop(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const found = popSeveral(rows, args, 1, reply);
  if (typeof found === 'function') return found;
  if (!found) reply.nilArray();
}

export function bzmpop(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const found = popSeveral(rows, args, 2, reply);
  if (typeof found === 'function') return found;
}

/** ZMPOP and BZMPOP from their number of keys on. Returns false when there is nothing to pop. */
function popSeveral(
  rows: Rows,
  args: Arguments,
  countWord: number,
  reply: Reply,
): boolean | StepTransform {
  const keys = integerAtLeast(args, countWord, 1, tooFewKeys);
  const whereWord = countWord + keys + 1;
  if (whereWord >= args.count) throw syntaxError;
  const highest = args.is(whereWord, 'MAX');
  if (!highest && !args.is(whereWord, 'MIN')) throw syntaxError;
  const wanted = readCount(args, whereWord + 1);
  if (countWord === 2) checkTimeout(args, 1);
  const word = firstFull(rows, args, countWord + 1, whereWord - 1);
  if (word === 0) return false;
  const row = typedRow(rows, args, word, Shape.ranked);
  const size = rows.count(row);
  const count = Math.min(wanted, size);
  if (isLong(rows, row, count)) {
    return function* (all: Rows, words: Arguments, answer: Reply): Steps {
      answer.array(2);
      answer.bulk(words.buf, words.starts[word]!, words.lens[word]!);
      answer.array(count);
      yield* popInSteps(all, words, word, count, highest, true, answer);
    };
  }
  reply.array(2);
  reply.bulk(args.buf, args.starts[word]!, args.lens[word]!);
  reply.array(count);
  pop(rows, row, size, count, highest, true, reply);
  return true;
}

/** `COUNT n` or nothing. */
function readCount(args: Arguments, word: number): number {
  if (word >= args.count) return 1;
  if (!args.is(word, 'COUNT') || word + 1 >= args.count) throw syntaxError;
  const count = integerAtLeast(args, word + 1, 1, countTooSmall);
  if (word + 2 < args.count) throw syntaxError;
  return count;
}
