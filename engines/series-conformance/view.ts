// An engine's answers in the form the cases use. Every answer is checked against the general
// contract.

import { inOneGo } from '../../universal-row/slices.ts';
import assert from 'node:assert/strict';
import type {
  BlockSummary,
  ColumnSummary,
  Scalar,
  SeriesRows,
} from '../../universal-row/series/column.ts';
import type { FieldType } from '../../universal-row/series/field-type.ts';
import { compareText } from '../../universal-row/series/series-key.ts';
import {
  maxTime,
  minTime,
  type FieldKey,
  type ScanRequest,
  type SeriesScan,
  type SeriesSelection,
} from '../../contracts/series-store.ts';
import type { SeriesReads } from '../series-engine.ts';
import { Fold, type Folds } from './fold.ts';
import { second, unsigned, valueAt, type FieldValue, type Point } from './points.ts';

export type ReadOptions = Partial<ScanRequest>;
export type Selected = Partial<SeriesSelection>;

export const database = 'db';
const measurement = 'm';

export class View {
  readonly engine: SeriesReads;

  constructor(engine: SeriesReads) {
    this.engine = engine;
  }

  /**
   * Scans measurement `m` in the default policy of `db`, field `v`, all times, unless options say
   * otherwise.
   */
  scan(options: ReadOptions = {}): SeriesScan {
    return inOneGo(this.engine.scan(requestOf(options)));
  }

  read(options: ReadOptions = {}): Point[] {
    const scan = this.scan(options);
    try {
      return rowsOf(scan, requestOf(options));
    } finally {
      scan.close();
    }
  }

  /** Aggregates by series and bucket, of which summaries may have been a part. */
  fold(width: bigint, options: ReadOptions = {}): { folds: Folds; summaries: number } {
    const request = requestOf({ summaries: { width, offset: 0n }, ...options });
    const scan = inOneGo(this.engine.scan(request));
    try {
      return foldOf(scan, request);
    } finally {
      scan.close();
    }
  }

  types(fields: readonly string[], options: ReadOptions = {}): (FieldType | undefined)[] {
    const scan = this.scan({ ...options, fields });
    const types = [...scan.fieldTypes];
    scan.close();
    return types;
  }

  measurements(selected: Selected = {}): string[] {
    return ascending(inOneGo(this.engine.measurements({ database, ...selected })));
  }

  fieldKeys(selected: Selected = {}): string[] {
    const keys = this.engine.fieldKeys({ database, measurement, ...selected } as MeasurementOf);
    assert.deepEqual(keys, keys.toSorted(byName), 'field keys are ascending');
    return keys.map(({ name, type }) => `${name} ${type}`);
  }

  tagKeys(selected: Selected = {}): string[] {
    const selection = { database, measurement, ...selected } as MeasurementOf;
    return ascending(inOneGo(this.engine.tagKeys(selection)));
  }

  tagValues(tag: string, selected: Selected = {}): string[] {
    const selection = { database, measurement, ...selected } as MeasurementOf;
    return ascending(inOneGo(this.engine.tagValues(selection, tag)));
  }

  seriesKeys(selected: Selected = {}): string[] {
    const keys = ascending(inOneGo(this.engine.seriesKeys({ database, ...selected })));
    const counted = inOneGo(this.engine.seriesCardinality({ database, ...selected }));
    assert.equal(counted, keys.length, 'cardinality is the number of series');
    return keys;
  }
}

type MeasurementOf = SeriesSelection & { measurement: string };

const byName = (a: FieldKey, b: FieldKey): number => compareText(a.name, b.name);

export function requestOf(options: ReadOptions): ScanRequest {
  return {
    database,
    retentionPolicy: '',
    measurement,
    from: minTime,
    to: maxTime,
    fields: ['v'],
    descending: false,
    ...options,
  };
}

function ascending(names: string[]): string[] {
  const order = [...new Set(names)].sort(compareText);
  assert.deepEqual(names, order, 'names are ascending, each once');
  return names;
}

/**
 * Rows found by scans with this request, up to `rowsPerSeries` of each series and within the
 * bounds.
 */
export function rowsOf(scan: SeriesScan, request: ScanRequest): Point[] {
  const points: Point[] = [];
  assert.equal(scan.fieldTypes.length, request.fields.length, 'a type for each field');
  ascending(scan.series.map(({ key }) => key));
  for (const series of scan.series) {
    const cursor = scan.cursor(series);
    const order = new Order(request);
    const limit = request.rowsPerSeries || Infinity;
    const first = points.length;
    while (points.length - first < limit) {
      const piece = cursor.next();
      if (piece === undefined) {
        assert.equal(cursor.next(), undefined, 'the end stays the end');
        break;
      }
      assert.equal(piece.kind, 'rows', 'summaries only where they were asked for');
      for (const row of pointsOf(series.key, piece as SeriesRows, request, order)) {
        if (points.length - first < limit && meets(row, request)) points.push(row);
      }
    }
  }
  return points;
}

function* pointsOf(
  series: string,
  piece: SeriesRows,
  { fields }: ScanRequest,
  order: Order,
): Iterable<Point> {
  assert.equal(piece.columns.length, fields.length, 'a column for each field');
  for (let row = 0; row < piece.count; row++) {
    const time = timeAt(piece.base, piece.times[row]!);
    order.next(time, time);
    const values: Record<string, FieldValue> = {};
    for (const [i, field] of fields.entries()) {
      const column = piece.columns[i];
      const value = column && valueAt(column, row);
      if (value !== undefined) values[field] = value;
    }
    assert.ok(Object.keys(values).length > 0, 'a row has at least one field');
    yield { series, time, fields: values };
  }
}

function timeAt(base: number, offset: number): bigint {
  assert.ok(Number.isSafeInteger(offset), `a whole number of nanoseconds, not ${offset}`);
  return BigInt(base) * second + BigInt(offset);
}

/** Checks that a cursor's rows are in order and in the range. */
class Order {
  readonly #request: ScanRequest;
  #last: bigint | undefined = undefined;

  constructor(request: ScanRequest) {
    this.#request = request;
  }

  next(min: bigint, max: bigint): void {
    const { from, to, descending } = this.#request;
    assert.ok(min >= from && max <= to, `${min} to ${max} is in the range`);
    const [near, far] = descending ? [max, min] : [min, max];
    const last = this.#last;
    const inOrder = last === undefined || (descending ? near < last : near > last);
    assert.ok(inOrder, `${near} comes after ${last}`);
    this.#last = far;
  }
}

function meets({ fields }: Point, request: ScanRequest): boolean {
  return (request.bounds ?? []).every(({ field, op, value }) => {
    const found = fields[request.fields[field]!];
    if (typeof found !== 'number' && typeof found !== 'bigint') return false;
    switch (op) {
      case '>':
        return found > value;
      case '>=':
        return found >= value;
      case '<':
        return found < value;
      case '<=':
        return found <= value;
      case '=':
        return Number(found) === value;
    }
  });
}

function foldOf(scan: SeriesScan, request: ScanRequest): { folds: Folds; summaries: number } {
  const { width, offset } = request.summaries!;
  const fold = new Fold(width, offset);
  let summaries = 0;
  for (const series of scan.series) {
    const cursor = scan.cursor(series);
    const order = new Order(request);
    for (let piece = cursor.next(); piece !== undefined; piece = cursor.next()) {
      if (piece.kind === 'rows') {
        for (const row of pointsOf(series.key, piece, request, order)) fold.add(row);
        continue;
      }
      summaries++;
      addSummary(fold, series.key, piece, request, order);
    }
  }
  return { folds: fold.folds, summaries };
}

function addSummary(
  fold: Fold,
  series: string,
  summary: BlockSummary,
  request: ScanRequest,
  order: Order,
): void {
  const { base, count, columns } = summary;
  const min = timeAt(base, summary.minTime);
  const max = timeAt(base, summary.maxTime);
  order.next(min, max);
  assert.equal(fold.bucketOf(min), fold.bucketOf(max), 'a summary lies within one bucket');
  assert.equal(columns.length, request.fields.length, 'a column for each field');
  const known = columns.filter((column) => column !== undefined);
  assert.ok(count > 0 && known.length > 0, 'a summary is of some rows');
  const times = known.flatMap((column) => [column.firstTime, column.lastTime]);
  assert.equal(Math.min(...times), summary.minTime, 'its first row is where its first value is');
  assert.equal(Math.max(...times), summary.maxTime, 'its last row is where its last value is');
  const counts = known.map((column) => column.count);
  assert.ok(Math.max(...counts) <= count, 'a column has no more values than there are rows');
  for (const [i, field] of request.fields.entries()) {
    const column = columns[i];
    if (column === undefined) continue;
    fold.addSummary(series, field, min, {
      count: column.count,
      first: scalar(column, column.first),
      firstTime: timeAt(base, column.firstTime),
      last: scalar(column, column.last),
      lastTime: timeAt(base, column.lastTime),
      min: column.min === undefined ? undefined : scalar(column, column.min),
      max: column.max === undefined ? undefined : scalar(column, column.max),
      sum: column.sum === undefined ? undefined : scalar(column, column.sum),
    });
  }
}

function scalar({ type }: ColumnSummary, value: Scalar): FieldValue {
  if (type === 'boolean') {
    assert.ok(value === 0 || value === 1, `a boolean is 0 or 1, not ${value}`);
    return value === 1;
  }
  if (type === 'integer') return BigInt(value);
  if (type === 'unsigned') return unsigned(BigInt(value));
  assert.equal(typeof value, type === 'string' ? 'string' : 'number', `a ${type}`);
  return value;
}
