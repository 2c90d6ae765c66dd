// State of a SELECT of calls that its groups share.

import { type Slices, sortedInSlices } from '../../../../../universal-row/slices.ts';
import { maxTime, minTime } from '../../../../../contracts/series-store.ts';
import { checkType, summable } from '../accumulators/create.ts';
import type { Run } from '../context.ts';
import { type Call, isCall, type Plan, type Ref } from '../plan/plan.ts';
import { type Windows, windowsOf } from '../plan/windows.ts';
import type { Input } from '../sources/input.ts';
import { pending } from '../vector.ts';
import { FirstTimes } from './first-times.ts';
import { compareGroups, type InputGroup, type InputGroups, type Sources } from './groups.ts';
import { anyOrder, keepTimes, type Leaf, selectors, unfilled, uniqueRefs } from './leaf.ts';

/** State shared by the groups of a statement. */
export class Aggregation {
  readonly plan: Plan;
  readonly run: Run;
  readonly leaves: readonly Leaf[];
  /** By leaf, whether a source has its field. */
  readonly isKnown: readonly boolean[];
  /** Columns that the rows for the buckets have. */
  readonly refs: readonly Ref[];
  readonly #sources: Sources;
  readonly #aux: readonly Ref[];
  readonly #mostShift: number;
  readonly #bucketed: readonly Leaf[];
  readonly #ordered = new Map<Leaf, InputGroups>();
  #buckets: InputGroups | undefined;
  /** Where a limit and no lower bound make it worth while to look for the first points before. */
  #firstTimes: FirstTimes | undefined;
  /** Opening of the buckets in progress, where they are opened late. */
  #opening: Slices<InputGroups> | undefined;

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
    this.#bucketed = bucketed;
    this.#aux = plan.refs;
    this.refs = uniqueRefs([...bucketed.map(({ ref }) => ref), ...this.#aux]);
    this.#mostShift = Math.max(0, ...bucketed.map(({ shift }) => shift));
  }

  *open(): Slices<void> {
    const { plan, leaves, isKnown } = this;
    for (const [i, leaf] of leaves.entries()) {
      if (!isKnown[i] || !leaf.isOrdered) continue;
      const { from, to } = this.range(leaf.shift);
      const { descending } = plan;
      const request = { refs: [leaf.ref], from, to, descending, needsField: true };
      this.#ordered.set(leaf, yield* this.#sources.open(request));
    }
    const bucketed = this.#bucketed;
    if (bucketed.length === 0) return;
    if (this.#isBrief(bucketed)) {
      const refs = bucketed.map(({ ref }) => ref);
      this.#firstTimes = yield* FirstTimes.open(plan, this.#sources, refs);
    } else this.#buckets = yield* this.#openBuckets(plan.from, plan.to);
  }

  *groups(): Slices<[key: string, group: InputGroup][]> {
    const all = new Map<string, InputGroup>();
    const known: InputGroups[] = [...this.#ordered.values()];
    if (this.#buckets !== undefined) known.push(this.#buckets);
    if (this.#firstTimes !== undefined) known.push(...this.#firstTimes.groups);
    for (const groups of known) {
      for (const [key, group] of groups) if (!all.has(key)) all.set(key, group);
    }
    if (all.size > 0) this.#checkTypes();
    return yield* sortedInSlices([...all], ([, a], [, b]) => compareGroups(a, b));
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
    if (this.#opening === undefined) {
      const range = this.#firstTimes.find();
      if (range === pending) return false;
      if (range === undefined) {
        this.#buckets = new Map();
        return true;
      }
      this.#opening = this.#openBuckets(range.from, range.to);
    }
    const step = this.#opening.next();
    if (step.done !== true) return false;
    this.#buckets = step.value;
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

  #openBuckets(from: bigint, to: bigint): Slices<InputGroups> {
    const { descending, interval } = this.plan;
    const range = this.range(this.#mostShift);
    return this.#sources.open({
      refs: this.refs,
      from: this.#mostShift > 0 ? range.from : from,
      to: this.#mostShift > 0 ? range.to : to,
      descending,
      needsField: false,
      summaries: this.#canSum() ? { width: interval.width, offset: interval.offset } : undefined,
      totals: this.#canTotal() ? this.plan.dimensions : undefined,
    });
  }

  /** Nothing depends on which series a row is of, or on the order in which they come. */
  #canTotal(): boolean {
    if (this.plan.descending || !this.#canSum()) return false;
    return this.leaves.every(({ name, ref, isOrdered }, i) => {
      if (!this.isKnown[i] || isOrdered) return true;
      if (name === 'sum') return ref.type === 'integer' || ref.type === 'unsigned';
      return anyOrder.has(name);
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
      // Percentile may have no result in the first bucket.
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
