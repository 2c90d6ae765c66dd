// How a table of costs is shown: as source, and how good it is.

import type { CostTableData } from '../../request-units/cost-table.ts';
import type { TableQuality } from './calibrate.ts';
import type { Cell } from './mix.ts';

/** The file of the table that comes with the server. */
export function tableSource(table: CostTableData): string {
  const lines = [
    '// Costs of the modules of a release, measured on a reference machine. Made by',
    '// `polyrow calibrate --typescript --out request-units/pru-table.ts`: not to be edited.',
    '',
    "import type { CostTableData } from './cost-table.ts';",
    '',
    `export const shippedTable: CostTableData = ${JSON.stringify(table)};`,
    '',
  ];
  return lines.join('\n');
}

export function printQuality({ memory, kv, series }: TableQuality): string {
  return [
    section('memory', memory, `R2 of mixed windows ${memory.r2.toFixed(3)}`),
    section('kv', kv, `R2 of mixed windows ${kv.r2.toFixed(3)}`),
    section('series', series, ''),
  ].join('\n');
}

interface Shown {
  cells: readonly Cell[];
  medianError: number;
  byOperation: Readonly<Record<string, { median: number; worst: number }>>;
}

function section(model: string, quality: Shown, more: string): string {
  const lines = [
    `${model}: CPU time predicted by request units against measured, microseconds of one`,
    `  median error ${percent(quality.medianError)} ${more}`.trimEnd(),
  ];
  for (const [operation, { median, worst }] of Object.entries(quality.byOperation)) {
    const cells = quality.cells
      .filter((cell) => cell.operation === operation)
      .map(({ size, measured, predicted }) => `${size}: ${micros(predicted)}/${micros(measured)}`);
    lines.push(
      `  ${operation.padEnd(10)} median ${percent(median).padStart(5)} worst ${percent(worst).padStart(5)}   ${cells.join('  ')}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

function micros(value: number): string {
  return value < 10 ? value.toFixed(2) : value.toFixed(0);
}
