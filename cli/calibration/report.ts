// How a table of costs is shown: as source, and how good it is.

import type { CostTableData } from '../../request-units/cost-table.ts';
import type { TableQuality } from './calibrate.ts';
import type { Quality } from './quality.ts';

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

/** Lines of the table in docs/request-units.md. */
export function markdownQuality(quality: TableQuality): string {
  const lines = Object.entries(quality).map(([model, { r2, medianError, byOperation }]) => {
    const operations = Object.entries(byOperation)
      .sort(([, a], [, b]) => a.median - b.median)
      .map(([name, { median }]) => `${name} ${(median * 100).toFixed(0)}`);
    const name = model === 'series' ? model : `\`${model}\``;
    return `| ${name} | ${r2.toFixed(3)} | ${percent(medianError)} | ${operations.join(', ')} % |\n`;
  });
  return lines.join('');
}

export function printQuality(quality: TableQuality): string {
  return Object.entries(quality)
    .map(([model, of]) => section(model, of))
    .join('\n');
}

function section(model: string, quality: Quality): string {
  const lines = [
    `${model}: CPU time predicted by request units against measured, microseconds of one`,
    `  median error ${percent(quality.medianError)}, R2 of mixed windows ${quality.r2.toFixed(3)}`,
  ];
  for (const [operation, { median, worst }] of Object.entries(quality.byOperation)) {
    const cells = quality.cells
      .filter((cell) => cell.operation === operation)
      .map(({ size, measured, predicted }) => `${size}: ${micros(predicted)}/${micros(measured)}`);
    lines.push(
      `  ${operation.padEnd(10)} median ${percent(median).padStart(5)} worst ${percent(worst).padStart(5)}   ${cells.join('  ')}`,
    );
  }
  const { alone, mixed } = quality.slowness;
  lines.push(
    `  by commands of neither, this machine takes ${alone.toFixed(2)} times what it took for the table, mixed ${mixed.toFixed(2)} times`,
  );
  const changes = Object.entries(quality.changesAtHalfSpeed).map(
    ([dimension, change]) => `${dimension} ${percent(change)}`,
  );
  lines.push(`  with half a processor charges change by at most ${changes.join(', ')}`);
  return `${lines.join('\n')}\n`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

function micros(value: number): string {
  return value < 10 ? value.toFixed(2) : value.toFixed(0);
}
