// Whole strings: GET, SET and related commands.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, Slice } from '../../bytes.ts';
import { CommandError, wrongType } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { shortWork, step, stepBytes, type Steps, type StepTransform } from '../../steps.ts';
import {
  invalidExpireTime,
  milliseconds,
  positiveExpiryTime,
  seconds,
} from './support/expiry-time.ts';
import { answerValueInSteps, isLargeValue, putWordInSteps } from './support/large-values.ts';
import { eachWord } from './support/long-walks.ts';
import { typedRow } from './support/typed-row.ts';
import { ValueOptions } from './support/value-options.ts';

const invalidSetTime = invalidExpireTime('set');
const invalidSetexTime = invalidExpireTime('setex');
const invalidPsetexTime = invalidExpireTime('psetex');
const invalidGetexTime = invalidExpireTime('getex');
const msetArity = new CommandError("ERR wrong number of arguments for 'mset' command");
const msetnxArity = new CommandError("ERR wrong number of arguments for 'msetnx' command");

/** Keys that one step looks up. */
const keysPerStep = 256;

const value = new Slice();
const options = new ValueOptions();

function answerValue(rows: Rows, row: Row, reply: Reply): void {
  rows.value(row, value);
  reply.bulk(value.b, value.s, value.n);
  value.b = emptyBytes;
}

/** The row at the key, which is a string if it is there. */
export function findString(rows: Rows, args: Arguments): Row {
  const row = rows.find(args.buf, args.starts[1]!, args.lens[1]!);
  if (row !== 0 && rows.shape(row) !== Shape.value) throw wrongType;
  return row;
}

export function get(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return answerFound(rows, findString(rows, args), reply);
}

/** Answers GET with the row that was found. */
export function answerFound(rows: Rows, row: Row, reply: Reply): StepTransform | void {
  if (row === 0) {
    reply.nil();
    return;
  }
  rows.value(row, value);
  const { b, s, n } = value;
  value.b = emptyBytes;
  if (isLargeValue(n)) return getInSteps;
  reply.bulk(b, s, n);
}

function* getInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const isThere = yield* step(() => {
    const row = findString(rows, args);
    if (row === 0) reply.nil();
    return row !== 0;
  });
  if (isThere) yield* answerValueInSteps(rows, () => findString(rows, args), reply);
}

/** Makes word `valueWord` the value of the key in word `keyWord`. */
function put(
  rows: Rows,
  args: Arguments,
  keyWord: number,
  valueWord: number,
  expireAt: number,
): void {
  const { buf, starts, lens } = args;
  rows.putValue(
    buf,
    starts[keyWord]!,
    lens[keyWord]!,
    buf,
    starts[valueWord]!,
    lens[valueWord]!,
    expireAt,
  );
}

/** As `put` of a large value. */
function* putInSteps(rows: Rows, args: Arguments, valueWord: number, expireAt: number): Steps {
  // A row whose time has come would be gone before it is filled.
  const isDue = expireAt !== 0 && expireAt <= rows.now;
  if (isDue) yield* step(() => put(rows, args, 1, valueWord, expireAt));
  else yield* putWordInSteps(rows, args, 1, valueWord, expireAt);
}

export function set(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (isLargeValue(args.lens[2]!)) return setInSteps;
  if (args.count > 3) {
    const expireAt = readSetOptions(rows, args);
    const row = rowOfOptions(rows, args);
    if (options.get) {
      if (row === 0) reply.nil();
      else if (rows.shape(row) !== Shape.value) throw wrongType;
      else if (isLargeValue(rows.count(row))) return setInSteps;
      else answerValue(rows, row, reply);
    }
    if (isRefused(row)) {
      if (!options.get) reply.nil();
      return;
    }
    put(rows, args, 1, 2, options.keepTtl && row !== 0 ? rows.expireAt(row) : expireAt);
    if (!options.get) reply.ok();
    return;
  }
  put(rows, args, 1, 2, 0);
  reply.ok();
}

/** Reads the options of SET into `options`, and returns the expiry. */
function readSetOptions(rows: Rows, args: Arguments): number {
  options.parse(args, 3, true);
  return options.expireAt(args, rows.now, invalidSetTime);
}

/** The row that the options of SET ask about; 0 if there is none, or they ask about none. */
function rowOfOptions(rows: Rows, args: Arguments): Row {
  const isAsked = options.nx || options.xx || options.get || options.keepTtl;
  return isAsked ? rows.find(args.buf, args.starts[1]!, args.lens[1]!) : 0;
}

/** Whether NX or XX leave the row as it is. */
function isRefused(row: Row): boolean {
  return (options.nx && row !== 0) || (options.xx && row === 0);
}

function* setInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const plan = yield* step(() => {
    const expireAt = readSetOptions(rows, args);
    const row = rowOfOptions(rows, args);
    return {
      isAnswered: options.get,
      isRefused: isRefused(row),
      expireAt: options.keepTtl && row !== 0 ? rows.expireAt(row) : expireAt,
    };
  });
  if (plan.isAnswered) yield* getInSteps(rows, args, reply);
  if (plan.isRefused) {
    if (!plan.isAnswered) reply.nil();
    return;
  }
  yield* putInSteps(rows, args, 2, plan.expireAt);
  if (!plan.isAnswered) reply.ok();
}

export function setnx(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (isLargeValue(args.lens[2]!)) return setnxInSteps;
  if (rows.find(args.buf, args.starts[1]!, args.lens[1]!) !== 0) {
    reply.integer(0);
    return;
  }
  put(rows, args, 1, 2, 0);
  reply.integer(1);
}

function* setnxInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { buf, starts, lens } = args;
  const isNew = yield* step(() => rows.find(buf, starts[1]!, lens[1]!) === 0);
  if (isNew) yield* putInSteps(rows, args, 2, 0);
  reply.integer(isNew ? 1 : 0);
}

export function setex(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const expireAt = positiveExpiryTime(args, 2, seconds, rows.now, invalidSetexTime);
  if (isLargeValue(args.lens[3]!)) return setexInSteps;
  put(rows, args, 1, 3, expireAt);
  reply.ok();
}

function* setexInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const expireAt = positiveExpiryTime(args, 2, seconds, rows.now, invalidSetexTime);
  yield* putInSteps(rows, args, 3, expireAt);
  reply.ok();
}

export function psetex(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const expireAt = positiveExpiryTime(args, 2, milliseconds, rows.now, invalidPsetexTime);
  if (isLargeValue(args.lens[3]!)) return psetexInSteps;
  put(rows, args, 1, 3, expireAt);
  reply.ok();
}

function* psetexInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const expireAt = positiveExpiryTime(args, 2, milliseconds, rows.now, invalidPsetexTime);
  yield* putInSteps(rows, args, 3, expireAt);
  reply.ok();
}

export function getset(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (isLargeValue(args.lens[2]!) || get(rows, args, reply) !== undefined) return getsetInSteps;
  put(rows, args, 1, 2, 0);
}

function* getsetInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  yield* getInSteps(rows, args, reply);
  yield* putInSteps(rows, args, 2, 0);
}

export function getdel(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = findString(rows, args);
  if (row === 0) {
    reply.nil();
    return;
  }
  if (isLargeValue(rows.count(row))) return getdelInSteps;
  answerValue(rows, row, reply);
  rows.drop(row);
}

function* getdelInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  yield* getInSteps(rows, args, reply);
  yield* step(() => rows.drop(findString(rows, args)));
}

export function getex(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  options.parse(args, 2, false);
  const row = findString(rows, args);
  if (row === 0) {
    reply.nil();
    return;
  }
  if (isLargeValue(rows.count(row))) return getexInSteps;
  options.expireAt(args, rows.now, invalidGetexTime);
  answerValue(rows, row, reply);
  changeExpiry(rows, args, row);
}

function* getexInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  yield* step(() => {
    options.parse(args, 2, false);
    options.expireAt(args, rows.now, invalidGetexTime);
  });
  yield* getInSteps(rows, args, reply);
  yield* step(() => {
    options.parse(args, 2, false);
    changeExpiry(rows, args, findString(rows, args));
  });
}

/** As the options of GETEX have it. */
function changeExpiry(rows: Rows, args: Arguments, row: Row): void {
  const expireAt = options.expireAt(args, rows.now, invalidGetexTime);
  if (options.hasPointInTime && expireAt <= rows.now) rows.drop(row);
  else if (options.hasTime) rows.setExpireAt(row, expireAt);
  else if (options.persist && rows.expireAt(row) !== 0) rows.setExpireAt(row, 0);
}

export function mget(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { buf, starts, lens, count } = args;
  if (count > shortWork.elements) return mgetInSteps;
  rows.expect(1, count - 1, 1);
  reply.array(count - 1);
  let bytes = 0;
  for (let i = 1; i < count; i++) {
    const row = rows.find(buf, starts[i]!, lens[i]!);
    if (row === 0 || rows.shape(row) !== Shape.value) reply.nil();
    else {
      rows.value(row, value);
      bytes += value.n;
      if (bytes > shortWork.bytes) {
        value.b = emptyBytes;
        return mgetInSteps;
      }
      reply.bulk(value.b, value.s, value.n);
    }
  }
  value.b = emptyBytes;
}

function* mgetInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { buf, starts, lens, count } = args;
  const valueAt = (word: number): Row => {
    const row = rows.find(buf, starts[word]!, lens[word]!);
    return row !== 0 && rows.shape(row) === Shape.value ? row : 0;
  };
  reply.array(count - 1);
  for (let i = 1; i < count; ) {
    const from = i;
    // To the next value that takes steps of its own.
    const { word, isLarge } = yield* step(() => {
      const end = Math.min(count, from + keysPerStep);
      rows.expect(from, end - 1, 1);
      let next = from;
      for (let bytes = 0; next < end && bytes < stepBytes; next++) {
        const row = valueAt(next);
        if (row === 0) reply.nil();
        else {
          const length = rows.count(row);
          if (isLargeValue(length)) return { word: next, isLarge: true };
          bytes += length;
          answerValue(rows, row, reply);
        }
      }
      return { word: next, isLarge: false };
    });
    if (isLarge) yield* answerValueInSteps(rows, () => valueAt(word), reply);
    i = isLarge ? word + 1 : word;
  }
}

export function mset(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count % 2 === 0) throw msetArity;
  if (isLongPut(args)) return msetInSteps;
  for (let i = 1; i < args.count; i += 2) put(rows, args, i, i + 1, 0);
  reply.ok();
}

function isLongPut(args: Arguments): boolean {
  if (args.count > shortWork.elements) return true;
  let bytes = 0;
  for (let i = 2; i < args.count; i += 2) bytes += args.lens[i]!;
  return bytes > shortWork.bytes;
}

function* putAllInSteps(rows: Rows, args: Arguments): Steps {
  const { lens, count } = args;
  for (let from = 1; from < count; ) {
    if (isLargeValue(lens[from + 1]!)) {
      yield* putWordInSteps(rows, args, from, from + 1, 0);
      from += 2;
      continue;
    }
    let end = from;
    while (end < count && !isLargeValue(lens[end + 1]!)) end += 2;
    yield* eachWord(args, from, end, 2, undefined, nothing, (word) =>
      put(rows, args, word, word + 1, 0),
    );
    from = end;
  }
}

function nothing(): void {
  // There is nothing to prepare for a step.
}

function* msetInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  yield* putAllInSteps(rows, args);
  reply.ok();
}

function* msetnxInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  let isThere = false;
  yield* eachWord(args, 1, args.count, 2, undefined, nothing, (word) => {
    isThere = rows.find(args.buf, args.starts[word]!, args.lens[word]!) !== 0;
    return isThere;
  });
  if (!isThere) yield* putAllInSteps(rows, args);
  reply.integer(isThere ? 0 : 1);
}

export function msetnx(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { buf, starts, lens, count } = args;
  if (count % 2 === 0) throw msetnxArity;
  if (isLongPut(args)) return msetnxInSteps;
  rows.expect(1, count - 2, 2);
  for (let i = 1; i < count; i += 2) {
    if (rows.find(buf, starts[i]!, lens[i]!) === 0) continue;
    reply.integer(0);
    return;
  }
  for (let i = 1; i < count; i += 2) put(rows, args, i, i + 1, 0);
  reply.integer(1);
}

export function strlen(rows: Rows, args: Arguments, reply: Reply): void {
  const row = typedRow(rows, args, 1, Shape.value);
  reply.integer(row === 0 ? 0 : rows.count(row));
}
