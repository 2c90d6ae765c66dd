// Syncs the log of a pod for all its groups. At most one sync is in progress, and the next sync covers everything
// written meanwhile.
//
//   always    each write waits for the sync that covers it
//   everysec  only strict ones do, and a sync begins a second after the first write without one. Writes wait, too,
//             while a sync is under way and the oldest one that waits for none is two seconds old
//   no        only strict ones do, and a segment is synced when it is full
//
// There is no timer: the pod calls this object at least once per tick, and keeps ticking while a sync will be due.

import type { Clock } from '../../../universal-row/environment.ts';
import type { FsyncPolicy } from '../partition-log.ts';
import type { Wal } from '../wal/wal.ts';

const everyMs = 1000;
const lateMs = 2000;

export class GroupCommit {
  policy: FsyncPolicy = 'always';
  syncs = 0;
  /** Milliseconds that syncs took. */
  lastMs = 0;
  maxMs = 0;
  readonly #clock: Clock;
  readonly #wal: Wal;
  readonly #fatal: (error: Error) => void;
  readonly #onDurable: () => void;
  #waiting: { lsn: number; then: () => void }[] = [];
  #running = false;
  #cycle: Promise<void> = Promise.resolve();
  #stopped = false;
  /** When the first write was made that no sync covers and that did not wait; Infinity for none. */
  #oldestAt = Infinity;

  constructor(wal: Wal, clock: Clock, onDurable: () => void, fatal: (error: Error) => void) {
    this.#wal = wal;
    this.#clock = clock;
    this.#onDurable = onDurable;
    this.#fatal = fatal;
  }

  /** Calls back when the log is on disk up to `lsn`, after all that wait already. */
  after(lsn: number, then: () => void): void {
    this.#waiting.push({ lsn: Math.max(lsn, this.#waiting.at(-1)?.lsn ?? 0), then });
  }

  /** Calls back when a write is as safe as a relaxed policy asks: now, mostly. */
  relaxed(then: () => void): void {
    const now = this.policy === 'everysec' ? this.#clock.monotonic() : 0;
    if (this.policy === 'everysec' && this.#running && now - this.#oldestAt > lateMs) {
      return this.after(this.#wal.endLsn, then);
    }
    this.#oldestAt = Math.min(this.#oldestAt, now);
    then();
  }

  /** To be called when a tick's frames are written. */
  request(): void {
    if (this.#running || this.#stopped || !this.#isDue) return;
    this.#running = true;
    this.#cycle = this.#run().catch((error: unknown) => {
      if (!this.#stopped) this.#fatal(error instanceof Error ? error : new Error(String(error)));
    });
  }

  /** Whether a sync will be due, without anything more being written. */
  get needsTicks(): boolean {
    if (this.#running || this.#waiting.length > 0) return true;
    if (this.#oldestAt === Infinity) return false;
    return this.policy !== 'no' || this.#wal.unsettled;
  }

  /** Resolves when no sync is in progress. No callback is called any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#waiting = [];
    await this.#cycle;
  }

  get #isDue(): boolean {
    if (this.#waiting.length > 0) return true;
    if (this.#oldestAt === Infinity) return false;
    if (this.policy === 'no') return this.#wal.unsettled;
    return this.policy === 'always' || this.#clock.monotonic() - this.#oldestAt >= everyMs;
  }

  async #run(): Promise<void> {
    do {
      const wal = this.#wal;
      const lsn = this.#waiting.at(-1)?.lsn ?? wal.endLsn;
      if (lsn > wal.durableLsn) {
        const began = this.#clock.monotonic();
        const target = wal.endLsn;
        await wal.sync();
        this.lastMs = this.#clock.monotonic() - began;
        this.maxMs = Math.max(this.maxMs, this.lastMs);
        this.syncs++;
        // What was written meanwhile is no older than this sync.
        if (this.#oldestAt !== Infinity) this.#oldestAt = wal.endLsn > target ? began : Infinity;
      }
      // Another sync, as of a full segment, may have covered the oldest write. The pod ticks while `#oldestAt` is set.
      if (wal.endLsn <= wal.durableLsn) this.#oldestAt = Infinity;
      const durable = this.#waiting.findIndex((one) => one.lsn > wal.durableLsn);
      const done = this.#waiting.splice(0, durable < 0 ? this.#waiting.length : durable);
      for (const { then } of done) then();
      if (done.length > 0) this.#onDurable();
      if (wal.unsettled && !this.#stopped) await wal.settle();
    } while (this.#waiting.length > 0 && !this.#stopped);
    this.#running = false;
  }
}
