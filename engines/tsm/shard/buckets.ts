// The buckets of a GROUP BY time, in a shard's own times.

const nanosPerSecond = 1_000_000_000n;

export class Buckets {
  readonly #width: number;
  /** Where some bucket begins. */
  readonly #offset: number;

  /** As the request has them, in nanoseconds since 1970. A width of 0 is one bucket for all. */
  constructor(width: bigint, offset: bigint, startSeconds: number) {
    const start = BigInt(startSeconds) * nanosPerSecond;
    let phase = width === 0n ? 0n : (offset - start) % width;
    if (phase < 0n) phase += width;
    // Beyond 2^53 these are rounded, but then beyond the shard's end too.
    this.#width = width === 0n ? Infinity : Number(width);
    this.#offset = Number(phase);
  }

  /** Both times, the earlier one first, are in one bucket. */
  isOne(from: number, to: number): boolean {
    if (this.#width === Infinity) return true;
    if (to - from >= this.#width) return false;
    return this.#into(from) <= this.#into(to);
  }

  /** Where the bucket of a time begins. */
  startOf(time: number): number {
    return time - this.#into(time);
  }

  /** How far into its bucket a time is. */
  #into(time: number): number {
    const rest = (time - this.#offset) % this.#width;
    return rest < 0 ? rest + this.#width : rest;
  }
}
