// Batches of points that this replica knows to be stored, by their identities. A gateway that does not know whether a batch
// was stored gives it to the next leader. Stored once more it would overwrite points that others have written since, so that
// leader answers it with what its writer was answered.
//
// Entries of the log tell of the batches in them (StoredBatch). They are kept in memory, for a minute: what was stored before
// the replica was opened, or is older, is not known. A batch that may be one of these is not stored, and its client is told
// that the outcome is unknown. So is one of which only some rows are stored, as the gateway may cut a body at other rows in
// its next attempt.

import { OutcomeUnknownError, type WriteOutcome } from '../contracts/series-store.ts';
import type { StoredBatch } from '../engines/series-engine.ts';
import type { Clock } from '../universal-row/environment.ts';
import {
  type BatchIdentity,
  type BatchRows,
  readBatchId,
  type Rows,
} from '../universal-row/series/batch-identity.ts';

/** Longer than any gateway tries. */
const keptMs = 60_000;
const mostBatches = 16_384;
/** The age of a batch does not include its time on the link, which is less as a rule: silent links end after 1.7 s. */
export const transitMs = 2000;

interface Kept {
  readonly rows: BatchRows;
  readonly batch: StoredBatch;
  /** When its entry was applied here, as the clock's `monotonic`. */
  readonly at: number;
}

export class StoredBatches {
  readonly #clock: Clock;
  /** In the order of the log. */
  readonly #kept = new Set<Kept>();
  readonly #byBody = new Map<string, Kept[]>();
  /** As the clock's `monotonic`: of batches that no leader was given before it is known whether they are stored. */
  #knownSince: number;
  /** Since when the replica has the state that it has. */
  #openedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#openedAt = this.#knownSince = clock.monotonic();
  }

  get size(): number {
    return this.#kept.size;
  }

  add(batch: StoredBatch): void {
    const rows = readBatchId(batch.id);
    const kept = { rows, batch, at: this.#clock.monotonic() };
    this.#kept.add(kept);
    const ofBody = this.#byBody.get(rows.body);
    if (ofBody === undefined) this.#byBody.set(rows.body, [kept]);
    else ofBody.push(kept);
    this.prune();
  }

  /** Drops what is too old, or too much. */
  prune(): void {
    const end = this.#clock.monotonic() - keptMs;
    for (const kept of this.#kept) {
      if (kept.at > end && this.#kept.size <= mostBatches) return;
      this.#kept.delete(kept);
      const { body } = kept.rows;
      const ofBody = this.#byBody.get(body)!;
      // It is the oldest of its body, too.
      if (ofBody.length > 1) ofBody.shift();
      else this.#byBody.delete(body);
      this.#knownSince = Math.max(this.#knownSince, kept.at);
    }
  }

  /** The state was replaced by that of another replica. */
  clear(): void {
    this.#kept.clear();
    this.#byBody.clear();
    this.#openedAt = this.#knownSince = this.#clock.monotonic();
  }

  /** Its outcome, if the batch is stored. Throws `OutcomeUnknownError` where that is not known. */
  find({ id, at, isRepeated }: BatchIdentity): WriteOutcome | undefined {
    const wanted = readBatchId(id);
    const ofBody = this.#byBody.get(wanted.body) ?? [];
    const stored = coverage(ofBody, wanted);
    if (stored === 'all') return outcomeOf(ofBody, wanted);
    // One that was given to no other leader may have been, since it came here.
    const mayBeForgotten = at < (isRepeated ? this.#knownSince + transitMs : this.#openedAt);
    if (stored === 'some' || mayBeForgotten) throw new OutcomeUnknownError(true);
    return undefined;
  }
}

type Coverage = 'all' | 'some' | 'none';

/**
 * How many of the wanted rows are stored. Parts of a batch are only compared with parts of the same batch, and with the batch as
 * a whole: their rows are in another order than the body's.
 */
function coverage(ofBody: readonly Kept[], wanted: BatchRows): Coverage {
  const near = ofBody.filter(({ rows }) => rows.from < wanted.to && wanted.from < rows.to);
  if (near.length === 0) return 'none';
  const isPartOfWanted = ({ rows }: Kept): boolean =>
    rows.part !== undefined && rows.from === wanted.from && rows.to === wanted.to;
  const parts = near.filter(isPartOfWanted).map(({ rows }) => rows.part!);
  if (parts.length === near.length) {
    return covered(parts, wanted.part ?? { from: 0, to: parts[0]!.of });
  }
  const whole = near.filter(({ rows }) => rows.part === undefined);
  return covered(
    whole.map(({ rows }) => rows),
    wanted,
  ) === 'all'
    ? 'all'
    : 'some';
}

function covered(ranges: readonly Rows[], { from, to }: Rows): Coverage {
  let reached = from;
  let isNear = false;
  for (const range of ranges.toSorted((a, b) => a.from - b.from)) {
    if (range.to <= from || range.from >= to) continue;
    isNear = true;
    if (range.from > reached) break;
    reached = Math.max(reached, range.to);
  }
  if (!isNear) return 'none';
  return reached >= to ? 'all' : 'some';
}

/** Each stored batch counts with the wanted rows that include its first one, so all rows of a body count it once. */
function outcomeOf(ofBody: readonly Kept[], wanted: BatchRows): WriteOutcome {
  const outcome: WriteOutcome = { written: 0, dropped: 0, error: undefined };
  for (const { rows, batch } of ofBody) {
    if (!hasFirstOf(wanted, rows)) continue;
    outcome.written += batch.written;
    outcome.dropped += batch.dropped;
    outcome.error ??= batch.error;
  }
  return outcome;
}

function hasFirstOf({ from, to, part }: BatchRows, rows: BatchRows): boolean {
  if (rows.from < from || rows.from >= to) return false;
  const first = rows.part?.from ?? 0;
  return part === undefined || (first >= part.from && first < part.to);
}
