// A scan that gives groups of series in place of series, each with its totals from all shards.

import type { Slices } from '../../universal-row/slices.ts';
import type { BlockSummary, SeriesRows } from '../../universal-row/series/column.ts';
import type { FieldType } from '../../universal-row/series/field-type.ts';
import type {
  ScannedSeries,
  ScanRequest,
  SeriesCursor,
  SeriesScan,
} from '../../contracts/series-store.ts';
import { newBlockCache } from './file/shared-block-cache.ts';
import type { LiveShard } from './live-shard.ts';
import { refused } from './series-scan.ts';
import type { Opening } from './shard/shard-types.ts';
import type { ShardTotals } from './shard/shard-totals.ts';

interface Part {
  readonly totals: ShardTotals;
  readonly group: number;
}

class Group implements ScannedSeries {
  readonly key = '';
  readonly parts: Part[] = [];
  readonly #tags: readonly string[];
  readonly #values: readonly string[];

  constructor(tags: readonly string[], values: readonly string[]) {
    this.#tags = tags;
    this.#values = values;
  }

  tag(name: string): string {
    const at = this.#tags.indexOf(name);
    return at < 0 ? '' : this.#values[at]!;
  }
}

/**
 * Undefined if totals were not requested, or a shard is as fast series by series. Shows the state
 * at the first slice.
 */
export function* scanTotals(
  shards: readonly LiveShard[],
  request: ScanRequest,
): Slices<SeriesScan | undefined> {
  const { totals: tags, measurement: name, filter, fields, summaries } = request;
  if (tags === undefined || request.descending || request.rowsPerSeries) return undefined;
  if (request.bounds !== undefined && request.bounds.length > 0) return undefined;
  const own = request.bypassesCaches === true ? newBlockCache() : undefined;
  const openings: Opening<ShardTotals | undefined>[] = [];
  const close = (): void => {
    for (const opening of openings) opening.close();
  };
  const opened: ShardTotals[] = [];
  let isOpen = false;
  try {
    for (const live of shards) {
      const range = live.clip(request.from, request.to);
      const measurement = live.shard.index.findMeasurement(name);
      if (range === undefined || measurement < 0) continue;
      const asked = { measurement, filter, ...range, fields, summaries, tags, own };
      openings.push(live.shard.totals(asked));
    }
    for (const opening of openings) {
      const totals = yield* opening.slices;
      if (totals === undefined) return undefined;
      opened.push(totals);
    }
    isOpen = true;
  } finally {
    // Also runs when the caller abandons the generator.
    if (!isOpen) close();
  }
  const fieldTypes: (FieldType | undefined)[] = fields.map(() => undefined);
  const groups = new Map<string, Group>();
  for (const totals of opened) {
    for (const [i, type] of totals.fieldTypes.entries()) fieldTypes[i] = type ?? fieldTypes[i];
    for (const [number, values] of totals.groups.entries()) {
      const key = values.join('\0');
      const group = groups.get(key) ?? new Group(tags, values);
      groups.set(key, group);
      group.parts.push({ totals, group: number });
    }
  }
  return {
    fieldTypes,
    series: [...groups.values()],
    seriesCount: opened.reduce((sum, { seriesCount }) => sum + seriesCount, 0),
    cursor: (of) => new GroupCursor((of as Group).parts),
    close,
  };
}

/** The first group that is asked does the work for all. */
class GroupCursor implements SeriesCursor {
  readonly #parts: readonly Part[];
  #part = 0;
  #summaries: Iterator<BlockSummary> | undefined;

  constructor(parts: readonly Part[]) {
    this.#parts = parts;
  }

  next(): SeriesRows | BlockSummary | undefined {
    for (;;) {
      const part = this.#parts[this.#part];
      if (part === undefined) return undefined;
      if (this.#summaries === undefined) {
        if (works(part.totals)) return notYet;
        this.#summaries = part.totals.summaries(part.group);
      }
      const step = this.#summaries.next();
      if (step.done !== true) return step.value;
      this.#summaries = undefined;
      this.#part++;
    }
  }
}

const notYet: SeriesRows = {
  kind: 'rows',
  base: 0,
  times: new Float64Array(0),
  count: 0,
  columns: [],
};

function works(totals: ShardTotals): boolean {
  try {
    return totals.work();
  } catch (error) {
    return refused(error);
  }
}
