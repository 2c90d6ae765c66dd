// Keys of series that gateways wrote lately, by handle, so that an engine finds a series again without its key. A table
// that is full is left to the batches that use it, and another one is begun.

import { viewed } from '../../universal-row/bytes.ts';
import { keyedHash } from '../../universal-row/keyed-hash.ts';
import type { KeyTable } from '../../universal-row/protocol/series-batch.ts';
import type { SeriesCache } from '../../universal-row/series/series-cache.ts';

const maxBytes = 16 * 1024 * 1024;
const maxSeries = 256 * 1024;
/** Limit for the tables of all groups together. Beyond it, tables without recent writes are dropped. */
const maxBytesInAll = 4 * maxBytes;
/** Of an entry besides its key. */
const entryBytes = 24;

class SeriesKeys implements SeriesCache, KeyTable {
  readonly generation = 0;
  size = 0;
  #keys = viewed(Buffer.allocUnsafeSlow(4096));
  #starts = new Uint32Array(257);
  #hashes = new Uint32Array(256);
  /** Handles plus one, by hash; a power of two. */
  #slots = new Uint32Array(512);

  get cache(): SeriesCache {
    return this;
  }

  get bytes(): number {
    return this.#starts[this.size]! + this.size * entryBytes;
  }

  get isFull(): boolean {
    return this.size >= maxSeries || this.bytes >= maxBytes;
  }

  keys(): Buffer {
    return this.#keys;
  }

  keyStart(handle: number): number {
    return this.#starts[handle]!;
  }

  keyEnd(handle: number): number {
    return this.#starts[handle + 1]!;
  }

  keyHash(handle: number): number {
    return this.#hashes[handle]!;
  }

  handleOf(buf: Buffer, start: number, end: number): number {
    const hash = keyedHash(buf, start, end);
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (let held = this.#slots[slot]!; held !== 0; held = this.#slots[slot]!) {
      if (this.#isKey(held - 1, hash, buf, start, end)) return held - 1;
      slot = (slot + 1) & mask;
    }
    return this.#add(hash, slot, buf, start, end);
  }

  #isKey(handle: number, hash: number, buf: Buffer, start: number, end: number): boolean {
    if (this.#hashes[handle] !== hash) return false;
    const from = this.#starts[handle]!;
    const to = this.#starts[handle + 1]!;
    return to - from === end - start && this.#keys.compare(buf, start, end, from, to) === 0;
  }

  #add(hash: number, slot: number, buf: Buffer, start: number, end: number): number {
    const handle = this.size;
    const at = this.#starts[handle]!;
    const to = at + end - start;
    if (to > this.#keys.length) {
      const larger = viewed(Buffer.allocUnsafeSlow(Math.max(to, 2 * this.#keys.length)));
      this.#keys.copy(larger, 0, 0, at);
      this.#keys = larger;
    }
    buf.copy(this.#keys, at, start, end);
    if (handle === this.#hashes.length) this.#grow();
    this.#hashes[handle] = hash;
    this.#starts[handle + 1] = to;
    this.size = handle + 1;
    if (this.size * 2 > this.#slots.length) this.#rehash();
    else this.#slots[slot] = handle + 1;
    return handle;
  }

  #grow(): void {
    const hashes = new Uint32Array(2 * this.#hashes.length);
    hashes.set(this.#hashes);
    this.#hashes = hashes;
    const starts = new Uint32Array(hashes.length + 1);
    starts.set(this.#starts);
    this.#starts = starts;
  }

  #rehash(): void {
    const slots = new Uint32Array(2 * this.#slots.length);
    const mask = slots.length - 1;
    for (let handle = 0; handle < this.size; handle++) {
      let slot = this.#hashes[handle]! & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = handle + 1;
    }
    this.#slots = slots;
  }
}

export class GroupSeriesKeys {
  /** By group, in the order of their last use. */
  readonly #tables = new Map<number, SeriesKeys>();

  of(group: number): KeyTable {
    const found = this.#tables.get(group);
    this.#tables.delete(group);
    const table = found === undefined || found.isFull ? new SeriesKeys() : found;
    this.#tables.set(group, table);
    if (table !== found) this.#shrink();
    return table;
  }

  #shrink(): void {
    let bytes = 0;
    for (const table of this.#tables.values()) bytes += table.bytes;
    for (const [group, table] of this.#tables) {
      if (bytes <= maxBytesInAll || this.#tables.size === 1) return;
      bytes -= table.bytes;
      this.#tables.delete(group);
    }
  }
}
