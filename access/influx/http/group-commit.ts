// Waiting for the log, one wait for all changes of an event-loop tick.

import type { SeriesStore } from '../../../contracts/series-store.ts';

interface Waiter {
  resolve: () => void;
  reject: (error: unknown) => void;
}

/** There must be one for a store, as only one can end its ticks. */
export class GroupCommit {
  readonly #store: Pick<SeriesStore, 'endTick' | 'whenSafe'>;
  #waiters: Waiter[] = [];
  #isScheduled = false;
  /** The log position up to which something was ever waited for. */
  #position = -1;
  #safePosition = -1;

  constructor(store: Pick<SeriesStore, 'endTick' | 'whenSafe'>) {
    this.#store = store;
  }

  /** Something was given to the store: it goes to the log at the end of this tick. */
  changed(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#endTick);
  }

  /** Resolves when all changes so far are durable, and rejects when the log fails. */
  safe(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      this.changed();
    });
  }

  readonly #endTick = (): void => {
    this.#isScheduled = false;
    const waiters = this.#waiters;
    this.#waiters = [];
    let position: number;
    try {
      position = this.#store.endTick();
    } catch (error) {
      for (const waiter of waiters) waiter.reject(error);
      return;
    }
    if (position > this.#position) this.#position = position;
    // A request's last batch may have been logged ticks ago and still be on its way to the disk.
    const upTo = this.#position;
    if (upTo <= this.#safePosition) {
      for (const waiter of waiters) waiter.resolve();
      return;
    }
    this.#store.whenSafe(upTo, () => {
      if (upTo > this.#safePosition) this.#safePosition = upTo;
      for (const waiter of waiters) waiter.resolve();
    });
  };
}
