// Costs of modules fitted to the cost of whole requests. What a request costs is a sum over its
// modules, and each module's cost a line from one size of the table to the next: so every measured
// request is one linear equation in the table's numbers. There are fewer kinds of requests than
// numbers, and measuring has its errors, so the table has three more constraints: no cost is below
// its minimum, larger sizes never cost less, and the price of a byte changes only where the
// measurements require it. Remaining freedom is resolved to the lowest cost.

import { type ModuleCosts, sizes } from '../../request-units/cost-table.ts';
import { NormalEquations } from './least-squares.ts';

export interface Part<Work> {
  work: Work;
  times: number;
}

export interface Sample<Work> {
  name: string;
  /** The priced work of one request. */
  parts: readonly Part<Work>[];
  /** CPU microseconds of one request. */
  micros: number;
}

export type Modules = Readonly<Record<string, ModuleCosts>>;
export type Columns = Record<string, number[]>;

/** The cost of work by a table, in CPU microseconds. Must be linear in the table's numbers. */
type Pricing<Work> = (modules: Modules) => (work: Work) => number;

// Regularization weights, relative to an error of the whole request: for a change of the price per byte, and for a cost
// above 0, so that the lowest cost is chosen where the measurements leave a choice.
const bendWeight = 0.1;
const costWeight = 0.003;
/** Errors beyond so many times the usual one are disturbances, and count less the larger they are. */
const usualErrors = 3;
const passes = 4;

/** An unknown: by how much a module costs more from one size on than at the size before. */
interface Rise {
  module: string;
  at: number;
  /** The most that it can be by any sample; unknowns are shares of it. */
  scale: number;
}

interface FitOptions<Work> {
  /** Known costs of other modules. */
  known?: (work: Work) => number;
  /** Lower bound of a module's cost, in CPU microseconds; 0 by default. */
  least?: (module: string) => number;
}

/** CPU microseconds of each of the modules by size. Measured requests count by their relative errors. */
export function fitColumns<Work>(
  modules: readonly string[],
  pricing: Pricing<Work>,
  samples: readonly Sample<Work>[],
  { known = (): number => 0, least = (): number => 0 }: FitOptions<Work> = {},
): Columns {
  const rises = modules.flatMap((module) => risesOf(module, pricing, samples));
  const columns: Columns = {};
  for (const module of modules) columns[module] = sizes.map(() => least(module));
  // Only the cost above the lower bounds is fitted.
  const sure = pricing(
    Object.fromEntries(Object.entries(columns).map(([name, cpu]) => [name, { cpu }])),
  );
  const rows = samples.map(({ micros }, s) => {
    const row = new Map<number, number>();
    // Relative to the measurement.
    rises.forEach(({ feature, scale }, i) => {
      const share = (feature[s]! * scale) / micros;
      if (share > 0) row.set(i, share);
    });
    return row;
  });
  const rights = samples.map(
    ({ parts, micros }) => 1 - (priceOf(parts, known) + priceOf(parts, sure)) / micros,
  );
  let weights = samples.map(() => 1);
  let solution: Float64Array = new Float64Array(rises.length);
  for (let pass = 0; pass < passes; pass++) {
    const equations = new NormalEquations(rises.length);
    rows.forEach((row, s) => equations.add(row, rights[s]!, weights[s]!));
    addExpectations(equations, rises);
    solution = equations.solve();
    weights = weightsOf(rows, rights, solution);
  }
  rises.forEach(({ module, at, scale }, i) => {
    const column = columns[module]!;
    for (let k = at; k < column.length; k++) column[k] = column[k]! + solution[i]! * scale;
  });
  return columns;
}

/** A module whose cost does not depend on size has one feature. */
function risesOf<Work>(
  module: string,
  pricing: Pricing<Work>,
  samples: readonly Sample<Work>[],
): (Rise & { feature: number[] })[] {
  const features = sizes.map((_, at) => {
    const price = pricing({ [module]: { cpu: sizes.map((__, k) => (k < at ? 0 : 1)) } });
    return samples.map(({ parts }) => priceOf(parts, price));
  });
  const isFlat = features.slice(1).every((feature) => feature.every((x) => x === 0));
  const rises: (Rise & { feature: number[] })[] = [];
  for (const [at, feature] of features.entries()) {
    if (at > 0 && isFlat) break;
    // The bound of a rise is at most twice the bound of the rise before.
    let scale = at === 0 ? Infinity : 2 * rises[at - 1]!.scale;
    samples.forEach(({ micros }, s) => {
      if (feature[s]! > 0) scale = Math.min(scale, micros / feature[s]!);
    });
    // Nothing is known of it.
    if (scale === Infinity) return [];
    rises.push({ module, at, scale, feature });
  }
  return rises;
}

/** The price of one request. */
export function priceOf<Work>(parts: readonly Part<Work>[], price: (work: Work) => number): number {
  return parts.reduce((sum, { work, times }) => sum + times * price(work), 0);
}

function addExpectations(equations: NormalEquations, rises: readonly Rise[]): void {
  rises.forEach((rise, i) => {
    equations.add(new Map([[i, 1]]), 0, costWeight);
    const before = rises[i - 1];
    if (before?.module !== rise.module || rise.at < 2) return;
    const step = (at: number): number => sizes[at]! - sizes[at - 1]!;
    // The price of a byte before this size, over as many bytes.
    const same = (before.scale / rise.scale) * (step(rise.at) / step(before.at));
    equations.add(
      new Map([
        [i, 1],
        [i - 1, -same],
      ]),
      0,
      bendWeight,
    );
  });
}

function weightsOf(
  rows: readonly ReadonlyMap<number, number>[],
  rights: readonly number[],
  solution: Float64Array,
): number[] {
  const errors = rows.map((row, s) => {
    let sum = -rights[s]!;
    for (const [i, share] of row) sum += share * solution[i]!;
    return Math.abs(sum);
  });
  const usual = Math.max(0.05, [...errors].sort((a, b) => a - b)[errors.length >> 1]!);
  return errors.map((error) => Math.sqrt(Math.min(1, (usualErrors * usual) / error)));
}
