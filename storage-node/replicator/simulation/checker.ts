// What must hold in every history, whatever fails. A breach throws `Breach`, which ends the history.

import { MessageType } from '../engine/frames.ts';
import type { Message } from '../engine/frames.ts';
import type { Outcome } from '../partition-log.ts';

export class Breach extends Error {
  override name = 'Breach';
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
  readonly #leaders = new Map<number, number>();
  readonly #votes = new Map<string, number>();
  /** The highest index that some client knows to be committed. */
  acknowledged = 0;
  committed = 0;
  lost = 0;
  unknown = 0;
  reads = 0;

  leader(term: number, replica: number): void {
    const other = this.#leaders.get(term) ?? replica;
    if (other !== replica) this.fail(`${other} and ${replica} both lead in term ${term}`);
    this.#leaders.set(term, replica);
  }

  /** Sees every message that leaves a node. */
  message(m: Message): void {
    if (m.type !== MessageType.voteResponse || m.reject) return;
    const key = `${m.from} ${m.term}`;
    const other = this.#votes.get(key) ?? m.to;
    if (other !== m.to) this.fail(`${m.from} votes for ${other} and ${m.to} in term ${m.term}`);
    this.#votes.set(key, m.to);
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
