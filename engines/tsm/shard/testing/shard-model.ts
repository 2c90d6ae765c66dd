// Reference model of a shard: a map of points, each a map of values. A trial applies every change
// to a shard and to its model, and compares the two.

import type {
  BlockSummary,
  Column,
  Scalar,
  SeriesRows,
} from '../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../universal-row/series/field-type.ts';
import type { SeriesCursor } from '../../../../contracts/series-store.ts';

export interface ModelField {
  readonly name: string;
  readonly type: FieldType;
}

/** By field name. */
export type Values = Map<string, Scalar>;

export interface ModelRow {
  readonly time: number;
  /** In the order of the fields asked for. */
  readonly values: readonly (Scalar | undefined)[];
}

interface ModelScan {
  readonly from: number;
  readonly to: number;
  readonly fields: readonly string[];
  readonly descending: boolean;
}

export class ShardModel {
  /** By series key, then by time. A series without a point is not in it. */
  readonly series = new Map<string, Map<number, Values>>();

  put(key: string, time: number, values: Values): void {
    let points = this.series.get(key);
    if (points === undefined) this.series.set(key, (points = new Map<number, Values>()));
    points.set(time, new Map([...(points.get(time) ?? []), ...values]));
  }

  /** Whether a point is left. */
  delete(key: string, from: number, to: number): boolean {
    const points = this.series.get(key);
    if (points === undefined) return false;
    for (const time of points.keys()) if (time >= from && time <= to) points.delete(time);
    if (points.size === 0) this.series.delete(key);
    return points.size > 0;
  }

  /** Expected rows of a scan of one series. */
  rows(key: string, scan: ModelScan): ModelRow[] {
    const rows: ModelRow[] = [];
    for (const [time, values] of this.series.get(key) ?? []) {
      if (time < scan.from || time > scan.to) continue;
      const wanted = scan.fields.map((field) => values.get(field));
      if (wanted.some((value) => value !== undefined)) rows.push({ time, values: wanted });
    }
    rows.sort((a, b) => (scan.descending ? b.time - a.time : a.time - b.time));
    return rows;
  }
}

export type Piece = ModelRow[] | BlockSummary;

/**
 * Reads cursors to their ends in rotation. Each piece is checked only just before its cursor is
 * called again: it must stay valid until then, whatever the other cursors do.
 */
export function readInterleaved(cursors: readonly SeriesCursor[]): Piece[][] {
  const pieces: Piece[][] = cursors.map(() => []);
  const held: (SeriesRows | BlockSummary | undefined)[] = [];
  const going = new Set(cursors.keys());
  while (going.size > 0) {
    for (const i of going) {
      const last = held[i];
      if (last !== undefined) pieces[i]!.push(last.kind === 'rows' ? rowsOf(last) : last);
      held[i] = cursors[i]!.next();
      if (held[i] === undefined) going.delete(i);
    }
  }
  return pieces;
}

function rowsOf(piece: SeriesRows): ModelRow[] {
  return Array.from({ length: piece.count }, (_, row) => ({
    time: piece.times[row]!,
    values: piece.columns.map((column) => column && valueOf(column, row)),
  }));
}

function valueOf(column: Column, row: number): Scalar | undefined {
  if (column.present !== undefined && column.present[row] === 0) return undefined;
  if (column.type === 'string') return column.texts![row]!;
  if (column.wide === undefined) return column.numbers[row]!;
  return small(column.wide[row]!);
}

/** Expected summary of some rows, ascending. */
export function summaryOf(
  rows: readonly ModelRow[],
  types: readonly (FieldType | undefined)[],
): Omit<BlockSummary, 'kind' | 'base'> {
  const columns = types.map((type, c) => {
    const there = rows.filter(({ values }) => values[c] !== undefined);
    if (there.length === 0 || type === undefined) return undefined;
    const values = there.map(({ values: all }) => all[c]!);
    const isNumber = type !== 'string' && type !== 'boolean';
    const hasOrder = type !== 'string';
    return {
      type,
      count: there.length,
      first: values[0]!,
      firstTime: there[0]!.time,
      last: values.at(-1)!,
      lastTime: there.at(-1)!.time,
      min: hasOrder ? values.reduce((a, b) => (b < a ? b : a)) : undefined,
      max: hasOrder ? values.reduce((a, b) => (b > a ? b : a)) : undefined,
      sum: isNumber ? sumOf(values, type) : undefined,
    };
  });
  return { minTime: rows[0]!.time, maxTime: rows.at(-1)!.time, count: rows.length, columns };
}

function sumOf(values: readonly Scalar[], type: FieldType): number | bigint {
  if (type === 'float') return values.reduce<number>((sum, value) => sum + (value as number), 0);
  const sum = values.reduce<bigint>((all, value) => all + BigInt(value), 0n);
  return small(type === 'unsigned' ? BigInt.asUintN(64, sum) : BigInt.asIntN(64, sum));
}

function small(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
