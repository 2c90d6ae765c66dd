// All replicated groups of a pod: one engine, one write-ahead log, one tick. Whoever owns it calls `tick` every so
// often, `receive` for what comes from other pods, and `work` at the end of each event-loop tick.

import type { Disk, Rng } from '../../../universal-row/environment.ts';
import { emptyConf, FrameError } from '../engine/frames.ts';
import type { ConfState } from '../engine/frames.ts';
import { RaftError } from '../engine/raft-engine.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import type { LogListener } from '../partition-log.ts';
import { Ballast } from '../wal/ballast.ts';
import { defaultSegmentBytes, FrameKind } from '../wal/format.ts';
import { highestSegment, recoverLog } from '../wal/recovery.ts';
import type { RecoveredLog } from '../wal/recovery.ts';
import { newGroupState } from '../wal/table.ts';
import { Wal } from '../wal/wal.ts';
import { hasPayload } from './entry-reference.ts';
import { decodeAppend } from './frames-to-log.ts';
import type { LoggedEntry } from './frames-to-log.ts';
import { GroupCommit } from './group-commit.ts';
import { Payloads } from './payloads.ts';
import { decodePeerMessage, encodePeerMessage } from './peer-message.ts';
import { RaftGroup } from './raft-group.ts';
import type { RaftGroupLimits } from './raft-group.ts';
import type { LogPosition, StateMachine } from './state-machine.ts';

export interface RaftPodOptions {
  disk: Disk;
  directory: string;
  ids: { cluster: number; pod: number };
  rng: Rng;
  engine: RaftEngine;
  segmentBytes?: number;
  electionTicks?: number;
  heartbeatTicks?: number;
  limits?: Partial<RaftGroupLimits>;
  /** Bytes of payloads in memory for each group. */
  payloadCacheBytes?: number;
  /** To the pod that has this replica. May be lost, late, twice and out of order. */
  send: (group: number, toReplica: number, message: Uint8Array) => void;
  /** Something became durable: `work` has something to do. */
  wake: () => void;
  /** Must end the pod: what is on disk is in doubt. */
  fatal: (error: Error) => void;
}

export interface OpenGroupOptions {
  group: number;
  /** Never used before in this group. */
  replica: number;
  machine: StateMachine;
  listener: LogListener;
}

const defaultLimits: RaftGroupLimits = {
  maxEntryBytes: 64 * 1024 * 1024,
  maxMessageBytes: 1024 * 1024,
  maxPendingBytes: 64 * 1024 * 1024,
  checkpointEntries: 4096,
  keptEntries: 2048,
  readTicks: 60,
  outcomeTicks: 200,
};

const readyBytes = 1 << 20;
const roundsAtOnce = 16;
const committedReferenceBytes = 16 * 1024;
const messageReferenceBytes = 8 * 1024;

/** The position that a new group begins at on each of its first members. */
export function firstPosition(voters: readonly number[]): LogPosition {
  return { index: 1, term: 1, conf: { ...emptyConf, voters: [...voters] } };
}

export class RaftPod {
  readonly incarnation: number;
  readonly #options: RaftPodOptions;
  readonly #wal: Wal;
  readonly #commit: GroupCommit;
  readonly #ballast: Ballast;
  readonly #limits: RaftGroupLimits;
  /** What the log had of each group, until the group is opened. */
  readonly #recovered: Map<number, LoggedEntry[]>;
  readonly #byNumber = new Map<number, RaftGroup>();
  readonly #byHandle = new Map<number, RaftGroup>();
  /** Messages that were not what they should be, or for no replica here. */
  droppedMessages = 0;

  static async open(options: RaftPodOptions): Promise<RaftPod> {
    const { disk, directory, ids } = options;
    disk.makeDirectory(directory);
    const recovered = new Map<number, LoggedEntry[]>();
    const found = await recoverLog({
      disk,
      directory,
      ...ids,
      volume: undefined,
      acceptLoss: false,
      onTable: () => undefined,
      onAppend(frame) {
        const entries = recovered.get(frame.group) ?? [];
        while (entries.length > 0 && entries.at(-1)!.index >= frame.index) entries.pop();
        entries.push(...decodeAppend(frame));
        recovered.set(frame.group, entries);
      },
      onProgress: undefined,
    });
    return new RaftPod(options, found, recovered);
  }

  private constructor(
    options: RaftPodOptions,
    found: RecoveredLog | undefined,
    recovered: Map<number, LoggedEntry[]>,
  ) {
    this.#options = options;
    this.#recovered = recovered;
    this.#limits = { ...defaultLimits, ...options.limits };
    this.incarnation = (found?.incarnation ?? 0) + 1;
    const { disk, directory, rng, ids, fatal } = options;
    this.#ballast = new Ballast(disk, directory, (error) => fatal(error as Error));
    const volume = 1 + Math.floor(rng.next() * (Number.MAX_SAFE_INTEGER - 1));
    this.#wal = new Wal(
      {
        disk,
        directory,
        segmentBytes: options.segmentBytes ?? defaultSegmentBytes,
        identity: found?.identity ?? { ...ids, volume },
        incarnation: this.incarnation,
        ballast: this.#ballast,
        fatal,
      },
      found?.segments ?? [],
      found?.groups ?? new Map(),
    );
    if (found === undefined) this.#wal.create(highestSegment(disk, directory) + 1);
    const identity = found?.identity.volume ?? volume;
    this.#wal.appendNumbers(FrameKind.boot, undefined, 0, this.incarnation, 0, identity);
    this.#wal.syncNow();
    this.#commit = new GroupCommit(this.#wal, options.wake, fatal);
  }

  /** Whether the log knows the group: it was opened in an earlier life, and not removed. */
  knows(group: number): boolean {
    return this.#wal.groups.has(group);
  }

  /**
   * Opens a replica at what its machine holds durably and the log after it. A new group's first members have
   * `firstPosition` there, a replica that is to join position 0.
   */
  openGroup(o: OpenGroupOptions): RaftGroup {
    const wal = this.#wal;
    const state = wal.groups.get(o.group) ?? newGroupState(o.group);
    if (!wal.groups.has(o.group)) {
      wal.appendNumbers(FrameKind.create, state, 0, o.replica);
      wal.groups.set(o.group, state);
      wal.syncNow();
    }
    const { durable } = o.machine;
    const entries = this.#entriesAfter(state.lastIndex, durable, o.group);
    this.#alignState(o.group, durable, entries);
    const payloads = new Payloads(wal, this.#options.payloadCacheBytes ?? 4 * 1024 * 1024);
    for (const entry of entries) {
      const { index, term, segment, offset } = entry;
      if (!hasPayload(entry)) continue;
      payloads.put(index, { term, segment, offset, bytes: undefined });
    }
    const handle = this.#createInEngine(o.replica, o.group, durable, entries);
    const group = new RaftGroup({
      group: o.group,
      replica: o.replica,
      incarnation: this.incarnation,
      handle,
      engine: this.#options.engine,
      wal,
      state,
      commit: this.#commit,
      payloads,
      machine: o.machine,
      listener: o.listener,
      limits: this.#limits,
      send: (to, message) => this.#options.send(o.group, to, encodePeerMessage(message)),
    });
    this.#byNumber.set(o.group, group);
    this.#byHandle.set(handle, group);
    return group;
  }

  /** The replica is no member any more: its log is forgotten, and its id never comes back. */
  removeGroup(number: number): void {
    const group = this.#byNumber.get(number);
    const state = this.#wal.groups.get(number);
    if (group === undefined || state === undefined) return;
    this.#closeGroup(group);
    this.#options.engine.destroy(group.handle);
    this.#wal.appendNumbers(FrameKind.tombstone, state, 0, group.replica);
    this.#wal.groups.delete(number);
    this.#wal.syncNow();
  }

  group(number: number): RaftGroup | undefined {
    return this.#byNumber.get(number);
  }

  /** Time goes on by one tick. */
  tick(): void {
    for (const handle of this.#options.engine.tickAll()) this.#died(handle);
    for (const group of this.#byNumber.values()) group.tick();
  }

  /** A message from another pod. Anything that is not one, or is damaged, is dropped. */
  receive(bytes: Uint8Array): void {
    try {
      const message = decodePeerMessage(bytes);
      if (this.#byNumber.get(message.group)?.receive(message)) return;
    } catch (error) {
      if (error instanceof RaftError) return this.#options.fatal(error);
      if (!(error instanceof FrameError)) throw error;
    }
    this.droppedMessages++;
  }

  /** Does what the engine asks for; true when it must be called again soon. */
  work(): boolean {
    for (const group of this.#byNumber.values()) group.flush();
    let left = roundsAtOnce;
    for (; left > 0; left--) {
      const readies = this.#options.engine.readyAll(readyBytes);
      if (readies.length === 0) break;
      for (const { group: handle, ready } of readies) {
        if (ready instanceof RaftError) this.#died(handle);
        else this.#byHandle.get(handle)?.handleReady(ready);
      }
    }
    this.#commit.request();
    if (left === 0) return true;
    for (const group of this.#byNumber.values()) group.endTick();
    return false;
  }

  async close(): Promise<void> {
    for (const group of this.#byNumber.values()) this.#closeGroup(group);
    await this.#commit.stop();
    await this.#ballast.stop();
    await this.#wal.close();
  }

  get walBytes(): number {
    return this.#wal.bytes;
  }

  #closeGroup(group: RaftGroup): void {
    group.close();
    this.#byNumber.delete(group.group);
    this.#byHandle.delete(group.handle);
  }

  /** The engine has given the group up: its replica must be opened anew from the log, in a new life of the pod. */
  #died(handle: number): void {
    const group = this.#byHandle.get(handle);
    if (group) this.#options.fatal(new Error(`group ${group.group}: the consensus engine died`));
  }

  /** Entries of the log that continue what the machine holds; none when they are of another history. */
  #entriesAfter(lastIndex: number, at: LogPosition, group: number): LoggedEntry[] {
    const all = (this.#recovered.get(group) ?? []).filter(({ index }) => index <= lastIndex);
    this.#recovered.delete(group);
    const here = all.find(({ index }) => index === at.index);
    const after = all.filter(({ index }) => index > at.index);
    if (here && here.term !== at.term) return [];
    if (after.length > 0 && after[0]!.index !== at.index + 1) return [];
    return !here && after.length > 0 && after[0]!.term < at.term ? [] : after;
  }

  /** A machine that is ahead of its log was sent a snapshot when the pod ended: the log goes on from there. */
  #alignState(group: number, at: LogPosition, entries: readonly LoggedEntry[]): void {
    const state = this.#wal.groups.get(group)!;
    if (at.term > state.term) {
      state.term = at.term;
      state.vote = 0;
    }
    state.commit = Math.max(state.commit, at.index);
    const lastIndex = at.index + entries.length;
    if (state.lastIndex === lastIndex) return;
    this.#wal.appendNumbers(FrameKind.snap, state, lastIndex);
    state.lastIndex = lastIndex;
    this.#wal.syncNow();
  }

  #createInEngine(
    replica: number,
    group: number,
    at: { index: number; term: number; conf: ConfState },
    entries: readonly LoggedEntry[],
  ): number {
    const { term, vote, commit, lastIndex } = this.#wal.groups.get(group)!;
    return this.#options.engine.create({
      id: replica,
      electionTicks: this.#options.electionTicks ?? 20,
      heartbeatTicks: this.#options.heartbeatTicks ?? 3,
      preVote: true,
      checkQuorum: true,
      asyncStorage: true,
      noForwarding: true,
      stepDownOnRemoval: true,
      maxCommittedBytes: committedReferenceBytes,
      maxMessageBytes: messageReferenceBytes,
      maxInflightMessages: 128,
      snapshot: { ...at, data: new Uint8Array(0) },
      hard: { term, vote, commit: Math.min(commit, lastIndex) },
      entries,
    });
  }
}
