// Many short runs of bytes, each behind its length, in slabs. A run is identified by its address,
// which fits 32 bits: for a million tag values, the garbage collector sees a dozen buffers.

import { assert } from '../../../universal-row/assert.ts';
import { viewed } from '../../../universal-row/bytes.ts';
import type { MemoryTally } from './growing.ts';
import { sameBytes } from './match-bytes.ts';

const slabBits = 20;
const slabBytes = 1 << slabBits;
const firstSlabBytes = 4096;
const maxSlabs = 2 ** 32 / slabBytes;
const maxLengthBytes = 3;

export class ByteArena {
  // Result of the last `locate`.
  buf: Buffer = Buffer.alloc(0);
  start = 0;
  length = 0;

  readonly #slabs: Buffer[] = [];
  readonly #tally: MemoryTally;
  /** Where the next run goes in the last slab. */
  #at = 0;

  constructor(tally: MemoryTally) {
    this.#tally = tally;
  }

  /** Copies the run in; returns its address. */
  add(from: Buffer, start: number, end: number): number {
    const slab = this.#slabWith(end - start + maxLengthBytes);
    const address = (this.#slabs.length - 1) * slabBytes + this.#at;
    let at = this.#at;
    let length = end - start;
    while (length >= 0x80) {
      slab[at++] = (length & 0x7f) | 0x80;
      length >>>= 7;
    }
    slab[at++] = length;
    if (end - start < 64) for (let i = start; i < end; i++) slab[at++] = from[i]!;
    else at += from.copy(slab, at, start, end);
    this.#at = at;
    return address;
  }

  /** Finds the run at an address: `buf[start, start + length)`, until the next call. */
  locate(address: number): void {
    const slab = this.#slabs[address >>> slabBits]!;
    let at = address & (slabBytes - 1);
    let length = slab[at++]!;
    if (length >= 0x80) {
      length = (length & 0x7f) | ((slab[at]! & 0x7f) << 7);
      if (slab[at++]! >= 0x80) length |= slab[at++]! << 14;
    }
    this.buf = slab;
    this.start = at;
    this.length = length;
  }

  /** Where the run at an address ends in `keys[at, end)` when it stands there, else -1. */
  match(address: number, keys: Buffer, at: number, end: number): number {
    const slab = this.#slabs[address >>> slabBits]!;
    let start = address & (slabBytes - 1);
    let length = slab[start++]!;
    if (length >= 0x80) {
      this.locate(address);
      start = this.start;
      length = this.length;
    }
    return at + length <= end && sameBytes(slab, start, keys, at, length) ? at + length : -1;
  }

  #slabWith(room: number): Buffer {
    assert(room <= slabBytes, 'a tag value is shorter than a slab');
    const last = this.#slabs.at(-1);
    if (last !== undefined && this.#at + room <= last.length) return last;
    if (last === undefined || (this.#slabs.length === 1 && this.#at + room <= slabBytes)) {
      // The first slab starts small and is moved as it grows: most shards need no more.
      let size = Math.max(firstSlabBytes, (last?.length ?? 0) * 2);
      while (size < this.#at + room) size *= 2;
      return this.#install(0, Math.min(size, slabBytes), last);
    }
    assert(this.#slabs.length < maxSlabs, 'the tag values of a shard are less than 4 GB');
    this.#at = 0;
    return this.#install(this.#slabs.length, slabBytes, undefined);
  }

  #install(index: number, size: number, before: Buffer | undefined): Buffer {
    const slab = viewed(Buffer.allocUnsafeSlow(size));
    before?.copy(slab);
    this.#slabs[index] = slab;
    this.#tally.bytes += size - (before?.length ?? 0);
    return slab;
  }
}
