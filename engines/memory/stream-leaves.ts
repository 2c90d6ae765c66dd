// The leaves of a stream: blocks of up to 1 KiB with records in the order of keys, and the directory of them. A leaf is
// found by a binary search over first keys; the one found last for keys with the same first byte is tried before.

import { copyBytes } from '../../universal-row/bytes.ts';
import type { Shape } from '../../universal-row/rows.ts';
import type { Arena } from './arena.ts';
import type { Collection } from './collection.ts';
import { Leaf, LeafDirectory, type LeafPlace } from './leaf-directory.ts';
import { compareFirstKey, LeafCursor, LeafScratch } from './stream-leaf.ts';

const leafBytes = 1024;
const initialLeafBytes = 128;
/** Size of the object and its keys, approximate. */
const ownBytes = 500;

interface LeafHint extends LeafPlace {
  /** Version of the directory when the place was found. */
  version: number;
  /** The greatest key of the leaf, while it is known: records of one kind are mostly added behind it. */
  tail: Buffer;
  tailLength: number;
}

const initialTailBytes = 32;

/** Told of the records of a leaf before they are changed or given up, while a snapshot is taken. */
export interface LeafWatch {
  beforeLeafChange(b: Buffer, start: number, end: number): void;
}

/**
 * Working space for building a leaf and for positions in it; shared by all streams, which use it
 * one after another.
 */
export const scratch = new LeafScratch();
export const cursor = new LeafCursor();

/** Methods work on the leaf at `at` unless they say otherwise. */
export abstract class StreamLeaves implements Collection {
  readonly shape: Shape;
  held = false;
  dropped = false;
  count = 0;
  readonly arena: Arena;
  protected readonly leaves = new LeafDirectory();
  protected readonly at: LeafPlace = { chunk: 0, leaf: 0 };
  /**
   * Leaves found last, by the low bits of the target's first byte: the next target is often near.
   */
  readonly #hints: LeafHint[] = [];
  #blockBytes = 0;
  /** The greatest key, while it is known: records are mostly added behind it. */
  protected lastKey: Buffer = Buffer.allocUnsafe(32);
  protected lastKeyLength = -1;
  #watch: LeafWatch | undefined = undefined;
  /**
   * Number of the current or last snapshot. A leaf with this mark is already in the snapshot, or
   * newer than it.
   */
  #snapshot = 0;
  #countedIndexBytes = 0;

  constructor(arena: Arena, shape: Shape) {
    this.arena = arena;
    this.shape = shape;
    this.countIndex();
  }

  /** Goes to the leaf where the key is or would be; false when there are no leaves. */
  protected seekLeaf(k: Uint8Array, s: number, n: number): boolean {
    const hint = this.hintOf(k[s]!);
    if (hint.version === this.leaves.version && this.#isIn(hint, k, s, n)) {
      this.at.chunk = hint.chunk;
      this.at.leaf = hint.leaf;
      return true;
    }
    const { arena } = this;
    const isFound = this.leaves.search(
      this.at,
      (address) => compareFirstKey(arena.buffer(address), arena.offset(address), k, s, n) > 0,
    );
    hint.chunk = this.at.chunk;
    hint.leaf = this.at.leaf;
    hint.version = isFound ? this.leaves.version : -1;
    hint.tailLength = -1;
    return isFound;
  }

  protected hintOf(first: number): LeafHint {
    return (this.#hints[first & 7] ??= {
      chunk: 0,
      leaf: 0,
      version: -1,
      tail: Buffer.allocUnsafe(initialTailBytes),
      tailLength: -1,
    });
  }

  /** The leaf's last record is the one with this key. `#seekLeaf` has just been for it. */
  protected noteTail(kb: Buffer, ks: number, kn: number): void {
    const hint = this.hintOf(kb[ks]!);
    if (hint.version !== this.leaves.version) return;
    if (kn > hint.tail.length) hint.tail = Buffer.allocUnsafe(kn * 2);
    for (let i = 0; i < kn; i++) hint.tail[i] = kb[ks + i]!;
    hint.tailLength = kn;
  }

  /** Whether the leaf begins at or before the key, and the one behind it does not. */
  #isIn(hint: LeafHint, k: Uint8Array, s: number, n: number): boolean {
    const { arena } = this;
    const leaves = this.leaves;
    const address = leaves.get(hint, Leaf.address);
    if (compareFirstKey(arena.buffer(address), arena.offset(address), k, s, n) > 0) return false;
    const next = leaves.addressAfter(hint);
    return (
      next === undefined || compareFirstKey(arena.buffer(next), arena.offset(next), k, s, n) > 0
    );
  }

  protected open(to: LeafCursor): void {
    this.openAt(to, this.at);
  }

  protected openAt(to: LeafCursor, at: LeafPlace): void {
    const address = this.leaves.get(at, Leaf.address);
    const o = this.arena.offset(address);
    to.open(this.arena.buffer(address), o, o + this.leaves.get(at, Leaf.used));
  }

  protected beforeChange(): void {
    const watch = this.#watch;
    if (watch === undefined) return;
    if (this.leaves.get(this.at, Leaf.mark) === this.#snapshot) return;
    this.leaves.set(this.at, Leaf.mark, this.#snapshot);
    const address = this.leaves.get(this.at, Leaf.address);
    const o = this.arena.offset(address);
    const end = o + this.leaves.get(this.at, Leaf.used);
    watch.beforeLeafChange(this.arena.buffer(address), o, end);
  }

  protected noteLast(kb: Buffer, ks: number, kn: number): void {
    if (kn > this.lastKey.length) this.lastKey = Buffer.allocUnsafe(kn * 2);
    for (let i = 0; i < kn; i++) this.lastKey[i] = kb[ks + i]!;
    this.lastKeyLength = kn;
  }

  protected startOf(from: LeafCursor): number {
    return from.end - this.leaves.get(this.at, Leaf.used);
  }

  /** Whether the contents of the scratch fit in place of so many bytes. */
  protected fits(removed: number): boolean {
    return this.leaves.get(this.at, Leaf.used) + scratch.n - removed <= leafBytes;
  }

  /**
   * Removes `records` records from the one at `at` on, up to the one that the cursor is at. The latter
   * shares with the record before them no more than they all did.
   */
  protected cut(at: number, records: number, shared: number): void {
    if (this.leaves.get(this.at, Leaf.records) === records) {
      this.dropLeaf();
      return;
    }
    const start = this.startOf(cursor);
    let until = cursor.at;
    scratch.begin();
    if (until < cursor.end) {
      scratchCurrent(at === start ? 0 : Math.min(shared, cursor.shared));
      until = cursor.next;
    } else if (this.leaves.isLast(this.at)) {
      this.lastKeyLength = -1;
    }
    this.splice(at - start, until - start, -records);
    if (this.leaves.get(this.at, Leaf.used) * 4 < leafBytes) this.#joinNext();
  }

  /** Takes in the records of the leaf behind, if they leave room for more. */
  #joinNext(): void {
    const next = { ...this.at };
    if (!this.leaves.forward(next)) return;
    const used = this.leaves.get(this.at, Leaf.used);
    const more = this.leaves.get(next, Leaf.used);
    if (used + more > leafBytes / 2) return;
    const into = { ...this.at };
    this.at.chunk = next.chunk;
    this.at.leaf = next.leaf;
    this.beforeChange();
    const address = this.leaves.get(next, Leaf.address);
    const records = this.leaves.get(next, Leaf.records);
    const o = this.arena.offset(address);
    scratch.begin();
    scratch.copy(this.arena.buffer(address), o, o + more);
    this.at.chunk = into.chunk;
    this.at.leaf = into.leaf;
    this.splice(used, used, records);
    this.at.chunk = next.chunk;
    this.at.leaf = next.leaf;
    const last = this.lastKeyLength;
    this.dropLeaf();
    this.lastKeyLength = last;
    this.at.chunk = into.chunk;
    this.at.leaf = into.leaf;
  }

  /** The records from the `index`th on, which begins at `offset`, go to a leaf of their own behind this one. */
  protected split(offset: number, index: number): void {
    const place = { ...this.at };
    this.beforeChange();
    const used = this.leaves.get(place, Leaf.used);
    const moved = this.leaves.get(place, Leaf.records) - index;
    this.open(cursor);
    while (cursor.index < index) cursor.advance();
    scratch.begin();
    scratchCurrent(0);
    scratch.copy(cursor.b, cursor.next, cursor.end);
    this.at.leaf++;
    this.#putLeaf(moved);
    this.count -= moved;
    this.leaves.backward(this.at);
    scratch.begin();
    this.splice(offset, used, -moved);
    this.count += moved;
  }

  protected newLeaf(kb: Buffer, ks: number, kn: number, vb: Buffer, vs: number, vn: number): void {
    if (this.leaves.count === 0) this.noteLast(kb, ks, kn);
    scratch.begin();
    scratch.add(0, kb, ks, kn, vb, vs, vn);
    this.#putLeaf(1);
  }

  /** Makes a leaf of the scratch, in front of the one at `#at`. */
  #putLeaf(records: number): void {
    const { n } = scratch;
    const address = this.arena.allocate(blockBytesFor(n));
    this.#blockBytes += this.arena.capacity(address);
    scratch.buf.copy(this.arena.buffer(address), this.arena.offset(address), 0, n);
    this.leaves.insert(this.at, address, n, records, this.#snapshot);
    this.count += records;
    this.countIndex();
  }

  /** Replaces the leaf's bytes [from, until) by the contents of the scratch. */
  protected splice(from: number, until: number, records: number): void {
    this.beforeChange();
    const { arena } = this;
    const { n } = scratch;
    const place = this.at;
    this.#forgetTails(place);
    const address = this.leaves.get(place, Leaf.address);
    const used = this.leaves.get(place, Leaf.used);
    const after = used - (until - from) + n;
    const capacity = arena.capacity(address);
    const b = arena.buffer(address);
    const o = arena.offset(address);
    if (after <= capacity && (after * 4 >= capacity || capacity <= initialLeafBytes)) {
      if (until !== from + n && until < used) {
        b.copyWithin(o + from + n, o + until, o + used);
      }
      copyBytes(b, o + from, scratch.buf, 0, n);
    } else {
      const other = arena.allocate(blockBytesFor(after));
      const to = arena.buffer(other);
      const at = arena.offset(other);
      b.copy(to, at, o, o + from);
      scratch.buf.copy(to, at + from, 0, n);
      b.copy(to, at + from + n, o + until, o + used);
      arena.free(address);
      this.#blockBytes += arena.capacity(other) - capacity;
      this.leaves.set(place, Leaf.address, other);
    }
    this.leaves.set(place, Leaf.used, after);
    this.leaves.set(place, Leaf.records, this.leaves.get(place, Leaf.records) + records);
    this.count += records;
  }

  /** The leaf is about to have other records. */
  #forgetTails({ chunk, leaf }: LeafPlace): void {
    const hints = this.#hints;
    for (let i = 0; i < hints.length; i++) {
      const hint = hints[i];
      if (hint !== undefined && hint.leaf === leaf && hint.chunk === chunk) hint.tailLength = -1;
    }
  }

  protected dropLeaf(): void {
    this.beforeChange();
    if (this.leaves.isLast(this.at)) this.lastKeyLength = -1;
    this.count -= this.leaves.get(this.at, Leaf.records);
    this.#free(this.at);
    this.leaves.remove(this.at);
    this.countIndex();
  }

  #free(at: LeafPlace): void {
    const address = this.leaves.get(at, Leaf.address);
    this.#blockBytes -= this.arena.capacity(address);
    this.arena.free(address);
  }

  // Snapshots

  /** From here on `watch` is notified of leaves that were there at this moment, before they change. */
  beginSnapshot(watch: LeafWatch): void {
    this.#watch = watch;
    this.#snapshot++;
  }

  endSnapshot(): void {
    this.#watch = undefined;
  }

  /**
   * Shows the watch about `limit` leaves that it has not seen, from the one with this key on; returns the
   * key to continue from, undefined at the end.
   */
  showLeaves(from: Buffer, limit: number): Buffer | undefined {
    if (!this.seekLeaf(from, 0, from.length)) return undefined;
    for (let left = limit; left > 0; left--) {
      this.beforeChange();
      if (!this.leaves.forward(this.at)) return undefined;
    }
    this.open(cursor);
    cursor.advance();
    return Buffer.from(cursor.key.subarray(0, cursor.keyLength));
  }

  // Members of all collections

  bytes(): number {
    return this.#blockBytes;
  }

  indexBytes(): number {
    return ownBytes + this.leaves.indexBytes;
  }

  protected countIndex(): void {
    const bytes = this.indexBytes();
    this.arena.indexBytes += bytes - this.#countedIndexBytes;
    this.#countedIndexBytes = bytes;
  }

  get extent(): number {
    return this.leaves.count;
  }

  compact(from: number, limit: number): void {
    const { arena } = this;
    const at: LeafPlace = { chunk: 0, leaf: 0 };
    if (!this.leaves.toIndex(at, from)) return;
    for (let left = limit; left > 0; left--) {
      const address = this.leaves.get(at, Leaf.address);
      if (arena.isLeaving(address)) this.leaves.set(at, Leaf.address, arena.move(address));
      if (!this.leaves.forward(at)) return;
    }
  }

  dismantle(limit: number): boolean {
    const at: LeafPlace = { chunk: 0, leaf: 0 };
    for (let left = limit; this.leaves.toLast(at); left--) {
      if (left === 0) return false;
      this.#free(at);
      this.leaves.remove(at);
    }
    this.arena.indexBytes -= this.#countedIndexBytes;
    this.#countedIndexBytes = 0;
    return true;
  }
}

function blockBytesFor(bytes: number): number {
  if (bytes >= leafBytes) return bytes;
  let size = initialLeafBytes;
  while (size < bytes) size *= 2;
  return size;
}

/** Adds the record that the cursor is at, its key without the first `shared` bytes. */
export function scratchCurrent(shared: number): void {
  const { key, keyLength, b, valueAt, valueLength } = cursor;
  scratch.add(shared, key, 0, keyLength, b, valueAt, valueLength);
}
