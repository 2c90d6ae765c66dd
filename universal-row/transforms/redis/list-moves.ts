// Commands that move an element from list to list, or pop from the first of several lists that there
// is. The blocking ones write and answer nothing when they find nothing, and are run again later.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, Slice } from '../../bytes.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Rows, Shape } from '../../rows.ts';
import { isLong, type Steps, type StepTransform } from '../../steps.ts';
import { popMany, popManyInSteps, popOne } from './list-ends.ts';
import { ByteList } from './support/byte-list.ts';
import { finder } from './support/long-walks.ts';
import { integerAtLeast } from './support/ranged-integer.ts';
import { checkTimeout } from './support/timeout.ts';
import { createRow, typedRow } from './support/typed-row.ts';

const noKeys = new CommandError('ERR numkeys should be greater than 0');
const noCount = new CommandError('ERR count should be greater than 0');

const element = new Slice();
const moved = new ByteList();

/** Moves an element from the list in word 1 to the one in word 2 and answers it; false if there is none. */
function move(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  fromHead: boolean,
  toHead: boolean,
): boolean {
  rows.expect(1, 2, 1);
  const source = typedRow(rows, args, 1, Shape.array);
  if (source === 0) return false;
  const found = typedRow(rows, args, 2, Shape.array);
  const last = rows.count(source) - 1;
  rows.element(source, fromHead ? 0 : last, element);
  moved.clear();
  moved.add(element.b, element.s, element.n);
  element.set(moved.buf, 0, element.n);
  reply.bulk(element.b, element.s, element.n);
  if (found === source && (last === 0 || fromHead === toHead)) {
    // Taken away and put back. The list must not be dropped in between: it would lose its expiry.
    rows.setElement(source, fromHead ? 0 : last, element.b, element.s, element.n);
  } else {
    rows.pop(source, fromHead);
    const target = found !== 0 ? found : createRow(rows, args, 2, Shape.array);
    rows.push(target, toHead, element.b, element.s, element.n);
  }
  element.set(emptyBytes, 0, 0);
  moved.clear();
  return true;
}

/** Whether the word says LEFT, and not RIGHT. */
function isLeft(args: Arguments, word: number): boolean {
  if (args.is(word, 'LEFT')) return true;
  if (args.is(word, 'RIGHT')) return false;
  throw syntaxError;
}

export function rpoplpush(rows: Rows, args: Arguments, reply: Reply): void {
  if (!move(rows, args, reply, false, true)) reply.nil();
}

export function lmove(rows: Rows, args: Arguments, reply: Reply): void {
  const fromHead = isLeft(args, 3);
  const toHead = isLeft(args, 4);
  if (!move(rows, args, reply, fromHead, toHead)) reply.nil();
}

export function brpoplpush(rows: Rows, args: Arguments, reply: Reply): void {
  checkTimeout(args, 3);
  move(rows, args, reply, false, true);
}

export function blmove(rows: Rows, args: Arguments, reply: Reply): void {
  const fromHead = isLeft(args, 3);
  const toHead = isLeft(args, 4);
  checkTimeout(args, 5);
  move(rows, args, reply, fromHead, toHead);
}

/** Pops from the first list there is of those in words 1 to the last but one, the time-out. */
function blockingPop(rows: Rows, args: Arguments, reply: Reply, atHead: boolean): void {
  const { buf, starts, lens } = args;
  const timeoutWord = args.count - 1;
  checkTimeout(args, timeoutWord);
  rows.expect(1, timeoutWord - 1, 1);
  for (let i = 1; i < timeoutWord; i++) {
    const row = typedRow(rows, args, i, Shape.array);
    if (row === 0) continue;
    reply.array(2);
    reply.bulk(buf, starts[i]!, lens[i]!);
    popOne(rows, row, atHead, reply);
    return;
  }
}

export function blpop(rows: Rows, args: Arguments, reply: Reply): void {
  blockingPop(rows, args, reply, true);
}

export function brpop(rows: Rows, args: Arguments, reply: Reply): void {
  blockingPop(rows, args, reply, false);
}

/** `numkeys key ... LEFT|RIGHT [COUNT n]` from word `countWord` on; false if there is no such list. */
function popFromFirst(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  countWord: number,
  timeoutWord: number,
): boolean | StepTransform {
  const { buf, starts, lens } = args;
  const keys = integerAtLeast(args, countWord, 1, noKeys);
  const whereWord = countWord + keys + 1;
  if (whereWord >= args.count) throw syntaxError;
  const atHead = isLeft(args, whereWord);
  let count = 0;
  for (let i = whereWord + 1; i < args.count; i++) {
    if (count !== 0 || !args.is(i, 'COUNT') || i + 1 === args.count) throw syntaxError;
    count = integerAtLeast(args, ++i, 1, noCount);
  }
  if (timeoutWord !== 0) checkTimeout(args, timeoutWord);
  rows.expect(countWord + 1, whereWord - 1, 1);
  for (let i = countWord + 1; i < whereWord; i++) {
    const row = typedRow(rows, args, i, Shape.array);
    if (row === 0) continue;
    reply.array(2);
    reply.bulk(buf, starts[i]!, lens[i]!);
    const wanted = Math.max(1, count);
    if (isLong(rows, row, wanted)) {
      const word = i;
      return function* (all: Rows, words: Arguments, answer: Reply): Steps {
        answer.array(2);
        answer.bulk(words.buf, words.starts[word]!, words.lens[word]!);
        const find = finder(all, words, word, Shape.array);
        yield* popManyInSteps(all, find, atHead, wanted, answer);
      };
    }
    popMany(rows, row, atHead, wanted, reply);
    return true;
  }
  return false;
}

export function lmpop(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const found = popFromFirst(rows, args, reply, 1, 0);
  if (typeof found === 'function') return found;
  if (!found) reply.nilArray();
}

export function blmpop(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const found = popFromFirst(rows, args, reply, 2, 1);
  if (typeof found === 'function') return found;
}
