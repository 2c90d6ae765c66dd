// Aggregates over series and buckets of time, from rows or from their summaries: both must give the
// same result. Floats of cases are such that their sums are exact in any order.

import { typeOf, type FieldValue, type Point } from './points.ts';

interface Aggregates {
  count: number;
  first: FieldValue;
  firstTime: bigint;
  last: FieldValue;
  lastTime: bigint;
  /** Not of strings. */
  min: FieldValue | undefined;
  max: FieldValue | undefined;
  /** Sum of numeric values; integers wrap at 64 bits. */
  sum: FieldValue | undefined;
}

/** By `series bucket field`. */
export type Folds = Map<string, Aggregates>;

export class Fold {
  readonly folds: Folds = new Map();
  readonly #width: bigint;
  readonly #offset: bigint;

  constructor(width: bigint, offset: bigint) {
    this.#width = width;
    this.#offset = offset;
  }

  /** Where its bucket begins. */
  bucketOf(time: bigint): bigint {
    if (this.#width === 0n) return 0n;
    const into = (time - this.#offset) % this.#width;
    return time - (into < 0n ? into + this.#width : into);
  }

  add({ series, time, fields }: Point): void {
    for (const [field, value] of Object.entries(fields)) {
      const type = typeOf(value);
      const ordered = type === 'string' ? undefined : value;
      this.addSummary(series, field, time, {
        count: 1,
        first: value,
        firstTime: time,
        last: value,
        lastTime: time,
        min: ordered,
        max: ordered,
        sum: type === 'boolean' ? undefined : ordered,
      });
    }
  }

  addSummary(series: string, field: string, time: bigint, more: Aggregates): void {
    const key = `${series} ${this.bucketOf(time)} ${field}`;
    const known = this.folds.get(key);
    this.folds.set(key, known === undefined ? more : combined(known, more));
  }
}

/** The aggregates that the points have. */
export function foldsOf(points: readonly Point[], width: bigint, offset = 0n): Folds {
  const fold = new Fold(width, offset);
  for (const one of points) fold.add(one);
  return fold.folds;
}

function combined(a: Aggregates, b: Aggregates): Aggregates {
  const [earlier, later] = a.firstTime < b.firstTime ? [a, b] : [b, a];
  return {
    count: a.count + b.count,
    first: earlier.first,
    firstTime: earlier.firstTime,
    last: later.last,
    lastTime: later.lastTime,
    min: lesser(a.min, b.min) ? a.min : b.min,
    max: lesser(a.max, b.max) ? b.max : a.max,
    sum: sumOf(a.sum, b.sum),
  };
}

function lesser(a: FieldValue | undefined, b: FieldValue | undefined): boolean {
  if (typeof a === 'object' && typeof b === 'object') return a.unsigned < b.unsigned;
  return a !== undefined && b !== undefined && a < b;
}

function sumOf(a: FieldValue | undefined, b: FieldValue | undefined): FieldValue | undefined {
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  if (typeof a === 'bigint' && typeof b === 'bigint') return BigInt.asIntN(64, a + b);
  if (typeof a === 'object' && typeof b === 'object') {
    return { unsigned: BigInt.asUintN(64, a.unsigned + b.unsigned) };
  }
  return undefined;
}
