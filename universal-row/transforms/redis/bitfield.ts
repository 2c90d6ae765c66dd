// Integers of 1 to 64 bits anywhere in a string: BITFIELD and BITFIELD_RO.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, parseInteger, Slice } from '../../bytes.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import { step, type Steps, type StepTransform } from '../../steps.ts';
import { bitOffsetError, growValue } from './bitmaps.ts';
import { stringLimit } from './support/string-limit.ts';
import { sizeOf, typedRow } from './support/typed-row.ts';

const typeError = new CommandError(
  'ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.',
);
const overflowError = new CommandError('ERR Invalid OVERFLOW type specified');
const readOnlyError = new CommandError('ERR BITFIELD_RO only supports the GET subcommand');

/** Operations that one step carries out: each may copy the whole value. */
const operationsPerStep = 64;
/** Words of that many operations at most. */
const shortWords = operationsPerStep * 3;

const hash = 35;

const value = new Slice();
const window = Buffer.alloc(9);

type Overflow = 'wrap' | 'sat' | 'fail';
type Verb = 'get' | 'set' | 'incrby';

/** One operation, read from the words of a command. */
class Operation {
  verb: Verb = 'get';
  isSigned = false;
  bits = 0;
  /** Offset of the first bit. */
  offset = 0;
  operand = 0n;
  /** Holds for the operations that follow, too. */
  overflow: Overflow = 'wrap';

  /**
   * Reads the operation at an argument and returns the position after it. OVERFLOW changes
   * `overflow` alone.
   */
  read(args: Arguments, word: number): number {
    const left = args.count - word - 1;
    if (args.is(word, 'OVERFLOW') && left >= 1) {
      this.overflow = overflowOf(args, word + 1);
      return word + 2;
    }
    if (args.is(word, 'GET') && left >= 2) this.verb = 'get';
    else if (args.is(word, 'SET') && left >= 3) this.verb = 'set';
    else if (args.is(word, 'INCRBY') && left >= 3) this.verb = 'incrby';
    else throw syntaxError;
    this.#readType(args, word + 1);
    this.#readOffset(args, word + 2);
    if (this.verb === 'get') return word + 3;
    this.operand = args.bigInteger(word + 3);
    return word + 4;
  }

  #readType(args: Arguments, word: number): void {
    const at = args.starts[word]!;
    const n = args.lens[word]!;
    const sign = n === 0 ? 0 : args.buf[at]!;
    this.isSigned = sign === 105;
    if (!this.isSigned && sign !== 117) throw typeError;
    this.bits = parseInteger(args.buf, at + 1, n - 1);
    if (!(this.bits >= 1 && this.bits <= (this.isSigned ? 64 : 63))) throw typeError;
  }

  #readOffset(args: Arguments, word: number): void {
    const at = args.starts[word]!;
    const n = args.lens[word]!;
    const isMultiple = n > 0 && args.buf[at] === hash;
    const number = isMultiple ? parseInteger(args.buf, at + 1, n - 1) : args.integerOrNaN(word);
    this.offset = isMultiple ? number * this.bits : number;
    if (!(this.offset >= 0 && this.offset < stringLimit.bytes * 8)) throw bitOffsetError;
  }
}

function overflowOf(args: Arguments, word: number): Overflow {
  if (args.is(word, 'WRAP')) return 'wrap';
  if (args.is(word, 'SAT')) return 'sat';
  if (args.is(word, 'FAIL')) return 'fail';
  throw overflowError;
}

/** Summary of all arguments, collected while they are read. */
class Summary {
  operations = 0;
  writes = false;
  /** Bytes the value has at least once it is written to. */
  length = 0;

  /** Reads words from `from`, `most` operations at most; returns the word behind them. */
  add(args: Arguments, operation: Operation, from: number, most: number): number {
    let word = from;
    for (let i = 0; word < args.count && i < most; i++) {
      const next = operation.read(args, word);
      if (!args.is(word, 'OVERFLOW')) {
        this.operations++;
        if (operation.verb !== 'get') {
          this.writes = true;
          const last = operation.offset + operation.bits - 1;
          this.length = Math.max(this.length, Math.floor(last / 8) + 1);
        }
      }
      word = next;
    }
    return word;
  }
}

export function bitfield(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return run(rows, args, reply, false);
}

export function bitfieldRo(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return run(rows, args, reply, true);
}

function run(rows: Rows, args: Arguments, reply: Reply, isReadOnly: boolean): StepTransform | void {
  if (args.count > shortWords) return isReadOnly ? readInSteps : writeInSteps;
  const summary = new Summary();
  summary.add(args, new Operation(), 2, Infinity);
  if (summary.writes && isReadOnly) throw readOnlyError;
  const row = begin(rows, args, summary);
  reply.array(summary.operations);
  carryOut(row, rows, args, reply, new Operation(), 2, Infinity);
}

/** Makes the row ready to be written to, if it is to be; 0 if there is none. */
function begin(rows: Rows, args: Arguments, summary: Summary): Row {
  const row = typedRow(rows, args, 1, Shape.value);
  if (!summary.writes || !growValue(rows, args, row, summary.length)) return row;
  return typedRow(rows, args, 1, Shape.value);
}

function readInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  return runInSteps(rows, args, reply, true);
}

function writeInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  return runInSteps(rows, args, reply, false);
}

function* runInSteps(rows: Rows, args: Arguments, reply: Reply, isReadOnly: boolean): Steps {
  const summary = new Summary();
  const checked = new Operation();
  for (let word = 2; word < args.count; ) {
    yield;
    word = summary.add(args, checked, word, 8 * operationsPerStep);
  }
  if (summary.writes && isReadOnly) throw readOnlyError;
  yield* step(() => begin(rows, args, summary));
  reply.array(summary.operations);
  const operation = new Operation();
  for (let word = 2; word < args.count; ) {
    const from = word;
    const { overflow } = operation;
    word = yield* step(() => {
      operation.overflow = overflow;
      const row = typedRow(rows, args, 1, Shape.value);
      return carryOut(row, rows, args, reply, operation, from, operationsPerStep);
    });
  }
}

/** Carries out the operations from a word on, and answers each. Returns the word behind the last. */
function carryOut(
  row: Row,
  rows: Rows,
  args: Arguments,
  reply: Reply,
  operation: Operation,
  from: number,
  most: number,
): number {
  let word = from;
  for (let i = 0; word < args.count && i < most; i++) {
    const next = operation.read(args, word);
    if (!args.is(word, 'OVERFLOW')) carryOutOne(row, rows, reply, operation);
    word = next;
  }
  return word;
}

function carryOutOne(row: Row, rows: Rows, reply: Reply, operation: Operation): void {
  const { verb, bits, offset, operand } = operation;
  const first = Math.floor(offset / 8);
  const n = ((offset % 8) + bits + 7) >> 3;
  loadWindow(rows, row, first, n);
  let field = 0n;
  for (let i = 0; i < n; i++) field = (field << 8n) | BigInt(window[i]!);
  const right = BigInt(n * 8 - (offset % 8) - bits);
  const unsigned = BigInt.asUintN(bits, field >> right);
  const old = operation.isSigned ? BigInt.asIntN(bits, unsigned) : unsigned;
  if (verb === 'get') {
    reply.bigInteger(old);
    return;
  }
  const next = verb === 'incrby' ? fit(operation, old, operand) : fit(operation, operand, 0n);
  if (next === undefined) {
    reply.nil();
    return;
  }
  reply.bigInteger(verb === 'incrby' ? next : old);
  if (next === old) return;
  const others = field ^ (unsigned << right);
  let changed = others | (BigInt.asUintN(bits, next) << right);
  for (let i = n - 1; i >= 0; i--, changed >>= 8n) window[i] = Number(changed & 255n);
  rows.patchValue(row, first, window, 0, n);
}

function loadWindow(rows: Rows, row: Row, first: number, n: number): void {
  window.fill(0, 0, n);
  const length = sizeOf(rows, row);
  if (first >= length) return;
  rows.value(row, value);
  value.b.copy(window, 0, value.s + first, value.s + Math.min(length, first + n));
  value.b = emptyBytes;
}

/** The sum as the field takes it, `undefined` where it does not fit and OVERFLOW is FAIL. */
function fit(operation: Operation, start: bigint, increment: bigint): bigint | undefined {
  const { bits, isSigned, overflow } = operation;
  const max = 2n ** BigInt(isSigned ? bits - 1 : bits) - 1n;
  const min = isSigned ? -max - 1n : 0n;
  const sum = start + increment;
  if (sum >= min && sum <= max) return sum;
  if (overflow === 'fail') return undefined;
  if (overflow === 'wrap') return isSigned ? BigInt.asIntN(bits, sum) : BigInt.asUintN(bits, sum);
  return sum > max || isAboveInRedis(start, min, max) ? max : min;
}

/**
 * A SET value far below the field's range counts as above it: Redis subtracts it from the maximum
 * with 64 bits, and treats it as an unsigned number where the field is unsigned.
 */
function isAboveInRedis(start: bigint, min: bigint, max: bigint): boolean {
  return start < min && (min === 0n || BigInt.asIntN(64, max - start) < 0n);
}
