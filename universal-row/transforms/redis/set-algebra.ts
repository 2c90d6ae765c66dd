// Commands over several sets: intersection, union and difference, answered, counted or stored.

import type { Arguments } from '../../arguments.ts';
import { emptyBytes } from '../../bytes.ts';
import { CommandError, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import type { BytesVisitor, Row, Rows } from '../../rows.ts';
import { Shape } from '../../rows.ts';
import { isLong, shortWork, step, type Steps, type StepTransform } from '../../steps.ts';
import { ByteList } from './support/byte-list.ts';
import {
  countedAnswer,
  eachFieldInSteps,
  eachSized,
  Names,
  Tally,
  together,
  type Undo,
} from './support/long-walks.ts';
import { askUpTo, membership } from './support/membership.ts';
import { integerAtLeast } from './support/ranged-integer.ts';
import { createRow, dropRow, typedRow, typedRowToFill } from './support/typed-row.ts';

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
export function intersect(rows: Rows, sets: readonly Row[], visit: BytesVisitor): void {
  if (sets.includes(0)) return;
  const bySize = [...new Set(sets)].sort((a, b) => rows.count(a) - rows.count(b));
  const smallest = bySize[0]!;
  rows.eachField(smallest, (b, s, n) => {
    for (let i = 1; i < bySize.length; i++) if (!rows.field(bySize[i]!, b, s, n)) return false;
    return visit(b, s, n);
  });
}

/** Walks one set after the other, skipping members of earlier ones. */
export function unite(rows: Rows, sets: readonly Row[], visit: BytesVisitor): void {
  const distinct = [...new Set(sets)].filter((row) => row !== 0);
  const seen = membership(rows, distinct.length - 1);
  for (const [i, row] of distinct.entries()) {
    rows.eachField(row, (b, s, n) => (seen.has(b, s, n) ? false : visit(b, s, n)));
    if (i < distinct.length - 1) seen.include(row);
  }
}

/** Walks the first set, skipping members of any other; tries the large ones first. */
export function subtract(rows: Rows, sets: readonly Row[], visit: BytesVisitor): void {
  const first = sets[0]!;
  const others = [...new Set(sets.slice(1))].filter((row) => row !== 0);
  if (first === 0 || others.includes(first)) return;
  others.sort((a, b) => rows.count(b) - rows.count(a));
  const excluded = membership(rows, others.length);
  for (const row of others) excluded.include(row);
  rows.eachField(first, (b, s, n) => (excluded.has(b, s, n) ? false : visit(b, s, n)));
}

/** An `Operation` in steps. `undo` reverts the visitor's results. */
type LongOperation = (rows: Rows, keys: LongSets, visit: BytesVisitor, undo: Undo) => Steps;

/** The sets of a long command. Their rows are found again in every step. */
class LongSets {
  readonly #rows: Rows;
  readonly #args: Arguments;
  /** Words of distinct keys that have a set, in order; -1 stands for those that have none. */
  readonly words: number[] = [];
  readonly sizes = new Map<number, number>();
  hasMissing = false;

  constructor(rows: Rows, args: Arguments) {
    this.#rows = rows;
    this.#args = args;
  }

  *find(first: number, last: number): Steps {
    const known = new Map<Row, number>();
    yield* step(() => {
      known.clear();
      this.words.length = 0;
      this.hasMissing = false;
      this.#rows.expect(first, last, 1);
      for (let word = first; word <= last; word++) {
        const row = this.row(word);
        if (row === 0) {
          this.hasMissing = true;
          this.words.push(-1);
          continue;
        }
        const same = known.get(row);
        known.set(row, word);
        this.words.push(same ?? word);
        this.sizes.set(same ?? word, this.#rows.count(row));
        if (same !== undefined) known.set(row, same);
      }
    });
  }

  row(word: number): Row {
    return typedRow(this.#rows, this.#args, word, Shape.set);
  }

  /** Words of these keys, each set once, those without a set left out. */
  distinct(from = 0): number[] {
    return [...new Set(this.words.slice(from))].filter((word) => word >= 0);
  }

  size(word: number): number {
    return this.sizes.get(word)!;
  }
}

export function* intersectInSteps(
  rows: Rows,
  sets: LongSets,
  visit: BytesVisitor,
  undo: Undo,
): Steps {
  if (sets.hasMissing) return;
  const [smallest, ...others] = sets.distinct().sort((a, b) => sets.size(a) - sets.size(b));
  let found: Row[] = [];
  const find = (): Row => {
    found = others.map((word) => sets.row(word));
    return sets.row(smallest!);
  };
  yield* eachFieldInSteps(
    rows,
    find,
    (b, s, n) => {
      for (const row of found) if (!rows.field(row, b, s, n)) return false;
      return visit(b, s, n);
    },
    undo,
    others.length + 1,
  );
}

export function* uniteInSteps(rows: Rows, sets: LongSets, visit: BytesVisitor, undo: Undo): Steps {
  const words = sets.distinct();
  const seen = new Names();
  const asks = words.length - 1 <= askUpTo;
  for (const [i, word] of words.entries()) {
    let earlier: Row[] = [];
    const find = (): Row => {
      if (asks) earlier = words.slice(0, i).map((one) => sets.row(one));
      return sets.row(word);
    };
    yield* eachFieldInSteps(
      rows,
      find,
      (b, s, n) => {
        if (asks) {
          for (const row of earlier) if (rows.field(row, b, s, n)) return false;
        } else if (!seen.add(b.toString('latin1', s, s + n))) return false;
        return visit(b, s, n);
      },
      together(undo, seen),
      asks ? i + 1 : 2,
    );
  }
}

export function* subtractInSteps(
  rows: Rows,
  sets: LongSets,
  visit: BytesVisitor,
  undo: Undo,
): Steps {
  const first = sets.words[0]!;
  const others = sets.distinct(1);
  if (first < 0 || others.includes(first)) return;
  others.sort((a, b) => sets.size(b) - sets.size(a));
  const asks = others.length <= askUpTo;
  const excluded = new Names();
  if (!asks) {
    for (const word of others) {
      yield* eachFieldInSteps(
        rows,
        () => sets.row(word),
        (b, s, n) => {
          excluded.add(b.toString('latin1', s, s + n));
        },
        excluded,
        2,
      );
    }
  }
  let found: Row[] = [];
  const find = (): Row => {
    if (asks) found = others.map((word) => sets.row(word));
    return sets.row(first);
  };
  yield* eachFieldInSteps(
    rows,
    find,
    (b, s, n) => {
      for (const row of found) if (rows.field(row, b, s, n)) return false;
      if (!asks && excluded.has(b.toString('latin1', s, s + n))) return false;
      return visit(b, s, n);
    },
    undo,
    asks ? others.length + 1 : 2,
  );
}

/**
 * Counts the keys and the elements of existing sets: many keys are long work, however small their
 * sets are.
 */
function isLongAlgebra(rows: Rows, sets: readonly Row[]): boolean {
  let total = 0;
  for (const row of sets) {
    total += 1 + (row === 0 ? 0 : rows.count(row));
    if (total > shortWork.elements || isLong(rows, row)) return true;
  }
  return false;
}

function answeringInSteps(operation: LongOperation): StepTransform {
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const sets = new LongSets(rows, args);
    yield* sets.find(1, args.count - 1);
    yield* countedAnswer(reply, 'set', (tally) =>
      operation(
        rows,
        sets,
        (b, s, n) => {
          reply.bulk(b, s, n);
          tally.value++;
        },
        tally,
      ),
    );
  };
}

function storingInSteps(operation: LongOperation): StepTransform {
  return function* (rows: Rows, args: Arguments, reply: Reply): Steps {
    const sets = new LongSets(rows, args);
    yield* sets.find(2, args.count - 1);
    const result = new ByteList();
    yield* operation(rows, sets, (b, s, n) => result.add(b, s, n), result);
    yield* step(() => {
      if (result.count === 0) dropRow(rows, args, 1);
      else createRow(rows, args, 1, Shape.set);
    });
    let into: Row = 0;
    yield* eachSized(
      result.count,
      (i) => result.length(i),
      (i) => {
        if (i % 64 === 0 || into === 0) into = typedRowToFill(rows, args, 1, Shape.set);
        rows.putField(into, result.buf, result.start(i), result.length(i), emptyBytes, 0, 0);
      },
    );
    reply.integer(result.count);
  };
}

function answering(operation: Operation, long: LongOperation) {
  const inSteps = answeringInSteps(long);
  return (rows: Rows, args: Arguments, reply: Reply): StepTransform | void => {
    if (args.count > shortWork.elements) return inSteps;
    const sets = findSets(rows, args, 1, args.count - 1);
    if (isLongAlgebra(rows, sets)) return inSteps;
    const mark = reply.open();
    let count = 0;
    operation(rows, sets, (b, s, n) => {
      reply.bulk(b, s, n);
      count++;
    });
    reply.close(mark, 'set', count);
  };
}

function storing(operation: Operation, long: LongOperation) {
  const inSteps = storingInSteps(long);
  return (rows: Rows, args: Arguments, reply: Reply): StepTransform | void => {
    if (args.count > shortWork.elements) return inSteps;
    const sets = findSets(rows, args, 2, args.count - 1);
    if (isLongAlgebra(rows, sets)) return inSteps;
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

function* sintercardInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const keys = args.integer(1);
  const limit = args.count > 2 + keys ? args.integer(args.count - 1) : 0;
  const sets = new LongSets(rows, args);
  yield* sets.find(2, 1 + keys);
  const tally = new Tally();
  yield* intersectInSteps(rows, sets, () => ++tally.value === limit, tally);
  reply.integer(tally.value);
}

export const sinter = answering(intersect, intersectInSteps);
export const sinterstore = storing(intersect, intersectInSteps);
export const sunion = answering(unite, uniteInSteps);
export const sunionstore = storing(unite, uniteInSteps);
export const sdiff = answering(subtract, subtractInSteps);
export const sdiffstore = storing(subtract, subtractInSteps);

export function sintercard(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const keys = integerAtLeast(args, 1, 1, countTooSmall);
  if (keys > args.count - 2) throw tooManyKeys;
  let limit = 0;
  for (let i = 2 + keys; i < args.count; i += 2) {
    if (!args.is(i, 'LIMIT') || i + 1 >= args.count) throw syntaxError;
    limit = integerAtLeast(args, i + 1, 0, negativeLimit);
  }
  if (keys > shortWork.elements) return sintercardInSteps;
  const sets = findSets(rows, args, 2, 1 + keys);
  if (isLongAlgebra(rows, sets)) return sintercardInSteps;
  let count = 0;
  intersect(rows, sets, () => ++count === limit);
  reply.integer(count);
}
