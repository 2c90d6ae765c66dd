// SELECT of calls. Calls over fields are worked out bucket by bucket, those that share a range in one look
// at the rows; functions that follow points from one to the next come on top.

import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import { maxTime, minTime } from '../../../../../universal-row/series/series-store.ts';
import type { Accumulator } from '../accumulators/accumulator.ts';
import { checkType, createAccumulator, summable } from '../accumulators/create.ts';
import { Reservation, type Run } from '../context.ts';
import { type Call, isCall, type Plan, type Ref } from '../plan/plan.ts';
import { type Windows, windowsOf } from '../plan/windows.ts';
import { type Group, type Input, type InputStream, isSummary } from '../sources/input.ts';
import { type Chunk, pending, type Stream } from '../vector.ts';
import { Pass } from './buckets.ts';
import { combine } from './combine.ts';
import { Fill } from './fill.ts';
import { FirstTimes } from './first-times.ts';
import { HoltWinters } from './holt-winters.ts';
import { Integral } from './integral.ts';
import { limited } from './limit.ts';
import { merge } from './merge.ts';
import { compareGroups, type InputGroup, type InputGroups, type Sources } from './groups.ts';
import { Project } from './project.ts';
import { transformed } from './transform.ts';

/** Functions of the points before, which need those of one more bucket. */
const lookBack: ReadonlySet<string> = new Set([
  'derivative',
  'non_negative_derivative',
  'difference',
  'non_negative_difference',
  'moving_average',
  'elapsed',
]);
const follows: ReadonlySet<string> = new Set([
  ...lookBack,
  'cumulative_sum',
  'integral',
  'holt_winters',
  'holt_winters_with_fit',
]);
const selectors: ReadonlySet<string> = new Set(['first', 'last', 'max', 'min', 'percentile']);
/** Their points always have their own times, and gaps between them are not filled. */
const keepTimes: ReadonlySet<string> = new Set(['bottom', 'sample', 'top']);
const unfilled: ReadonlySet<string> = new Set([...keepTimes, 'distinct']);

/** What a call of the statement stands on: a call or field that rows are read for. */
interface Leaf {
  readonly call: Call;
  /** What is worked out: `call.name`, or 'count distinct'. */
  readonly name: string;
  readonly ref: Ref;
  /** How many buckets more than the statement's range it reads. */
  readonly shift: number;
  /** It follows rows in the order of time, and is not worked out by bucket. */
  readonly isOrdered: boolean;
}

export function openAggregate(plan: Plan, sources: Sources, run: Run): Group[] {
  const leaves = plan.calls.map((call) => leafOf(call, plan, 0));
  const isKnown = ({ ref }: Leaf): boolean => ref.type !== undefined && ref.type !== 'tag';
  if (!leaves.some(isKnown)) return [];
  const aggregation = new Aggregation(plan, sources, run, leaves, leaves.map(isKnown));
  return aggregation.groups();
}

function leafOf(call: Call, plan: Plan, shift: number): Leaf {
  const hasInterval = plan.interval.width > 0n;
  const shifted = lookBack.has(call.name) && hasInterval ? shift + 1 : shift;
  const { input } = call;
  if (!isCall(input)) {
    const isOrdered = follows.has(call.name);
    return { call, name: call.name, ref: input, shift: shifted, isOrdered };
  }
  if (call.name === 'count' && !isCall(input.input)) {
    return { call, name: 'count distinct', ref: input.input, shift, isOrdered: false };
  }
  return leafOf(input, plan, shifted);
}

/** What is shared by the groups of a statement. */
class Aggregation {
  readonly plan: Plan;
  readonly run: Run;
  readonly leaves: readonly Leaf[];
  /** By leaf, whether anybody has its field. */
  readonly isKnown: readonly boolean[];
  /** Columns that the rows for the buckets have. */
  readonly refs: readonly Ref[];
  readonly #sources: Sources;
  readonly #aux: readonly Ref[];
  readonly #mostShift: number;
  readonly #ordered = new Map<Leaf, InputGroups>();
  #buckets: InputGroups | undefined;
  /** Where a limit and no lower bound make it worth while to look for the first points before. */
  readonly #firstTimes: FirstTimes | undefined;

  constructor(
    plan: Plan,
    sources: Sources,
    run: Run,
    leaves: readonly Leaf[],
    isKnown: readonly boolean[],
  ) {
    this.plan = plan;
    this.run = run;
    this.leaves = leaves;
    this.isKnown = isKnown;
    this.#sources = sources;
    const bucketed = leaves.filter((leaf, i) => isKnown[i] && !leaf.isOrdered);
    this.#aux = plan.refs;
    this.refs = uniqueRefs([...bucketed.map(({ ref }) => ref), ...this.#aux]);
    this.#mostShift = Math.max(0, ...bucketed.map(({ shift }) => shift));
    for (const [i, leaf] of leaves.entries()) {
      if (!isKnown[i] || !leaf.isOrdered) continue;
      const { from, to } = this.range(leaf.shift);
      const { descending } = plan;
      const request = { refs: [leaf.ref], from, to, descending, needsField: true };
      this.#ordered.set(leaf, sources.open(request));
    }
    if (bucketed.length === 0) return;
    if (this.#isBrief(bucketed)) {
      this.#firstTimes = new FirstTimes(
        plan,
        sources,
        bucketed.map(({ ref }) => ref),
      );
    } else this.#buckets = this.#openBuckets(plan.from, plan.to);
  }

  groups(): Group[] {
    const all = new Map<string, InputGroup>();
    const known: InputGroups[] = [...this.#ordered.values()];
    if (this.#buckets !== undefined) known.push(this.#buckets);
    if (this.#firstTimes !== undefined) known.push(...this.#firstTimes.groups);
    for (const groups of known) {
      for (const [key, group] of groups) if (!all.has(key)) all.set(key, group);
    }
    if (all.size > 0) this.#checkTypes();
    return [...all]
      .sort(([, a], [, b]) => compareGroups(a, b))
      .map(([key, { name, tags }]) => ({
        name,
        tags,
        rows: () => new GroupRows(this, key),
      }));
  }

  /** The statement's range, with so many buckets more at the end from which it is read. */
  range(shift: number): { from: bigint; to: bigint } {
    const { from, to, descending, interval } = this.plan;
    const more = interval.width * BigInt(shift);
    if (descending) return { from, to: to > maxTime - more ? maxTime : to + more };
    return { from: from < minTime + more ? minTime : from - more, to };
  }

  /** False while something has to be found out first. */
  prepare(): boolean {
    if (this.#firstTimes === undefined || this.#buckets !== undefined) return true;
    const range = this.#firstTimes.find();
    if (range === pending) return false;
    this.#buckets = range === undefined ? new Map() : this.#openBuckets(range.from, range.to);
    return true;
  }

  bucketInputs(key: string): readonly Input[] {
    return this.#buckets?.get(key)?.inputs ?? [];
  }

  orderedInputs(leaf: Leaf, key: string): readonly Input[] {
    return this.#ordered.get(leaf)?.get(key)?.inputs ?? [];
  }

  /** Whether the call keeps the time of the row it chooses. */
  keepsTime({ name }: Call): boolean {
    if (keepTimes.has(name)) return true;
    const { calls, interval } = this.plan;
    if (interval.width > 0n || calls.length > 1) return false;
    return selectors.has(name) && calls[0]!.name === name;
  }

  windows(near: bigint): Windows {
    return windowsOf(this.plan.interval, this.plan.from, near);
  }

  #openBuckets(from: bigint, to: bigint): InputGroups {
    const { descending, interval } = this.plan;
    const range = this.range(this.#mostShift);
    return this.#sources.open({
      refs: this.refs,
      from: this.#mostShift > 0 ? range.from : from,
      to: this.#mostShift > 0 ? range.to : to,
      descending,
      needsField: false,
      summaries: this.#canSum() ? { width: interval.width, offset: interval.offset } : undefined,
    });
  }

  #canSum(): boolean {
    const { interval } = this.plan;
    const isLocal = interval.timeZone !== undefined && interval.timeZone !== 'UTC';
    if (this.#aux.length > 0 || (isLocal && interval.width > 0n)) return false;
    const bucketed = this.leaves.filter((leaf, i) => this.isKnown[i] && !leaf.isOrdered);
    const shifts = new Set(bucketed.map(({ shift }) => shift));
    if (shifts.size > 1) return false;
    return bucketed.every(({ name, call }) => {
      if (!summable.has(name)) return false;
      return (name !== 'min' && name !== 'max') || !this.keepsTime(call);
    });
  }

  /** Only the first buckets are asked for, and they start where the points do. */
  #isBrief(bucketed: readonly Leaf[]): boolean {
    const { plan } = this;
    return (
      plan.limit > 0 &&
      plan.from === minTime &&
      !plan.descending &&
      plan.interval.width > 0n &&
      plan.interval.timeZone === undefined &&
      plan.fill.kind !== 'none' &&
      // An empty bucket may depend on the next point, however far it is.
      plan.fill.kind !== 'linear' &&
      plan.sources.every(({ kind }) => kind === 'measurement') &&
      bucketed.length === plan.calls.length &&
      bucketed.every(({ name, call }) => plan.calls.includes(call) && !unfilled.has(name)) &&
      // It may find nothing in the first bucket.
      bucketed.every(({ name }) => name !== 'percentile')
    );
  }

  #checkTypes(): void {
    for (const call of this.plan.calls) {
      for (let each: Ref | Call = call; isCall(each); each = each.input) {
        const { type } = each.input;
        if (type !== undefined && type !== 'tag') checkType(each.name, type);
      }
    }
  }
}

function uniqueRefs(refs: readonly Ref[]): Ref[] {
  return refs.filter((ref, i) => i === placeOf(ref, refs));
}

function placeOf({ name, type }: Ref, refs: readonly Ref[]): number {
  return refs.findIndex((ref) => ref.name === name && ref.type === type);
}

/** The rows of one group: first its inputs are read to the end, then what came of them is shown. */
class GroupRows implements Stream {
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
      // The first of all rows is yet to come; passes are told of the others.
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

  /** What a call gives: `shift` is that of its own range. */
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

function valueType({ type }: { readonly type: Ref['type'] }): FieldType {
  return type === 'tag' || type === undefined ? 'string' : type;
}
