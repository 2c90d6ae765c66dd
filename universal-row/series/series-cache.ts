// Series lately written, by number: a line's key is looked up once, and everything behind the parser
// deals in small integers.

export interface SeriesCache {
  /** Counts up when the cache is emptied and handles start again from 0. Never during a batch. */
  readonly generation: number;
  /** Handles are 0 to size - 1. */
  readonly size: number;
  /**
   * The series key of a handle: the bytes `keys[keyStart(handle) .. keyEnd(handle))`, measurement and
   * tags in the form of series-key.ts. `keys` may be another buffer after the next line is parsed.
   */
  keys(handle: number): Buffer;
  keyStart(handle: number): number;
  keyEnd(handle: number): number;
  /** The key's `keyedHash`. */
  keyHash(handle: number): number;
}
