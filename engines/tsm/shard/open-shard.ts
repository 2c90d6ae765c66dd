// The shard of shard.ts: its heads, and the work that makes files of them.

import type { Column } from '../../../universal-row/series/column.ts';
import { CorruptFileError, type HeadTexts, type SeriesIndex } from '../parts.ts';
import { finished, SlicedRun, type SlicedWork } from '../sliced-work.ts';
import { bytesOf, fullGroup, levelGroup } from './compaction-plan.ts';
import { exported, union, writeAll } from './all-rows.ts';
import { LastRows } from './last-rows.ts';
import { RowBuffer } from './row-buffer.ts';
import { SeriesMerge } from './series-merge.ts';
import type { Shard, ShardContents, ShardStats } from './shard.ts';
import type {
  Opening,
  ShardHead,
  ShardOptions,
  ShardScan,
  ShardScanRequest,
} from './shard-types.ts';
import { openScan } from './shard-scan.ts';
import { openTotals, type ShardTotals, type TotalsRequest } from './shard-totals.ts';
import { mayHit, ShardState } from './shard-state.ts';
import { ShardView } from './shard-view.ts';
import { allOf, fieldsWanted } from './source.ts';
import { StoredFile, StoredHead, type StoredPlace } from './stored-points.ts';
import { intersects, type Tombstone } from './tombstones.ts';

const defaultMaxFileBytes = 2 ** 31;
const defaultColdAfterMs = 5 * 60_000;
/** Beyond all times of a shard. */
const farTime = 2 ** 53;

interface Durably {
  readonly kind: 'flush' | 'persist' | 'compaction';
  readonly done: Promise<void>;
}

/**
 * Opens the shard in a directory, or creates one there. Throws `CorruptFileError` for damaged
 * files.
 */
export function openShard(options: ShardOptions): Shard {
  return new OpenShard(options);
}

class OpenShard implements Shard {
  readonly directory: string;
  readonly startSeconds: number;
  readonly index: SeriesIndex;
  appliedIndex = 0;
  readonly #options: ShardOptions;
  readonly #maxFileBytes: number;
  readonly #coldAfterMs: number;

  readonly #state: ShardState;
  #active: StoredHead;
  #sealed: StoredHead | undefined;
  #sealedIndex = 0;

  #flush: SlicedRun | undefined;
  /** The sealed head's file, undefined if it would be empty; set once that is written. */
  #flushed: { readonly file: StoredFile | undefined } | undefined;
  #compaction: SlicedRun | undefined;
  /** As for the flush. */
  #merged:
    | { readonly inputs: readonly StoredFile[]; readonly file: StoredFile | undefined }
    | undefined;
  #persist: SlicedRun | undefined;
  /** Persist in progress. */
  #durable: Durably | undefined;
  #wantsFull = false;
  /** Files in which no removed series was found, and how many were removed then. */
  #searched: { files: readonly StoredFile[]; removed: number } | undefined;

  #changedAt: number;
  #openViews = 0;
  #isClosed = false;
  #flushes = 0;
  #compactions = 0;

  constructor(options: ShardOptions) {
    const { disk, directory, parts } = options;
    this.#options = options;
    this.directory = directory;
    this.startSeconds = options.startSeconds;
    this.#maxFileBytes = options.maxFileBytes ?? defaultMaxFileBytes;
    this.#coldAfterMs = options.coldAfterMs ?? defaultColdAfterMs;
    this.#changedAt = options.clock.monotonic();
    this.#state = new ShardState(options);
    this.appliedIndex = this.#state.persistedIndex;
    try {
      this.index = parts.openIndex(disk, directory);
    } catch (error) {
      this.#state.close();
      throw error;
    }
    this.#active = this.#newHead();
  }

  // Writing

  get persistedIndex(): number {
    return this.#state.persistedIndex;
  }

  lowerPersisted(index: number): void {
    const state = this.#state;
    if (state.persistedIndex <= index) return;
    finished(state.committing({ files: state.files, persistedIndex: index, sealed: undefined }));
    this.appliedIndex = index;
  }

  get head(): ShardHead {
    return this.#active.head;
  }

  get headPoints(): number {
    return this.#active.head.points + (this.#sealed?.head.points ?? 0);
  }

  get headBytes(): number {
    return this.#active.head.bytes + (this.#sealed?.head.bytes ?? 0);
  }

  append(
    measurement: number,
    rows: number,
    series: Uint32Array,
    times: Float64Array,
    columns: readonly (Column | undefined)[],
    texts: HeadTexts,
  ): void {
    this.#active.head.append(measurement, rows, series, times, columns, texts);
    this.#changedAt = this.#options.clock.monotonic();
  }

  deleteRange(series: Uint32Array, from: number, to: number): Uint32Array {
    const sorted = Uint32Array.from(new Set(series)).sort();
    const span = { from: Math.max(from, -farTime), to: Math.min(to, farTime) };
    const { head } = this.#active;
    for (const number of sorted) if (head.has(number)) head.delete(number, span.from, span.to);
    const older = sorted.filter(
      (number) => this.#sealed?.head.has(number) || this.#state.hasBlocks(number, span),
    );
    if (older.length > 0) this.#state.addTombstone(this.#active.age, older, span);
    this.#changedAt = this.#options.clock.monotonic();
    const view = this.#view();
    try {
      return sorted.filter((number) => !this.#hasRows(view, number, -farTime, farTime));
    } finally {
      view.close();
    }
  }

  hasRows(series: number, from: number, to: number): boolean {
    const view = this.#view();
    try {
      return this.#hasRows(view, series, from, to);
    } finally {
      view.close();
    }
  }

  #hasRows(view: ShardView, series: number, from: number, to: number): boolean {
    const fields = fieldsWanted(this.index.fields(this.index.measurementOf(series)));
    const wanted = { ...allOf(fields), from, to, single: true };
    const options = { wanted, chunkRows: 1, bounds: [], base: 0 };
    try {
      const out = new RowBuffer(wanted.types);
      return new SeriesMerge(view.sources(series, wanted), options, out).next() !== undefined;
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return true;
    }
  }

  persist(): void {
    // The persist in progress may have begun before the changes to persist now.
    if (this.#persist !== undefined) this.persistSlice(Infinity);
    this.persistSlice(Infinity);
  }

  get isPersisting(): boolean {
    return this.#persist !== undefined;
  }

  persistSlice(budgetMs: number, blocks = true): boolean {
    this.#persist ??= new SlicedRun(() => this.#durably('persist', () => this.#persisting()));
    let more = false;
    try {
      more = this.#persist.slice(this.#options.clock, budgetMs, blocks);
    } finally {
      if (!more) this.#persist = undefined;
    }
    return more;
  }

  *#persisting(): SlicedWork {
    const isIdle = this.#active.head.rows === 0 && this.#sealed === undefined;
    // Changes after this moment may be missing from the index when that is written.
    const persistedIndex = isIdle ? this.appliedIndex : 0;
    // After an opening this also syncs the directory, with the manifest that was found there.
    yield* this.index.persisting(this.#options.logged?.());
    const state = this.#state;
    if (persistedIndex <= state.persistedIndex && !state.hasNewTombstones) return;
    yield* state.committing({
      files: state.files,
      persistedIndex: Math.max(persistedIndex, state.persistedIndex),
      sealed: this.#sealed,
    });
  }

  get waiting(): Promise<void> | undefined {
    return this.#flush?.waiting ?? this.#persist?.waiting ?? this.#compaction?.waiting;
  }

  /** Runs durable work exclusively: flushes and persists write the same files. */
  *#durably(kind: Durably['kind'], work: () => SlicedWork): SlicedWork {
    while (this.#durable !== undefined) {
      const { done } = this.#durable;
      yield { now: () => this.#finishDurable(), later: () => done, isRepeatable: true };
    }
    let end = (): void => {};
    const done = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#durable = { kind, done };
    try {
      yield* work();
    } finally {
      this.#durable = undefined;
      end();
    }
  }

  /** Finishes the persist in progress at once, for a caller that blocks. */
  #finishDurable(): void {
    for (;;) {
      const kind = this.#durable?.kind;
      if (kind === undefined) return;
      if (kind === 'flush') this.flushSlice(0);
      else if (kind === 'persist') this.persistSlice(0);
      else this.compactSlice(0);
    }
  }

  // Flushing

  get isFlushing(): boolean {
    return this.#sealed !== undefined;
  }

  sealHead(): boolean {
    if (this.#sealed !== undefined || this.#active.head.rows === 0) return false;
    this.#sealed = this.#active;
    this.#sealed.sealedAt = this.#sealed.head.mark();
    this.#sealedIndex = this.appliedIndex;
    this.#active = this.#newHead();
    return true;
  }

  flushSlice(budgetMs: number, blocks = true): boolean {
    if (this.#sealed === undefined) return false;
    const sealed = this.#sealed;
    this.#flush ??= new SlicedRun(() => this.#flushHead(sealed));
    let more = false;
    try {
      more = this.#flush.slice(this.#options.clock, budgetMs, blocks);
    } finally {
      if (!more) this.#flush = undefined;
    }
    return more;
  }

  *#flushHead(sealed: StoredHead): SlicedWork {
    if (this.#flushed === undefined) {
      const place = { number: sealed.age, level: 0, age: sealed.age };
      const series = sealed.head.series();
      this.#flushed = { file: yield* this.#writeFile('flush', place, [], [sealed], series) };
    }
    yield* this.#durably('flush', () => this.#commitFlush(sealed));
  }

  *#commitFlush(sealed: StoredHead): SlicedWork {
    yield* this.index.persisting(this.#options.logged?.());
    const { file } = this.#flushed!;
    const state = this.#state;
    const files = file === undefined ? state.files : [...state.files, file];
    yield* state.committing({ files, persistedIndex: this.#sealedIndex, sealed: undefined });
    state.lastRows = new LastRows();
    this.#flushed = undefined;
    this.#sealed = undefined;
    sealed.end();
    this.#flushes++;
  }

  // Compaction

  get pendingCompactionBytes(): number {
    return bytesOf(levelGroup(this.#state.files, this.#maxFileBytes));
  }

  compactSlice(budgetMs: number, blocks = true): boolean {
    if (this.#compaction === undefined) {
      const inputs = this.#merged?.inputs ?? this.#nextGroup();
      if (inputs.length === 0) return false;
      this.#compaction = new SlicedRun(() => this.#compact(inputs));
    }
    let more = false;
    try {
      more = this.#compaction.slice(this.#options.clock, budgetMs, blocks);
    } finally {
      if (!more) this.#compaction = undefined;
    }
    return more || this.#nextGroup().length > 0;
  }

  compactFully(): void {
    this.#wantsFull = true;
  }

  #nextGroup(): StoredFile[] {
    const idleMs = this.#options.clock.monotonic() - this.#changedAt;
    if (this.#wantsFull || idleMs >= this.#coldAfterMs) {
      const removed = this.#removedSeries();
      const group = fullGroup(this.#state.files, this.#maxFileBytes, (file) =>
        this.#hasDeleted(file, removed),
      );
      if (group.length > 0) return group;
      this.#searched = { files: this.#state.files, removed };
      this.#wantsFull = false;
    }
    return levelGroup(this.#state.files, this.#maxFileBytes);
  }

  *#compact(inputs: readonly StoredFile[]): SlicedWork {
    if (this.#merged === undefined) {
      const level = Math.max(...inputs.map((file) => file.level)) + (inputs.length > 1 ? 1 : 0);
      const place = { number: this.#state.takeNumber(), level, age: inputs.at(-1)!.age };
      const series = union(inputs.map(({ file }) => file.series));
      const file = yield* this.#writeFile('compaction', place, inputs, [], series);
      this.#merged = { inputs, file };
    }
    yield* this.#durably('compaction', () => this.#commitCompaction(inputs));
  }

  *#commitCompaction(inputs: readonly StoredFile[]): SlicedWork {
    const { file } = this.#merged!;
    const state = this.#state;
    const files = state.files.flatMap((old) => {
      if (old === inputs[0]) return file === undefined ? [] : [file];
      return inputs.includes(old) ? [] : [old];
    });
    const { persistedIndex } = state;
    yield* state.committing({ files, persistedIndex, sealed: this.#sealed });
    this.#merged = undefined;
    for (const input of inputs) input.replace();
    this.#compactions++;
  }

  // Reading

  scan(request: ShardScanRequest): Opening<ShardScan> {
    const view = this.#view();
    const slices = openScan(view, this.index, this.startSeconds, request);
    return { slices, close: () => view.close() };
  }

  totals(request: TotalsRequest): Opening<ShardTotals | undefined> {
    const view = this.#view();
    const slices = openTotals(view, this.index, this.startSeconds, request);
    return { slices, close: () => view.close() };
  }

  export(): ShardContents {
    const { seriesCount } = this.index;
    const live: number[] = [];
    for (let series = 0; series < seriesCount; series++) {
      if (!this.index.isRemoved(series)) live.push(series);
    }
    return { seriesCount, live, rows: exported(this.#view(), this.index, live) };
  }

  stats(): ShardStats {
    return {
      files: this.#state.files.length,
      diskBytes: bytesOf(this.#state.files),
      headPoints: this.headPoints,
      headBytes: this.headBytes,
      indexBytes: this.index.bytes,
      pendingCompactionBytes: this.pendingCompactionBytes,
      tombstones: this.#state.tombstones.all.length,
      flushes: this.#flushes,
      compactions: this.#compactions,
    };
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#flush?.end();
    this.#persist?.end();
    this.#compaction?.end();
    // A manifest may name them, if writing it failed at the very end: they stay.
    this.#flushed?.file?.end();
    this.#merged?.file?.end();
    this.#state.close();
    this.#active.end();
    this.#sealed?.end();
    if (this.#openViews === 0) this.index.close();
  }

  /** Undefined when there is no row to write. If it throws, no manifest names its partial file. */
  *#writeFile(
    kind: Durably['kind'],
    place: Omit<StoredPlace, 'clearedTo'>,
    files: readonly StoredFile[],
    heads: readonly StoredHead[],
    series: Iterable<number>,
  ): SlicedWork<StoredFile | undefined> {
    const { disk, parts } = this.#options;
    yield* this.#durably(kind, () => this.#state.beginning(this.#sealed));
    const path = this.#state.pathOf(place.number);
    const { tombstones, lastRows } = this.#state;
    const writer = parts.createFile(disk, path);
    const view = new ShardView({ files, tombstones, lastRows }, heads);
    const clearedTo = tombstones.lastId;
    let isFinished = false;
    try {
      const rows = yield* writeAll(view, this.index, series, writer);
      if (rows === 0) return undefined;
      yield* writer.finishing();
      const file = parts.openFile(disk, path);
      isFinished = true;
      return new StoredFile(disk, file, { ...place, clearedTo });
    } finally {
      view.close();
      if (!isFinished) quietly(() => writer.abandon());
    }
  }

  #view(): ShardView {
    this.#openViews++;
    const heads = this.#sealed === undefined ? [this.#active] : [this.#sealed, this.#active];
    return new ShardView(this.#state, heads, () => {
      this.#openViews--;
      if (this.#isClosed && this.#openViews === 0) this.index.close();
    });
  }

  #newHead(): StoredHead {
    return new StoredHead(this.#options.parts.createHead(), this.#state.takeNumber());
  }

  /** Some of the file's rows are deleted, or their series removed. */
  #hasDeleted(file: StoredFile, removed: number): boolean {
    const touches = (tombstone: Tombstone): boolean =>
      mayHit(tombstone, file) && intersects(tombstone.series, file.file.series);
    if (this.#state.tombstones.all.some(touches)) return true;
    if (removed === 0) return false;
    if (this.#searched?.removed === removed && this.#searched.files.includes(file)) return false;
    return file.file.series.some((series) => this.index.isRemoved(series));
  }

  #removedSeries(): number {
    let live = 0;
    for (let measurement = 0; measurement < this.index.measurementCount; measurement++) {
      live += this.index.liveSeriesOf(measurement);
    }
    return this.index.seriesCount - live;
  }
}

/** A damaged file or a failing disk: its contents are unknown. */
function isUnreadable(error: unknown): boolean {
  return error instanceof CorruptFileError || (error instanceof Error && 'code' in error);
}

function quietly(action: () => void): void {
  try {
    action();
  } catch {
    // An earlier failure is reported instead.
  }
}
