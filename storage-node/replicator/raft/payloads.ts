// The payloads of a group's log by index: those written last in memory, all of them in the write-ahead log.

import type { Wal } from '../wal/wal.ts';
import { payloadBytes, referenceBytes } from './entry-reference.ts';

interface StoredPayload {
  term: number;
  /** 0 until it is written. */
  segment: number;
  offset: number;
  bytes: Uint8Array | undefined;
}

export class Payloads {
  readonly #wal: Wal;
  readonly #maxBytes: number;
  readonly #byIndex = new Map<number, StoredPayload>();
  #cachedBytes = 0;
  /** No payload below this index is in memory. */
  #coldBelow = Infinity;

  constructor(wal: Wal, maxBytes: number) {
    this.#wal = wal;
    this.#maxBytes = maxBytes;
  }

  /** Replaces the payload at this index; later payloads are stale, and replaced in turn. */
  put(index: number, term: number, bytes: Uint8Array): void {
    this.#forget(index);
    this.#byIndex.set(index, { term, segment: 0, offset: 0, bytes });
    this.#coldBelow = Math.min(this.#coldBelow, index);
    this.#cachedBytes += bytes.length;
  }

  /** Where the log has it from now on. It may leave memory. */
  place(index: number, term: number, segment: number, offset: number): void {
    const stored = this.#byIndex.get(index);
    // Another one may have taken its place before both were written.
    if (stored?.term === term) Object.assign(stored, { segment, offset });
    for (; this.#cachedBytes > this.#maxBytes && this.#coldBelow < index; this.#coldBelow++) {
      const cold = this.#byIndex.get(this.#coldBelow);
      if (cold === undefined) continue;
      if (cold.segment === 0) return;
      this.#cachedBytes -= cold.bytes?.length ?? 0;
      cold.bytes = undefined;
    }
  }

  /** Adds entries that the log had at the start. */
  putStored(index: number, term: number, segment: number, offset: number): void {
    this.#byIndex.set(index, { term, segment, offset, bytes: undefined });
  }

  /** Where the log has the payload of an entry; zeros where it has none. */
  placeOf({ index, term }: { index: number; term: number }): { segment: number; offset: number } {
    const stored = this.#byIndex.get(index);
    if (stored?.term !== term) return { segment: 0, offset: 0 };
    return { segment: stored.segment, offset: stored.offset };
  }

  get(index: number, term: number, reference: Uint8Array): Uint8Array {
    const stored = this.#byIndex.get(index);
    if (stored === undefined || stored.term !== term || reference.length !== referenceBytes) {
      throw new Error(`there is no payload of entry ${index} of term ${term}`);
    }
    if (stored.bytes) return stored.bytes;
    return this.#wal.read(stored.segment, stored.offset, payloadBytes(reference));
  }

  dropUpTo(index: number): void {
    for (const at of this.#byIndex.keys()) if (at <= index) this.#forget(at);
  }

  clear(): void {
    this.#byIndex.clear();
    this.#cachedBytes = 0;
  }

  #forget(index: number): void {
    this.#cachedBytes -= this.#byIndex.get(index)?.bytes?.length ?? 0;
    this.#byIndex.delete(index);
  }
}
