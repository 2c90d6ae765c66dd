// Sets: members without order under a key. What combines several sets is in set-algebra.ts.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { emptyBytes, Slice } from '../../../universal-row/bytes.ts';
import { Action } from '../../../universal-row/command.ts';
import { syntaxError, wrongType } from '../../../universal-row/errors.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import type { Row, Rows } from '../../../universal-row/rows.ts';
import { Shape } from '../../../universal-row/rows.ts';
import {
  isLong,
  shortWork,
  step,
  stepBytes,
  stepElements,
  type Steps,
  type StepTransform,
} from '../../../universal-row/steps.ts';
import { setAlgebraCommands } from './set-algebra.ts';
import type { CommandSpec } from './spec.ts';
import { firstKey } from './spec.ts';
import { ByteList } from './support/byte-list.ts';
import { isLongPick, randomInSteps } from './support/long-picks.ts';
import { removeFieldsInSteps } from './support/long-removals.ts';
import {
  answerEachWord,
  eachFieldInSteps,
  eachWord,
  finder,
  Tally,
  together,
} from './support/long-walks.ts';
import { isFew, pickFew, pickOne, WalkPicker } from './support/random-picks.ts';
import { integerAtLeast, randomCount } from './support/ranged-integer.ts';
import { scanRow } from './support/scan-fields.ts';
import { createRow, sizeOf, typedRow, typedRowToFill } from './support/typed-row.ts';

const member = new Slice();
const noValue = new Slice();
/** The member being popped: it must outlive its removal. */
const popped = new ByteList();

let answer: Reply | undefined;

function answerMember(b: Buffer, s: number, n: number): void {
  answer!.bulk(b, s, n);
}

function forget(): void {
  answer = undefined;
  member.set(emptyBytes, 0, 0);
  noValue.set(emptyBytes, 0, 0);
}

function hasMember(rows: Rows, row: Row, args: Arguments, word: number): boolean {
  return row !== 0 && rows.field(row, args.buf, args.starts[word]!, args.lens[word]!);
}

function* saddInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { buf, starts, lens, count } = args;
  const added = new Tally();
  let row: Row = 0;
  yield* eachWord(
    args,
    2,
    count,
    1,
    added,
    () => {
      row = typedRowToFill(rows, args, 1, Shape.set);
    },
    (i) => {
      if (rows.field(row, buf, starts[i]!, lens[i]!)) return;
      if (rows.putField(row, buf, starts[i]!, lens[i]!, emptyBytes, 0, 0)) added.value++;
    },
  );
  reply.integer(added.value);
}

function sadd(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { buf, starts, lens, count } = args;
  if (count > shortWork.elements) return saddInSteps;
  let row = typedRow(rows, args, 1, Shape.set);
  const fresh = row === 0;
  if (fresh) row = createRow(rows, args, 1, Shape.set);
  let added = 0;
  for (let i = 2; i < count; i++) {
    // A member that is there already is not written: the row has not changed, and the log stays short.
    if (!fresh && rows.field(row, buf, starts[i]!, lens[i]!)) continue;
    if (rows.putField(row, buf, starts[i]!, lens[i]!, emptyBytes, 0, 0)) added++;
  }
  reply.integer(added);
}

function sremInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  return removeFieldsInSteps(rows, args, reply, Shape.set);
}

function srem(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > shortWork.elements) return sremInSteps;
  const row = typedRow(rows, args, 1, Shape.set);
  let left = sizeOf(rows, row);
  let removed = 0;
  for (let i = 2; i < args.count && left > 0; i++) {
    if (!rows.removeField(row, args.buf, args.starts[i]!, args.lens[i]!)) continue;
    removed++;
    left--;
  }
  reply.integer(removed);
}

function sismember(rows: Rows, args: Arguments, reply: Reply): void {
  reply.integer(hasMember(rows, typedRow(rows, args, 1, Shape.set), args, 2) ? 1 : 0);
}

function smismemberInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  return answerEachWord(rows, args, reply, Shape.set, (row, word) => {
    reply.integer(hasMember(rows, row, args, word) ? 1 : 0);
  });
}

function smismember(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > shortWork.elements) return smismemberInSteps;
  const row = typedRow(rows, args, 1, Shape.set);
  reply.array(args.count - 2);
  for (let i = 2; i < args.count; i++) reply.integer(hasMember(rows, row, args, i) ? 1 : 0);
}

function* smembersInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const find = finder(rows, args, 1, Shape.set);
  reply.set(sizeOf(rows, find()));
  yield* eachFieldInSteps(rows, find, (b, s, n) => reply.bulk(b, s, n));
}

function smembers(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const row = typedRow(rows, args, 1, Shape.set);
  if (isLong(rows, row)) return smembersInSteps;
  reply.set(sizeOf(rows, row));
  if (row !== 0) answerAll(rows, row, reply);
}

function answerAll(rows: Rows, row: Row, reply: Reply): void {
  answer = reply;
  rows.eachField(row, answerMember);
  forget();
}

function scard(rows: Rows, args: Arguments, reply: Reply): void {
  reply.integer(sizeOf(rows, typedRow(rows, args, 1, Shape.set)));
}

function* spopInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const wanted = integerAtLeast(args, 2, 0);
  const find = finder(rows, args, 1, Shape.set);
  const size = sizeOf(rows, find());
  const count = Math.min(wanted, size);
  reply.set(count);
  if (count === size) {
    yield* eachFieldInSteps(rows, find, (b, s, n) => reply.bulk(b, s, n));
    yield* step(() => rows.drop(find()));
    return;
  }
  // Chosen on one walk, before any goes: with some of them gone, an engine on disk counts its way to a position.
  const picker = new WalkPicker(rows, count, size);
  const chosen = new ByteList();
  const choose = (b: Buffer, s: number, n: number): void => {
    if (picker.take()) chosen.add(b, s, n);
  };
  yield* eachFieldInSteps(rows, find, choose, together(chosen, picker));
  for (let done = 0; done < count; ) {
    const before = done;
    done = yield* step(() => {
      const row = find();
      const end = Math.min(count, before + (stepElements >>> 2));
      let i = before;
      for (let bytes = 0; i < end && bytes < stepBytes; i++) {
        const n = chosen.length(i);
        reply.bulk(chosen.buf, chosen.start(i), n);
        rows.removeField(row, chosen.buf, chosen.start(i), n);
        bytes += n;
      }
      return i;
    });
  }
}

function spop(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > 3) throw syntaxError;
  if (args.count === 3) return spopWithCount(rows, args, reply);
  const row = typedRow(rows, args, 1, Shape.set);
  if (row === 0) reply.nil();
  else popAny(rows, row, rows.count(row), reply);
}

/** Removes and answers a random member of the `size` there are. */
function popAny(rows: Rows, row: Row, size: number, reply: Reply): void {
  rows.fieldAt(row, pickOne(rows, size), member, noValue);
  popped.clear();
  popped.add(member.b, member.s, member.n);
  forget();
  const n = popped.length(0);
  reply.bulk(popped.buf, 0, n);
  rows.removeField(row, popped.buf, 0, n);
}

// With fewer than one in this many to be left, they are moved to a new set instead of removing the rest.
const moveStrategyFactor = 5;

function spopWithCount(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const wanted = integerAtLeast(args, 2, 0);
  const row = typedRow(rows, args, 1, Shape.set);
  const size = sizeOf(rows, row);
  const count = Math.min(wanted, size);
  // Where most are to go the others are moved.
  const handled = (size - count) * moveStrategyFactor > count ? count : size;
  if (count > 0 && isLong(rows, row, handled)) return spopInSteps;
  reply.set(count);
  if (count === 0) return;
  if (count === size) {
    answerAll(rows, row, reply);
    rows.drop(row);
  } else if ((size - count) * moveStrategyFactor > count) {
    for (let i = 0; i < count; i++) popAny(rows, row, size - i, reply);
  } else {
    popMost(rows, row, args, count, reply);
  }
}

/** Answers `count` random members of the set under the first key, and makes it anew with the others. */
function popMost(rows: Rows, row: Row, args: Arguments, count: number, reply: Reply): void {
  const picker = new WalkPicker(rows, count, rows.count(row));
  const others = new ByteList();
  rows.eachField(row, (b, s, n) => {
    if (picker.take()) reply.bulk(b, s, n);
    else others.add(b, s, n);
  });
  const expireAt = rows.expireAt(row);
  const into = createRow(rows, args, 1, Shape.set);
  if (expireAt !== 0) rows.setExpireAt(into, expireAt);
  for (let i = 0; i < others.count; i++) {
    rows.putField(into, others.buf, others.start(i), others.length(i), emptyBytes, 0, 0);
  }
}

function* srandmemberInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  yield* randomInSteps(
    rows,
    finder(rows, args, 1, Shape.set),
    randomCount(args, 2),
    (b, s, n) => reply.bulk(b, s, n),
    (count) => reply.array(count),
  );
}

function srandmember(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > 3) throw syntaxError;
  if (args.count === 3) {
    return srandmemberWithCount(rows, args, reply);
  }
  const row = typedRow(rows, args, 1, Shape.set);
  if (row === 0) reply.nil();
  else answerMemberAt(rows, row, pickOne(rows, rows.count(row)), reply);
  forget();
}

function answerMemberAt(rows: Rows, row: Row, index: number, reply: Reply): void {
  rows.fieldAt(row, index, member, noValue);
  reply.bulk(member.b, member.s, member.n);
}

function srandmemberWithCount(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const wanted = randomCount(args, 2);
  const row = typedRow(rows, args, 1, Shape.set);
  if (isLongPick(rows, row, wanted)) return srandmemberInSteps;
  const size = sizeOf(rows, row);
  const count = size === 0 ? 0 : wanted < 0 ? -wanted : Math.min(wanted, size);
  reply.array(count);
  if (count === 0) return;
  if (wanted < 0) {
    for (let i = 0; i < count; i++) answerMemberAt(rows, row, pickOne(rows, size), reply);
  } else if (count === size) {
    answerAll(rows, row, reply);
  } else if (isFew(count, size)) {
    for (const index of pickFew(rows, count, size)) answerMemberAt(rows, row, index, reply);
  } else {
    const picker = new WalkPicker(rows, count, size);
    rows.eachField(row, (b, s, n) => {
      if (picker.take()) reply.bulk(b, s, n);
    });
  }
  forget();
}

function smove(rows: Rows, args: Arguments, reply: Reply): void {
  const { buf, starts, lens } = args;
  rows.expect(1, 2, 1);
  const from = rows.find(buf, starts[1]!, lens[1]!);
  const to = rows.find(buf, starts[2]!, lens[2]!);
  // With nothing to move from, the other key may hold anything.
  if (from !== 0 && rows.shape(from) !== Shape.set) throw wrongType;
  if (from !== 0 && to !== 0 && rows.shape(to) !== Shape.set) throw wrongType;
  if (!hasMember(rows, from, args, 3)) {
    reply.integer(0);
    return;
  }
  if (from !== to) {
    rows.removeField(from, buf, starts[3]!, lens[3]!);
    const into = to !== 0 ? to : createRow(rows, args, 2, Shape.set);
    if (!rows.field(into, buf, starts[3]!, lens[3]!)) {
      rows.putField(into, buf, starts[3]!, lens[3]!, emptyBytes, 0, 0);
    }
  }
  reply.integer(1);
}

function sscan(rows: Rows, args: Arguments, reply: Reply): void {
  scanRow(rows, args, reply, Shape.set);
}

export const setCommands: readonly CommandSpec[] = [
  {
    name: 'sadd',
    arity: -3,
    syntax: 'key member [member ...]',
    flags: ['write', 'denyoom', 'fast'],
    keys: firstKey,
    group: 'set',
    since: '1.0.0',
    summary: 'Adds members to a set, making the set if there is none.',
    complexity: 'O(N) for N members',
    action: Action.update,
    run: sadd,
  },
  {
    name: 'srem',
    arity: -3,
    syntax: 'key member [member ...]',
    flags: ['write', 'fast'],
    keys: firstKey,
    group: 'set',
    since: '1.0.0',
    summary: 'Removes members of a set, and the set with its last member.',
    complexity: 'O(N) for N members',
    action: Action.delete,
    run: srem,
  },
  {
    name: 'sismember',
    arity: 3,
    syntax: 'key member',
    flags: ['readonly', 'fast'],
    keys: firstKey,
    group: 'set',
    since: '1.0.0',
    summary: 'Tells whether a set has a member.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: sismember,
  },
  {
    name: 'smismember',
    arity: -3,
    syntax: 'key member [member ...]',
    flags: ['readonly', 'fast'],
    keys: firstKey,
    group: 'set',
    since: '6.2.0',
    summary: 'Tells for each of several members whether a set has it.',
    complexity: 'O(N) for N members',
    action: Action.fetch,
    run: smismember,
  },
  {
    name: 'smembers',
    arity: 2,
    syntax: 'key',
    flags: ['readonly'],
    keys: firstKey,
    group: 'set',
    since: '1.0.0',
    summary: 'Returns all members of a set.',
    complexity: 'O(N) for a set of N members',
    action: Action.fetch,
    run: smembers,
  },
  {
    name: 'scard',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    keys: firstKey,
    group: 'set',
    since: '1.0.0',
    summary: 'Returns how many members a set has.',
    complexity: 'O(1)',
    action: Action.fetch,
    run: scard,
  },
  {
    name: 'spop',
    arity: -2,
    syntax: 'key [count]',
    flags: ['write', 'fast'],
    keys: firstKey,
    group: 'set',
    since: '1.0.0',
    summary: 'Removes random members of a set and returns them.',
    complexity: 'O(N) for N members returned',
    action: Action.update,
    run: spop,
  },
  {
    name: 'srandmember',
    arity: -2,
    syntax: 'key [count]',
    flags: ['readonly'],
    keys: firstKey,
    group: 'set',
    since: '1.0.0',
    summary: 'Returns random members of a set.',
    complexity: 'O(N) for N members returned',
    action: Action.fetch,
    run: srandmember,
  },
  {
    name: 'smove',
    arity: 4,
    syntax: 'source destination member',
    flags: ['write', 'fast'],
    keys: { first: 1, last: 2, step: 1 },
    group: 'set',
    since: '1.0.0',
    summary: 'Moves a member from one set to another.',
    complexity: 'O(1)',
    action: Action.update,
    run: smove,
  },
  {
    name: 'sscan',
    arity: -3,
    syntax: 'key cursor [MATCH pattern] [COUNT count]',
    flags: ['readonly'],
    keys: firstKey,
    group: 'set',
    since: '2.8.0',
    summary: 'Walks the members of a set, some at a time.',
    complexity: 'O(1) a call, O(N) for a whole walk over N members',
    action: Action.fetch,
    run: sscan,
  },
  ...setAlgebraCommands,
];
