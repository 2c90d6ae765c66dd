// The area under the straight lines between points, by bucket.

import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import type { Windows } from '../plan/windows.ts';
import {
  baseOf,
  bigTime,
  type Chunk,
  ColumnBuilder,
  compareTimes,
  has,
  numberAt,
  offsetFrom,
  pending,
  type Stream,
} from '../vector.ts';

interface Moment {
  readonly base: number;
  readonly offset: number;
}

export class Integral implements Stream {
  readonly #input: Stream;
  readonly #windows: Windows;
  readonly #unit: number;
  readonly #isFloat: boolean;
  readonly #descending: boolean;
  readonly #hasInterval: boolean;
  #builder = new ColumnBuilder('float');
  #times: Moment[] = [];
  #previous: (Moment & { value: number }) | undefined;
  /** The bucket's label and where it ends; in a descending scan that is its start. */
  #label: Moment = { base: 0, offset: 0 };
  #end: Moment = { base: 0, offset: 0 };
  #sum = 0;
  #isEnded = false;

  constructor(
    input: Stream,
    windows: Windows,
    options: { readonly unit: number; readonly type: FieldType; readonly descending: boolean },
  ) {
    this.#input = input;
    this.#windows = windows;
    this.#unit = options.unit;
    this.#isFloat = options.type === 'float';
    this.#descending = options.descending;
    this.#hasInterval = windows.width > 0n;
  }

  next(): Chunk | typeof pending | undefined {
    if (this.#isEnded) return undefined;
    const chunk = this.#input.next();
    if (chunk === pending) return pending;
    if (chunk === undefined) {
      this.#isEnded = true;
      this.#finish();
    } else {
      const [column] = chunk.columns;
      for (let row = 0; row < chunk.count; row++) {
        if (!has(column, row)) continue;
        this.#add({ base: chunk.base, offset: chunk.times[row]! }, numberAt(column, row));
      }
    }
    return this.#times.length > 0 ? this.#emit() : pending;
  }

  #add(time: Moment, value: number): void {
    const previous = this.#previous;
    this.#previous = { ...time, value };
    if (previous === undefined) {
      this.#enter(time);
      return;
    }
    if (order(time, previous) === 0) return;
    let from: Moment = previous;
    let before = previous.value;
    let after = value;
    const beyond = this.#hasInterval ? order(time, this.#end) : -1;
    if (this.#descending && this.#hasInterval ? beyond <= 0 : beyond >= 0) {
      if (order(previous, this.#end) !== 0) {
        const slope = (value - before) / order(time, previous);
        const edge = slope * order(this.#end, previous) + before;
        this.#sum += 0.5 * (edge + before) * (order(this.#end, previous) / this.#unit);
        from = this.#end;
        // For integers InfluxDB continues with the value at the edge as the later one.
        if (this.#isFloat) before = edge;
        else after = edge;
      }
      this.#push();
      this.#enter(time);
      this.#sum = 0;
    }
    this.#sum += 0.5 * (after + before) * (order(time, from) / this.#unit);
  }

  #enter(time: Moment): void {
    const { start, end, key } = this.#windows.at(bigTime(time.base, time.offset));
    if (!this.#hasInterval) {
      this.#label = momentOf(this.#windows.startOf(key));
      return;
    }
    this.#label = momentOf(this.#descending ? end : start);
    this.#end = momentOf(this.#descending ? start : end);
  }

  #finish(): void {
    const previous = this.#previous;
    if (previous !== undefined && order(previous, this.#label) !== 0) this.#push();
  }

  #push(): void {
    this.#times.push(this.#label);
    this.#builder.push(this.#sum);
  }

  #emit(): Chunk {
    const { base } = this.#times[0]!;
    const times = Float64Array.from(this.#times, (time) => order(time, { base, offset: 0 }));
    this.#times = [];
    return { base, times, count: times.length, columns: [this.#builder.take()] };
  }
}

function momentOf(time: bigint): Moment {
  const base = baseOf(time);
  return { base, offset: offsetFrom(base, time) };
}

function order(a: Moment, b: Moment): number {
  return compareTimes(a.base, a.offset, b.base, b.offset);
}
