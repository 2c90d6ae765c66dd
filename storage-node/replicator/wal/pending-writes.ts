// Large frames that are being written off the event loop. Frames behind them may be in the file before them, so that the
// log is whole up to the first of them only: a crash leaves a hole there, and recovery cuts the log at it.

export class PendingWrites {
  /** Called when the log is whole for some bytes more. */
  onWritten: () => void = () => {};
  /** By the LSN at which each begins, ascending. */
  readonly #writes = new Map<number, Promise<void>>();

  /** Where the first of them begins; Infinity when there is none. */
  get firstLsn(): number {
    for (const lsn of this.#writes.keys()) return lsn;
    return Infinity;
  }

  /** Where the last of them begins; -1 when there is none. */
  get lastLsn(): number {
    return Math.max(-1, ...this.#writes.keys());
  }

  /** A write that fails permanently stays: nothing behind it is ever safe. */
  add(lsn: number, write: Promise<void>): void {
    const done = write.then(
      () => {
        this.#writes.delete(lsn);
        this.onWritten();
      },
      () => {},
    );
    this.#writes.set(lsn, done);
  }

  /** Resolves when those that are under way now have ended. Throws when one of them has failed. */
  async ended(): Promise<void> {
    const writes = Array.from(this.#writes);
    for (const [lsn, done] of writes) {
      await done;
      if (this.#writes.has(lsn)) throw new Error('a write to the log has failed');
    }
  }
}
