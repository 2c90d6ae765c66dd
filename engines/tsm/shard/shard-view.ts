// The points of a shard as they are at one moment. It keeps the files and heads it reads alive, and
// does not see later writes or deletions.

import type { LastRows } from './last-rows.ts';
import type { HeadMark } from './shard-types.ts';
import type { ShardState } from './shard-state.ts';
import { FileSource, HeadSource, type Source, type Wanted } from './source.ts';
import type { StoredFile, StoredHead } from './stored-points.ts';
import { type Aged, hits, type TimeSpan, type Tombstone, type Tombstones } from './tombstones.ts';

// Looking a series up in a file costs as much as passing by so many.
const seriesPerSearch = 64;

export class ShardView {
  /** From the oldest to the newest. */
  readonly files: readonly StoredFile[];
  readonly #heads: readonly { stored: StoredHead; mark: HeadMark }[];
  readonly #tombstones: Tombstones;
  readonly #lastTombstone: number;
  /** Last rows of the files in this view. */
  readonly lastRows: LastRows;
  /** No row of a file is later. */
  readonly lastInFiles: number;
  readonly #onClose: () => void;
  #isClosed = false;

  /** Files and `heads` are copied; the heads come from the oldest to the newest too. */
  constructor(
    state: Pick<ShardState, 'files' | 'tombstones' | 'lastRows'>,
    heads: readonly StoredHead[],
    onClose: () => void = () => {},
  ) {
    this.files = state.files.slice();
    this.#heads = heads.map((stored) => ({
      stored,
      mark: stored.sealedAt ?? stored.head.mark(),
    }));
    this.#tombstones = state.tombstones;
    this.#lastTombstone = state.tombstones.lastId;
    this.lastRows = state.lastRows;
    this.lastInFiles = Math.max(...this.files.map(({ file }) => file.maxTime));
    this.#onClose = onClose;
    for (const file of this.files) file.hold();
    for (const { stored } of this.#heads) stored.hold();
  }

  /** A test for series that may have something in the range, to be put to so many of `all` there are. */
  toucher(from: number, to: number, count: number, all: number): (series: number) => boolean {
    const files = this.files
      .map(({ file }) => file)
      .filter((file) => file.minTime <= to && file.maxTime >= from);
    const inFiles = files.reduce((sum, file) => sum + file.series.length, 0);
    if (count * seriesPerSearch >= inFiles) {
      const sources = this.sourceCounts(from, to, all);
      return (one) => sources[one]! > 0;
    }
    return (one) => {
      for (const file of files) if (file.touches(one, from, to)) return true;
      return this.#headsTouching(one, from, to) > 0;
    };
  }

  /** By number of a series, below `all`: how many files and heads may have something of it in the range. */
  sourceCounts(from: number, to: number, all: number): Uint16Array {
    const counts = new Uint16Array(all);
    for (const { file } of this.files) {
      if (file.minTime <= to && file.maxTime >= from) file.countTouched(from, to, counts);
    }
    if (this.#heads.every(({ stored }) => stored.head.rows === 0)) return counts;
    for (let one = 0; one < all; one++) counts[one]! += this.#headsTouching(one, from, to);
    return counts;
  }

  /** Something is deleted that files or sealed heads still have. */
  get hasTombstones(): boolean {
    return this.#tombstones.all.length > 0;
  }

  #headsTouching(series: number, from: number, to: number): number {
    let count = 0;
    for (const { stored } of this.#heads) {
      const { head } = stored;
      if (head.rows > 0 && head.minTimeOf(series) <= to && head.maxTimeOf(series) >= from) count++;
    }
    return count;
  }

  /** Sources with rows of the series in the range, oldest first. */
  sources(series: number, wanted: Wanted): Source[] {
    const sources = this.fileSources(series, wanted);
    for (const source of this.headSources(series, wanted)) sources.push(source);
    return sources;
  }

  fileSources(series: number, wanted: Wanted): Source[] {
    const { from, to } = wanted;
    const sources: Source[] = [];
    const tombstones = this.#tombstonesOf(series);
    for (const stored of this.files) {
      const { file } = stored;
      if (file.maxTime < from || file.minTime > to) continue;
      stored.borrower = undefined;
      const blocks = file.blocks(series, from, to);
      if (blocks.length === 0) continue;
      const hidden = hiddenSpans(tombstones, stored);
      sources.push(new FileSource(series, wanted, hidden, stored, blocks));
    }
    return sources;
  }

  headSources(series: number, wanted: Wanted): Source[] {
    const sources: Source[] = [];
    for (const { stored, mark } of this.#heads) {
      stored.borrower = undefined;
      const bounds = { from: stored.head.minTimeOf(series), to: stored.head.maxTimeOf(series) };
      if (bounds.to < wanted.from || bounds.from > wanted.to) continue;
      const hidden = hiddenSpans(this.#tombstonesOf(series), stored);
      sources.push(new HeadSource(series, wanted, hidden, stored, mark, bounds));
    }
    return sources;
  }

  /** No row of a head is later. */
  lastInHeads(series: number): number {
    let last = -Infinity;
    for (const { stored } of this.#heads) last = Math.max(last, stored.head.maxTimeOf(series));
    return last;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const file of this.files) file.release();
    for (const { stored } of this.#heads) stored.release();
    this.#onClose();
  }

  #tombstonesOf(series: number): readonly Tombstone[] {
    return this.#tombstones.of(series, this.#lastTombstone);
  }
}

const nothingHidden: readonly TimeSpan[] = [];

function hiddenSpans(tombstones: readonly Tombstone[], target: Aged): readonly TimeSpan[] {
  if (tombstones.length === 0) return nothingHidden;
  return tombstones.filter((tombstone) => hits(tombstone, target));
}
