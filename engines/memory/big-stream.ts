// A stream's records: leaves of up to 1 KiB in the order of keys, and a directory of the leaves. A record
// is found by a binary search over the first keys of leaves and a walk along one leaf; the leaf found last for
// keys with the same first byte is tried before. A record beyond 1 KiB has a leaf to itself.

import { compareBytes, copyBytes } from '../../universal-row/bytes.ts';
import type { Slice } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import type { FieldVisitor } from '../../universal-row/rows.ts';
import type { Arena } from './arena.ts';
import type { Collection } from './collection.ts';
import { Leaf, LeafDirectory, type LeafPlace } from './leaf-directory.ts';
import { commonLength, compareFirstKey, LeafCursor, LeafScratch } from './stream-leaf.ts';

const leafBytes = 1024;
const initialLeafBytes = 128;
/** Of the object and its keys, about. */
const ownBytes = 500;

interface LeafHint extends LeafPlace {
  /** Of the directory, when the place was found. */
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

const scratch = new LeafScratch();
const cursor = new LeafCursor();
/** Of a walk that is over. */
let spare: LeafCursor | undefined = new LeafCursor();

export class BigStream implements Collection {
  readonly shape: Shape;
  held = false;
  dropped = false;
  count = 0;
  readonly arena: Arena;
  readonly #leaves = new LeafDirectory();
  readonly #at: LeafPlace = { chunk: 0, leaf: 0 };
  /** Leaves found last, by the low bits of the first byte of what was looked for: what is next is often near. */
  readonly #hints: LeafHint[] = [];
  #blockBytes = 0;
  /** The greatest key, while it is known: records are mostly added behind it. */
  #lastKey: Buffer = Buffer.allocUnsafe(32);
  #lastKeyLength = -1;
  #watch: LeafWatch | undefined = undefined;
  /** Of the snapshot that is taken or was taken last; a leaf with this mark is in it already, or new. */
  #snapshot = 0;
  #countedIndexBytes = 0;

  constructor(arena: Arena, shape: Shape) {
    this.arena = arena;
    this.shape = shape;
    this.#countIndex();
  }

  // Reads

  find(b: Buffer, s: number, n: number, out?: Slice): boolean {
    if (!this.#seekLeaf(b, s, n)) return false;
    this.#open(cursor);
    if (!cursor.seek(b, s, n)) return false;
    out?.set(cursor.b, cursor.valueAt, cursor.valueLength);
    return true;
  }

  each(from: Uint8Array, to: Uint8Array, reverse: boolean, visit: FieldVisitor): void {
    if (reverse) return this.#eachReverse(from, to, visit);
    if (!this.#seekLeaf(from, 0, from.length)) return;
    // A walk's own: a visitor may read on.
    const walk = spare ?? new LeafCursor();
    spare = undefined;
    try {
      this.#walk(walk, from, to, visit);
    } finally {
      spare = walk;
    }
  }

  #walk(walk: LeafCursor, from: Uint8Array, to: Uint8Array, visit: FieldVisitor): void {
    const at = { chunk: this.#at.chunk, leaf: this.#at.leaf };
    this.#openAt(walk, at);
    walk.seek(from, 0, from.length);
    for (;;) {
      while (walk.at < walk.end) {
        if (!isBelow(walk, to)) return;
        if (visit(walk.key, 0, walk.keyLength, walk.b, walk.valueAt, walk.valueLength)) return;
        walk.advance();
      }
      if (!this.#leaves.forward(at)) return;
      this.#openAt(walk, at);
      walk.advance();
    }
  }

  #eachReverse(from: Uint8Array, to: Uint8Array, visit: FieldVisitor): void {
    if (!this.#seekLeaf(to, 0, to.length)) return;
    const at = { ...this.#at };
    const walk = new LeafCursor();
    do {
      // A leaf is read forward only: its records below `to` are noted, then visited the other way round.
      const keys: Buffer[] = [];
      const values: number[] = [];
      this.#openAt(walk, at);
      while (walk.advance()) {
        if (!isBelow(walk, to)) break;
        keys.push(Buffer.from(walk.key.subarray(0, walk.keyLength)));
        values.push(walk.valueAt, walk.valueLength);
      }
      for (let i = keys.length - 1; i >= 0; i--) {
        const key = keys[i]!;
        if (compareBytes(key, 0, key.length, from, 0, from.length) < 0) return;
        if (visit(key, 0, key.length, walk.b, values[2 * i]!, values[2 * i + 1]!)) return;
      }
    } while (this.#leaves.backward(at));
  }

  // Writes

  /** Puts a record, whatever was under the key. */
  add(kb: Buffer, ks: number, kn: number, vb: Buffer, vs: number, vn: number): void {
    if (this.#lastKeyLength >= 0) {
      const last = this.#lastKey;
      const shared = commonLength(last, 0, this.#lastKeyLength, kb, ks, kn);
      if (shared < kn && (shared === this.#lastKeyLength || last[shared]! < kb[ks + shared]!)) {
        this.#leaves.toLast(this.#at);
        this.#append(shared, kb, ks, kn, vb, vs, vn);
        return;
      }
    }
    if (!this.#seekLeaf(kb, ks, kn)) {
      this.#newLeaf(kb, ks, kn, vb, vs, vn);
      return;
    }
    const { tail, tailLength } = this.#hintOf(kb[ks]!);
    if (tailLength >= 0) {
      const shared = commonLength(tail, 0, tailLength, kb, ks, kn);
      if (shared < kn && (shared === tailLength || tail[shared]! < kb[ks + shared]!)) {
        this.#append(shared, kb, ks, kn, vb, vs, vn);
        this.#noteTail(kb, ks, kn);
        return;
      }
    }
    this.#open(cursor);
    if (cursor.seek(kb, ks, kn)) this.#replace(kb, ks, kn, vb, vs, vn);
    else if (cursor.at === cursor.end) {
      this.#append(cursor.sharedBefore, kb, ks, kn, vb, vs, vn);
      this.#noteTail(kb, ks, kn);
    } else this.#insert(kb, ks, kn, vb, vs, vn);
  }

  set(kb: Buffer, ks: number, kn: number, vb: Buffer, vs: number, vn: number): void {
    if (!this.#seekLeaf(kb, ks, kn)) return;
    this.#open(cursor);
    if (cursor.seek(kb, ks, kn)) this.#replace(kb, ks, kn, vb, vs, vn);
  }

  remove(b: Buffer, s: number, n: number): boolean {
    if (!this.#seekLeaf(b, s, n)) return false;
    this.#open(cursor);
    if (!cursor.seek(b, s, n)) return false;
    const { at, shared } = cursor;
    cursor.advance();
    this.#cut(at, 1, shared);
    return true;
  }

  /** Removes records with from <= key < to; returns how many there were. */
  removeRange(from: Uint8Array, to: Uint8Array): number {
    const before = this.count;
    while (this.#seekLeaf(from, 0, from.length)) {
      this.#open(cursor);
      cursor.seek(from, 0, from.length);
      if (cursor.at === cursor.end) {
        // All of this leaf is below: the next one begins at or behind `from`.
        if (!this.#leaves.forward(this.#at)) break;
        this.#open(cursor);
        cursor.advance();
      }
      if (!isBelow(cursor, to)) break;
      if (cursor.index === 0 && this.#nextLeafStartsBy(to)) {
        this.#dropLeaf();
        continue;
      }
      const { at, index } = cursor;
      let { shared } = cursor;
      while (cursor.advance() && isBelow(cursor, to)) shared = Math.min(shared, cursor.shared);
      const isEnd = cursor.at === cursor.end;
      this.#cut(at, cursor.index - index, shared);
      if (!isEnd) break;
    }
    return before - this.count;
  }

  /** Whether the leaf behind the current one begins at or before the key. */
  #nextLeafStartsBy(key: Uint8Array): boolean {
    const next = { ...this.#at };
    if (!this.#leaves.forward(next)) return false;
    const address = this.#leaves.get(next, Leaf.address);
    const b = this.arena.buffer(address);
    return compareFirstKey(b, this.arena.offset(address), key, 0, key.length) <= 0;
  }

  // Leaves. The one at `#at` is meant where nothing else is said.

  /** Goes to the leaf where the key is or would be; false when there are no leaves. */
  #seekLeaf(k: Uint8Array, s: number, n: number): boolean {
    const hint = this.#hintOf(k[s]!);
    if (hint.version === this.#leaves.version && this.#isIn(hint, k, s, n)) {
      this.#at.chunk = hint.chunk;
      this.#at.leaf = hint.leaf;
      return true;
    }
    const { arena } = this;
    const isFound = this.#leaves.search(
      this.#at,
      (address) => compareFirstKey(arena.buffer(address), arena.offset(address), k, s, n) > 0,
    );
    hint.chunk = this.#at.chunk;
    hint.leaf = this.#at.leaf;
    hint.version = isFound ? this.#leaves.version : -1;
    hint.tailLength = -1;
    return isFound;
  }

  #hintOf(first: number): LeafHint {
    return (this.#hints[first & 7] ??= {
      chunk: 0,
      leaf: 0,
      version: -1,
      tail: Buffer.allocUnsafe(initialTailBytes),
      tailLength: -1,
    });
  }

  /** The leaf's last record is the one with this key. `#seekLeaf` has just been for it. */
  #noteTail(kb: Buffer, ks: number, kn: number): void {
    const hint = this.#hintOf(kb[ks]!);
    if (hint.version !== this.#leaves.version) return;
    if (kn > hint.tail.length) hint.tail = Buffer.allocUnsafe(kn * 2);
    for (let i = 0; i < kn; i++) hint.tail[i] = kb[ks + i]!;
    hint.tailLength = kn;
  }

  /** Whether the leaf begins at or before the key, and the one behind it does not. */
  #isIn(hint: LeafHint, k: Uint8Array, s: number, n: number): boolean {
    const { arena } = this;
    const leaves = this.#leaves;
    const address = leaves.get(hint, Leaf.address);
    if (compareFirstKey(arena.buffer(address), arena.offset(address), k, s, n) > 0) return false;
    const next = leaves.addressAfter(hint);
    return (
      next === undefined || compareFirstKey(arena.buffer(next), arena.offset(next), k, s, n) > 0
    );
  }

  #open(to: LeafCursor): void {
    this.#openAt(to, this.#at);
  }

  #openAt(to: LeafCursor, at: LeafPlace): void {
    const address = this.#leaves.get(at, Leaf.address);
    const o = this.arena.offset(address);
    to.open(this.arena.buffer(address), o, o + this.#leaves.get(at, Leaf.used));
  }

  #beforeChange(): void {
    const watch = this.#watch;
    if (watch === undefined) return;
    if (this.#leaves.get(this.#at, Leaf.mark) === this.#snapshot) return;
    this.#leaves.set(this.#at, Leaf.mark, this.#snapshot);
    const address = this.#leaves.get(this.#at, Leaf.address);
    const o = this.arena.offset(address);
    const end = o + this.#leaves.get(this.#at, Leaf.used);
    watch.beforeLeafChange(this.arena.buffer(address), o, end);
  }

  /** Puts a record behind all others of the leaf; it shares so much of its key with the last one. */
  #append(
    shared: number,
    kb: Buffer,
    ks: number,
    kn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void {
    if (this.#leaves.isLast(this.#at)) this.#noteLast(kb, ks, kn);
    scratch.begin();
    scratch.add(shared, kb, ks, kn, vb, vs, vn);
    if (this.#fits(0)) {
      const used = this.#leaves.get(this.#at, Leaf.used);
      this.#splice(used, used, 1);
      return;
    }
    this.#at.leaf++;
    this.#newLeaf(kb, ks, kn, vb, vs, vn);
  }

  #noteLast(kb: Buffer, ks: number, kn: number): void {
    if (kn > this.#lastKey.length) this.#lastKey = Buffer.allocUnsafe(kn * 2);
    for (let i = 0; i < kn; i++) this.#lastKey[i] = kb[ks + i]!;
    this.#lastKeyLength = kn;
  }

  /** Puts a record in front of the one that the cursor has stopped at. */
  #insert(kb: Buffer, ks: number, kn: number, vb: Buffer, vs: number, vn: number): void {
    const { sharedBefore, sharedHere, index } = cursor;
    scratch.begin();
    scratch.add(sharedBefore, kb, ks, kn, vb, vs, vn);
    scratchCurrent(sharedHere);
    const start = this.#startOf(cursor);
    if (this.#fits(cursor.next - cursor.at)) {
      this.#splice(cursor.at - start, cursor.next - start, 1);
      return;
    }
    // The record may point into this arena, and its leaf is about to change.
    const value = Buffer.from(vb.subarray(vs, vs + vn));
    const key = Buffer.from(kb.subarray(ks, ks + kn));
    if (index > 0) {
      this.#split(cursor.at - start, cursor.index);
      this.#append(sharedBefore, key, 0, kn, value, 0, vn);
    } else {
      this.#newLeaf(key, 0, kn, value, 0, vn);
    }
  }

  /** Replaces the value of the record that the cursor is at. */
  #replace(kb: Buffer, ks: number, kn: number, vb: Buffer, vs: number, vn: number): void {
    const start = this.#startOf(cursor);
    const { at, next, index, shared } = cursor;
    scratch.begin();
    scratch.add(shared, kb, ks, kn, vb, vs, vn);
    if (this.#fits(next - at) || this.#leaves.get(this.#at, Leaf.records) === 1) {
      this.#splice(at - start, next - start, 0);
      return;
    }
    const value = Buffer.from(vb.subarray(vs, vs + vn));
    const key = Buffer.from(kb.subarray(ks, ks + kn));
    if (index > 0) {
      this.#split(at - start, index);
      this.#leaves.forward(this.#at);
      this.#open(cursor);
      cursor.advance();
    }
    // Now the first of its leaf: it is taken out and gets a leaf of its own.
    if (this.#leaves.get(this.#at, Leaf.records) > 1) {
      cursor.advance();
      this.#cut(this.#startOf(cursor), 1, 0);
      this.#newLeaf(key, 0, kn, value, 0, vn);
      return;
    }
    scratch.begin();
    scratch.add(0, key, 0, kn, value, 0, vn);
    this.#splice(0, this.#leaves.get(this.#at, Leaf.used), 0);
  }

  #startOf(from: LeafCursor): number {
    return from.end - this.#leaves.get(this.#at, Leaf.used);
  }

  /** Whether what is in the scratch fits in place of so many bytes. */
  #fits(removed: number): boolean {
    return this.#leaves.get(this.#at, Leaf.used) + scratch.n - removed <= leafBytes;
  }

  /**
   * Removes `records` records from the one at `at` on, up to the one that the cursor is at. The latter
   * shares with the record before them no more than they all did.
   */
  #cut(at: number, records: number, shared: number): void {
    if (this.#leaves.get(this.#at, Leaf.records) === records) {
      this.#dropLeaf();
      return;
    }
    const start = this.#startOf(cursor);
    let until = cursor.at;
    scratch.begin();
    if (until < cursor.end) {
      scratchCurrent(at === start ? 0 : Math.min(shared, cursor.shared));
      until = cursor.next;
    } else if (this.#leaves.isLast(this.#at)) {
      this.#lastKeyLength = -1;
    }
    this.#splice(at - start, until - start, -records);
    if (this.#leaves.get(this.#at, Leaf.used) * 4 < leafBytes) this.#joinNext();
  }

  /** Takes in the records of the leaf behind, if they leave room for more. */
  #joinNext(): void {
    const next = { ...this.#at };
    if (!this.#leaves.forward(next)) return;
    const used = this.#leaves.get(this.#at, Leaf.used);
    const more = this.#leaves.get(next, Leaf.used);
    if (used + more > leafBytes / 2) return;
    const into = { ...this.#at };
    this.#at.chunk = next.chunk;
    this.#at.leaf = next.leaf;
    this.#beforeChange();
    const address = this.#leaves.get(next, Leaf.address);
    const records = this.#leaves.get(next, Leaf.records);
    const o = this.arena.offset(address);
    scratch.begin();
    scratch.copy(this.arena.buffer(address), o, o + more);
    this.#at.chunk = into.chunk;
    this.#at.leaf = into.leaf;
    this.#splice(used, used, records);
    this.#at.chunk = next.chunk;
    this.#at.leaf = next.leaf;
    const last = this.#lastKeyLength;
    this.#dropLeaf();
    this.#lastKeyLength = last;
    this.#at.chunk = into.chunk;
    this.#at.leaf = into.leaf;
  }

  /** The records from the `index`th on, which begins at `offset`, go to a leaf of their own behind this one. */
  #split(offset: number, index: number): void {
    const place = { ...this.#at };
    this.#beforeChange();
    const used = this.#leaves.get(place, Leaf.used);
    const moved = this.#leaves.get(place, Leaf.records) - index;
    this.#open(cursor);
    while (cursor.index < index) cursor.advance();
    scratch.begin();
    scratchCurrent(0);
    scratch.copy(cursor.b, cursor.next, cursor.end);
    this.#at.leaf++;
    this.#putLeaf(moved);
    this.count -= moved;
    this.#leaves.backward(this.#at);
    scratch.begin();
    this.#splice(offset, used, -moved);
    this.count += moved;
  }

  #newLeaf(kb: Buffer, ks: number, kn: number, vb: Buffer, vs: number, vn: number): void {
    if (this.#leaves.count === 0) this.#noteLast(kb, ks, kn);
    scratch.begin();
    scratch.add(0, kb, ks, kn, vb, vs, vn);
    this.#putLeaf(1);
  }

  /** Makes a leaf of what is in the scratch, in front of the one at `#at`. */
  #putLeaf(records: number): void {
    const { n } = scratch;
    const address = this.arena.allocate(blockBytesFor(n));
    this.#blockBytes += this.arena.capacity(address);
    scratch.buf.copy(this.arena.buffer(address), this.arena.offset(address), 0, n);
    this.#leaves.insert(this.#at, address, n, records, this.#snapshot);
    this.count += records;
    this.#countIndex();
  }

  /** Puts what is in the scratch in place of the leaf's bytes [from, until). */
  #splice(from: number, until: number, records: number): void {
    this.#beforeChange();
    const { arena } = this;
    const { n } = scratch;
    const place = this.#at;
    this.#forgetTails(place);
    const address = this.#leaves.get(place, Leaf.address);
    const used = this.#leaves.get(place, Leaf.used);
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
      this.#leaves.set(place, Leaf.address, other);
    }
    this.#leaves.set(place, Leaf.used, after);
    this.#leaves.set(place, Leaf.records, this.#leaves.get(place, Leaf.records) + records);
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

  #dropLeaf(): void {
    this.#beforeChange();
    if (this.#leaves.isLast(this.#at)) this.#lastKeyLength = -1;
    this.count -= this.#leaves.get(this.#at, Leaf.records);
    this.#free(this.#at);
    this.#leaves.remove(this.#at);
    this.#countIndex();
  }

  #free(at: LeafPlace): void {
    const address = this.#leaves.get(at, Leaf.address);
    this.#blockBytes -= this.arena.capacity(address);
    this.arena.free(address);
  }

  // Snapshots

  /** From here on `watch` is told of leaves that were there at this moment, before they change. */
  beginSnapshot(watch: LeafWatch): void {
    this.#watch = watch;
    this.#snapshot++;
  }

  endSnapshot(): void {
    this.#watch = undefined;
  }

  /**
   * Shows the watch about `limit` leaves that it has not seen, from the one with this key on; returns the
   * key to go on from, undefined at the end.
   */
  showLeaves(from: Buffer, limit: number): Buffer | undefined {
    if (!this.#seekLeaf(from, 0, from.length)) return undefined;
    for (let left = limit; left > 0; left--) {
      this.#beforeChange();
      if (!this.#leaves.forward(this.#at)) return undefined;
    }
    this.#open(cursor);
    cursor.advance();
    return Buffer.from(cursor.key.subarray(0, cursor.keyLength));
  }

  // What all collections have

  bytes(): number {
    return this.#blockBytes;
  }

  indexBytes(): number {
    return ownBytes + this.#leaves.indexBytes;
  }

  #countIndex(): void {
    const bytes = this.indexBytes();
    this.arena.indexBytes += bytes - this.#countedIndexBytes;
    this.#countedIndexBytes = bytes;
  }

  get extent(): number {
    return this.#leaves.count;
  }

  compact(from: number, limit: number): void {
    const { arena } = this;
    const at: LeafPlace = { chunk: 0, leaf: 0 };
    if (!this.#leaves.toIndex(at, from)) return;
    for (let left = limit; left > 0; left--) {
      const address = this.#leaves.get(at, Leaf.address);
      if (arena.isLeaving(address)) this.#leaves.set(at, Leaf.address, arena.move(address));
      if (!this.#leaves.forward(at)) return;
    }
  }

  dismantle(limit: number): boolean {
    const at: LeafPlace = { chunk: 0, leaf: 0 };
    for (let left = limit; this.#leaves.toLast(at); left--) {
      if (left === 0) return false;
      this.#free(at);
      this.#leaves.remove(at);
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
function scratchCurrent(shared: number): void {
  const { key, keyLength, b, valueAt, valueLength } = cursor;
  scratch.add(shared, key, 0, keyLength, b, valueAt, valueLength);
}

function isBelow(at: LeafCursor, key: Uint8Array): boolean {
  return compareBytes(at.key, 0, at.keyLength, key, 0, key.length) < 0;
}
