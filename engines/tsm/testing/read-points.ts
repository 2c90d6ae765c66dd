// Results of a scan in a form that tests can compare.

import type { Column } from '../../../universal-row/series/column.ts';
import type { SeriesScan } from '../../../contracts/series-store.ts';

/** A row as `field=value` in the order of the fields; integers end in i. */
export type ReadPoint = [series: string, time: bigint, fields: string];

export function readAll(scan: SeriesScan, fields: readonly string[]): ReadPoint[] {
  const points: ReadPoint[] = [];
  try {
    for (const series of scan.series) {
      const cursor = scan.cursor(series);
      for (let piece = cursor.next(); piece !== undefined; piece = cursor.next()) {
        if (piece.kind !== 'rows') throw new Error('no summaries were asked for');
        for (let row = 0; row < piece.count; row++) {
          const time = BigInt(piece.base) * 1_000_000_000n + BigInt(piece.times[row]!);
          const values = fields.flatMap((field, i) => {
            const column = piece.columns[i];
            const value = column && valueAt(column, row);
            return value === undefined ? [] : [`${field}=${value}`];
          });
          points.push([series.key, time, values.join(' ')]);
        }
      }
    }
  } finally {
    scan.close();
  }
  return points;
}

/** Undefined where the row has none. */
export function valueAt(column: Column, row: number): string | undefined {
  const { type, present, wide, texts, numbers } = column;
  if (present !== undefined && present[row] !== 1) return undefined;
  if (type === 'string') return JSON.stringify(texts![row]);
  if (type === 'boolean') return String(numbers[row] === 1);
  if (type === 'float') return String(numbers[row]);
  return `${wide === undefined ? numbers[row] : wide[row]}i`;
}
