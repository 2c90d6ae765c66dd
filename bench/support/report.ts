// A bench's result: a table for people, JSON for programs, and a chart of the ratios.

import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import Table from 'cli-table3';
import { commitOf } from './commit.ts';
import { type Interval } from './statistics.ts';

export interface Row {
  /** Name of the measurement, for example `SET P=16`. */
  name: string;
  unit: string;
  ours: number;
  peer: number;
  /** Ours over the peer's for throughput; the peer's over ours does not appear: see `better`. */
  ratio: number;
  better: 'higher' | 'lower';
  /** Target of the ratio. */
  target?: number;
  /** In which the ratio is with 95 %, of at least 20 pairs: the target is missed where all of it is beyond. */
  interval?: Pick<Interval, 'low' | 'high'>;
  /** Further measurements, for readers of the JSON. */
  detail?: Record<string, number>;
}

export interface Report {
  bench: string;
  command: string;
  date: string;
  machine: string;
  peer: string;
  rounds: number;
  settings: Record<string, string | number>;
  rows: Row[];
}

export function machine(): string {
  const all = cpus();
  return `${all.length} x ${all[0]?.model.trim() ?? 'cpu'}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
}

function reaches(row: Row): boolean | undefined {
  const { target, ratio, better, interval = { low: ratio, high: ratio } } = row;
  if (target === undefined) return undefined;
  return better === 'higher' ? interval.high >= target : interval.low <= target;
}

/** The command fails if a row misses its target. */
export function printTable(report: Report): void {
  if (report.rows.some((row) => reaches(row) === false)) process.exitCode = 1;
  const table = new Table({
    head: [report.bench, 'unit', 'polyrow', report.peer, 'ratio', '95 %', 'target', ''],
    style: { head: [], border: [] },
    colAligns: ['left', 'left', 'right', 'right', 'right', 'left', 'right', 'left'],
  });
  for (const row of report.rows) {
    const ok = reaches(row);
    const sign = row.better === 'higher' ? '>=' : '<=';
    table.push([
      row.name,
      row.unit,
      number(row.ours),
      number(row.peer),
      Number.isNaN(row.ratio) ? '-' : row.ratio.toFixed(3),
      row.interval && `${row.interval.low.toFixed(3)} to ${row.interval.high.toFixed(3)}`,
      row.target === undefined ? '' : `${sign} ${row.target}`,
      ok === undefined ? '' : ok ? 'ok' : 'short',
    ]);
  }
  console.log(table.toString());
}

function number(value: number): string {
  if (Number.isNaN(value)) return '-';
  if (value >= 1000) return Math.round(value).toLocaleString('en');
  return value.toFixed(value < 10 ? 3 : 1);
}

/** Writes `<name>.json` and `<name>.svg` under bench/results. */
export function save(report: Report, name: string): void {
  const root = join(import.meta.dirname, '..', '..', '..');
  const directory = join(root, 'bench', 'results');
  mkdirSync(directory, { recursive: true });
  const { bench, command, ...rest } = report;
  // Of a machine that runs nothing else the load is some 3.
  const record = { bench, command, commit: commitOf(root), load: loadavg()[0], ...rest };
  writeFileSync(join(directory, `${name}.json`), `${JSON.stringify(record, null, 2)}\n`);
  writeFileSync(join(directory, `${name}.svg`), chart(report));
  console.log(`\nwritten: bench/results/${name}.json and .svg`);
}

const barHeight = 16;
const left = 220;
const width = 480;

/** Bars of the ratios, with a line at 1. */
function chart(report: Report): string {
  const rows = report.rows.filter((row) => Number.isFinite(row.ratio));
  const most = Math.max(1.2, ...rows.map((row) => row.ratio)) * 1.05;
  const x = (ratio: number): number => left + (ratio / most) * width;
  const height = rows.length * (barHeight + 4) + 60;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${left + width + 80}" height="${height}" font-family="sans-serif" font-size="11">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    `<text x="8" y="18" font-size="13">${report.bench}: polyrow / ${report.peer}, medians of ${report.rounds} rounds</text>`,
  ];
  rows.forEach((row, i) => {
    const y = 32 + i * (barHeight + 4);
    const ok = reaches(row);
    const colour = ok === undefined ? '#8899aa' : ok ? '#3a7d44' : '#c0392b';
    parts.push(
      `<text x="${left - 6}" y="${y + 12}" text-anchor="end">${row.name}</text>`,
      `<rect x="${left}" y="${y}" width="${(x(row.ratio) - left).toFixed(1)}" height="${barHeight}" fill="${colour}"/>`,
      `<text x="${(x(row.ratio) + 4).toFixed(1)}" y="${y + 12}">${row.ratio.toFixed(2)}</text>`,
    );
  });
  const one = x(1).toFixed(1);
  parts.push(
    `<line x1="${one}" y1="28" x2="${one}" y2="${height - 24}" stroke="black" stroke-dasharray="3 3"/>`,
    `<text x="${one}" y="${height - 10}" text-anchor="middle">1.0</text>`,
    '</svg>\n',
  );
  return parts.join('\n');
}
