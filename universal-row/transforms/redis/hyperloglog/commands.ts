// PFADD, PFCOUNT, PFMERGE, and PFDEBUG for the contents of a HyperLogLog.

import type { Arguments } from '../../../arguments.ts';
import { emptyBytes, Slice } from '../../../bytes.ts';
import { CommandError, type ReadFault } from '../../../errors.ts';
import type { Reply } from '../../../reply.ts';
import { type Row, type Rows, Shape } from '../../../rows.ts';
import { step, type Steps, type StepTransform } from '../../../steps.ts';
import { typedRow } from '../support/typed-row.ts';
import { memoizedCount } from './count-memo.ts';
import { estimateOf, estimateOfRegisters } from './estimate.ts';
import { hashed, hashElement, registerCount } from './hash.ts';
import {
  cachedCount,
  denseRegister,
  eachRun,
  Encoding,
  encodingOf,
  headerBytes,
  isSketch,
  mergeInto,
  mostBytes,
  setSixBits,
  Sketch,
  staleByte,
} from './sketch.ts';

const notASketch = new CommandError('WRONGTYPE Key is not a valid HyperLogLog string value.');
const damaged = new CommandError('INVALIDOBJ Corrupted HLL object detected');
const noSuchKey = new CommandError('ERR The specified key does not exist');
const notSparse = new CommandError('ERR HLL encoding is not sparse');

/** Elements that one step adds: each may walk a sparse one. */
const elementsPerStep = 256;
/** HyperLogLogs that one step merges: each has 16384 registers. */
const sketchesPerStep = 16;

const value = new Slice();
const sketch = new Sketch();
const twoBytes = Buffer.alloc(2);

/** The HyperLogLog under the key in a word, or 0; `value` is then a view of it. */
function find(rows: Rows, args: Arguments, word: number): Row {
  const row = typedRow(rows, args, word, Shape.value);
  if (row === 0) return 0;
  rows.value(row, value);
  if (!isSketch(value.b, value.s, value.n)) throw notASketch;
  // No sparse one is that long: its runs would be more than there are registers.
  if (value.n > mostBytes) throw damaged;
  return row;
}

function store(rows: Rows, args: Arguments, word: number, row: Row): void {
  const { buf, starts, lens } = args;
  const expireAt = row === 0 ? 0 : rows.expireAt(row);
  rows.putValue(buf, starts[word]!, lens[word]!, sketch.b, 0, sketch.length, expireAt);
}

export function pfadd(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > elementsPerStep) return pfaddInSteps;
  reply.integer(add(rows, args, 2, args.count) ? 1 : 0);
}

/** Adds the elements in words from `from` to before `end`; whether that changed anything. */
function add(rows: Rows, args: Arguments, from: number, end: number): boolean {
  const row = find(rows, args, 1);
  if (row !== 0 && encodingOf(value.b, value.s) === Encoding.dense) {
    return addToDense(rows, row, args, from, end);
  }
  if (row === 0) sketch.clear();
  else sketch.load(value.b, value.s, value.n);
  value.b = emptyBytes;
  let isChanged = row === 0;
  for (let word = from; word < end; word++) {
    hashElement(args.buf, args.starts[word]!, args.lens[word]!);
    const raised = sketch.raise(hashed.index, hashed.count);
    if (raised < 0) throw damaged;
    if (raised > 0) isChanged = true;
  }
  if (!isChanged) return false;
  sketch.invalidate();
  store(rows, args, 1, row);
  return true;
}

/** Overwrites the bytes of a register, and no others. */
function addToDense(rows: Rows, row: Row, args: Arguments, from: number, end: number): boolean {
  let isChanged = false;
  for (let word = from; word < end; word++) {
    hashElement(args.buf, args.starts[word]!, args.lens[word]!);
    const { index, count } = hashed;
    const { b, s } = value;
    if (count <= denseRegister(b, s + headerBytes, index)) continue;
    const at = headerBytes + ((index * 6) >> 3);
    twoBytes[0] = b[s + at]!;
    const n = at + 1 < value.n ? 2 : 1;
    twoBytes[1] = n === 2 ? b[s + at + 1]! : 0;
    setSixBits(twoBytes, 0, (index * 6) & 7, count);
    rows.patchValue(row, at, twoBytes, 0, n);
    rows.value(row, value);
    isChanged = true;
  }
  const stale = value.b[value.s + staleByte.at]!;
  if (isChanged && stale < staleByte.bit) {
    twoBytes[0] = stale | staleByte.bit;
    rows.patchValue(row, staleByte.at, twoBytes, 0, 1);
  }
  value.b = emptyBytes;
  return isChanged;
}

function* pfaddInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  let isChanged = false;
  for (let word = 2; word < args.count; word += elementsPerStep) {
    const from = word;
    const end = Math.min(args.count, word + elementsPerStep);
    if (yield* step(() => add(rows, args, from, end))) isChanged = true;
  }
  reply.integer(isChanged ? 1 : 0);
}

function answerCount(reply: Reply, count: bigint): void {
  if (count >= 0n && count <= Number.MAX_SAFE_INTEGER) reply.integer(Number(count));
  else reply.bigInteger(count);
}

export function pfcount(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > sketchesPerStep) return pfcountInSteps;
  if (args.count > 2) {
    const registers = new Uint8Array(registerCount);
    mergeWords(rows, args, registers, 1, args.count);
    answerCount(reply, estimateOfRegisters(registers));
    return;
  }
  if (find(rows, args, 1) === 0) {
    reply.integer(0);
    return;
  }
  const { b, s, n } = value;
  value.b = emptyBytes;
  const count = cachedCount(b, s) ?? counted(args, b, s, n);
  if (count === undefined) throw damaged;
  answerCount(reply, count);
}

/** Counts the HyperLogLog at `s`, which is under the key in word 1. */
function counted(args: Arguments, b: Buffer, s: number, n: number): bigint | undefined {
  if (encodingOf(b, s) !== Encoding.dense) return estimateOf(b, s, n);
  const { buf, starts, lens } = args;
  return memoizedCount(b, s, buf, starts[1]!, lens[1]!, () => estimateOf(b, s, n));
}

/** Raises registers to those under the keys in words `from` to before `end`; whether one of them was dense. */
function mergeWords(
  rows: Rows,
  args: Arguments,
  registers: Uint8Array,
  from: number,
  end: number,
): boolean {
  let isDense = false;
  rows.expect(from, end - 1, 1);
  for (let word = from; word < end; word++) {
    if (find(rows, args, word) === 0) continue;
    const { b, s, n } = value;
    value.b = emptyBytes;
    if (encodingOf(b, s) === Encoding.dense) isDense = true;
    if (!mergeInto(registers, b, s, n)) throw damaged;
  }
  return isDense;
}

function* mergeInSteps(
  rows: Rows,
  args: Arguments,
  registers: Uint8Array,
): Generator<ReadFault | undefined, boolean, undefined> {
  let isDense = false;
  for (let word = 1; word < args.count; word += sketchesPerStep) {
    const from = word;
    const end = Math.min(args.count, word + sketchesPerStep);
    // To merge one again, when the step is done again, changes nothing.
    if (yield* step(() => mergeWords(rows, args, registers, from, end))) isDense = true;
  }
  return isDense;
}

function* pfcountInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const registers = new Uint8Array(registerCount);
  yield* mergeInSteps(rows, args, registers);
  answerCount(reply, estimateOfRegisters(registers));
}

export function pfmerge(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > sketchesPerStep) return pfmergeInSteps;
  const registers = new Uint8Array(registerCount);
  const isDense = mergeWords(rows, args, registers, 1, args.count);
  storeMerged(rows, args, registers, isDense);
  reply.ok();
}

function* pfmergeInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const registers = new Uint8Array(registerCount);
  const isDense = yield* mergeInSteps(rows, args, registers);
  yield* step(() => storeMerged(rows, args, registers, isDense));
  reply.ok();
}

function storeMerged(rows: Rows, args: Arguments, registers: Uint8Array, isDense: boolean): void {
  const row = find(rows, args, 1);
  if (row === 0) sketch.clear();
  else sketch.load(value.b, value.s, value.n);
  value.b = emptyBytes;
  if (isDense && !sketch.toDense()) throw damaged;
  for (let i = 0; i < registerCount; i++) {
    if (registers[i]! > 0) sketch.raise(i, registers[i]!);
  }
  sketch.invalidate();
  store(rows, args, 1, row);
}

export function pfdebug(rows: Rows, args: Arguments, reply: Reply): void {
  const row = find(rows, args, 2);
  if (row === 0) throw noSuchKey;
  const { b, s, n } = value;
  value.b = emptyBytes;
  const verb = args.text(1).toLowerCase();
  if (!['getreg', 'decode', 'encoding', 'todense'].includes(verb)) {
    throw new CommandError(`ERR Unknown PFDEBUG subcommand '${args.latin1(1, 128)}'`);
  }
  if (verb === 'encoding') {
    reply.simple(encodingOf(b, s) === Encoding.dense ? 'dense' : 'sparse');
  } else if (verb === 'decode') {
    if (encodingOf(b, s) === Encoding.dense) throw notSparse;
    reply.text(decode(b, s, n));
  } else {
    const isDense = encodingOf(b, s) === Encoding.dense;
    sketch.load(b, s, n);
    if (!isDense) {
      if (!sketch.toDense()) throw damaged;
      store(rows, args, 2, row);
    }
    if (verb === 'todense') reply.integer(isDense ? 0 : 1);
    else {
      reply.array(registerCount);
      for (let i = 0; i < registerCount; i++)
        reply.integer(denseRegister(sketch.b, headerBytes, i));
    }
  }
}

/** The runs of a sparse one: `z:3` and `Z:100` zeros, `v:5,2` twice 5. */
function decode(b: Buffer, s: number, n: number): string {
  const runs: string[] = [];
  eachRun(b, s, n, (_, length, count) => {
    if (count > 0) runs.push(`v:${count},${length}`);
    else runs.push(`${length > 64 ? 'Z' : 'z'}:${length}`);
  });
  return runs.join(' ');
}
