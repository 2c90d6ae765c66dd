// Sync policies of the log, and the replies that wait for a sync.
//
//   always    a sync follows every tick that wrote; one at a time, the next covers all queued meanwhile
//   everysec  a second after the first unsynced write
//   no        when the operating system likes, and when a segment is full
//
// A slow sync does not delay writes: they wait for the file system only. Under everysec that would
// let the loss at a power cut grow without bound, so once the oldest unsynced write is two seconds
// old, replies to further writes wait for the sync under way, as Redis blocks then.
//
// Under every policy replies wait until the log is in its files without a gap: large frames are written off the event
// loop.

import type { Clock } from '../../../universal-row/environment.ts';
import type { FsyncPolicy, Outcome } from '../partition-log.ts';
import type { Wal } from './wal.ts';

const everyMs = 1000;
const lateMs = 2000;
/** How long nothing must have been written before a mark is worth its place. */
const idleMs = 1000;

export class Syncer {
  syncs = 0;
  /** Milliseconds. */
  lastMs = 0;
  maxMs = 0;
  /** Ticks whose replies had to wait under everysec. */
  delayed = 0;

  readonly #wal: Wal;
  readonly #clock: Clock;
  readonly #fatal: (error: Error) => void;
  #policy: FsyncPolicy;
  /** Of a sync: there is none after it. */
  #failure: Error | undefined;
  #cycle: Promise<void> | undefined;
  #again = false;
  #cycleBegan = 0;
  /** When the oldest write that is not synced was made; only kept under everysec. */
  #oldestAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #stopped = false;
  // Waiting positions in ascending order.
  #positions: number[] = [];
  #callbacks: ((outcome: Outcome) => void)[] = [];
  #firstWaiter = 0;

  constructor(wal: Wal, clock: Clock, policy: FsyncPolicy, fatal: (error: Error) => void) {
    this.#wal = wal;
    this.#clock = clock;
    this.#policy = policy;
    this.#fatal = fatal;
    wal.onWritten = () => this.#release(false);
  }

  get policy(): FsyncPolicy {
    return this.#policy;
  }

  set policy(policy: FsyncPolicy) {
    this.#policy = policy;
    if (policy !== 'everysec') this.#disarm();
    if (this.#wal.neededLsn <= this.#wal.durableLsn || policy === 'no') {
      this.#release(true);
      return;
    }
    if (policy === 'always') {
      this.#request();
    } else {
      this.#arm();
      this.#release(true);
    }
  }

  /** How long the sync under way has taken, in milliseconds; 0 when there is none. */
  get pendingMs(): number {
    return this.#cycle ? this.#clock.monotonic() - this.#cycleBegan : 0;
  }

  /** A tick is over that wrote, or served reads, or neither; the position its replies wait for, or -1. */
  endTick(wrote: boolean, served: boolean): number {
    const wal = this.#wal;
    const needed = wal.neededLsn;
    if (needed <= wal.durableLsn) return -1;
    if (this.#policy === 'always') {
      if (wrote || this.#cycle === undefined) this.#request();
      return needed;
    }
    let waits = wal.writtenLsn < needed;
    if (!wrote) return waits && served ? needed : -1;
    if (this.#policy === 'everysec') {
      if (this.#cycle === undefined) this.#arm();
      else if (this.#isLate()) {
        this.delayed++;
        waits = true;
      }
    }
    if (wal.unsettled && this.#cycle === undefined) this.#request();
    return waits ? needed : -1;
  }

  whenSettled(position: number, then: (outcome: Outcome) => void): void {
    if (!this.#mustWait(position, this.#isLate())) {
      then('committed');
      return;
    }
    this.#positions.push(position);
    this.#callbacks.push(then);
  }

  /** Called at the end, after a sync by other code. */
  releaseDurable(): void {
    this.#release(true);
  }

  /** Resolves when all writes are durable, regardless of the policy. Rejects once a sync has failed. */
  async sync(): Promise<void> {
    const needed = this.#wal.neededLsn;
    while (this.#wal.durableLsn < needed && !this.#stopped) {
      if (this.#failure !== undefined) throw this.#failure;
      this.#request();
      await this.#cycle;
    }
  }

  /** Ends all timers; resolves when no sync is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#disarm();
    clearTimeout(this.#idleTimer);
    await this.#cycle;
  }

  #mustWait(position: number, isLate: boolean): boolean {
    const { durableLsn, writtenLsn } = this.#wal;
    if (position <= durableLsn) return false;
    if (this.#policy === 'always' || position > writtenLsn) return true;
    return this.#policy === 'everysec' && isLate;
  }

  /**
   * Releases the positions that need not wait any more. Those that wait for a late sync do so until
   * one has ended.
   */
  #release(hasSynced: boolean): void {
    const isLate = !hasSynced && this.#isLate();
    while (this.#firstWaiter < this.#positions.length) {
      if (this.#mustWait(this.#positions[this.#firstWaiter]!, isLate)) break;
      const then = this.#callbacks[this.#firstWaiter++]!;
      then('committed');
    }
    if (this.#firstWaiter === this.#positions.length) {
      this.#positions = [];
      this.#callbacks = [];
      this.#firstWaiter = 0;
    }
  }

  /** Syncs existing writes, after the current sync if there is one. */
  #request(): void {
    this.#again = true;
    if (this.#stopped || this.#cycle) return;
    this.#cycle = this.#run().catch((error: unknown) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      this.#fatal(this.#failure);
    });
  }

  async #run(): Promise<void> {
    const wal = this.#wal;
    while (this.#again || (wal.unsettled && wal.neededLsn > wal.durableLsn)) {
      this.#again = false;
      this.#disarm();
      this.#cycleBegan = this.#clock.monotonic();
      await wal.sync();
      this.syncs++;
      this.lastMs = this.#clock.monotonic() - this.#cycleBegan;
      if (this.lastMs > this.maxMs) this.maxMs = this.lastMs;
      this.#oldestAt = this.#cycleBegan;
      this.#release(true);
      if (wal.unsettled) await wal.settle();
    }
    this.#cycle = undefined;
    if (this.#stopped) return;
    if (wal.neededLsn <= wal.durableLsn) this.#awaitIdle();
    else if (this.#policy === 'everysec') this.#arm();
  }

  #isLate(): boolean {
    return this.#cycle !== undefined && this.#clock.monotonic() - this.#oldestAt > lateMs;
  }

  #arm(): void {
    if (this.#timer || this.#stopped) return;
    this.#oldestAt = this.#clock.monotonic();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#request();
    }, everyMs);
    this.#timer.unref();
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #awaitIdle(): void {
    if (this.#idleTimer) return;
    this.#idleTimer = setTimeout(() => {
      this.#idleTimer = undefined;
      try {
        this.#wal.publishDurable();
      } catch (error) {
        this.#fatal(error as Error);
      }
    }, idleMs);
    this.#idleTimer.unref();
  }
}
