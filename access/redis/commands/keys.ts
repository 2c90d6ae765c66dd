// Commands on rows of any shape.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { Action } from '../../../universal-row/command.ts';
import { CommandError, noSuchKey } from '../../../universal-row/errors.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import type { Rows } from '../../../universal-row/rows.ts';
import { shortWork, step, type Steps, type StepTransform } from '../../../universal-row/steps.ts';
import { databaseCommands } from './databases.ts';
import { expireCommands } from './expire.ts';
import { objectCommands } from './object.ts';
import { scanCommands } from './scan.ts';
import { sortCommands } from './sort.ts';
import { allKeys, type CommandSpec, firstKey, type KeyRange, noKeys } from './spec.ts';
import { typeName } from './support/type-name.ts';

/** Keys that one step looks up. */
const keysPerStep = 256;

const notATimeout = new CommandError('ERR timeout is not an integer or out of range');
const negativeTimeout = new CommandError('ERR timeout is negative');

function del(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
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

/** EXISTS, and TOUCH too: when a row was last used is not kept. */
function exists(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { buf, starts, lens, count } = args;
  if (count > shortWork.elements) return existsInSteps;
  rows.expect(1, count - 1, 1);
  let found = 0;
  for (let i = 1; i < count; i++) if (rows.find(buf, starts[i]!, lens[i]!) !== 0) found++;
  reply.integer(found);
}

function type(rows: Rows, args: Arguments, reply: Reply): void {
  reply.simple(typeName(rows, rows.find(args.buf, args.starts[1]!, args.lens[1]!)));
}

function rename(rows: Rows, args: Arguments, reply: Reply): void {
  const { buf, starts, lens } = args;
  rows.expect(1, 2, 1);
  const row = rows.find(buf, starts[1]!, lens[1]!);
  if (row === 0) throw noSuchKey;
  if (!args.bytes(1).equals(args.bytes(2))) rows.rename(row, buf, starts[2]!, lens[2]!);
  reply.ok();
}

function renamenx(rows: Rows, args: Arguments, reply: Reply): void {
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
function wait(_rows: Rows, args: Arguments, reply: Reply): void {
  args.integer(1);
  const timeout = args.integerOrNaN(2);
  if (Number.isNaN(timeout)) throw notATimeout;
  if (timeout < 0) throw negativeTimeout;
  reply.integer(0);
}

const sourceAndTarget: KeyRange = { first: 1, last: 2, step: 1 };

export const keysCommands: readonly CommandSpec[] = [
  {
    name: 'del',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['write'],
    keys: allKeys,
    group: 'generic',
    since: '1.0.0',
    summary: 'Removes keys.',
    complexity: 'O(N) for N keys',
    action: Action.delete,
    run: del,
  },
  {
    name: 'unlink',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['write', 'fast'],
    keys: allKeys,
    group: 'generic',
    since: '4.0.0',
    summary: 'Removes keys, and reclaims their memory later.',
    complexity: 'O(N) for N keys',
    action: Action.delete,
    run: del,
  },
  {
    name: 'exists',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['readonly', 'fast'],
    keys: allKeys,
    group: 'generic',
    since: '1.0.0',
    summary: 'Returns how many of the keys there are.',
    complexity: 'O(N) for N keys',
    action: Action.fetch,
    run: exists,
  },
  {
    name: 'touch',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['readonly', 'fast'],
    keys: allKeys,
    group: 'generic',
    since: '3.2.1',
    summary: 'Returns how many of the keys there are.',
    complexity: 'O(N) for N keys',
    action: Action.fetch,
    run: exists,
  },
  {
    name: 'type',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    keys: firstKey,
    group: 'generic',
    since: '1.0.0',
    summary: 'Returns the type of what is under a key.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: type,
  },
  {
    name: 'rename',
    arity: 3,
    syntax: 'key newkey',
    flags: ['write'],
    keys: sourceAndTarget,
    group: 'generic',
    since: '1.0.0',
    summary: 'Gives a key another name, in place of whatever has it.',
    complexity: 'O(1)',
    action: Action.update,
    run: rename,
  },
  {
    name: 'renamenx',
    arity: 3,
    syntax: 'key newkey',
    flags: ['write', 'fast'],
    keys: sourceAndTarget,
    group: 'generic',
    since: '1.0.0',
    summary: 'Gives a key another name that no key has.',
    complexity: 'O(1)',
    action: Action.update,
    run: renamenx,
  },
  {
    name: 'wait',
    arity: 3,
    syntax: 'numreplicas timeout:integer',
    flags: ['noscript'],
    keys: noKeys,
    group: 'generic',
    since: '3.0.0',
    summary: 'Waits until replicas have the writes made so far.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: wait,
  },
  ...expireCommands,
  ...scanCommands,
  ...databaseCommands,
  ...sortCommands,
  ...objectCommands,
];
