// The ends of lists: pushing and popping.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, Slice } from '../../bytes.ts';
import { CommandError, wrongType } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import {
  isLong,
  shortWork,
  step,
  stepBytes,
  stepElements,
  type Steps,
  type StepTransform,
} from '../../steps.ts';
import { eachWord, type Find, finder } from './support/long-walks.ts';
import { integerAtLeast } from './support/ranged-integer.ts';
import { createRow, typedRow } from './support/typed-row.ts';

const lpopArity = new CommandError("ERR wrong number of arguments for 'lpop' command");
const rpopArity = new CommandError("ERR wrong number of arguments for 'rpop' command");

const element = new Slice();

// Reply to which the visitor below writes; set for the length of one walk.
let answer: Reply | undefined;

function answerElement(b: Buffer, s: number, n: number): void {
  answer!.bulk(b, s, n);
}

/** Answers `count` elements, from the one at `from` towards the tail, or the head if `reverse`. */
export function answerElements(
  rows: Rows,
  row: Row,
  from: number,
  count: number,
  reverse: boolean,
  reply: Reply,
): void {
  answer = reply;
  rows.eachElement(row, from, count, reverse, answerElement);
  answer = undefined;
}

/** Answers the element at an end and takes it away. */
export function popOne(rows: Rows, row: Row, atHead: boolean, reply: Reply): void {
  rows.element(row, atHead ? 0 : rows.count(row) - 1, element);
  reply.bulk(element.b, element.s, element.n);
  element.b = emptyBytes;
  rows.pop(row, atHead);
}

/** Answers an array of up to `count` elements at an end, the outermost first, and takes them away. */
export function popMany(rows: Rows, row: Row, atHead: boolean, count: number, reply: Reply): void {
  const size = rows.count(row);
  const n = Math.min(count, size);
  reply.array(n);
  answerElements(rows, row, atHead ? 0 : size - 1, n, !atHead, reply);
  rows.removeElements(row, atHead ? 0 : size - n, n);
}

/** As `popMany`. */
export function* popManyInSteps(
  rows: Rows,
  find: Find,
  atHead: boolean,
  count: number,
  reply: Reply,
): Steps {
  const n = Math.min(count, rows.count(find()));
  reply.array(n);
  for (let left = n; left > 0; ) {
    left -= yield* step(() => {
      const row = find();
      const size = rows.count(row);
      let taken = 0;
      let bytes = 0;
      const most = Math.min(left, stepElements >>> 1);
      rows.eachElement(row, atHead ? 0 : size - 1, most, !atHead, (b, s, length) => {
        reply.bulk(b, s, length);
        taken++;
        bytes += length;
        return bytes >= stepBytes;
      });
      rows.removeElements(row, atHead ? 0 : size - taken, taken);
      return taken;
    });
  }
}

function pushInSteps(atHead: boolean, createMissing: boolean): StepTransform {
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const { buf, starts, lens, count } = args;
    const find = finder(rows, args, 1, Shape.array);
    let row = find();
    if (row === 0 && !createMissing) {
      reply.integer(0);
      return;
    }
    yield* eachWord(
      args,
      2,
      count,
      1,
      undefined,
      () => {
        row = find();
        if (row === 0) row = createRow(rows, args, 1, Shape.array);
      },
      (i) => rows.push(row, atHead, buf, starts[i]!, lens[i]!),
    );
    reply.integer(rows.count(find()));
  };
}

const longPushes = [
  [pushInSteps(false, false), pushInSteps(false, true)],
  [pushInSteps(true, false), pushInSteps(true, true)],
] as const;

function push(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  atHead: boolean,
  createMissing: boolean,
): StepTransform | void {
  const { buf, starts, lens, count } = args;
  if (count > shortWork.elements) return longPushes[atHead ? 1 : 0][createMissing ? 1 : 0];
  let row = rows.find(buf, starts[1]!, lens[1]!);
  if (row === 0) {
    if (!createMissing) {
      reply.integer(0);
      return;
    }
    row = createRow(rows, args, 1, Shape.array);
  } else if (rows.shape(row) !== Shape.array) {
    throw wrongType;
  }
  for (let i = 2; i < count; i++) rows.push(row, atHead, buf, starts[i]!, lens[i]!);
  reply.integer(rows.count(row));
}

export function lpush(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return push(rows, args, reply, true, true);
}

export function rpush(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return push(rows, args, reply, false, true);
}

export function lpushx(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return push(rows, args, reply, true, false);
}

export function rpushx(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return push(rows, args, reply, false, false);
}

function* lpopInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  yield* popManyInSteps(rows, finder(rows, args, 1, Shape.array), true, args.integer(2), reply);
}

function* rpopInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  yield* popManyInSteps(rows, finder(rows, args, 1, Shape.array), false, args.integer(2), reply);
}

function pop(rows: Rows, args: Arguments, reply: Reply, atHead: boolean): StepTransform | void {
  const hasCount = args.count > 2;
  const count = hasCount ? integerAtLeast(args, 2, 0) : 1;
  const row = typedRow(rows, args, 1, Shape.array);
  if (row === 0) {
    if (hasCount) reply.nilArray();
    else reply.nil();
  } else if (!hasCount) popOne(rows, row, atHead, reply);
  else if (count === 0) reply.array(0);
  else if (isLong(rows, row, count)) return atHead ? lpopInSteps : rpopInSteps;
  else popMany(rows, row, atHead, count, reply);
}

export function lpop(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > 3) throw lpopArity;
  return pop(rows, args, reply, true);
}

export function rpop(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > 3) throw rpopArity;
  return pop(rows, args, reply, false);
}
