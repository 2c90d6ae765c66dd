// A shard's state on disk: the manifest, and its image in memory. It changes in one way only: a
// manifest is written that names other files or deletions, and the state in memory follows when
// that has succeeded. So a failure changes nothing.

import { dirname } from 'node:path';
import { type SlicedWork, syncingDirectory } from '../sliced-work.ts';
import { LastRows } from './last-rows.ts';
import { readManifest, writingManifest } from './manifest.ts';
import type { ShardOptions } from './shard-types.ts';
import { fileName, removeOrphans } from './shard-files.ts';
import { StoredFile, type StoredHead } from './stored-points.ts';
import { hits, type TimeSpan, type Tombstone, Tombstones } from './tombstones.ts';

/** Contents of a new manifest. */
interface NextState {
  readonly files: readonly StoredFile[];
  readonly persistedIndex: number;
  /** A head that is not a file yet, and may be hit by tombstones. */
  readonly sealed: StoredHead | undefined;
}

export class ShardState {
  /** By age, the oldest first. */
  files: readonly StoredFile[] = [];
  tombstones = new Tombstones(0);
  /** Last rows of these files and tombstones. */
  lastRows = new LastRows();
  persistedIndex = 0;
  readonly #options: ShardOptions;
  #nextNumber = 1;
  /** Tombstone that the manifest on disk has last; -1 while there is no manifest. */
  #writtenTombstone = -1;

  /** Creates the directory, or opens the existing one. Throws `CorruptFileError`. */
  constructor(options: ShardOptions) {
    const { disk, directory } = options;
    this.#options = options;
    disk.makeDirectory(directory);
    const manifest = readManifest(disk, directory);
    const listed = manifest?.files ?? [];
    removeOrphans(disk, directory, new Set(listed.map(({ number }) => fileName(number))));
    if (manifest === undefined) return;
    this.persistedIndex = manifest.persistedIndex;
    this.#nextNumber = manifest.nextNumber;
    this.tombstones = new Tombstones(manifest.lastTombstone, manifest.tombstones);
    this.#writtenTombstone = manifest.lastTombstone;
    const files: StoredFile[] = [];
    this.files = files;
    try {
      for (const place of listed) {
        const file = options.parts.openFile(disk, this.pathOf(place.number));
        files.push(new StoredFile(disk, file, place));
      }
    } catch (error) {
      this.close();
      throw error;
    }
  }

  pathOf(file: number): string {
    return `${this.#options.directory}/${fileName(file)}`;
  }

  /** For a head or a file. Never the same again. */
  takeNumber(): number {
    return this.#nextNumber++;
  }

  /** Hits everything older than the head of this number. */
  addTombstone(head: number, series: Uint32Array, span: TimeSpan): void {
    const { from, to } = span;
    this.tombstones.add({ id: this.tombstones.lastId + 1, head, from, to, series });
    this.lastRows = new LastRows();
  }

  get hasNewTombstones(): boolean {
    return this.tombstones.lastId > Math.max(this.#writtenTombstone, 0);
  }

  /** A file may have points of the series in the range. */
  hasBlocks(series: number, { from, to }: TimeSpan): boolean {
    return this.files.some((stored) => {
      if (stored.file.maxTime < from || stored.file.minTime > to) return false;
      stored.borrower = undefined;
      return stored.file.blocks(series, from, to).length > 0;
    });
  }

  /** Before the first file is made: from now on files beside a missing manifest are damage. */
  *beginning(sealed: StoredHead | undefined): SlicedWork {
    if (this.#writtenTombstone >= 0) return;
    const { disk, directory } = this.#options;
    yield syncingDirectory(disk, dirname(directory));
    yield* this.committing({ files: this.files, persistedIndex: this.persistedIndex, sealed });
  }

  /**
   * Makes a state durable and then the one that counts; one at a time. Tombstones that hit nothing any more
   * go; those that are added meanwhile stay, for the next one to make durable.
   */
  *committing({ files, persistedIndex, sealed }: NextState): SlicedWork {
    const { lastId } = this.tombstones;
    const all = this.tombstones.all.slice();
    const tombstones = all.filter(
      (tombstone) =>
        files.some((file) => mayHit(tombstone, file)) ||
        (sealed !== undefined && hits(tombstone, sealed)),
    );
    const { disk, directory, startSeconds, logged } = this.#options;
    // A power cut must not take deletions from the log that these files and tombstones have.
    const isLogged = logged?.();
    if (isLogged !== undefined) yield isLogged;
    yield* writingManifest(disk, directory, {
      startSeconds,
      nextNumber: this.#nextNumber,
      persistedIndex,
      files: files.map(({ number, level, age, clearedTo }) => ({ number, level, age, clearedTo })),
      lastTombstone: lastId,
      tombstones,
    });
    this.files = files;
    this.persistedIndex = persistedIndex;
    this.#writtenTombstone = lastId;
    // Views continue reading the old ones.
    if (tombstones.length === all.length) return;
    const left = [...tombstones, ...this.tombstones.all.slice(all.length)];
    this.tombstones = new Tombstones(this.tombstones.lastId, left);
  }

  close(): void {
    for (const file of this.files) file.end();
  }
}

export function mayHit(tombstone: Tombstone, stored: StoredFile): boolean {
  const { file } = stored;
  return hits(tombstone, stored) && tombstone.from <= file.maxTime && file.minTime <= tombstone.to;
}
