// Bodies in, points out: batches taken apart into objects, for tests.

import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type { PointBatch, PointColumn } from '../../../universal-row/series/point-batch.ts';
import { decodeSeriesKey } from '../../../universal-row/series/series-key.ts';
import { LineParser, type LineParserLimits } from './line-parser.ts';
import { SharedSeriesCache } from './series-cache-table.ts';

export interface Point {
  measurement: string;
  tags: readonly (readonly [string, string])[];
  /** By name. */
  fields: Record<string, FieldValue>;
  time: bigint;
}

export type FieldValue = readonly [type: FieldType, value: number | bigint | string | boolean];

interface ParseOptions {
  precision?: string;
  now?: number;
  limits?: Partial<LineParserLimits>;
  /** Where to cut the body. */
  cuts?: readonly number[];
  cache?: SharedSeriesCache;
}

interface ParsedBody {
  points: Point[];
  batches: number;
  goodLines: number;
  badLines: number;
  errors: string[];
  dropped: number;
  dropError: string | undefined;
}

export function parseBody(body: string | Buffer, options: ParseOptions = {}): ParsedBody {
  const parser = new LineParser(options.cache ?? new SharedSeriesCache(), options.limits);
  return parseWith(parser, body, options);
}

export function parseWith(
  parser: LineParser,
  body: string | Buffer,
  options: ParseOptions = {},
): ParsedBody {
  const bytes = Buffer.from(body);
  parser.begin({ precision: options.precision, now: options.now ?? 0 });
  const points: Point[] = [];
  let batches = 0;
  const take = () => {
    for (let batch = parser.next(); batch !== undefined; batch = parser.next()) {
      batches++;
      pointsOf(batch, points);
    }
  };
  let from = 0;
  for (const cut of [...(options.cuts ?? []), bytes.length]) {
    // A chunk whose memory is used again as soon as the parser is done with it.
    const chunk = Buffer.from(bytes.subarray(from, cut));
    parser.push(chunk);
    take();
    chunk.fill(0xff);
    from = cut;
  }
  parser.finish();
  take();
  const { goodLines, badLines, errors, dropped, dropError } = parser;
  return { points, batches, goodLines, badLines, errors: [...errors], dropped, dropError };
}

export function pointsOf(batch: PointBatch, into: Point[] = []): Point[] {
  let rows = 0;
  const { cache } = batch;
  for (const group of batch.groups) {
    rows += group.rows;
    for (const column of group.columns) check(column, group.rows);
    for (let row = 0; row < group.rows; row++) {
      const handle = group.series[row]!;
      const name = decodeSeriesKey(
        cache.keys(handle),
        cache.keyStart(handle),
        cache.keyEnd(handle),
      );
      if (name.measurement !== group.measurement) throw new Error('series of another measurement');
      const fields: Record<string, FieldValue> = Object.create(null) as Point['fields'];
      for (const column of group.columns) {
        if (column.present !== undefined && column.present[row] === 0) continue;
        if (column.field in fields) throw new Error(`two values of ${column.field}`);
        fields[column.field] = [column.type, valueOf(batch, column, row)];
      }
      const time = BigInt(batch.baseSeconds) * 1_000_000_000n + BigInt(group.times[row]!);
      into.push({ ...name, fields, time });
    }
  }
  if (rows !== batch.rows) throw new Error('rows of the groups are not those of the batch');
  return into;
}

function valueOf(batch: PointBatch, column: PointColumn, row: number): FieldValue[1] {
  const number = column.numbers[row]!;
  switch (column.type) {
    case 'float':
      return number;
    case 'boolean':
      return number === 1;
    case 'integer':
      return column.wide === undefined ? BigInt(number) : column.wide[row]!;
    case 'unsigned':
      return column.wide === undefined ? BigInt(number) : BigInt.asUintN(64, column.wide[row]!);
    case 'string': {
      const start = number === 0 ? 0 : batch.textEnds[number - 1]!;
      return batch.text.toString('utf8', start, batch.textEnds[number]!);
    }
  }
}

function check(column: PointColumn, rows: number): void {
  let count = rows;
  if (column.present !== undefined) {
    count = 0;
    for (let row = 0; row < rows; row++) count += column.present[row]!;
  }
  if (count !== column.count || count === 0) throw new Error('wrong count');
}
