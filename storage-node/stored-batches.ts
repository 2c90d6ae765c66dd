// Batches of points that this replica knows to be stored, by their identities. A gateway that does not know whether a batch
// was stored gives it to the next leader. Stored once more it would overwrite points that others have written since, so that
// leader answers it with what its writer was answered.
//
// Entries of the log tell of the batches in them (StoredBatch). They are kept in memory, for a minute: what was stored before
// the replica was opened, or is older, is not known. A batch that may be one of these is not stored, and its client is told
// that the outcome is unknown.

import { OutcomeUnknownError, type WriteOutcome } from '../contracts/series-store.ts';
import type { StoredBatch } from '../engines/series-engine.ts';
import type { Clock } from '../universal-row/environment.ts';
import type { BatchIdentity } from '../universal-row/series/point-batch.ts';

/** Longer than any gateway tries. */
const keptMs = 60_000;
const mostBatches = 16_384;

interface Kept {
  readonly batch: StoredBatch;
  /** When its entry was applied here, as the clock's `monotonic`. */
  readonly at: number;
}

export class StoredBatches {
  readonly #clock: Clock;
  /** By identity, in the order of the log. */
  readonly #kept = new Map<string, Kept>();
  /** As the clock's `monotonic`: of batches that no leader was given before it is known whether they are stored. */
  #knownSince: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#knownSince = clock.monotonic();
  }

  get size(): number {
    return this.#kept.size;
  }

  add(batch: StoredBatch): void {
    this.#kept.set(batch.id, { batch, at: this.#clock.monotonic() });
    this.prune();
  }

  /** Drops what is too old, or too much. */
  prune(): void {
    const end = this.#clock.monotonic() - keptMs;
    for (const [id, { at }] of this.#kept) {
      if (at > end && this.#kept.size <= mostBatches) return;
      this.#kept.delete(id);
      this.#knownSince = Math.max(this.#knownSince, at);
    }
  }

  /** The state was replaced by that of another replica. */
  clear(): void {
    this.#kept.clear();
    this.#knownSince = this.#clock.monotonic();
  }

  /** Its outcome, if the batch is stored. Throws `OutcomeUnknownError` where that is not known. */
  find({ id, at }: BatchIdentity): WriteOutcome | undefined {
    const batch = this.#kept.get(id)?.batch;
    if (batch !== undefined) {
      return { written: batch.written, dropped: batch.dropped, error: batch.error };
    }
    if (at < this.#knownSince) throw new OutcomeUnknownError();
    return undefined;
  }
}
