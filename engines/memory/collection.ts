// What the big forms of map, set, ranked and array have in common.

import type { Shape } from '../../universal-row/rows.ts';

/** Something dropped whole, to be freed in slices. */
export interface Detached {
  /** Bytes of its blocks in the arena. */
  bytes(): number;
  /** Frees about `limit` blocks; true when nothing is left. Nobody else looks at it any more. */
  dismantle(limit: number): boolean;
}

export interface Collection extends Detached {
  readonly shape: Shape;
  readonly count: number;
  /** A snapshot still reads it: if it is dropped, the snapshot sees to its end. */
  held: boolean;
  dropped: boolean;
  /** Blocks, used or not, that `compact` goes through. */
  readonly extent: number;
  /** Moves those of blocks [from, from + limit) that are in the way of a compaction. */
  compact(from: number, limit: number): void;
  /** Bytes of its typed arrays. */
  indexBytes(): number;
}
