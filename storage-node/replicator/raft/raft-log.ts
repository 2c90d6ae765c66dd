// The log of a pod's group with several copies: the writes of an event-loop tick of the pod are one
// entry.
//
// Positions are ticks. A tick that wrote is settled by its entry, one that only read by a read
// barrier. While entries are in flight, ticks are collected into one entry: an entry costs the
// nodes much more than a write in it, and would have to wait for the disks anyway. The pod is told
// of a leadership once all entries committed before it are applied, and of its end together with
// the entries to undo; entries committed after all are applied like those of another leader.

import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import { fullTickBytes, type Outcome, type PartitionLog } from '../partition-log.ts';
import type {
  FsyncPolicy,
  LogListener,
  LogRole,
  LogStatus,
  MemberChange,
} from '../partition-log.ts';
import { entryOpsAt, entryTime, TickEntry } from '../tick-entry.ts';
import type { LogEntry } from '../wal/log-reader.ts';
import type { Staleness } from './freshness.ts';
import type { LogPosition } from './log-position.ts';
import type { RaftGroup } from './raft-group.ts';
import type { RaftPod } from './raft-pod.ts';
import type { ExportedState, StateMachine } from './state-machine.ts';

interface RaftLogOptions {
  /** Pod of the host that runs the log. */
  pod: RaftPod;
  group: number;
  replica: number;
  /**
   * For a group that the log does not know: `firstPosition` of its first members, or
   * `joiningPosition`.
   */
  first: LogPosition;
  /** The pod's engine holds everything up to here durably; 0 for nothing. */
  durableIndex: number;
  /** See `StateMachine`. */
  logEndsAt?: ((index: number) => void) | undefined;
}

interface Tick {
  readonly position: number;
  /** Number of its proposal in the group, 0 for none. */
  proposal: number;
  outcome: Outcome | undefined;
  /**
   * The pod has undone the tick: if it is committed after all, the pod applies it like another
   * leader's entry.
   */
  isUndone: boolean;
}

/** An entry that has yet to be proposed, and its ticks. */
interface TicksOfEntry {
  readonly ticks: readonly Tick[];
  readonly entry: Buffer;
}

interface Transfer {
  /** All that the pod has evaluated has its outcome, and the group has been asked. */
  isSettled: boolean;
}

/** Number of outcomes other than `committed` that are kept for late queries. */
const keptOutcomes = 10_000;
/** One is written to the disks while the next one is on its way to them. */
const mostUnderWay = 2;
/** How long `close` waits for the disk of a snapshot's install that was given up. */
const endOfInstallMs = 10_000;
/** Ticks that wrote as much are not gathered any longer. */
const mostGatheredBytes = 256 * 1024;
/** Of an entry: what its tick has written before the largest command, and rows that expire or make room meanwhile. */
const roomBytes = 2 * fullTickBytes;

/** `RaftGroupLimits.maxEntryBytes` for commands that write at most so much. */
export function entryBytesFor(maxWriteBytes: number): number {
  return maxWriteBytes + roomBytes;
}

export class RaftLog implements PartitionLog {
  readonly mayLose = true;
  /** As the pod was told. */
  role: LogRole = 'follower';
  lastIndex: number;
  readonly #options: RaftLogOptions;
  readonly #entry = new TickEntry();
  readonly #failed = new Map<number, Outcome>();
  #group: RaftGroup | undefined;
  #listener: LogListener | undefined;
  #ticks: Tick[] = [];
  /** The last of them, whose entry has yet to be proposed, and how many commands they have written. */
  #gathered: Tick[] = [];
  #gatheredCount = 0;
  /** Entries that wait for a change of members, with their ticks. They are proposed before the gathered ticks. */
  readonly #held: TicksOfEntry[] = [];
  /** The last proposal, and the last one that has an outcome. */
  #proposed = 0;
  #ended = 0;
  #position = 0;
  #settledTo = 0;
  #waiting: { position: number; then: (outcome: Outcome) => void }[] = [];
  /** Time of the previous entry: the next one's is not below. */
  #time = 0;
  /** Told to the pod, one after the other; undefined when it is not busy. */
  #chain: Promise<void> | undefined;
  /** Ticks are lost from here on until the pod has undone them; 0 for none. */
  #losingFrom = 0;
  #undos = 0;
  /** Counts changes of role: operations begun in an earlier one are void. */
  #stint = 0;
  #leader = 0;
  /** The requested transfer, until the new leader is known. */
  #transfer: Transfer | undefined;
  #keepAfter = Infinity;
  #leases = false;
  /** The snapshot that is being installed. */
  #install: Promise<void> | undefined;
  #isClosed = false;
  /** Called when the pod has been told of another role or leader. */
  leaderChanged: (() => void) | undefined;

  constructor(options: RaftLogOptions) {
    this.#options = options;
    this.lastIndex = options.durableIndex;
  }

  listen(listener: LogListener): void {
    this.#listener = listener;
    const { pod, group, replica, first } = this.#options;
    this.#group = pod.openGroup({
      ...{ group, replica, first },
      machine: this.#machine(listener),
      listener: {
        onOutcome: (position, outcome) => this.#proposalEnded(position, outcome),
        onRole: (role, leader) => this.#roleChanged(role, leader),
        onRelease: () => this.#released(),
      },
    });
    this.#group.keepAfter = this.#keepAfter;
    this.#group.setLeases(this.#leases);
  }

  /** That of all groups of the pod. */
  get fsyncPolicy(): FsyncPolicy {
    return this.#options.pod.fsync;
  }

  set fsyncPolicy(policy: FsyncPolicy) {
    this.#options.pod.fsync = policy;
  }

  sync(): Promise<void> {
    return this.#options.pod.sync();
  }

  get writer(): TickEntry['writer'] {
    return this.#entry.writer;
  }

  begin(): void {
    this.#entry.begin();
  }

  end(): number {
    return this.#entry.end();
  }

  adopt(ops: RecordBatchWriter): void {
    this.#entry.adopt(ops);
  }

  abandon(): void {
    this.#entry.abandon();
  }

  endTick(servedAt?: number): number {
    const hasWritten = this.#entry.count > this.#gatheredCount;
    if (!hasWritten && servedAt === undefined) return this.#ticks.at(-1)?.position ?? -1;
    const tick: Tick = {
      position: ++this.#position,
      proposal: 0,
      outcome: undefined,
      isUndone: false,
    };
    this.#ticks.push(tick);
    const group = this.#group;
    if (this.role !== 'leader' || group === undefined || this.#losingFrom !== 0) {
      this.#dropGathered();
      tick.outcome = 'lost';
      this.#later(() => this.#settle());
    } else if (this.#entry.count === 0) {
      group.readBarrier((isSafe) => {
        tick.outcome ??= isSafe ? 'committed' : 'unknown';
        this.#settle();
      });
    } else {
      this.#time = Math.max(this.#time, servedAt ?? this.#time);
      // One that only read is as safe as the entry of those before it.
      this.#gathered.push(tick);
      this.#gatheredCount = this.#entry.count;
      this.#proposeGathered(group);
    }
    return tick.position;
  }

  whenSettled(position: number, then: (outcome: Outcome) => void): void {
    if (position <= this.#settledTo) then(this.#failed.get(position) ?? 'committed');
    else this.#waiting.push({ position, then });
  }

  isCommitted(position: number): boolean {
    return position <= this.#settledTo && !this.#failed.has(position);
  }

  get maxWriteBytes(): number {
    return this.#options.pod.maxEntryBytes - roomBytes;
  }

  get pendingBytes(): number {
    let bytes = (this.#group?.pendingBytes ?? 0) + this.#entry.writer.pos;
    for (const { entry } of this.#held) bytes += entry.length;
    return bytes;
  }

  get failure(): Error | undefined {
    return this.#options.pod.failure;
  }

  get writtenBytes(): number {
    return this.#group?.writtenBytes ?? 0;
  }

  truncate(index: number): void {
    this.#group?.stateIsDurable(index);
  }

  get keepAfter(): number {
    return this.#keepAfter;
  }

  set keepAfter(index: number) {
    this.#keepAfter = index;
    if (this.#group) this.#group.keepAfter = index;
  }

  async *readBack(after: number, to: number): AsyncGenerator<LogEntry> {
    for await (const { index, proposals } of this.#group!.readBack(after, to)) {
      const [entry] = proposals;
      if (entry === undefined) continue;
      const buf = asBuffer(entry);
      yield { index, buf, start: entryOpsAt, end: buf.length };
    }
  }

  readBarrier(then: (outcome: Outcome) => void): void {
    if (this.#group === undefined) return then('unknown');
    this.#group.readBarrier((isSafe) => then(isSafe ? 'committed' : 'unknown'));
  }

  /** See `RaftGroup.setLeases`. */
  setLeases(isOn: boolean): void {
    this.#leases = isOn;
    this.#group?.setLeases(isOn);
  }

  /** Staleness of the rows here: a reader at a follower compares it with its bound. */
  staleness(): Staleness {
    return this.#group?.staleness() ?? { ms: Infinity, entries: Infinity };
  }

  /** A client that has been answered after this index sees at least that state wherever it waits for it. */
  get appliedIndex(): number {
    return this.#group?.appliedIndex ?? 0;
  }

  /** `then` is told whether it is here, or that it takes too long. */
  whenApplied(index: number, then: (isThere: boolean) => void): void {
    if (this.#group === undefined) return then(false);
    this.#group.whenApplied(index, then);
  }

  transfer(to: number): void {
    const group = this.#group;
    const isPossible = this.role === 'leader' && group?.role === 'leader';
    if (!isPossible || this.#transfer !== undefined || to === this.#options.replica) return;
    const transfer: Transfer = { isSettled: false };
    this.#transfer = transfer;
    const isOver = (): boolean => this.#transfer !== transfer;
    const giveUp = (): void => {
      if (isOver()) return;
      this.#transfer = undefined;
      this.#listener!.resume?.();
    };
    // The outcome of evaluated ticks is either known soon, or not for a while.
    group.afterElectionTimeout(() => {
      if (!transfer.isSettled) giveUp();
    });
    const settled = async (): Promise<void> => {
      await this.#listener!.pause?.();
      await new Promise<unknown>((resolve) => this.whenSettled(this.#position, resolve));
      if (isOver()) return;
      transfer.isSettled = true;
      group.transfer(to);
      group.afterElectionTimeout(giveUp);
    };
    settled().catch((error: unknown) => this.#options.pod.fail(error as Error));
  }

  changeMembers(changes: readonly MemberChange[]): boolean {
    return this.#group?.changeMembers(changes) ?? false;
  }

  /** For a leader: index up to which another replica has the log, 0 while that is unknown. */
  matchOf(replica: number): number {
    return this.#group?.matchOf(replica) ?? 0;
  }

  status(): LogStatus {
    const wal = this.#options.pod.status();
    if (this.#group === undefined) return { ...wal, firstIndex: 1, lastIndex: this.lastIndex };
    const { firstIndex, lastIndex, ...group } = this.#group.status();
    const { replica, leader, term, commit, applied, members, pendingBytes } = group;
    const { isFenced, wasFenced, electionsByAll } = group;
    const replication = {
      ...{ replica, leader, term, commit, applied, members, pendingBytes },
      ...{ isFenced, wasFenced, electionsByAll },
    };
    return {
      ...wal,
      firstIndex,
      lastIndex,
      replication: { ...replication, pendingPositions: this.#ticks.length },
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // A replica that was elected does not begin to lead any more. Commands that wait for that are refused.
    this.#stint++;
    this.#listener?.resume?.();
    this.#options.pod.closeGroup(this.#options.group);
    await this.#chain;
    await this.#installEnded();
    for (const tick of this.#ticks) tick.outcome ??= 'unknown';
    this.#settle();
  }

  async #takeState({ index, chunks }: ExportedState): Promise<void> {
    await this.#chain;
    const expectOpen = (): void => {
      if (this.#isClosed) throw new Error('the replica is closed');
    };
    async function* batches(): AsyncGenerator<Buffer> {
      for await (const chunk of chunks) {
        expectOpen();
        yield asBuffer(chunk);
      }
      // A closed replica does not make the state durable either: that takes longer than receiving it.
      expectOpen();
    }
    await this.#listener!.installSnapshot({ index, batches: batches() });
    this.lastIndex = index;
  }

  /** The pod's engine is closed next, which an install would still write to. */
  async #installEnded(): Promise<void> {
    if (this.#install === undefined) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, endOfInstallMs);
    });
    await Promise.race([this.#install.catch(() => undefined), late]);
    clearTimeout(timer);
  }

  #proposeGathered(group: RaftGroup): void {
    const isLarge = this.#entry.writer.pos >= mostGatheredBytes;
    // Those that were held go first.
    const mustWait = group.mustWait || this.#held.length > 0;
    if (!isLarge && (mustWait || this.#proposed - this.#ended >= mostUnderWay)) return;
    const gathered = this.#takeGathered();
    if (mustWait) this.#held.push(gathered);
    else this.#propose(group, gathered);
  }

  #takeGathered(): TicksOfEntry {
    const ticks = this.#gathered;
    const entry = this.#entry.take(this.#time)!;
    this.#gathered = [];
    this.#gatheredCount = 0;
    return { ticks, entry };
  }

  #propose(group: RaftGroup, { ticks, entry }: TicksOfEntry): void {
    // An entry of its own: the pod is notified of it by its index.
    const proposal = group.proposeAlone(entry);
    if (proposal < 0) {
      this.#lose(ticks);
      return;
    }
    this.#proposed = proposal;
    for (const tick of ticks) tick.proposal = proposal;
  }

  /** The group has applied the change of members for which entries were held. */
  #released(): void {
    const group = this.#group!;
    // The next change is another release.
    if (this.#isClosed || group.mustWait) return;
    // A tick under way has written behind those that were gathered.
    if (this.#entry.count !== this.#gatheredCount) return this.#later(() => this.#released());
    // The gathered ticks join the queue: the outcome of a refused entry would propose them before they are known as lost.
    if (this.#gathered.length > 0) this.#held.push(this.#takeGathered());
    for (let one = this.#held.shift(); one !== undefined; one = this.#held.shift()) {
      this.#propose(group, one);
    }
  }

  /** Collected writes that were not proposed are lost, with those of a tick in progress. */
  #dropGathered(): void {
    this.#entry.take(this.#time);
    this.#gathered = [];
    this.#gatheredCount = 0;
    this.#held.length = 0;
  }

  /** The group did not accept them: they and later evaluated entries must be undone. */
  #lose(ticks: readonly Tick[]): void {
    const first = ticks[0]!.position;
    // Reads after them have seen their rows.
    for (const tick of this.#ticks) {
      if (tick.position >= first && tick.proposal === 0) tick.outcome = 'lost';
    }
    this.#dropGathered();
    if (this.#losingFrom === 0) this.#later(() => this.#undo());
    this.#losingFrom = Math.min(this.#losingFrom || Infinity, first);
  }

  /** Never from within a call of the pod. */
  #later(act: () => void): void {
    setImmediate(act);
  }

  /** `role`: the leadership ends with the undo. Both are reported together, so that no command runs in between. */
  #undo(role?: LogRole): void {
    const from = this.#losingFrom;
    if (from === 0) return;
    this.#undos++;
    this.#tell(() => {
      const undone = this.#listener!.lost(from);
      if (role !== undefined) this.#tellRole(role);
      // A tick that the pod begins after the undo must not be counted among the undone ones.
      return undone instanceof Promise ? undone.then(() => this.#undone()) : this.#undone();
    });
  }

  #undone(): void {
    // Another one may have become due meanwhile.
    if (--this.#undos === 0) this.#losingFrom = 0;
    this.#settle();
  }

  /** Calls the pod after all that it was told before. */
  #tell(act: () => void | Promise<void>): void {
    const failed = (error: unknown): void => this.#options.pod.fail(error as Error);
    const after = this.#chain ?? Promise.resolve();
    const chain = after.then(act).then(() => {
      if (this.#chain === chain) this.#chain = undefined;
    }, failed);
    this.#chain = chain;
  }

  #machine(listener: LogListener): StateMachine {
    return {
      durableIndex: this.#options.durableIndex,
      logEndsAt: (index) => this.#options.logEndsAt?.(index),
      apply: (index, proposals, position) => this.#apply(index, proposals[0], position),
      // In addition to the checkpoints that the pod makes by log size. The pod reports each one by `truncate`.
      checkpoint: () => this.#later(() => listener.checkpoint?.()),
      exportState: async (to): Promise<ExportedState> => {
        await this.#chain;
        const { index, batches } = await listener.exportSnapshot(to);
        return { index, chunks: batches };
      },
      install: (state): Promise<void> => {
        const install = this.#takeState(state).finally(() => {
          this.#install = undefined;
        });
        this.#install = install;
        return install;
      },
    };
  }

  #apply(index: number, proposal: Uint8Array | undefined, position: number): void | Promise<void> {
    if (proposal === undefined) {
      const skipped = (): void => {
        this.lastIndex = index;
        this.#listener!.skipped?.(index);
      };
      return this.#chain ? this.#chain.then(skipped) : skipped();
    }
    const ticks = position === 0 ? [] : this.#ticks.filter((t) => t.proposal === position);
    const last = ticks.at(-1);
    if (last !== undefined && last.outcome === undefined && !last.isUndone) {
      for (const tick of ticks) tick.outcome = 'committed';
      this.lastIndex = index;
      this.#listener!.committed(last.position, index, asBuffer(proposal));
      return;
    }
    const entry = asBuffer(proposal);
    this.#time = Math.max(this.#time, entryTime(entry));
    const applied = (): void => {
      this.lastIndex = index;
    };
    if (this.#chain) {
      return this.#chain.then(() => this.#listener!.apply(entry, index)).then(applied);
    }
    const waiting = this.#listener!.apply(entry, index);
    if (waiting instanceof Promise) return waiting.then(applied);
    applied();
  }

  #proposalEnded(proposal: number, outcome: Outcome): void {
    for (const tick of this.#ticks) {
      // One that the pod has undone is applied by now, if it is committed.
      if (tick.proposal === proposal) tick.outcome ??= outcome;
    }
    this.#ended = Math.max(this.#ended, proposal);
    // Writes of a tick in progress are dropped with that tick.
    const isBetweenTicks = this.#entry.count === this.#gatheredCount;
    if (this.#gathered.length > 0 && isBetweenTicks) this.#proposeGathered(this.#group!);
    if (outcome === 'committed') this.#settle();
    else this.#later(() => this.#settle());
  }

  #roleChanged(role: LogRole, leader: number): void {
    const stint = ++this.#stint;
    this.#leader = leader;
    if (role === 'leader') {
      // The replica will be able to serve in a moment: clients need not look for another leader.
      if (this.role !== 'leader') void this.#listener!.pause?.();
      // The leadership may be over by then, and a read at the next leader is safe, too.
      this.#later(() => this.#lead(stint));
    } else if (this.role === 'leader') this.#stepDown(role);
    else this.#tell(() => this.#tellRole(role));
  }

  #stepDown(role: LogRole): void {
    const pending = this.#ticks.filter(({ outcome }) => outcome === undefined);
    // The pod is paused, so none of its writes is lost, except writes that no client requested: in an open tick, or
    // in a tick that the group has refused because of the transfer.
    const hasWritten = this.#entry.count > 0 || this.#losingFrom !== 0;
    if (this.#transfer?.isSettled === true && pending.length === 0 && !hasWritten) {
      return this.#tell(() => this.#tellRole(role));
    }
    const first = pending[0]?.position ?? this.#position + 1;
    this.#dropGathered();
    this.#ended = this.#proposed;
    for (const tick of this.#ticks) {
      if (tick.position < first) continue;
      // A read's linearizability can no longer be determined, and it may have seen entries that are
      // undone now. The group reports the outcome of writes.
      if (tick.proposal === 0) tick.outcome = 'lost';
      else if (tick.outcome === undefined) tick.isUndone = true;
    }
    this.#losingFrom = Math.min(this.#losingFrom || Infinity, first);
    this.#undo(role);
  }

  /** Begins to lead once all that earlier leaders have committed is applied. */
  #lead(stint: number): void {
    if (stint !== this.#stint) return;
    this.#group!.whenLeading(() => {
      this.#tell(() => {
        if (stint === this.#stint) this.#tellRole('leader');
      });
    });
  }

  #tellRole(role: LogRole): void {
    this.role = role;
    this.#listener!.roleChanged(role, this.#leader);
    this.leaderChanged?.();
    // A leader that has stepped down for another one hears of it in a moment.
    if (role !== 'leader' && this.#leader === 0 && this.#transfer !== undefined) return;
    this.#transfer = undefined;
    this.#listener!.resume?.();
  }

  #settle(): void {
    // Ticks that the pod has not undone yet are answered after that.
    const isHeld = ({ position }: Tick): boolean =>
      this.#losingFrom !== 0 && position >= this.#losingFrom;
    for (let tick = this.#ticks[0]; tick?.outcome && !isHeld(tick); tick = this.#ticks[0]) {
      this.#ticks.shift();
      this.#settledTo = tick.position;
      if (tick.outcome !== 'committed') this.#keepFailed(tick.position, tick.outcome);
      while (this.#waiting.length > 0 && this.#waiting[0]!.position <= tick.position) {
        const { position, then } = this.#waiting.shift()!;
        then(this.#failed.get(position) ?? 'committed');
      }
    }
  }

  #keepFailed(position: number, outcome: Outcome): void {
    this.#failed.set(position, outcome);
    if (this.#failed.size <= keptOutcomes) return;
    const [oldest] = this.#failed.keys();
    this.#failed.delete(oldest!);
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
