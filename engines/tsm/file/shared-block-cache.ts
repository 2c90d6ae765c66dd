// Blocks shared by many series, decoded: a scan that reads those series one after another, in any
// order, decodes each block once. One LRU cache serves all files.

import { Eldest } from '../../../universal-row/eldest.ts';
import type { Column } from '../../../universal-row/series/column.ts';
import type { BlockCache } from '../parts.ts';
import type { Runs } from './directory.ts';

export interface SharedBlock {
  readonly runs: Runs;
  readonly times: Float64Array;
  /** By field number, for the requested fields; undefined if the block lacks the field. */
  readonly columns: Map<number, Column | undefined>;
  /** Memory used, approximate. */
  bytes: number;
}

const defaultBytes = 32 * 1024 * 1024;

export class SharedBlockCache implements BlockCache {
  readonly #limit: number;
  readonly #files = new Map<number, Map<number, SharedBlock>>();
  /** Blocks of `#files`, least recently used first. */
  readonly #order = new Map<SharedBlock, { file: number; block: number }>();
  readonly #eldest = new Eldest(this.#order);
  #bytes = 0;
  #nextFile = 0;

  constructor(limitBytes: number = defaultBytes) {
    this.#limit = limitBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A name for a file's blocks. */
  addFile(): number {
    return this.#nextFile++;
  }

  get(file: number, block: number): SharedBlock | undefined {
    const found = this.#files.get(file)?.get(block);
    if (found !== undefined) this.#touch(found, file, block);
    return found;
  }

  /** Like `get`, without marking the block as used. */
  peek(file: number, block: number): SharedBlock | undefined {
    return this.#files.get(file)?.get(block);
  }

  put(file: number, block: number, contents: SharedBlock): void {
    let blocks = this.#files.get(file);
    if (blocks === undefined) {
      blocks = new Map();
      this.#files.set(file, blocks);
    }
    blocks.set(block, contents);
    this.#bytes += contents.bytes;
    this.#touch(contents, file, block);
    this.#evict();
  }

  /** A block in the cache has more columns than before. */
  grow(contents: SharedBlock, bytes: number): void {
    contents.bytes += bytes;
    // The block may have been evicted since it was returned.
    if (!this.#order.has(contents)) return;
    this.#bytes += bytes;
    this.#evict();
  }

  dropFile(file: number): void {
    for (const contents of this.#files.get(file)?.values() ?? []) {
      this.#order.delete(contents);
      this.#bytes -= contents.bytes;
    }
    this.#files.delete(file);
  }

  #touch(contents: SharedBlock, file: number, block: number): void {
    const place = this.#order.get(contents) ?? { file, block };
    this.#order.delete(contents);
    this.#order.set(contents, place);
  }

  #evict(): void {
    while (this.#bytes > this.#limit && this.#order.size > 0) {
      const [contents, { file, block }] = this.#eldest.take()!;
      this.#files.get(file)?.delete(block);
      this.#bytes -= contents.bytes;
    }
  }
}

/** For files that are given none. */
export const commonSharedBlocks = new SharedBlockCache();

/** For one scan that is to leave nothing behind. Blocks are found in it by the names their files have. */
export function newBlockCache(): BlockCache {
  return new SharedBlockCache();
}
