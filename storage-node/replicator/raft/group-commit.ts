// Syncs the log of a pod for all its groups: one sync at most is under way, and the next covers all that was written
// meanwhile.

import type { Clock } from '../../../universal-row/environment.ts';
import type { Wal } from '../wal/wal.ts';

export class GroupCommit {
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

  /** To be called when a tick's frames are written. */
  request(): void {
    if (this.#running || this.#waiting.length === 0 || this.#stopped) return;
    this.#running = true;
    this.#cycle = this.#run().catch((error: unknown) => {
      if (!this.#stopped) this.#fatal(error instanceof Error ? error : new Error(String(error)));
    });
  }

  /** Resolves when no sync is in progress. No callback is called any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#waiting = [];
    await this.#cycle;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#stopped) {
      if (this.#waiting.at(-1)!.lsn > this.#wal.durableLsn) {
        const began = this.#clock.monotonic();
        await this.#wal.sync();
        this.lastMs = this.#clock.monotonic() - began;
        this.maxMs = Math.max(this.maxMs, this.lastMs);
        this.syncs++;
      }
      const durable = this.#waiting.findIndex(({ lsn }) => lsn > this.#wal.durableLsn);
      const done = this.#waiting.splice(0, durable < 0 ? this.#waiting.length : durable);
      for (const { then } of done) then();
      if (done.length > 0) this.#onDurable();
      if (this.#wal.unsettled && !this.#stopped) await this.#wal.settle();
    }
    this.#running = false;
  }
}
