// Predictions compared with measurements.

import type { Charges } from './capped.ts';
import type { Found } from './windows.ts';

interface Cell {
  operation: string;
  size: number;
  /** CPU microseconds of one. */
  measured: number;
  predicted: number;
}

export interface Quality {
  cells: readonly Cell[];
  /** Windows of several operations. */
  mixed: readonly Pick<Cell, 'measured' | 'predicted'>[];
  /**
   * Slowdown since the table was made: for one operation at a time, and for mixed operations, which
   * find less in the processor's caches. Predictions are scaled by these, as a unit is the current
   * cost of a read on the machine; they are measured with operations that are neither among the
   * cells nor mixed with them.
   */
  slowness: { alone: number; mixed: number };
  /** Share of the variance between mixed windows that the prediction explains. */
  r2: number;
  /** Over all cells, relative to the measurement. */
  medianError: number;
  /** By operation: the middle of its sizes, and its worst. */
  byOperation: Readonly<Record<string, { median: number; worst: number }>>;
  /** The largest relative change of an operation's charge when half of the processor is available, by dimension. */
  changesAtHalfSpeed: Charges;
}

/** Charges are in CPU microseconds of the machine on which the table was made. */
interface Trial {
  tried: readonly { name: string; size: number }[];
  /** Measurements of the operations in this order, then of the reference. */
  found: readonly Found[];
  /** The last `referenceWindows` of them are mixes of the reference. */
  mixed: readonly Found[];
  referenceWindows: number;
  changes: Charges;
}

export function qualityOf({ tried, found, mixed, referenceWindows, changes }: Trial): Quality {
  const slowness = {
    alone: slownessOf(found.slice(tried.length)),
    mixed: slownessOf(mixed.slice(-referenceWindows)),
  };
  const cells = tried.map(({ name, size }, i): Cell => {
    const { measured, charged } = found[i]!;
    return { operation: name, size, measured, predicted: charged * slowness.alone };
  });
  const windows = mixed.slice(0, -referenceWindows).map(({ measured, charged }) => ({
    measured,
    predicted: charged * slowness.mixed,
  }));
  const errorOf = ({ measured, predicted }: Cell): number => Math.abs(predicted / measured - 1);
  const byOperation: Record<string, { median: number; worst: number }> = {};
  for (const name of new Set(cells.map(({ operation }) => operation))) {
    const errors = cells.filter(({ operation }) => operation === name).map(errorOf);
    byOperation[name] = { median: middle(errors), worst: Math.max(...errors) };
  }
  return {
    cells,
    mixed: windows,
    slowness,
    r2: rSquared(windows),
    medianError: middle(cells.map(errorOf)),
    byOperation,
    changesAtHalfSpeed: changes,
  };
}

function slownessOf(reference: readonly Found[]): number {
  return middle(reference.map(({ measured, charged }) => measured / charged));
}

function rSquared(windows: Quality['mixed']): number {
  const mean = windows.reduce((sum, { measured }) => sum + measured, 0) / windows.length;
  let left = 0;
  let all = 0;
  for (const { measured, predicted } of windows) {
    left += (measured - predicted) ** 2;
    all += (measured - mean) ** 2;
  }
  return 1 - left / all;
}

export function middle(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}
