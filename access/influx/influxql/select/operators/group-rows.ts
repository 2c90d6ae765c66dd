// The rows of one group of a SELECT of calls.

import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import type { Accumulator } from '../accumulators/accumulator.ts';
import { createAccumulator } from '../accumulators/create.ts';
import { Reservation } from '../context.ts';
import { type Call, isCall } from '../plan/plan.ts';
import type { Windows } from '../plan/windows.ts';
import { type Input, type InputStream, isSummary } from '../sources/input.ts';
import { type Chunk, pending, type Stream } from '../vector.ts';
import type { Aggregation } from './aggregation.ts';
import { Pass } from './buckets.ts';
import { combine } from './combine.ts';
import { Fill } from './fill.ts';
import { HoltWinters } from './holt-winters.ts';
import { Integral } from './integral.ts';
import { type Leaf, lookBack, placeOf, unfilled, valueType } from './leaf.ts';
import { limited } from './limit.ts';
import { merge } from './merge.ts';
import { Project } from './project.ts';
import { transformed } from './transform.ts';

/** The rows of one group: first its inputs are read to the end, then the results are returned. */
export class GroupRows implements Stream {
  readonly #aggregation: Aggregation;
  readonly #key: string;
  readonly #memory: Reservation;
  #passes: Pass[] | undefined;
  readonly #leafPoints = new Map<Leaf, () => Stream>();
  #inputs: readonly Input[] = [];
  #nextInput = 0;
  #input: InputStream | undefined;
  #rows: Stream | undefined;
  #windows: Windows | undefined;

  constructor(aggregation: Aggregation, key: string) {
    this.#aggregation = aggregation;
    this.#key = key;
    this.#memory = new Reservation(aggregation.run);
  }

  next(): Chunk | typeof pending | undefined {
    if (this.#rows === undefined) {
      if (!this.#accumulate()) return pending;
      for (const pass of this.#passes!) pass.finish();
      this.#rows = this.#show();
    }
    const chunk = this.#rows.next();
    if (chunk === undefined) this.#memory.release();
    return chunk;
  }

  /** True when all rows have been seen. */
  #accumulate(): boolean {
    const aggregation = this.#aggregation;
    if (this.#passes === undefined) {
      if (!aggregation.prepare()) return false;
      this.#inputs = aggregation.bucketInputs(this.#key);
      if (this.#inputs.length === 0) this.#start(0n);
    }
    if (this.#input === undefined) {
      const input = this.#inputs[this.#nextInput++];
      if (input === undefined) return true;
      this.#input = input.open();
      // The first of all rows is yet to come; passes receive the others.
      if (this.#passes !== undefined) this.#startSeries();
    }
    const item = this.#input.next();
    if (item === pending) return false;
    if (item === undefined) {
      this.#input = undefined;
      if (this.#nextInput < this.#inputs.length) return false;
      if (this.#passes === undefined) this.#start(0n);
      return true;
    }
    if (this.#passes === undefined) {
      const first = isSummary(item) ? item.minTime : item.times[0]!;
      this.#start(BigInt(item.base) * 1_000_000_000n + BigInt(first));
      this.#startSeries();
    }
    for (const pass of this.#passes!) {
      if (isSummary(item)) pass.addSummary(item);
      else pass.add(item);
    }
    return false;
  }

  #startSeries(): void {
    const input = this.#inputs[this.#nextInput - 1]!;
    for (const pass of this.#passes!) pass.startSeries((name) => input.tag(name));
  }

  /** Makes the passes; `near` is a time that buckets are counted from. */
  #start(near: bigint): void {
    const { leaves, isKnown, plan } = this.#aggregation;
    const windows = this.#aggregation.windows(near);
    this.#windows = windows;
    this.#passes = [];
    const bucketed = leaves.filter((leaf, i) => isKnown[i] && !leaf.isOrdered);
    const shifts = new Set(bucketed.map(({ shift }) => shift));
    for (const shift of shifts) {
      const calls = bucketed
        .filter((leaf) => leaf.shift === shift)
        .map((leaf) => ({
          leaf,
          accumulator: this.#accumulator(leaf),
          column: this.#column(leaf),
        }));
      const pass = new Pass({
        calls,
        windows,
        ...this.#aggregation.range(shift),
        mustCut: shifts.size > 1,
        descending: plan.descending,
        memory: this.#memory,
      });
      this.#passes.push(pass);
      for (const { leaf, accumulator } of calls) {
        this.#leafPoints.set(leaf, () => pass.points(accumulator));
      }
    }
  }

  #column({ ref }: Leaf): number {
    return placeOf(ref, this.#aggregation.refs);
  }

  #accumulator({ call, name, ref }: Leaf): Accumulator {
    const { plan, refs } = this.#aggregation;
    const type = ref.type as FieldType;
    return createAccumulator(
      name,
      {
        type,
        resultType: call.type ?? type,
        parameter: call.parameter,
        tags: call.tags.map((tag) => tag.name),
        keepsTime: this.#aggregation.keepsTime(call),
        aux: plan.refs.map((each) => ({ index: placeOf(each, refs), type: valueType(each) })),
        hasInterval: plan.interval.width > 0n,
        memory: this.#memory,
      },
      plan.descending,
    );
  }

  #show(): Stream {
    const { plan, leaves, isKnown } = this.#aggregation;
    const { limit, offset, calls, refs } = plan;
    const streams = calls.map((call, i) =>
      isKnown[i] ? limited(this.#stream(call, leaves[i]!, 0), limit, offset) : undefined,
    );
    const callTypes = calls.map(({ type }) => type ?? ('float' as const));
    const combined = combine(streams, callTypes, plan.descending);
    const types = [
      ...calls.map(({ type }, i) => (isKnown[i] ? type : undefined)),
      ...refs.map(valueType),
    ];
    return new Project(combined, { outputs: plan.outputs, fill: plan.fill, types });
  }

  /** Stream of a call's results; `shift` is the shift of its own range. */
  #stream(call: Call, leaf: Leaf, shift: number): Stream {
    const { plan } = this.#aggregation;
    const hasInterval = plan.interval.width > 0n;
    if (call === leaf.call && !leaf.isOrdered) return this.#buckets(leaf);
    const inner = lookBack.has(call.name) && hasInterval ? shift + 1 : shift;
    const { input } = call;
    const source = isCall(input) ? this.#stream(input, leaf, inner) : this.#ordered(leaf);
    const inputType = valueType(input);
    switch (call.name) {
      case 'integral':
        return new Integral(source, this.#windows!, {
          unit: call.parameter ?? 1e9,
          type: inputType,
          descending: plan.descending,
        });
      case 'holt_winters':
      case 'holt_winters_with_fit':
        return new HoltWinters(source, {
          points: call.parameter ?? 1,
          season: call.season,
          withFit: call.name === 'holt_winters_with_fit',
          interval: plan.interval.width,
        });
    }
    return transformed(source, {
      name: call.name,
      parameter: call.parameter ?? this.#unitOf(call),
      inputType,
      resultType: call.type ?? inputType,
      descending: plan.descending,
    });
  }

  #unitOf({ name }: Call): number {
    const { width } = this.#aggregation.plan.interval;
    if (name === 'elapsed') return 1;
    return width > 0n ? Number(width) : 1e9;
  }

  #ordered(leaf: Leaf): Stream {
    const inputs = this.#aggregation.orderedInputs(leaf, this.#key);
    const { descending } = this.#aggregation.plan;
    return merge(
      inputs.map((input) => input.open()),
      [leaf.ref],
      descending,
    );
  }

  #buckets(leaf: Leaf): Stream {
    const { plan } = this.#aggregation;
    const points = this.#leafPoints.get(leaf)!();
    const { fill, interval, descending } = plan;
    if (interval.width === 0n || fill.kind === 'none' || unfilled.has(leaf.name)) return points;
    return new Fill(points, {
      windows: this.#windows!,
      fill,
      ...this.#aggregation.range(leaf.shift),
      descending,
      isCount: leaf.name === 'count' || leaf.name === 'count distinct',
      types: [leaf.call.type ?? valueType(leaf.ref), ...plan.refs.map(valueType)],
    });
  }
}
