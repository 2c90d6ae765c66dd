// How a group begins in a life of its pod: from the log and the durable state of its machine.

import { EntryKind } from '../engine/frames.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import { FrameKind } from '../wal/format.ts';
import { buriedReplica, bury, newGroupState } from '../wal/table.ts';
import type { GroupState } from '../wal/table.ts';
import type { Wal } from '../wal/wal.ts';
import type { FenceRecord } from './fence-record.ts';
import { encodeAppend, encodeCreateFrame, encodeSnapshotFrame } from './frames-to-log.ts';
import type { LoggedEntry } from './frames-to-log.ts';
import { decodePositions, encodePositions } from './log-position.ts';
import type { LogPosition } from './log-position.ts';
import type { ProposalListener } from './proposal-log.ts';
import { nodeOfReplica } from './replica-id.ts';
import type { StateMachine } from './state-machine.ts';

export interface OpenGroupOptions {
  group: number;
  /** Never used before in this group. */
  replica: number;
  machine: StateMachine;
  listener: ProposalListener;
  /**
   * For a group that the log does not know: `firstPosition` of its first members, or
   * `joiningPosition`.
   */
  first: LogPosition;
}

interface GroupOpeningParts {
  wal: Wal;
  fences: FenceRecord;
  engine: RaftEngine;
  electionTicks: number;
  heartbeatTicks: number;
  recovered: Map<number, LoggedEntry[]>;
}

interface GroupBeginning {
  state: GroupState;
  /** Where the log begins, and its entries. */
  begin: LogPosition;
  entries: LoggedEntry[];
  /** In the engine. */
  handle: number;
}

const committedReferenceBytes = 16 * 1024;
const messageReferenceBytes = 8 * 1024;

export class GroupOpening {
  /** Entries in the log of each group that is not open. */
  readonly recovered: Map<number, LoggedEntry[]>;
  readonly #p: GroupOpeningParts;

  constructor(parts: GroupOpeningParts) {
    this.#p = parts;
    this.recovered = parts.recovered;
  }

  /** Throws for a replica that was removed, and where log and state do not go together. */
  open(o: OpenGroupOptions): GroupBeginning {
    const state = this.#stateOf(o);
    const { begin, entries } = this.#historyOf(state, o);
    o.machine.logEndsAt?.(entries.at(-1)?.index ?? begin.index);
    this.#beginFence(state);
    const { durableIndex } = o.machine;
    const handle = this.#createInEngine(o.replica, state, begin, entries, durableIndex);
    return { state, begin, entries, handle };
  }

  #stateOf(o: OpenGroupOptions): GroupState {
    const state = this.#p.wal.groups.get(o.group);
    if (state === undefined) return this.#createGroup(o);
    const buried = buriedReplica(state);
    if (buried === 0) {
      if (!isOfEarlier(state, o)) return state;
      this.bury(o.group, o.replica - 1);
    }
    if (o.replica > buried) return this.#createGroup(o);
    throw new Error(`replica ${o.replica} of group ${o.group} was removed`);
  }

  /** The replica was removed: writes that to the log, for which neither it nor an earlier one returns. */
  bury(group: number, replica: number): void {
    const { wal, fences } = this.#p;
    this.recovered.delete(group);
    fences.lifted(group);
    const state = wal.groups.get(group) ?? newGroupState(group);
    wal.appendNumbers(FrameKind.tombstone, state, 0, replica);
    wal.groups.set(group, bury(state, replica));
  }

  /** Creates the group in the log. Nothing of it has been promised to other replicas yet. */
  #createGroup({ group, replica, first }: OpenGroupOptions): GroupState {
    const { index, term } = first;
    const configuration = encodePositions(first);
    const state = { ...newGroupState(group), term: Math.max(term, 1), configuration };
    Object.assign(state, { lastIndex: index, commit: index, checkpointIndex: index });
    this.#p.wal.append(encodeCreateFrame(state, replica));
    this.#p.wal.groups.set(group, state);
    return state;
  }

  /** Where a group's log begins, and its entries. */
  #historyOf(
    state: GroupState,
    o: OpenGroupOptions,
  ): { begin: LogPosition; entries: LoggedEntry[] } {
    const { group, lastIndex } = state;
    const { durableIndex } = o.machine;
    const [begin, intent] = decodePositions(state.configuration);
    if (begin === undefined) throw new Error(`group ${group} is not one with several copies`);
    const all = this.recovered.get(group) ?? [];
    this.recovered.delete(group);
    if (intent && durableIndex === intent.index && durableIndex > begin.index) {
      this.#completeInstall(state, intent);
      return { begin: intent, entries: [] };
    }
    const entries = all.filter(({ index }) => index > begin.index && index <= lastIndex);
    const isWhole = entries.every(({ index }, i) => index === begin.index + 1 + i);
    if (!isWhole || begin.index + entries.length !== lastIndex) {
      throw new Error(`group ${group}: entries are missing after ${begin.index}`);
    }
    const mayOutrun = this.#p.fences.wasUnclean || this.#p.fences.fenceOf(group) !== 0;
    if (durableIndex > lastIndex && mayOutrun) {
      const at = this.#outran(state, o, begin, entries);
      this.#completeInstall(state, at);
      return { begin: at, entries: [] };
    }
    // The state of a new group holds nothing.
    const isBefore = durableIndex < begin.index && begin.index > 1;
    if (durableIndex > lastIndex || isBefore) {
      const log = `from ${begin.index} to ${lastIndex}`;
      throw new Error(`group ${group}: the state is that of ${durableIndex}, the log ${log}`);
    }
    return { begin, entries };
  }

  /**
   * The state has entries that the log has lost. Their term is that of the last remaining entry, and none of them
   * changes the members: such changes, and the first entry of a term, were on disk before they were applied.
   */
  #outran(
    state: GroupState,
    { replica, machine }: OpenGroupOptions,
    begin: LogPosition,
    entries: readonly LoggedEntry[],
  ): LogPosition {
    const { engine } = this.#p;
    let { conf } = begin;
    const changes = entries.filter(({ kind }) => kind !== EntryKind.normal);
    if (changes.length > 0) {
      const handle = this.#createInEngine(replica, state, begin, entries, begin.index);
      for (const entry of changes) conf = engine.applyConfChange(handle, entry);
      engine.destroy(handle);
    }
    return { index: machine.durableIndex, term: entries.at(-1)?.term ?? begin.term, conf };
  }

  /**
   * Fences all groups, including those that this start never opens, because each may lack acknowledged entries. Sets
   * no fences where the loss is accepted.
   */
  fenceAll(isLossAccepted: boolean): void {
    const fences = new Map<number, number>();
    for (const [group, state] of isLossAccepted ? [] : this.#p.wal.groups) {
      if (buriedReplica(state) !== 0) continue;
      fences.set(group, Math.max(this.#p.fences.fenceOf(group), state.term) + 1);
    }
    this.#p.fences.fence(fences);
  }

  /** A fenced replica begins in the term of its fence. */
  #beginFence(state: GroupState): void {
    const { group, lastIndex, commit } = state;
    const term = this.#p.fences.fenceOf(group);
    if (state.term >= term) return;
    const hard = { term, vote: 0, commit };
    const frame = { group, term, index: lastIndex + 1, hard, entries: [], payloads: [] };
    this.#p.wal.append(encodeAppend(frame).bytes);
    Object.assign(state, hard);
  }

  /** The state of a snapshot took the place of the old one, and then the pod ended. */
  #completeInstall(state: GroupState, { index, term, conf }: LogPosition): void {
    if (term > state.term) Object.assign(state, { term, vote: 0 });
    Object.assign(state, { commit: index, lastIndex: index, checkpointIndex: index });
    state.configuration = encodePositions({ index, term, conf });
    const hard = { term: state.term, vote: state.vote, commit: index };
    const { group, configuration } = state;
    this.#p.wal.append(encodeSnapshotFrame(group, index, hard, hard.term, configuration));
  }

  #createInEngine(
    replica: number,
    { term, vote, commit, lastIndex }: GroupState,
    begin: LogPosition,
    entries: readonly LoggedEntry[],
    durableIndex: number,
  ): number {
    // Applied entries were committed, even if the log has no record of that.
    const committed = Math.max(Math.min(commit, lastIndex), durableIndex, begin.index);
    return this.#p.engine.create({
      id: replica,
      electionTicks: this.#p.electionTicks,
      heartbeatTicks: this.#p.heartbeatTicks,
      preVote: true,
      checkQuorum: true,
      asyncStorage: true,
      noForwarding: true,
      stepDownOnRemoval: true,
      maxCommittedBytes: committedReferenceBytes,
      maxMessageBytes: messageReferenceBytes,
      maxInflightMessages: 128,
      snapshot: { ...begin, data: new Uint8Array(0) },
      hard: { term, vote, commit: committed },
      entries,
    });
  }
}

/**
 * Whether the log that a replica finds is that of an earlier one of its group on this node: it begins after entries of which the
 * replica's state has nothing, and with members that the replica is not among. Nor is a later one.
 */
function isOfEarlier(state: GroupState, { replica, machine }: OpenGroupOptions): boolean {
  const [begin] = decodePositions(state.configuration);
  if (begin === undefined || begin.index <= 1 || machine.durableIndex > 0) return false;
  const { voters, outgoing, learners, nextLearners } = begin.conf;
  const here = [...voters, ...outgoing, ...learners, ...nextLearners].filter((one) => {
    return nodeOfReplica(one) === nodeOfReplica(replica);
  });
  return here.every((one) => one < replica);
}
