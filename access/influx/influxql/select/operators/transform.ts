// Functions that make of each point and those before it another point: derivative, difference,
// moving_average, cumulative_sum, elapsed.

import type { Column } from '../../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import {
  bigTime,
  type Chunk,
  ColumnBuilder,
  compareTimes,
  has,
  pending,
  scalarAt,
  type Stream,
} from '../vector.ts';

interface TransformOptions {
  readonly name: string;
  /** Window of moving_average, or unit in nanoseconds. */
  readonly parameter: number;
  readonly inputType: FieldType;
  readonly resultType: FieldType;
  readonly descending: boolean;
}

/** Called point after point; returns the value at that point, if there is one. */
interface Step {
  next(column: Column, row: number, base: number, offset: number): number | bigint | undefined;
}

export function transformed(input: Stream, options: TransformOptions): Stream {
  return new Transform(input, stepOf(options), options.resultType);
}

class Transform implements Stream {
  readonly #input: Stream;
  readonly #step: Step;
  readonly #builder: ColumnBuilder;

  constructor(input: Stream, step: Step, resultType: FieldType) {
    this.#input = input;
    this.#step = step;
    this.#builder = new ColumnBuilder(resultType);
  }

  next(): Chunk | typeof pending | undefined {
    const chunk = this.#input.next();
    if (chunk === undefined || chunk === pending) return chunk;
    const [column] = chunk.columns;
    const times = new Float64Array(chunk.count);
    let count = 0;
    for (let row = 0; row < chunk.count; row++) {
      if (!has(column, row)) continue;
      const value = this.#step.next(column, row, chunk.base, chunk.times[row]!);
      if (value === undefined) continue;
      this.#builder.push(value);
      times[count++] = chunk.times[row]!;
    }
    if (count === 0) return pending;
    return { base: chunk.base, times, count, columns: [this.#builder.take()] };
  }
}

function stepOf(options: TransformOptions): Step {
  switch (options.name) {
    case 'derivative':
    case 'non_negative_derivative':
    case 'difference':
    case 'non_negative_difference':
      return new Change(options);
    case 'moving_average':
      return new MovingAverage(options);
    case 'cumulative_sum':
      return new CumulativeSum(options);
    default:
      return new Elapsed(options);
  }
}

type Number = number | bigint;

function subtract(a: Number, b: Number, type: FieldType): Number {
  if (typeof a === 'number' && typeof b === 'number') {
    const difference = a - b;
    if (type === 'float' || Number.isSafeInteger(difference)) return difference;
  }
  return wrap(BigInt(a) - BigInt(b), type);
}

function wrap(value: bigint, type: FieldType): bigint {
  return type === 'unsigned' ? BigInt.asUintN(64, value) : BigInt.asIntN(64, value);
}

/** From point to point; of several at one time only the first counts. */
class Change implements Step {
  readonly #type: FieldType;
  readonly #unit: number | undefined;
  readonly #isNonNegative: boolean;
  readonly #sign: number;
  #value: Number | undefined;
  #base = 0;
  #offset = 0;

  constructor({ name, inputType, parameter, descending }: TransformOptions) {
    this.#type = inputType;
    this.#unit = name.endsWith('derivative') ? parameter : undefined;
    this.#isNonNegative = name.startsWith('non_negative');
    this.#sign = descending ? -1 : 1;
  }

  next(column: Column, row: number, base: number, offset: number): Number | undefined {
    const value = scalarAt(column, row) as Number;
    const before = this.#value;
    const elapsed = compareTimes(base, offset, this.#base, this.#offset);
    if (before !== undefined && elapsed === 0) return undefined;
    this.#value = value;
    this.#base = base;
    this.#offset = offset;
    if (before === undefined) return undefined;
    if (this.#isNonNegative && value < before) return undefined;
    if (this.#unit === undefined) return subtract(value, before, this.#type);
    const change =
      this.#type === 'unsigned'
        ? Number(BigInt(value) - BigInt(before))
        : Number(subtract(value, before, this.#type));
    return change / ((elapsed * this.#sign) / this.#unit);
  }
}

class MovingAverage implements Step {
  readonly #size: number;
  readonly #type: FieldType;
  readonly #values: Number[] = [];
  #at = 0;
  #sum: Number;

  constructor({ parameter, inputType }: TransformOptions) {
    this.#size = parameter;
    this.#type = inputType;
    this.#sum = inputType === 'float' ? 0 : 0n;
  }

  next(column: Column, row: number): number | undefined {
    const value = scalarAt(column, row) as Number;
    const oldest = this.#values[this.#at];
    if (oldest !== undefined) this.#add(oldest, -1);
    this.#values[this.#at] = value;
    this.#add(value, 1);
    this.#at = (this.#at + 1) % this.#size;
    if (this.#values.length < this.#size) return undefined;
    return Number(this.#sum) / this.#size;
  }

  #add(value: Number, sign: 1 | -1): void {
    if (typeof this.#sum === 'number') this.#sum += sign * Number(value);
    else this.#sum = wrap(this.#sum + BigInt(value) * BigInt(sign), this.#type);
  }
}

class CumulativeSum implements Step {
  readonly #type: FieldType;
  #sum: Number = 0;

  constructor({ inputType }: TransformOptions) {
    this.#type = inputType;
  }

  next(column: Column, row: number): Number {
    const value = scalarAt(column, row) as Number;
    if (this.#type === 'float') return (this.#sum = Number(this.#sum) + Number(value));
    if (typeof this.#sum === 'number' && typeof value === 'number') {
      const sum = this.#sum + value;
      if (Number.isSafeInteger(sum)) return (this.#sum = sum);
    }
    return (this.#sum = wrap(BigInt(this.#sum) + BigInt(value), this.#type));
  }
}

class Elapsed implements Step {
  readonly #unit: number;
  #isFirst = true;
  #base = 0;
  #offset = 0;

  constructor({ parameter }: TransformOptions) {
    this.#unit = parameter;
  }

  next(_column: Column, _row: number, base: number, offset: number): Number | undefined {
    const isFirst = this.#isFirst;
    let elapsed: Number = compareTimes(base, offset, this.#base, this.#offset);
    if (!Number.isSafeInteger(elapsed) || !Number.isSafeInteger(this.#unit)) {
      const exact = bigTime(base, offset) - bigTime(this.#base, this.#offset);
      elapsed = exact / BigInt(this.#unit);
    } else elapsed = Math.trunc(elapsed / this.#unit);
    this.#isFirst = false;
    this.#base = base;
    this.#offset = offset;
    return isFirst ? undefined : elapsed;
  }
}
