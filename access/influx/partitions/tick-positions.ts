// Combines the event-loop ticks of several logs: one position stands for a position in each log.

import type { SeriesStore } from '../../../contracts/series-store.ts';

export class TickPositions {
  readonly #stores: readonly Pick<SeriesStore, 'endTick' | 'whenSafe'>[];
  /** Last position of each store with writes to wait for; -1 for none. */
  readonly #last: number[];
  /** Counts the ticks with changes. */
  #tick = -1;

  constructor(stores: readonly Pick<SeriesStore, 'endTick' | 'whenSafe'>[]) {
    this.#stores = stores;
    this.#last = stores.map(() => -1);
  }

  /** A log that fails does not keep the others from being written. */
  end(): number {
    let isNew = false;
    let failure: { error: unknown } | undefined;
    for (const [i, store] of this.#stores.entries()) {
      try {
        const position = store.endTick();
        if (position <= this.#last[i]!) continue;
        this.#last[i] = position;
        isNew = true;
      } catch (error) {
        failure ??= { error };
      }
    }
    if (isNew) this.#tick++;
    if (failure !== undefined) throw failure.error;
    return isNew ? this.#tick : -1;
  }

  /** Waits for everything written so far, which includes everything up to that position. */
  whenSafe(position: number, then: () => void): void {
    if (position < 0) return then();
    let left = 1;
    const safe = (): void => {
      if (--left === 0) then();
    };
    for (const [i, store] of this.#stores.entries()) {
      const last = this.#last[i]!;
      if (last < 0) continue;
      left++;
      store.whenSafe(last, safe);
    }
    safe();
  }
}
