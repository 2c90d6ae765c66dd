// A group's part of the write-ahead log: the engine's writes in order, snapshots included, and the
// release of old entries.
//
// A snapshot is installed in three steps, so that recovery can tell where a crash happened: the snapshot's position
// is written to the log, its state replaces the old state, and the log records that it begins anew from there.

import { EntryKind } from '../engine/frames.ts';
import type { Entry, Message, Snapshot } from '../engine/frames.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import { FrameKind } from '../wal/format.ts';
import type { GroupState } from '../wal/table.ts';
import type { Wal } from '../wal/wal.ts';
import type { EntryApplier } from './entry-applier.ts';
import { hasPayload } from './entry-reference.ts';
import { encodeAppend, encodeSnapshotFrame } from './frames-to-log.ts';
import type { GroupCommit } from './group-commit.ts';
import type { LogBatch } from './log-batch.ts';
import { encodePositions } from './log-position.ts';
import type { LogPosition } from './log-position.ts';
import type { Payloads } from './payloads.ts';
import type { SnapshotStaging } from './snapshot-staging.ts';
import type { StateMachine } from './state-machine.ts';

/** Entries and state that the engine writes together. */
export interface Write {
  message: Message;
  /** One for each entry, empty where it has none. */
  payloads: Uint8Array[];
  staging: SnapshotStaging | undefined;
  /** Messages to send once this is on disk. */
  gated: Message[];
  /** The entry of a write that is not the engine's (sole-voter.ts). */
  sole?: Entry | undefined;
}

/** A write, or the position of a snapshot that is about to be installed. */
export interface LogItem {
  write: Write | undefined;
  /** Where in the frame each payload begins. */
  payloadsAt: number[];
  /** It is answered once it is on disk, whatever the policy. */
  isStrict: boolean;
  durable: () => void;
}

export interface GroupLogParts {
  group: number;
  replica: number;
  handle: number;
  engine: RaftEngine;
  machine: StateMachine;
  applier: EntryApplier;
  wal: Wal;
  log: LogBatch<LogItem>;
  state: GroupState;
  commit: GroupCommit;
  payloads: Payloads;
  /** Where the log begins. */
  begin: LogPosition;
  durable: (write: Write) => void;
  /** The state is another one. */
  installed: (index: number) => void;
  /** There is something to be written, outside of any event-loop tick. */
  touch: () => void;
  failed: (error: Error) => void;
}

export class GroupLog {
  /** The log's entries come after it. */
  begin: LogPosition;
  /** Size of frames with entries. */
  writtenBytes = 0;
  readonly #p: GroupLogParts;
  readonly #queue: Write[] = [];
  /** Handed to the log and not on disk. */
  readonly #unsynced: Write[] = [];
  /** Of the last entry that was to be written. */
  lastIndex: number;
  /** There is no change of members after it. */
  lastChange: number;
  /** The last index that has been framed. */
  #framedIndex: number;
  #installing: LogPosition | undefined;
  #closed = false;
  /** Of the last write: hard state, and the term of its last entry; 0 while that is unknown. */
  #term: number;
  #vote: number;
  #entryTerm = 0;
  /** Strict writes that are not on disk. */
  #strict = 0;

  constructor(parts: GroupLogParts) {
    this.#p = parts;
    this.begin = parts.begin;
    this.#framedIndex = parts.state.lastIndex;
    this.lastIndex = parts.state.lastIndex;
    this.lastChange = parts.state.lastIndex;
    this.#term = parts.state.term;
    this.#vote = parts.state.vote;
  }

  get isInstalling(): boolean {
    return this.#installing !== undefined;
  }

  add(write: Write): void {
    this.#queue.push(write);
    this.#run();
  }

  /** The last write not on disk: callbacks that must wait for all of them can go with it. */
  get last(): Write | undefined {
    return this.#queue.at(-1) ?? this.#unsynced.at(-1);
  }

  /** The first index that may differ from the engine's stored state: written, and not on disk. */
  get firstUnsynced(): number {
    let first = Infinity;
    for (const { message } of [...this.#unsynced, ...this.#queue]) {
      const { snapshot, entries } = message;
      first = Math.min(first, snapshot ? snapshot.index + 1 : (entries[0]?.index ?? Infinity));
    }
    return first;
  }

  close(): void {
    this.#closed = true;
    for (const { staging } of this.#queue.splice(0)) staging?.remove();
  }

  /** The state is durable up to `at.index`, and earlier entries are not needed. */
  release(at: LogPosition): void {
    const { engine, handle, wal, state, payloads, commit } = this.#p;
    if (at.index <= this.begin.index || this.#installing) return;
    this.begin = at;
    const positions = encodePositions(at);
    engine.setSnapshot(handle, { ...at, data: new Uint8Array(0) });
    engine.compact(handle, at.index);
    payloads.dropUpTo(at.index);
    this.#p.applier.members.forgetBefore(at.index);
    state.configuration = positions;
    if (!wal.appendOptional(FrameKind.ckpt, state, at.index, positions)) return;
    // If segments were deleted before this is on disk, the members would be lost.
    commit.after(wal.endLsn, () => {
      state.checkpointIndex = Math.max(state.checkpointIndex, at.index);
      void wal.collect();
    });
    this.#p.touch();
  }

  encode(item: LogItem): Buffer | undefined {
    const { write } = item;
    const { group, state } = this.#p;
    if (write === undefined) {
      const { index } = this.#installing!;
      return encodeSnapshotFrame(group, index, undefined, state.term, state.configuration);
    }
    const { message, payloads } = write;
    const { entries, hasHardState, term, vote, commit, snapshot } = message;
    if (snapshot) {
      this.#framedIndex = snapshot.index;
      const kept = { term: state.term, vote: state.vote, commit: snapshot.index };
      const hard = hasHardState ? { term, vote, commit } : kept;
      return encodeSnapshotFrame(group, snapshot.index, hard, hard.term, state.configuration);
    }
    if (entries.length === 0 && !hasHardState) return undefined;
    const index = entries[0]?.index ?? this.#framedIndex + 1;
    this.#framedIndex = index + entries.length - 1;
    const frame = encodeAppend({
      group,
      term: hasHardState ? term : state.term,
      index,
      hard: hasHardState ? { term, vote, commit } : undefined,
      entries,
      payloads,
    });
    item.payloadsAt = frame.payloadsAt;
    if (entries.length > 0) this.writtenBytes += frame.length;
    return frame.bytes;
  }

  placed({ write, payloadsAt }: LogItem, segment: number, offset: number): void {
    if (write === undefined) return;
    const { entries, hasHardState, term, vote, commit, snapshot } = write.message;
    const { state, payloads } = this.#p;
    if (snapshot) {
      const { index } = snapshot;
      Object.assign(state, { commit: index, lastIndex: index, checkpointIndex: index });
    }
    if (hasHardState) Object.assign(state, { term, vote, commit });
    for (const [i, entry] of entries.entries()) {
      state.lastIndex = entry.index;
      if (!hasPayload(entry)) continue;
      payloads.place(entry.index, entry.term, segment, offset + payloadsAt[i]!);
    }
  }

  #run(): void {
    while (this.#installing === undefined && !this.#closed) {
      const write = this.#queue.shift();
      if (write === undefined) return;
      const { snapshot } = write.message;
      if (snapshot) this.#install(write, snapshot);
      else this.#write(write);
    }
  }

  #write(write: Write): void {
    const { entries } = write.message;
    for (const [i, entry] of entries.entries()) {
      if (hasPayload(entry)) this.#p.payloads.put(entry.index, entry.term, write.payloads[i]!);
    }
    this.#unsynced.push(write);
    const { message } = write;
    const isStrict = this.#isStrict(message);
    if (isStrict) this.#strict++;
    if (message.snapshot) {
      this.#add({ ...write, message: { ...message, entries: [] } }, true, nothing);
    }
    this.#add(afterSnapshot(write), isStrict, () => {
      if (isStrict) this.#strict--;
      this.#unsynced.shift();
      this.#p.durable(write);
    });
  }

  /**
   * Whether a write waits for the disk even under a relaxed policy. This holds for terms and votes; for snapshots;
   * for the first entry of a term and changes of members, so that a state that is ahead of its log knows both; for
   * all writes while members change or may change, because a learner takes no part in elections and must not lose
   * applied entries; and for writes after any of these.
   */
  #isStrict({ snapshot, entries, hasHardState, term, vote }: Message): boolean {
    const { commit, applier, replica } = this.#p;
    const isPromise = hasHardState && (term !== this.#term || vote !== this.#vote);
    if (hasHardState) [this.#term, this.#vote] = [term, vote];
    let isNew = false;
    const first = entries[0]?.index ?? Infinity;
    // The entries from there on are replaced.
    this.lastChange = Math.min(this.lastChange, first - 1);
    for (const entry of entries) {
      if (entry.term !== this.#entryTerm) isNew = true;
      this.#entryTerm = entry.term;
      if (entry.kind !== EntryKind.normal) this.lastChange = entry.index;
    }
    if (snapshot) this.#entryTerm = entries.at(-1)?.term ?? 0;
    this.lastIndex = entries.at(-1)?.index ?? snapshot?.index ?? this.lastIndex;
    if (commit.policy === 'always' || this.#strict > 0) return true;
    const { voters, learners, nextLearners, outgoing } = applier.conf;
    const isChanging = learners.length + nextLearners.length + outgoing.length > 0;
    const isSettled = voters.includes(replica) && !isChanging && this.lastChange <= applier.index;
    return isPromise || isNew || snapshot !== undefined || !isSettled;
  }

  #add(write: Write | undefined, isStrict: boolean, durable: () => void): void {
    const guarded = (): void => {
      if (!this.#closed) durable();
    };
    this.#p.log.add(this, { write, payloadsAt: [], isStrict, durable: guarded });
  }

  written({ durable, isStrict }: LogItem): void {
    const { commit, wal } = this.#p;
    if (isStrict) commit.after(wal.endLsn, durable);
    else commit.relaxed(durable);
  }

  #install(write: Write, { index, term, conf }: Snapshot): void {
    const { applier, state } = this.#p;
    const at = { index, term, conf };
    this.#installing = at;
    applier.whenIdle(() => {
      state.configuration = encodePositions(this.begin, at);
      this.#add(undefined, true, () => {
        this.#replace(write, at).catch((error: unknown) => {
          // A closed replica gives its install up: the next opening begins with the state of before.
          if (!this.#closed) this.#p.failed(error as Error);
        });
      });
      this.#p.touch();
    });
  }

  async #replace(write: Write, at: LogPosition): Promise<void> {
    const { machine, payloads, applier, state } = this.#p;
    const staging = write.staging!;
    try {
      await machine.install({ index: at.index, chunks: staging.chunks() });
    } finally {
      staging.remove();
    }
    if (this.#closed) return;
    payloads.clear();
    applier.installed(at);
    this.begin = at;
    state.configuration = encodePositions(at);
    this.#installing = undefined;
    this.#write(write);
    this.#run();
    this.#p.installed(at.index);
    this.#p.touch();
  }
}

const nothing = (): void => undefined;

/**
 * The rest of a write after the frame of a snapshot: entries may have been added behind it before
 * it was written.
 */
function afterSnapshot(write: Write): Write {
  const { message } = write;
  const { snapshot, entries, hasHardState } = message;
  if (snapshot === undefined) return write;
  const isHard = hasHardState && entries.length > 0;
  return { ...write, message: { ...message, snapshot: undefined, hasHardState: isHard } };
}
