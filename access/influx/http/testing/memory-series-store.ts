// A series store in plain maps, for tests of its callers: every point is an object, and the log can
// be made to wait or to fail.

import { oneSlice, type Slices } from '../../../../universal-row/slices.ts';
import type { Column, Scalar, SeriesRows } from '../../../../universal-row/series/column.ts';
import type { FieldType } from '../../../../universal-row/series/field-type.ts';
import type { PointBatch, PointColumn } from '../../../../universal-row/series/point-batch.ts';
import { decodeSeriesKey, type SeriesName } from '../../../../universal-row/series/series-key.ts';
import {
  type CatalogChange,
  type Database,
  type FieldKey,
  type RetentionPolicy,
  type ScannedSeries,
  type ScanRequest,
  SeriesError,
  type SeriesFilter,
  type SeriesScan,
  type SeriesSelection,
  type SeriesStore,
  type WriteOutcome,
} from '../../../../contracts/series-store.ts';

interface Series extends SeriesName {
  key: string;
  /** By time, then by field. */
  points: Map<bigint, Map<string, Scalar>>;
}

/** Retention policy in memory. */
class Policy implements RetentionPolicy {
  readonly name: string;
  readonly duration: bigint;
  readonly shardGroupDuration = 604_800_000_000_000n;
  readonly replicaN = 1;
  readonly series = new Map<string, Series>();
  /** By measurement, then by field. */
  readonly types = new Map<string, Map<string, FieldType>>();

  constructor(name: string, duration: bigint) {
    this.name = name;
    this.duration = duration;
  }
}

interface MemoryDatabase extends Database {
  retentionPolicies: Policy[];
  defaultRetentionPolicy: string;
}

export class MemorySeriesStore implements SeriesStore {
  readonly #databases = new Map<string, MemoryDatabase>();
  /** Batches that were written. */
  batches = 0;
  ticks = 0;
  /** Writes wait for it. */
  gate: Promise<void> | undefined;
  /** Thrown by the next ends of ticks. */
  logFailure: Error | undefined;
  /** Callbacks of `whenSafe` wait for `sync` when true. */
  holdsSync = false;
  #position = -1;
  #isDirty = false;
  #waiting: (() => void)[] = [];

  constructor(...databases: string[]) {
    for (const database of databases) this.change({ kind: 'createDatabase', database });
  }

  databases(): Database[] {
    return [...this.#databases.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  database(name: string): Database | undefined {
    return this.#databases.get(name);
  }

  change(change: CatalogChange): void {
    this.#isDirty = true;
    const { database: name } = change;
    switch (change.kind) {
      case 'createDatabase': {
        if (this.#databases.has(name)) return;
        const policy = new Policy(change.policy?.name ?? 'autogen', change.policy?.duration ?? 0n);
        this.#databases.set(name, {
          name,
          retentionPolicies: [policy],
          defaultRetentionPolicy: policy.name,
        });
        return;
      }
      case 'dropDatabase':
        this.#databases.delete(name);
        return;
      case 'createRetentionPolicy': {
        const database = this.#known(name);
        database.retentionPolicies.push(new Policy(change.name, change.policy.duration ?? 0n));
        if (change.policy.makeDefault === true) database.defaultRetentionPolicy = change.name;
        return;
      }
      default:
        throw new SeriesError(`${change.kind} is not for tests`);
    }
  }

  async write(database: string, policyName: string, batch: PointBatch): Promise<WriteOutcome> {
    if (this.gate !== undefined) await this.gate;
    const policy = this.#policy(database, policyName);
    const outcome: WriteOutcome = { written: 0, dropped: 0, error: undefined };
    this.batches++;
    this.#isDirty = true;
    for (const group of batch.groups) {
      for (let row = 0; row < group.rows; row++) {
        const point = new Map<string, Scalar>();
        let conflict: string | undefined;
        for (const column of group.columns) {
          if (column.present !== undefined && column.present[row] === 0) continue;
          conflict ??= conflictOf(policy, group.measurement, column);
          point.set(column.field, valueOf(column, row, batch));
        }
        if (conflict !== undefined) {
          outcome.dropped++;
          outcome.error ??= conflict;
          continue;
        }
        const time = BigInt(batch.baseSeconds) * 1_000_000_000n + BigInt(group.times[row]!);
        const { points } = seriesOf(policy, batch, group.series[row]!);
        points.set(time, new Map([...(points.get(time) ?? []), ...point]));
        outcome.written++;
      }
    }
    return outcome;
  }

  scan(request: ScanRequest): Slices<SeriesScan> {
    return oneSlice(() => {
      const policy = this.#policy(request.database, request.retentionPolicy);
      const types = policy.types.get(request.measurement);
      const found = [...policy.series.values()]
        .filter((series) => series.measurement === request.measurement)
        .filter((series) => request.filter === undefined || matches(request.filter, series))
        .sort((a, b) => (a.key < b.key ? -1 : 1));
      return {
        fieldTypes: request.fields.map((field) => types?.get(field)),
        series: found.map((series) => ({ key: series.key, tag: (name) => tagOf(series, name) })),
        cursor: (scanned: ScannedSeries) => {
          let rows: SeriesRows | undefined = rowsOf(
            policy.series.get(scanned.key)!,
            request,
            types,
          );
          return {
            next: () => {
              const once = rows;
              rows = undefined;
              return once;
            },
          };
        },
        close: () => undefined,
      };
    });
  }

  measurements(selection: SeriesSelection): Slices<string[]> {
    return oneSlice(() => {
      return names(this.#select(selection).map(({ measurement }) => measurement));
    });
  }

  fieldKeys(selection: SeriesSelection & { measurement: string }): Slices<FieldKey[]> {
    return oneSlice(() =>
      this.#policies(selection)
        .flatMap(({ types }) => [...(types.get(selection.measurement) ?? [])])
        .map(([name, type]) => ({ name, type }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    );
  }

  tagKeys(selection: SeriesSelection & { measurement: string }): Slices<string[]> {
    return oneSlice(() => {
      return names(this.#select(selection).flatMap(({ tags }) => tags.map(([key]) => key)));
    });
  }

  tagValues(selection: SeriesSelection & { measurement: string }, tag: string): Slices<string[]> {
    return oneSlice(() => {
      return names(this.#select(selection).map((series) => tagOf(series, tag)));
    });
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return oneSlice(() => this.#keys(selection));
  }

  #keys(selection: SeriesSelection): string[] {
    return names(this.#select(selection).map(({ key }) => key));
  }

  seriesCardinality(selection: SeriesSelection): Slices<number> {
    return oneSlice(() => {
      return this.#keys(selection).length;
    });
  }

  deletePoints(selection: SeriesSelection): Slices<void> {
    return oneSlice(() => {
      this.#drop(selection);
    });
  }

  dropSeries(selection: SeriesSelection): Slices<void> {
    return oneSlice(() => this.#drop(selection));
  }

  #drop(selection: SeriesSelection): void {
    this.#isDirty = true;
    const keys = this.#keys(selection);
    for (const policy of this.#policies(selection)) {
      for (const key of keys) policy.series.delete(key);
    }
  }

  endTick(): number {
    this.ticks++;
    if (this.logFailure !== undefined) throw this.logFailure;
    if (!this.#isDirty) return -1;
    this.#isDirty = false;
    this.#position++;
    return this.#position;
  }

  whenSafe(_position: number, then: () => void): void {
    if (this.holdsSync) this.#waiting.push(then);
    else setImmediate(then);
  }

  /** The disk has all that was logged. */
  sync(): void {
    for (const then of this.#waiting.splice(0)) then();
  }

  /** Points of a database as lines, sorted. */
  dump(database: string, policyName = ''): string[] {
    return [...this.#policy(database, policyName).series.values()]
      .flatMap(({ key, points }) =>
        [...points].map(([time, fields]) => {
          const pairs = [...fields].map(([field, value]) => `${field}=${value}`);
          return `${key} ${pairs.sort().join(',')} ${time}`;
        }),
      )
      .sort();
  }

  #known(name: string): MemoryDatabase {
    const database = this.#databases.get(name);
    if (database === undefined) throw new SeriesError(`database not found: ${name}`);
    return database;
  }

  #policy(database: string, name: string): Policy {
    const { retentionPolicies, defaultRetentionPolicy } = this.#known(database);
    const wanted = name === '' ? defaultRetentionPolicy : name;
    const policy = retentionPolicies.find((candidate) => candidate.name === wanted);
    if (policy === undefined) throw new SeriesError(`retention policy not found: ${wanted}`);
    return policy;
  }

  #policies(selection: SeriesSelection): Policy[] {
    return this.#databases.get(selection.database)?.retentionPolicies ?? [];
  }

  #select(selection: SeriesSelection): Series[] {
    const { measurement, filter } = selection;
    return this.#policies(selection)
      .flatMap((policy) => [...policy.series.values()])
      .filter((series) => measurement === undefined || series.measurement === measurement)
      .filter((series) => filter === undefined || matches(filter, series));
  }
}

function seriesOf(policy: Policy, batch: PointBatch, handle: number): Series {
  const { cache } = batch;
  const bytes = cache.keys(handle);
  const key = bytes.toString('utf8', cache.keyStart(handle), cache.keyEnd(handle));
  let series = policy.series.get(key);
  if (series === undefined) {
    const name = decodeSeriesKey(bytes, cache.keyStart(handle), cache.keyEnd(handle));
    series = { ...name, key, points: new Map() };
    policy.series.set(key, series);
  }
  return series;
}

/** Remembers the type of a field that is new. */
function conflictOf(policy: Policy, measurement: string, column: PointColumn): string | undefined {
  let types = policy.types.get(measurement);
  if (types === undefined) policy.types.set(measurement, (types = new Map()));
  const known = types.get(column.field) ?? column.type;
  types.set(column.field, known);
  return known === column.type
    ? undefined
    : `field type conflict: input field "${column.field}" on measurement "${measurement}" ` +
        `is type ${column.type}, already exists as type ${known}`;
}

function valueOf(column: PointColumn, row: number, batch: PointBatch): Scalar {
  const number = column.numbers[row]!;
  if (column.type !== 'string') return column.wide?.[row] ?? number;
  return batch.text.toString(
    'utf8',
    number === 0 ? 0 : batch.textEnds[number - 1],
    batch.textEnds[number],
  );
}

function rowsOf(
  series: Series,
  request: ScanRequest,
  types: Map<string, FieldType> | undefined,
): SeriesRows | undefined {
  const points = [...series.points]
    .filter(([time]) => time >= request.from && time <= request.to)
    .filter(([, fields]) => request.fields.some((field) => fields.has(field)))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  if (points.length === 0) return undefined;
  if (request.descending) points.reverse();
  const base = points[0]![0] / 1_000_000_000n;
  return {
    kind: 'rows',
    base: Number(base),
    times: Float64Array.from(points, ([time]) => Number(time - base * 1_000_000_000n)),
    count: points.length,
    columns: request.fields.map((field) =>
      columnOf(
        points.map(([, fields]) => fields.get(field)),
        types?.get(field),
      ),
    ),
  };
}

function columnOf(
  values: readonly (Scalar | undefined)[],
  type: FieldType | undefined,
): Column | undefined {
  if (type === undefined || values.every((value) => value === undefined)) return undefined;
  const isWide = values.some((value) => typeof value === 'bigint');
  return {
    type,
    numbers: Float64Array.from(values, (value) => (typeof value === 'number' ? value : 0)),
    wide: isWide
      ? BigInt64Array.from(values, (value) => (typeof value === 'string' ? 0n : BigInt(value ?? 0)))
      : undefined,
    texts: type === 'string' ? values.map((value) => String(value ?? '')) : undefined,
    present: values.includes(undefined)
      ? Uint8Array.from(values, (value) => (value === undefined ? 0 : 1))
      : undefined,
  };
}

function tagOf({ tags }: SeriesName, name: string): string {
  return tags.find(([key]) => key === name)?.[1] ?? '';
}

function matches(filter: SeriesFilter, series: SeriesName): boolean {
  switch (filter.kind) {
    case 'and':
      return filter.terms.every((term) => matches(term, series));
    case 'or':
      return filter.terms.some((term) => matches(term, series));
    case 'equal':
      return tagOf(series, filter.tag) === filter.value;
    case 'notEqual':
      return tagOf(series, filter.tag) !== filter.value;
    case 'match':
      return filter.matches(tagOf(series, filter.tag));
    case 'notMatch':
      return !filter.matches(tagOf(series, filter.tag));
  }
}

function names(all: readonly string[]): string[] {
  return [...new Set(all)].filter((name) => name !== '').sort();
}
