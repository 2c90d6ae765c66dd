// A store of time series whose answers are the test's.

import type {
  ScannedSeries,
  SeriesCursor,
  SeriesScan,
  SeriesStore,
} from '../../contracts/series-store.ts';
import type { ServedStore } from '../../storage-node/pod-server/served-series.ts';
import type { SeriesRows } from '../../universal-row/series/column.ts';
import { oneSlice, type Slices } from '../../universal-row/slices.ts';

export type Stub = { -readonly [Key in keyof ServedStore]: ServedStore[Key] };

function nothing(): never {
  throw new Error('the test has no answer to this');
}

export function stubStore(answers: Partial<Stub> = {}): Stub {
  return {
    catalogVersion: 1,
    databases: () => [],
    database: () => undefined,
    change: nothing,
    administer: nothing,
    write: nothing,
    scan: nothing,
    // The read barrier of catalogs.
    measurements: () => oneSlice(() => []),
    fieldKeys: nothing,
    tagKeys: nothing,
    tagValues: nothing,
    seriesKeys: nothing,
    seriesCardinality: nothing,
    deletePoints: nothing,
    dropSeries: nothing,
    endTick: () => -1,
    whenSafe: (_position, then) => then(),
    ...answers,
  } satisfies SeriesStore & Stub;
}

/** Rows of one float field, one a second from `first` on. */
export function floatRows(first: number, count: number): SeriesRows {
  const numbers = Float64Array.from({ length: count }, (_, i) => first + i);
  const times = Float64Array.from({ length: count }, (_, i) => (first + i) * 1e9);
  const column = { type: 'float', numbers, wide: undefined, texts: undefined } as const;
  return { kind: 'rows', base: 0, times, count, columns: [{ ...column, present: undefined }] };
}

export class StubScan implements SeriesScan {
  readonly fieldTypes = ['float'] as const;
  readonly series: readonly ScannedSeries[];
  isClosed = false;
  /** Pieces that cursors were asked for. */
  asked = 0;
  readonly #next: (series: number, piece: number) => ReturnType<SeriesCursor['next']>;

  constructor(
    series: number,
    next: (series: number, piece: number) => ReturnType<SeriesCursor['next']>,
  ) {
    this.series = Array.from({ length: series }, (_, i) => ({
      key: `m,n=${String(i).padStart(6, '0')}`,
      tag: () => '',
    }));
    this.#next = next;
  }

  cursor(series: ScannedSeries): SeriesCursor {
    const index = this.series.indexOf(series);
    let piece = 0;
    return {
      next: () => {
        this.asked++;
        return this.#next(index, piece++);
      },
    };
  }

  close(): void {
    this.isClosed = true;
  }
}

/** Goes on until it is ended. */
export function* endless<T>(ended: () => void): Slices<T> {
  try {
    for (;;) yield new Promise((resolve) => setTimeout(resolve, 1));
  } finally {
    ended();
  }
}
