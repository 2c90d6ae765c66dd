// The ends of lists: pushing and popping.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { emptyBytes, Slice } from '../../../universal-row/bytes.ts';
import { CommandError, wrongType } from '../../../universal-row/errors.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import { type Row, type Rows, Shape } from '../../../universal-row/rows.ts';
import { integerAtLeast } from './support/ranged-integer.ts';
import { createRow, typedRow } from './support/typed-row.ts';

const lpopArity = new CommandError("ERR wrong number of arguments for 'lpop' command");
const rpopArity = new CommandError("ERR wrong number of arguments for 'rpop' command");

const element = new Slice();

// Where the visitor below sends what it sees; set for the length of one walk.
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

function push(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  atHead: boolean,
  createMissing: boolean,
): void {
  const { buf, starts, lens, count } = args;
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

export function lpush(rows: Rows, args: Arguments, reply: Reply): void {
  push(rows, args, reply, true, true);
}

export function rpush(rows: Rows, args: Arguments, reply: Reply): void {
  push(rows, args, reply, false, true);
}

export function lpushx(rows: Rows, args: Arguments, reply: Reply): void {
  push(rows, args, reply, true, false);
}

export function rpushx(rows: Rows, args: Arguments, reply: Reply): void {
  push(rows, args, reply, false, false);
}

function pop(rows: Rows, args: Arguments, reply: Reply, atHead: boolean): void {
  const hasCount = args.count > 2;
  const count = hasCount ? integerAtLeast(args, 2, 0) : 1;
  const row = typedRow(rows, args, 1, Shape.array);
  if (row === 0) {
    if (hasCount) reply.nilArray();
    else reply.nil();
  } else if (!hasCount) popOne(rows, row, atHead, reply);
  else if (count === 0) reply.array(0);
  else popMany(rows, row, atHead, count, reply);
}

export function lpop(rows: Rows, args: Arguments, reply: Reply): void {
  if (args.count > 3) throw lpopArity;
  pop(rows, args, reply, true);
}

export function rpop(rows: Rows, args: Arguments, reply: Reply): void {
  if (args.count > 3) throw rpopArity;
  pop(rows, args, reply, false);
}
