// Empty buckets between those with points, for one call of one group.

import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import { minTime } from '../../../../../contracts/series-store.ts';
import type { Fill as FillOption } from '../../ast.ts';
import { type Windows, WindowSteps } from '../plan/windows.ts';
import {
  baseOf,
  bigTime,
  type Chunk,
  ColumnBuilder,
  compareTimes,
  has,
  maxSafe,
  offsetFrom,
  pending,
  scalarAt,
  type Stream,
  toInteger,
} from '../vector.ts';

interface FillOptions {
  readonly windows: Windows;
  readonly fill: FillOption;
  readonly from: bigint;
  readonly to: bigint;
  readonly descending: boolean;
  /** count() shows 0 where others show nothing. */
  readonly isCount: boolean;
  /** Types of the call's column and of the columns selected with it. */
  readonly types: readonly FieldType[];
}

const rowsAtOnce = 1024;
/**
 * Buffer for the piece being made; shared, because groups are many and pieces are made one at a
 * time.
 */
const scratch = new Float64Array(rowsAtOnce);

/** The window of the next row, in seconds and nanoseconds. */
class Steps {
  base: number;
  offset: number;
  readonly #local: WindowSteps | undefined;
  readonly #seconds: number;
  readonly #nanos: number;

  constructor(windows: Windows, first: bigint, descending: boolean) {
    this.base = baseOf(first);
    this.offset = offsetFrom(this.base, first);
    this.#local = windows.isRegular ? undefined : new WindowSteps(windows, first, descending);
    const step = descending ? -windows.width : windows.width;
    this.#seconds = baseOf(step);
    this.#nanos = offsetFrom(this.#seconds, step);
  }

  advance(): void {
    if (this.#local !== undefined) {
      this.#local.advance();
      this.base = baseOf(this.#local.time);
      this.offset = offsetFrom(this.base, this.#local.time);
      return;
    }
    this.base += this.#seconds;
    this.offset += this.#nanos;
    if (this.offset >= 1e9) {
      this.offset -= 1e9;
      this.base++;
    }
  }
}

export class Fill implements Stream {
  readonly #input: Stream;
  readonly #options: FillOptions;
  readonly #number: number | bigint | string | undefined;
  readonly #builders: readonly ColumnBuilder[];
  #steps: Steps | undefined;
  #endBase = 0;
  #endOffset = 0;
  /** No windows behind the last point. */
  #isOpenEnded = false;
  #chunk: Chunk | undefined;
  #row = 0;
  #isEnded = false;
  /** The point that came last. */
  #previous: { base: number; offset: number; value: number | bigint | string } | undefined;

  constructor(input: Stream, options: FillOptions) {
    this.#input = input;
    this.#options = options;
    this.#number = numberOf(options);
    this.#builders = options.types.map((type) => new ColumnBuilder(type));
  }

  next(): Chunk | typeof pending | undefined {
    const { descending, fill } = this.#options;
    let count = 0;
    let outBase = 0;
    const times = scratch;
    while (count < rowsAtOnce) {
      const isReady = this.#load();
      if (!isReady) break;
      if (this.#steps === undefined) {
        if (this.#isEnded) return undefined;
        this.#start();
      }
      const steps = this.#steps!;
      const chunk = this.#chunk;
      if (chunk === undefined && !this.#isBeforeEnd(steps)) break;
      if (count === 0) outBase = steps.base;
      let isEmpty = true;
      let time = compareTimes(steps.base, steps.offset, outBase, 0);
      if (chunk !== undefined) {
        const own = compareTimes(chunk.base, chunk.times[this.#row]!, outBase, 0);
        isEmpty = descending ? own < time : own > time;
        if (!isEmpty) time = own;
      }
      if (Math.abs(time) > Number.MAX_SAFE_INTEGER) break;
      // The point behind the gap decides how it is filled, and may not be known yet.
      times[count++] = time;
      if (isEmpty) this.#pushEmpty(fill, steps);
      else this.#pushPoint(chunk!);
      steps.advance();
    }
    if (count > 0) {
      const columns = this.#builders.map((builder) => builder.take());
      return { base: outBase, times: times.slice(0, count), count, columns };
    }
    return this.#isEnded && this.#chunk === undefined ? undefined : pending;
  }

  /** Makes the next point known; false when that takes longer. */
  #load(): boolean {
    if (this.#isEnded || this.#chunk !== undefined) return true;
    const chunk = this.#input.next();
    if (chunk === pending) return false;
    if (chunk === undefined) this.#isEnded = true;
    else {
      this.#chunk = chunk;
      this.#row = 0;
    }
    return true;
  }

  #start(): void {
    const { windows, from, to, descending } = this.#options;
    const chunk = this.#chunk!;
    const point = bigTime(chunk.base, chunk.times[this.#row]!);
    const edge = descending ? to : from;
    const first = windows.at(edge === minTime ? point : edge).start;
    this.#steps = new Steps(windows, first, descending);
    const last = descending ? from : to;
    this.#isOpenEnded = last === minTime;
    const end = windows.at(last).start;
    this.#endBase = baseOf(end);
    this.#endOffset = offsetFrom(this.#endBase, end);
  }

  #isBeforeEnd(steps: Steps): boolean {
    if (this.#isOpenEnded) return false;
    const order = compareTimes(steps.base, steps.offset, this.#endBase, this.#endOffset);
    return this.#options.descending ? order >= 0 : order <= 0;
  }

  #pushPoint(chunk: Chunk): void {
    const row = this.#row++;
    const [driver] = chunk.columns;
    this.#builders.forEach((builder, i) => builder.pushFrom(chunk.columns[i], row));
    if (has(driver, row)) {
      const value = scalarAt(driver, row);
      this.#previous = { base: chunk.base, offset: chunk.times[row]!, value };
    } else this.#previous = undefined;
    if (this.#row === chunk.count) this.#chunk = undefined;
  }

  #pushEmpty(fill: FillOption, steps: Steps): void {
    const [driver] = this.#builders;
    const previous = this.#previous;
    const value =
      this.#number ??
      (fill.kind === 'previous'
        ? previous?.value
        : fill.kind === 'linear'
          ? this.#between(steps)
          : undefined);
    if (value === undefined) driver!.pushNull();
    else driver!.push(value);
    for (let i = 1; i < this.#builders.length; i++) this.#builders[i]!.pushNull();
  }

  /** On the straight line between the points around, measured in windows. */
  #between(steps: Steps): number | bigint | undefined {
    const previous = this.#previous;
    const chunk = this.#chunk;
    if (previous === undefined || chunk === undefined) return undefined;
    const [driver] = chunk.columns;
    if (!has(driver, this.#row)) return undefined;
    const before = previous.value;
    const after = scalarAt(driver, this.#row);
    if (typeof before === 'string' || typeof after === 'string') return undefined;
    const { types, windows } = this.#options;
    if (types[0] === 'boolean') return undefined;
    const width = Number(windows.width);
    const from = (base: number, offset: number): number =>
      Math.round(compareTimes(base, offset, previous.base, previous.offset) / width);
    const into = from(steps.base, steps.offset);
    const distance = from(chunk.base, chunk.times[this.#row]!);
    const slope = difference(after, before) / distance;
    const value = slope * into + Number(before);
    if (types[0] === 'float') return value;
    const whole = toInteger(value);
    return whole >= -maxSafe && whole <= maxSafe ? Number(whole) : whole;
  }
}

function difference(a: number | bigint, b: number | bigint): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return Number(BigInt(a) - BigInt(b));
}

/** Value of every empty bucket, if it is the same for all. */
function numberOf({ fill, isCount, types }: FillOptions): number | string | undefined {
  if (fill.kind === 'number') return asType(fill.value, types[0]!);
  const isDefault = fill.kind === 'null' || fill.kind === 'default';
  return isCount && isDefault ? 0 : undefined;
}

function asType(value: number, type: FieldType): number | string {
  switch (type) {
    case 'float':
      return value;
    case 'string':
      return '';
    case 'boolean':
      return 0;
    default:
      return Math.trunc(value);
  }
}
