// Buckets of GROUP BY time. The key of a bucket is a double that grows with time and is unique in the statement.

import { maxTime, minTime } from '../../../../../contracts/series-store.ts';
import { zoneOffset } from '../../parser/time-zone.ts';
import { bigTime } from '../vector.ts';
import type { Interval } from './compile.ts';

interface Window {
  readonly key: number;
  readonly start: bigint;
  /** Exclusive. */
  readonly end: bigint;
}

export interface Windows {
  readonly width: bigint;
  /** The window a time is in. */
  at(time: bigint): Window;
  startOf(key: number): bigint;
  /** All are equally wide, and keys count up one by one. */
  readonly isRegular: boolean;
}

/** Without GROUP BY time all rows are in one bucket, which starts where the statement's range does. */
export function windowsOf(interval: Interval, from: bigint, near: bigint): Windows {
  if (interval.width === 0n) return new OneWindow(from);
  const { timeZone } = interval;
  if (timeZone === undefined || timeZone === 'UTC') return new RegularWindows(interval, near);
  return new LocalWindows(interval, timeZone, near);
}

class OneWindow implements Windows {
  readonly width = 0n;
  readonly isRegular = true;
  readonly #label: bigint;

  constructor(from: bigint) {
    // 1970 stands for no bound at all.
    this.#label = from === minTime ? 0n : from;
  }

  at(): Window {
    return { key: 0, start: minTime, end: maxTime + 1n };
  }

  startOf(): bigint {
    return this.#label;
  }
}

class RegularWindows implements Windows {
  readonly width: bigint;
  readonly isRegular = true;
  readonly #origin: bigint;

  /** Keys are counted from a window that is near the times to come, which keeps them exact. */
  constructor({ width, offset }: Interval, near: bigint) {
    this.width = width;
    this.#origin = near - floorModulo(near - offset, width);
  }

  at(time: bigint): Window {
    const start = time - floorModulo(time - this.#origin, this.width);
    return { key: Number((start - this.#origin) / this.width), start, end: start + this.width };
  }

  startOf(key: number): bigint {
    return this.#origin + BigInt(key) * this.width;
  }
}

/** Windows that follow the local clock of a zone, also on days on which it is put forward or back. */
class LocalWindows implements Windows {
  readonly width: bigint;
  readonly isRegular = false;
  readonly #offset: bigint;
  readonly #zone: string;
  readonly #near: bigint;
  readonly #starts = new Map<number, bigint>();

  constructor({ width, offset }: Interval, zone: string, near: bigint) {
    this.width = width;
    this.#offset = offset;
    this.#zone = zone;
    this.#near = near;
  }

  at(time: bigint): Window {
    const { width } = this;
    const shifted = time - this.#offset;
    const zone = this.zone(shifted);
    const into = floorModulo(shifted + zone, width);
    let start = (minTime + into >= shifted ? minTime : shifted - into) + this.#offset;
    // The clock may have been changed since the start.
    const change = zone - this.zone(start);
    if (change !== 0n && magnitude(change) < width) start += change;
    const left = width - into;
    let end = (maxTime - left <= shifted ? maxTime : shifted + left) + this.#offset;
    const endZone = this.zone(end);
    const endChange = zone - endZone;
    if (endChange !== 0n && magnitude(endChange) < width) {
      // Hours that come twice belong to the window before, hours left out to the one after.
      if (endChange > 0n || this.zone(end + endChange) === endZone) end += endChange;
    }
    const key = Number(start - this.#near);
    this.#starts.set(key, start);
    return { key, start, end };
  }

  startOf(key: number): bigint {
    return this.#starts.get(key) ?? this.#near + BigInt(key);
  }

  /** Nanoseconds by which local time is ahead of UTC. */
  zone(time: bigint): bigint {
    return BigInt(zoneOffset(this.#zone, Number(floorDivide(time, second)))) * second;
  }
}

const second = 1_000_000_000n;

function magnitude(value: bigint): bigint {
  return value < 0n ? -value : value;
}

function floorModulo(value: bigint, by: bigint): bigint {
  const rest = value % by;
  return rest < 0n ? rest + by : rest;
}

function floorDivide(value: bigint, by: bigint): bigint {
  return (value - floorModulo(value, by)) / by;
}

/**
 * The starts of the windows of a filled answer, in order, as the fill of InfluxDB finds them. In a zone whose clock
 * changes, the fill continues by the width and corrects itself right after the change.
 */
export class WindowSteps {
  time: bigint;
  readonly #windows: Windows;
  readonly #step: bigint;
  #zone = 0n;

  constructor(windows: Windows, first: bigint, descending: boolean) {
    this.#windows = windows;
    this.time = first;
    this.#step = descending ? -windows.width : windows.width;
    if (windows instanceof LocalWindows) this.#zone = windows.zone(first);
  }

  advance(): void {
    const windows = this.#windows;
    this.time += this.#step;
    if (!(windows instanceof LocalWindows)) return;
    const zone = windows.zone(this.time - 1n);
    if (zone === this.#zone) return;
    const change = this.#zone - zone;
    if (magnitude(change) < windows.width) this.time += change;
    this.#zone = zone;
  }
}

/** Consecutive rows of one bucket. */
interface Runs {
  count: number;
  /** First row of each, and the number of rows behind the last. */
  readonly starts: Int32Array;
  readonly keys: Float64Array;
}

/** For the runs of one chunk at a time. */
let scratchStarts = new Int32Array(4097);
let scratchKeys = new Float64Array(4097);

/**
 * Rows `[from, to)` of a chunk, ascending or descending in time, cut at bucket boundaries. The
 * result is valid until the next call of any cutter.
 */
export class RunCutter {
  readonly #windows: Windows;
  readonly #descending: boolean;

  constructor(windows: Windows, descending: boolean) {
    this.#windows = windows;
    this.#descending = descending;
  }

  cut(base: number, times: Float64Array, from: number, to: number): Runs {
    if (scratchStarts.length < to - from + 1) {
      scratchStarts = new Int32Array(to - from + 1);
      scratchKeys = new Float64Array(to - from + 1);
    }
    const starts = scratchStarts;
    const keys = scratchKeys;
    const windows = this.#windows;
    const bigBase = BigInt(base) * second;
    const width = Number(windows.width);
    const canStep = windows.isRegular && width > 0 && width < 2 ** 52;
    let count = 0;
    let row = from;
    while (row < to) {
      const { key: first, start, end } = windows.at(bigTime(base, times[row]!));
      let key = first;
      let low = Number(start - bigBase);
      let high = Number(end - bigBase);
      for (;;) {
        starts[count] = row;
        keys[count++] = key;
        row = this.#runEnd(times, row, to, low, high);
        if (row >= to || !canStep) break;
        const time = times[row]!;
        // One window on, as a rule; over longer gaps the division by bigints is exact.
        if (this.#descending) {
          if (time < low - width) break;
          key--;
          low -= width;
        } else {
          if (time >= high + width) break;
          key++;
          high += width;
        }
        low = this.#descending ? low : high - width;
        high = low + width;
      }
    }
    starts[count] = to;
    return { count, starts, keys };
  }

  /** First row that is not in [low, high). */
  #runEnd(times: Float64Array, row: number, to: number, low: number, high: number): number {
    const descending = this.#descending;
    const last = times[to - 1]!;
    // All the rest, as without GROUP BY time.
    if (descending ? last >= low : last < high) return to;
    let step = 1;
    let near = row;
    // Gallop, then halve.
    while (
      near + step < to &&
      (descending ? times[near + step]! >= low : times[near + step]! < high)
    ) {
      near += step;
      step *= 2;
    }
    let far = Math.min(near + step, to);
    near++;
    while (near < far) {
      const middle = (near + far) >> 1;
      if (descending ? times[middle]! >= low : times[middle]! < high) near = middle + 1;
      else far = middle;
    }
    return near;
  }
}
