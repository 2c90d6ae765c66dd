// A store of time series that is as simple as can be, to test SELECT against: points are objects in arrays.

import { oneSlice, type Slices } from '../../../../../universal-row/slices.ts';
import type {
  BlockSummary,
  Column,
  ColumnSummary,
  Scalar,
  SeriesRows,
} from '../../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../../universal-row/series/field-type.ts';
import { compareText } from '../../../../../universal-row/series/series-key.ts';
import {
  type Database,
  type FieldKey,
  type ScannedSeries,
  type ScanRequest,
  SeriesError,
  type SeriesFilter,
  type SeriesScan,
  type SeriesSelection,
  type SeriesStore,
} from '../../../../../contracts/series-store.ts';
import { ColumnBuilder } from '../vector.ts';

interface NaivePoint {
  time: bigint;
  fields: Map<string, { type: FieldType; value: Scalar }>;
}

interface NaiveSeries {
  key: string;
  tags: Map<string, string>;
  points: NaivePoint[];
}

interface NaiveOptions {
  /** Rows of a chunk. */
  chunkRows: number;
  /** Sum up complete runs of this many rows where that is asked for; 0 never. */
  blockRows: number;
}

const policy = {
  name: 'autogen',
  duration: 0n,
  shardGroupDuration: 604_800_000_000_000n,
  replicaN: 1,
};

export class NaiveStore implements SeriesStore {
  /** Measurement, then key. */
  readonly data = new Map<string, Map<string, NaiveSeries>>();
  readonly options: NaiveOptions;
  /** Scans requested, with the number of rows and summaries returned. */
  readonly scans: ScanRequest[] = [];
  rowsRead = 0;
  summariesRead = 0;
  openScans = 0;

  constructor(options: Partial<NaiveOptions> = {}) {
    this.options = { chunkRows: 3, blockRows: 0, ...options };
  }

  /** Lines as `cpu,host=a v=1,w=2i 10`; times are in nanoseconds. */
  load(lines: string): this {
    for (const line of lines.split('\n')) if (line.trim() !== '') this.#loadLine(line.trim());
    return this;
  }

  #loadLine(line: string): void {
    const [key, fields, time] = line.match(/(?:\\ |"[^"]*"|[^ ])+/g)!;
    const [measurement, ...tagTexts] = key!.split(',');
    const tags = new Map(tagTexts.map((text) => text.split('=') as [string, string]));
    const list = [...tags].sort(([a], [b]) => compareText(a, b));
    const seriesKey = [measurement!, ...list.map(([k, v]) => `${k}=${v}`)].join(',');
    let series = this.data.get(measurement!);
    if (series === undefined) this.data.set(measurement!, (series = new Map()));
    let one = series.get(seriesKey);
    if (one === undefined) series.set(seriesKey, (one = { key: seriesKey, tags, points: [] }));
    const at = BigInt(time!);
    let point = one.points.find((each) => each.time === at);
    if (point === undefined) {
      one.points.push((point = { time: at, fields: new Map() }));
      one.points.sort((a, b) => (a.time < b.time ? -1 : 1));
    }
    for (const text of fields!.match(/[^,=]+=(?:"[^"]*"|[^,]+)/g)!) {
      const equals = text.indexOf('=');
      point.fields.set(text.slice(0, equals), parseValue(text.slice(equals + 1)));
    }
  }

  databases(): readonly Database[] {
    return [this.database('db')!];
  }

  database(name: string): Database | undefined {
    if (name !== 'db') return undefined;
    return { name, retentionPolicies: [policy], defaultRetentionPolicy: 'autogen' };
  }

  change(): void {
    throw new SeriesError('read only');
  }

  write(): never {
    throw new SeriesError('read only');
  }

  scan(request: ScanRequest): Slices<SeriesScan> {
    return oneSlice(() => {
      this.scans.push(request);
      const all = [...(this.data.get(request.measurement)?.values() ?? [])];
      const chosen = all
        .filter(({ tags }) => request.filter === undefined || passes(request.filter, tags))
        .sort((a, b) => compareText(a.key, b.key));
      const series = new Map<ScannedSeries, NaiveSeries>(
        chosen.map((each) => [{ key: each.key, tag: (name) => each.tags.get(name) ?? '' }, each]),
      );
      this.openScans++;
      return {
        fieldTypes: request.fields.map(() => undefined),
        series: [...series.keys()],
        cursor: (scanned) => {
          const items = this.#items(series.get(scanned)!, request);
          let at = 0;
          return {
            next: () => {
              const item = items[at++];
              if (item?.kind === 'rows') this.rowsRead += item.count;
              if (item?.kind === 'summary') this.summariesRead++;
              return item;
            },
          };
        },
        close: () => {
          this.openScans--;
        },
      };
    });
  }

  #items(series: NaiveSeries, request: ScanRequest): (SeriesRows | BlockSummary)[] {
    const { from, to, fields, descending, summaries, rowsPerSeries = 0 } = request;
    let points = series.points.filter(
      ({ time, fields: own }) => time >= from && time <= to && fields.some((f) => own.has(f)),
    );
    if (descending) points.reverse();
    if (rowsPerSeries > 0) points = points.slice(0, rowsPerSeries);
    const items: (SeriesRows | BlockSummary)[] = [];
    const { chunkRows, blockRows } = this.options;
    for (let i = 0; i < points.length; ) {
      const block = points.slice(i, i + blockRows);
      const canSum = summaries !== undefined && typeRun(points, i, fields) >= block.length;
      if (canSum && block.length > 0 && isWithinWindow(block, summaries)) {
        items.push(summaryOf(block, fields));
        i += block.length;
        continue;
      }
      const size = Math.min(chunkRows, typeRun(points, i, fields));
      items.push(rowsOf(points.slice(i, i + size), fields));
      i += size;
    }
    return items;
  }

  measurements(_selection: SeriesSelection): Slices<string[]> {
    return oneSlice(() => {
      return [...this.data.keys()].sort(compareText);
    });
  }

  fieldKeys({ measurement }: SeriesSelection & { measurement: string }): Slices<FieldKey[]> {
    return oneSlice(() => {
      const found = new Map<string, FieldKey>();
      for (const { points } of this.data.get(measurement)?.values() ?? []) {
        for (const { fields } of points) {
          for (const [name, { type }] of fields) found.set(`${name} ${type}`, { name, type });
        }
      }
      return [...found.values()].sort((a, b) => compareText(a.name, b.name));
    });
  }

  tagKeys({ measurement }: SeriesSelection & { measurement: string }): Slices<string[]> {
    return oneSlice(() => {
      const keys = new Set<string>();
      for (const { tags } of this.data.get(measurement)?.values() ?? []) {
        for (const key of tags.keys()) keys.add(key);
      }
      return [...keys].sort(compareText);
    });
  }

  tagValues(): Slices<string[]> {
    return oneSlice(() => {
      return [];
    });
  }

  seriesKeys(): Slices<string[]> {
    return oneSlice(() => {
      return [];
    });
  }

  seriesCardinality(): Slices<number> {
    return oneSlice(() => {
      return 0;
    });
  }

  deletePoints = (): Slices<void> => oneSlice(() => {});
  dropSeries = (): Slices<void> => oneSlice(() => {});

  endTick(): number {
    return -1;
  }

  whenSafe(_position: number, then: () => void): void {
    then();
  }
}

function parseValue(text: string): { type: FieldType; value: Scalar } {
  if (text.startsWith('"')) return { type: 'string', value: text.slice(1, -1) };
  if (text === 'true' || text === 'false') {
    return { type: 'boolean', value: text === 'true' ? 1 : 0 };
  }
  if (/[iu]$/.test(text)) {
    const big = BigInt(text.slice(0, -1));
    const value = Number.isSafeInteger(Number(big)) ? Number(big) : big;
    return { type: text.endsWith('u') ? 'unsigned' : 'integer', value };
  }
  return { type: 'float', value: Number(text) };
}

function passes(filter: SeriesFilter, tags: ReadonlyMap<string, string>): boolean {
  switch (filter.kind) {
    case 'and':
      return filter.terms.every((term) => passes(term, tags));
    case 'or':
      return filter.terms.some((term) => passes(term, tags));
    case 'equal':
      return (tags.get(filter.tag) ?? '') === filter.value;
    case 'notEqual':
      return (tags.get(filter.tag) ?? '') !== filter.value;
    case 'match':
      return filter.matches(tags.get(filter.tag) ?? '');
    case 'notMatch':
      return !filter.matches(tags.get(filter.tag) ?? '');
  }
}

/** How many points from there on have fields of the same types. */
function typeRun(points: readonly NaivePoint[], from: number, fields: readonly string[]): number {
  const types = new Map<string, FieldType>();
  for (let i = from; i < points.length; i++) {
    for (const field of fields) {
      const type = points[i]!.fields.get(field)?.type;
      if (type === undefined) continue;
      if ((types.get(field) ?? type) !== type) return i - from;
      types.set(field, type);
    }
  }
  return points.length - from;
}

const base = (time: bigint): number => {
  // Not the time's own second, so that offsets are not small.
  const seconds = Number(time / 1_000_000_000n) - 100;
  return seconds;
};

function offset(from: number, time: bigint): number {
  return Number(time - BigInt(from) * 1_000_000_000n);
}

function rowsOf(points: readonly NaivePoint[], fields: readonly string[]): SeriesRows {
  const from = base(points[0]!.time);
  const columns = fields.map((field): Column | undefined => {
    const type = points.map((point) => point.fields.get(field)?.type).find((t) => t !== undefined);
    if (type === undefined) return undefined;
    const builder = new ColumnBuilder(type);
    for (const point of points) {
      const value = point.fields.get(field)?.value;
      if (value === undefined) builder.pushNull();
      else builder.push(value);
    }
    return builder.take();
  });
  const times = Float64Array.from(points, ({ time }) => offset(from, time));
  return { kind: 'rows', base: from, times, count: points.length, columns };
}

function isWithinWindow(
  points: readonly NaivePoint[],
  { width, offset: shift }: { width: bigint; offset: bigint },
): boolean {
  if (width === 0n) return true;
  // Aligned to the epoch, below it too.
  const aligned = (time: bigint): bigint => {
    const rest = (((time - shift) % width) + width) % width;
    return time - rest;
  };
  return points.every(({ time }) => aligned(time) === aligned(points[0]!.time));
}

function summaryOf(points: readonly NaivePoint[], fields: readonly string[]): BlockSummary {
  const sorted = [...points].sort((a, b) => (a.time < b.time ? -1 : 1));
  const from = base(sorted[0]!.time);
  const columns = fields.map((field): ColumnSummary | undefined => {
    const own = sorted.filter((point) => point.fields.has(field));
    if (own.length === 0) return undefined;
    const values = own.map((point) => point.fields.get(field)!.value);
    const { type } = own[0]!.fields.get(field)!;
    const isText = type === 'string';
    const ordered = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    return {
      type,
      count: own.length,
      first: values[0]!,
      firstTime: offset(from, own[0]!.time),
      last: values[values.length - 1]!,
      lastTime: offset(from, own[own.length - 1]!.time),
      min: isText ? undefined : ordered[0],
      max: isText ? undefined : ordered[ordered.length - 1],
      sum: isText || type === 'boolean' ? undefined : sumOf(values, type),
    };
  });
  return {
    kind: 'summary',
    base: from,
    minTime: offset(from, sorted[0]!.time),
    maxTime: offset(from, sorted[sorted.length - 1]!.time),
    count: points.length,
    columns,
  };
}

function sumOf(values: readonly Scalar[], type: FieldType): number | bigint {
  if (type === 'float') return values.reduce<number>((sum, value) => sum + Number(value), 0);
  const sum = BigInt.asIntN(
    64,
    values.reduce<bigint>((total, value) => total + BigInt(value), 0n),
  );
  return Number.isSafeInteger(Number(sum)) ? Number(sum) : sum;
}
