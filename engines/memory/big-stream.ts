// A stream's records, in the order of keys. A record is found by a walk along one leaf (stream-leaves.ts). One beyond
// 1 KiB has a leaf to itself.

import { compareBytes } from '../../universal-row/bytes.ts';
import type { Slice } from '../../universal-row/bytes.ts';
import type { FieldVisitor } from '../../universal-row/rows.ts';
import { Leaf } from './leaf-directory.ts';
import { commonLength, compareFirstKey, LeafCursor } from './stream-leaf.ts';
import { cursor, scratch, scratchCurrent, StreamLeaves } from './stream-leaves.ts';

/** Cursor of a finished walk, for reuse. */
let spare: LeafCursor | undefined = new LeafCursor();

export class BigStream extends StreamLeaves {
  // Reads

  find(b: Buffer, s: number, n: number, out?: Slice): boolean {
    if (!this.seekLeaf(b, s, n)) return false;
    this.open(cursor);
    if (!cursor.seek(b, s, n)) return false;
    out?.set(cursor.b, cursor.valueAt, cursor.valueLength);
    return true;
  }

  each(from: Uint8Array, to: Uint8Array, reverse: boolean, visit: FieldVisitor): void {
    if (reverse) return this.#eachReverse(from, to, visit);
    if (!this.seekLeaf(from, 0, from.length)) return;
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
    const at = { chunk: this.at.chunk, leaf: this.at.leaf };
    this.openAt(walk, at);
    walk.seek(from, 0, from.length);
    for (;;) {
      while (walk.at < walk.end) {
        if (!isBelow(walk, to)) return;
        if (visit(walk.key, 0, walk.keyLength, walk.b, walk.valueAt, walk.valueLength)) return;
        walk.advance();
      }
      if (!this.leaves.forward(at)) return;
      this.openAt(walk, at);
      walk.advance();
    }
  }

  #eachReverse(from: Uint8Array, to: Uint8Array, visit: FieldVisitor): void {
    if (!this.seekLeaf(to, 0, to.length)) return;
    const at = { ...this.at };
    const walk = new LeafCursor();
    do {
      // A leaf is read forward only: its records below `to` are noted, then visited the other way round.
      const keys: Buffer[] = [];
      const values: number[] = [];
      this.openAt(walk, at);
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
    } while (this.leaves.backward(at));
  }

  // Writes

  /** Stores a record, replacing any existing value. */
  add(kb: Buffer, ks: number, kn: number, vb: Buffer, vs: number, vn: number): void {
    if (this.lastKeyLength >= 0) {
      const last = this.lastKey;
      const shared = commonLength(last, 0, this.lastKeyLength, kb, ks, kn);
      if (shared < kn && (shared === this.lastKeyLength || last[shared]! < kb[ks + shared]!)) {
        this.leaves.toLast(this.at);
        this.#append(shared, kb, ks, kn, vb, vs, vn);
        return;
      }
    }
    if (!this.seekLeaf(kb, ks, kn)) {
      this.newLeaf(kb, ks, kn, vb, vs, vn);
      return;
    }
    const { tail, tailLength } = this.hintOf(kb[ks]!);
    if (tailLength >= 0) {
      const shared = commonLength(tail, 0, tailLength, kb, ks, kn);
      if (shared < kn && (shared === tailLength || tail[shared]! < kb[ks + shared]!)) {
        this.#append(shared, kb, ks, kn, vb, vs, vn);
        this.noteTail(kb, ks, kn);
        return;
      }
    }
    this.open(cursor);
    if (cursor.seek(kb, ks, kn)) this.#replace(kb, ks, kn, vb, vs, vn);
    else if (cursor.at === cursor.end) {
      this.#append(cursor.sharedBefore, kb, ks, kn, vb, vs, vn);
      this.noteTail(kb, ks, kn);
    } else this.#insert(kb, ks, kn, vb, vs, vn);
  }

  set(kb: Buffer, ks: number, kn: number, vb: Buffer, vs: number, vn: number): void {
    if (!this.seekLeaf(kb, ks, kn)) return;
    this.open(cursor);
    if (cursor.seek(kb, ks, kn)) this.#replace(kb, ks, kn, vb, vs, vn);
  }

  remove(b: Buffer, s: number, n: number): boolean {
    if (!this.seekLeaf(b, s, n)) return false;
    this.open(cursor);
    if (!cursor.seek(b, s, n)) return false;
    const { at, shared } = cursor;
    cursor.advance();
    this.cut(at, 1, shared);
    return true;
  }

  /** Removes records with from <= key < to; returns how many there were. */
  removeRange(from: Uint8Array, to: Uint8Array): number {
    const before = this.count;
    while (this.seekLeaf(from, 0, from.length)) {
      this.open(cursor);
      cursor.seek(from, 0, from.length);
      if (cursor.at === cursor.end) {
        // All of this leaf is below: the next one begins at or behind `from`.
        if (!this.leaves.forward(this.at)) break;
        this.open(cursor);
        cursor.advance();
      }
      if (!isBelow(cursor, to)) break;
      if (cursor.index === 0 && this.#nextLeafStartsBy(to)) {
        this.dropLeaf();
        continue;
      }
      const { at, index } = cursor;
      let { shared } = cursor;
      while (cursor.advance() && isBelow(cursor, to)) shared = Math.min(shared, cursor.shared);
      const isEnd = cursor.at === cursor.end;
      this.cut(at, cursor.index - index, shared);
      if (!isEnd) break;
    }
    return before - this.count;
  }

  /** Whether the leaf behind the current one begins at or before the key. */
  #nextLeafStartsBy(key: Uint8Array): boolean {
    const next = { ...this.at };
    if (!this.leaves.forward(next)) return false;
    const address = this.leaves.get(next, Leaf.address);
    const b = this.arena.buffer(address);
    return compareFirstKey(b, this.arena.offset(address), key, 0, key.length) <= 0;
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
    if (this.leaves.isLast(this.at)) this.noteLast(kb, ks, kn);
    scratch.begin();
    scratch.add(shared, kb, ks, kn, vb, vs, vn);
    if (this.fits(0)) {
      const used = this.leaves.get(this.at, Leaf.used);
      this.splice(used, used, 1);
      return;
    }
    this.at.leaf++;
    this.newLeaf(kb, ks, kn, vb, vs, vn);
  }

  /** Puts a record in front of the one that the cursor has stopped at. */
  #insert(kb: Buffer, ks: number, kn: number, vb: Buffer, vs: number, vn: number): void {
    const { sharedBefore, sharedHere, index } = cursor;
    scratch.begin();
    scratch.add(sharedBefore, kb, ks, kn, vb, vs, vn);
    scratchCurrent(sharedHere);
    const start = this.startOf(cursor);
    if (this.fits(cursor.next - cursor.at)) {
      this.splice(cursor.at - start, cursor.next - start, 1);
      return;
    }
    // The record may point into this arena, and its leaf is about to change.
    const value = Buffer.from(vb.subarray(vs, vs + vn));
    const key = Buffer.from(kb.subarray(ks, ks + kn));
    if (index > 0) {
      this.split(cursor.at - start, cursor.index);
      this.#append(sharedBefore, key, 0, kn, value, 0, vn);
    } else {
      this.newLeaf(key, 0, kn, value, 0, vn);
    }
  }

  /** Replaces the value of the record that the cursor is at. */
  #replace(kb: Buffer, ks: number, kn: number, vb: Buffer, vs: number, vn: number): void {
    const start = this.startOf(cursor);
    const { at, next, index, shared } = cursor;
    scratch.begin();
    scratch.add(shared, kb, ks, kn, vb, vs, vn);
    if (this.fits(next - at) || this.leaves.get(this.at, Leaf.records) === 1) {
      this.splice(at - start, next - start, 0);
      return;
    }
    const value = Buffer.from(vb.subarray(vs, vs + vn));
    const key = Buffer.from(kb.subarray(ks, ks + kn));
    if (index > 0) {
      this.split(at - start, index);
      this.leaves.forward(this.at);
      this.open(cursor);
      cursor.advance();
    }
    // Now the first of its leaf: it is taken out and gets a leaf of its own.
    if (this.leaves.get(this.at, Leaf.records) > 1) {
      cursor.advance();
      this.cut(this.startOf(cursor), 1, 0);
      this.newLeaf(key, 0, kn, value, 0, vn);
      return;
    }
    scratch.begin();
    scratch.add(0, key, 0, kn, value, 0, vn);
    this.splice(0, this.leaves.get(this.at, Leaf.used), 0);
  }
}

function isBelow(at: LeafCursor, key: Uint8Array): boolean {
  return compareBytes(at.key, 0, at.keyLength, key, 0, key.length) < 0;
}
