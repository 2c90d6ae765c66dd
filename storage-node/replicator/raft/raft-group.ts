// One replica of a group that keeps several copies of its log: the engine's decisions carried out in the order that
// makes them safe. What is on disk before what is sent:
//
//   a vote, an answer to an append   its frame and all before it (the engine hands these out with the frame)
//   a request for votes              likewise, held here
//   an append of the leader          nothing: its own copy counts only once it is on disk
//   a member's report of a snapshot  the state and the log's frame of it

import { MessageType } from '../engine/frames.ts';
import type { Entry, Message, Ready } from '../engine/frames.ts';
import { ConfChangeType, ErrorCode, RaftError, Role } from '../engine/raft-engine.ts';
import type { LogRole, MemberChange } from '../partition-log.ts';
import { EntryApplier } from './entry-applier.ts';
import {
  hasPayload,
  isPayloadOf,
  joinProposals,
  makeReference,
  readReference,
  splitProposals,
} from './entry-reference.ts';
import type { LoggedEntry } from './frames-to-log.ts';
import { Freshness } from './freshness.ts';
import type { Staleness } from './freshness.ts';
import { GroupLog } from './group-log.ts';
import type { Write } from './group-log.ts';
import { GroupSnapshots } from './group-snapshots.ts';
import { membersOf } from './log-position.ts';
import type { LogPosition } from './log-position.ts';
import type { PeerMessage } from './peer-message.ts';
import { Refusal } from './proposal-log.ts';
import type { ProposalLog, ProposalLogStatus } from './proposal-log.ts';
import { Proposals } from './proposals.ts';
import { Quiescence, SleepType } from './quiescence.ts';
import type { RaftGroupParts } from './raft-group-parts.ts';
import { Outbox } from './outbox.ts';
import { ReadBarriers } from './read-barriers.ts';
import { nodeOfReplica } from './replica-id.ts';
import { SnapshotType } from './snapshot-sender.ts';

const noBytes = new Uint8Array(0);
/** How much later than the one before a voter campaigns whose leader is gone. */
const campaignTicks = 3;
/** After so long a checkpoint that was asked for is taken for failed. */
const checkpointTicks = 1200;

export class RaftGroup implements ProposalLog {
  readonly group: number;
  readonly replica: number;
  readonly handle: number;
  readonly #p: RaftGroupParts;
  readonly #proposals: Proposals;
  readonly #applier: EntryApplier;
  readonly #log: GroupLog;
  readonly #snapshots: GroupSnapshots;
  readonly #barriers: ReadBarriers;
  readonly #quiescence: Quiescence;
  readonly #freshness: Freshness;
  readonly #outbox: Outbox;
  /** Entries after it stay in the log, for `readBack`. */
  keepAfter = Infinity;
  #role = 0;
  #leader = 0;
  #batch: Uint8Array[] = [];
  #batchBytes = 0;
  #batchFirst = 0;
  /** Payloads that came with messages of this tick, by term and index. */
  readonly #received = new Map<string, Uint8Array>();
  #durableIndex: number;
  /** In ticks of the pod; -Infinity where none is waited for. */
  #checkpointAskedAt = -Infinity;
  #ticks = 0;
  #unknownAt = Infinity;
  #timeouts: { at: number; then: () => void }[] = [];
  /** Ticks of the pod before which it grants no vote: an earlier life may have promised a leader its lease. */
  #grantsAt = 0;
  #closed = false;

  constructor(parts: RaftGroupParts) {
    this.#p = parts;
    const { group, replica, incarnation, handle, engine, machine, payloads } = parts;
    this.group = group;
    this.replica = replica;
    this.handle = handle;
    this.#durableIndex = machine.durableIndex;
    this.#proposals = new Proposals(parts.listener);
    this.#barriers = new ReadBarriers(replica, incarnation);
    const { begin, failed, touch } = parts;
    this.#applier = new EntryApplier({
      ...{ engine, handle, machine, payloads, replica, incarnation, begin, failed },
      isPending: (position) => this.#proposals.payload(position) !== undefined,
      applied: (index, position) => this.#proposals.committed(index, position),
      batchApplied: () => {
        this.#answerBarriers();
        this.#checkpointIfDue();
        touch();
      },
    });
    const { wal, log, state, commit } = parts;
    this.#log = new GroupLog({
      ...{ group, handle, engine, machine, wal, log, state, commit, payloads, begin, failed },
      applier: this.#applier,
      touch,
      durable: (write) => this.#isDurable(write),
      installed: (index) => {
        this.#proposals.forget(index);
        this.#durableIndex = index;
        this.#checkpointAskedAt = -Infinity;
        this.#answerBarriers();
      },
    });
    const { disk, directory, snapshotSlots: slots } = parts;
    this.#snapshots = new GroupSnapshots({
      ...{ group, disk, directory, machine, slots },
      positionAt: (index) => this.#positionAt(index),
      post: (message, bytes) => this.#outbox.post(message, bytes),
      report: (to, ok) => {
        engine.reportSnapshot(handle, to, ok);
        touch();
      },
      time: parts.time,
    });
    const { now, awake, limits } = parts;
    this.#quiescence = new Quiescence({
      ...{ handle, replica, engine, now, awake, idleTicks: limits.idleTicks },
      isAtRest: () => this.#isAtRest,
      appliedIndex: () => this.#applier.index,
      post: (message) => void this.#outbox.post(message, []),
    });
    const { clock, leaseTicks, tickMs } = parts;
    this.#freshness = new Freshness({ incarnation, clock, leaseMs: leaseTicks * tickMs });
    this.#outbox = new Outbox({
      ...{ group: parts, applier: this.#applier, log: this.#log, snapshots: this.#snapshots },
      ...{ proposals: this.#proposals, freshness: this.#freshness },
    });
    if (leaseTicks > 0) this.#grantsAt = now() + leaseTicks + 2;
  }

  /** Bytes of entries that this life has written to the log. */
  get writtenBytes(): number {
    return this.#log.writtenBytes;
  }

  get isAsleep(): boolean {
    return this.#quiescence.isAsleep;
  }

  get role(): LogRole {
    if (this.#role === Role.leader) return 'leader';
    const { learners, nextLearners } = this.#applier.conf;
    return [...learners, ...nextLearners].includes(this.replica) ? 'learner' : 'follower';
  }

  propose(payload: Uint8Array): number {
    const { limits } = this.#p;
    if (this.#closed) return Refusal.closed;
    if (this.#role !== Role.leader) return Refusal.notLeader;
    const length = payload.length + 4;
    if (length > limits.maxEntryBytes) return Refusal.tooLarge;
    const pending = this.#proposals.bytes + this.#batchBytes;
    if (pending > 0 && pending + length > limits.maxPendingBytes) return Refusal.overloaded;
    if (this.#p.isFull()) return Refusal.overloaded;
    if (this.#batchBytes + length > limits.maxEntryBytes) this.#propose();
    const position = this.#proposals.take();
    if (this.#batch.length === 0) this.#batchFirst = position;
    this.#batch.push(Uint8Array.from(payload));
    this.#batchBytes += length;
    this.#quiescence.active();
    this.#p.touch();
    return position;
  }

  /** As `propose`, of an entry of its own, at once. Refused, too, where the engine drops it, as during a transfer. */
  proposeAlone(payload: Uint8Array): number {
    this.#propose();
    const position = this.propose(payload);
    return position < 0 || this.#propose() ? position : Refusal.overloaded;
  }

  readBarrier(then: (isSafe: boolean) => void): void {
    if (this.#closed) return then(false);
    if (this.#hasLease) return then(true);
    this.#barriers.add(this.#ticks + this.#p.limits.readTicks, then);
    this.#quiescence.active();
    this.#p.time();
    this.#p.touch();
  }

  /**
   * Calls back once the state has what somebody has seen at this index: true; or false when that takes longer than a read
   * may. Asks nobody.
   */
  whenApplied(index: number, then: (isThere: boolean) => void): void {
    if (this.#closed) return then(false);
    if (index <= this.#applier.index && !this.#log.isInstalling) return then(true);
    this.#barriers.addAt(index, this.#ticks + this.#p.limits.readTicks, then);
    this.#p.time();
  }

  /** How old the state here may be; a leader's as of the last round of heartbeats. */
  staleness(): Staleness {
    const { index, term, conf } = this.#applier;
    if (this.#role !== Role.leader) return this.#freshness.staleness(index);
    return this.#freshness.leaderStaleness(this.replica, term, conf);
  }

  get appliedIndex(): number {
    return this.#applier.index;
  }

  /** Calls back after an election time-out, or when the group is closed. */
  afterElectionTimeout(then: () => void): void {
    // The engine counts from its next tick on.
    this.#timeouts.push({ at: this.#ticks + this.#p.electionTicks + 1, then });
    this.#p.time();
  }

  transfer(to: number): void {
    this.#quiescence.active();
    this.#p.engine.transferLeader(this.handle, to);
    this.#p.touch();
  }

  changeMembers(changes: readonly MemberChange[]): boolean {
    if (this.#role !== Role.leader || this.#applier.conf.outgoing.length > 0) return false;
    const type = {
      voter: ConfChangeType.addVoter,
      learner: ConfChangeType.addLearner,
      removed: ConfChangeType.remove,
    };
    this.#quiescence.active();
    const list = changes.map(({ replica, to }) => ({ type: type[to], id: replica }));
    this.#p.touch();
    return this.#isTaken(() => this.#p.engine.proposeConfChange(this.handle, list, 0));
  }

  status(): ProposalLogStatus {
    const s = this.#p.engine.status(this.handle);
    return {
      replica: this.replica,
      role: this.role,
      leader: s.lead,
      term: s.term,
      commit: s.commit,
      applied: this.#applier.index,
      firstIndex: s.firstIndex,
      lastIndex: s.lastIndex,
      members: membersOf(this.#applier.conf),
      pendingProposals: this.#proposals.count + this.#batch.length,
      pendingBytes: this.#proposals.bytes + this.#batchBytes,
    };
  }

  /** Of a leader: index up to which another replica has the log, 0 while that is unknown. */
  matchOf(replica: number): number {
    const { peers } = this.#p.engine.progress(this.handle);
    const peer = peers.find(({ id }) => id === replica);
    return peer === undefined || peer.pendingSnapshot !== 0 ? 0 : peer.match;
  }

  /** The machine's state is durable up to an index: the log before it is needed by followers at most. */
  stateIsDurable(index: number): void {
    this.#checkpointAskedAt = -Infinity;
    this.#durableIndex = Math.max(this.#durableIndex, index);
    this.#releaseUpTo(this.#durableIndex - this.#p.limits.keptEntries);
  }

  /** Followers that are behind will be sent a snapshot. */
  releaseLog(): void {
    this.#releaseUpTo(this.#durableIndex);
  }

  /** Asks for one, where that would let go of more of the log; whether it does, or has. */
  checkpointToRelease(): boolean {
    return this.#durableIndex < this.#applier.index && this.#askForCheckpoint();
  }

  /** Entries in (after, to] that are applied. Throws where one is not there any more. */
  async *readBack(
    after: number,
    to: number,
  ): AsyncGenerator<{ index: number; proposals: Uint8Array[] }> {
    for (let index = after + 1; index <= to; index++) {
      const entry = this.#entryAt(index);
      if (!hasPayload(entry)) continue;
      const payload = this.#p.payloads.get(index, entry.term, entry.data);
      yield { index, proposals: splitProposals(payload) };
      await new Promise(setImmediate);
    }
  }

  /**
   * The entries that are on disk, with where their payloads are; none from the first one on that another one may take the
   * place of there.
   */
  storedEntries(): LoggedEntry[] {
    const { engine, payloads } = this.#p;
    const { begin, firstUnsynced } = this.#log;
    return engine
      .entries(this.handle)
      .filter(({ index }) => index > begin.index && index < firstUnsynced)
      .map((entry) => ({ ...entry, ...payloads.placeOf(entry) }));
  }

  /** Proposes what this tick has gathered, as one entry, and asks for its reads, with one question. */
  flush(): void {
    const question = this.#barriers.question(this.#ticks);
    if (question) this.#p.engine.readIndex(this.handle, question);
    this.#propose();
  }

  /** False when the message was not for this replica, or its payloads are not those of its entries. */
  receive(peer: PeerMessage): boolean {
    const { message, payloads } = peer;
    if (message.to !== this.replica) return false;
    const { type } = message;
    if (type === SnapshotType.chunk || type === SnapshotType.answer) {
      if (payloads.length !== (type === SnapshotType.chunk ? 1 : 0)) return false;
      this.#snapshots.receive(peer);
      return true;
    }
    if (type === SleepType.offer || type === SleepType.wake) {
      if (type === SleepType.offer) this.#quiescence.offered(message);
      else this.#quiescence.active();
      return true;
    }
    if (peer.times) this.#freshness.received(message, peer.incarnation, peer.times);
    const isVote = type === MessageType.vote || type === MessageType.preVote;
    if (isVote && this.#p.now() < this.#grantsAt) return true;
    // An answer to the last heartbeat may come after the offer to sleep.
    if (type === MessageType.heartbeat) this.#quiescence.wake();
    else if (type !== MessageType.heartbeatResponse) this.#quiescence.active();
    const carried = message.entries.filter(hasPayload);
    if (payloads.length !== carried.length) return false;
    if (!carried.every((entry, i) => isPayloadOf(entry.data, payloads[i]!))) return false;
    if (message.snapshot) {
      // What the engine does with one is known with its next Ready only: one at a time.
      if (this.#log.isInstalling || !this.#snapshots.receive(peer)) return true;
    }
    if (carried.length > 0) this.#p.touch();
    for (const [i, { term, index }] of carried.entries()) {
      this.#received.set(`${term}:${index}`, payloads[i]!);
    }
    return this.#isTaken(() => this.#p.engine.step(this.handle, message));
  }

  handleReady(ready: Ready): void {
    if (ready.soft) this.#setRole(ready.soft.role, ready.soft.lead);
    this.#outbox.begin();
    const gated: Message[] = [];
    let write: Write | undefined;
    for (const message of ready.messages) {
      switch (message.type) {
        case MessageType.storageAppend: {
          const payloads = message.entries.map((entry) => this.#payloadOf(entry));
          const staging = message.snapshot && this.#snapshots.take();
          write = { message, gated, payloads, staging };
          break;
        }
        case MessageType.storageApply:
          break;
        case MessageType.vote:
          gated.push(message);
          break;
        default:
          this.#outbox.send(message);
      }
    }
    if (write) this.#log.add(write);
    else if (gated.length > 0) this.#hold(gated);
    if (this.#role !== Role.leader) this.#proposals.refuseUnplaced();
    for (const { index, context } of ready.reads) this.#barriers.answer(context, index);
    if (ready.reads.length > 0) this.#answerBarriers();
    for (const message of ready.messages) {
      if (message.type === MessageType.storageApply) this.#applier.add(message.entries);
    }
  }

  /** No more messages or Readies are left of this tick. */
  endTick(): void {
    this.#received.clear();
  }

  /**
   * A node is gone, it seems. The voters that are left of a group that it led campaign in the order of their ids, so that
   * one election is enough; the ticks that this one should wait, or undefined when it has nothing to do.
   */
  nodeDown(node: number): number | undefined {
    if (this.sleepsWith(node)) this.wake();
    const wasThere = this.#leader !== 0 && nodeOfReplica(this.#leader) === node;
    if (!wasThere || this.#role === Role.leader || this.#closed) return undefined;
    // Where there are leases the time-out is waited for, as was promised.
    if (this.#p.leaseTicks > 0) return undefined;
    const { voters } = this.#applier.conf;
    const left = voters.filter((id) => id !== this.#leader).sort((a, b) => a - b);
    this.#quiescence.active();
    this.#p.engine.forgetLeader(this.handle);
    this.#p.touch();
    const rank = left.indexOf(this.replica);
    return rank < 0 ? undefined : rank * campaignTicks;
  }

  /** Whether it leads, in its sleep, a group with a replica there. */
  sleepsWith(node: number): boolean {
    if (!this.isAsleep || this.#role !== Role.leader) return false;
    const { voters, learners } = membersOf(this.#applier.conf);
    return [...voters, ...learners].some((id) => nodeOfReplica(id) === node);
  }

  wake(): void {
    if (!this.#closed) this.#quiescence.active();
  }

  /** A leader with nothing to do lets its group sleep. */
  sleepIfIdle(): void {
    if (this.#role === Role.leader && !this.#closed) this.#quiescence.offerIfIdle();
  }

  /** Campaigns, unless there is a leader after all. With pre-vote that disturbs nobody. */
  campaignIfLeaderless(): void {
    if (this.#closed || this.#leader !== 0 || this.#role !== Role.follower) return;
    this.#isTaken(() => this.#p.engine.campaign(this.handle));
    this.#p.touch();
  }

  /** A tick of the pod is over; false when nothing waits for another one. */
  tick(): boolean {
    this.#ticks++;
    if (this.#ticks >= this.#unknownAt && this.#role !== Role.leader) {
      this.#unknownAt = Infinity;
      this.#proposals.forget(Infinity);
    }
    this.#barriers.expire(this.#ticks);
    this.#endTimeouts(this.#ticks);
    if (this.#barriers.count > 0) this.#p.touch();
    this.#snapshots.tick();
    const isTimed = this.#unknownAt !== Infinity || this.#timeouts.length > 0;
    return isTimed || this.#barriers.count > 0 || this.#snapshots.isSending;
  }

  #endTimeouts(tick: number): void {
    if (this.#timeouts.length === 0) return;
    const ended = this.#timeouts.filter(({ at }) => at <= tick);
    this.#timeouts = this.#timeouts.filter(({ at }) => at > tick);
    for (const { then } of ended) then();
  }

  close(): void {
    this.#closed = true;
    for (const position of this.#batch.keys()) {
      this.#proposals.add(this.#batchFirst + position, 1, noBytes);
    }
    this.#batch = [];
    this.#applier.close();
    this.#log.close();
    this.#snapshots.close();
    this.#proposals.forget(Infinity);
    this.#barriers.expire(Infinity);
    this.#endTimeouts(Infinity);
  }

  /** It leads, and an entry of its term is applied, with all that was committed before. */
  get #hasLease(): boolean {
    if (this.#p.leaseTicks === 0 || this.#role !== Role.leader || !this.#p.mayUseLeases())
      return false;
    const { term, conf } = this.#applier;
    return !this.#log.isInstalling && this.#freshness.hasLease(this.replica, term, conf);
  }

  get #isAtRest(): boolean {
    const isIdle = this.#applier.isIdle && this.#log.last === undefined;
    const isAsked = this.#batch.length > 0 || this.#barriers.count > 0;
    return isIdle && !isAsked && !this.#log.isInstalling && !this.#snapshots.isSending;
  }

  #propose(): boolean {
    if (this.#batch.length === 0) return true;
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
    return isTaken;
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
    if (this.#role === Role.leader) {
      this.#unknownAt = this.#ticks + this.#p.limits.outcomeTicks;
      this.#p.time();
    }
    this.#role = role;
    this.#leader = leader;
    if (role !== Role.leader) this.#snapshots.stopSending();
    this.#barriers.askAgain();
    this.#p.touch();
    this.#p.listener.onRole(this.role, leader);
  }

  /** Messages that wait for all that has been written, though nothing is written for them. */
  #hold(gated: Message[]): void {
    const { last } = this.#log;
    if (last) last.gated.push(...gated);
    else for (const message of gated) this.#outbox.send(message);
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

  #isDurable(write: Write): void {
    for (const message of this.#p.engine.storageDone(this.handle, 'append'))
      this.#outbox.send(message);
    for (const message of write.gated) this.#outbox.send(message);
  }

  #answerBarriers(): void {
    if (!this.#log.isInstalling) this.#barriers.applied(this.#applier.index);
  }

  #checkpointIfDue(): void {
    const since = this.#applier.index - this.#durableIndex;
    if (since >= this.#p.limits.checkpointEntries) this.#askForCheckpoint();
  }

  /** One that fails is asked for again. */
  #askForCheckpoint(): boolean {
    if (this.#log.isInstalling) return false;
    const now = this.#p.now();
    if (now - this.#checkpointAskedAt < checkpointTicks) return true;
    this.#checkpointAskedAt = now;
    this.#p.machine.checkpoint();
    return true;
  }

  #releaseUpTo(index: number): void {
    // A snapshot takes the place of the entries that `index` is among.
    if (this.#log.isInstalling) return;
    const { keepAfter } = this;
    const upTo = Math.min(index, this.#applier.index, this.#snapshots.oldestIndex, keepAfter);
    if (!this.#closed && upTo > this.#log.begin.index) this.#log.release(this.#positionAt(upTo));
  }

  #positionAt(index: number): LogPosition {
    const { begin } = this.#log;
    const { index: applied, term: appliedTerm, members } = this.#applier;
    let term = index === applied ? appliedTerm : begin.term;
    if (index !== applied && index !== begin.index) ({ term } = this.#entryAt(index));
    return { index, term, conf: members.at(index) };
  }

  #entryAt(index: number): Entry {
    const [entry] = this.#p.engine.entries(this.handle, index, 1);
    if (entry?.index !== index) throw new Error(`the log has no entry ${index} any more`);
    return entry;
  }
}
