// One replica of a group that keeps several copies of its log: the engine's decisions carried out in the order that
// makes them safe. What is on disk before what is sent:
//
//   a vote, an answer to an append   its frame and all before it (the engine hands these out with the frame)
//   a request for votes              likewise, held here
//   an append of the leader          nothing: its own copy counts only once it is on disk
//   a member's report of a snapshot  the state and the log's frame of it

import { EntryKind, MessageType } from '../engine/frames.ts';
import type { ConfState, Entry, Message, Ready, Snapshot } from '../engine/frames.ts';
import { ConfChangeType, ErrorCode, RaftError, Role } from '../engine/raft-engine.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import { Refusal } from '../partition-log.ts';
import type {
  LogListener,
  LogRole,
  MemberChange,
  Members,
  PartitionLog,
  PartitionLogStatus,
} from '../partition-log.ts';
import type { GroupState } from '../wal/table.ts';
import type { Wal } from '../wal/wal.ts';
import {
  hasPayload,
  isPayloadOf,
  joinProposals,
  makeReference,
  readReference,
  splitProposals,
} from './entry-reference.ts';
import { encodeAppend, encodeSnapshotFrame } from './frames-to-log.ts';
import type { GroupCommit } from './group-commit.ts';
import type { Payloads } from './payloads.ts';
import { splitMessage } from './peer-message.ts';
import type { PeerMessage } from './peer-message.ts';
import { Proposals } from './proposals.ts';
import { ReadBarriers } from './read-barriers.ts';
import type { LogPosition, StateMachine } from './state-machine.ts';

export interface RaftGroupLimits {
  /** Bytes of one entry's payload, of one message's payloads, and of proposals without an outcome. */
  maxEntryBytes: number;
  maxMessageBytes: number;
  maxPendingBytes: number;
  /** A checkpoint is made after so many applied entries; so many before it stay for followers that are behind. */
  checkpointEntries: number;
  keptEntries: number;
  /** Ticks after which a read barrier without an answer fails. */
  readTicks: number;
  /** Ticks after the end of a leadership until what has no outcome is unknown. */
  outcomeTicks: number;
}

export interface RaftGroupParts {
  group: number;
  replica: number;
  incarnation: number;
  handle: number;
  engine: RaftEngine;
  wal: Wal;
  state: GroupState;
  commit: GroupCommit;
  payloads: Payloads;
  machine: StateMachine;
  listener: LogListener;
  limits: RaftGroupLimits;
  send: (to: number, message: PeerMessage) => void;
}

interface Write {
  message: Message;
  /** One for each entry, empty where it has none; for a snapshot the state. */
  payloads: Uint8Array[];
  /** What may leave once this is on disk. */
  gated: Message[];
}

const noBytes = new Uint8Array(0);

export class RaftGroup implements PartitionLog {
  readonly group: number;
  readonly replica: number;
  readonly handle: number;
  readonly #p: RaftGroupParts;
  readonly #proposals: Proposals;
  #role = 0;
  #leader = 0;
  #conf: ConfState;
  #appliedIndex: number;
  #appliedTerm: number;
  #batch: Uint8Array[] = [];
  #batchBytes = 0;
  #batchFirst = 0;
  /** Payloads that came with messages of this tick, by term and index. */
  readonly #received = new Map<string, Uint8Array>();
  readonly #writes: Write[] = [];
  /** Writes handed to the log and not on disk. */
  #unsynced: Write[] = [];
  /** A snapshot is being made durable: nothing is written before it is. */
  #installing = false;
  #saving = false;
  #saveNext: (() => void) | undefined;
  #lastFrameLsn = 0;
  readonly #barriers: ReadBarriers;
  #ticks = 0;
  #unknownAt = Infinity;
  #closed = false;

  constructor(parts: RaftGroupParts) {
    this.#p = parts;
    this.group = parts.group;
    this.replica = parts.replica;
    this.handle = parts.handle;
    const { durable } = parts.machine;
    this.#conf = durable.conf;
    this.#appliedIndex = durable.index;
    this.#appliedTerm = durable.term;
    this.#proposals = new Proposals(parts.listener);
    this.#barriers = new ReadBarriers(parts.replica, parts.incarnation);
  }

  get role(): LogRole {
    if (this.#role === Role.leader) return 'leader';
    const isLearner = (ids: number[]): boolean => ids.includes(this.replica);
    const { learners, nextLearners } = this.#conf;
    return isLearner(learners) || isLearner(nextLearners) ? 'learner' : 'follower';
  }

  propose(payload: Uint8Array): number {
    const { limits } = this.#p;
    if (this.#closed) return Refusal.closed;
    if (this.#role !== Role.leader) return Refusal.notLeader;
    const length = payload.length + 4;
    if (length > limits.maxEntryBytes) return Refusal.tooLarge;
    const pending = this.#proposals.bytes + this.#batchBytes;
    if (pending > 0 && pending + length > limits.maxPendingBytes) return Refusal.overloaded;
    if (this.#batchBytes + length > limits.maxEntryBytes) this.flush();
    const position = this.#proposals.take();
    if (this.#batch.length === 0) this.#batchFirst = position;
    this.#batch.push(Uint8Array.from(payload));
    this.#batchBytes += length;
    return position;
  }

  readBarrier(then: (isSafe: boolean) => void): void {
    if (this.#closed) return then(false);
    const context = this.#barriers.add(this.#ticks + this.#p.limits.readTicks, then);
    this.#p.engine.readIndex(this.handle, context);
  }

  transfer(to: number): void {
    this.#p.engine.transferLeader(this.handle, to);
  }

  changeMembers(changes: readonly MemberChange[]): boolean {
    if (this.#role !== Role.leader || this.#conf.outgoing.length > 0) return false;
    const type = {
      voter: ConfChangeType.addVoter,
      learner: ConfChangeType.addLearner,
      removed: ConfChangeType.remove,
    };
    const list = changes.map(({ replica, to }) => ({ type: type[to], id: replica }));
    return this.#isTaken(() => this.#p.engine.proposeConfChange(this.handle, list, 0));
  }

  exportSnapshot(): { index: number; term: number; members: Members; state: Uint8Array } {
    const state = this.#p.machine.exportState();
    return { index: this.#appliedIndex, term: this.#appliedTerm, members: this.#members, state };
  }

  status(): PartitionLogStatus {
    const s = this.#p.engine.status(this.handle);
    return {
      replica: this.replica,
      role: this.role,
      leader: s.lead,
      term: s.term,
      commit: s.commit,
      applied: this.#appliedIndex,
      firstIndex: s.firstIndex,
      lastIndex: s.lastIndex,
      members: this.#members,
      pendingProposals: this.#proposals.count + this.#batch.length,
      pendingBytes: this.#proposals.bytes + this.#batchBytes,
    };
  }

  /** Proposes what this tick has gathered, as one entry. */
  flush(): void {
    if (this.#batch.length === 0) return;
    const first = this.#batchFirst;
    const proposals = this.#batch.length;
    const payload = joinProposals(this.#batch);
    this.#batch = [];
    this.#batchBytes = 0;
    this.#proposals.add(first, proposals, payload);
    const { replica, incarnation } = this.#p;
    const id = { replica, incarnation, firstPosition: first, proposals };
    const reference = makeReference(id, payload);
    const isTaken = this.#isTaken(() => this.#p.engine.propose(this.handle, [reference]));
    if (!isTaken) this.#proposals.refuse(first);
  }

  /** False when the message was not for this replica, or its payloads are not those of its entries. */
  receive({ message, payloads }: PeerMessage): boolean {
    if (message.to !== this.replica) return false;
    const carried = message.entries.filter(hasPayload);
    const expected = message.snapshot ? 1 : carried.length;
    if (payloads.length !== expected) return false;
    if (!carried.every((entry, i) => isPayloadOf(entry.data, payloads[i]!))) return false;
    for (const [i, { term, index }] of carried.entries()) {
      this.#received.set(`${term}:${index}`, payloads[i]!);
    }
    if (message.snapshot) {
      const { index, term } = message.snapshot;
      this.#received.set(`snapshot ${term}:${index}`, payloads[0]!);
    }
    return this.#isTaken(() => this.#p.engine.step(this.handle, message));
  }

  handleReady(ready: Ready): void {
    if (ready.soft) this.#setRole(ready.soft.role, ready.soft.lead);
    const gated: Message[] = [];
    let write: Write | undefined;
    for (const message of ready.messages) {
      switch (message.type) {
        case MessageType.storageAppend:
          write = { message, gated, payloads: this.#payloadsOf(message) };
          break;
        case MessageType.storageApply:
          break;
        case MessageType.vote:
          gated.push(message);
          break;
        default:
          this.#send(message);
      }
    }
    if (write) this.#writes.push(write);
    else if (gated.length > 0) this.#hold(gated);
    if (this.#role !== Role.leader) this.#proposals.refuseUnplaced();
    for (const { index, context } of ready.reads) this.#barriers.answer(context, index);
    if (ready.reads.length > 0) this.#answerBarriers();
    this.#write();
    for (const message of ready.messages) {
      if (message.type === MessageType.storageApply) this.#apply(message.entries);
    }
  }

  /** No more messages or Readies are left of this tick. */
  endTick(): void {
    this.#received.clear();
  }

  /** Once for every tick of the pod. */
  tick(): void {
    this.#ticks++;
    if (this.#ticks >= this.#unknownAt && this.#role !== Role.leader) {
      this.#unknownAt = Infinity;
      this.#proposals.forget(Infinity);
    }
    this.#barriers.expire(this.#ticks);
  }

  close(): void {
    this.#closed = true;
    for (const position of this.#batch.keys()) {
      this.#proposals.add(this.#batchFirst + position, 1, noBytes);
    }
    this.#batch = [];
    this.#proposals.forget(Infinity);
    this.#barriers.expire(Infinity);
  }

  get #members(): Members {
    const { voters, learners, nextLearners, outgoing } = this.#conf;
    return {
      voters: [...voters],
      learners: [...learners, ...nextLearners],
      outgoing: [...outgoing],
    };
  }

  #isTaken(call: () => void): boolean {
    try {
      call();
      return true;
    } catch (error) {
      if (error instanceof RaftError && error.code !== ErrorCode.dead) return false;
      throw error;
    }
  }

  #setRole(role: number, leader: number): void {
    if (role === this.#role && leader === this.#leader) return;
    if (this.#role === Role.leader) this.#unknownAt = this.#ticks + this.#p.limits.outcomeTicks;
    this.#role = role;
    this.#leader = leader;
    this.#p.listener.onRole(this.role, leader);
  }

  /** Messages that wait for all that has been written, though nothing is written for them. */
  #hold(gated: Message[]): void {
    const last = this.#writes.at(-1) ?? this.#unsynced.at(-1);
    if (last) last.gated.push(...gated);
    else for (const message of gated) this.#send(message);
  }

  #write(): void {
    while (!this.#installing) {
      const write = this.#writes.shift();
      if (write === undefined) return;
      if (write.message.snapshot) this.#install(write, write.message.snapshot);
      else this.#append(write);
    }
  }

  #append(write: Write): void {
    const { message, payloads: bytes } = write;
    const { entries } = message;
    const { wal, state, payloads, commit } = this.#p;
    this.#unsynced.push(write);
    if (entries.length > 0 || message.hasHardState) {
      const index = entries[0]?.index ?? state.lastIndex + 1;
      const { term, vote } = message;
      const hard = message.hasHardState ? { term, vote, commit: message.commit } : undefined;
      const frame = encodeAppend({
        group: this.group,
        term: hard?.term ?? state.term,
        index,
        hard,
        entries,
        payloads: bytes,
      });
      wal.append(frame.bytes);
      if (hard) Object.assign(state, hard);
      state.lastIndex = index + entries.length - 1;
      this.#lastFrameLsn = wal.endLsn;
      const { segment, offset } = wal.lastFrame(frame.bytes);
      for (const [i, entry] of entries.entries()) {
        const at = offset + frame.payloadsAt[i]!;
        const stored = { term: entry.term, segment, offset: at, bytes: bytes[i] };
        if (hasPayload(entry)) payloads.put(entry.index, stored);
      }
    }
    commit.after(this.#lastFrameLsn, () => this.#isDurable(write));
  }

  #payloadsOf({ entries, snapshot }: Message): Uint8Array[] {
    if (snapshot === undefined) return entries.map((entry) => this.#payloadOf(entry));
    const state = this.#received.get(`snapshot ${snapshot.term}:${snapshot.index}`);
    if (state === undefined) throw new Error(`the state of snapshot ${snapshot.index} is missing`);
    return [state];
  }

  #payloadOf(entry: Entry): Uint8Array {
    if (!hasPayload(entry)) return noBytes;
    const received = this.#received.get(`${entry.term}:${entry.index}`);
    if (received) return received;
    const { replica, incarnation, firstPosition } = readReference(entry.data);
    if (replica === this.replica && incarnation === this.#p.incarnation) {
      this.#proposals.place(firstPosition, entry.index);
      const own = this.#proposals.payload(firstPosition);
      if (own) return own;
    }
    return this.#p.payloads.get(entry.index, entry.term, entry.data);
  }

  /** The state first, then the log's frame of it: a crash between leaves the state ahead of the log. */
  #install(write: Write, snapshot: Snapshot): void {
    const { machine, payloads, wal, state, commit } = this.#p;
    const { index, term, conf } = snapshot;
    this.#installing = true;
    machine.install(write.payloads[0]!, index);
    payloads.clear();
    this.#proposals.forget(index);
    this.#appliedIndex = index;
    this.#appliedTerm = term;
    this.#conf = conf;
    this.#save({ index, term, conf }, () => {
      const { message } = write;
      const hard = message.hasHardState
        ? { term: message.term, vote: message.vote, commit: message.commit }
        : { term: state.term, vote: state.vote, commit: index };
      wal.append(encodeSnapshotFrame(this.group, index, hard));
      Object.assign(state, hard, { lastIndex: index });
      this.#lastFrameLsn = wal.endLsn;
      this.#unsynced.push(write);
      commit.after(this.#lastFrameLsn, () => this.#isDurable(write));
      this.#installing = false;
      this.#write();
      commit.request();
      this.#answerBarriers();
    });
  }

  #isDurable(write: Write): void {
    if (this.#closed) return;
    this.#unsynced.shift();
    for (const message of this.#p.engine.storageDone(this.handle, 'append')) this.#send(message);
    for (const message of write.gated) this.#send(message);
  }

  #apply(entries: readonly Entry[]): void {
    const { engine, machine } = this.#p;
    for (const entry of entries) {
      const { index, term, kind } = entry;
      let proposals: Uint8Array[] = [];
      let position = 0;
      if (kind !== EntryKind.normal) this.#conf = engine.applyConfChange(this.handle, entry);
      else if (hasPayload(entry)) {
        proposals = splitProposals(this.#p.payloads.get(index, term, entry.data));
        const id = readReference(entry.data);
        const isOwn = id.replica === this.replica && id.incarnation === this.#p.incarnation;
        if (isOwn) position = id.firstPosition;
      }
      machine.apply(index, proposals);
      this.#appliedIndex = index;
      this.#appliedTerm = term;
      this.#proposals.committed(index, position);
    }
    engine.storageDone(this.handle, 'apply');
    this.#answerBarriers();
    this.#checkpoint();
  }

  #answerBarriers(): void {
    if (!this.#installing) this.#barriers.applied(this.#appliedIndex);
  }

  /** Makes the state durable and releases the log before it. */
  #checkpoint(): void {
    const { machine, limits, engine, wal, state, payloads } = this.#p;
    if (this.#saving || this.#installing) return;
    if (this.#appliedIndex - machine.durable.index < limits.checkpointEntries) return;
    const at = { index: this.#appliedIndex, term: this.#appliedTerm, conf: this.#conf };
    this.#save(at, () => {
      engine.setSnapshot(this.handle, { ...at, data: noBytes });
      const upTo = at.index - limits.keptEntries;
      if (upTo < engine.status(this.handle).firstIndex) return;
      engine.compact(this.handle, upTo);
      payloads.dropUpTo(upTo);
      wal.checkpoint(state, upTo);
      void wal.collect();
    });
  }

  /** One at a time. Nothing is applied while an installed state waits for its turn. */
  #save(at: LogPosition, done: () => void): void {
    if (this.#saving) {
      this.#saveNext = () => this.#save(at, done);
      return;
    }
    this.#saving = true;
    this.#p.machine.checkpoint(at, () => {
      this.#saving = false;
      if (this.#closed) return;
      const next = this.#saveNext;
      this.#saveNext = undefined;
      done();
      next?.();
    });
  }

  #send(message: Message): void {
    const { group, incarnation } = this.#p;
    const post = (m: Message, payloads: Uint8Array[]): void =>
      this.#p.send(m.to, { group, incarnation, message: m, payloads });
    if (message.type === MessageType.snapshot) {
      const { state, index, term } = this.exportSnapshot();
      const snapshot = { index, term, conf: this.#conf, data: noBytes };
      post({ ...message, snapshot }, [state]);
      // If it is lost, the follower's next answer says so, and it is sent another one.
      this.#p.engine.reportSnapshot(this.handle, message.to, true);
      return;
    }
    for (const part of splitMessage(message, this.#p.limits.maxMessageBytes)) {
      const carried = part.entries.filter(hasPayload);
      post(
        part,
        carried.map(({ index, term, data }) => this.#payloadToSend(index, term, data)),
      );
    }
  }

  /** A leader sends an entry in the tick of its proposal, before it is written. */
  #payloadToSend(index: number, term: number, data: Uint8Array): Uint8Array {
    const { replica, incarnation, firstPosition } = readReference(data);
    if (replica === this.replica && incarnation === this.#p.incarnation) {
      const own = this.#proposals.payload(firstPosition);
      if (own) return own;
    }
    return this.#p.payloads.get(index, term, data);
  }
}
