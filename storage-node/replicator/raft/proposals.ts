// Proposals of one replica that have no outcome yet, in the order of their positions.
//
// The fate of an entry is known once an entry at its index is committed: it is that one, or it is
// lost. Proposals dropped by the engine without an index were never in the log.

import type { Outcome } from '../partition-log.ts';
import type { ProposalListener } from './proposal-log.ts';

interface PendingEntry {
  firstPosition: number;
  proposals: number;
  payload: Uint8Array;
  /** 0 until the engine has given it one. */
  index: number;
  outcome: Outcome | undefined;
}

export class Proposals {
  count = 0;
  bytes = 0;
  #next = 1;
  #pending: PendingEntry[] = [];
  readonly #listener: ProposalListener;

  constructor(listener: ProposalListener) {
    this.#listener = listener;
  }

  /** The position of a proposal that goes into the next entry. */
  take(): number {
    return this.#next++;
  }

  /** Position of the next proposal. */
  get next(): number {
    return this.#next;
  }

  add(firstPosition: number, proposals: number, payload: Uint8Array): void {
    this.#pending.push({ firstPosition, proposals, payload, index: 0, outcome: undefined });
    this.count += proposals;
    this.bytes += payload.length;
  }

  payload(firstPosition: number): Uint8Array | undefined {
    return this.#pending.find((entry) => entry.firstPosition === firstPosition)?.payload;
  }

  /** The engine has put the entry at this index. */
  place(firstPosition: number, index: number): void {
    const entry = this.#pending.find((one) => one.firstPosition === firstPosition);
    if (entry) entry.index = index;
  }

  /** The entry was refused by the engine. */
  refuse(firstPosition: number): void {
    const entry = this.#pending.find((one) => one.firstPosition === firstPosition);
    if (entry) entry.outcome = 'lost';
    this.#report();
  }

  /** The engine has no leader's log to put them in any more, and did not put these. */
  refuseUnplaced(): void {
    for (const entry of this.#pending) if (entry.index === 0) entry.outcome ??= 'lost';
    this.#report();
  }

  /** An entry is committed and applied; `firstPosition` is 0 when it is not of this replica's life. */
  committed(index: number, firstPosition: number): void {
    for (const entry of this.#pending) {
      if (firstPosition !== 0 && entry.firstPosition === firstPosition) {
        entry.index = index;
        entry.outcome = 'committed';
      } else if (entry.index !== 0 && entry.index <= index) {
        entry.outcome ??= 'lost';
      }
    }
    this.#report();
  }

  /** A snapshot has taken the place of all entries up to `index`, or the log is closed: their outcome stays unknown. */
  forget(index: number): void {
    for (const entry of this.#pending) if (entry.index <= index) entry.outcome ??= 'unknown';
    this.#report();
  }

  /** Proposals before this position no longer wait. */
  forgetBefore(position: number): void {
    for (const entry of this.#pending) {
      if (entry.firstPosition < position) entry.outcome ??= 'unknown';
    }
    this.#report();
  }

  #report(): void {
    for (let entry = this.#pending[0]; entry?.outcome !== undefined; entry = this.#pending[0]) {
      this.#pending.shift();
      this.count -= entry.proposals;
      this.bytes -= entry.payload.length;
      for (let i = 0; i < entry.proposals; i++) {
        const index = entry.outcome === 'committed' ? entry.index : 0;
        this.#listener.onOutcome(entry.firstPosition + i, entry.outcome, index);
      }
    }
  }
}
