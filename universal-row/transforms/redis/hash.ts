// Hashes: maps of fields to values under a key.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, parseBigInteger, parseInteger, Slice, writeInteger } from '../../bytes.ts';
import { CommandError, type ReadFault, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { Row, Rows } from '../../rows.ts';
import { Shape } from '../../rows.ts';
import { isLong, shortWork, type Steps, type StepTransform } from '../../steps.ts';
import { addLongDoubles, formatLongDouble, parseLongDouble } from './support/long-double.ts';
import { eachFieldInSteps, eachWord, finder, Tally } from './support/long-walks.ts';
import { type Answered, isLongPick, randomInSteps } from './support/long-picks.ts';
import { isFew, pickFew, pickOne, WalkPicker } from './support/random-picks.ts';
import { checkRandomPairs, randomCount } from './support/ranged-integer.ts';
import { scanRow } from './support/scan-fields.ts';
import { removeFieldsInSteps } from './support/long-removals.ts';
import { createRow, sizeOf, typedRow, typedRowToFill } from './support/typed-row.ts';

const hsetArity = new CommandError("ERR wrong number of arguments for 'hset' command");
const hmsetArity = new CommandError("ERR wrong number of arguments for 'hmset' command");
const notAnIntegerValue = new CommandError('ERR hash value is not an integer');
const notAFloatValue = new CommandError('ERR hash value is not a float');
const overflow = new CommandError('ERR increment or decrement would overflow');
const notFinite = new CommandError('ERR value is NaN or Infinity');
const wouldNotBeFinite = new CommandError('ERR increment would produce NaN or Infinity');
const notAFloatIncrement = new CommandError('ERR value is not a valid float');

const field = new Slice();
const value = new Slice();
const digits = Buffer.alloc(24);
const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

// Reply to which the visitors below write; set for the length of one walk.
let answer: Reply | undefined;

function answerPair(fb: Buffer, fs: number, fn: number, vb: Buffer, vs: number, vn: number): void {
  answer!.bulk(fb, fs, fn);
  answer!.bulk(vb, vs, vn);
}

function answerField(fb: Buffer, fs: number, fn: number): void {
  answer!.bulk(fb, fs, fn);
}

function answerValue(
  _fb: Buffer,
  _fs: number,
  _fn: number,
  vb: Buffer,
  vs: number,
  vn: number,
): void {
  answer!.bulk(vb, vs, vn);
}

function forget(): void {
  answer = undefined;
  field.set(emptyBytes, 0, 0);
  value.set(emptyBytes, 0, 0);
}

/** Sets all fields and values from word 2 on; returns how many fields are new. */
function setFields(rows: Rows, args: Arguments, wrongCount: CommandError): number {
  const { buf, starts, lens, count } = args;
  if (count % 2 !== 0) throw wrongCount;
  const row = typedRowToFill(rows, args, 1, Shape.map);
  let created = 0;
  for (let i = 2; i < count; i += 2) {
    if (rows.putField(row, buf, starts[i]!, lens[i]!, buf, starts[i + 1]!, lens[i + 1]!)) created++;
  }
  return created;
}

function isLongSet(args: Arguments): boolean {
  if (args.count > shortWork.elements) return true;
  let bytes = 0;
  for (let i = 2; i < args.count; i++) bytes += args.lens[i]!;
  return bytes > shortWork.bytes;
}

function* setFieldsInSteps(
  rows: Rows,
  args: Arguments,
  wrongCount: CommandError,
): Generator<ReadFault | undefined, number, undefined> {
  const { buf, starts, lens, count } = args;
  if (count % 2 !== 0) throw wrongCount;
  const created = new Tally();
  let row: Row = 0;
  yield* eachWord(
    args,
    2,
    count,
    2,
    created,
    () => {
      row = typedRowToFill(rows, args, 1, Shape.map);
    },
    (i) => {
      const isNew = rows.putField(
        row,
        buf,
        starts[i]!,
        lens[i]!,
        buf,
        starts[i + 1]!,
        lens[i + 1]!,
      );
      if (isNew) created.value++;
    },
  );
  return created.value;
}

function* hsetInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  reply.integer(yield* setFieldsInSteps(rows, args, hsetArity));
}

function* hmsetInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  yield* setFieldsInSteps(rows, args, hmsetArity);
  reply.ok();
}

export function hset(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > 4 && isLongSet(args)) return hsetInSteps;
  reply.integer(setFields(rows, args, hsetArity));
}

export function hmset(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > 4 && isLongSet(args)) return hmsetInSteps;
  setFields(rows, args, hmsetArity);
  reply.ok();
}

export function hsetnx(rows: Rows, args: Arguments, reply: Reply): void {
  const { buf, starts, lens } = args;
  const row = typedRow(rows, args, 1, Shape.map);
  if (row !== 0 && rows.field(row, buf, starts[2]!, lens[2]!)) {
    reply.integer(0);
    return;
  }
  const into = row !== 0 ? row : createRow(rows, args, 1, Shape.map);
  rows.putField(into, buf, starts[2]!, lens[2]!, buf, starts[3]!, lens[3]!);
  reply.integer(1);
}

function answerValueOf(rows: Rows, row: Row, args: Arguments, word: number, reply: Reply): void {
  if (row !== 0 && rows.field(row, args.buf, args.starts[word]!, args.lens[word]!, value)) {
    reply.bulk(value.b, value.s, value.n);
  } else {
    reply.nil();
  }
}

export function hget(rows: Rows, args: Arguments, reply: Reply): void {
  answerValueOf(rows, typedRow(rows, args, 1, Shape.map), args, 2, reply);
  forget();
}

function* hmgetInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const find = finder(rows, args, 1, Shape.map);
  let row: Row = 0;
  reply.array(args.count - 2);
  yield* eachWord(
    args,
    2,
    args.count,
    1,
    undefined,
    () => {
      row = find();
    },
    (i) => answerValueOf(rows, row, args, i, reply),
  );
  forget();
}

export function hmget(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = typedRow(rows, args, 1, Shape.map);
  if (args.count > shortWork.elements) return hmgetInSteps;
  reply.array(args.count - 2);
  for (let i = 2; i < args.count; i++) answerValueOf(rows, row, args, i, reply);
  forget();
}

function* hgetallInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const find = finder(rows, args, 1, Shape.map);
  reply.map(sizeOf(rows, find()));
  yield* eachFieldInSteps(rows, find, (fb, fs, fn, vb, vs, vn) => {
    reply.bulk(fb, fs, fn);
    reply.bulk(vb, vs, vn);
  });
}

export function hgetall(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = typedRow(rows, args, 1, Shape.map);
  if (isLong(rows, row)) return hgetallInSteps;
  reply.map(sizeOf(rows, row));
  if (row === 0) return;
  answer = reply;
  rows.eachField(row, answerPair);
  forget();
}

function* hkeysInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const find = finder(rows, args, 1, Shape.map);
  reply.array(sizeOf(rows, find()));
  yield* eachFieldInSteps(rows, find, (fb, fs, fn) => {
    reply.bulk(fb, fs, fn);
  });
}

export function hkeys(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = typedRow(rows, args, 1, Shape.map);
  if (isLong(rows, row)) return hkeysInSteps;
  reply.array(sizeOf(rows, row));
  if (row === 0) return;
  answer = reply;
  rows.eachField(row, answerField);
  forget();
}

function* hvalsInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const find = finder(rows, args, 1, Shape.map);
  reply.array(sizeOf(rows, find()));
  yield* eachFieldInSteps(rows, find, (_fb, _fs, _fn, vb, vs, vn) => {
    reply.bulk(vb, vs, vn);
  });
}

export function hvals(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = typedRow(rows, args, 1, Shape.map);
  if (isLong(rows, row)) return hvalsInSteps;
  reply.array(sizeOf(rows, row));
  if (row === 0) return;
  answer = reply;
  rows.eachField(row, answerValue);
  forget();
}

export function hlen(rows: Rows, args: Arguments, reply: Reply): void {
  reply.integer(sizeOf(rows, typedRow(rows, args, 1, Shape.map)));
}

export function hstrlen(rows: Rows, args: Arguments, reply: Reply): void {
  const row = typedRow(rows, args, 1, Shape.map);
  const there = row !== 0 && rows.field(row, args.buf, args.starts[2]!, args.lens[2]!, value);
  reply.integer(there ? value.n : 0);
  forget();
}

export function hexists(rows: Rows, args: Arguments, reply: Reply): void {
  const row = typedRow(rows, args, 1, Shape.map);
  const there = row !== 0 && rows.field(row, args.buf, args.starts[2]!, args.lens[2]!);
  reply.integer(there ? 1 : 0);
}

function* hdelInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  yield* removeFieldsInSteps(rows, args, reply, Shape.map);
}

export function hdel(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = typedRow(rows, args, 1, Shape.map);
  if (args.count > shortWork.elements) return hdelInSteps;
  let left = sizeOf(rows, row);
  let removed = 0;
  for (let i = 2; i < args.count && left > 0; i++) {
    if (!rows.removeField(row, args.buf, args.starts[i]!, args.lens[i]!)) continue;
    removed++;
    left--;
  }
  reply.integer(removed);
}

export function hincrby(rows: Rows, args: Arguments, reply: Reply): void {
  const { buf, starts, lens } = args;
  const by = args.integer(3);
  const row = typedRow(rows, args, 1, Shape.map);
  let old = 0;
  if (row !== 0 && rows.field(row, buf, starts[2]!, lens[2]!, value)) {
    old = parseInteger(value.b, value.s, value.n);
    if (Number.isNaN(old)) throw notAnIntegerValue;
  } else {
    value.set(emptyBytes, 0, 0);
  }
  const sum = old + by;
  if (Number.isSafeInteger(old) && Number.isSafeInteger(by) && Number.isSafeInteger(sum)) {
    writeInto(rows, args, row, writeInteger(digits, 0, sum));
    reply.integer(sum);
  } else {
    const exact = (parseBigInteger(value.b, value.s, value.n) ?? 0n) + args.bigInteger(3);
    if (exact < int64Min || exact > int64Max) throw overflow;
    writeInto(rows, args, row, digits.write(exact.toString(), 'latin1'));
    reply.bigInteger(exact);
  }
  forget();
}

/** Makes the first `n` bytes of `digits` the value of the field in word 2. */
function writeInto(rows: Rows, args: Arguments, row: Row, n: number): void {
  const into = row !== 0 ? row : createRow(rows, args, 1, Shape.map);
  rows.putField(into, args.buf, args.starts[2]!, args.lens[2]!, digits, 0, n);
}

export function hincrbyfloat(rows: Rows, args: Arguments, reply: Reply): void {
  const { buf, starts, lens } = args;
  const by = parseLongDouble(buf, starts[3]!, lens[3]!);
  if (by === undefined) throw notAFloatIncrement;
  if (by.infinite) throw notFinite;
  const row = typedRow(rows, args, 1, Shape.map);
  let sum: typeof by | undefined = by;
  if (row !== 0 && rows.field(row, buf, starts[2]!, lens[2]!, value)) {
    const old = parseLongDouble(value.b, value.s, value.n);
    forget();
    if (old === undefined) throw notAFloatValue;
    sum = addLongDoubles(old, by);
  }
  if (sum === undefined) throw wouldNotBeFinite;
  const text = Buffer.from(formatLongDouble(sum), 'latin1');
  const into = row !== 0 ? row : createRow(rows, args, 1, Shape.map);
  rows.putField(into, buf, starts[2]!, lens[2]!, text, 0, text.length);
  reply.bulk(text, 0, text.length);
}

function* hrandfieldInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const wanted = randomCount(args, 2);
  const withValues = args.count === 4;
  const nested = withValues && reply.version > 2;
  const answerOne: Answered = (fb, fs, fn, vb, vs, vn) => {
    if (nested) reply.array(2);
    reply.bulk(fb, fs, fn);
    if (withValues) reply.bulk(vb, vs, vn);
  };
  yield* randomInSteps(rows, finder(rows, args, 1, Shape.map), wanted, answerOne, (count) =>
    reply.array(withValues && !nested ? count * 2 : count),
  );
}

export function hrandfield(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > 2) {
    return hrandfieldWithCount(rows, args, reply);
  }
  const row = typedRow(rows, args, 1, Shape.map);
  if (row === 0) {
    reply.nil();
    return;
  }
  rows.fieldAt(row, pickOne(rows, sizeOf(rows, row)), field, value);
  reply.bulk(field.b, field.s, field.n);
  forget();
}

function hrandfieldWithCount(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const wanted = randomCount(args, 2);
  if (args.count > 4 || (args.count === 4 && !args.is(3, 'WITHVALUES'))) throw syntaxError;
  const withValues = args.count === 4;
  if (withValues) checkRandomPairs(args, 2);
  const row = typedRow(rows, args, 1, Shape.map);
  const size = sizeOf(rows, row);
  const count = wanted < 0 ? -wanted : Math.min(wanted, size);
  if (size === 0 || count === 0) {
    reply.array(0);
    return;
  }
  if (isLongPick(rows, row, wanted)) return hrandfieldInSteps;
  const nested = withValues && reply.version > 2;
  const answerOne = (
    fb: Buffer,
    fs: number,
    fn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void => {
    if (nested) reply.array(2);
    reply.bulk(fb, fs, fn);
    if (withValues) reply.bulk(vb, vs, vn);
  };
  const answerAt = (index: number): void => {
    rows.fieldAt(row, index, field, value);
    answerOne(field.b, field.s, field.n, value.b, value.s, value.n);
  };
  reply.array(withValues && !nested ? count * 2 : count);
  if (wanted < 0) {
    for (let i = 0; i < count; i++) answerAt(pickOne(rows, size));
  } else if (isFew(count, size)) {
    for (const index of pickFew(rows, count, size)) answerAt(index);
  } else {
    const picker = new WalkPicker(rows, count, size);
    rows.eachField(row, (fb, fs, fn, vb, vs, vn) => {
      if (picker.take()) answerOne(fb, fs, fn, vb, vs, vn);
    });
  }
  forget();
}

export function hscan(rows: Rows, args: Arguments, reply: Reply): void {
  scanRow(rows, args, reply, Shape.map);
}
