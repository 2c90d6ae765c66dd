// Commands on rows of any shape.

import type { Arguments } from '../../arguments.ts';
import { CommandError, noSuchKey } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { Rows } from '../../rows.ts';
import { shortWork, step, type Steps, type StepTransform } from '../../steps.ts';
import { typeName } from './support/type-name.ts';

/** Keys that one step looks up. */
const keysPerStep = 256;

const notATimeout = new CommandError('ERR timeout is not an integer or out of range');
const negativeTimeout = new CommandError('ERR timeout is negative');
const notPositive = new CommandError('ERR value is out of range, must be positive');
const notOneOrNone = new CommandError('ERR value is out of range, value must between 0 and 1');

export function del(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { buf, starts, lens, count } = args;
  if (count > shortWork.elements) return delInSteps;
  rows.expect(1, count - 1, 1);
  let dropped = 0;
  for (let i = 1; i < count; i++) {
    const row = rows.find(buf, starts[i]!, lens[i]!);
    if (row === 0) continue;
    rows.drop(row);
    dropped++;
  }
  reply.integer(dropped);
}

/** Counts the keys there are, and does something to each. */
function* countKeysInSteps(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  act: (row: number) => void,
): Steps {
  const { buf, starts, lens, count } = args;
  let found = 0;
  for (let at = 1; at < count; at += keysPerStep) {
    const end = Math.min(count, at + keysPerStep);
    found += yield* step(() => {
      rows.expect(at, end - 1, 1);
      let there = 0;
      for (let i = at; i < end; i++) {
        const row = rows.find(buf, starts[i]!, lens[i]!);
        if (row === 0) continue;
        act(row);
        there++;
      }
      return there;
    });
  }
  reply.integer(found);
}

function delInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  return countKeysInSteps(rows, args, reply, (row) => rows.drop(row));
}

function existsInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  return countKeysInSteps(rows, args, reply, () => {});
}

/** EXISTS and TOUCH. The lookup itself counts as a use of the row, but for EXISTS, which only peeks. */
export function exists(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { buf, starts, lens, count } = args;
  if (count > shortWork.elements) return existsInSteps;
  rows.expect(1, count - 1, 1);
  let found = 0;
  for (let i = 1; i < count; i++) if (rows.find(buf, starts[i]!, lens[i]!) !== 0) found++;
  reply.integer(found);
}

export function type(rows: Rows, args: Arguments, reply: Reply): void {
  reply.simple(typeName(rows, rows.find(args.buf, args.starts[1]!, args.lens[1]!)));
}

export function rename(rows: Rows, args: Arguments, reply: Reply): void {
  const { buf, starts, lens } = args;
  rows.expect(1, 2, 1);
  const row = rows.find(buf, starts[1]!, lens[1]!);
  if (row === 0) throw noSuchKey;
  if (!args.bytes(1).equals(args.bytes(2))) rows.rename(row, buf, starts[2]!, lens[2]!);
  reply.ok();
}

export function renamenx(rows: Rows, args: Arguments, reply: Reply): void {
  const { buf, starts, lens } = args;
  rows.expect(1, 2, 1);
  const row = rows.find(buf, starts[1]!, lens[1]!);
  if (row === 0) throw noSuchKey;
  if (rows.find(buf, starts[2]!, lens[2]!) !== 0) {
    reply.integer(0);
    return;
  }
  rows.rename(row, buf, starts[2]!, lens[2]!);
  reply.integer(1);
}

/** Answers at once: there are no replicas to wait for. */
export function wait(_rows: Rows, args: Arguments, reply: Reply): void {
  args.integer(1);
  checkTimeout(args, 2);
  reply.integer(0);
}

/** Answers at once: what a transaction writes is on no disk before its end. */
export function waitaof(_rows: Rows, args: Arguments, reply: Reply): void {
  const local = args.integer(1);
  if (local < 0 || local > 1) throw notOneOrNone;
  if (!(args.integerOrNaN(2) >= 0)) throw notPositive;
  checkTimeout(args, 3);
  reply.array(2);
  reply.integer(0);
  reply.integer(0);
}

function checkTimeout(args: Arguments, i: number): void {
  const timeout = args.integerOrNaN(i);
  if (Number.isNaN(timeout)) throw notATimeout;
  if (timeout < 0) throw negativeTimeout;
}
