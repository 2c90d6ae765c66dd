// What measurements, fields, tags and series there are in some shards. Each shard has its own index: a name
// that several have is listed once.

import { compareText } from '../../universal-row/series/series-key.ts';
import type { FieldKey, SeriesFilter } from '../../contracts/series-store.ts';
import type { LiveShard } from './live-shard.ts';
import type { SeriesIndex } from './parts.ts';

export function measurementsIn(
  shards: readonly LiveShard[],
  filter: SeriesFilter | undefined,
): string[] {
  const names = new Set<string>();
  for (const { shard } of shards) {
    const { index } = shard;
    for (let number = 0; number < index.measurementCount; number++) {
      if (index.liveSeriesOf(number) === 0) continue;
      const name = index.measurementName(number);
      if (names.has(name)) continue;
      if (filter === undefined || index.select(number, filter).length > 0) names.add(name);
    }
  }
  return [...names].sort(compareText);
}

export function fieldKeysIn(shards: readonly LiveShard[], measurement: string): FieldKey[] {
  const keys = new Map<string, FieldKey>();
  eachWith(shards, measurement, (index, number) => {
    for (const { name, type } of index.fields(number)) {
      // Those of a measurement that was dropped and came again.
      if (name !== '') keys.set(`${type} ${name}`, { name, type });
    }
  });
  return [...keys.values()].sort(
    (a, b) => compareText(a.name, b.name) || compareText(a.type, b.type),
  );
}

export function tagKeysIn(
  shards: readonly LiveShard[],
  measurement: string,
  filter: SeriesFilter | undefined,
): string[] {
  return union(shards, measurement, (index, number) => index.tagKeys(number, filter));
}

export function tagValuesIn(
  shards: readonly LiveShard[],
  measurement: string,
  tag: string,
  filter: SeriesFilter | undefined,
): string[] {
  return union(shards, measurement, (index, number) => index.tagValues(number, tag, filter));
}

/** Ascending by the bytes of the keys. */
export function seriesKeysIn(
  shards: readonly LiveShard[],
  measurement: string | undefined,
  filter: SeriesFilter | undefined,
): string[] {
  const keys = new Set<string>();
  let lists = 0;
  eachSelected(shards, measurement, filter, (index, series) => {
    lists++;
    for (const number of series) keys.add(index.key(number));
  });
  return lists > 1 ? [...keys].sort(compareText) : [...keys];
}

export function cardinalityIn(
  shards: readonly LiveShard[],
  measurement: string | undefined,
  filter: SeriesFilter | undefined,
): number {
  if (shards.length > 1) return seriesKeysIn(shards, measurement, filter).length;
  let count = 0;
  const [live] = shards;
  if (live === undefined) return 0;
  if (measurement === undefined && filter === undefined) return live.series;
  eachSelected(shards, measurement, filter, (_, series) => {
    count += series.length;
  });
  return count;
}

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

function eachSelected(
  shards: readonly LiveShard[],
  measurement: string | undefined,
  filter: SeriesFilter | undefined,
  see: (index: SeriesIndex, series: Uint32Array) => void,
): void {
  if (measurement !== undefined) {
    eachWith(shards, measurement, (index, number) => see(index, index.select(number, filter)));
    return;
  }
  for (const { shard } of shards) {
    const { index } = shard;
    for (let number = 0; number < index.measurementCount; number++) {
      if (index.liveSeriesOf(number) > 0) see(index, index.select(number, filter));
    }
  }
}

function union(
  shards: readonly LiveShard[],
  measurement: string,
  list: (index: SeriesIndex, number: number) => string[],
): string[] {
  const lists: string[][] = [];
  eachWith(shards, measurement, (index, number) => lists.push(list(index, number)));
  if (lists.length === 1) return lists[0]!;
  return [...new Set(lists.flat())].sort(compareText);
}
