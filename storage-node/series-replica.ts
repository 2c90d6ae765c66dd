// A pod of time series as a replica of a log. It applies entries after the commit, and its leader
// prepares one entry at a time: further changes wait in a queue. So a change is always prepared on
// committed state, and a lost entry leaves nothing but a draft that the engine discards.

import { randomBytes } from 'node:crypto';
import { type MaybePromise, whenReady } from '../universal-row/maybe-promise.ts';
import type { ReadBounds } from '../universal-row/command.ts';
import { type Clock } from '../universal-row/environment.ts';
import { type BatchIdentity, readBatchId } from '../universal-row/series/batch-identity.ts';
import type { Outcome } from '../universal-row/executor.ts';
import {
  type AppliedState,
  type Database,
  isAppliedState,
  LateDeletionError,
  NotLeaderError,
  OutcomeUnknownError,
  SeriesError,
  TooLargeError,
  UnavailableError,
} from '../contracts/series-store.ts';
import type { PortableSeriesEngine } from '../engines/series-engine.ts';
import { chunksOf, entriesOf } from './series-snapshot.ts';
import {
  type LogListener,
  type LogRole,
  type PartitionLog,
  type StateSnapshot,
  tooLargeText,
} from './replicator/partition-log.ts';
import { isDiskFull } from './replicator/wal/log-errors.ts';
import { StoredBatches } from './stored-batches.ts';
import { entryOpsAt } from './replicator/tick-entry.ts';

interface SeriesReplicaOptions {
  engine: PortableSeriesEngine;
  log: PartitionLog;
  clock: Clock;
  /** Whether the node of a replica reads states with removed series; unset, all do. */
  knowsRemoved?: ((replica: number) => boolean) | undefined;
  /** Has the engine catch up soon. */
  hurry: () => void;
  /** Makes a checkpoint soon. */
  checkpoint: () => void;
}

/** A change that waits to be prepared, or for the outcome of its entry. */
interface Change {
  readonly prepare: () => unknown;
  /** Whether it can be prepared on top of those that are in the entry; absent where it cannot. */
  readonly joins: (() => boolean) | undefined;
  /** Of a batch of points that may be stored already; and the body that it is of. */
  readonly identity: BatchIdentity | undefined;
  readonly body: string | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  result: unknown;
}

/** Changes that wait. */
const maxQueued = 1000;
/** An entry takes no further change beyond either of these. */
const fullEntryBytes = 1024 * 1024;
const fullEntryMs = 4;
/** Between two looks whether a full disk has room again. */
const fullDiskMs = 500;

export class SeriesReplica implements LogListener {
  role: LogRole = 'follower';
  /** The replica that leads; 0 while none is known. */
  leader = 0;
  readonly #options: SeriesReplicaOptions;
  #queue: Change[] = [];
  /** In the entry that is under way. */
  #entry: Change[] = [];
  #isScheduled = false;
  #isDraining = false;
  #isClosed = false;
  /** Changes wait, as the role is about to change. */
  #isPaused = false;
  /** While the state is being replaced: what there was before. */
  replaced: { readonly databases: readonly Database[]; readonly appliedIndex: number } | undefined;
  #installs = 0;
  /** Counts changes of role. */
  #stint = 0;
  readonly #stored: StoredBatches;
  /** Of deletions: another one in each process, after each deletion, and in each leadership. */
  #mark = randomBytes(6).readUIntBE(0, 6);

  constructor(options: SeriesReplicaOptions) {
    this.#options = options;
    this.#stored = new StoredBatches(options.clock);
    options.engine.stored = (batch) => this.#stored.add(batch);
  }

  // ---- calls from the pod
  //

  /**
   * Queues `prepare`, which encodes the change, and resolves to its result once the entry is
   * committed and applied. Rejects with the error it throws, and with `UnavailableError`. With an `identity` it is the
   * write of that batch, and resolves to a `WriteOutcome` without `prepare` where it is stored already.
   */
  change<T>(prepare: () => T, joins?: () => boolean, identity?: BatchIdentity): Promise<T> {
    return new Promise<unknown>((resolve, reject) => {
      const refusal = this.#refusal();
      if (refusal !== undefined) return reject(refusal);
      const body = identity && readBatchId(identity.id).body;
      this.#queue.push({ prepare, joins, identity, body, resolve, reject, result: undefined });
      this.#schedule();
    }) as Promise<T>;
  }

  #refusal(): Error | undefined {
    if (this.role !== 'leader' || this.#isClosed) return new NotLeaderError(this.leader);
    if (this.#queue.length < maxQueued) return undefined;
    return new UnavailableError(`timeout: ${maxQueued} changes of this database wait already`);
  }

  /** Whether it follows, and its state is no older. */
  isWithin({ maxStalenessMs, maxLagEntries }: ReadBounds): boolean {
    if (this.role === 'leader' || this.#isClosed || this.replaced !== undefined) return false;
    const { ms, entries } = this.#options.log.staleness!();
    // A replica that has heard of no leader yet may have nothing at all.
    return ms !== Infinity && ms <= maxStalenessMs && entries <= maxLagEntries;
  }

  /**
   * Resolves when later reads include all commits before this call; a replica that follows asks the leader for them. At
   * once where the state here is within bounds.
   */
  readable(bounds?: ReadBounds | AppliedState): Promise<void> {
    if (bounds !== undefined && this.#suffices(bounds)) return Promise.resolve();
    if (this.state === undefined) return Promise.reject(new NotLeaderError(this.leader));
    return new Promise((resolve, reject) => {
      this.#options.log.readBarrier((outcome) => {
        if (outcome === 'committed') resolve();
        else reject(new NotLeaderError(this.role === 'leader' ? 0 : this.leader));
      });
    });
  }

  #suffices(bounds: ReadBounds | AppliedState): boolean {
    if (!isAppliedState(bounds)) return this.isWithin(bounds);
    return this.state !== undefined && this.#options.engine.appliedIndex >= bounds.atLeast;
  }

  /** Another number once the state was replaced or closed; undefined while there is none to be read. */
  get state(): number | undefined {
    return this.#isClosed || this.replaced !== undefined ? undefined : this.#installs;
  }

  /** Another number once the state is being replaced, and once it has been. */
  get states(): number {
    return 2 * this.#installs - (this.replaced === undefined ? 0 : 1);
  }

  /** As `readable`, for a change: rejects where this replica does not lead, or has not led all the time. */
  async leading(): Promise<void> {
    const stint = this.#stint;
    if (this.role === 'leader') await this.readable();
    if (this.role !== 'leader' || stint !== this.#stint) throw new NotLeaderError(this.leader);
  }

  /** Throws for a deletion that was sent before another one had ended here, or to another leader. */
  expectInTime(mark: number | undefined): void {
    if (mark !== undefined && mark !== this.#mark) throw new LateDeletionError(this.#mark);
  }

  /** Called now and then. */
  tick(): void {
    this.#stored.prune();
  }

  /** A deletion has ended. */
  deleted(): void {
    this.#mark++;
  }

  /** Called when the log is closed: it reports the outcome of changes in progress. */
  close(): void {
    this.#isClosed = true;
    this.#refuseQueued();
  }

  // ---- one entry after the other

  #schedule(): void {
    if (this.#isScheduled || this.#isPaused || this.#entry.length > 0) return;
    this.#isScheduled = true;
    // Changes that arrive in this tick join the entry.
    setImmediate(() => {
      this.#isScheduled = false;
      this.#next();
    });
  }

  #next(): void {
    if (this.#isPaused || this.#entry.length > 0 || this.#queue.length === 0) return;
    if (this.#isBehind()) return;
    const { log, clock } = this.#options;
    const startAt = log.writer.pos;
    const until = clock.monotonic() + fullEntryMs;
    let isOpen = true;
    while (isOpen && this.#fits()) {
      isOpen = this.#prepare(this.#queue.shift()!);
      if (log.writer.pos - startAt > fullEntryBytes || clock.monotonic() > until) break;
    }
    if (this.#entry.length === 0) return this.#schedule();
    const position = log.endTick(clock.now());
    log.whenSettled(position, (outcome) => this.#settled(outcome));
  }

  /** Whether the change that is next can be part of the entry. */
  #fits(): boolean {
    const next = this.#queue[0];
    if (next === undefined) return false;
    const first = this.#entry[0];
    if (first === undefined) return true;
    const { body } = next;
    if (body !== undefined && this.#entry.some((one) => one.body === body)) return false;
    return first.joins !== undefined && next.joins?.() === true;
  }

  #isBehind(): boolean {
    const { engine, hurry } = this.#options;
    if (!engine.congested || this.#failure !== undefined) return false;
    if (this.#isDraining) return true;
    this.#isDraining = true;
    const again = (): void => {
      this.#isDraining = false;
      this.#schedule();
    };
    hurry();
    // After a failure changes are refused for its reason.
    engine.drained().then(again, again);
    return true;
  }

  get #failure(): Error | undefined {
    return this.#options.log.failure ?? this.#options.engine.failure;
  }

  /** False when no other change may go along. */
  #prepare(change: Change): boolean {
    const { engine, log } = this.#options;
    const failure = this.#failure;
    if (failure !== undefined) {
      change.reject(new SeriesError(`write failed: ${failure.message}`));
      return true;
    }
    try {
      const known = change.identity && this.#stored.find(change.identity);
      if (known !== undefined) {
        change.result = known;
        this.#confirm(change);
        return true;
      }
    } catch (error) {
      change.reject(error);
      return true;
    }
    log.begin();
    const startAt = log.writer.pos;
    try {
      change.result = change.prepare();
      const { maxWriteBytes = Infinity } = log;
      // With the changes before it, which are no more than `fullEntryBytes`, the entry has room for as much.
      if (log.writer.pos - startAt > maxWriteBytes) {
        throw new TooLargeError(tooLargeText(maxWriteBytes));
      }
    } catch (error) {
      log.abandon();
      // The encoded form of earlier changes suffices: their numbers are found again when they are
      // applied.
      engine.discard();
      this.#refuse(change, error);
      return false;
    }
    if (log.end() !== 0 || this.#entry.length > 0) this.#entry.push(change);
    else this.#confirm(change);
    return true;
  }

  /**
   * Confirms a change without an effect. If this replica has led until now, the state that made the change
   * unnecessary was the latest.
   */
  #confirm({ resolve, reject, result }: Change): void {
    this.leading().then(() => resolve(result), reject);
  }

  /** As `#confirm`, of a change that the state here does not allow. */
  #refuse({ reject }: Change, error: unknown): void {
    this.leading().then(() => reject(error), reject);
  }

  #settled(outcome: Outcome): void {
    const changes = this.#entry;
    this.#entry = [];
    if (outcome !== 'committed') this.#options.engine.discard();
    for (const { resolve, reject, result } of changes) {
      if (outcome === 'committed') resolve(result);
      else reject(outcome === 'lost' ? new NotLeaderError(this.leader) : new OutcomeUnknownError());
    }
    if (this.#queue.length > 0) this.#next();
  }

  #refuseQueued(): void {
    for (const { reject } of this.#queue.splice(0)) reject(new NotLeaderError(this.leader));
  }

  // ---- calls from the log
  //

  committed(_position: number, index: number, entry: Buffer): void {
    this.#options.engine.apply(entry, entryOpsAt, entry.length, index);
  }

  skipped(index: number): void {
    this.#options.engine.skip(index);
  }

  checkpoint(): void {
    this.#options.checkpoint();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#schedule();
  }

  lost(): void {
    this.#options.engine.discard();
  }

  apply(entry: Buffer, index: number): MaybePromise<void> {
    const { engine } = this.#options;
    // The draft was prepared on another state.
    engine.discard();
    return whenReady(this.#untilDrained(), () =>
      engine.apply(entry, entryOpsAt, entry.length, index),
    );
  }

  #untilDrained(): MaybePromise<void> {
    const { engine, hurry } = this.#options;
    if (!engine.congested) return undefined;
    hurry();
    const wait = engine.drained().catch(async () => {
      // There is no client to reject it to: it waits until the disk has room.
      await new Promise((resolve) => setTimeout(resolve, fullDiskMs));
    });
    return wait.then(() => (this.#isClosed ? undefined : this.#untilDrained()));
  }

  roleChanged(role: LogRole, leader: number): void {
    this.#stint++;
    this.#mark++;
    this.role = role;
    this.leader = leader;
    if (role === 'leader') this.#schedule();
    else this.#refuseQueued();
  }

  /** Throws where the node of the replica is of an earlier build and could not read it: it is asked for again. */
  exportSnapshot(to: number): StateSnapshot {
    const { engine, knowsRemoved } = this.#options;
    if (engine.hasRemovedSeries && knowsRemoved?.(to) === false) {
      throw new UnavailableError('a node of an earlier build cannot read the state');
    }
    return { index: engine.appliedIndex, batches: chunksOf(engine.exportSnapshot()) };
  }

  /** A kill before the end leaves the old state. */
  async installSnapshot({ index, batches }: StateSnapshot): Promise<void> {
    const { engine, hurry } = this.#options;
    engine.discard();
    this.replaced = { databases: engine.databases(), appliedIndex: engine.appliedIndex };
    this.#installs++;
    try {
      await engine.importSnapshot(entriesOf(batches), index, async (error) => {
        if (!isFull(error) || this.#isClosed) return false;
        // It waits until the disk has room, as entries do.
        hurry();
        await new Promise((resolve) => setTimeout(resolve, fullDiskMs));
        return !this.#isClosed;
      });
      this.#stored.clear();
    } finally {
      this.replaced = undefined;
    }
  }
}

function isFull(error: unknown): boolean {
  return isDiskFull(error) || isDiskFull((error as Error).cause);
}
