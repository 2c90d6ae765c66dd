// A read gate for tests: it releases reads only on request, or a tick later in reverse order.

import type { ReadScheduler } from '../engine.ts';

interface HeldRead {
  owner: number;
  records: number;
  isPage: boolean;
  begin: () => void;
}

export class HeldReads implements ReadScheduler {
  isOn = true;
  /** In the order in which they came. */
  readonly held: HeldRead[] = [];
  readonly #most: number;
  readonly #lastFirst: boolean;

  /** At most `most` records of one owner are looked up in one batch. */
  constructor(most: number, lastFirst = false) {
    this.#most = most;
    this.#lastFirst = lastFirst;
  }

  /** Each table has an owner of its own. */
  ownerOf(table: number): number {
    return table;
  }

  mostRecords(): number {
    return this.#most;
  }

  pass(owner: number, records: number, isPage: boolean, read: () => Promise<number>): void {
    this.held.push({ owner, records, isPage, begin: () => void read() });
    if (this.#lastFirst) setImmediate(() => this.held.pop()!.begin());
  }

  releaseAll(): void {
    for (const read of this.held.splice(0)) read.begin();
  }
}
