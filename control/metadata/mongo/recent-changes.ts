// The end of the history, in memory, for followers that are nearly up to date.

import type { DocumentChange } from '../document-store.ts';

const mostWrites = 1000;
const mostBytes = 4 * 1024 * 1024;

interface RecentWrite {
  first: number;
  last: number;
  changes: DocumentChange[];
  bytes: number;
}

export class RecentChanges {
  #writes: RecentWrite[] = [];
  #bytes = 0;

  add(write: RecentWrite): void {
    this.#writes.push(write);
    this.#bytes += write.bytes;
    let dropped = 0;
    for (const { bytes } of this.#writes) {
      if (this.#writes.length - dropped <= mostWrites && this.#bytes <= mostBytes) break;
      this.#bytes -= bytes;
      dropped++;
    }
    this.#writes.splice(0, dropped);
  }

  clear(): void {
    this.#writes = [];
    this.#bytes = 0;
  }

  /** undefined if it does not go back that far. */
  after(revision: number): DocumentChange[] | undefined {
    const oldest = this.#writes[0];
    if (oldest === undefined || oldest.first > revision + 1) return undefined;
    return this.#writes
      .filter(({ last }) => last > revision)
      .flatMap(({ changes }) => changes)
      .filter((change) => change.revision > revision);
  }
}
