// Sets: members without order under a key. Operations on several sets are in set-algebra.ts.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, Slice } from '../../bytes.ts';
import { syntaxError, wrongType } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { Row, Rows } from '../../rows.ts';
import { Shape } from '../../rows.ts';
import {
  isLong,
  shortWork,
  step,
  stepBytes,
  stepElements,
  type Steps,
  type StepTransform,
} from '../../steps.ts';
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

export function sadd(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
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

export function srem(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
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

export function sismember(rows: Rows, args: Arguments, reply: Reply): void {
  reply.integer(hasMember(rows, typedRow(rows, args, 1, Shape.set), args, 2) ? 1 : 0);
}

function smismemberInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  return answerEachWord(rows, args, reply, Shape.set, (row, word) => {
    reply.integer(hasMember(rows, row, args, word) ? 1 : 0);
  });
}

export function smismember(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
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

export function smembers(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
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

export function scard(rows: Rows, args: Arguments, reply: Reply): void {
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

export function spop(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
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

export function srandmember(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
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

export function smove(rows: Rows, args: Arguments, reply: Reply): void {
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

export function sscan(rows: Rows, args: Arguments, reply: Reply): void {
  scanRow(rows, args, reply, Shape.set);
}
