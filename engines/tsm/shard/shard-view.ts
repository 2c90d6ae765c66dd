// The points of a shard as they are at one moment. It keeps alive what it reads, and does not see what comes
// or is deleted later.

import type { LastRows } from './last-rows.ts';
import type { HeadMark } from './shard.ts';
import type { ShardState } from './shard-state.ts';
import { FileSource, HeadSource, type Source, type Wanted } from './source.ts';
import type { StoredFile, StoredHead } from './stored-points.ts';
import { type Aged, hits, type TimeSpan, type Tombstone, type Tombstones } from './tombstones.ts';

export class ShardView {
  /** From the oldest to the newest. */
  readonly files: readonly StoredFile[];
  readonly #heads: readonly { stored: StoredHead; mark: HeadMark }[];
  readonly #tombstones: Tombstones;
  readonly #lastTombstone: number;
  /** Of the files as they are in this view. */
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

  /** Those of the series that may have something in the range. */
  touching(series: Uint32Array, from: number, to: number): Uint32Array {
    const files = this.files.map(({ file }) => file);
    const touches = (one: number): boolean =>
      files.some((file) => file.touches(one, from, to)) ||
      this.#heads.some(
        ({ stored: { head } }) => head.minTimeOf(one) <= to && head.maxTimeOf(one) >= from,
      );
    return series.filter(touches);
  }

  /** What has something of the series in the range, from the oldest to the newest. */
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
