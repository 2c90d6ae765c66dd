// A store that is only a schema, for tests of schema queries.

import { oneSlice, type Slices } from '../../../../universal-row/slices.ts';
import { compareText, encodeSeriesKey } from '../../../../universal-row/series/series-key.ts';
import type {
  CatalogChange,
  Database,
  FieldKey,
  SeriesFilter,
  SeriesSelection,
  SeriesStore,
} from '../../../../contracts/series-store.ts';

const hour = 3_600_000_000_000n;
/** Time of the requests: 2020-09-13T12:26:40Z. */
export const now = 1_600_000_000_000_000_000n;

/** `time` stands for the shard; points themselves are of no matter here. */
interface StoredSeries {
  policy: string;
  measurement: string;
  tags: Record<string, string>;
  fields: Record<string, FieldKey['type']>;
  time: bigint;
}

/** One database, `db`, whose schema is a list of series; changes are recorded. */
export class FakeStore implements SeriesStore {
  readonly changes: CatalogChange[] = [];
  readonly deleted: unknown[] = [];
  known: Database[] = [
    {
      name: 'db',
      retentionPolicies: [
        { name: 'autogen', duration: 0n, shardGroupDuration: 168n * hour, replicaN: 1 },
        { name: 'short', duration: 2n * hour, shardGroupDuration: hour, replicaN: 1 },
      ],
      defaultRetentionPolicy: 'autogen',
    },
  ];
  series: StoredSeries[] = [
    stored('cpu', { host: 'a', region: 'eu' }, { u: 'float', i: 'integer' }, 0n),
    stored('cpu', { host: 'b', region: 'us' }, { u: 'float' }, 0n),
    stored('cpu', { host: 'c' }, { u: 'float' }, now),
    stored('mem', { host: 'a', zone: 'z,1' }, { f: 'float', s: 'string' }, 0n),
    stored('net', {}, { v: 'float', b: 'boolean' }, 0n),
    { ...stored('disk', { path: '/' }, { u: 'float' }, now), policy: 'short' },
  ];

  databases = (): Database[] => this.known;
  database = (name: string): Database | undefined => this.known.find((each) => each.name === name);
  change = (change: CatalogChange): void => void this.changes.push(change);
  write = (): never => unused();
  scan = (): never => unused();
  endTick = (): never => unused();
  whenSafe = (): never => unused();

  #selected(selection: SeriesSelection): StoredSeries[] {
    const { database, retentionPolicy = '', measurement, filter, from, to } = selection;
    if (database !== 'db') return [];
    return this.series
      .filter(({ policy }) => retentionPolicy === '' || retentionPolicy === policy)
      .filter((each) => measurement === undefined || measurement === each.measurement)
      .filter(({ tags }) => filter === undefined || holds(filter, tags))
      .filter(
        ({ time }) => (from === undefined || time >= from) && (to === undefined || time <= to),
      );
  }

  measurements = (selection: SeriesSelection): Slices<string[]> =>
    oneSlice(() => distinct(this.#selected(selection).map(({ measurement }) => measurement)));
  fieldKeys = (selection: SeriesSelection & { measurement: string }): Slices<FieldKey[]> =>
    oneSlice(() => {
      const types = new Map(
        this.#selected(selection).flatMap(({ fields }) => Object.entries(fields)),
      );
      return [...types].sort(byName).map(([name, type]) => ({ name, type }));
    });
  tagKeys = (selection: SeriesSelection): Slices<string[]> =>
    oneSlice(() => distinct(this.#selected(selection).flatMap(({ tags }) => Object.keys(tags))));
  tagValues = (selection: SeriesSelection, tag: string): Slices<string[]> =>
    oneSlice(() => distinct(this.#selected(selection).flatMap(({ tags }) => tags[tag] ?? [])));
  seriesKeys = (selection: SeriesSelection): Slices<string[]> =>
    oneSlice(() => this.#keys(selection));

  #keys = (selection: SeriesSelection): string[] =>
    distinct(
      this.#selected(selection).map(({ measurement, tags }) =>
        String(encodeSeriesKey({ measurement, tags: Object.entries(tags).sort(byName) })),
      ),
    );
  seriesCardinality = (selection: SeriesSelection): Slices<number> =>
    oneSlice(() => this.#keys(selection).length);
  deletePoints = (selection: SeriesSelection): Slices<void> =>
    oneSlice(() => this.#note('points', selection));
  dropSeries = (selection: SeriesSelection): Slices<void> =>
    oneSlice(() => this.#note('series', selection));

  #note(what: string, selection: SeriesSelection): void {
    const { retentionPolicy = '', from, to } = selection;
    const keys = this.#keys({ ...selection, from: undefined, to: undefined });
    if (keys.length > 0) this.deleted.push([what, retentionPolicy, keys, from, to]);
  }
}

export function stored(
  measurement: string,
  tags: Record<string, string>,
  fields: StoredSeries['fields'],
  time: bigint,
): StoredSeries {
  return { policy: 'autogen', measurement, tags, fields, time };
}

export function unused(): never {
  throw new Error('not for this test');
}

const distinct = (names: readonly string[]): string[] => [...new Set(names)].sort(compareText);

function holds(filter: SeriesFilter, tags: Record<string, string>): boolean {
  if ('terms' in filter) {
    return filter.kind === 'and'
      ? filter.terms.every((term) => holds(term, tags))
      : filter.terms.some((term) => holds(term, tags));
  }
  const value = tags[filter.tag] ?? '';
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

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return compareText(a, b);
}
