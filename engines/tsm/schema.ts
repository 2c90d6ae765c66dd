// Measurements, fields, tags and series of some shards. Each shard has its own index: a name that
// several have is listed once.

import { type Slices, sortedInSlices } from '../../universal-row/slices.ts';
import { compareText } from '../../universal-row/series/series-key.ts';
import type { FieldKey, SeriesFilter } from '../../contracts/series-store.ts';
import type { LiveShard } from './live-shard.ts';
import type { SeriesIndex } from './parts.ts';

export function* measurementsIn(
  shards: readonly LiveShard[],
  filter: SeriesFilter | undefined,
): Slices<string[]> {
  const names = new Set<string>();
  for (const { shard } of shards) {
    const { index } = shard;
    for (let number = 0; number < index.measurementCount; number++) {
      if (number % keysAtOnce === keysAtOnce - 1) yield;
      if (index.liveSeriesOf(number) === 0) continue;
      const name = index.measurementName(number);
      if (names.has(name)) continue;
      if (filter === undefined || (yield* index.select(number, filter)).length > 0) names.add(name);
    }
  }
  return yield* sortedInSlices([...names], compareText);
}

export function fieldKeysIn(shards: readonly LiveShard[], measurement: string): FieldKey[] {
  const keys = new Map<string, FieldKey>();
  eachWith(shards, measurement, (index, number) => {
    for (const { name, type } of index.fields(number)) {
      // Keys of a measurement that was dropped and created again.
      if (name !== '') keys.set(`${type} ${name}`, { name, type });
    }
  });
  return [...keys.values()].sort(
    (a, b) => compareText(a.name, b.name) || compareText(a.type, b.type),
  );
}

export function* tagKeysIn(
  shards: readonly LiveShard[],
  measurement: string,
  filter: SeriesFilter | undefined,
): Slices<string[]> {
  return yield* union(shards, measurement, (index, number) => index.tagKeys(number, filter));
}

export function* tagValuesIn(
  shards: readonly LiveShard[],
  measurement: string,
  tag: string,
  filter: SeriesFilter | undefined,
): Slices<string[]> {
  return yield* union(shards, measurement, (index, number) => index.tagValues(number, tag, filter));
}

/** Ascending by the bytes of the keys. */
export function* seriesKeysIn(
  shards: readonly LiveShard[],
  measurement: string | undefined,
  filter: SeriesFilter | undefined,
): Slices<string[]> {
  const lists: string[][] = [];
  for (const { index, series } of yield* selected(shards, measurement, filter)) {
    const keys: string[] = [];
    for (let i = 0; i < series.length; i++) {
      keys.push(index.key(series[i]!));
      if (i % keysAtOnce === keysAtOnce - 1) yield;
    }
    lists.push(keys);
  }
  return yield* merged(lists);
}

export function* cardinalityIn(
  shards: readonly LiveShard[],
  measurement: string | undefined,
  filter: SeriesFilter | undefined,
): Slices<number> {
  if (shards.length > 1) return (yield* seriesKeysIn(shards, measurement, filter)).length;
  const [live] = shards;
  if (live === undefined) return 0;
  if (measurement === undefined && filter === undefined) return live.series;
  let count = 0;
  for (const { series } of yield* selected(shards, measurement, filter)) count += series.length;
  return count;
}

/** Keys, or values of tags, that are made into texts between two yields. */
const keysAtOnce = 4096;

/** Shards that have live series of the measurement. */
function eachWith(
  shards: readonly LiveShard[],
  measurement: string,
  see: (index: SeriesIndex, number: number) => void,
): void {
  for (const { shard } of shards) {
    const number = shard.index.findMeasurement(measurement);
    if (number >= 0 && shard.index.liveSeriesOf(number) > 0) see(shard.index, number);
  }
}

interface Selected {
  readonly index: SeriesIndex;
  readonly series: Uint32Array;
}

function* selected(
  shards: readonly LiveShard[],
  measurement: string | undefined,
  filter: SeriesFilter | undefined,
): Slices<Selected[]> {
  const found: Selected[] = [];
  for (const { shard } of shards) {
    const { index } = shard;
    const only = measurement === undefined ? 0 : index.findMeasurement(measurement);
    const end = measurement === undefined ? index.measurementCount : only + 1;
    for (let number = Math.max(only, 0); number < end; number++) {
      if (index.liveSeriesOf(number) === 0) continue;
      const series = yield* index.select(number, filter);
      if (series.length > 0) found.push({ index, series });
      if (number % keysAtOnce === keysAtOnce - 1) yield;
    }
  }
  return found;
}

function* union(
  shards: readonly LiveShard[],
  measurement: string,
  list: (index: SeriesIndex, number: number) => Slices<string[]>,
): Slices<string[]> {
  const indexes: { index: SeriesIndex; number: number }[] = [];
  eachWith(shards, measurement, (index, number) => indexes.push({ index, number }));
  const lists: string[][] = [];
  for (const { index, number } of indexes) lists.push(yield* list(index, number));
  return yield* merged(lists);
}

/** Merges ascending lists and drops duplicates. */
function* merged(lists: readonly (readonly string[])[]): Slices<string[]> {
  if (lists.length <= 1) return [...(lists[0] ?? [])];
  const names = new Set<string>();
  for (const list of lists) {
    for (let i = 0; i < list.length; i++) {
      names.add(list[i]!);
      if (i % keysAtOnce === keysAtOnce - 1) yield;
    }
  }
  return yield* sortedInSlices([...names], compareText);
}
