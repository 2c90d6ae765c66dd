// Strings that are numbers. Integers are exact over 64 bits, by doubles as long as those are exact.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, parseBigInteger, parseInteger, Slice, writeInteger } from '../../bytes.ts';
import { CommandError, notAFloat, notAnInteger, wrongType } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { addLongDoubles, formatLongDouble, parseLongDouble } from './support/long-double.ts';
import { typedRow } from './support/typed-row.ts';

const overflow = new CommandError('ERR increment or decrement would overflow');
const decrementOverflow = new CommandError('ERR decrement would overflow');
const notFinite = new CommandError('ERR increment would produce NaN or Infinity');
const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

const value = new Slice();
const digits = Buffer.alloc(24);
const zero = Buffer.from('0');

export function incr(rows: Rows, args: Arguments, reply: Reply): void {
  add(rows, args, reply, 1, undefined);
}

export function decr(rows: Rows, args: Arguments, reply: Reply): void {
  add(rows, args, reply, -1, undefined);
}

export function incrby(rows: Rows, args: Arguments, reply: Reply): void {
  const by = args.integer(2);
  add(rows, args, reply, by, Number.isSafeInteger(by) ? undefined : args.bigInteger(2));
}

export function decrby(rows: Rows, args: Arguments, reply: Reply): void {
  const by = args.integer(2);
  if (Number.isSafeInteger(by)) {
    add(rows, args, reply, -by, undefined);
    return;
  }
  const exact = args.bigInteger(2);
  if (exact === int64Min) throw decrementOverflow;
  add(rows, args, reply, -by, -exact);
}

/** `exactBy` is given where the double is not exact. */
function add(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  by: number,
  exactBy: bigint | undefined,
): void {
  const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
  let old = 0;
  if (row !== 0) {
    if (rows.shape(row) !== Shape.value) throw wrongType;
    rows.value(row, value);
    old = parseInteger(value.b, value.s, value.n);
    if (Number.isNaN(old)) {
      value.b = emptyBytes;
      throw notAnInteger;
    }
  }
  const sum = old + by;
  if (exactBy === undefined && Number.isSafeInteger(old) && Number.isSafeInteger(sum)) {
    putDigits(rows, args, row, writeInteger(digits, 0, sum));
    reply.integer(sum);
  } else {
    addExactly(rows, args, reply, row, exactBy ?? BigInt(by));
    return;
  }
  value.b = emptyBytes;
}

function addExactly(rows: Rows, args: Arguments, reply: Reply, row: Row, by: bigint): void {
  const old = row === 0 ? 0n : (parseBigInteger(value.b, value.s, value.n) ?? 0n);
  value.b = emptyBytes;
  const sum = old + by;
  if (sum < int64Min || sum > int64Max) throw overflow;
  putDigits(rows, args, row, digits.write(sum.toString(), 'latin1'));
  reply.bigInteger(sum);
}

/** Mostly the sum is as long as the number was, and the row need not be looked up again. */
function putDigits(rows: Rows, args: Arguments, row: Row, n: number): void {
  if (row !== 0 && rows.count(row) === n) {
    rows.patchValue(row, 0, digits, 0, n);
    return;
  }
  const expireAt = row === 0 ? 0 : rows.expireAt(row);
  rows.putValue(args.buf, args.starts[1]!, args.lens[1]!, digits, 0, n, expireAt);
}

export function incrbyfloat(rows: Rows, args: Arguments, reply: Reply): void {
  const { buf, starts, lens } = args;
  const row = typedRow(rows, args, 1, Shape.value);
  value.set(zero, 0, 1);
  if (row !== 0) rows.value(row, value);
  const old = parseLongDouble(value.b, value.s, value.n);
  value.b = emptyBytes;
  const by = parseLongDouble(buf, starts[2]!, lens[2]!);
  if (old === undefined || by === undefined) throw notAFloat;
  const sum = addLongDoubles(old, by);
  if (sum === undefined) throw notFinite;
  const text = Buffer.from(formatLongDouble(sum), 'latin1');
  const expireAt = row === 0 ? 0 : rows.expireAt(row);
  rows.putValue(buf, starts[1]!, lens[1]!, text, 0, text.length, expireAt);
  reply.bulk(text, 0, text.length);
}
