// For tests: logs of one group that delay commits, lose tails and change roles whenever they are
// told to. Committed entries are kept here, so that a test can check every replica's final state.

import type { Outcome } from '../../../universal-row/executor.ts';
import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import type {
  FsyncPolicy,
  LogListener,
  LogRole,
  LogStatus,
  PartitionLog,
  StateSnapshot,
} from '../partition-log.ts';
import { TickEntry } from '../tick-entry.ts';

interface Pending {
  readonly position: number;
  /** Undefined for a tick that only read. */
  readonly entry: Buffer | undefined;
  /** Committed without its leader knowing. */
  isInLog: boolean;
}

/** The cluster that the logs pretend to be in. */
export class UnreliableCluster {
  readonly committed: Buffer[] = [];
  readonly logs: UnreliableLog[] = [];
  /** Only this one can commit; others may still believe that they lead. */
  leader: UnreliableLog | undefined;

  join(log: UnreliableLog): void {
    this.logs.push(log);
  }

  leave(log: UnreliableLog): void {
    this.logs.splice(this.logs.indexOf(log), 1);
    if (this.leader === log) this.leader = undefined;
  }
}

export class UnreliableLog implements PartitionLog {
  readonly mayLose = true;
  role: LogRole = 'follower';
  readonly failure = undefined;
  fsyncPolicy: FsyncPolicy = 'always';
  keepAfter = Infinity;
  /** Set before the pod is made. */
  maxWriteBytes?: number;
  pendingBytes = 0;
  readonly #cluster: UnreliableCluster;
  readonly #entry = new TickEntry();
  readonly #replica: number;
  #listener: LogListener | undefined;
  #applied: number;
  #position = 0;
  /** The pod is undoing: ticks that end meanwhile are lost. */
  #isLosing = false;
  #pending: Pending[] = [];
  #waiting: { position: number; then: (outcome: Outcome) => void }[] = [];
  #settledTo = 0;
  /** Outcomes of positions that were not committed, until they are asked for. */
  readonly #failed = new Map<number, Outcome>();

  /** The engine has everything up to `applied`. */
  constructor(cluster: UnreliableCluster, replica: number, applied: number) {
    this.#cluster = cluster;
    this.#replica = replica;
    this.#applied = applied;
    cluster.join(this);
  }

  // ---- calls from the pod
  //

  listen(listener: LogListener): void {
    this.#listener = listener;
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

  get lastIndex(): number {
    return this.#applied;
  }

  endTick(servedAt?: number): number {
    const hasWritten = this.#entry.count > 0;
    const entry = this.#entry.take(servedAt ?? 0);
    if (servedAt === undefined && !hasWritten) return this.#pending.at(-1)?.position ?? -1;
    const position = ++this.#position;
    if (this.role !== 'leader' || this.#isLosing) {
      this.#failed.set(position, 'lost');
      this.#pending.push({ position, entry: undefined, isInLog: false });
    } else this.#pending.push({ position, entry, isInLog: false });
    return position;
  }

  whenSettled(position: number, then: (outcome: Outcome) => void): void {
    if (position <= this.#settledTo) then(this.#failed.get(position) ?? 'committed');
    else this.#waiting.push({ position, then });
  }

  readBarrier(then: (outcome: Outcome) => void): void {
    this.whenSettled(this.endTick(0), then);
  }

  /** The state for another replica. */
  export(to: number): unknown {
    return this.#listener!.exportSnapshot(to);
  }

  /** The state of another replica takes the place of this one's. */
  install(state: StateSnapshot): Promise<void> {
    return this.#listener!.installSnapshot!(state);
  }

  transfer(): void {}

  changeMembers(): boolean {
    return false;
  }

  get writtenBytes(): number {
    return this.#cluster.committed.length;
  }

  truncate(index: number): void {
    if (index > this.#cluster.committed.length) throw new Error('not committed yet');
  }

  readBack(): never {
    throw new Error('this log is not read');
  }

  status(): LogStatus {
    const size = this.#cluster.committed.length;
    return {
      firstIndex: 1,
      lastIndex: size,
      volume: 1,
      appendedLsn: size,
      durableLsn: size,
      segments: 1,
      bytes: size,
      entries: size,
      frames: size,
      fsyncs: 0,
      lastFsyncMs: 0,
      maxFsyncMs: 0,
    };
  }

  close(): Promise<void> {
    this.#cluster.leave(this);
    this.#settle(Infinity, () => 'unknown');
    return Promise.resolve();
  }

  // ---- calls from the test
  //

  get pending(): number {
    return this.#pending.length;
  }

  /** The first `count` positions are committed, if this log still leads. */
  commit(count: number): void {
    if (this.#cluster.leader !== this) return;
    for (let i = 0; i < count && this.#pending.length > 0; i++) {
      const { position, entry } = this.#pending[0]!;
      if (entry !== undefined) {
        this.#applied = this.#cluster.committed.push(entry);
        this.#listener!.committed(position, this.#applied, entry);
      }
      this.#settle(position, () => 'committed');
    }
  }

  /** Removes the leadership without notice; `made` of its proposals are committed all the same. */
  depose(made: number): void {
    this.#cluster.leader = undefined;
    for (const one of this.#pending.slice(0, made)) {
      if (one.entry === undefined || this.#failed.has(one.position)) continue;
      this.#cluster.committed.push(one.entry);
      one.isInLog = true;
    }
  }

  /** All from the `from`th pending position on is lost, while it continues leading. */
  async loseTail(from: number): Promise<void> {
    const first = this.#pending[from];
    if (this.#cluster.leader !== this || first === undefined) return;
    const lost = this.#pending.slice(from);
    for (const { position } of lost) this.#failed.set(position, 'lost');
    for (const one of lost)
      this.#pending[this.#pending.indexOf(one)] = { ...one, entry: undefined };
    await this.#lose(first.position);
  }

  async #lose(from: number, role?: LogRole): Promise<void> {
    this.#isLosing = true;
    const undone = this.#listener!.lost(from);
    if (role !== undefined) this.#listener!.roleChanged(role, 0);
    if (undone instanceof Promise) await undone;
    this.#isLosing = false;
  }

  /**
   * Tells the replica that it no longer leads. `isSure` decides which positions are known to be
   * lost.
   */
  async stepDown(isSure: () => boolean): Promise<void> {
    if (this.role !== 'leader') return;
    this.role = 'follower';
    await this.#lose(this.#pending[0]?.position ?? this.#position + 1, 'follower');
    for (const { position, isInLog } of this.#pending.slice()) {
      const outcome = !isInLog && isSure() ? 'lost' : 'unknown';
      this.#settle(position, () => this.#failed.get(position) ?? outcome);
    }
  }

  /** Applies up to `count` entries of others. */
  async follow(count: number): Promise<void> {
    const { committed } = this.#cluster;
    for (let i = 0; i < count && this.#applied < committed.length; i++) {
      if (this.role === 'leader') return;
      await this.#listener!.apply(committed[this.#applied]!, this.#applied + 1);
      this.#applied++;
    }
  }

  /** Leads from here on. */
  async lead(): Promise<void> {
    const { leader } = this.#cluster;
    if (leader !== undefined) return;
    await this.stepDown(() => false);
    await this.follow(Infinity);
    if (this.#cluster.leader !== undefined || !this.#cluster.logs.includes(this)) return;
    // Ticks evaluated before the replica is told to lead are refused.
    this.#cluster.leader = this;
    this.role = 'leader';
    this.#listener!.roleChanged('leader', this.#replica);
  }

  #settle(position: number, outcome: () => Outcome): void {
    while (this.#pending.length > 0 && this.#pending[0]!.position <= position)
      this.#pending.shift();
    this.#settledTo = position;
    while (this.#waiting.length > 0 && this.#waiting[0]!.position <= position) {
      const { position: at, then } = this.#waiting.shift()!;
      then(this.#failed.get(at) ?? outcome());
    }
  }
}
