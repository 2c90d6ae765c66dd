// The simplest engine of time series that conforms: points in maps, everything looked at again for each
// answer. It shows what the contract asks for, tries the kit, and is what random operations on other engines
// are compared with. (Catalog and batches are in files beside it.)

import { oneSlice, type Slices } from '../../universal-row/slices.ts';
import { deserialize, serialize } from 'node:v8';
import type { SeriesEngine, SeriesEngineStats, SeriesLimits } from '../../engines/series-engine.ts';
import type { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { FieldType } from '../../universal-row/series/field-type.ts';
import type { PointBatch } from '../../universal-row/series/point-batch.ts';
import { compareText, decodeSeriesKey } from '../../universal-row/series/series-key.ts';
import {
  SeriesError,
  type CatalogChange,
  type Database,
  type FieldKey,
  type ScannedSeries,
  type ScanRequest,
  type SeriesFilter,
  type SeriesScan,
  type SeriesSelection,
  type WriteOutcome,
  type RetentionPolicy,
} from '../../contracts/series-store.ts';
import {
  effectOf,
  expectPolicy,
  shown,
  type ToyDatabases,
  type ToyPolicy,
  type ToySeries,
  type ToyShard,
} from './series-toy-catalog.ts';
import { pointsOf, rowsOf, type ToyPoint, type ToyRow } from './series-toy-points.ts';

type Range = { from: bigint; to: bigint };

/** Operations of an entry. Selections are resolved to series before encoding. */
type ToyOp =
  | { kind: 'change'; change: CatalogChange }
  | { kind: 'write'; database: string; policy: string; points: ToyPoint[] }
  | { kind: 'delete'; database: string; from: bigint; to: bigint; keys: Map<string, string[]> }
  | { kind: 'retain'; oldest: Map<string, bigint> };

const second = 1_000_000_000n;
const forever: Range = { from: -(2n ** 64n), to: 2n ** 64n };
const longestShard = 91n * 86_400n * second;
const disks = new Map<string, { index: number; state: Buffer }>();

export class ToySeriesEngine implements SeriesEngine {
  readonly model = 'toy';
  readonly congested = false;
  readonly isBehind = false;
  readonly failure = undefined;
  appliedIndex = 0;
  /** Nothing is on disk but checkpoints. */
  get durableIndex(): number {
    return this.appliedIndex;
  }
  limits: SeriesLimits = {
    seriesPerDatabase: Infinity,
    valuesPerTag: Infinity,
  };
  #databases: ToyDatabases = new Map();
  get catalogVersion(): number {
    return this.appliedIndex;
  }
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Its batches are given to one leader. */
  prepareStored(): void {}

  async open(): Promise<void> {
    const disk = disks.get(this.#directory);
    if (disk !== undefined) this.#load(disk.state, disk.index);
  }
  async close(): Promise<void> {}
  async drained(): Promise<void> {}
  discard(): void {}
  joinsWrite = (): boolean => false;
  skip(index: number): void {
    this.appliedIndex = index;
  }
  /** The engine has no rules besides its policies. */
  policyInForce(policy: RetentionPolicy): RetentionPolicy {
    return policy;
  }
  background = (): boolean => false;

  async checkpoint(): Promise<number> {
    const index = this.appliedIndex;
    disks.set(this.#directory, { index, state: serialize(this.#databases) });
    return index;
  }
  exportSnapshot(): AsyncIterable<Buffer> {
    const state = serialize(this.#databases);
    return (async function* () {
      for (let at = 0; at < state.length; at += 4096) yield state.subarray(at, at + 4096);
    })();
  }
  async importSnapshot(entries: AsyncIterable<Buffer>, appliedIndex: number): Promise<void> {
    const parts: Buffer[] = [];
    for await (const entry of entries) parts.push(Buffer.from(entry));
    this.#load(Buffer.concat(parts), appliedIndex);
    await this.checkpoint();
  }
  #load(state: Buffer, index: number): void {
    this.#databases = deserialize(state) as ToyDatabases;
    this.appliedIndex = index;
  }

  // ---- words

  #put(into: RecordBatchWriter, op: ToyOp): void {
    const bytes = serialize(op);
    into.reserve(bytes.length + 4);
    into.pos = into.buf.writeUInt32LE(bytes.length, into.pos);
    into.pos += bytes.copy(into.buf, into.pos);
  }

  apply(buf: Buffer, start: number, end: number, index: number): void {
    if (index <= this.appliedIndex) return;
    if (buf.readUInt32LE(start) !== end - start - 4) throw new RangeError('damaged words');
    this.#apply(deserialize(Buffer.from(buf.subarray(start + 4, end))) as ToyOp);
    this.appliedIndex = index;
  }

  #apply(op: ToyOp): void {
    if (op.kind === 'change') effectOf(this.#databases, op.change)?.();
    else if (op.kind === 'write') {
      const policy = expectPolicy(this.#databases, op.database, op.policy);
      for (const point of op.points) store(policy, point);
    } else if (op.kind === 'delete') {
      for (const { name, shards } of this.#databases.get(op.database)!.policies) {
        const keys = op.keys.get(name) ?? [];
        for (const shard of shards) for (const key of keys) remove(shard, key, op);
      }
      this.#dropEmpty();
    } else {
      for (const { policies } of this.#databases.values()) {
        for (const policy of policies) {
          const oldest = op.oldest.get(policy.name) ?? forever.from;
          policy.shards = policy.shards.filter(({ end }) => end >= oldest);
        }
      }
    }
  }

  #dropEmpty(): void {
    for (const { policies } of this.#databases.values()) {
      for (const policy of policies) {
        policy.shards = policy.shards.filter(({ series }) => series.size > 0);
      }
    }
  }

  prepareChange(change: CatalogChange, into: RecordBatchWriter): void {
    if (effectOf(this.#databases, change) !== undefined)
      this.#put(into, { kind: 'change', change });
  }

  prepareWrite(
    database: string,
    policyName: string,
    batch: PointBatch,
    now: number,
    into: RecordBatchWriter,
  ): WriteOutcome {
    const policy = expectPolicy(this.#databases, database, policyName);
    const oldest = BigInt(now) * 1_000_000n - policy.duration;
    const all = this.#databases.get(database)!.policies.flatMap(({ shards }) => shards);
    const others = all.filter((shard) => !policy.shards.includes(shard));
    // Tried on a copy, of which nothing is left.
    const draft = { ...policy, shards: policy.shards.map(withoutRows) };
    const points: ToyPoint[] = [];
    const errors: string[] = [];
    for (const point of pointsOf(batch)) {
      const tooOld = policy.duration !== 0n && point.time < oldest;
      const error = tooOld
        ? 'points beyond retention policy'
        : (conflict(draft, point) ?? this.#refusal([...others, ...draft.shards], draft, point));
      if (error !== undefined) errors.push(error);
      else {
        place(draft, point);
        points.push(point);
      }
    }
    if (points.length > 0)
      this.#put(into, { kind: 'write', database, policy: policy.name, points });
    return { written: points.length, dropped: errors.length, error: errors[0] };
  }

  #refusal(all: ToyShard[], policy: ToyPolicy, { key, time }: ToyPoint): string | undefined {
    const { seriesPerDatabase, valuesPerTag } = this.limits;
    const shard = shardAt(policy, time);
    if (shard?.series.has(key)) return undefined;
    const total = all.reduce((sum, { series }) => sum + series.size, 0);
    if (total >= seriesPerDatabase) return 'max-series-per-database limit exceeded';
    const { measurement, tags } = nameOf(key);
    const own = [...(shard?.series.values() ?? [])].filter(
      (one) => one.measurement === measurement,
    );
    for (const [tag, value] of tags) {
      const values = new Set(own.map((one) => one.tags.get(tag)).filter((v) => v !== undefined));
      if (values.has(value) || values.size < valuesPerTag) continue;
      const where = `measurement="${measurement}" tag="${tag}" value="${value}"`;
      return `max-values-per-tag limit exceeded (${values.size}/${valuesPerTag}): ${where}`;
    }
    return undefined;
  }

  *deletion(
    kind: 'points' | 'series',
    selection: SeriesSelection,
  ): Generator<(into: RecordBatchWriter) => void, void, void> {
    const { database, from = forever.from, to = forever.to } = selection;
    const found = this.#databases.get(database);
    if (found === undefined) throw new SeriesError(`database not found: ${database}`);
    const keys = new Map<string, string[]>();
    for (const { name } of found.policies) {
      if (selection.retentionPolicy && selection.retentionPolicy !== name) continue;
      const touched = this.#select({ ...selection, retentionPolicy: name }).filter(
        ([, { rows }]) =>
          kind === 'series' || [...rows.keys()].some((time) => time >= from && time <= to),
      );
      if (touched.length > 0) keys.set(name, [...new Set(touched.map(([key]) => key))]);
    }
    if (keys.size > 0)
      yield (into) => this.#put(into, { kind: 'delete', database, from, to, keys });
  }

  prepareRetention(now: number, into: RecordBatchWriter): void {
    const oldest = new Map<string, bigint>();
    for (const { policies } of this.#databases.values()) {
      for (const { name, duration, shards } of policies) {
        const at = BigInt(now) * 1_000_000n - duration;
        if (duration !== 0n && shards.some(({ end }) => end < at)) oldest.set(name, at);
      }
    }
    if (oldest.size > 0) this.#put(into, { kind: 'retain', oldest });
  }

  // ---- answers

  databases = (): Database[] => shown(this.#databases);
  database = (name: string): Database | undefined =>
    this.databases().find((database) => database.name === name);

  #shards({ database, retentionPolicy, from, to }: SeriesSelection): ToyShard[] {
    const policies = this.#databases.get(database)?.policies ?? [];
    return policies
      .filter(({ name }) => !retentionPolicy || name === retentionPolicy)
      .flatMap(({ shards }) => shards)
      .filter(({ start, end }) => start <= (to ?? forever.to) && end >= (from ?? forever.from));
  }
  #select(selection: SeriesSelection): [key: string, series: ToySeries][] {
    const { measurement, filter } = selection;
    return this.#shards(selection)
      .flatMap(({ series }) => [...series])
      .filter(([, one]) => measurement === undefined || one.measurement === measurement)
      .filter(([, { tags }]) => filter === undefined || matches(filter, tags));
  }

  scan(request: ScanRequest): Slices<SeriesScan> {
    return oneSlice(() => {
      const policy = expectPolicy(this.#databases, request.database, request.retentionPolicy);
      const { measurement, fields, from, to, descending } = request;
      const selection = { ...request, retentionPolicy: policy.name };
      const shards = this.#shards(selection).sort((a, b) => (a.start < b.start ? -1 : 1));
      const types: (FieldType | undefined)[] = fields.map(() => undefined);
      for (const shard of shards) {
        const known = shard.fields.get(measurement);
        for (const [i, field] of fields.entries()) types[i] = known?.get(field) ?? types[i];
      }
      const found = new Map(this.#select(selection));
      const series = [...found.keys()].sort(compareText).map((key): ScannedSeries => {
        const { tags } = nameOf(key);
        return { key, tag: (name) => tags.get(name) ?? '' };
      });
      const pieces = new Map(
        series.map(({ key }) => {
          const own = shards.map((shard) => {
            const rows = [...(shard.series.get(key)?.rows ?? [])]
              .filter(([time, row]) => time >= from && time <= to && fields.some((f) => row.has(f)))
              .map(([time, row]): ToyRow => [time, new Map(row)])
              .sort(([a], [b]) => (a < b === descending ? 1 : -1));
            const known = shard.fields.get(measurement) ?? new Map<string, FieldType>();
            return rowsOf(rows, Number(shard.start / second), fields, known);
          });
          return [key, descending ? own.reverse() : own];
        }),
      );
      return {
        fieldTypes: types,
        series,
        cursor: ({ key }) => {
          const rest = pieces.get(key)!.filter(({ count }) => count > 0);
          return { next: () => rest.shift() };
        },
        close: () => {},
      };
    });
  }

  measurements = (selection: SeriesSelection): Slices<string[]> =>
    oneSlice(() => ascending(this.#select(selection).map(([, { measurement }]) => measurement)));
  seriesKeys = (selection: SeriesSelection): Slices<string[]> =>
    oneSlice(() => this.#keys(selection));
  #keys = (selection: SeriesSelection): string[] =>
    ascending(this.#select(selection).map(([key]) => key));
  seriesCardinality = (selection: SeriesSelection): Slices<number> =>
    oneSlice(() => this.#keys(selection).length);
  tagKeys = (selection: SeriesSelection & { measurement: string }): Slices<string[]> =>
    oneSlice(() => ascending(this.#select(selection).flatMap(([, { tags }]) => [...tags.keys()])));
  tagValues = (
    selection: SeriesSelection & { measurement: string },
    tag: string,
  ): Slices<string[]> =>
    oneSlice(() =>
      ascending(this.#select(selection).flatMap(([, { tags }]) => tags.get(tag) ?? [])),
    );
  fieldKeys(selection: SeriesSelection & { measurement: string }): FieldKey[] {
    const keys = new Map<string, FieldKey>();
    for (const { fields } of this.#shards(selection)) {
      for (const [name, type] of fields.get(selection.measurement) ?? []) {
        keys.set(`${name} ${type}`, { name, type });
      }
    }
    return [...keys.values()].sort(
      (a, b) => compareText(a.name, b.name) || compareText(a.type, b.type),
    );
  }

  stats(): SeriesEngineStats {
    const shards = [...this.#databases.values()].flatMap(({ policies }) =>
      policies.flatMap((policy) => policy.shards),
    );
    const series = shards.reduce((sum, shard) => sum + shard.series.size, 0);
    const none = { headPoints: 0, headBytes: 0, indexBytes: 0, memoryBytes: 0, files: 0 };
    const counts = { databases: this.#databases.size, shards: shards.length, series };
    return { ...counts, ...none, diskBytes: 0, pendingCompactionBytes: 0, extra: {} };
  }
}

function nameOf(key: string): { measurement: string; tags: Map<string, string> } {
  const bytes = Buffer.from(key);
  const { measurement, tags } = decodeSeriesKey(bytes, 0, bytes.length);
  return { measurement, tags: new Map(tags) };
}

const ascending = (names: readonly string[]): string[] => [...new Set(names)].sort(compareText);

function matches(filter: SeriesFilter, tags: ReadonlyMap<string, string>): boolean {
  if ('terms' in filter) {
    const each = (term: SeriesFilter): boolean => matches(term, tags);
    return filter.kind === 'and' ? filter.terms.every(each) : filter.terms.some(each);
  }
  const value = tags.get(filter.tag) ?? '';
  switch (filter.kind) {
    case 'equal':
      return value === filter.value;
    case 'notEqual':
      return value !== filter.value;
    case 'match':
      return filter.matches(value);
    case 'notMatch':
      return !filter.matches(value);
  }
}

const shardAt = ({ shards }: ToyPolicy, time: bigint): ToyShard | undefined =>
  shards.find(({ start, end }) => start <= time && time <= end);

function conflict(policy: ToyPolicy, { key, time, fields }: ToyPoint): string | undefined {
  const { measurement } = nameOf(key);
  const known = shardAt(policy, time)?.fields.get(measurement);
  for (const [name, type] of fields) {
    const old = known?.get(name) ?? type;
    if (old === type) continue;
    const what = `input field "${name}" on measurement "${measurement}"`;
    return `field type conflict: ${what} is type ${type}, already exists as type ${old}`;
  }
  return undefined;
}

function store(policy: ToyPolicy, point: ToyPoint): void {
  const { rows } = place(policy, point);
  const row = rows.get(point.time) ?? new Map<string, number | bigint | string>();
  rows.set(point.time, row);
  for (const [name, , value] of point.fields) row.set(name, value);
}

/** Makes shard, series and fields of a point where need be. */
function place(policy: ToyPolicy, { key, time, fields }: ToyPoint): ToySeries {
  let shard = shardAt(policy, time);
  if (shard === undefined) policy.shards.push((shard = newShard(policy, time)));
  const { measurement, tags } = nameOf(key);
  const series = shard.series.get(key) ?? { measurement, tags, rows: new Map() };
  shard.series.set(key, series);
  const types = shard.fields.get(measurement) ?? new Map<string, FieldType>();
  shard.fields.set(measurement, types);
  for (const [name, type] of fields) types.set(name, type);
  return series;
}

const withoutRows = ({ fields, series, ...shard }: ToyShard): ToyShard => ({
  ...shard,
  fields: new Map([...fields].map(([name, types]) => [name, new Map(types)])),
  series: new Map(series),
});

/** Aligned to its width, less what others have of that already. */
function newShard({ shardGroupDuration, shards }: ToyPolicy, time: bigint): ToyShard {
  const width = shardGroupDuration < longestShard ? shardGroupDuration : longestShard;
  const into = ((time % width) + width) % width;
  let start = time - into;
  let end = start + width - 1n;
  for (const other of shards) {
    if (other.end < time && other.end >= start) start = other.end + 1n;
    if (other.start > time && other.start <= end) end = other.start - 1n;
  }
  return { start, end, fields: new Map(), series: new Map() };
}

function remove(shard: ToyShard, key: string, { from, to }: Range): void {
  const series = shard.series.get(key);
  if (series === undefined) return;
  for (const time of [...series.rows.keys()]) {
    if (time >= from && time <= to) series.rows.delete(time);
  }
  if (series.rows.size > 0) return;
  shard.series.delete(key);
  const others = [...shard.series.values()].some((one) => one.measurement === series.measurement);
  if (!others) shard.fields.delete(series.measurement);
}
