// Points one by one, for the toy engine of time series: out of a batch, and into the arrays of a cursor.

import type { Column, SeriesRows } from '../../universal-row/series/column.ts';
import type { FieldType } from '../../universal-row/series/field-type.ts';
import type { PointBatch } from '../../universal-row/series/point-batch.ts';

/** Integers are bigints, booleans 0 or 1. */
export type ToyValue = number | bigint | string;
type ToyField = [name: string, type: FieldType, value: ToyValue];
export type ToyRow = [time: bigint, values: ReadonlyMap<string, ToyValue>];

export interface ToyPoint {
  key: string;
  time: bigint;
  fields: ToyField[];
}

const second = 1_000_000_000n;

export function pointsOf({ groups, cache, baseSeconds, text, textEnds }: PointBatch): ToyPoint[] {
  return groups.flatMap((group) =>
    Array.from({ length: group.rows }, (_, row): ToyPoint => {
      const handle = group.series[row]!;
      const key = cache.keys(handle).toString('utf8', cache.keyStart(handle), cache.keyEnd(handle));
      const time = BigInt(baseSeconds) * second + BigInt(group.times[row]!);
      const fields = group.columns.flatMap(
        ({ field, type, numbers, wide, present }): ToyField[] => {
          if (present !== undefined && present[row] !== 1) return [];
          const number = numbers[row]!;
          if (type === 'integer') return [[field, type, wide?.[row] ?? BigInt(number)]];
          if (type === 'unsigned') {
            return [[field, type, BigInt.asUintN(64, wide?.[row] ?? BigInt(number))]];
          }
          if (type !== 'string') return [[field, type, number]];
          const start = number === 0 ? 0 : textEnds[number - 1]!;
          return [[field, type, text.toString('utf8', start, textEnds[number])]];
        },
      );
      return { key, time, fields };
    }),
  );
}

/** All rows in arrays; `base` is in Unix seconds. */
export function rowsOf(
  rows: readonly ToyRow[],
  base: number,
  fields: readonly string[],
  types: ReadonlyMap<string, FieldType>,
): SeriesRows {
  const times = Float64Array.from(rows, ([time]) => Number(time - BigInt(base) * second));
  const columns = fields.map((field): Column | undefined => {
    const type = types.get(field);
    const values = rows.map(([, all]) => all.get(field));
    if (type === undefined || values.every((value) => value === undefined)) return undefined;
    const isWide = values.some((v) => typeof v === 'bigint' && !Number.isSafeInteger(Number(v)));
    const bits = (): bigint[] => values.map((value) => BigInt(value ?? 0));
    return {
      type,
      numbers: Float64Array.from(values, (value) => Number(value)),
      wide: !isWide
        ? undefined
        : type === 'unsigned'
          ? BigUint64Array.from(bits())
          : BigInt64Array.from(bits()),
      texts: type === 'string' ? values.map((value) => String(value)) : undefined,
      present: Uint8Array.from(values, (value) => (value === undefined ? 0 : 1)),
    };
  });
  return { kind: 'rows', base, times, count: rows.length, columns };
}
