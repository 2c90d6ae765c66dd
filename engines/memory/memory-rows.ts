// The rows of one table. A row is an entry of a `ByteMap`: its id is the row handle, its block
// holds key and value. The kind byte says the shape, and whether the value is the container itself,
// packed, or the number (u32) of a big collection. A packed container that outgrows its block
// becomes big and stays so. A stream is big from the start; its state follows the number.
// `MemoryTable` reads and changes the elements of containers.

import { assert } from '../../universal-row/assert.ts';
import { copyBytes, emptyBytes } from '../../universal-row/bytes.ts';
import type { Slice } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import type { FieldVisitor, Row } from '../../universal-row/rows.ts';
import type { Arena } from './arena.ts';
import { BigArray } from './big-array.ts';
import { BigFields } from './big-fields.ts';
import { BigRanked } from './big-ranked.ts';
import { BigStream } from './big-stream.ts';
import { ByteMap } from './byte-map.ts';
import type { Collection } from './collection.ts';
import { ExpiryHeap } from './expiry-heap.ts';
import {
  emptyPacked,
  lengthBytes,
  maxPackedBytes,
  maxPackedElements,
  readLength,
  readScore,
} from './packed.ts';
import { RetiredRows } from './reclaimer.ts';
import type { Reclaimer } from './reclaimer.ts';
import { big, referenceBytes, type TableDump } from './table-dump.ts';

const shapeMask = 7;

/** A row's share of the index and its columns, about. */
const indexBytesPerRow = 24;
const expiryBytesPerRow = 16;
/** Ids not in use that a scan may pass for each row it owes. */
const gapsPerRow = 32;

const reference = Buffer.alloc(referenceBytes);

export class MemoryRows {
  map: ByteMap;
  expiry = new ExpiryHeap();
  collections: (Collection | undefined)[] = [];
  dump: TableDump | undefined = undefined;

  private readonly arena: Arena;
  private readonly reclaimer: Reclaimer;
  private freeCollections: number[] = [];
  /** Of `reserveValue`. */
  private reserved: Row = 0;

  constructor(arena: Arena, reclaimer: Reclaimer) {
    this.arena = arena;
    this.reclaimer = reclaimer;
    this.map = new ByteMap(arena, false);
  }

  find(b: Buffer, s: number, n: number): Row {
    const { map } = this;
    return map.find(b, s, n, map.hash(b, s, n));
  }

  rowCount(): number {
    return this.map.size;
  }

  key(row: Row, out: Slice): void {
    this.map.locate(row);
    out.set(this.map.b, this.map.keyAt, this.map.keyLength);
  }

  shape(row: Row): Shape {
    if (!this.map.address.get(row)) return Shape.none;
    return (this.map.kindOf(row) & shapeMask) as Shape;
  }

  count(row: Row): number {
    const { map } = this;
    if (!map.address.get(row)) return 0;
    map.locate(row);
    if (map.kind === Shape.value) return map.valueLength;
    if (map.kind < big) return map.b[map.valueAt]!;
    return this.located().count;
  }

  expireAt(row: Row): number {
    return this.expiry.get(row);
  }

  footprint(row: Row): number {
    const { map } = this;
    if (!map.address.get(row)) return 0;
    let bytes = map.blockCapacity(row) + indexBytesPerRow;
    if (this.expiry.get(row) !== 0) bytes += expiryBytesPerRow;
    map.locate(row);
    if (map.kind < big) return bytes;
    const collection = this.located();
    return bytes + collection.bytes() + collection.indexBytes();
  }

  /**
   * Walks row ids upwards. A row keeps its id until it is deleted, so it is visited exactly once.
   */
  scan(cursor: number, budget: number, visit: (row: Row) => void): number {
    let id = cursor === 0 ? 1 : cursor;
    let rows = Math.max(1, budget);
    for (let steps = rows * gapsPerRow; steps > 0 && rows > 0; steps--) {
      if (id >= this.map.nextId) return 0;
      if (this.map.address.get(id) !== 0) {
        rows--;
        visit(id);
      }
      id++;
    }
    return id >= this.map.nextId ? 0 : id;
  }

  anyRow(random: number): Row {
    return this.map.any(random);
  }

  storedBytes(): number {
    let bytes = this.map.blockBytes;
    for (const collection of this.collections)
      if (collection !== undefined) bytes += collection.bytes();
    return bytes;
  }

  get expiringRows(): number {
    return this.expiry.size;
  }

  anyExpiring(random: number): Row {
    return this.expiry.any(random);
  }

  expired(now: number, limit: number, visit: (row: Row) => void): void {
    this.expiry.due(now, limit, visit);
  }

  putValue(
    b: Buffer,
    s: number,
    n: number,
    vb: Buffer,
    vs: number,
    vn: number,
    expireAt: number,
  ): Row {
    const { map } = this;
    const hash = map.hash(b, s, n);
    let row = map.find(b, s, n, hash);
    if (row === 0) {
      row = map.insert(hash, Shape.value, b, s, n, vb, vs, vn);
    } else {
      if (map.kindOf(row) >= big) this.detach(row);
      map.setValue(row, Shape.value, vb, vs, vn);
    }
    if (expireAt !== 0 || this.expiry.size !== 0) this.expiry.set(row, expireAt);
    return row;
  }

  reserveValue(b: Buffer, s: number, n: number, bytes: number, expireAt: number): Row {
    // None of its bytes are copied.
    this.reserved = this.putValue(b, s, n, emptyBytes, 0, bytes, expireAt);
    return this.reserved;
  }

  fillValue(offset: number, vb: Buffer, vs: number, vn: number): void {
    const { map } = this;
    map.locate(this.reserved);
    assert(offset + vn <= map.valueLength, 'a value is filled within its size');
    copyBytes(map.b, map.valueAt + offset, vb, vs, vn);
  }

  value(row: Row, out: Slice): void {
    this.map.locate(row);
    out.set(this.map.b, this.map.valueAt, this.map.valueLength);
  }

  patchValue(row: Row, offset: number, vb: Buffer, vs: number, vn: number): void {
    const { map } = this;
    map.locate(row);
    const length = map.valueLength;
    const end = offset + vn;
    if (end <= length) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      if (vb === map.b) map.b.copyWithin(map.valueAt + offset, vs, vs + vn);
      else copyBytes(map.b, map.valueAt + offset, vb, vs, vn);
      return;
    }
    let from = vb;
    if (vb === map.b) {
      from = Buffer.from(vb.subarray(vs, vs + vn));
      vs = 0;
    }
    map.splice(row, length, 0, end - length);
    if (offset > length) map.b.fill(0, map.valueAt + length, map.valueAt + offset);
    copyBytes(map.b, map.valueAt + offset, from, vs, vn);
  }

  create(b: Buffer, s: number, n: number, shape: Shape): Row {
    if (shape === Shape.value) return this.putValue(b, s, n, emptyBytes, 0, 0, 0);
    const { map } = this;
    const hash = map.hash(b, s, n);
    const row = map.find(b, s, n, hash);
    let kind: number = shape;
    let value = emptyPacked;
    if (shape >= Shape.stream) {
      this.refer(new BigStream(this.arena, shape));
      kind = shape | big;
      value = reference;
    }
    if (row === 0) return map.insert(hash, kind, b, s, n, value, 0, value.length);
    if (map.kindOf(row) >= big) this.detach(row);
    if (map.watch !== undefined) map.watch.beforeChange(row);
    this.expiry.set(row, 0);
    map.setValue(row, kind, value, 0, value.length);
    return row;
  }

  /** Gives the collection a number, and puts that in `reference`. */
  protected refer(collection: Collection): void {
    const index = this.freeCollections.pop() ?? this.collections.length;
    this.collections[index] = collection;
    reference.writeUInt32LE(index);
  }

  drop(row: Row): void {
    const { map } = this;
    if (map.watch !== undefined) map.watch.beforeChange(row);
    if (map.kindOf(row) >= big) this.detach(row);
    if (this.expiry.size !== 0) this.expiry.set(row, 0);
    map.remove(row);
  }

  setExpireAt(row: Row, expireAt: number): void {
    if (this.map.watch !== undefined) this.map.watch.beforeChange(row);
    this.expiry.set(row, expireAt);
  }

  rename(row: Row, b: Buffer, s: number, n: number): Row {
    const { map } = this;
    const there = map.find(b, s, n, map.hash(b, s, n));
    if (there === row) return row;
    // The key may be a view of the row that goes.
    const key = there === 0 ? b : Buffer.from(b.subarray(s, s + n));
    if (there !== 0) this.drop(there);
    map.rekey(row, key, key === b ? s : 0, n);
    return row;
  }

  clear(): void {
    if (this.map.size === 0) return;
    const retired = new RetiredRows(this.map, this.collections, this.reclaimer);
    if (this.dump !== undefined) this.dump.retired = retired;
    else this.reclaimer.add(retired);
    this.map = new ByteMap(this.arena, false);
    this.expiry = new ExpiryHeap();
    this.collections = [];
    this.freeCollections = [];
    this.dump = undefined;
  }

  // Collections

  /** The collection of the located big row. */
  protected located(): Collection {
    return this.collections[this.map.b.readUInt32LE(this.map.valueAt)]!;
  }

  protected collection(row: Row): Collection {
    this.map.locate(row);
    return this.located();
  }

  /** Takes a big row's collection away from it, to be freed later. The row must get a value or go. */
  protected detach(row: Row): void {
    const { map } = this;
    if (map.watch !== undefined) map.watch.beforeChange(row);
    map.locate(row);
    const index = map.b.readUInt32LE(map.valueAt);
    this.reclaimer.addCollection(this.collections[index]!);
    this.collections[index] = undefined;
    this.freeCollections.push(index);
  }

  /** Whether the located packed row is too small for another element of that many bytes. */
  protected outgrows(added: number): boolean {
    const { map } = this;
    return map.b[map.valueAt]! >= maxPackedElements || map.valueLength + added > maxPackedBytes;
  }

  /** Makes a packed row big. Bytes the caller holds stay where they are until it writes them. */
  protected enlarge(row: Row): Collection {
    const { map } = this;
    map.locate(row);
    const shape = map.kind as Shape;
    const { b, valueAt } = map;
    let collection: Collection;
    let p = valueAt + 1;
    const count = b[valueAt]!;
    if (shape === Shape.array) {
      const array = new BigArray(this.arena);
      for (let i = 0; i < count; i++) {
        const length = readLength(b, p);
        p += lengthBytes(length);
        array.push(false, b, p, length);
        p += length;
      }
      collection = array;
    } else if (shape === Shape.ranked) {
      const ranked = new BigRanked(this.arena);
      for (let i = 0; i < count; i++) {
        const length = readLength(b, p + 8);
        const at = p + 8 + lengthBytes(length);
        ranked.put(b, at, length, readScore(b, p));
        p = at + length;
      }
      collection = ranked;
    } else {
      const fields = new BigFields(this.arena, shape);
      map.locate(row);
      this.eachPacked((fb, fs, fn, vb, vs, vn) => {
        fields.put(fb, fs, fn, vb, vs, vn);
      });
      collection = fields;
    }
    this.refer(collection);
    map.setValue(row, shape | big, reference, 0, referenceBytes);
    return collection;
  }

  /** Walks the located packed map, set or ranked row. */
  protected eachPacked(visit: FieldVisitor): void {
    const { b, valueAt, kind } = this.map;
    let p = valueAt + 1;
    for (let left = b[valueAt]!; left > 0; left--) {
      if (kind === Shape.ranked) p += 8;
      const fn = readLength(b, p);
      const fs = p + lengthBytes(fn);
      p = fs + fn;
      if (kind !== Shape.map) {
        if (visit(b, fs, fn, emptyBytes, 0, 0)) return;
        continue;
      }
      const vn = readLength(b, p);
      const vs = p + lengthBytes(vn);
      p = vs + vn;
      if (visit(b, fs, fn, b, vs, vn)) return;
    }
  }
}
