// Commands of a group that wait for a leader. All of them retry when a leader becomes known, and every 50 ms.

const retryMs = 50;

export class LeaderWait {
  /** Commands that wait now, and that have waited since the start. */
  waiting = 0;
  waited = 0;
  #waiters: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** Resolves when the caller should look for the leader again. */
  wait(): Promise<void> {
    this.waiting++;
    this.waited++;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.wake();
    }, retryMs);
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  wake(): void {
    if (this.#waiters.length === 0) return;
    const waiters = this.#waiters;
    this.#waiters = [];
    this.waiting -= waiters.length;
    for (const go of waiters) go();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.wake();
  }
}
