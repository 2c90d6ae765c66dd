// Scans of all partitions as one. A series is in one partition, so cursors are the partitions' own.

import { sliceElements, type Slices } from '../../../universal-row/slices.ts';
import { type FieldType, fieldTypeCodes } from '../../../universal-row/series/field-type.ts';
import { compareText } from '../../../universal-row/series/series-key.ts';
import type { ScannedSeries, SeriesCursor, SeriesScan } from '../../../contracts/series-store.ts';

/** Series of partitions that are compared between two yields. Keys are made into texts for it. */
const mergedAtOnce = 2048;

class PartSeries implements ScannedSeries {
  readonly of: ScannedSeries;
  readonly scan: SeriesScan;

  constructor(scan: SeriesScan, of: ScannedSeries) {
    this.scan = scan;
    this.of = of;
  }

  get key(): string {
    return this.of.key;
  }

  tag(name: string): string {
    return this.of.tag(name);
  }
}

/** Closes `scans` when it is abandoned. */
export function* mergedScan(scans: readonly SeriesScan[]): Slices<SeriesScan> {
  const close = (): void => {
    for (const scan of scans) scan.close();
  };
  let isOpen = false;
  try {
    const filled = scans.filter(({ series }) => series.length > 0);
    // A group stands for series of one partition; the same group of several partitions is several.
    const hasGroups = filled.some(({ seriesCount }) => seriesCount !== undefined);
    const lists: PartSeries[][] = [];
    for (const scan of filled) {
      const list: PartSeries[] = [];
      for (const series of scan.series) {
        list.push(new PartSeries(scan, series));
        if (list.length % sliceElements === 0) yield;
      }
      lists.push(list);
    }
    const series = hasGroups ? lists.flat() : yield* inOrder(lists);
    isOpen = true;
    const seriesCount = scans.reduce((sum, one) => sum + (one.seriesCount ?? one.series.length), 0);
    return {
      fieldTypes: mergedTypes(scans),
      series,
      ...(hasGroups && { seriesCount }),
      cursor: cursorOf,
      close,
    };
  } finally {
    // Also runs when the caller abandons the generator.
    if (!isOpen) close();
  }
}

function cursorOf(series: ScannedSeries): SeriesCursor {
  const { scan, of } = series as PartSeries;
  return scan.cursor(of);
}

/**
 * Field types of the merged scan. If partitions differ, the first type in InfluxDB's order wins: float, integer,
 * unsigned, string, boolean.
 */
function mergedTypes(scans: readonly SeriesScan[]): (FieldType | undefined)[] {
  const [first, ...others] = scans;
  const types = [...(first?.fieldTypes ?? [])];
  for (const { fieldTypes } of others) {
    for (const [i, type] of fieldTypes.entries()) {
      const known = types[i];
      if (type === undefined) continue;
      if (known === undefined || fieldTypeCodes[type] < fieldTypeCodes[known]) types[i] = type;
    }
  }
  return types;
}

/** Merges lists that are ascending by key: two at a time, so that each series is compared a few times only. */
function* inOrder(lists: readonly PartSeries[][]): Slices<PartSeries[]> {
  let left = [...lists];
  while (left.length > 1) {
    const next: PartSeries[][] = [];
    for (let i = 0; i < left.length; i += 2) {
      const second = left[i + 1];
      next.push(second === undefined ? left[i]! : yield* mergedPair(left[i]!, second));
    }
    left = next;
  }
  return left[0] ?? [];
}

function* mergedPair(a: readonly PartSeries[], b: readonly PartSeries[]): Slices<PartSeries[]> {
  const all: PartSeries[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    all.push(compareText(a[i]!.key, b[j]!.key) <= 0 ? a[i++]! : b[j++]!);
    if (all.length % mergedAtOnce === 0) yield;
  }
  while (i < a.length) all.push(a[i++]!);
  while (j < b.length) all.push(b[j++]!);
  return all;
}
