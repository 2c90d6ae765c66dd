// Points as a test has them, in the columns in which they are appended to a shard.

import { keyedHash } from '../../../../universal-row/keyed-hash.ts';
import type { Column, Scalar } from '../../../../universal-row/series/column.ts';
import type { HeadTexts } from '../../parts.ts';
import type { Shard } from '../shard.ts';
import type { ModelField, Values } from './shard-model.ts';

export interface ModelPoint {
  readonly key: string;
  readonly time: number;
  readonly values: Values;
}

/** Series and fields are added to the index where they are new. */
export function appendPoints(
  shard: Shard,
  measurement: string,
  fields: readonly ModelField[],
  points: readonly ModelPoint[],
): void {
  const { index } = shard;
  const series = Uint32Array.from(points, ({ key }) => seriesOf(shard, key));
  const number = index.findMeasurement(measurement);
  const texts: string[] = [];
  const columns: (Column | undefined)[] = [];
  for (const field of fields) {
    const values = points.map((point) => point.values.get(field.name));
    if (values.every((value) => value === undefined)) continue;
    const info =
      index.findField(number, field.name) ?? index.addField(number, field.name, field.type);
    columns[info.number] = columnOf(field, values, texts);
  }
  const times = Float64Array.from(points, ({ time }) => time);
  const filled = Array.from(columns, (column) => column);
  shard.append(number, points.length, series, times, filled, textsOf(texts));
}

/** -1 when there is none. */
export function findSeries(shard: Shard, key: string): number {
  const bytes = Buffer.from(key);
  return shard.index.findSeries(bytes, 0, bytes.length, keyedHash(bytes, 0, bytes.length));
}

function seriesOf(shard: Shard, key: string): number {
  const found = findSeries(shard, key);
  if (found >= 0) return found;
  const bytes = Buffer.from(key);
  return shard.index.addSeries(bytes, 0, bytes.length);
}

function columnOf(
  { type }: ModelField,
  values: readonly (Scalar | undefined)[],
  texts: string[],
): Column {
  const isWide = values.some((value) => typeof value === 'bigint');
  const numbers = Float64Array.from(values, (value) => {
    if (typeof value === 'string') return texts.push(value) - 1;
    return value === undefined ? 99 : Number(value);
  });
  const bits = values.map((value) => (value === undefined ? 99n : BigInt(isWide ? value : 0)));
  return {
    type,
    numbers,
    wide: isWide ? BigInt64Array.from(bits) : undefined,
    texts: undefined,
    present: values.includes(undefined)
      ? Uint8Array.from(values, (value) => Number(value !== undefined))
      : undefined,
  };
}

function textsOf(texts: readonly string[]): HeadTexts {
  let end = 0;
  const textEnds = Uint32Array.from(texts, (text) => (end += Buffer.byteLength(text)));
  return { text: Buffer.from(texts.join('')), textEnds };
}
