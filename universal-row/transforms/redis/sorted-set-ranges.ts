// Ranges of sorted sets by position, score or member: answered, counted, stored or removed.
//
// A command reads its options and bounds into `request` and the ranges below, checks everything, and
// then walks. The walk runs to its end before the next command, so one such state is enough.

import type { Arguments } from '../../arguments.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { LexRange, RankedVisitor, Row, Rows, ScoreRange } from '../../rows.ts';
import { Shape } from '../../rows.ts';
import { shortWork, step, stepElements, type Steps, type StepTransform } from '../../steps.ts';
import { ByteList } from './support/byte-list.ts';
import { countedAnswer, eachPosition, type Undo } from './support/long-walks.ts';
import { readLexRange, readScoreRange } from './support/range-bounds.ts';
import { answerScored, answerScoredHeader } from './support/scored-answer.ts';
import { storeScored, storeScoredInSteps } from './support/store-scored.ts';
import { sizeOf, typedRow } from './support/typed-row.ts';

const limitNeedsOrder = new CommandError(
  'ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX',
);
const noScoresByLex = new CommandError(
  'ERR syntax error, WITHSCORES not supported in combination with BYLEX',
);

type By = 'rank' | 'score' | 'lex';

const noLimit = 0x7fffffff;

const request = {
  by: 'rank' as By,
  reverse: false,
  withScores: false,
  offset: 0,
  limit: -1,
  /** First and last position, for 'rank'. */
  start: 0,
  end: 0,
};
const scoreRange: ScoreRange = { min: 0, minExclusive: false, max: 0, maxExclusive: false };
let lexRange: LexRange | undefined;

/**
 * Reads the options from argument `from` on. Options that set `by` and `reverse` are accepted only
 * where these are undefined: in ZRANGE and ZRANGESTORE.
 */
function readOptions(
  args: Arguments,
  from: number,
  by: By | undefined,
  reverse: boolean | undefined,
  storing: boolean,
): void {
  request.by = by ?? 'rank';
  request.reverse = reverse ?? false;
  request.withScores = false;
  request.offset = 0;
  request.limit = -1;
  // Whether an option has set the range type: each may be given once.
  let byGiven = by !== undefined;
  let reverseGiven = reverse !== undefined;
  for (let i = from; i < args.count; i++) {
    if (args.is(i, 'LIMIT') && i + 2 < args.count) {
      request.offset = args.integer(i + 1);
      request.limit = args.integer(i + 2);
      i += 2;
    } else if (!storing && args.is(i, 'WITHSCORES')) {
      request.withScores = true;
    } else if (!reverseGiven && args.is(i, 'REV')) {
      request.reverse = true;
      reverseGiven = true;
    } else if (!byGiven && args.is(i, 'BYSCORE')) {
      request.by = 'score';
      byGiven = true;
    } else if (!byGiven && args.is(i, 'BYLEX')) {
      request.by = 'lex';
      byGiven = true;
    } else {
      throw syntaxError;
    }
  }
  if (request.limit !== -1 && request.by === 'rank') throw limitNeedsOrder;
  if (request.withScores && request.by === 'lex') throw noScoresByLex;
}

/**
 * Reads the bounds that follow the key in word `keyWord`, finds the row, and settles where the walk
 * begins and ends. Returns 0 when there is nothing to walk.
 */
function findRange(rows: Rows, args: Arguments, keyWord: number): Row {
  const { by, reverse } = request;
  // A reversed range of scores or members is given from its upper bound down.
  const minWord = reverse && by !== 'rank' ? keyWord + 2 : keyWord + 1;
  const maxWord = reverse && by !== 'rank' ? keyWord + 1 : keyWord + 2;
  let possible = true;
  if (by === 'rank') {
    request.start = args.integer(minWord);
    request.end = args.integer(maxWord);
  } else if (by === 'score') {
    possible = readScoreRange(args, minWord, maxWord, scoreRange);
  } else {
    lexRange = readLexRange(args, minWord, maxWord);
    possible = lexRange !== undefined;
  }
  const row = typedRow(rows, args, keyWord, Shape.ranked);
  if (row === 0 || !possible) return 0;
  const size = rows.count(row);
  if (by !== 'rank') {
    if (request.limit < 0) request.limit = noLimit;
    return request.offset < 0 || request.offset >= size || request.limit === 0 ? 0 : row;
  }
  if (request.start < 0) request.start = Math.max(0, size + request.start);
  request.end = request.end < 0 ? size + request.end : Math.min(request.end, size - 1);
  return request.start > request.end ? 0 : row;
}

/** Walks the range of the last `findRange`. */
function walkRange(rows: Rows, row: Row, visit: RankedVisitor): void {
  const { by, reverse, offset, start, end } = request;
  const limit = Math.min(request.limit, noLimit);
  if (by === 'rank') rows.eachByRank(row, start, end - start + 1, reverse, visit);
  else if (by === 'score') {
    rows.eachByScore(row, scoreRange, reverse, offset, limit, visit);
  } else {
    rows.eachByLex(row, lexRange!, reverse, offset, limit, visit);
    // It refers to the arguments of this command.
    lexRange = undefined;
  }
}

/** Whether the range of the last `findRange` is long. */
function isLongRange(rows: Rows, row: Row): boolean {
  const { by, offset, limit, start, end } = request;
  if (row === 0) return false;
  if (by === 'rank') return end - start + 1 > shortWork.elements;
  if (Math.min(limit, rows.count(row)) <= shortWork.elements) return false;
  return Math.min(limit, countInRange(rows, row) - offset) > shortWork.elements;
}

function countInRange(rows: Rows, row: Row): number {
  return request.by === 'score'
    ? rows.countByScore(row, scoreRange)
    : rows.countByLex(row, lexRange!);
}

/** `walkRange` in steps, for the command's options and bounds just read. */
function* walkRangeInSteps(rows: Rows, find: () => Row, visit: RankedVisitor, undo?: Undo): Steps {
  // Other commands use the request meanwhile.
  const { by, reverse, offset, limit, start, end } = request;
  const scores = { ...scoreRange };
  const members = lexRange;
  lexRange = undefined;
  const row = find();
  let total = end - start + 1;
  if (by !== 'rank') {
    const within = by === 'score' ? rows.countByScore(row, scores) : rows.countByLex(row, members!);
    total = Math.min(limit, within - offset);
  }
  yield* eachPosition(
    total,
    (at, want, size) => {
      const see: RankedVisitor = (b, s, n, score) => {
        visit(b, s, n, score);
        return size.add(n);
      };
      const found = find();
      if (by === 'rank') rows.eachByRank(found, start + at, want, reverse, see);
      else if (by === 'score') rows.eachByScore(found, scores, reverse, offset + at, want, see);
      else rows.eachByLex(found, members!, reverse, offset + at, want, see);
    },
    undo,
  );
}

function answerInSteps(by?: By, reverse?: boolean): StepTransform {
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    readOptions(args, 4, by, reverse, false);
    const { withScores } = request;
    const flat = withScores && reply.version < 3;
    yield* countedAnswer(reply, 'array', (tally) => {
      findRange(rows, args, 1);
      return walkRangeInSteps(
        rows,
        () => typedRow(rows, args, 1, Shape.ranked),
        (b, s, n, score) => {
          answerScored(reply, withScores, b, s, n, score);
          tally.value += flat ? 2 : 1;
        },
        tally,
      );
    });
  };
}

function* zrangestoreInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  readOptions(args, 5, undefined, undefined, true);
  findRange(rows, args, 2);
  const result = new ByteList();
  yield* walkRangeInSteps(
    rows,
    () => typedRow(rows, args, 2, Shape.ranked),
    (b, s, n, score) => result.add(b, s, n, score),
    result,
  );
  yield* storeScoredInSteps(rows, args, 1, result);
  reply.integer(result.count);
}

function removeInSteps(by: By): StepTransform {
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const find = (): Row => typedRow(rows, args, 1, Shape.ranked);
    readOptions(args, args.count, by, false, true);
    findRange(rows, args, 1);
    const doomed = new ByteList();
    yield* walkRangeInSteps(rows, find, (b, s, n) => doomed.add(b, s, n), doomed);
    if (doomed.count === rows.count(find())) yield* step(() => rows.drop(find()));
    else {
      for (let from = 0; from < doomed.count; from += stepElements >>> 2) {
        const end = Math.min(doomed.count, from + (stepElements >>> 2));
        yield* step(() => {
          const row = find();
          for (let i = from; i < end; i++) {
            rows.removeField(row, doomed.buf, doomed.start(i), doomed.length(i));
          }
        });
      }
    }
    reply.integer(doomed.count);
  };
}

const longRemovals = {
  rank: removeInSteps('rank'),
  score: removeInSteps('score'),
  lex: removeInSteps('lex'),
};
const longRanges = {
  rank: [answerInSteps('rank', false), answerInSteps('rank', true)],
  score: [answerInSteps('score', false), answerInSteps('score', true)],
  lex: [answerInSteps('lex', false), answerInSteps('lex', true)],
} as const;
const longZrange = answerInSteps();

let answer: Reply | undefined;
let answered = 0;

function answerMember(b: Buffer, s: number, n: number, score: number): void {
  answerScored(answer!, request.withScores, b, s, n, score);
  answered++;
}

function answerRange(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  by?: By,
  reverse?: boolean,
): StepTransform | void {
  readOptions(args, 4, by, reverse, false);
  const row = findRange(rows, args, 1);
  if (row === 0) {
    reply.array(0);
    return;
  }
  if (isLongRange(rows, row)) {
    lexRange = undefined;
    return by === undefined ? longZrange : longRanges[by][reverse === true ? 1 : 0];
  }
  answer = reply;
  if (request.by === 'rank') {
    answerScoredHeader(reply, request.end - request.start + 1, request.withScores);
    walkRange(rows, row, answerMember);
    answer = undefined;
    return;
  }
  answered = 0;
  const mark = reply.open();
  walkRange(rows, row, answerMember);
  const flat = request.withScores && reply.version < 3;
  reply.close(mark, 'array', flat ? answered * 2 : answered);
  answer = undefined;
}

export function zrange(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return answerRange(rows, args, reply);
}

export function zrevrange(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return answerRange(rows, args, reply, 'rank', true);
}

export function zrangebyscore(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return answerRange(rows, args, reply, 'score', false);
}

export function zrevrangebyscore(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return answerRange(rows, args, reply, 'score', true);
}

export function zrangebylex(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return answerRange(rows, args, reply, 'lex', false);
}

export function zrevrangebylex(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return answerRange(rows, args, reply, 'lex', true);
}

export function zrangestore(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  readOptions(args, 5, undefined, undefined, true);
  rows.expect(1, 2, 1);
  const row = findRange(rows, args, 2);
  if (isLongRange(rows, row)) {
    lexRange = undefined;
    return zrangestoreInSteps;
  }
  const result = new ByteList();
  if (row !== 0) walkRange(rows, row, (b, s, n, score) => result.add(b, s, n, score));
  storeScored(rows, args, 1, result);
  reply.integer(result.count);
}

export function zcount(rows: Rows, args: Arguments, reply: Reply): void {
  const possible = readScoreRange(args, 2, 3, scoreRange);
  const row = typedRow(rows, args, 1, Shape.ranked);
  reply.integer(row === 0 || !possible ? 0 : rows.countByScore(row, scoreRange));
}

export function zlexcount(rows: Rows, args: Arguments, reply: Reply): void {
  const range = readLexRange(args, 2, 3);
  const row = typedRow(rows, args, 1, Shape.ranked);
  reply.integer(row === 0 || range === undefined ? 0 : rows.countByLex(row, range));
}

function removeRange(rows: Rows, args: Arguments, reply: Reply, by: By): StepTransform | void {
  readOptions(args, args.count, by, false, true);
  const row = findRange(rows, args, 1);
  if (isLongRange(rows, row)) {
    lexRange = undefined;
    return longRemovals[by];
  }
  const size = sizeOf(rows, row);
  const doomed = new ByteList();
  if (row !== 0) walkRange(rows, row, (b, s, n) => doomed.add(b, s, n));
  if (row !== 0 && doomed.count === size) rows.drop(row);
  else {
    for (let i = 0; i < doomed.count; i++) {
      rows.removeField(row, doomed.buf, doomed.start(i), doomed.length(i));
    }
  }
  reply.integer(doomed.count);
}

export function zremrangebyrank(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return removeRange(rows, args, reply, 'rank');
}

export function zremrangebyscore(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return removeRange(rows, args, reply, 'score');
}

export function zremrangebylex(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  return removeRange(rows, args, reply, 'lex');
}
