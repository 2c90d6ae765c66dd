// Figures with thresholds: a table for people, JSON for programs. What misses its threshold says so.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Table from 'cli-table3';
import { machine } from '../support/report.ts';

export interface Figure {
  name: string;
  unit: string;
  value: number;
  /** What it should be at least, or at most. Neither for what is only shown beside it. */
  atLeast?: number;
  atMost?: number;
}

function isMissed({ value, atLeast, atMost }: Figure): boolean {
  // What could not be measured reaches nothing.
  if (atLeast !== undefined) return !(value >= atLeast);
  return atMost !== undefined && !(value <= atMost);
}

/** Prints the figures and keeps them as bench/results/cluster-<name>.json. False when one misses its threshold. */
export function tell(name: string, command: string, figures: readonly Figure[]): boolean {
  const table = new Table({
    head: [`cluster ${name}`, 'unit', 'figure', 'to reach', ''],
    style: { head: [], border: [] },
    colAligns: ['left', 'left', 'right', 'right', 'left'],
  });
  for (const figure of figures) {
    const { unit, value, atLeast, atMost } = figure;
    const hasThreshold = atLeast !== undefined || atMost !== undefined;
    const threshold = atLeast === undefined ? `<= ${atMost}` : `>= ${atLeast}`;
    const verdict = isMissed(figure) ? 'miss' : 'ok';
    const shown = value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(3);
    table.push([
      figure.name,
      unit,
      shown,
      hasThreshold ? threshold : '',
      hasThreshold ? verdict : '',
    ]);
  }
  console.log(table.toString());
  const directory = join(import.meta.dirname, '..', '..', '..', 'bench', 'results');
  mkdirSync(directory, { recursive: true });
  const date = new Date().toISOString().slice(0, 10);
  const report = { bench: `cluster ${name}`, command, date, machine: machine(), figures };
  writeFileSync(
    join(directory, `cluster-${name}.json`),
    `${JSON.stringify(report, undefined, 2)}\n`,
  );
  return !figures.some(isMissed);
}
