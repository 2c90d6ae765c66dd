// Figures with thresholds: a table to read, JSON for programs. Figures that miss their threshold
// are marked.

import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import Table from 'cli-table3';
import { commitOf } from '../support/commit.ts';
import { machine } from '../support/report.ts';
import type { Interval } from '../support/statistics.ts';

export interface Figure {
  name: string;
  unit: string;
  value: number;
  /** Bounds of the figure. Neither for figures shown for comparison only. */
  atLeast?: number;
  atMost?: number;
  /** 95 % interval of the figure, which misses its bound only if all of the interval does. */
  interval?: Pick<Interval, 'low' | 'high'>;
}

function isMissed({ value, atLeast, atMost, interval }: Figure): boolean {
  // A figure that could not be measured misses its bound.
  if (atLeast !== undefined) return !((interval?.high ?? value) >= atLeast);
  return atMost !== undefined && !((interval?.low ?? value) <= atMost);
}

/** Prints the figures and keeps them as bench/results/cluster-<name>.json. False when one misses its threshold. */
export function tell(name: string, command: string, figures: readonly Figure[]): boolean {
  const table = new Table({
    head: [`cluster ${name}`, 'unit', 'figure', '95 %', 'to reach', ''],
    style: { head: [], border: [] },
    colAligns: ['left', 'left', 'right', 'right', 'right', 'left'],
  });
  for (const figure of figures) {
    const { unit, value, atLeast, atMost, interval } = figure;
    const hasThreshold = atLeast !== undefined || atMost !== undefined;
    const threshold = atLeast === undefined ? `<= ${atMost}` : `>= ${atLeast}`;
    const verdict = isMissed(figure) ? 'miss' : 'ok';
    const shown = value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(3);
    table.push([
      figure.name,
      unit,
      shown,
      interval === undefined ? '' : `${interval.low.toFixed(3)} to ${interval.high.toFixed(3)}`,
      hasThreshold ? threshold : '',
      hasThreshold ? verdict : '',
    ]);
  }
  console.log(table.toString());
  const root = join(import.meta.dirname, '..', '..', '..');
  const directory = join(root, 'bench', 'results');
  mkdirSync(directory, { recursive: true });
  const date = new Date().toISOString().slice(0, 10);
  const of = { command, commit: commitOf(root), date, machine: machine() };
  // Processes that wanted a processor, this bench's own included: other load on the machine.
  const load = Math.round(loadavg()[1]!);
  const report = { bench: `cluster ${name}`, ...of, load, figures };
  writeFileSync(
    join(directory, `cluster-${name}.json`),
    `${JSON.stringify(report, undefined, 2)}\n`,
  );
  return !figures.some(isMissed);
}
