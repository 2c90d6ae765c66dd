// Sorted sets: members with a score, in the order of (score, member). This file has operations on
// members by name; ranges, pops and algebra have files of their own.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes, Slice } from '../../bytes.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { Row, Rows } from '../../rows.ts';
import { Shape } from '../../rows.ts';
import { shortWork, type Steps, type StepTransform } from '../../steps.ts';
import { isLongPick, randomInSteps } from './support/long-picks.ts';
import { removeFieldsInSteps } from './support/long-removals.ts';
import { answerEachWord, eachWord, Tally, together } from './support/long-walks.ts';
import { isFew, pickFew, pickOne, WalkPicker } from './support/random-picks.ts';
import { checkRandomPairs, randomCount } from './support/ranged-integer.ts';
import { scanRow } from './support/scan-fields.ts';
import { answerScored, answerScoredHeader } from './support/scored-answer.ts';
import { shortDecimal } from './support/short-decimal.ts';
import { createRow, sizeOf, typedRow } from './support/typed-row.ts';

const notTogether = 'options at the same time are not compatible';
const xxAndNx = new CommandError(`ERR XX and NX ${notTogether}`);
const gtLtAndNx = new CommandError(`ERR GT, LT, and/or NX ${notTogether}`);
const oneIncrement = new CommandError('ERR INCR option supports a single increment-element pair');
const notANumber = new CommandError('ERR resulting score is not a number (NaN)');

// Options of ZADD, as bits.
const nx = 1;
const xx = 2;
const gt = 4;
const lt = 8;
const ch = 16;
const incr = 32;

/** The scores of the running ZADD: all are read before any is written. */
let scores = new Float64Array(64);

function optionAt(args: Arguments, word: number): number {
  if (args.is(word, 'NX')) return nx;
  if (args.is(word, 'XX')) return xx;
  if (args.is(word, 'GT')) return gt;
  if (args.is(word, 'LT')) return lt;
  if (args.is(word, 'CH')) return ch;
  if (args.is(word, 'INCR')) return incr;
  return 0;
}

/** Whether a word begins with a letter: only then can it be an option. */
function mayBeOption(args: Arguments, word: number): boolean {
  return word < args.count && args.lens[word]! > 0 && args.buf[args.starts[word]!]! >= 65;
}

export function zadd(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return addScores(rows, args, reply, 0);
}

export function zincrby(rows: Rows, args: Arguments, reply: Reply): void {
  addScores(rows, args, reply, incr);
}

/** The options that begin at word 2, and the word behind them. */
function readAddOptions(args: Arguments, given: number): { options: number; first: number } {
  let options = given;
  let first = 2;
  while (mayBeOption(args, first)) {
    const option = optionAt(args, first);
    if (option === 0) break;
    options |= option;
    first++;
  }
  return { options, first };
}

/** ZADD of very many members. */
function* zaddInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { buf, starts, lens, count } = args;
  const { options, first } = readAddOptions(args, 0);
  checkOptions(options, count - first);
  const given = new Float64Array((count - first) / 2);
  yield* eachWord(args, first, count, 2, undefined, nothing, (i) => {
    given[(i - first) >> 1] = scoreAt(args, i);
  });
  const added = new Tally();
  const changed = new Tally();
  let row: Row = 0;
  let isNew = false;
  yield* eachWord(
    args,
    first,
    count,
    2,
    together(added, changed),
    () => {
      row = typedRow(rows, args, 1, Shape.ranked);
      isNew = row === 0;
      if (isNew && (options & xx) === 0) row = createRow(rows, args, 1, Shape.ranked);
    },
    (i) => {
      if (row === 0) return true;
      const score = given[(i - first) >> 1]!;
      const old = isNew ? NaN : rows.score(row, buf, starts[i + 1]!, lens[i + 1]!);
      isNew = false;
      if (old === score || !allows(options, old, score)) return false;
      if (rows.putScore(row, buf, starts[i + 1]!, lens[i + 1]!, score)) added.value++;
      else changed.value++;
      return false;
    },
  );
  reply.integer((options & ch) !== 0 ? added.value + changed.value : added.value);
}

function nothing(): void {
  // A step that begins again has nothing to find.
}

function addScores(rows: Rows, args: Arguments, reply: Reply, given: number): StepTransform | void {
  if (args.count > shortWork.elements && (readAddOptions(args, given).options & incr) === 0) {
    return zaddInSteps;
  }
  const { options, first } = readAddOptions(args, given);
  checkOptions(options, args.count - first);
  readScores(args, first);
  const row = typedRow(rows, args, 1, Shape.ranked);
  if ((options & incr) !== 0) incrementScore(rows, row, args, first, options, reply);
  else putScores(rows, row, args, first, options, reply);
}

/** `words` is how many follow the options. */
function checkOptions(options: number, words: number): void {
  if (words === 0 || words % 2 !== 0) throw syntaxError;
  if (options === 0) return;
  if ((options & nx) !== 0 && (options & xx) !== 0) throw xxAndNx;
  const exclusive = options & (nx | gt | lt);
  if ((exclusive & (exclusive - 1)) !== 0) throw gtLtAndNx;
  if ((options & incr) !== 0 && words > 2) throw oneIncrement;
}

function readScores(args: Arguments, first: number): void {
  const pairs = (args.count - first) / 2;
  if (pairs > scores.length || scores.length > 4096) {
    scores = new Float64Array(Math.max(64, pairs));
  }
  for (let i = 0; i < pairs; i++) scores[i] = scoreAt(args, first + i * 2);
}

function scoreAt(args: Arguments, word: number): number {
  const score = shortDecimal(args.buf, args.starts[word]!, args.lens[word]!);
  return Number.isNaN(score) ? args.float(word) : score;
}

/** Whether the options let a member with this score (NaN for no member) take the new one. */
function allows(options: number, old: number, score: number): boolean {
  if (Number.isNaN(old)) return (options & xx) === 0;
  if ((options & nx) !== 0) return false;
  if ((options & gt) !== 0 && score <= old) return false;
  return (options & lt) === 0 || score < old;
}

function putScores(
  rows: Rows,
  found: Row,
  args: Arguments,
  first: number,
  options: number,
  reply: Reply,
): void {
  const { buf, starts, lens, count } = args;
  let row = found;
  if (row === 0 && (options & xx) === 0) row = createRow(rows, args, 1, Shape.ranked);
  let added = 0;
  let changed = 0;
  if (row !== 0) {
    for (let i = first; i < count; i += 2) {
      const score = scores[(i - first) >> 1]!;
      const s = starts[i + 1]!;
      const n = lens[i + 1]!;
      const old = found === 0 && i === first ? NaN : rows.score(row, buf, s, n);
      // A score that stays the same is not written: the row has not changed, and the log stays short.
      if (old === score || !allows(options, old, score)) continue;
      if (rows.putScore(row, buf, s, n, score)) added++;
      else changed++;
    }
  }
  reply.integer((options & ch) !== 0 ? added + changed : added);
}

function incrementScore(
  rows: Rows,
  found: Row,
  args: Arguments,
  first: number,
  options: number,
  reply: Reply,
): void {
  const { buf, starts, lens } = args;
  const s = starts[first + 1]!;
  const n = lens[first + 1]!;
  const old = found === 0 ? NaN : rows.score(found, buf, s, n);
  const score = Number.isNaN(old) ? scores[0]! : old + scores[0]!;
  if (Number.isNaN(score) && (options & nx) === 0) throw notANumber;
  if (!allows(options, old, score)) {
    reply.nil();
    return;
  }
  if (old !== score) {
    const row = found !== 0 ? found : createRow(rows, args, 1, Shape.ranked);
    rows.putScore(row, buf, s, n, score);
  }
  reply.double(score);
}

function zremInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  return removeFieldsInSteps(rows, args, reply, Shape.ranked);
}

export function zrem(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > shortWork.elements) return zremInSteps;
  const row = typedRow(rows, args, 1, Shape.ranked);
  let left = sizeOf(rows, row);
  let removed = 0;
  for (let i = 2; i < args.count && left > 0; i++) {
    if (!rows.removeField(row, args.buf, args.starts[i]!, args.lens[i]!)) continue;
    removed++;
    left--;
  }
  reply.integer(removed);
}

function answerScoreOf(rows: Rows, row: Row, args: Arguments, word: number, reply: Reply): void {
  const score = row === 0 ? NaN : rows.score(row, args.buf, args.starts[word]!, args.lens[word]!);
  if (Number.isNaN(score)) reply.nil();
  else reply.double(score);
}

export function zscore(rows: Rows, args: Arguments, reply: Reply): void {
  answerScoreOf(rows, typedRow(rows, args, 1, Shape.ranked), args, 2, reply);
}

function zmscoreInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  return answerEachWord(rows, args, reply, Shape.ranked, (row, word) => {
    answerScoreOf(rows, row, args, word, reply);
  });
}

export function zmscore(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > shortWork.elements) return zmscoreInSteps;
  const row = typedRow(rows, args, 1, Shape.ranked);
  reply.array(args.count - 2);
  for (let i = 2; i < args.count; i++) answerScoreOf(rows, row, args, i, reply);
}

export function zcard(rows: Rows, args: Arguments, reply: Reply): void {
  reply.integer(sizeOf(rows, typedRow(rows, args, 1, Shape.ranked)));
}

export function zrank(rows: Rows, args: Arguments, reply: Reply): void {
  answerRank(rows, args, false, reply);
}

export function zrevrank(rows: Rows, args: Arguments, reply: Reply): void {
  answerRank(rows, args, true, reply);
}

function answerRank(rows: Rows, args: Arguments, reverse: boolean, reply: Reply): void {
  const row = typedRow(rows, args, 1, Shape.ranked);
  const rank = row === 0 ? -1 : rows.rank(row, args.buf, args.starts[2]!, args.lens[2]!);
  if (rank < 0) reply.nil();
  else reply.integer(reverse ? rows.count(row) - 1 - rank : rank);
}

const member = new Slice();
const noValue = new Slice();

function* zrandmemberInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const withScores = args.count === 4;
  yield* randomInSteps(
    rows,
    () => typedRow(rows, args, 1, Shape.ranked),
    randomCount(args, 2),
    (b, s, n, _vb, _vs, _vn, row) =>
      answerScored(reply, withScores, b, s, n, withScores ? rows.score(row, b, s, n) : 0),
    (count) => answerScoredHeader(reply, count, withScores),
  );
}

export function zrandmember(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  if (args.count > 2) {
    return zrandmemberWithCount(rows, args, reply);
  }
  const row = typedRow(rows, args, 1, Shape.ranked);
  if (row === 0) reply.nil();
  else answerMemberAt(rows, row, pickOne(rows, rows.count(row)), false, reply);
  forget();
}

function answerMemberAt(
  rows: Rows,
  row: Row,
  index: number,
  withScores: boolean,
  reply: Reply,
): void {
  rows.fieldAt(row, index, member, noValue);
  const { b, s, n } = member;
  answerScored(reply, withScores, b, s, n, withScores ? rows.score(row, b, s, n) : 0);
}

function forget(): void {
  member.set(emptyBytes, 0, 0);
  noValue.set(emptyBytes, 0, 0);
}

function zrandmemberWithCount(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const wanted = randomCount(args, 2);
  if (args.count > 4 || (args.count === 4 && !args.is(3, 'WITHSCORES'))) throw syntaxError;
  const withScores = args.count === 4;
  if (withScores) checkRandomPairs(args, 2);
  const row = typedRow(rows, args, 1, Shape.ranked);
  const size = sizeOf(rows, row);
  const count = size === 0 ? 0 : wanted < 0 ? -wanted : Math.min(wanted, size);
  if (isLongPick(rows, row, wanted)) return zrandmemberInSteps;
  answerScoredHeader(reply, count, withScores);
  if (count === 0) return;
  if (wanted < 0) {
    for (let i = 0; i < count; i++) {
      answerMemberAt(rows, row, pickOne(rows, size), withScores, reply);
    }
  } else if (isFew(count, size)) {
    for (const index of pickFew(rows, count, size)) {
      answerMemberAt(rows, row, index, withScores, reply);
    }
  } else {
    const picker = new WalkPicker(rows, count, size);
    rows.eachByRank(row, 0, size, false, (b, s, n, score) => {
      if (picker.take()) answerScored(reply, withScores, b, s, n, score);
    });
  }
  forget();
}

export function zscan(rows: Rows, args: Arguments, reply: Reply): void {
  scanRow(rows, args, reply, Shape.ranked);
}
