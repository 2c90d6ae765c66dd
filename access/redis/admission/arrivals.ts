// Arrival times of the bytes that a client has sent and that have not been run yet. Positions count bytes from the start of
// the connection.

/** Bytes that arrive within this many milliseconds of each other count as one arrival. */
const togetherMs = 50;
/** Most arrival times kept. Later chunks then count as arrived with the last one kept. */
const maxChunks = 32;

interface Chunk {
  /** The position after its last byte. */
  end: number;
  /** Monotonic milliseconds. */
  at: number;
}

export class Arrivals {
  readonly #chunks: Chunk[] = [];

  /**
   * Records that bytes up to position `end` have arrived by `now`, and that bytes up to `done` have been run. New bytes
   * within 50 ms of the last chunk, or beyond 32 chunks, keep that chunk's earlier time.
   */
  note(done: number, end: number, now: number): void {
    while (this.#chunks.length > 0 && this.#chunks[0]!.end <= done) this.#chunks.shift();
    const last = this.#chunks.at(-1);
    if (last !== undefined && (now - last.at < togetherMs || this.#chunks.length >= maxChunks)) {
      last.end = end;
    } else this.#chunks.push({ end, at: now });
  }

  /** Arrival time of the byte before `position`, or of an earlier byte; undefined if it was not recorded. */
  at(position: number): number | undefined {
    return this.#chunks.find(({ end }) => end >= position)?.at;
  }
}
