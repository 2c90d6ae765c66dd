// Commands over several sets: intersection, union and difference, answered, counted or stored.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { emptyBytes } from '../../../universal-row/bytes.ts';
import { Action } from '../../../universal-row/command.ts';
import { CommandError, syntaxError } from '../../../universal-row/errors.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import type { BytesVisitor, Row, Rows } from '../../../universal-row/rows.ts';
import { Shape } from '../../../universal-row/rows.ts';
import type { CommandSpec } from './spec.ts';
import { allKeys } from './spec.ts';
import { ByteList } from './support/byte-list.ts';
import { countedKeys } from './support/counted-keys.ts';
import { membership } from './support/membership.ts';
import { integerAtLeast } from './support/ranged-integer.ts';
import { createRow, dropRow, typedRow } from './support/typed-row.ts';

const countTooSmall = new CommandError('ERR numkeys should be greater than 0');
const tooManyKeys = new CommandError("ERR Number of keys can't be greater than number of args");
const negativeLimit = new CommandError("ERR LIMIT can't be negative");

/** Shows each member of the result once. `sets` has a 0 where there is no set. */
type Operation = (rows: Rows, sets: readonly Row[], visit: BytesVisitor) => void;

/** The sets under the keys from one word to another; 0 for one that is not there. */
function findSets(rows: Rows, args: Arguments, first: number, last: number): Row[] {
  rows.expect(first, last, 1);
  const sets: Row[] = [];
  for (let i = first; i <= last; i++) sets.push(typedRow(rows, args, i, Shape.set));
  return sets;
}

/** Walks the smallest set, and asks the others from small to large: they are likelier to lack a member. */
function intersect(rows: Rows, sets: readonly Row[], visit: BytesVisitor): void {
  if (sets.includes(0)) return;
  const bySize = [...new Set(sets)].sort((a, b) => rows.count(a) - rows.count(b));
  const smallest = bySize[0]!;
  rows.eachField(smallest, (b, s, n) => {
    for (let i = 1; i < bySize.length; i++) if (!rows.field(bySize[i]!, b, s, n)) return false;
    return visit(b, s, n);
  });
}

/** Walks one set after the other, passing over what an earlier one had. */
function unite(rows: Rows, sets: readonly Row[], visit: BytesVisitor): void {
  const distinct = [...new Set(sets)].filter((row) => row !== 0);
  const seen = membership(rows, distinct.length - 1);
  for (const [i, row] of distinct.entries()) {
    rows.eachField(row, (b, s, n) => (seen.has(b, s, n) ? false : visit(b, s, n)));
    if (i < distinct.length - 1) seen.include(row);
  }
}

/** Walks the first set, passing over what any other has; the large ones are likelier to. */
function subtract(rows: Rows, sets: readonly Row[], visit: BytesVisitor): void {
  const first = sets[0]!;
  const others = [...new Set(sets.slice(1))].filter((row) => row !== 0);
  if (first === 0 || others.includes(first)) return;
  others.sort((a, b) => rows.count(b) - rows.count(a));
  const excluded = membership(rows, others.length);
  for (const row of others) excluded.include(row);
  rows.eachField(first, (b, s, n) => (excluded.has(b, s, n) ? false : visit(b, s, n)));
}

function answering(operation: Operation) {
  return (rows: Rows, args: Arguments, reply: Reply): void => {
    const sets = findSets(rows, args, 1, args.count - 1);
    const mark = reply.open();
    let count = 0;
    operation(rows, sets, (b, s, n) => {
      reply.bulk(b, s, n);
      count++;
    });
    reply.close(mark, 'set', count);
  };
}

function storing(operation: Operation) {
  return (rows: Rows, args: Arguments, reply: Reply): void => {
    const sets = findSets(rows, args, 2, args.count - 1);
    // The destination may be one of the sets, so nothing is written before all is read.
    const result = new ByteList();
    operation(rows, sets, (b, s, n) => result.add(b, s, n));
    if (result.count === 0) dropRow(rows, args, 1);
    else {
      const into = createRow(rows, args, 1, Shape.set);
      for (let i = 0; i < result.count; i++) {
        rows.putField(into, result.buf, result.start(i), result.length(i), emptyBytes, 0, 0);
      }
    }
    reply.integer(result.count);
  };
}

function sintercard(rows: Rows, args: Arguments, reply: Reply): void {
  const keys = integerAtLeast(args, 1, 1, countTooSmall);
  if (keys > args.count - 2) throw tooManyKeys;
  let limit = 0;
  for (let i = 2 + keys; i < args.count; i += 2) {
    if (!args.is(i, 'LIMIT') || i + 1 >= args.count) throw syntaxError;
    limit = integerAtLeast(args, i + 1, 0, negativeLimit);
  }
  const sets = findSets(rows, args, 2, 1 + keys);
  let count = 0;
  intersect(rows, sets, () => ++count === limit);
  reply.integer(count);
}

export const setAlgebraCommands: readonly CommandSpec[] = [
  {
    name: 'sinter',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['readonly'],
    keys: allKeys,
    group: 'set',
    since: '1.0.0',
    summary: 'Returns the members that are in all of the sets.',
    complexity: 'O(N*M) for M sets, the smallest of N members',
    action: Action.query,
    run: answering(intersect),
  },
  {
    name: 'sinterstore',
    arity: -3,
    syntax: 'destination key [key ...]',
    flags: ['write', 'denyoom'],
    keys: allKeys,
    group: 'set',
    since: '1.0.0',
    summary: 'Stores the members that are in all of the sets.',
    complexity: 'O(N*M) for M sets, the smallest of N members',
    action: Action.update,
    run: storing(intersect),
  },
  {
    name: 'sintercard',
    arity: -3,
    syntax: 'numkeys key [key ...] [LIMIT limit]',
    flags: ['readonly', 'movablekeys'],
    keys: countedKeys(1),
    group: 'set',
    since: '7.0.0',
    summary: 'Counts the members that are in all of the sets, up to a limit.',
    complexity: 'O(N*M) for M sets, the smallest of N members',
    action: Action.query,
    run: sintercard,
  },
  {
    name: 'sunion',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['readonly'],
    keys: allKeys,
    group: 'set',
    since: '1.0.0',
    summary: 'Returns the members that are in any of the sets.',
    complexity: 'O(N) for N members in all sets',
    action: Action.query,
    run: answering(unite),
  },
  {
    name: 'sunionstore',
    arity: -3,
    syntax: 'destination key [key ...]',
    flags: ['write', 'denyoom'],
    keys: allKeys,
    group: 'set',
    since: '1.0.0',
    summary: 'Stores the members that are in any of the sets.',
    complexity: 'O(N) for N members in all sets',
    action: Action.update,
    run: storing(unite),
  },
  {
    name: 'sdiff',
    arity: -2,
    syntax: 'key [key ...]',
    flags: ['readonly'],
    keys: allKeys,
    group: 'set',
    since: '1.0.0',
    summary: 'Returns the members of the first set that are in no other.',
    complexity: 'O(N) for N members in all sets',
    action: Action.query,
    run: answering(subtract),
  },
  {
    name: 'sdiffstore',
    arity: -3,
    syntax: 'destination key [key ...]',
    flags: ['write', 'denyoom'],
    keys: allKeys,
    group: 'set',
    since: '1.0.0',
    summary: 'Stores the members of the first set that are in no other.',
    complexity: 'O(N) for N members in all sets',
    action: Action.update,
    run: storing(subtract),
  },
];
