// A whole scan as plain data: what can be compared, whichever way the rows were cut into pieces.

import type { FieldType } from '../../universal-row/series/field-type.ts';
import type { BlockSummary } from '../../universal-row/series/column.ts';
import { whenFinished } from '../../universal-row/slices.ts';
import type { ScanRequest, SeriesCursor, SeriesStore } from '../../contracts/series-store.ts';
import { type FieldValue, second, valueAt } from '../../engines/series-conformance/points.ts';
import type { Random } from '../support/random.ts';

type Row = readonly [time: bigint, values: readonly (FieldValue | undefined)[]];

interface DrainedScan {
  readonly fieldTypes: readonly (FieldType | undefined)[];
  readonly seriesCount: number | undefined;
  readonly series: readonly {
    readonly key: string;
    readonly tags: readonly string[];
    readonly items: readonly (Row | BlockSummary)[];
  }[];
}

class Reader {
  readonly items: (Row | BlockSummary)[] = [];
  isOver = false;
  readonly #cursor: SeriesCursor;
  readonly #limit: number;

  constructor(cursor: SeriesCursor, limit: number) {
    this.#cursor = cursor;
    this.#limit = limit;
  }

  async step(): Promise<void> {
    const piece = this.#cursor.next();
    if (piece === undefined) this.isOver = true;
    else if (piece.kind === 'summary') this.items.push(piece);
    else {
      if (piece.count === 0) await this.#cursor.waits;
      for (let row = 0; row < piece.count && this.items.length < this.#limit; row++) {
        const time = BigInt(piece.base) * second + BigInt(piece.times[row]!);
        this.items.push([time, piece.columns.map((column) => column && valueAt(column, row))]);
      }
      if (this.items.length >= this.#limit) this.isOver = true;
    }
  }
}

/** With `random` the cursors are read in any order, and some series twice. */
export async function drained(
  store: Pick<SeriesStore, 'scan'>,
  request: ScanRequest,
  random?: Random,
): Promise<DrainedScan> {
  const scan = await whenFinished(store.scan(request));
  try {
    const limit = request.rowsPerSeries ?? Infinity;
    const readers: Reader[] = [];
    if (random?.chance(0.5) === true) {
      for (const series of scan.series) {
        const other = random.chance(0.2) ? new Reader(scan.cursor(series), limit) : undefined;
        if (other !== undefined) await other.step();
        readers.push(new Reader(scan.cursor(series), limit));
      }
      const open = [...readers];
      while (open.length > 0) {
        const at = random.below(open.length);
        await open[at]!.step();
        if (open[at]!.isOver) open.splice(at, 1);
      }
    } else {
      for (const series of scan.series) {
        const reader = new Reader(scan.cursor(series), limit);
        while (!reader.isOver) await reader.step();
        readers.push(reader);
      }
    }
    return {
      fieldTypes: scan.fieldTypes,
      seriesCount: scan.seriesCount,
      series: scan.series.map((series, i) => ({
        key: scan.seriesCount === undefined ? series.key : '',
        tags: ['host', 'region'].map((tag) =>
          scan.seriesCount === undefined || request.totals!.includes(tag) ? series.tag(tag) : '',
        ),
        items: readers[i]!.items,
      })),
    };
  } finally {
    scan.close();
  }
}
