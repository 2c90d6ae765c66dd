// All replicated groups of a pod: one engine, one write-ahead log, one tick. Its owner calls `tick`
// periodically, `receive` for messages of other pods, and `work` at the end of each event-loop
// tick.

import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import { systemClock } from '../../../universal-row/environment.ts';
import type { Clock, Disk, Rng } from '../../../universal-row/environment.ts';
import { FrameError } from '../engine/frames.ts';
import { RaftError } from '../engine/raft-engine.ts';
import type { RaftEngine } from '../engine/raft-engine.ts';
import type { FsyncPolicy, LogStatus } from '../partition-log.ts';
import { Lane } from '../transport/transport.ts';
import { Ballast } from '../wal/ballast.ts';
import { defaultSegmentBytes, FrameKind } from '../wal/format.ts';
import { isDiskFull, LogMismatchError, LogWriteError } from '../wal/log-errors.ts';
import { highestSegment, recoverLog } from '../wal/recovery.ts';
import type { RecoveredLog } from '../wal/recovery.ts';
import { buriedReplica } from '../wal/table.ts';
import { Wal } from '../wal/wal.ts';
import { hasPayload } from './entry-reference.ts';
import { FenceRecord } from './fence-record.ts';
import { decodeAppend } from './frames-to-log.ts';
import type { LoggedEntry } from './frames-to-log.ts';
import { GroupCommit } from './group-commit.ts';
import { GroupOpening } from './group-opening.ts';
import type { OpenGroupOptions } from './group-opening.ts';
import type { LogItem } from './group-log.ts';
import { GroupStarts } from './group-starts.ts';
import { leaseMark } from './lease-promise.ts';
import { LogBatch } from './log-batch.ts';
import { decodePositions } from './log-position.ts';
import { Payloads } from './payloads.ts';
import { areHeartbeats, decodeHeartbeats, encodeHeartbeats } from './heartbeats.ts';
import type { Heartbeat } from './heartbeats.ts';
import { decodePeerMessage, encodePeerMessage, laneOf } from './peer-message.ts';
import type { PeerMessage } from './peer-message.ts';
import { nodeOfReplica } from './replica-id.ts';
import { RaftGroup } from './raft-group.ts';
import type { RaftGroupLimits } from './raft-group-parts.ts';
import { removeStagings } from './snapshot-staging.ts';

interface RaftPodOptions {
  disk: Disk;
  directory: string;
  ids: { cluster: number; pod: number };
  rng: Rng;
  clock?: Clock;
  engine: RaftEngine;
  /** When acknowledged entries are on disk; by default before they are acknowledged. */
  fsync?: FsyncPolicy;
  /** Differs after each start of the machine; '' where that is unknown. */
  boot?: string;
  /** Opens groups without fences, whatever they may have lost. */
  acceptLoss?: boolean;
  segmentBytes?: number;
  /** Space reserved for a full disk; at most a sixteenth of the free space. 0 for none. */
  ballastBytes?: number;
  /** Beyond it groups that keep the oldest segment are made to let it go. */
  maxLogBytes?: number;
  electionTicks?: number;
  heartbeatTicks?: number;
  /** Milliseconds between two calls of `tick`, about. */
  tickMs?: number;
  /** False while the monotonic clock is in doubt: no lease is used. */
  clocksAgree?: () => boolean;
  limits?: Partial<RaftGroupLimits>;
  /** Bytes of payloads in memory for each group. */
  payloadCacheBytes?: number;
  /**
   * To the pod that has this replica. May be lost, late, twice and out of order; false when it surely is lost. The bytes
   * are the pod's again when this returns.
   */
  send: (toReplica: number, lane: Lane, message: Uint8Array) => boolean;
  /** Something became durable: `work` has something to do. */
  wake: () => void;
  /** Must end the pod: the state on disk is uncertain. */
  fatal: (error: Error) => void;
}

const defaultLimits: RaftGroupLimits = {
  maxEntryBytes: 64 * 1024 * 1024,
  maxMessageBytes: 1024 * 1024,
  maxPendingBytes: 64 * 1024 * 1024,
  checkpointEntries: 65_536,
  keptEntries: 2048,
  readTicks: 60,
  outcomeTicks: 200,
  idleTicks: 100,
};

const defaultBallastBytes = 16 * 1024 * 1024;
const readyBytes = 64 * 1024;
/** Milliseconds for processing the engine's output in one step. The rest is left to the next step. */
const workMs = 8;
const collectTicks = 20;
const sleepTicks = 10;
const snapshotsAtOnce = 4;
const checkpointsAtOnce = 16;
const groupsPerTick = 200;
const defaultMaxLogBytes = 1024 * 1024 * 1024;
const roundsAtOnce = 16;
const defaultElectionTicks = 20;
/** Of that many groups the heartbeats are cheap; of more, each is awake for a shorter time. */
const cheaplyAwake = 256;
const minIdleTicks = 10;
const heartbeatsInMessage = 500;
const offersEachTick = 200;
const startsAtOnce = 256;
const startsEachTick = 64;
const leastStarts = 8;

export class RaftPod {
  readonly incarnation: number;
  readonly #options: RaftPodOptions;
  readonly #wal: Wal;
  readonly #volume: number;
  readonly #commit: GroupCommit;
  readonly #ballast: Ballast;
  readonly #limits: RaftGroupLimits;
  readonly #opening: GroupOpening;
  readonly #byNumber = new Map<number, RaftGroup>();
  readonly #byHandle = new Map<number, RaftGroup>();
  readonly #log: LogBatch<LogItem>;
  /** Groups with something to do at the end of this event-loop tick, and those that wait for ticks. */
  readonly #touched = new Set<RaftGroup>();
  readonly #timed = new Set<RaftGroup>();
  /** Those whose work of this event-loop tick is not over. */
  readonly #flushed = new Set<RaftGroup>();
  /** Groups that do not sleep. */
  readonly #awake = new Set<number>();
  /** Those that have not been asked whether they can sleep. */
  #askToSleep: Iterator<number> | undefined;
  #sleepDue = false;
  readonly #starts: GroupStarts<RaftGroup>;
  /** Visits to all groups, of which each tick makes some. */
  #rounds: { left: Iterator<RaftGroup>; visit: (group: RaftGroup) => boolean }[] = [];
  /** By node: heartbeats sent in one message at the end of this event-loop tick. */
  readonly #heartbeats = new Map<number, Heartbeat[]>();
  readonly #clock: Clock;
  #ticks = 0;
  #noLeasesBefore = 0;
  readonly #snapshotSlots = { free: snapshotsAtOnce };
  readonly #fences: FenceRecord;
  readonly #due = new Map<number, (() => void)[]>();
  /** The log does not tell yet that this life has begun: the disk is full. */
  #bootPending = true;
  /** Invalid messages, and messages for no replica here. */
  droppedMessages = 0;

  static async open(options: RaftPodOptions): Promise<RaftPod> {
    const { disk, directory, ids } = options;
    makeDurableDirectory(disk, directory);
    removeStagings(disk, directory);
    const fences = new FenceRecord(disk, directory, options.boot ?? '');
    const recovered = new Map<number, LoggedEntry[]>();
    let found: RecoveredLog | undefined;
    try {
      found = await recoverLog({
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
        onRemoved: (group) => void recovered.delete(group),
        onProgress: undefined,
      });
    } catch (error) {
      throw logFailure(fences, error);
    }
    const pod = new RaftPod(options, fences, found, recovered);
    await pod.#ballast.prepare(options.ballastBytes ?? defaultBallastBytes);
    return pod;
  }

  private constructor(
    options: RaftPodOptions,
    fences: FenceRecord,
    found: RecoveredLog | undefined,
    recovered: Map<number, LoggedEntry[]>,
  ) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
    this.incarnation = (found?.incarnation ?? 0) + 1;
    const { disk, directory, rng, ids } = options;
    this.#fences = fences;
    this.#ballast = new Ballast(disk, directory, (error) => options.fatal(error as Error));
    fences.makeRoom = () => this.#ballast.release();
    const fatal = (error: Error): void => options.fatal(logFailure(fences, error));
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
    this.#volume = found?.identity.volume ?? volume;
    this.#boot();
    this.#log = new LogBatch(this.#wal);
    this.#clock = options.clock ?? systemClock;
    this.#commit = new GroupCommit(this.#wal, this.#clock, options.wake, fatal);
    const { engine, electionTicks, heartbeatTicks } = options;
    this.#opening = new GroupOpening({
      ...{ wal: this.#wal, fences: this.#fences, recovered, engine },
      electionTicks: electionTicks ?? defaultElectionTicks,
      heartbeatTicks: heartbeatTicks ?? 3,
    });
    this.#starts = new GroupStarts({
      atOnce: startsAtOnce,
      patienceTicks: 3 * this.#electionTicks,
      campaign: (group) => this.#campaignAfter(group, group.firstCampaign),
    });
    if (this.#fences.wasUnclean) this.#opening.fenceAll(options.acceptLoss === true);
    // What was recovered is on disk.
    this.fsync = options.fsync ?? 'always';
    this.#settle();
  }

  /**
   * Records this start in the log. Nothing is sent or received before the record is on disk, because the next start
   * would have the same number. On a full disk the write is retried once there is room.
   */
  #boot(): void {
    try {
      this.#wal.appendNumbers(FrameKind.boot, undefined, 0, this.incarnation, 0, this.#volume);
    } catch (error) {
      if (!(error instanceof LogWriteError)) throw error;
      return;
    }
    this.#wal.syncNow();
    this.#bootPending = false;
  }

  /** Begins this life if there is room again. Until then the groups here have no leader. */
  #hasBegun(): boolean {
    // A failed attempt postpones the next check of the free space by the ballast.
    if (this.#bootPending && this.#ballast.failure === undefined) this.#boot();
    return !this.#bootPending;
  }

  /** Whether this life began with groups that may lack the last acknowledged entries. */
  get wasUnclean(): boolean {
    return this.#fences.wasUnclean;
  }

  get fsync(): FsyncPolicy {
    return this.#commit.policy;
  }

  set fsync(policy: FsyncPolicy) {
    if (policy !== 'always') this.#fences.relax();
    const isStricter = policy === 'always' && this.#commit.policy !== 'always';
    this.#commit.policy = policy;
    if (isStricter) void this.sync().then(() => this.#settle());
  }

  /** Resolves when all that was written before is on disk; never once the pod is closed. */
  sync(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#wal.endLsn <= this.#wal.durableLsn) return resolve();
      this.#commit.after(this.#wal.endLsn, resolve);
      this.#options.wake();
    });
  }

  /** Whether the log knows the group: it was opened in an earlier life, and not removed. */
  knows(group: number): boolean {
    const state = this.#wal.groups.get(group);
    return state !== undefined && buriedReplica(state) === 0;
  }

  /** Bytes of one entry's payload. */
  get maxEntryBytes(): number {
    return this.#limits.maxEntryBytes;
  }

  /**
   * Opens a replica from the durable state of its machine, and the log. Throws for one that was
   * removed.
   */
  openGroup(o: OpenGroupOptions): RaftGroup {
    const wal = this.#wal;
    const { state, begin, entries, handle } = this.#opening.open(o);
    const payloads = new Payloads(wal, this.#options.payloadCacheBytes ?? 4 * 1024 * 1024);
    for (const entry of entries) {
      const { index, term, segment, offset } = entry;
      if (hasPayload(entry)) payloads.putStored(index, term, segment, offset);
    }
    const { engine, disk, directory, fatal: failed } = this.#options;
    const group: RaftGroup = new RaftGroup({
      ...{ ...o, handle, begin, engine, disk, directory, wal, state, payloads, failed },
      incarnation: this.incarnation,
      log: this.#log,
      commit: this.#commit,
      fence: this.#fences.fenceOf(o.group),
      fenceLifted: () => this.#fences.lifted(o.group),
      limits: this.#limits,
      clock: () => this.#clock.monotonic(),
      electionTicks: this.#electionTicks,
      leaseTicks: this.#electionTicks - 2,
      tickMs: this.#options.tickMs ?? 50,
      mayUseLeases: () =>
        this.#ticks >= this.#noLeasesBefore && (this.#options.clocksAgree?.() ?? true),
      snapshotSlots: this.#snapshotSlots,
      send: (to, message) => this.#send(to, message),
      touch: () => {
        this.#touched.add(group);
        this.#options.wake();
      },
      time: () => {
        this.#timed.add(group);
        this.#options.wake();
      },
      now: () => this.#ticks,
      awake: (isAwake) => {
        if (!isAwake) {
          this.#awake.delete(o.group);
          return;
        }
        this.#awake.add(o.group);
        const woken = this.#byNumber.get(o.group);
        if (woken) this.#starts.woken(woken, this.#ticks);
        this.#options.wake();
      },
      idleTicks: () => this.#idleTicks,
      led: (isLed) => {
        if (isLed) this.#starts.ended(group);
        else this.#starts.leaderless(group, this.#ticks);
      },
      isFull: () => this.#ballast.failure !== undefined,
    });
    this.#byNumber.set(o.group, group);
    this.#byHandle.set(handle, group);
    this.#starts.opened(group, this.#ticks);
    return group;
  }

  /**
   * Removes a replica that is no longer a member, open or not: its log is dropped, and its id is never reused.
   * `replica` is needed where the group is not open. Resolves when the removal is on disk. The state must not be
   * deleted before.
   */
  async removeGroup(number: number, replica = this.#byNumber.get(number)?.replica): Promise<void> {
    if (replica === undefined) throw new Error(`group ${number} is not open`);
    this.closeGroup(number);
    const { disk, directory } = this.#options;
    const mark = leaseMark(directory, number);
    if (disk.exists(mark)) disk.remove(mark);
    this.#opening.bury(number, replica);
    const onDisk = new Promise<void>((resolve) => this.#commit.after(this.#wal.endLsn, resolve));
    this.#options.wake();
    await onDisk;
  }

  /** Groups that the log has, and that are not open. */
  get closedGroups(): number[] {
    return [...this.#wal.groups.keys()].filter((group) => {
      return this.knows(group) && !this.#byNumber.has(group);
    });
  }

  get openGroups(): number {
    return this.#byNumber.size;
  }

  group(number: number): RaftGroup | undefined {
    return this.#byNumber.get(number);
  }

  /**
   * There is no link to a node any more. Groups that it led need not wait out an election time-out: they campaign, so
   * many a tick that the others can follow.
   */
  nodeDown(node: number): void {
    this.#visitAll((group) => {
      const wasAsleep = group.isAsleep;
      const ticks = group.nodeDown(node);
      this.#campaignAfter(group, ticks);
      return ticks !== undefined || group.isAsleep !== wasAsleep;
    });
  }

  /** There is a link again: leaders that sleep look whether the replica there has all there is. */
  nodeUp(node: number): void {
    this.#visitAll((group) => {
      if (!group.sleepsWith(node)) return false;
      group.wake();
      return true;
    });
  }

  /**
   * Whether anything waits for time to pass. Where that is not so its owner may stop calling `tick`; it looks again after
   * each `work`.
   */
  get needsTicks(): boolean {
    if (this.#bootPending) return true;
    if (this.#awake.size > 0 || this.#timed.size > 0 || this.#due.size > 0) return true;
    if (this.#starts.waiting > 0 || this.#rounds.length > 0) return true;
    return this.#commit.needsTicks || this.#isLogTooLong;
  }

  /** Time advances by one tick. */
  tick(): void {
    const due = this.#due.get(++this.#ticks);
    this.#due.delete(this.#ticks);
    for (const act of due ?? []) act();
    if (!this.#bootPending) {
      for (const handle of this.#options.engine.tickAll()) this.#died(handle);
    }
    for (const group of this.#timed) if (!group.tick()) this.#timed.delete(group);
    if (this.#ticks % collectTicks === 0) this.#limitLog();
    this.#rounds = this.#rounds.filter((round) => this.#visitSome(round));
    this.#starts.tick(this.#ticks, this.#mostStarts);
    this.#sleepDue = true;
    if (this.#ticks % sleepTicks === 0) this.#askToSleep ??= this.#awake.values();
  }

  /** The clock is in doubt: leaders ask before each strong read, for so many ticks. */
  dropLeases(ticks: number): void {
    this.#noLeasesBefore = this.#ticks + ticks;
  }

  get #electionTicks(): number {
    return this.#options.electionTicks ?? defaultElectionTicks;
  }

  /** Groups whose replica here sleeps. */
  get asleep(): number {
    return this.#byNumber.size - this.#awake.size;
  }

  /** A message from another pod. Anything that is not one, or is damaged, is dropped. */
  receive(bytes: Uint8Array): void {
    if (this.#bootPending) return;
    try {
      if (areHeartbeats(bytes)) {
        for (const message of decodeHeartbeats(bytes)) this.#take(message);
        return;
      }
      if (this.#take(decodePeerMessage(bytes))) return;
    } catch (error) {
      if (error instanceof RaftError) return this.#options.fatal(error);
      if (!(error instanceof FrameError)) throw error;
    }
    this.droppedMessages++;
  }

  /** Processes the engine's output; true when it must be called again soon. */
  work(): boolean {
    if (!this.#hasBegun()) return false;
    const until = this.#clock.monotonic() + workMs;
    let left = roundsAtOnce;
    for (; left > 0; left--) {
      for (const group of this.#touched) {
        group.flush();
        this.#flushed.add(group);
      }
      this.#touched.clear();
      const readies = this.#options.engine.readyAll(readyBytes);
      if (readies.length === 0) break;
      for (const { group: handle, ready } of readies) {
        if (ready instanceof RaftError) this.#died(handle);
        else this.#byHandle.get(handle)?.handleReady(ready);
      }
      this.#log.flush();
      if (this.#clock.monotonic() >= until) left = 1;
    }
    this.#log.flush();
    this.#sendHeartbeats();
    this.#commit.request();
    if (this.#sleepDue) this.#sleep();
    const isOutOfTime = left === 0;
    for (const group of this.#flushed) {
      if (isOutOfTime && this.#options.engine.hasReady(group.handle)) continue;
      group.endTick();
      this.#flushed.delete(group);
    }
    return isOutOfTime || this.#touched.size > 0;
  }

  async close(): Promise<void> {
    this.#log.flush();
    for (const group of this.#byNumber.values()) this.#closeGroup(group);
    await this.#commit.stop();
    await this.#ballast.stop();
    // Nothing is written after it.
    if (this.#wal.appendOptional(FrameKind.clean, undefined, 0)) await this.#wal.sync();
    if (this.#wal.durableLsn >= this.#wal.neededLsn) this.#fences.settled();
    await this.#wal.close();
  }

  /** The replica is open no more for now. Its log stays, for `openGroup`. */
  closeGroup(number: number): void {
    const group = this.#byNumber.get(number);
    const state = this.#wal.groups.get(number);
    if (group === undefined || state === undefined) return;
    this.#log.flush();
    // Entries not on disk yet were not acknowledged: the next opening does without them.
    const entries = group.storedEntries();
    this.#closeGroup(group);
    this.#options.engine.destroy(group.handle);
    this.#opening.recovered.set(number, entries);
    const [begin] = decodePositions(state.configuration);
    state.lastIndex = entries.at(-1)?.index ?? begin!.index;
  }

  /** Why nothing may be written for now: the disk is full. */
  get failure(): Error | undefined {
    return this.#ballast.failure;
  }

  /** A group's state machine has failed: the pod must end. */
  fail(error: Error): void {
    this.#options.fatal(error);
  }

  /** Status of the log of all groups. */
  status(): Omit<LogStatus, 'firstIndex' | 'lastIndex' | 'replication'> {
    const { endLsn, durableLsn, segmentCount, bytes, frames } = this.#wal;
    const { syncs, lastMs, maxMs } = this.#commit;
    return {
      // All copies of a group's log are one log, whatever disk each is on.
      volume: this.#options.ids.cluster,
      appendedLsn: endLsn,
      durableLsn,
      segments: segmentCount,
      bytes,
      entries: this.#log.writes,
      frames,
      fsyncs: syncs,
      lastFsyncMs: lastMs,
      maxFsyncMs: maxMs,
    };
  }

  #atTick(ticks: number, act: () => void): void {
    const at = this.#ticks + 1 + ticks;
    const due = this.#due.get(at);
    if (due) due.push(act);
    else this.#due.set(at, [act]);
  }

  #campaignAfter(group: RaftGroup, ticks: number | undefined): void {
    if (ticks !== undefined) this.#atTick(ticks, () => group.campaignIfLeaderless());
  }

  /** Visits all groups, some now and some with each tick. `visit` tells whether it had something to do. */
  #visitAll(visit: (group: RaftGroup) => boolean): void {
    const round = { left: this.#byNumber.values(), visit };
    if (this.#visitSome(round)) this.#rounds.push(round);
  }

  /** False when all have been visited. */
  #visitSome({
    left,
    visit,
  }: {
    left: Iterator<RaftGroup>;
    visit: (group: RaftGroup) => boolean;
  }): boolean {
    for (let busy = 0; busy < groupsPerTick; ) {
      const { done, value } = left.next();
      if (done === true) return false;
      if (visit(value)) busy++;
    }
    return true;
  }

  /** Fewer while many groups are awake, or while this pod is behind with its work. Never none: a busy pod may stay so. */
  get #mostStarts(): number {
    const most = this.#flushed.size > 0 ? 0 : 4 * cheaplyAwake - this.#awake.size;
    return Math.max(leastStarts, Math.min(startsEachTick, most));
  }

  get #idleTicks(): number {
    const { idleTicks } = this.#limits;
    const awake = this.#awake.size;
    if (awake <= cheaplyAwake) return idleTicks;
    return Math.min(
      idleTicks,
      Math.max(minIdleTicks, Math.floor((idleTicks * cheaplyAwake) / awake)),
    );
  }

  /** Offers to sleep leave after the heartbeats of the tick: one that came later would wake the followers. */
  #sleep(): void {
    this.#sleepDue = false;
    for (let left = offersEachTick; left > 0 && this.#askToSleep; ) {
      const { done, value } = this.#askToSleep.next();
      if (done === true) this.#askToSleep = undefined;
      else if (this.#byNumber.get(value)?.sleepIfIdle() === true) left--;
    }
  }

  #take(message: PeerMessage): boolean {
    return this.#byNumber.get(message.group)?.receive(message) ?? false;
  }

  #send(to: number, peer: PeerMessage): boolean {
    const { group, message, times } = peer;
    if (times === undefined) {
      return this.#options.send(to, laneOf(message.type), encodePeerMessage(peer));
    }
    const node = nodeOfReplica(to);
    const waiting = this.#heartbeats.get(node);
    if (waiting) waiting.push({ group, message, times });
    else this.#heartbeats.set(node, [{ group, message, times }]);
    return true;
  }

  #sendHeartbeats(): void {
    for (const heartbeats of this.#heartbeats.values()) {
      for (let at = 0; at < heartbeats.length; at += heartbeatsInMessage) {
        const some = heartbeats.slice(at, at + heartbeatsInMessage);
        const bytes = encodeHeartbeats(this.incarnation, some);
        this.#options.send(some[0]!.message.to, Lane.control, bytes);
      }
    }
    this.#heartbeats.clear();
  }

  #closeGroup(group: RaftGroup): void {
    group.close();
    this.#awake.delete(group.group);
    this.#byNumber.delete(group.group);
    this.#byHandle.delete(group.handle);
    this.#touched.delete(group);
    this.#flushed.delete(group);
    this.#timed.delete(group);
    this.#starts.ended(group);
  }

  /**
   * Groups that write seldom keep whole segments for a few entries: their state is made durable instead, of so many at a
   * time.
   */
  #limitLog(): void {
    if (!this.#isLogTooLong) return;
    let left = checkpointsAtOnce;
    for (const number of this.#wal.pinning()) {
      const group = this.#byNumber.get(number);
      group?.releaseLog();
      if (left > 0 && group?.checkpointToRelease() === true) left--;
    }
    // A group that released segments while others were being deleted did not cause another check.
    void this.#wal.collect();
  }

  get #isLogTooLong(): boolean {
    return this.#wal.bytes > (this.#options.maxLogBytes ?? defaultMaxLogBytes);
  }

  /** The engine has given the group up: its replica must be opened anew from the log, in a new life of the pod. */
  #died(handle: number): void {
    const group = this.#byHandle.get(handle);
    if (group) this.#options.fatal(new Error(`group ${group.group}: the consensus engine died`));
  }

  #settle(): void {
    if (this.#commit.policy === 'always') this.#fences.settled();
  }
}

/** Records for the next start that the log has failed, unless that takes nothing back. Returns what to report. */
function logFailure(fences: FenceRecord, cause: unknown): Error {
  const error = cause instanceof Error ? cause : new Error(String(cause));
  if (losesNothing(error)) return error;
  try {
    fences.logFailed();
    return error;
  } catch (second) {
    const message = `${error.message}; nor could this be recorded, so the replicas here are not fenced at the next start`;
    return new AggregateError([error, second], message);
  }
}

/** The log cannot be opened or written, for a reason other than a fault of the disk. */
function losesNothing(error: Error): boolean {
  if (error instanceof LogWriteError || error instanceof LogMismatchError) return true;
  const { code = '' } = error as NodeJS.ErrnoException;
  return isDiskFull(error) || ['EMFILE', 'ENFILE', 'EACCES', 'EPERM'].includes(code);
}
