// Databases as a whole, and rows that go from one to another. A database is a table.

import type { Arguments } from '../../arguments.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { Row, Rows } from '../../rows.ts';
import { isLong, step, type Steps, type StepTransform } from '../../steps.ts';
import { intArgument } from './support/ranged-integer.ts';
import { RowCopy } from './support/row-copy.ts';

const indexOutOfRange = new CommandError('ERR DB index is out of range');
const sameObject = new CommandError('ERR source and destination objects are the same');
const invalidFirst = new CommandError('ERR invalid first DB index');
const invalidSecond = new CommandError('ERR invalid second DB index');

const copied = new RowCopy();

function tableNumber(rows: Rows, args: Arguments, word: number, error?: CommandError): number {
  const table = intArgument(args, word, error);
  if (table < 0 || table >= rows.tableCount) throw indexOutOfRange;
  return table;
}

function sameKey(args: Arguments): boolean {
  return args.bytes(1).equals(args.bytes(2));
}

export function copy(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { buf, starts, lens } = args;
  const from = rows.table;
  let to = from;
  let replace = false;
  for (let i = 3; i < args.count; i++) {
    if (args.is(i, 'REPLACE')) replace = true;
    else if (args.is(i, 'DB') && i + 1 < args.count) to = tableNumber(rows, args, ++i);
    else throw syntaxError;
  }
  if (from === to) {
    if (sameKey(args)) throw sameObject;
    rows.expect(1, 2, 1);
  }
  const source = rows.find(buf, starts[1]!, lens[1]!);
  if (source === 0) {
    reply.integer(0);
    return;
  }
  if (isLong(rows, source)) return copyInSteps;
  rows.useTable(to);
  if (!replace && rows.find(buf, starts[2]!, lens[2]!) !== 0) {
    reply.integer(0);
    return;
  }
  rows.useTable(from);
  copied.take(rows, source);
  rows.useTable(to);
  copied.put(rows, buf, starts[2]!, lens[2]!);
  copied.clear();
  reply.integer(1);
}

function* copyInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { buf, starts, lens } = args;
  const from = rows.table;
  let to = from;
  let replace = false;
  for (let i = 3; i < args.count; i++) {
    if (args.is(i, 'REPLACE')) replace = true;
    else to = tableNumber(rows, args, ++i);
  }
  const isTaken = yield* step(() => {
    rows.useTable(to);
    const there = rows.find(buf, starts[2]!, lens[2]!) !== 0;
    rows.useTable(from);
    return there && !replace;
  });
  if (isTaken) {
    reply.integer(0);
    return;
  }
  const large = new RowCopy();
  yield* large.takeInSteps(rows, () => rows.find(buf, starts[1]!, lens[1]!));
  rows.useTable(to);
  yield* large.putInSteps(rows, buf, starts[2]!, lens[2]!);
  reply.integer(1);
}

function* moveInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { buf, starts, lens } = args;
  const s = starts[1]!;
  const n = lens[1]!;
  const from = rows.table;
  const to = tableNumber(rows, args, 2);
  const find = (): Row => rows.find(buf, s, n);
  const isTaken = yield* step(() => {
    rows.useTable(to);
    const there = find() !== 0;
    rows.useTable(from);
    return there;
  });
  if (isTaken) {
    reply.integer(0);
    return;
  }
  const large = new RowCopy();
  yield* large.takeInSteps(rows, find);
  yield* step(() => rows.drop(find()));
  rows.useTable(to);
  yield* large.putInSteps(rows, buf, s, n);
  reply.integer(1);
}

export function move(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { buf, starts, lens } = args;
  const s = starts[1]!;
  const n = lens[1]!;
  const from = rows.table;
  const to = tableNumber(rows, args, 2);
  if (from === to) throw sameObject;
  const source = rows.find(buf, s, n);
  if (source === 0) {
    reply.integer(0);
    return;
  }
  if (isLong(rows, source)) return moveInSteps;
  rows.useTable(to);
  if (rows.find(buf, s, n) !== 0) {
    reply.integer(0);
    return;
  }
  rows.useTable(from);
  copied.take(rows, source);
  rows.drop(source);
  rows.useTable(to);
  copied.put(rows, buf, s, n);
  copied.clear();
  reply.integer(1);
}

export function swapdb(rows: Rows, args: Arguments, reply: Reply): void {
  const a = intArgument(args, 1, invalidFirst);
  const b = intArgument(args, 2, invalidSecond);
  if (a < 0 || a >= rows.tableCount || b < 0 || b >= rows.tableCount) throw indexOutOfRange;
  if (a !== b) rows.swapTables(a, b);
  reply.ok();
}

export function dbsize(rows: Rows, _args: Arguments, reply: Reply): void {
  reply.integer(rows.rowCount());
}

/** Rows go at once and memory is reclaimed at leisure, whichever of SYNC and ASYNC is asked for. */
function checkFlushOption(args: Arguments): void {
  if (args.count === 1) return;
  if (args.count > 2 || !(args.is(1, 'SYNC') || args.is(1, 'ASYNC'))) throw syntaxError;
}

export function flushdb(rows: Rows, args: Arguments, reply: Reply): void {
  checkFlushOption(args);
  rows.clear();
  reply.ok();
}

export function flushall(rows: Rows, args: Arguments, reply: Reply): void {
  checkFlushOption(args);
  // An empty one of its own, too: clients may remember that there is nothing under a key.
  const own = rows.table;
  for (let table = 0; table < rows.tableCount; table++) {
    if (!rows.hasTable(table)) continue;
    rows.useTable(table);
    if (table === own || rows.rowCount() > 0) rows.clear();
  }
  reply.ok();
}
