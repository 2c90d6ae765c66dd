// Costs of the modules on a request's path, by size: measured once a release by `polyrow calibrate`, kept as plain data
// with a version, and laid out in typed arrays so that a lookup allocates nothing.
//
// A table holds physical costs. Divided by the cost of reading 1 kB they are request units, which
// are the same on any machine, as long as the whole table was made on one.

import { dimensionCount, dimensions, type Dimension, lruWeights, podPru, type Pru } from './pru.ts';

/** 64 B to 1 MB by powers of two. Between them costs are a line; below, the first; above, the last line continues. */
export const sizes: readonly number[] = Array.from({ length: 15 }, (_, i) => 64 << i);

/** Modules on the path of a row command, in order. */
export const rowModules = [
  // Bytes of a request to words, and of an answer to bytes.
  'decode',
  'encode',
  // From arguments to the engine's operation: finding the command, routing, checks.
  'convert',
  // Finding a row by its key.
  'lookup',
  // Reading a value, a field or an element.
  'read',
  // Finding a place in the order of a sorted set.
  'seek',
  // Walking along members, fields with their values, members with their scores, and elements of arrays; and
  // writing each into the answer.
  'walk',
  'walkFields',
  'walkScores',
  'walkArray',
  'writeValue',
  'writeField',
  'writeScore',
  'writeElement',
  // Additional cost of writing many of these in one request, by their number: 64 B stand for one.
  'writeMany',
  'remove',
  // A thousand steps of a script.
  'script',
  // Bytes of the log's entry.
  'log',
  // A read that went to disk, and running the command again.
  'miss',
  // Background work: an expired row; compacted bytes; a row of a checkpoint.
  'expire',
  'compact',
  'checkpoint',
] as const;
export type RowModule = (typeof rowModules)[number];

/** Modules on the path of a time-series request. */
export const seriesModules = [
  // An HTTP request and its answer, without their content.
  'request',
  // Line protocol.
  'decode',
  // Writing a batch of points into the engine; the size is that of its log entry.
  'write',
  'log',
  // A statement's text to a plan.
  'convert',
  // Finding one series, and opening it.
  'series',
  // One series of an answer.
  'group',
  // Reading a block of points, and decoding it.
  'block',
  // Points that operators work on, at 16 bytes each.
  'aggregate',
  // Points that a function needs all of at once, as a median does.
  'keep',
  // Names out of an index, at 16 bytes each.
  'names',
  // Answers as text.
  'encode',
  // Bytes held for a millisecond.
  'hold',
  // Bytes of the log that become files, and are merged, later.
  'compact',
] as const;
export type SeriesModule = (typeof seriesModules)[number];

/** Cost by size, an array as long as `sizes` for each dimension in which there is any. */
export type ModuleCosts = Partial<Record<Dimension, readonly number[]>>;

/** Physical: CPU microseconds, bytes times milliseconds, disk operations, bytes. */
export interface ModelCosts {
  /** Physical cost of reading 1 kB. */
  read1kB: Pru;
  /** Capacity of the reference pod per second. */
  capacity: Pru;
  modules: Readonly<Record<string, ModuleCosts>>;
}

export const tableFormat = 1;

export interface CostTableData {
  /** Version of this data format. */
  format: number;
  /** Release of the server that was measured. */
  release: string;
  /** ISO date. */
  date: string;
  machine: string;
  models: Readonly<Record<'memory' | 'kv' | 'series', ModelCosts>>;
}

export type CostModel = keyof CostTableData['models'];

/** The costs of one model in request units. */
export class CostTable {
  /** Weights of a request's dimensions; the largest product is its logical units. */
  readonly weights: Pru;
  readonly pod: Pru;
  /**
   * Line by dimension, module and interval: `calls * base[i] + bytes * slope[i]`, where
   * i = (dimension * modules + module) * intervals + interval(size).
   */
  readonly base: Float64Array;
  readonly slope: Float64Array;
  /** Distance between two dimensions in these arrays. */
  readonly stride: number;
  readonly modules: readonly string[];

  /** Throws `RangeError` for data that cannot be used. */
  constructor(costs: ModelCosts, modules: readonly string[]) {
    checkCosts(costs, modules);
    this.modules = modules;
    this.pod = podPru(costs.capacity, costs.read1kB);
    this.weights = lruWeights(this.pod);
    this.stride = modules.length * intervals;
    this.base = new Float64Array(this.stride * dimensionCount);
    this.slope = new Float64Array(this.stride * dimensionCount);
    modules.forEach((module, m) => {
      dimensions.forEach((dimension, d) => {
        const column = costs.modules[module]?.[dimension];
        if (column !== undefined) this.#addLines(column, costs.read1kB[d]!, d, m);
      });
    });
  }

  #addLines(column: readonly number[], unit: number, dimension: number, module: number): void {
    for (let i = 0; i < intervals; i++) {
      const slope = (column[i + 1]! - column[i]!) / (sizes[i + 1]! - sizes[i]!);
      const at = dimension * this.stride + module * intervals + i;
      this.slope[at] = slope / unit;
      this.base[at] = (column[i]! - slope * sizes[i]!) / unit;
    }
  }

  /** Units of one dimension, for `calls` of a module with `bytes` in all. */
  units(dimension: number, module: number, calls: number, bytes: number): number {
    if (calls === 0) return 0;
    const size = bytes / calls;
    const at = dimension * this.stride + module * intervals + interval(size);
    const sum = size < smallest ? calls * smallest : bytes;
    return calls * this.base[at]! + sum * this.slope[at]!;
  }

  /** Logical units of a vector. */
  lru(pru: Pru): number {
    const { weights } = this;
    return Math.max(
      pru[0] * weights[0],
      pru[1] * weights[1],
      pru[2] * weights[2],
      pru[3] * weights[3],
    );
  }
}

export const smallest = 64;
export const intervals = sizes.length - 1;

/** Which line holds for a size. */
export function interval(size: number): number {
  if (size < 128) return 0;
  const i = 25 - Math.clz32(size);
  return i < intervals ? i : intervals - 1;
}

/** Validates a table read from a file. Throws `RangeError` with the problem. */
export function checkCostTable(data: unknown): CostTableData {
  const table = data as Partial<CostTableData> | null;
  if (typeof table !== 'object' || table === null) throw new RangeError('no table of costs');
  if (table.format !== tableFormat) {
    throw new RangeError(
      `a table of format ${String(table.format)}; this server reads ${tableFormat}`,
    );
  }
  const { models } = table;
  if (typeof models !== 'object' || models === null) throw new RangeError('no models in it');
  for (const model of ['memory', 'kv', 'series'] as const) {
    const costs = models[model];
    if (typeof costs !== 'object' || costs === null)
      throw new RangeError(`no model ${model} in it`);
    checkCosts(costs, model === 'series' ? seriesModules : rowModules);
  }
  return table as CostTableData;
}

function checkCosts(costs: ModelCosts, modules: readonly string[]): void {
  for (const name of ['read1kB', 'capacity'] as const) {
    const vector: unknown = costs[name];
    const isGood =
      Array.isArray(vector) &&
      vector.length === dimensionCount &&
      vector.every((n) => isCost(n) && n > 0);
    if (!isGood) throw new RangeError(`${name} must be ${dimensionCount} numbers above 0`);
  }
  if (typeof costs.modules !== 'object' || costs.modules === null) {
    throw new RangeError('no modules in it');
  }
  for (const module of modules) {
    const columns = costs.modules[module];
    if (columns === undefined) throw new RangeError(`no module ${module} in it`);
    for (const dimension of dimensions) {
      const column: unknown = columns[dimension];
      if (column === undefined) continue;
      if (!Array.isArray(column) || column.length !== sizes.length || !column.every(isCost)) {
        throw new RangeError(`${module}: ${dimension} must be ${sizes.length} numbers`);
      }
      // A larger size never costs less.
      if (column.some((cost: number, i) => i > 0 && cost < (column[i - 1] as number))) {
        throw new RangeError(`${module}: ${dimension} must not fall with the size`);
      }
    }
  }
}

function isCost(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
