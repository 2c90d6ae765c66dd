// Aggregates by bucket over the inputs of one group: all calls that look at the same range share one
// look at the rows.

import type { BlockSummary, Column } from '../../../../../universal-row/series/column.ts';
import type { Accumulator, DenseRows, Points } from '../accumulators/accumulator.ts';
import type { RunMemory } from '../context.ts';
import { RunCutter, type Windows } from '../plan/windows.ts';
import { bigTime, type Chunk, compareTimes, gather, pending, type Stream } from '../vector.ts';
import { SlotOrder } from './slot-order.ts';

/** Up to this many buckets have their slots in an array. */
const denseKeys = 65_536;
const bytesPerSlot = 24;

/** Buckets by number, in the order in which they appear. */
class Slots {
  count = 0;
  readonly keys: number[] = [];
  readonly #low: number;
  readonly #dense: Int32Array | undefined;
  readonly #sparse = new Map<number, number>();

  constructor(low: number, high: number) {
    this.#low = low;
    if (high - low < denseKeys && high >= low) {
      this.#dense = new Int32Array(high - low + 1).fill(-1);
    }
  }

  of(key: number): number {
    const dense = this.#dense;
    const at = key - this.#low;
    if (dense !== undefined && at >= 0 && at < dense.length) {
      const slot = dense[at]!;
      return slot >= 0 ? slot : (dense[at] = this.#add(key));
    }
    const slot = this.#sparse.get(key);
    if (slot !== undefined) return slot;
    const added = this.#add(key);
    this.#sparse.set(key, added);
    return added;
  }

  #add(key: number): number {
    this.keys.push(key);
    return this.count++;
  }
}

interface BucketCall {
  readonly accumulator: Accumulator;
  /** Which column of the chunks. */
  readonly column: number;
}

interface PassOptions {
  readonly calls: readonly BucketCall[];
  readonly windows: Windows;
  /** Rows outside are not the pass's. */
  readonly from: bigint;
  readonly to: bigint;
  /** Whether there may be such rows. */
  readonly mustCut: boolean;
  readonly descending: boolean;
  readonly memory: RunMemory;
}

/** Where rows are cut into buckets, and the slots of those. */
interface CutRows {
  readonly count: number;
  readonly starts: Int32Array;
  readonly slots: Int32Array;
}

/** Calls over one range. */
export class Pass {
  readonly #options: PassOptions;
  readonly #slots: Slots;
  readonly #cutter: RunCutter;
  #grown = 0;
  #order: SlotOrder | undefined;

  constructor(options: PassOptions) {
    const { windows, from, to, descending } = options;
    this.#options = options;
    const isBounded = windows.isRegular && windows.width > 0n;
    const low = isBounded ? windows.at(from).key : 0;
    this.#slots = new Slots(low, isBounded ? windows.at(to).key : 0);
    this.#cutter = new RunCutter(windows, descending);
  }

  startSeries(tag: (name: string) => string): void {
    for (const { accumulator } of this.#options.calls) accumulator.startSeries(tag);
  }

  add(chunk: Chunk): void {
    const [from, to] = this.#options.mustCut ? this.#range(chunk) : [0, chunk.count];
    if (from >= to) return;
    const { calls } = this.#options;
    let whole: CutRows | undefined;
    let dense: DenseRows | undefined;
    let denseColumn: Column | undefined;
    let cut: CutRows | undefined;
    for (const { accumulator, column: index } of calls) {
      const column = chunk.columns[index];
      if (column === undefined) continue;
      if (column !== denseColumn) {
        denseColumn = column;
        dense = denseRows(chunk, column, from, to);
        if (dense.count === 0) continue;
        if (dense.rowIds === undefined) {
          whole ??= this.#cut(dense, from, to);
          cut = whole;
        } else cut = this.#cut(dense, 0, dense.count);
      }
      if (dense!.count === 0) continue;
      const { starts, slots, count } = cut!;
      for (let run = 0; run < count; run++) {
        accumulator.add(slots[run]!, dense!, starts[run]!, starts[run + 1]!);
      }
    }
  }

  addSummary(summary: BlockSummary): void {
    const { calls, windows } = this.#options;
    const { key } = windows.at(bigTime(summary.base, summary.minTime));
    const slot = this.#slots.of(key);
    this.#grow();
    for (const { accumulator, column } of calls) {
      const part = summary.columns[column];
      if (part !== undefined) accumulator.addSummary(slot, part, summary.base);
    }
  }

  finish(): void {
    for (const { accumulator } of this.#options.calls) accumulator.finish();
  }

  /** The points of one call, in the order of the answer. */
  points(accumulator: Accumulator): Stream {
    const { windows, descending } = this.#options;
    this.#order ??= new SlotOrder(this.#slots.keys, windows, descending);
    return new PointStream(accumulator, this.#order);
  }

  #range({ base, times, count }: Chunk): [number, number] {
    const { from, to, descending } = this.#options;
    const low = Number(from - BigInt(base) * 1_000_000_000n);
    const high = Number(to - BigInt(base) * 1_000_000_000n);
    let start = 0;
    let end = count;
    if (descending) {
      while (start < end && times[start]! > high) start++;
      while (end > start && times[end - 1]! < low) end--;
    } else {
      while (start < end && times[start]! < low) start++;
      while (end > start && times[end - 1]! > high) end--;
    }
    return [start, end];
  }

  #cut(rows: DenseRows, from: number, to: number): CutRows {
    const { count, starts, keys } = this.#cutter.cut(rows.base, rows.times, from, to);
    const slots = new Int32Array(count);
    for (let i = 0; i < count; i++) slots[i] = this.#slots.of(keys[i]!);
    this.#grow();
    return { count, starts: starts.slice(0, count + 1), slots };
  }

  #grow(): void {
    const { count } = this.#slots;
    if (count <= this.#grown) return;
    const { calls, memory } = this.#options;
    memory.reserve((count - this.#grown) * bytesPerSlot * (calls.length + 1));
    this.#grown = count;
    for (const { accumulator } of calls) accumulator.grow(count);
  }
}

/** The rows of a column that have a value. */
function denseRows(chunk: Chunk, column: Column, from: number, to: number): DenseRows {
  const { base, times } = chunk;
  const { present } = column;
  if (present === undefined) {
    return { base, times, count: to - from, column, chunk, rowIds: undefined };
  }
  const rowIds = new Int32Array(to - from);
  let count = 0;
  for (let i = from; i < to; i++) if (present[i] === 1) rowIds[count++] = i;
  const denseTimes = new Float64Array(count);
  for (let i = 0; i < count; i++) denseTimes[i] = times[rowIds[i]!]!;
  return { base, times: denseTimes, count, column: gather(column, rowIds, count), chunk, rowIds };
}

const slotsAtOnce = 512;

/** Points of slots in their order, some slots at a time. */
class PointStream implements Stream {
  readonly #accumulator: Accumulator;
  readonly #order: SlotOrder;
  #at = 0;
  /** Points that were too far apart in time for one chunk. */
  #rest: { readonly points: Points; readonly from: number; readonly first: number } | undefined;

  constructor(accumulator: Accumulator, order: SlotOrder) {
    this.#accumulator = accumulator;
    this.#order = order;
  }

  next(): Chunk | typeof pending | undefined {
    if (this.#rest !== undefined) {
      const { points, from, first } = this.#rest;
      return this.#chunk(points, from, first);
    }
    if (!this.#order.advance()) return pending;
    const from = this.#at;
    const { slots } = this.#order;
    if (from >= slots.length) return undefined;
    this.#at = Math.min(from + slotsAtOnce, slots.length);
    this.#order.locate(this.#at);
    const points = this.#accumulator.points(slots.subarray(from, this.#at));
    return points.count === 0 ? pending : this.#chunk(points, 0, from);
  }

  #chunk(points: Points, from: number, first: number): Chunk {
    const { count, places, times: own, column, aux } = points;
    const times = new Float64Array(count - from);
    const bases = own?.bases ?? this.#order.bases;
    const offsets = own?.offsets ?? this.#order.offsets;
    let base = 0;
    let at = from;
    for (; at < count; at++) {
      const i = own === undefined ? first + places[at]! : at;
      if (at === from) base = bases[i]! + Math.floor(offsets[i]! / 1e9);
      const time = compareTimes(bases[i]!, offsets[i]!, base, 0);
      if (Math.abs(time) > Number.MAX_SAFE_INTEGER) break;
      times[at - from] = time;
    }
    this.#rest = at < count ? { points, from: at, first } : undefined;
    const taken = at - from;
    if (taken === count) return { base, times, count, columns: [column, ...aux] };
    const rows = Int32Array.from({ length: taken }, (_, i) => from + i);
    const part = (each: Column | undefined): Column | undefined =>
      each && gather(each, rows, taken);
    return { base, times, count: taken, columns: [part(column), ...aux.map(part)] };
  }
}
