// One replica of a group that keeps several copies of its log: carries out the engine's decisions
// in a safe order. Writes that must be on disk before a message is sent:
//
//   a vote, an answer to an append   its frame and all before it (the engine emits these with the frame)
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
} from './entry-reference.ts';
import { isGrant, VoteCount } from './fence.ts';
import type { LoggedEntry } from './frames-to-log.ts';
import { Freshness } from './freshness.ts';
import type { Staleness } from './freshness.ts';
import { GroupLog } from './group-log.ts';
import type { Write } from './group-log.ts';
import { GroupSnapshots } from './group-snapshots.ts';
import { LeasePromise, leaseMark } from './lease-promise.ts';
import { KeptLog } from './kept-log.ts';
import { membersOf } from './log-position.ts';
import type { PeerMessage } from './peer-message.ts';
import { Refusal } from './proposal-log.ts';
import type { ProposalLog, ProposalLogStatus } from './proposal-log.ts';
import { Proposals } from './proposals.ts';
import { Quiescence, SleepType } from './quiescence.ts';
import type { RaftGroupParts } from './raft-group-parts.ts';
import { Outbox } from './outbox.ts';
import { nodeOfReplica } from './replica-id.ts';
import { AskType } from './read-rounds.ts';
import { SnapshotType } from './snapshot-sender.ts';
import { isSole, SoleVoter } from './sole-voter.ts';
import { StrongReads } from './strong-reads.ts';

const noBytes = new Uint8Array(0);
/** Ticks between the campaigns of two successive voters after the loss of the leader. */
const campaignTicks = 3;

/** Whether the message carries a state or entries with a payload. The empty entry that begins a term has none. */
function takesRoom({ type, entries }: Message): boolean {
  const isState = type === MessageType.snapshot || type === SnapshotType.chunk;
  return isState || entries.some(hasPayload);
}

export class RaftGroup implements ProposalLog {
  readonly group: number;
  readonly replica: number;
  readonly handle: number;
  readonly #p: RaftGroupParts;
  readonly #proposals: Proposals;
  readonly #applier: EntryApplier;
  readonly #log: GroupLog;
  readonly #kept: KeptLog;
  readonly #sole: SoleVoter;
  readonly #snapshots: GroupSnapshots;
  readonly #reads: StrongReads;
  readonly #quiescence: Quiescence;
  readonly #freshness: Freshness;
  readonly #promise: LeasePromise;
  readonly #outbox: Outbox;
  readonly #votes: VoteCount;
  /** The term with which the fence ends, 0 where there is none. */
  #fence: number;
  #role = 0;
  /** Term in the engine's output, as other replicas know it or will know it. */
  #term: number;
  #commit: number;
  #leader = 0;
  #batch: Uint8Array[] = [];
  #batchBytes = 0;
  #batchFirst = 0;
  /** Payloads that came with messages of this tick, by term and index. */
  readonly #received = new Map<string, Uint8Array>();
  #ticks = 0;
  #unknownAt = Infinity;
  #unknownBefore = 0;
  /** The engine may have a change of members, or the end of a joint one, that it has not given out to be written yet. */
  #isChangeDue = false;
  /** Proposals may wait for a change of members. */
  #mayWait = false;
  #timeouts: { at: number; then: () => void }[] = [];
  #closed = false;

  constructor(parts: RaftGroupParts) {
    this.#p = parts;
    const { group, replica, incarnation, handle, engine, machine, payloads } = parts;
    this.group = group;
    this.replica = replica;
    this.handle = handle;
    this.#proposals = new Proposals(parts.listener);
    this.#term = parts.state.term;
    this.#commit = parts.begin.index;
    this.#fence = parts.fence;
    this.#votes = new VoteCount(replica);
    const { begin, failed, touch } = parts;
    this.#applier = new EntryApplier({
      ...{ engine, handle, machine, payloads, replica, incarnation, begin, failed },
      isPending: (position) => this.#proposals.payload(position) !== undefined,
      applied: (index, position) => this.#proposals.committed(index, position),
      batchApplied: (isOwn) => {
        this.#liftFence();
        this.#reads.applied();
        this.#kept.checkpointIfDue();
        // The engine now ends a joint change; not while the leadership is handed over.
        this.#isChangeDue ||= this.#applier.conf.outgoing.length > 0;
        this.#endWait();
        if (isOwn) this.#commit = Math.max(this.#commit, this.#applier.index);
        else touch();
      },
    });
    const { wal, log, state, commit } = parts;
    this.#log = new GroupLog({
      ...{ group, handle, engine, machine, wal, log, state, commit, payloads, begin, failed },
      replica,
      applier: this.#applier,
      touch,
      durable: (write) => this.#isDurable(write),
      installed: (index) => {
        this.#proposals.forget(index);
        this.#kept.installed(index);
        this.#liftFence();
        this.#reads.applied();
      },
    });
    this.#sole = new SoleVoter({
      ...{ handle, replica, engine, applier: this.#applier, log: this.#log, touch },
      state: () => ({ role: this.#role, term: this.#term }),
    });
    this.#kept = new KeptLog({
      ...{ group: parts, applier: this.#applier, log: this.#log, sole: this.#sole },
      oldestSnapshot: () => this.#snapshots.oldestIndex,
    });
    const { disk, directory, snapshotSlots: slots } = parts;
    this.#snapshots = new GroupSnapshots({
      ...{ group, disk, directory, machine, slots },
      positionAt: (index) => this.#kept.positionAt(index),
      post: (message, bytes) => this.#outbox.post(message, bytes),
      report: (to, ok) => {
        engine.reportSnapshot(handle, to, ok);
        touch();
      },
      matchOf: (to) => this.matchOf(to),
      time: parts.time,
    });
    const { now, awake, idleTicks } = parts;
    this.#quiescence = new Quiescence({
      ...{ handle, replica, engine, now, awake, idleTicks },
      isAtRest: () => this.#isAtRest,
      appliedIndex: () => this.#applier.index,
      post: (message) => void this.#outbox.post(message, []),
    });
    const { clock, leaseTicks, tickMs } = parts;
    this.#promise = new LeasePromise({
      ...{ disk, ticks: leaseTicks, now, path: leaseMark(directory, group) },
    });
    const leaseMs = leaseTicks * tickMs;
    const keepsLeases = (): boolean => this.#promise.isKept;
    const term = (): number => this.#term;
    this.#freshness = new Freshness({ incarnation, term, clock, leaseMs, keepsLeases });
    this.#outbox = new Outbox({
      ...{ group: parts, applier: this.#applier, log: this.#log, snapshots: this.#snapshots },
      ...{ proposals: this.#proposals, freshness: this.#freshness },
      isFenced: () => this.#fence !== 0,
    });
    this.#reads = new StrongReads({
      ...{ handle, replica, incarnation, engine, applier: this.#applier, log: this.#log },
      freshness: this.#freshness,
      state: () => ({ role: this.#role, term: this.#term, commit: this.#commit }),
      mayUseLeases: parts.mayUseLeases,
      post: (message) => void this.#outbox.post(message, []),
    });
  }

  /** Bytes of entries that this life has written to the log. */
  get writtenBytes(): number {
    return this.#log.writtenBytes;
  }

  /** Bytes of proposals without an outcome. */
  get pendingBytes(): number {
    return this.#proposals.bytes + this.#batchBytes;
  }

  /** Entries after it stay in the log, for `readBack`. */
  set keepAfter(index: number) {
    this.#kept.keepAfter = index;
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
    return this.#add(payload, true);
  }

  /** `isShared` where the caller may change the payload's memory later. */
  #add(payload: Uint8Array, isShared: boolean): number {
    const { limits } = this.#p;
    if (this.#closed) return Refusal.closed;
    if (this.#role !== Role.leader) return Refusal.notLeader;
    const length = payload.length + 4;
    if (length > limits.maxEntryBytes) return Refusal.tooLarge;
    const pending = this.pendingBytes;
    if (pending > 0 && pending + length > limits.maxPendingBytes) return Refusal.overloaded;
    if (this.#p.isFull()) return Refusal.overloaded;
    if (this.#batchBytes + length > limits.maxEntryBytes) {
      if (this.mustWait) return Refusal.overloaded;
      this.#propose();
    }
    const position = this.#proposals.take();
    if (this.#batch.length === 0) this.#batchFirst = position;
    this.#batch.push(isShared ? new Uint8Array(payload) : payload);
    this.#batchBytes += length;
    this.#quiescence.active();
    this.#p.touch();
    return position;
  }

  /**
   * As `propose`, of an entry of its own, at once. Refused, too, where it must wait, or the engine drops it, as during a
   * transfer.
   */
  proposeAlone(payload: Uint8Array): number {
    if (this.mustWait) return Refusal.overloaded;
    this.#propose();
    const position = this.#add(payload, false);
    return position < 0 || this.#propose() ? position : Refusal.overloaded;
  }

  /**
   * Whether this leader proposes nothing now, because members change. An entry behind such a change could reach voters
   * that it removes, and not those that stay and do not know yet that the change is committed. The former would campaign
   * no more, the latter would not get their votes, and the group would have no leader again. `onRelease` tells the end.
   */
  get mustWait(): boolean {
    if (this.#role !== Role.leader) return false;
    return this.#isChangeDue || this.#log.lastChange > this.#applier.index;
  }

  /** With the last change applied, proposals wait no longer. */
  #endWait(): void {
    const hasWaited = this.#mayWait;
    this.#mayWait = this.mustWait;
    if (!hasWaited || this.#mayWait) return;
    this.#p.touch();
    this.#p.listener.onRelease?.();
  }

  readBarrier(then: (isSafe: boolean) => void): void {
    if (this.#closed) return then(false);
    const isAnswered = this.#reads.add(this.#ticks + this.#p.limits.readTicks, then);
    // A single voter leads for good, asleep or not.
    if (isAnswered && this.#reads.isSoleVoter) return;
    this.#quiescence.active();
    if (isAnswered) return;
    this.#p.time();
    this.#p.touch();
  }

  /** See `StrongReads.whenLeading`. Asks no other replica. */
  whenLeading(then: () => void): void {
    if (this.#closed) return;
    this.#quiescence.active();
    this.#reads.whenLeading(then);
  }

  /**
   * Calls back with true once the state includes this index, which a client has seen; with false
   * when that takes longer than a read may. Asks no other replica.
   */
  whenApplied(index: number, then: (isThere: boolean) => void): void {
    if (this.#closed) return then(false);
    const failsAt = this.#ticks + this.#p.limits.readTicks;
    if (!this.#reads.addAt(index, failsAt, then)) this.#p.time();
  }

  /**
   * Strong reads at the leader need no round trip while it has a lease, that is while all voters
   * keep leases. The next leader is then elected later.
   */
  setLeases(isOn: boolean): void {
    this.#promise.set(isOn);
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
    this.#sole.close();
    this.#p.engine.transferLeader(this.handle, to);
    this.#p.touch();
  }

  changeMembers(changes: readonly MemberChange[]): boolean {
    const isJoint = this.#applier.conf.outgoing.length > 0;
    if (this.#role !== Role.leader || isJoint || this.mustWait) return false;
    const type = {
      voter: ConfChangeType.addVoter,
      learner: ConfChangeType.addLearner,
      removed: ConfChangeType.remove,
    };
    this.#quiescence.active();
    // Entries of this tick go before the change.
    this.#propose();
    this.#sole.close();
    const list = changes.map(({ replica, to }) => ({ type: type[to], id: replica }));
    this.#p.touch();
    if (!this.#isTaken(() => this.#p.engine.proposeConfChange(this.handle, list, 0))) return false;
    this.#isChangeDue = true;
    this.#mayWait = true;
    return true;
  }

  status(): ProposalLogStatus {
    const s = this.#p.engine.status(this.handle);
    return {
      replica: this.replica,
      role: this.role,
      leader: s.lead,
      term: s.term,
      commit: Math.max(s.commit, this.#applier.index),
      applied: this.#applier.index,
      firstIndex: s.firstIndex,
      lastIndex: Math.max(s.lastIndex, this.#sole.entries.at(-1)?.index ?? 0),
      members: membersOf(this.#applier.conf),
      isFenced: this.#fence !== 0,
      wasFenced: this.#p.fence !== 0,
      electionsByAll: this.#votes.decidedByAll,
      pendingProposals: this.#proposals.count + this.#batch.length,
      pendingBytes: this.pendingBytes,
    };
  }

  /** For a leader: index up to which another replica has the log, 0 while that is unknown. */
  matchOf(replica: number): number {
    const { peers } = this.#p.engine.progress(this.handle);
    const peer = peers.find(({ id }) => id === replica);
    return peer === undefined || peer.pendingSnapshot !== 0 ? 0 : peer.match;
  }

  /** The machine's state is durable up to an index: the log before it is needed by followers at most. */
  stateIsDurable(index: number): void {
    this.#kept.stateIsDurable(index);
  }

  /** Followers that are behind will be sent a snapshot. */
  releaseLog(): void {
    this.#kept.release();
  }

  /**
   * Requests a checkpoint where that would release more of the log; returns whether one is
   * requested or done.
   */
  checkpointToRelease(): boolean {
    return this.#kept.checkpointToRelease();
  }

  /** Entries in (after, to] that are applied. Throws where one is not there any more. */
  readBack(after: number, to: number): AsyncGenerator<{ index: number; proposals: Uint8Array[] }> {
    return this.#kept.readBack(after, to);
  }

  /** See `KeptLog.storedEntries`. */
  storedEntries(): LoggedEntry[] {
    return this.#kept.storedEntries();
  }

  /**
   * Proposes the writes collected in this tick as one entry, and asks for its reads, with one
   * question.
   */
  flush(): void {
    this.#reads.flush(this.#ticks);
    this.#propose();
  }

  /** False when the message was not for this replica, or its payloads do not match its entries. */
  receive(peer: PeerMessage): boolean {
    const { message, payloads } = peer;
    if (message.to !== this.replica) return false;
    const { type } = message;
    // The room that is left is for terms, votes and leaders. The sender tries again.
    if (this.#p.isFull() && takesRoom(message)) return true;
    this.#snapshots.heard(message.from, peer.incarnation);
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
    if (type === AskType.question) this.#quiescence.wake();
    if (this.#reads.receive(message)) {
      if (this.#reads.count > 0) this.#p.touch();
      return true;
    }
    if (peer.times) this.#freshness.received(message, peer.incarnation, peer.times);
    const isVote = type === MessageType.vote || type === MessageType.preVote;
    if (isVote && !this.#promise.mayGrant) return true;
    // An answer to the last heartbeat may come after the offer to sleep.
    if (type === MessageType.heartbeat) this.#quiescence.wake();
    else if (type !== MessageType.heartbeatResponse) this.#quiescence.active();
    const carried = message.entries.filter(hasPayload);
    if (payloads.length !== carried.length) return false;
    if (!carried.every((entry, i) => isPayloadOf(entry.data, payloads[i]!))) return false;
    if (message.snapshot) {
      // The engine's decision on a snapshot is known only with its next Ready, so they are handled
      // one at a time.
      if (this.#log.isInstalling || !this.#snapshots.receive(peer)) return true;
    }
    // What came with it is dropped at the end of the tick.
    if (carried.length > 0 || message.snapshot) this.#p.touch();
    for (const [i, { term, index }] of carried.entries()) {
      this.#received.set(`${term}:${index}`, payloads[i]!);
    }
    this.#sole.close();
    // The asker asks again.
    const isBehind = (): boolean => this.#sole.entries.length > 0 || this.#reads.isEngineBehind;
    if (type === MessageType.readIndex && isBehind()) return true;
    const steps = isGrant(message)
      ? this.#votes.add(message, this.#fence !== 0, this.#applier.conf)
      : [message];
    return steps.every((step) => this.#isTaken(() => this.#p.engine.step(this.handle, step)));
  }

  handleReady(ready: Ready): void {
    if (ready.hard) {
      this.#term = ready.hard.term;
      // Entries of an only voter are committed before the engine knows.
      this.#commit = Math.max(this.#commit, ready.hard.commit);
    }
    if (ready.soft) this.#setRole(ready.soft.role, ready.soft.lead);
    this.#outbox.begin();
    const gated: Message[] = [];
    let write: Write | undefined;
    for (const message of ready.messages) {
      switch (message.type) {
        case MessageType.storageAppend: {
          const entries = [...this.#sole.unwritten(message.entries)];
          const payloads = entries.map((entry) => this.#payloadOf(entry));
          const staging = message.snapshot && this.#snapshots.take(message.snapshot);
          write = { message: { ...message, entries }, gated, payloads, staging };
          break;
        }
        case MessageType.storageApply:
          break;
        case MessageType.vote:
          gated.push(message);
          break;
        case MessageType.append:
          // Another leader has replaced the entries of an earlier term, and they are reported as lost. A follower that still
          // stored them could lead next, and commit them.
          if (message.term < this.#term) break;
          this.#outbox.send(message);
          break;
        default:
          this.#outbox.send(message);
      }
    }
    if (write) this.#log.add(write);
    else if (gated.length > 0) this.#hold(gated);
    if (this.#role !== Role.leader) this.#proposals.refuseUnplaced();
    this.#reads.answered(ready.reads);
    for (const message of ready.messages) {
      if (message.type !== MessageType.storageApply) continue;
      this.#applier.add(message.entries);
      this.#sole.committed(message.entries.at(-1)?.index ?? 0);
    }
  }

  /** No more messages or Readies are left of this tick. */
  endTick(): void {
    this.#received.clear();
    this.#snapshots.endTick();
    this.#isChangeDue = false;
    this.#endWait();
  }

  /**
   * A node seems to be down. The remaining voters of a group that it led campaign in the order of their ids, so that
   * one election is enough. Returns the ticks that this voter should wait, or undefined when it does nothing.
   */
  nodeDown(node: number): number | undefined {
    if (this.sleepsWith(node)) this.wake();
    const wasThere = this.#leader !== 0 && nodeOfReplica(this.#leader) === node;
    if (!wasThere || this.#role === Role.leader || this.#closed) return undefined;
    this.#quiescence.active();
    // Where there are leases the time-out is waited for, as was promised.
    if (this.#promise.isBound) return undefined;
    const { voters } = this.#applier.conf;
    const left = voters.filter((id) => id !== this.#leader).sort((a, b) => a - b);
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

  get isLed(): boolean {
    return this.#leader !== 0;
  }

  /** Sleeps without a leader, until there is a message, a read or the like. */
  rest(): void {
    if (!this.#closed) this.#quiescence.rest();
  }

  /**
   * Ticks that this voter should wait before it campaigns in a group that has begun, so that one election is enough
   * and leaders are spread over the nodes. Undefined for a replica without a vote.
   */
  get firstCampaign(): number | undefined {
    const voters = [...this.#applier.conf.voters].sort((a, b) => a - b);
    const at = voters.indexOf(this.replica);
    const first = this.group % voters.length;
    return at < 0 ? undefined : ((at - first + voters.length) % voters.length) * campaignTicks;
  }

  /** Lets the group sleep if this leader is idle. Returns true when it has checked the other replicas. */
  sleepIfIdle(): boolean {
    if (this.#role !== Role.leader || this.#closed) return false;
    this.#sole.tell();
    // Pending output of the engine would wake the other replicas again.
    if (this.#p.engine.hasReady(this.handle)) return false;
    return this.#quiescence.offerIfIdle();
  }

  /**
   * Campaigns, unless there is a leader after all. With pre-vote this does not disturb a leader.
   */
  campaignIfLeaderless(): void {
    if (this.#closed || this.#leader !== 0 || this.#role !== Role.follower) return;
    if (this.#promise.isBound) return;
    this.#quiescence.active();
    this.#isTaken(() => this.#p.engine.campaign(this.handle));
    this.#p.touch();
  }

  /** A tick of the pod is over; false when nothing waits for another one. */
  tick(): boolean {
    this.#ticks++;
    if (this.#ticks >= this.#unknownAt) {
      this.#unknownAt = Infinity;
      // Outcomes of proposals taken in an earlier leadership are still reported.
      this.#proposals.forgetBefore(this.#role === Role.leader ? this.#unknownBefore : Infinity);
    }
    this.#reads.tick(this.#ticks);
    this.#endTimeouts(this.#ticks);
    if (this.#reads.count > 0) this.#p.touch();
    this.#snapshots.tick();
    const isTimed = this.#unknownAt !== Infinity || this.#timeouts.length > 0;
    return isTimed || this.#reads.count > 0 || this.#snapshots.isSending;
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
    this.#kept.close();
    this.#log.close();
    this.#snapshots.close();
    this.#proposals.forget(Infinity);
    this.#reads.close();
    this.#endTimeouts(Infinity);
  }

  /** The log here is that of a leader elected since it may have lost its end. */
  #liftFence(): void {
    if (this.#fence === 0 || this.#applier.term < this.#fence) return;
    this.#fence = 0;
    const { commit, wal, fenceLifted } = this.#p;
    commit.after(wal.endLsn, fenceLifted);
    this.#p.touch();
  }

  get #isAtRest(): boolean {
    const isIdle = this.#applier.isIdle && this.#log.last === undefined;
    const isAsked = this.#batch.length > 0 || this.#reads.count > 0;
    if (this.#sole.entries.length > 0) return false;
    return isIdle && !isAsked && !this.#log.isInstalling && !this.#snapshots.isSending;
  }

  #propose(): boolean {
    if (this.#batch.length === 0 || this.mustWait) return true;
    const first = this.#batchFirst;
    const proposals = this.#batch.length;
    const payload = joinProposals(this.#batch);
    this.#batch = [];
    this.#batchBytes = 0;
    this.#proposals.add(first, proposals, payload);
    const { replica, incarnation } = this.#p;
    const id = { replica, incarnation, firstPosition: first, proposals };
    const reference = makeReference(id, payload);
    if (this.#sole.isPossible) {
      this.#proposals.place(first, this.#sole.append(reference, payload).index);
      return true;
    }
    this.#sole.close();
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
      this.#unknownBefore = this.#proposals.next;
      this.#p.time();
    }
    this.#isChangeDue = false;
    this.#mayWait = role === Role.leader;
    this.#role = role;
    this.#leader = leader;
    this.#p.led(leader !== 0);
    if (role !== Role.leader) this.#snapshots.stopSending();
    this.#sole.roleChanged();
    this.#reads.roleChanged();
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
    if (isSole(write)) this.#sole.isDurable(write.sole);
    for (const message of isSole(write) ? [] : this.#p.engine.storageDone(this.handle, 'append'))
      this.#outbox.send(message);
    for (const message of write.gated) this.#outbox.send(message);
  }
}
