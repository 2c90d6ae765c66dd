// The order of buckets in an answer. Millions of them are put in order a few thousand at a time, so that other requests
// are served in between: runs are sorted, and then merged in pairs.

import type { Windows } from '../plan/windows.ts';
import { baseOf, offsetFrom } from '../vector.ts';

const sortedRun = 4096;
/** Slots handled by one `advance`. */
const perStep = 2 * sortedRun;

export class SlotOrder {
  /** Complete once `advance` has returned true. */
  slots: Int32Array;
  /** Where buckets start, by their place in the order, as far as `locate` was asked for. */
  readonly bases: Float64Array;
  readonly offsets: Float64Array;
  readonly #keys: readonly number[];
  readonly #windows: Windows;
  readonly #sign: number;
  #located = 0;
  #looked = 0;
  #isSorted = true;
  #cut = 0;
  #merging: Merging | undefined;

  constructor(keys: readonly number[], windows: Windows, descending: boolean) {
    this.#keys = keys;
    this.#windows = windows;
    this.#sign = descending ? -1 : 1;
    this.slots = new Int32Array(keys.length);
    this.bases = new Float64Array(keys.length);
    this.offsets = new Float64Array(keys.length);
  }

  /** Does a step of the work. True once the order is complete. */
  advance(): boolean {
    const { slots } = this;
    const keys = this.#keys;
    const sign = this.#sign;
    if (this.#looked < slots.length) {
      const end = Math.min(slots.length, this.#looked + perStep);
      for (let i = this.#looked; i < end; i++) {
        slots[i] = i;
        // One series alone has them in order already, as a rule.
        if (i > 0 && sign * (keys[i]! - keys[i - 1]!) <= 0) this.#isSorted = false;
      }
      this.#looked = end;
      return end === slots.length && this.#isSorted;
    }
    if (this.#isSorted) return true;
    if (this.#cut < slots.length) {
      const stop = Math.min(slots.length, this.#cut + perStep);
      for (; this.#cut < stop; this.#cut += sortedRun) {
        slots
          .subarray(this.#cut, this.#cut + sortedRun)
          .sort((a, b) => sign * (keys[a]! - keys[b]!));
      }
      this.#merging = new Merging(slots, sortedRun);
      return slots.length <= sortedRun;
    }
    const sorted = this.#merging?.advance(keys, sign);
    if (sorted === undefined) return slots.length <= sortedRun;
    this.slots = sorted;
    this.#isSorted = true;
    this.#merging = undefined;
    return true;
  }

  /** Makes `bases` and `offsets` of the places before `end` known. */
  locate(end: number): void {
    const { slots, bases, offsets } = this;
    for (; this.#located < end; this.#located++) {
      const start = this.#windows.startOf(this.#keys[slots[this.#located]!]!);
      const base = baseOf(start);
      bases[this.#located] = base;
      offsets[this.#located] = offsetFrom(base, start);
    }
  }
}

/** Sorted runs, merged in pairs until one is left. */
class Merging {
  #from: Int32Array;
  #to: Int32Array;
  #run: number;
  /** The next place to write, and the next ones to read of the two runs that are being merged. */
  #at = 0;
  #left = 0;
  #right: number;

  constructor(slots: Int32Array, run: number) {
    this.#from = slots;
    this.#to = new Int32Array(slots.length);
    this.#run = run;
    this.#right = run;
  }

  /** The slots in order, once they are. */
  advance(keys: readonly number[], sign: number): Int32Array | undefined {
    const { length } = this.#from;
    const stop = Math.min(length, this.#at + perStep);
    while (this.#at < stop) this.#pair(keys, sign, stop);
    if (this.#at < length) return undefined;
    [this.#from, this.#to] = [this.#to, this.#from];
    this.#run *= 2;
    this.#at = 0;
    this.#left = 0;
    this.#right = this.#run;
    return this.#run >= length ? this.#from : undefined;
  }

  /** Merges the pair under way, up to the place `stop`. */
  #pair(keys: readonly number[], sign: number, stop: number): void {
    const from = this.#from;
    const to = this.#to;
    const begin = this.#at - (this.#at % (2 * this.#run));
    const middle = Math.min(from.length, begin + this.#run);
    const end = Math.min(from.length, begin + 2 * this.#run);
    let [left, right] = [this.#left, this.#right];
    const last = Math.min(stop, end);
    for (let at = this.#at; at < last; at++) {
      const takesLeft =
        right >= end || (left < middle && sign * (keys[from[left]!]! - keys[from[right]!]!) <= 0);
      to[at] = takesLeft ? from[left++]! : from[right++]!;
    }
    this.#at = last;
    this.#left = last === end ? end : left;
    this.#right = last === end ? end + this.#run : right;
  }
}
