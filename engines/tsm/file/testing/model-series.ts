// Series as a test thinks of them: a map from time to values by field.

import type { Column } from '../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../universal-row/series/field-type.ts';
import type { Rows } from '../../parts.ts';

export type Value = number | bigint | string;

export interface ModelSeries {
  readonly series: number;
  readonly measurement: number;
  /** Types by field number, of its measurement. */
  readonly types: readonly FieldType[];
  /** Ascending. */
  readonly rows: readonly ModelRow[];
}

export interface ModelRow {
  readonly time: number;
  /** By field number; at least one is there. */
  readonly values: readonly (Value | undefined)[];
}

export function columnOf(type: FieldType, values: readonly (Value | undefined)[]): Column {
  const wide = values.some((value) => typeof value === 'bigint');
  const big = wide ? values.map((value) => BigInt(value ?? 0)) : [];
  return {
    type,
    numbers: Float64Array.from(values, (value) => (typeof value === 'number' ? value : 99)),
    wide: !wide
      ? undefined
      : type === 'unsigned'
        ? BigUint64Array.from(big)
        : BigInt64Array.from(big),
    texts: type === 'string' ? values.map((value) => String(value ?? 'none')) : undefined,
    present: values.includes(undefined)
      ? Uint8Array.from(values, (value) => (value === undefined ? 0 : 1))
      : undefined,
  };
}

export function rowsOf(rows: readonly ModelRow[], types: readonly FieldType[]): Rows {
  return {
    count: rows.length,
    times: Float64Array.from(rows, (row) => row.time),
    columns: types.map((type, field) => {
      const values = rows.map((row) => row.values[field]);
      return values.every((value) => value === undefined) ? undefined : columnOf(type, values);
    }),
  };
}

/** Integers within the safe range as numbers, whatever the array type. */
export function plainValue(value: Value | undefined): Value | undefined {
  if (typeof value !== 'bigint') return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** Rows as they were read, for the fields that were asked for; those without any of them too. */
export function modelOf(rows: Rows): ModelRow[] {
  return Array.from({ length: rows.count }, (_, i) => ({
    time: rows.times[i]!,
    values: rows.columns.map((column) => {
      if (column === undefined || column.present?.[i] === 0) return undefined;
      return plainValue(column.texts?.[i] ?? column.wide?.[i] ?? column.numbers[i]);
    }),
  }));
}
