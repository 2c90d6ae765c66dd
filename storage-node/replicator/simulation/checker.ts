// Invariants of every history under all faults. A violation throws `Breach`, which ends the
// history.

import { MessageType } from '../engine/frames.ts';
import type { Message } from '../engine/frames.ts';
import { FencedType } from '../raft/fence.ts';
import type { Members, Outcome } from '../partition-log.ts';

class Breach extends Error {
  override name = 'Breach';
}

export interface LogProgress {
  applied: number;
  commit: number;
}

interface Proposal {
  outcome: Outcome | undefined;
  index: number;
}

export class Checker {
  /** Hash over all that was applied up to an index, the same on every replica. */
  readonly #hashes = new Map<number, number>();
  /** Where each proposal was applied. */
  readonly #appliedAt = new Map<number, number>();
  readonly #proposals = new Map<number, Proposal>();
  readonly #members = new Map<number, string>();
  readonly #leaders = new Map<number, number>();
  readonly #votes = new Map<string, number>();
  /** The highest index that some client knows to be committed. */
  acknowledged = 0;
  /** And since when, ascending. */
  #acknowledgedAt: { time: number; index: number }[] = [];
  /** Counts losses that the fsync policy allows. A value read before such a loss may be gone after it. */
  losses = 0;
  staleReads = 0;
  committed = 0;
  lost = 0;
  unknown = 0;
  reads = 0;

  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  leader(term: number, replica: number): void {
    const other = this.#leaders.get(term) ?? replica;
    if (other !== replica) this.fail(`${other} and ${replica} both lead in term ${term}`);
    this.#leaders.set(term, replica);
  }

  /** Sees every message that leaves a node. */
  message(m: Message): void {
    // A candidate has voted for itself.
    if (m.type === MessageType.vote) this.#vote(m.from, m.term, m.from);
    const isGrant = m.type === MessageType.voteResponse && !m.reject;
    if (isGrant || m.type === FencedType.vote) this.#vote(m.from, m.term, m.to);
  }

  #vote(voter: number, term: number, candidate: number): void {
    const key = `${voter} ${term}`;
    const other = this.#votes.get(key) ?? candidate;
    if (other !== candidate) {
      this.fail(`${voter} votes for ${other} and ${candidate} in term ${term}`);
    }
    this.#votes.set(key, candidate);
  }

  /** The members at a replica's applied index. */
  members(replica: number, applied: number, { voters, learners, outgoing }: Members): void {
    const text = JSON.stringify(
      [voters, learners, outgoing].map((ids) => ids.toSorted((a, b) => a - b)),
    );
    const other = this.#members.get(applied) ?? text;
    if (other !== text) this.fail(`${replica} has members ${text} at ${applied}, not ${other}`);
    this.#members.set(applied, text);
  }

  /** Checks a replica's progress against its earlier one of the same incarnation. */
  progress(replica: number, now: LogProgress, before: LogProgress | undefined): void {
    const { applied, commit } = now;
    if (applied > commit) this.fail(`${replica} has applied ${applied}, committed ${commit}`);
    if (before && (applied < before.applied || commit < before.commit)) {
      this.fail(`${replica} goes back from ${before.commit} to ${commit}`);
    }
  }

  applied(replica: number, index: number, hash: number, ids: readonly number[]): void {
    const other = this.#hashes.get(index) ?? hash;
    if (other !== hash) this.fail(`${replica} applies something else at ${index}`);
    this.#hashes.set(index, hash);
    for (const id of ids) {
      const at = this.#appliedAt.get(id) ?? index;
      if (at !== index) this.fail(`proposal ${id} is applied at ${at} and ${index}`);
      this.#appliedAt.set(id, index);
      const { outcome } = this.#proposals.get(id) ?? {};
      if (outcome === 'lost') this.fail(`proposal ${id} was lost, and is applied at ${index}`);
    }
  }

  outcome(id: number, outcome: Outcome, index: number): void {
    if (this.#proposals.has(id)) this.fail(`proposal ${id} has two outcomes`);
    this.#proposals.set(id, { outcome, index });
    const at = this.#appliedAt.get(id);
    if (outcome === 'committed') {
      this.committed++;
      if (at !== index) this.fail(`proposal ${id} is committed at ${index}, applied at ${at}`);
      if (index > this.acknowledged) this.#acknowledgedAt.push({ time: this.#now(), index });
      this.acknowledged = Math.max(this.acknowledged, index);
    } else if (outcome === 'lost') {
      this.lost++;
      if (at !== undefined) this.fail(`proposal ${id} is lost, and was applied at ${at}`);
    } else this.unknown++;
  }

  read(replica: number, applied: number, acknowledgedBefore: number): void {
    this.reads++;
    if (applied < acknowledgedBefore) {
      this.fail(`${replica} reads at ${applied} after ${acknowledgedBefore} was acknowledged`);
    }
  }

  /** A replica says that its state has all that was committed so long ago. */
  isAsOf(replica: number, applied: number, ms: number): void {
    if (ms === Infinity) return;
    this.staleReads++;
    const time = this.#now() - ms;
    const known = this.#acknowledgedAt.findLast((one) => one.time < time)?.index ?? 0;
    if (applied >= known) return;
    this.fail(`${replica} is at ${applied}, and says that it has ${known} of ${ms} ms ago`);
  }

  /** A client that has seen an index waits for it at a replica. */
  session(replica: number, applied: number, index: number): void {
    if (applied < index) this.fail(`${replica} shows ${applied} to one who has seen ${index}`);
  }

  /**
   * Most voters have lost power under a relaxed policy: writes acknowledged in the last `ms` may be lost. All earlier
   * writes must exist, and replicas must agree on the entries that replace the lost ones.
   */
  mayLose(ms: number): void {
    this.losses++;
    const since = this.#now() - ms;
    const kept = this.#acknowledgedAt.filter(({ time }) => time < since);
    this.#acknowledgedAt = kept;
    this.acknowledged = kept.at(-1)?.index ?? 0;
    const isOpen = (index: number): boolean => index > this.acknowledged;
    for (const index of this.#hashes.keys()) if (isOpen(index)) this.#hashes.delete(index);
    for (const index of this.#members.keys()) if (isOpen(index)) this.#members.delete(index);
    for (const [id, index] of this.#appliedAt) if (isOpen(index)) this.#appliedAt.delete(id);
    for (const proposal of this.#proposals.values()) {
      if (proposal.outcome === 'committed' && isOpen(proposal.index)) proposal.outcome = 'unknown';
    }
  }

  /** At the end: a replica's state must have all that was acknowledged. */
  complete(replica: number, ids: ReadonlySet<number>): void {
    for (const [id, { outcome }] of this.#proposals) {
      if (outcome === 'committed' && !ids.has(id)) this.fail(`${replica} has lost proposal ${id}`);
    }
  }

  fail(reason: string): never {
    throw new Breach(reason);
  }
}
