// Common base of the big forms of map, set, ranked and array.

import type { Shape } from '../../universal-row/rows.ts';

/** Something dropped whole, to be freed in slices. */
export interface Detached {
  /** Bytes of its blocks in the arena. */
  bytes(): number;
  /**
   * Frees about `limit` blocks; true when nothing is left. The collection must no longer be read.
   */
  dismantle(limit: number): boolean;
}

export interface Collection extends Detached {
  readonly shape: Shape;
  readonly count: number;
  /** A snapshot is reading the collection. If the collection is dropped meanwhile, the snapshot frees it. */
  held: boolean;
  dropped: boolean;
  /** Blocks, used or not, that `compact` goes through. */
  readonly extent: number;
  /** Moves the blocks among [from, from + limit) that block a compaction. */
  compact(from: number, limit: number): void;
  /** Bytes of its typed arrays. */
  indexBytes(): number;
}
