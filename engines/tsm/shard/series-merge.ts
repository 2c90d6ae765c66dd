// One series out of several sources, in the order of time: runs of rows that no other source touches are
// passed on whole, or not read at all when their summary does; rows of one time are laid over each other.

import type { BlockSummary, ColumnSummary, Scalar } from '../../../universal-row/series/column.ts';
import type { Block } from '../parts.ts';
import type { Buckets } from './buckets.ts';
import { RowBuffer } from './row-buffer.ts';
import type { Source, Wanted } from './source.ts';

/** As `ValueBound`, of a column wanted. */
interface ColumnBound {
  readonly column: number;
  readonly op: '>' | '>=' | '<' | '<=' | '=';
  readonly value: number;
}

export interface MergeOptions {
  readonly wanted: Wanted;
  /** Rows come so many at a time; 1 where a single one is wanted. */
  readonly chunkRows: number;
  /** Blocks within one of these may come as summaries. */
  readonly buckets?: Buckets | undefined;
  readonly bounds: readonly ColumnBound[];
  /** Unix seconds, for the summaries. */
  readonly base: number;
}

type Columns = readonly (ColumnSummary | undefined)[];

export class SeriesMerge {
  readonly #sources: readonly Source[];
  readonly #options: MergeOptions;
  readonly #out: RowBuffer;
  /** Nearest time of the other sources, as `Source.near`. */
  #limit = Infinity;
  #isDone = false;

  /** Sources from the oldest to the newest: the later one wins. `out` is for the rows. */
  constructor(sources: readonly Source[], options: MergeOptions, out: RowBuffer) {
    this.#sources = sources;
    this.#options = options;
    this.#out = out;
  }

  /** Rows, in `out`, until the next call; or a summary in their place; undefined at the end. */
  next(): RowBuffer | BlockSummary | undefined {
    const out = this.#out;
    out.clear();
    if (this.#isDone) return undefined;
    while (out.count < this.#options.chunkRows) {
      const source = this.#nearest();
      if (source === undefined) break;
      if (source.rows !== undefined) {
        this.#take(source);
        continue;
      }
      const { block } = source;
      if (block === undefined || !this.#isAlone(source)) {
        source.load();
        continue;
      }
      const columns = this.#usesSummaries ? source.summary() : undefined;
      if (columns === undefined) source.load();
      else if (this.#isOutOfBounds(columns)) source.skip();
      else if (this.#options.wanted.single) this.#takeEdge(source, block, columns);
      else {
        const summary = this.#summaryOf(block, columns);
        if (summary === undefined) source.load();
        else {
          // Rows before it are returned first.
          if (out.count > 0) return out;
          source.skip();
          if (summary.count > 0) return summary;
        }
      }
    }
    this.#isDone = out.count === 0 || this.#options.wanted.single;
    return out.count > 0 ? out : undefined;
  }

  get #usesSummaries(): boolean {
    const { buckets, bounds, wanted } = this.#options;
    return buckets !== undefined || bounds.length > 0 || wanted.single;
  }

  #nearest(): Source | undefined {
    let nearest: Source | undefined;
    let near = Infinity;
    let limit = Infinity;
    for (const source of this.#sources) {
      if (source.near < near) {
        limit = near;
        near = source.near;
        nearest = source;
      } else if (source.near < limit) limit = source.near;
    }
    this.#limit = limit;
    return nearest;
  }

  /** Nothing of the other sources can be among the rows of its block, or only its first row matters. */
  #isAlone(source: Source): boolean {
    return (this.#options.wanted.single ? source.near : source.far) < this.#limit;
  }

  #take(source: Source): void {
    const out = this.#out;
    const alone = source.before(this.#limit);
    if (alone === 0) {
      this.#takeShared(source.near);
      return;
    }
    const n = Math.min(alone, this.#options.chunkRows - out.count);
    const rows = source.held();
    const { descending } = this.#options.wanted;
    const lo = descending ? source.hi - n : source.lo;
    out.append(rows, lo, lo + n, descending);
    source.drop(n);
  }

  /** The row of a time that more than one source may have. */
  #takeShared(near: number): void {
    let known = true;
    for (const source of this.#sources) {
      if (source.near !== near || source.rows !== undefined) continue;
      source.load();
      known = false;
    }
    // The rows read may begin later than possible.
    if (!known) return;
    const out = this.#out;
    out.appendRow(this.#options.wanted.descending ? -near : near);
    for (const source of this.#sources) {
      if (source.near !== near) continue;
      const rows = source.held();
      out.overlay(rows, source.row);
      source.drop(1);
    }
  }

  /** The nearest row of a block, if its summary tells all of it. */
  #takeEdge(source: Source, block: Block, columns: Columns): void {
    const { descending } = this.#options.wanted;
    const time = descending ? block.maxTime : block.minTime;
    const isAtEdge = (column: ColumnSummary | undefined): boolean =>
      column !== undefined && (descending ? column.lastTime : column.firstTime) === time;
    if (!columns.some(isAtEdge)) {
      source.load();
      return;
    }
    const out = this.#out;
    out.appendRow(time);
    for (let c = 0; c < columns.length; c++) {
      const column = columns[c];
      if (isAtEdge(column)) out.set(c, descending ? column!.last : column!.first);
    }
  }

  #isOutOfBounds(columns: Columns): boolean {
    return this.#options.bounds.some(({ column, op, value }) => {
      const summary = columns[column];
      // The row must have the field to meet the bound.
      if (summary === undefined) return true;
      const { min, max, type } = summary;
      if (type === 'boolean' || !isNumber(min) || !isNumber(max)) return false;
      switch (op) {
        case '>':
          return max <= value;
        case '>=':
          return max < value;
        case '<':
          return min >= value;
        case '<=':
          return min > value;
        case '=':
          return max < value || min > value;
      }
    });
  }

  /** Summary of the rows that have one of the fields; undefined when it is unknown. */
  #summaryOf(block: Block, columns: Columns): BlockSummary | undefined {
    const { buckets, base } = this.#options;
    if (buckets === undefined || !buckets.isOne(block.minTime, block.maxTime)) return undefined;
    const kind = 'summary';
    if (columns.some((column) => column?.count === block.count)) {
      const { minTime, maxTime, count } = block;
      return { kind, base, minTime, maxTime, count, columns };
    }
    const [only, ...more] = columns.filter((column) => column !== undefined);
    if (only === undefined) return { kind, base, minTime: 0, maxTime: 0, count: 0, columns };
    if (more.length > 0) return undefined;
    const { firstTime: minTime, lastTime: maxTime, count } = only;
    return { kind, base, minTime, maxTime, count, columns };
  }
}

function isNumber(value: Scalar | undefined): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}
