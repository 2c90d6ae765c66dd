// A pod's role in a log with several copies: whether its commands run here, and the entries that
// the log has undone and applied. Pods whose log cannot lose entries have none.

import type { NotRun } from '../universal-row/command.ts';
import { whenReady, type MaybePromise } from '../universal-row/maybe-promise.ts';
import type { AheadEngine } from './ahead/ahead-engine.ts';
import type { LogListener, LogRole, StateSnapshot } from './replicator/partition-log.ts';
import { nodeOfReplica } from './replicator/raft/replica-id.ts';
import { entryTime } from './replicator/tick-entry.ts';

export interface ReplicaOptions {
  engine: AheadEngine;
  /** Long commands under way. */
  runs: {
    /** Ends all of them, undone and answered with an error. Undefined when there are none. */
    giveUp(): Promise<void> | undefined;
    /** Ends all of them, undone, to be run where the leader is. Undefined when there are none. */
    moveOn(): Promise<void> | undefined;
    /** Resolves at a moment when no command is halfway through its writes. */
    whole(): Promise<void>;
  };
  /** Ends the tick under way, if there is one. */
  endTick: () => void;
  /** As `endTick`, for a tick that is lost. */
  loseTick: () => void;
  /** Makes a checkpoint soon. */
  checkpoint: () => void;
  /** Rows are others than they were, and not by a command of this pod. */
  rowsReplaced: () => void;
}

export class Replica implements LogListener {
  /** The replica that leads; 0 while none is known. */
  leader = 0;
  /** Times that something was undone, at the end of a leadership for one. */
  losses = 0;
  #role: LogRole = 'follower';
  #isClosed = false;
  /** `isShut`, but for an engine that is moving. */
  #isShut = true;
  readonly #options: ReplicaOptions;
  readonly #engine: AheadEngine;
  /** Leader's clock as of the last entry, Unix milliseconds. */
  #time = 0;
  #busy: Promise<void> | undefined = undefined;
  #hasLost = false;
  /** Pause of commands while the role is about to change. */
  #pause: { readonly over: Promise<void>; readonly end: () => void } | undefined = undefined;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.#engine = options.engine;
  }

  get role(): LogRole {
    return this.#role;
  }

  /**
   * Commands cannot run now: they wait for `ready`, or are refused where there is nothing to wait for. Asked several
   * times a command.
   */
  get isShut(): boolean {
    return this.#isShut || this.#engine.moving !== undefined;
  }

  #setShut(): void {
    const waits = this.#busy !== undefined || this.#pause !== undefined;
    this.#isShut = this.#role !== 'leader' || this.#isClosed || waits;
  }

  /** Promise to wait for before rows are accessed. */
  get ready(): Promise<void> | undefined {
    return this.#busy ?? this.#engine.moving ?? this.#pause?.over;
  }

  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  /** Whether this is a follower whose rows are the state after a log entry. */
  get mayRead(): boolean {
    return this.#role !== 'leader' && !this.#isClosed && this.ready === undefined;
  }

  /** Nothing of the command has been done. */
  get refusal(): string {
    return this.leader === 0
      ? 'ERR this partition has no leader now'
      : `ERR replica ${this.leader} leads this partition`;
  }

  get notRun(): NotRun {
    return { why: 'notLeader', leader: this.#isClosed ? 0 : nodeOfReplica(this.leader) };
  }

  /** Commands are refused from now on, as by a replica that does not lead. */
  close(): void {
    this.#isClosed = true;
    this.#setShut();
  }

  /** Never below the time of an entry, so that expired rows do not return with a slower clock. */
  time(now: number): number {
    this.#time = Math.max(this.#time, now);
    return this.#time;
  }

  /**
   * Whether entries were lost since the last call. Answers given meanwhile may depend on them,
   * whatever the outcome of the position they wait for.
   */
  takeLoss(): boolean {
    const hasLost = this.#hasLost;
    this.#hasLost = false;
    return hasLost;
  }

  // ---- calls from the log
  //

  apply(entry: Buffer, index: number): MaybePromise<void> {
    const { rowsReplaced } = this.#options;
    this.#time = Math.max(this.#time, entryTime(entry));
    return this.#whileBusy(whenReady(this.#engine.apply(entry, index), rowsReplaced));
  }

  committed(position: number, index: number): void {
    this.#engine.committed(position, index);
  }

  skipped(index: number): void {
    this.#engine.committed(-Infinity, index);
  }

  checkpoint(): void {
    this.#options.checkpoint();
  }

  pause(): MaybePromise<void> {
    if (this.#pause === undefined) {
      let end!: () => void;
      const over = new Promise<void>((resolve) => (end = resolve));
      this.#pause = { over, end };
      this.#setShut();
    }
    const { runs, endTick } = this.#options;
    if (this.#role === 'leader') return whenReady(runs.moveOn(), endTick);
  }

  resume(): void {
    this.#pause?.end();
    this.#pause = undefined;
    this.#setShut();
  }

  lost(position: number): MaybePromise<void> {
    const { engine, runs, loseTick, rowsReplaced } = this.#options;
    this.#hasLost = true;
    this.losses++;
    const ended: MaybePromise<void> = runs.giveUp();
    const undone = whenReady(ended, () => {
      // Otherwise the lost tick would be proposed under the next leader without being in the rows.
      loseTick();
      return engine.lost(position);
    });
    return this.#whileBusy(whenReady(undone, rowsReplaced));
  }

  #whileBusy(work: MaybePromise<void>): MaybePromise<void> {
    if (!(work instanceof Promise)) return;
    const ended = (): void => {
      if (this.#busy !== waits) return;
      this.#busy = undefined;
      this.#setShut();
    };
    const waits: Promise<void> = work.then(ended, ended);
    this.#busy = waits;
    this.#setShut();
    return work;
  }

  roleChanged(role: LogRole, leader: number): void {
    const hasLed = this.#role === 'leader' && role !== 'leader';
    this.#role = role;
    this.leader = leader;
    this.#setShut();
    // Observers of rows must observe them at the new leader from now on.
    if (hasLed) this.#options.rowsReplaced();
  }

  async exportSnapshot(): Promise<StateSnapshot> {
    await this.#options.runs.whole();
    return this.#engine.committedRows();
  }

  /** Durable when this resolves. */
  async installSnapshot({ batches, index }: StateSnapshot): Promise<void> {
    const { engine, rowsReplaced } = this.#options;
    const install = async (): Promise<void> => {
      await engine.importSnapshot(batches, index);
      // One that was begun before is of the rows of before.
      while ((await engine.checkpoint()) < index);
      rowsReplaced();
    };
    await this.#whileBusy(install());
  }
}
