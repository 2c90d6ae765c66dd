// Entries of a leader that is the only voter and has no learners. Such an entry is committed once it is on disk, so
// it needs no round of the engine: it goes to the log and, once durable, to the state. The engine is told later, of
// many entries at once, and before anything else happens to the group. It assigns the same indexes, and its results
// for these entries are known already. The delay is safe: while it leads such a group, the engine appends nothing by
// itself, and its role changes only when it is called.

import type { ConfState, Entry, Message } from '../engine/frames.ts';
import { EntryKind, MessageType } from '../engine/frames.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import { Role } from '../engine/raft-engine.ts';
import type { EntryApplier } from './entry-applier.ts';
import type { GroupLog, Write } from './group-log.ts';

interface SoleVoterParts {
  handle: number;
  replica: number;
  engine: RaftEngine;
  applier: EntryApplier;
  log: GroupLog;
  /** As this replica has let others know, or is about to. */
  state: () => { role: number; term: number };
  /** The engine has something to do at the end of this event-loop tick. */
  touch: () => void;
}

/** The engine is told of so many at a time. */
const toldAtOnce = 256;
const noBytes = new Uint8Array(0);

export class SoleVoter {
  readonly #p: SoleVoterParts;
  /** Entries that the engine has not said to be committed yet, in order. */
  #entries: Entry[] = [];
  /** How many of them the engine was told of, and how many of those it has handed out to be written. */
  #told = 0;
  #seen = 0;
  /** On disk, behind entries of the engine that are to be applied first. */
  #durable: Entry[] = [];
  /** Nothing has happened to the group since this was found to be possible. */
  #isOpen = false;

  constructor(parts: SoleVoterParts) {
    this.#p = parts;
  }

  /** Entries after it are not in the engine's log for sure. */
  get engineIndex(): number {
    return this.#entries.length === 0 ? Infinity : this.#entries[0]!.index - 1;
  }

  /** Entries that the engine may not have; ascending. */
  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** The next entry may be appended here. */
  get isPossible(): boolean {
    this.#isOpen ||= this.#isAlone();
    return this.#isOpen;
  }

  append(reference: Uint8Array, payload: Uint8Array): Entry {
    const { log, state } = this.#p;
    const index = log.lastIndex + 1;
    const entry = { term: state().term, index, kind: EntryKind.normal, data: reference };
    this.#entries.push(entry);
    const message = this.#storageAppend(entry);
    log.add({ message, payloads: [payload], staging: undefined, gated: [], sole: entry });
    if (this.#entries.length - this.#told >= toldAtOnce) this.tell();
    return entry;
  }

  /** The engine is about to be called, so it is told all entries first. */
  close(): void {
    this.#isOpen = false;
    this.tell();
  }

  tell(): void {
    const { engine, handle, touch } = this.#p;
    if (this.#told === this.#entries.length) return;
    const references = this.#entries.slice(this.#told).map(({ data }) => data);
    // It takes them, as it leads. Else its log would differ from the one on disk: that must end the pod.
    engine.propose(handle, references);
    this.#told = this.#entries.length;
    touch();
  }

  /** Of the entries that the engine hands out to be written, those that are not in the log yet. */
  unwritten(entries: readonly Entry[]): readonly Entry[] {
    let known = 0;
    for (; this.#seen < this.#told && known < entries.length; known++, this.#seen++) {
      const own = this.#entries[this.#seen]!;
      const its = entries[known]!;
      if (isSame(own, its)) continue;
      // Another entry has its place in the engine: the two logs differ from here on, and the pod must end.
      const place = `entry ${its.index} of term ${its.term}`;
      throw new Error(`the engine has ${place}, not that of ${own.index} of term ${own.term}`);
    }
    return known === 0 ? entries : entries.slice(known);
  }

  /** An entry of this leadership is on disk. One that comes later than that waits for the engine's word. */
  isDurable(entry: Entry): void {
    const { role, term } = this.#p.state();
    if (role !== Role.leader || term !== entry.term) return;
    this.#durable.push(entry);
    this.applyDurable();
  }

  /** The engine has handed out entries to be applied, up to this index. */
  committed(index: number): void {
    let known = 0;
    while (known < this.#seen && this.#entries[known]!.index <= index) known++;
    if (known > 0) {
      this.#entries.splice(0, known);
      this.#told -= known;
      this.#seen -= known;
    }
    this.applyDurable();
  }

  roleChanged(): void {
    this.#isOpen = false;
    this.#durable = [];
  }

  /** Applies durable entries whose predecessors have all been added. */
  applyDurable(): void {
    const { applier } = this.#p;
    while (this.#durable[0]?.index === applier.addedIndex + 1) {
      applier.addOwn(this.#durable.shift()!);
    }
  }

  #isAlone(): boolean {
    const { engine, handle, replica, applier, log, state } = this.#p;
    const { role, term } = state();
    // The term's first entry is applied, and no change of members is under way.
    if (role !== Role.leader || applier.term !== term || log.isInstalling) return false;
    if (!isOnly(replica, applier.conf) || log.lastChange > applier.index) return false;
    const itself = engine.status(handle);
    if (itself.role !== Role.leader || itself.term !== term) return false;
    // The engine has handed out all entries that it has.
    return !engine.hasReady(handle);
  }

  #storageAppend(entry: Entry): Message {
    return {
      ...{ type: MessageType.storageAppend, to: 0, from: this.#p.replica, term: entry.term },
      ...{ logTerm: 0, index: 0, commit: 0, vote: 0, reject: false, rejectHint: 0 },
      ...{ context: noBytes, entries: [entry], snapshot: undefined, responses: [] },
      hasHardState: false,
    };
  }
}

function isOnly(replica: number, { voters, learners, outgoing, nextLearners }: ConfState): boolean {
  const others = learners.length + outgoing.length + nextLearners.length;
  return voters.length === 1 && voters[0] === replica && others === 0;
}

function isSame(own: Entry, its: Entry): boolean {
  const isThere = own.index === its.index && own.term === its.term && own.kind === its.kind;
  return isThere && Buffer.compare(own.data, its.data) === 0;
}

/** The write of an entry that was made here. */
export function isSole(write: Write): write is Write & { sole: Entry } {
  return write.sole !== undefined;
}
