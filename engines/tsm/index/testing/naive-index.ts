// Reference implementation of a series index with Maps and filters, for tests.

import { compareText, decodeSeriesKey } from '../../../../universal-row/series/series-key.ts';
import type { SeriesFilter } from '../../../../contracts/series-store.ts';

interface NaiveSeries {
  key: string;
  measurement: string;
  tags: Map<string, string>;
  removed: boolean;
}

export class NaiveIndex {
  readonly series: NaiveSeries[] = [];
  readonly measurements: string[] = [];

  addMeasurement(name: string): number {
    const known = this.measurements.indexOf(name);
    return known < 0 ? this.measurements.push(name) - 1 : known;
  }

  copy(): NaiveIndex {
    const copy = new NaiveIndex();
    copy.series.push(...this.series.map((series) => ({ ...series })));
    copy.measurements.push(...this.measurements);
    return copy;
  }

  find(key: string): number {
    return this.series.findIndex((series) => series.key === key && !series.removed);
  }

  add(key: string): number {
    const bytes = Buffer.from(key);
    const { measurement, tags } = decodeSeriesKey(bytes, 0, bytes.length);
    this.addMeasurement(measurement);
    return this.series.push({ key, measurement, tags: new Map(tags), removed: false }) - 1;
  }

  select(measurement: string, filter: SeriesFilter | undefined): number[] {
    const found: number[] = [];
    this.series.forEach((series, number) => {
      if (series.measurement !== measurement || series.removed) return;
      if (filter === undefined || passes(filter, series.tags)) found.push(number);
    });
    const bytes = (number: number) => Buffer.from(this.series[number]!.key);
    return found.sort((a, b) => Buffer.compare(bytes(a), bytes(b)));
  }

  tagKeys(measurement: string, filter: SeriesFilter | undefined): string[] {
    const names = this.select(measurement, filter).flatMap((n) => [...this.series[n]!.tags.keys()]);
    return [...new Set(names)].sort(compareText);
  }

  tagValues(measurement: string, tag: string, filter: SeriesFilter | undefined): string[] {
    const values = this.select(measurement, filter).map((n) => this.series[n]!.tags.get(tag) ?? '');
    return [...new Set(values)].filter((value) => value !== '').sort(compareText);
  }
}

function passes(filter: SeriesFilter, tags: Map<string, string>): boolean {
  if ('terms' in filter) {
    return filter.kind === 'and'
      ? filter.terms.every((term) => passes(term, tags))
      : filter.terms.some((term) => passes(term, tags));
  }
  const value = tags.get(filter.tag) ?? '';
  if ('value' in filter) return (value === filter.value) === (filter.kind === 'equal');
  return filter.matches(value) === (filter.kind === 'match');
}
