// Retention of a group's log: until the state is durable, for followers that are behind, for
// snapshots being sent, and for readers. Requests checkpoints that release it.

import type { Entry } from '../engine/frames.ts';
import type { EntryApplier } from './entry-applier.ts';
import { hasPayload, splitProposals } from './entry-reference.ts';
import type { LoggedEntry } from './frames-to-log.ts';
import type { GroupLog } from './group-log.ts';
import type { LogPosition } from './log-position.ts';
import type { RaftGroupParts } from './raft-group-parts.ts';
import type { SoleVoter } from './sole-voter.ts';

interface KeptLogParts {
  group: RaftGroupParts;
  applier: EntryApplier;
  log: GroupLog;
  sole: SoleVoter;
  /** Oldest snapshot being sent; Infinity for none. */
  oldestSnapshot: () => number;
}

/** After so long a checkpoint that was asked for is taken for failed. */
const checkpointTicks = 1200;

export class KeptLog {
  /** Entries after it stay in the log, for `readBack`. */
  keepAfter = Infinity;
  readonly #p: KeptLogParts;
  #durableIndex: number;
  /** In ticks of the pod; -Infinity where none is waited for. */
  #checkpointAskedAt = -Infinity;
  #closed = false;

  constructor(parts: KeptLogParts) {
    this.#p = parts;
    this.#durableIndex = parts.group.machine.durableIndex;
  }

  close(): void {
    this.#closed = true;
  }

  /** The state of a snapshot has replaced the old one. */
  installed(index: number): void {
    this.#durableIndex = index;
    this.#checkpointAskedAt = -Infinity;
  }

  stateIsDurable(index: number): void {
    this.#checkpointAskedAt = -Infinity;
    this.#durableIndex = Math.max(this.#durableIndex, index);
    this.#releaseUpTo(this.#durableIndex - this.#p.group.limits.keptEntries);
  }

  release(): void {
    this.#releaseUpTo(this.#durableIndex);
  }

  checkpointToRelease(): boolean {
    return this.#durableIndex < this.#p.applier.index && this.#askForCheckpoint();
  }

  checkpointIfDue(): void {
    const since = this.#p.applier.index - this.#durableIndex;
    if (since >= this.#p.group.limits.checkpointEntries) this.#askForCheckpoint();
  }

  async *readBack(
    after: number,
    to: number,
  ): AsyncGenerator<{ index: number; proposals: Uint8Array[] }> {
    for (let index = after + 1; index <= to; index++) {
      const entry = this.#entryAt(index);
      if (!hasPayload(entry)) continue;
      const payload = this.#p.group.payloads.get(index, entry.term, entry.data);
      yield { index, proposals: splitProposals(payload) };
      await new Promise(setImmediate);
    }
  }

  /**
   * Entries on disk, with the positions of their payloads. Ends before the first entry that another entry may replace
   * on disk.
   */
  storedEntries(): LoggedEntry[] {
    const { engine, handle, payloads } = this.#p.group;
    const { begin, firstUnsynced } = this.#p.log;
    const stored = engine.entries(handle);
    const last = stored.at(-1)?.index ?? begin.index;
    return [...stored, ...this.#p.sole.entries.filter(({ index }) => index > last)]
      .filter(({ index }) => index > begin.index && index < firstUnsynced)
      .map((entry) => ({ ...entry, ...payloads.placeOf(entry) }));
  }

  /** Position of an applied index. */
  positionAt(index: number): LogPosition {
    const { applier, log } = this.#p;
    const { begin } = log;
    const { index: applied, term: appliedTerm, members } = applier;
    let term = index === applied ? appliedTerm : begin.term;
    if (index !== applied && index !== begin.index) ({ term } = this.#entryAt(index));
    return { index, term, conf: members.at(index) };
  }

  /** One that fails is asked for again. */
  #askForCheckpoint(): boolean {
    const { log, group } = this.#p;
    if (log.isInstalling) return false;
    const now = group.now();
    if (now - this.#checkpointAskedAt < checkpointTicks) return true;
    this.#checkpointAskedAt = now;
    group.machine.checkpoint();
    return true;
  }

  #releaseUpTo(index: number): void {
    const { log, applier, sole, oldestSnapshot } = this.#p;
    // A snapshot takes the place of the entries that `index` is among.
    if (log.isInstalling) return;
    const upTo = Math.min(index, applier.index, sole.engineIndex, oldestSnapshot(), this.keepAfter);
    // The engine forgets only what it knows to be committed.
    if (sole.engineIndex < index) sole.tell();
    if (!this.#closed && upTo > log.begin.index) log.release(this.positionAt(upTo));
  }

  #entryAt(index: number): Entry {
    const { engine, handle } = this.#p.group;
    const own = this.#p.sole.entries.find((one) => one.index === index);
    const [entry = own] = engine.entries(handle, index, 1);
    if (entry?.index !== index) throw new Error(`the log has no entry ${index} any more`);
    return entry;
  }
}
