// Applies the committed entries of a group in order, one after the other, and keeps the position of
// the state, the members, and the outcomes of proposals.

import { EntryKind } from '../engine/frames.ts';
import type { ConfState, Entry } from '../engine/frames.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import { hasPayload, readReference, splitProposals } from './entry-reference.ts';
import { MemberHistory } from './log-position.ts';
import type { LogPosition } from './log-position.ts';
import type { Payloads } from './payloads.ts';
import type { StateMachine } from './state-machine.ts';

interface EntryApplierParts {
  engine: RaftEngine;
  handle: number;
  machine: StateMachine;
  payloads: Payloads;
  /** Identity of this replica since its start. */
  replica: number;
  incarnation: number;
  /** Where the log begins; entries that the machine has already are not applied to it again. */
  begin: LogPosition;
  /** Whether the outcome of an entry is still to be reported. `firstPosition` is the position of its first proposal here. */
  isPending: (firstPosition: number) => boolean;
  /** An entry is applied; `position` is 0 where it is not of this replica's life. */
  applied: (index: number, position: number) => void;
  /**
   * A batch of entries is applied, perhaps outside of an event-loop tick. The engine has handed it out, or is told of
   * it later.
   */
  batchApplied: (isOwn: boolean) => void;
  failed: (error: Error) => void;
}

export class EntryApplier {
  index: number;
  term: number;
  members: MemberHistory;
  readonly #p: EntryApplierParts;
  readonly #machineHas: number;
  /** The last entry that was handed over. */
  addedIndex: number;
  readonly #batches: { entries: readonly Entry[]; isOwn: boolean }[] = [];
  /** How much of the first batch is applied. */
  #at = 0;
  #isBusy = false;
  #whenIdle: (() => void) | undefined;
  #closed = false;

  constructor(parts: EntryApplierParts) {
    this.#p = parts;
    this.#machineHas = parts.machine.durableIndex;
    this.index = parts.begin.index;
    this.addedIndex = parts.begin.index;
    this.term = parts.begin.term;
    this.members = new MemberHistory(parts.begin);
  }

  get conf(): ConfState {
    return this.members.latest;
  }

  get isIdle(): boolean {
    return !this.#isBusy && this.#batches.length === 0;
  }

  /**
   * Whether the state includes `index`: after a restart it may be ahead of the engine's last
   * report.
   */
  get isCaughtUp(): boolean {
    return this.index >= this.#machineHas;
  }

  /** A hand-out of the engine, of which some may have been handed over before. */
  add(entries: readonly Entry[]): void {
    const isNew = ({ index }: Entry): boolean => index > this.addedIndex;
    const added = entries.every(isNew) ? entries : entries.filter(isNew);
    this.#add(added, false);
  }

  /** The next entry, of which the engine is to be told later. */
  addOwn(entry: Entry): void {
    this.#add([entry], true);
  }

  #add(entries: readonly Entry[], isOwn: boolean): void {
    this.addedIndex = entries.at(-1)?.index ?? this.addedIndex;
    this.#batches.push({ entries, isOwn });
    this.#run();
  }

  /** Calls back, perhaps at once, when all that was handed over is applied. */
  whenIdle(then: () => void): void {
    if (this.isIdle) then();
    else this.#whenIdle = then;
  }

  /** A snapshot has taken the place of the state. */
  installed(at: LogPosition): void {
    this.index = at.index;
    this.addedIndex = at.index;
    this.term = at.term;
    this.members = new MemberHistory(at);
  }

  close(): void {
    this.#closed = true;
    this.#batches.length = 0;
  }

  #run(): void {
    while (!this.#isBusy && !this.#closed) {
      const batch = this.#batches[0];
      if (batch === undefined) break;
      const entry = batch.entries[this.#at];
      if (entry === undefined) {
        this.#batches.shift();
        this.#at = 0;
        if (!batch.isOwn) this.#p.engine.storageDone(this.#p.handle, 'apply');
        this.#p.batchApplied(batch.isOwn);
        continue;
      }
      this.#at++;
      this.#apply(entry);
    }
    if (!this.isIdle) return;
    const then = this.#whenIdle;
    this.#whenIdle = undefined;
    then?.();
  }

  #apply(entry: Entry): void {
    const { engine, handle, machine, payloads, replica, incarnation, isPending } = this.#p;
    const { index, term, kind, data } = entry;
    let proposals: Uint8Array[] = [];
    let position = 0;
    if (kind !== EntryKind.normal) {
      this.members.changed(index, engine.applyConfChange(handle, entry));
    } else if (hasPayload(entry)) {
      if (index > this.#machineHas) proposals = splitProposals(payloads.get(index, term, data));
      const id = readReference(data);
      const isOwn = id.replica === replica && id.incarnation === incarnation;
      if (isOwn) position = id.firstPosition;
    }
    const told = position !== 0 && isPending(position) ? position : 0;
    const waiting = index > this.#machineHas ? machine.apply(index, proposals, told) : undefined;
    if (!(waiting instanceof Promise)) return this.#applied(index, term, position);
    this.#isBusy = true;
    waiting.then(
      () => {
        this.#isBusy = false;
        if (this.#closed) return;
        this.#applied(index, term, position);
        this.#run();
      },
      (error: unknown) => {
        // Its engine may be closed while rows for the entry are read: the next opening applies it anew.
        if (!this.#closed) this.#p.failed(error as Error);
      },
    );
  }

  #applied(index: number, term: number, position: number): void {
    this.index = index;
    this.term = term;
    this.#p.applied(index, position);
  }
}
