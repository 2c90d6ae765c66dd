// For GROUP BY time with a LIMIT and no lower bound: where the points of each group begin. Only so many
// buckets from there have to be read.

import type { Slices } from '../../../../../universal-row/slices.ts';
import type { Plan, Ref } from '../plan/plan.ts';
import { windowsOf } from '../plan/windows.ts';
import { type Input, type InputStream, isSummary } from '../sources/input.ts';
import { bigTime, pending } from '../vector.ts';
import type { InputGroups, Sources } from './groups.ts';

export class FirstTimes {
  readonly groups: readonly InputGroups[];
  readonly #plan: Plan;
  /** For each field and group, the inputs to look at. */
  readonly #tasks: { readonly inputs: readonly Input[]; first: bigint | undefined }[];
  #task = 0;
  #input = 0;
  #stream: InputStream | undefined;

  private constructor(plan: Plan, groups: readonly InputGroups[]) {
    this.#plan = plan;
    this.groups = groups;
    this.#tasks = groups.flatMap((each) =>
      [...each.values()].map(({ inputs }) => ({ inputs, first: undefined })),
    );
  }

  static *open(plan: Plan, sources: Sources, refs: readonly Ref[]): Slices<FirstTimes> {
    const unique = refs.filter(
      (ref, i) => i === refs.findIndex(({ name, type }) => name === ref.name && type === ref.type),
    );
    const groups: InputGroups[] = [];
    for (const ref of unique) {
      const request = {
        refs: [ref],
        from: plan.from,
        to: plan.to,
        descending: false,
        needsField: true,
        rowsPerSeries: 1,
      };
      groups.push(yield* sources.open(request));
    }
    return new FirstTimes(plan, groups);
  }

  /** The range that holds the buckets that will be shown; undefined when there is no point. */
  find(): { readonly from: bigint; readonly to: bigint } | undefined | typeof pending {
    const task = this.#tasks[this.#task];
    if (task === undefined) return this.#range();
    const input = task.inputs[this.#input];
    if (input === undefined) {
      this.#task++;
      this.#input = 0;
      return pending;
    }
    this.#stream ??= input.open();
    const item = this.#stream.next();
    if (item === pending) return pending;
    if (item !== undefined && item.count > 0) {
      const time = bigTime(item.base, isSummary(item) ? item.minTime : item.times[0]!);
      if (task.first === undefined || time < task.first) task.first = time;
    }
    this.#stream = undefined;
    this.#input++;
    return pending;
  }

  #range(): { readonly from: bigint; readonly to: bigint } | undefined {
    const { interval, limit, offset, to } = this.#plan;
    const firsts = this.#tasks.flatMap(({ first }) => (first === undefined ? [] : [first]));
    if (firsts.length === 0) return undefined;
    const earliest = firsts.reduce((a, b) => (a < b ? a : b));
    const latest = firsts.reduce((a, b) => (a > b ? a : b));
    const windows = windowsOf(interval, this.#plan.from, earliest);
    const end = windows.at(latest).start + BigInt(limit + offset) * interval.width - 1n;
    return { from: earliest, to: end < to ? end : to };
  }
}
