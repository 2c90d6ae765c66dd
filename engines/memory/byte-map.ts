// From key bytes to an entry id, and from the id to the key and value, which lie in one block of the
// arena. A table's rows, the fields of a big map or set, and the members of a big ranked row are all
// entries of one of these. No object and no string is made for a key.
//
//   index    directory by the hash's top bits -> segment (extendible hashing); a segment is an
//            Int32Array of (hash, id) pairs, probed linearly from the hash's low bits. A full segment
//            doubles, from `maxSlots` on it splits in two, so the longest rehash is one segment's.
//
// With `dense` ids are always 1..size: the last entry takes over the id of one that is removed.
// Otherwise an id stays with its entry and is used again after it.

import { assert } from '../../universal-row/assert.ts';
import { keyedHash } from '../../universal-row/keyed-hash.ts';
import type { Arena } from './arena.ts';
import { EntryBlocks } from './entry-blocks.ts';
import { IntColumn } from './long-column.ts';

const minSlots = 8;
const maxSlots = 8192;
const maxDirectoryBits = 20;

export class ByteMap extends EntryBlocks {
  readonly dense: boolean;
  size = 0;
  /** Ids in use are below this. */
  nextId = 1;

  private directory: Int32Array[];
  private shift = 31;
  private readonly freeIds = new IntColumn();
  private freeCount = 0;
  private indexBytes = 0;

  constructor(arena: Arena, dense: boolean) {
    super(arena);
    this.dense = dense;
    const segment = this.#newSegment(minSlots, 0);
    this.directory = [segment, segment];
    this.#countIndexBytes(this.address.reserve(16));
  }

  hash(b: Buffer, s: number, n: number): number {
    return keyedHash(b, s, s + n) | 0;
  }

  /** The entry's id, or 0. */
  find(b: Buffer, s: number, n: number, hash: number): number {
    const segment = this.directory[hash >>> this.shift]!;
    const mask = segment.length - 4;
    let i = (hash << 1) & mask;
    for (;;) {
      const id = segment[i + 1]!;
      if (id === 0) return 0;
      if (segment[i] === hash && this.isKey(id, b, s, n)) return id;
      i = (i + 2) & mask;
    }
  }

  /** Adds an entry whose key is known to be missing. */
  insert(
    hash: number,
    kind: number,
    b: Buffer,
    s: number,
    n: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): number {
    const id = this.#takeId();
    if (this.watch !== undefined) this.watch.created(id);
    this.address.set(id, this.newBlock(kind, b, s, n, vb, vs, vn));
    this.size++;
    this.#index(hash, id);
    return id;
  }

  /** Gives the entry another key, known to be missing. */
  rekey(id: number, b: Buffer, s: number, n: number): void {
    if (this.watch !== undefined) this.watch.beforeChange(id);
    this.locate(id);
    const old = this.address.at(id);
    const address = this.newBlock(this.kind, b, s, n, this.b, this.valueAt, this.valueLength);
    const hash = keyedHash(b, s, s + n) | 0;
    this.#unindex(keyedHash(this.b, this.keyAt, this.keyAt + this.keyLength) | 0, id);
    this.address.set(id, address);
    this.freeBlock(old);
    this.#index(hash, id);
  }

  remove(id: number): void {
    if (this.watch !== undefined) this.watch.beforeChange(id);
    this.locate(id);
    this.#unindex(keyedHash(this.b, this.keyAt, this.keyAt + this.keyLength) | 0, id);
    this.freeBlock(this.address.at(id));
    this.address.set(id, 0);
    this.size--;
    if (this.dense) this.#fillGap(id);
    else this.#giveBackId(id);
    if (this.size === 0) this.#reset();
  }

  /** An id picked by `random` in [0, 1), about evenly; 0 when the map is empty. */
  any(random: number): number {
    if (this.size === 0) return 0;
    if (this.dense) return 1 + Math.floor(random * this.size);
    let state = (random * 0x100000000) >>> 0;
    for (let i = 0; i < 1000; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const segment = this.directory[state >>> this.shift]!;
      // The generator's low bits are poor, and its top bits chose the segment.
      const at = (Math.imul(state, 0x2c1b3c6d) >>> 13) & ((segment.length - 4) >>> 1);
      const id = segment[2 * at + 1]!;
      if (id !== 0) return id;
    }
    const start = 1 + Math.floor(random * (this.nextId - 1));
    for (let id = start; id < this.nextId; id++) if (this.address.at(id) !== 0) return id;
    for (let id = start; id > 0; id--) if (this.address.at(id) !== 0) return id;
    return 0;
  }

  /** Bytes that the index and the columns take. */
  ownBytes(): number {
    return this.indexBytes;
  }

  /**
   * Frees blocks from the last id on down, at most `limit` of them; true when none is left. Only
   * for a map that is no longer read.
   */
  dismantle(limit: number): boolean {
    const stop = Math.max(1, this.nextId - limit);
    for (let id = this.nextId - 1; id >= stop; id--) {
      const address = this.address.at(id);
      if (address !== 0) this.freeBlock(address);
    }
    this.nextId = stop;
    if (stop > 1) return false;
    this.arena.indexBytes -= this.indexBytes;
    this.indexBytes = 0;
    this.directory = [];
    this.address.clear();
    return true;
  }

  /** Moves blocks that are in the way of a compaction, among ids [from, from + limit). */
  compact(from: number, limit: number): void {
    const stop = Math.min(this.nextId, from + limit);
    for (let id = from; id < stop; id++) {
      const address = this.address.at(id);
      if (this.arena.isLeaving(address)) this.address.set(id, this.arena.move(address));
    }
  }

  #takeId(): number {
    while (this.freeCount > 0) {
      const id = this.freeIds.at(--this.freeCount);
      // Ids at the end were given back by lowering `nextId`, and are still on the stack.
      if (id < this.nextId) return id;
    }
    const id = this.nextId++;
    if (id === this.address.length) this.#countIndexBytes(this.address.reserve(id + 1));
    return id;
  }

  #giveBackId(id: number): void {
    if (this.freeCount === this.freeIds.length) {
      this.#countIndexBytes(this.freeIds.reserve(this.freeCount + 1));
    }
    this.freeIds.set(this.freeCount++, id);
    if (id === this.nextId - 1) {
      let last = id - 1;
      while (last > 0 && this.address.at(last) === 0) last--;
      this.nextId = last + 1;
    }
  }

  #fillGap(id: number): void {
    const last = --this.nextId;
    if (id === last) return;
    if (this.watch !== undefined) this.watch.moved(last, id);
    const address = this.address.at(last);
    this.address.set(id, address);
    this.address.set(last, 0);
    this.locate(id);
    const hash = keyedHash(this.b, this.keyAt, this.keyAt + this.keyLength) | 0;
    const segment = this.directory[hash >>> this.shift]!;
    segment[this.#slotOf(segment, hash, last) + 1] = id;
  }

  #reset(): void {
    this.nextId = 1;
    this.freeCount = 0;
    if (this.indexBytes < 4096) return;
    const before = this.indexBytes;
    this.indexBytes = 0;
    const segment = this.#newSegment(minSlots, 0);
    this.directory = [segment, segment];
    this.shift = 31;
    this.freeIds.clear();
    if (this.address.length > 1024) this.address.clear();
    this.address.reserve(16);
    this.#countIndexBytes(this.address.byteLength);
    this.arena.indexBytes -= before;
  }

  // A segment's pairs are followed by the number of entries and the bits of the hash it stands for.

  #newSegment(slots: number, bits: number): Int32Array {
    const segment = new Int32Array(2 * slots + 2);
    segment[2 * slots + 1] = bits;
    this.#countIndexBytes(segment.byteLength);
    return segment;
  }

  #countIndexBytes(change: number): void {
    this.indexBytes += change;
    this.arena.indexBytes += change;
  }

  #index(hash: number, id: number): void {
    let segment = this.directory[hash >>> this.shift]!;
    const slots = (segment.length - 2) >>> 1;
    if (segment[segment.length - 2]! * 4 >= slots * 3) {
      this.#makeRoom(segment, hash);
      segment = this.directory[hash >>> this.shift]!;
    }
    place(segment, hash, id);
  }

  #makeRoom(segment: Int32Array, hash: number): void {
    const slots = (segment.length - 2) >>> 1;
    const bits = segment[segment.length - 1]!;
    if (slots < maxSlots || bits === maxDirectoryBits) {
      this.#resize(segment, hash, slots * 2);
      return;
    }
    if (bits === 32 - this.shift) this.#doubleDirectory();
    const low = this.#newSegment(slots, bits + 1);
    const high = this.#newSegment(slots, bits + 1);
    for (let i = 0; i < 2 * slots; i += 2) {
      const id = segment[i + 1]!;
      if (id === 0) continue;
      const h = segment[i]!;
      place(((h >>> (31 - bits)) & 1) === 0 ? low : high, h, id);
    }
    const first = this.#firstOf(hash, bits);
    const half = 1 << (32 - this.shift - bits - 1);
    this.directory.fill(low, first, first + half);
    this.directory.fill(high, first + half, first + 2 * half);
    this.#countIndexBytes(-segment.byteLength);
  }

  #resize(segment: Int32Array, hash: number, slots: number): void {
    const bits = segment[segment.length - 1]!;
    const other = this.#newSegment(slots, bits);
    for (let i = 0; i < segment.length - 2; i += 2) {
      const id = segment[i + 1]!;
      if (id !== 0) place(other, segment[i]!, id);
    }
    const first = this.#firstOf(hash, bits);
    this.directory.fill(other, first, first + (1 << (32 - this.shift - bits)));
    this.#countIndexBytes(-segment.byteLength);
  }

  /** The first directory index of the segment that stands for the hash's top `bits`. */
  #firstOf(hash: number, bits: number): number {
    return bits === 0 ? 0 : (hash >>> (32 - bits)) << (32 - this.shift - bits);
  }

  #doubleDirectory(): void {
    const doubled: Int32Array[] = [];
    for (const segment of this.directory) doubled.push(segment, segment);
    this.directory = doubled;
    this.shift--;
  }

  #slotOf(segment: Int32Array, hash: number, id: number): number {
    const mask = segment.length - 4;
    let i = (hash << 1) & mask;
    while (segment[i + 1] !== id) {
      assert(segment[i + 1] !== 0, 'an entry is in the index');
      i = (i + 2) & mask;
    }
    return i;
  }

  /** Closes the gap by moving later entries of the same run back, so that no marker is left. */
  #unindex(hash: number, id: number): void {
    const segment = this.directory[hash >>> this.shift]!;
    const mask = segment.length - 4;
    let gap = this.#slotOf(segment, hash, id);
    for (let i = (gap + 2) & mask; segment[i + 1] !== 0; i = (i + 2) & mask) {
      const home = (segment[i]! << 1) & mask;
      if (((i - home) & mask) >= ((i - gap) & mask)) {
        segment[gap] = segment[i]!;
        segment[gap + 1] = segment[i + 1]!;
        gap = i;
      }
    }
    segment[gap] = 0;
    segment[gap + 1] = 0;
    const count = --segment[segment.length - 2]!;
    const slots = (segment.length - 2) >>> 1;
    if (slots > minSlots && count * 8 < slots) this.#resize(segment, hash, slots >>> 1);
  }
}

function place(segment: Int32Array, hash: number, id: number): void {
  const mask = segment.length - 4;
  let i = (hash << 1) & mask;
  while (segment[i + 1] !== 0) i = (i + 2) & mask;
  segment[i] = hash;
  segment[i + 1] = id;
  segment[segment.length - 2]!++;
}
