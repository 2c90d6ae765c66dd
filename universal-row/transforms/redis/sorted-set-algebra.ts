// Union, intersection and difference of sorted sets, answered, counted or stored. Plain sets take part
// as well, each of their members with a score of 1.

import type { Arguments } from '../../arguments.ts';
import { compareBytes } from '../../bytes.ts';
import type { Transform } from '../../command.ts';
import { CommandError, type ReadFault, syntaxError, wrongType } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { RankedVisitor, Row, Rows } from '../../rows.ts';
import { Shape } from '../../rows.ts';
import { isLong, shortWork, step, type Steps, type StepTransform } from '../../steps.ts';
import { ByteList } from './support/byte-list.ts';
import {
  eachFieldInSteps,
  eachRankInSteps,
  eachSized,
  Names,
  sorted,
  Tally,
  together,
  type Undo,
} from './support/long-walks.ts';
import { membership } from './support/membership.ts';
import { integerAtLeast } from './support/ranged-integer.ts';
import { answerScored, answerScoredHeader } from './support/scored-answer.ts';
import { storeScored, storeScoredInSteps } from './support/store-scored.ts';

const weightNotAFloat = new CommandError('ERR weight value is not a float');
const negativeLimit = new CommandError("ERR LIMIT can't be negative");

/** One input. */
interface Source {
  /** The word of its key. */
  word: number;
  row: Row;
  plain: boolean;
  size: number;
  weight: number;
}

/** Puts two scores of one member together. */
type Aggregate = (a: number, b: number) => number;

const aggregates: Record<'SUM' | 'MIN' | 'MAX', Aggregate> = {
  SUM: (a, b) => numberOrZero(a + b),
  MIN: (a, b) => (b < a ? b : a),
  MAX: (a, b) => (b > a ? b : a),
};

interface Request {
  sources: Source[];
  aggregate: Aggregate;
  withScores: boolean;
  /** 0 for none. */
  limit: number;
}

/** Which options a command knows besides its keys. */
interface Options {
  weights: boolean;
  scores: boolean;
  limit: boolean;
}

type Operation = (rows: Rows, request: Request, visit: RankedVisitor) => void;

/** Infinity times 0, or less infinity, counts as 0. */
function numberOrZero(value: number): number {
  return Number.isNaN(value) ? 0 : value;
}

/** Reads the number of keys in `countWord`, finds them, and then reads the options: in Redis's order. */
function readRequest(
  rows: Rows,
  args: Arguments,
  countWord: number,
  name: string,
  options: Options,
): Request {
  const keys = args.integer(countWord);
  if (keys < 1) {
    throw new CommandError(`ERR at least 1 input key is needed for '${name}' command`);
  }
  if (keys > args.count - countWord - 1) throw syntaxError;
  const request: Request = {
    sources: findSources(rows, args, countWord + 1, countWord + keys),
    aggregate: aggregates.SUM,
    withScores: false,
    limit: 0,
  };
  let i = countWord + keys + 1;
  while (i < args.count) i = readOption(args, i, options, request);
  return request;
}

function findSources(rows: Rows, args: Arguments, first: number, last: number): Source[] {
  rows.expect(first, last, 1);
  const sources: Source[] = [];
  for (let i = first; i <= last; i++) {
    const row = rows.find(args.buf, args.starts[i]!, args.lens[i]!);
    const shape = row === 0 ? Shape.none : rows.shape(row);
    if (row !== 0 && shape !== Shape.ranked && shape !== Shape.set) throw wrongType;
    const size = row === 0 ? 0 : rows.count(row);
    sources.push({ word: i, row, plain: shape === Shape.set, size, weight: 1 });
  }
  return sources;
}

/** Reads the option at word `i` and returns where the next one is. */
function readOption(args: Arguments, i: number, options: Options, request: Request): number {
  const { sources } = request;
  const left = args.count - i;
  if (options.weights && left > sources.length && args.is(i, 'WEIGHTS')) {
    let word = i;
    for (const source of sources) source.weight = args.float(++word, weightNotAFloat);
    return word + 1;
  }
  if (options.weights && left >= 2 && args.is(i, 'AGGREGATE')) {
    const kind = (['SUM', 'MIN', 'MAX'] as const).find((name) => args.is(i + 1, name));
    if (kind === undefined) throw syntaxError;
    request.aggregate = aggregates[kind];
    return i + 2;
  }
  if (options.scores && args.is(i, 'WITHSCORES')) {
    request.withScores = true;
    return i + 1;
  }
  if (options.limit && left >= 2 && args.is(i, 'LIMIT')) {
    request.limit = integerAtLeast(args, i + 1, 0, negativeLimit);
    return i + 2;
  }
  throw syntaxError;
}

function walk(rows: Rows, source: Source, visit: RankedVisitor): void {
  if (source.row === 0) return;
  if (source.plain) rows.eachField(source.row, (b, s, n) => visit(b, s, n, 1));
  else rows.eachByRank(source.row, 0, source.size, false, visit);
}

/** The member's unweighted score in the source, NaN when it has none. */
function scoreIn(rows: Rows, source: Source, b: Buffer, s: number, n: number): number {
  if (source.row === 0) return NaN;
  if (source.plain) return rows.field(source.row, b, s, n) ? 1 : NaN;
  return rows.score(source.row, b, s, n);
}

/** Scores are put together from the smallest source to the largest, as in Redis: sums are rounded. */
function bySize(sources: readonly Source[]): Source[] {
  return sources.toSorted((a, b) => a.size - b.size);
}

export const intersect: Operation = (rows, { sources, aggregate }, visit) => {
  const ordered = bySize(sources);
  const smallest = ordered[0]!;
  walk(rows, smallest, (b, s, n, own) => {
    let score = numberOrZero(own * smallest.weight);
    for (let i = 1; i < ordered.length; i++) {
      const source = ordered[i]!;
      const other = scoreIn(rows, source, b, s, n);
      if (Number.isNaN(other)) return false;
      score = aggregate(score, other * source.weight);
    }
    return visit(b, s, n, score);
  });
};

// With more sources than this, remembering each member once costs less than asking every source for it.
const askUpTo = 8;

export const unite: Operation = (rows, request, visit) => {
  if (request.sources.length <= askUpTo) uniteByAsking(rows, request, visit);
  else uniteByGathering(rows, request, visit);
};

/** Meets each member in the first source that has it, and asks the later ones for its other scores. */
const uniteByAsking: Operation = (rows, { sources, aggregate }, visit) => {
  const ordered = bySize(sources);
  for (const [at, source] of ordered.entries()) {
    walk(rows, source, (b, s, n, own) => {
      for (let i = 0; i < at; i++) {
        if (!Number.isNaN(scoreIn(rows, ordered[i]!, b, s, n))) return false;
      }
      let score = numberOrZero(own * source.weight);
      for (let i = at + 1; i < ordered.length; i++) {
        const other = scoreIn(rows, ordered[i]!, b, s, n);
        if (Number.isNaN(other)) continue;
        score = aggregate(score, numberOrZero(other * ordered[i]!.weight));
      }
      return visit(b, s, n, score);
    });
  }
};

const uniteByGathering: Operation = (rows, { sources, aggregate }, visit) => {
  const members = new ByteList();
  const places = new Map<string, number>();
  for (const source of bySize(sources)) {
    walk(rows, source, (b, s, n, own) => {
      const score = numberOrZero(own * source.weight);
      const name = b.toString('latin1', s, s + n);
      const place = places.get(name);
      if (place === undefined) {
        places.set(name, members.count);
        members.add(b, s, n, score);
      } else {
        members.setScore(place, aggregate(members.score(place), score));
      }
    });
  }
  for (let i = 0; i < members.count; i++) {
    if (visit(members.buf, members.start(i), members.length(i), members.score(i))) return;
  }
};

export const subtract: Operation = (rows, { sources }, visit) => {
  const [first, ...others] = sources as [Source, ...Source[]];
  if (first.row === 0 || others.some((source) => source.row === first.row)) return;
  const there = others.filter((source) => source.row !== 0).sort((a, b) => b.size - a.size);
  const excluded = membership(rows, there.length);
  for (const source of there) excluded.include(source.row);
  walk(rows, first, (b, s, n, score) => (excluded.has(b, s, n) ? false : visit(b, s, n, score)));
};

/** The whole result. */
function gather(rows: Rows, request: Request, operation: Operation): ByteList {
  const result = new ByteList();
  operation(rows, request, (b, s, n, score) => result.add(b, s, n, score));
  return result;
}

/** Places in the list in the order of a sorted set: by score, then by member. */
function ranked(list: ByteList): Uint32Array {
  return Uint32Array.from({ length: list.count }, (_, i) => i).sort(byScore(list));
}

function byScore(list: ByteList): (x: number, y: number) => number {
  const { buf } = list;
  return (x, y) => {
    const a = list.score(x);
    const b = list.score(y);
    if (a !== b) return a < b ? -1 : 1;
    return compareBytes(buf, list.start(x), list.length(x), buf, list.start(y), list.length(y));
  };
}

/** An `Operation` in steps; `undo` reverts the visitor's results. */
type LongOperation = (
  rows: Rows,
  request: Request,
  visit: RankedVisitor,
  undo: Undo,
  refind: (source: Source) => Row,
) => Steps;

/** The request of a long command, with a way to find the row of a source anew. */
function* readInSteps(
  rows: Rows,
  args: Arguments,
  countWord: number,
  name: string,
  options: Options,
): Generator<ReadFault | undefined, Request, undefined> {
  return yield* step(() => readRequest(rows, args, countWord, name, options));
}

function* walkInSteps(
  rows: Rows,
  source: Source,
  others: readonly Source[],
  refind: (source: Source) => Row,
  visit: RankedVisitor,
  undo: Undo,
): Steps {
  if (source.row === 0) return;
  const find = (): Row => {
    for (const other of others) if (other.row !== 0) other.row = refind(other);
    source.row = refind(source);
    return source.row;
  };
  const weight = others.length + 2;
  if (source.plain) {
    yield* eachFieldInSteps(rows, find, (b, s, n) => visit(b, s, n, 1), undo, weight);
  } else yield* eachRankInSteps(rows, find, source.size, visit, undo, weight);
}

function* intersectInSteps(
  rows: Rows,
  { sources, aggregate }: Request,
  visit: RankedVisitor,
  undo: Undo,
  refind: (source: Source) => Row,
): Steps {
  const [smallest, ...others] = bySize(sources) as [Source, ...Source[]];
  yield* walkInSteps(
    rows,
    smallest,
    others,
    refind,
    (b, s, n, own) => {
      let score = numberOrZero(own * smallest.weight);
      let row = smallest.row;
      let other = own;
      for (const source of others) {
        // One key may be named many times.
        if (source.row !== row) other = scoreIn(rows, source, b, s, n);
        ({ row } = source);
        if (Number.isNaN(other)) return false;
        score = aggregate(score, other * source.weight);
      }
      return visit(b, s, n, score);
    },
    undo,
  );
}

/** Meets each member in the first source that has it, and asks the later ones for its other scores. */
function* uniteInSteps(
  rows: Rows,
  { sources, aggregate }: Request,
  visit: RankedVisitor,
  undo: Undo,
  refind: (source: Source) => Row,
): Steps {
  const ordered = bySize(sources);
  const seen = new Names();
  for (const [at, source] of ordered.entries()) {
    // One key may be named many times: then all of its members were seen.
    if (at > 0 && ordered[at - 1]!.row === source.row) continue;
    yield* walkInSteps(
      rows,
      source,
      ordered.slice(at + 1),
      refind,
      (b, s, n, own) => {
        if (!seen.add(b.toString('latin1', s, s + n))) return false;
        let score = numberOrZero(own * source.weight);
        let { row } = source;
        let other = own;
        for (let i = at + 1; i < ordered.length; i++) {
          const next = ordered[i]!;
          if (next.row !== row) other = scoreIn(rows, next, b, s, n);
          ({ row } = next);
          if (Number.isNaN(other)) continue;
          score = aggregate(score, numberOrZero(other * next.weight));
        }
        return visit(b, s, n, score);
      },
      together(undo, seen),
    );
  }
}

function* subtractInSteps(
  rows: Rows,
  { sources }: Request,
  visit: RankedVisitor,
  undo: Undo,
  refind: (source: Source) => Row,
): Steps {
  const [first, ...others] = sources as [Source, ...Source[]];
  if (first.row === 0 || others.some((source) => source.row === first.row)) return;
  // One key may be named many times.
  const byRow = new Map(others.map((source) => [source.row, source]));
  byRow.delete(0);
  const there = [...byRow.values()].sort((a, b) => b.size - a.size);
  yield* walkInSteps(
    rows,
    first,
    there,
    refind,
    (b, s, n, score) => {
      for (const other of there) if (!Number.isNaN(scoreIn(rows, other, b, s, n))) return false;
      return visit(b, s, n, score);
    },
    undo,
  );
}

const longForms = new Map<Operation, LongOperation>([
  [intersect, intersectInSteps],
  [unite, uniteInSteps],
  [subtract, subtractInSteps],
]);

function isLongRequest(rows: Rows, { sources }: Request): boolean {
  let total = 0;
  for (const { row, size } of sources) {
    total += 1 + size;
    if (total > shortWork.elements || isLong(rows, row)) return true;
  }
  return false;
}

function* gatherInSteps(
  rows: Rows,
  args: Arguments,
  request: Request,
  operation: LongOperation,
): Generator<ReadFault | undefined, ByteList, undefined> {
  const result = new ByteList();
  const refind = ({ word }: Source): Row =>
    rows.find(args.buf, args.starts[word]!, args.lens[word]!);
  const add: RankedVisitor = (b, s, n, score) => result.add(b, s, n, score);
  yield* operation(rows, request, add, result, refind);
  return result;
}

function answeringInSteps(name: string, operation: LongOperation, weights: boolean): StepTransform {
  const options = { weights, scores: true, limit: false };
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const request = yield* readInSteps(rows, args, 1, name, options);
    const result = yield* gatherInSteps(rows, args, request, operation);
    const { withScores } = request;
    answerScoredHeader(reply, result.count, withScores);
    const { buf } = result;
    const places = yield* sorted(result.count, byScore(result));
    yield* eachSized(
      places.length,
      (at) => result.length(places[at]!),
      (at) => {
        const i = places[at]!;
        answerScored(reply, withScores, buf, result.start(i), result.length(i), result.score(i));
      },
    );
  };
}

function storingInSteps(name: string, operation: LongOperation, weights: boolean): StepTransform {
  const options = { weights, scores: false, limit: false };
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const request = yield* readInSteps(rows, args, 2, name, options);
    const result = yield* gatherInSteps(rows, args, request, operation);
    yield* storeScoredInSteps(rows, args, 1, result);
    reply.integer(result.count);
  };
}

function* zintercardInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const options = { weights: false, scores: false, limit: true };
  const request = yield* readInSteps(rows, args, 1, 'zintercard', options);
  const tally = new Tally();
  const refind = ({ word }: Source): Row =>
    rows.find(args.buf, args.starts[word]!, args.lens[word]!);
  yield* intersectInSteps(rows, request, () => ++tally.value === request.limit, tally, refind);
  reply.integer(tally.value);
}

function answering(name: string, operation: Operation, weights: boolean): Transform {
  const options = { weights, scores: true, limit: false };
  const inSteps = answeringInSteps(name, longForms.get(operation)!, weights);
  return (rows: Rows, args: Arguments, reply: Reply): StepTransform | void => {
    const request = readRequest(rows, args, 1, name, options);
    if (isLongRequest(rows, request)) return inSteps;
    const result = gather(rows, request, operation);
    const { withScores } = request;
    answerScoredHeader(reply, result.count, withScores);
    for (const i of ranked(result)) {
      const { buf } = result;
      answerScored(reply, withScores, buf, result.start(i), result.length(i), result.score(i));
    }
  };
}

function storing(name: string, operation: Operation, weights: boolean): Transform {
  const options = { weights, scores: false, limit: false };
  const inSteps = storingInSteps(name, longForms.get(operation)!, weights);
  return (rows: Rows, args: Arguments, reply: Reply): StepTransform | void => {
    const request = readRequest(rows, args, 2, name, options);
    if (isLongRequest(rows, request)) return inSteps;
    // The destination may be one of the sources, so nothing is written before all is read.
    const result = gather(rows, request, operation);
    storeScored(rows, args, 1, result);
    reply.integer(result.count);
  };
}

export const zunion = answering('zunion', unite, true);
export const zinter = answering('zinter', intersect, true);
export const zdiff = answering('zdiff', subtract, false);
export const zunionstore = storing('zunionstore', unite, true);
export const zinterstore = storing('zinterstore', intersect, true);
export const zdiffstore = storing('zdiffstore', subtract, false);

export function zintercard(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const options = { weights: false, scores: false, limit: true };
  const request = readRequest(rows, args, 1, 'zintercard', options);
  if (isLongRequest(rows, request)) return zintercardInSteps;
  let count = 0;
  intersect(rows, request, () => ++count === request.limit);
  reply.integer(count);
}
