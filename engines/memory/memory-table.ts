// The rows of one table. A row is an entry of a `ByteMap`: its id is the row handle, its block holds
// key and value. The kind byte says the shape, and whether the value is the container itself, packed,
// or the number (u32) of a big collection. A packed container that outgrows its block becomes big and
// stays so. A stream is big from the start; its state follows the number.

import { copyBytes, emptyBytes } from '../../universal-row/bytes.ts';
import type { Slice } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import type {
  BytesVisitor,
  FieldVisitor,
  LexRange,
  RankedVisitor,
  Row,
  ScoreRange,
} from '../../universal-row/rows.ts';
import type { RowTable } from '../engine.ts';
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
  findPacked,
  insertPacked,
  insertPackedPair,
  insertPackedRanked,
  lengthBytes,
  maxPackedBytes,
  maxPackedElements,
  movePackedRanked,
  packedRankOfBytes,
  packedRankOfScore,
  readLength,
  readScore,
  removePacked,
  replacePacked,
  seekPacked,
  skip,
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

export class MemoryTable implements RowTable {
  map: ByteMap;
  expiry = new ExpiryHeap();
  collections: (Collection | undefined)[] = [];
  dump: TableDump | undefined = undefined;

  private readonly arena: Arena;
  private readonly reclaimer: Reclaimer;
  private freeCollections: number[] = [];

  constructor(arena: Arena, reclaimer: Reclaimer) {
    this.arena = arena;
    this.reclaimer = reclaimer;
    this.map = new ByteMap(arena, false);
  }

  // Rows

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
    return this.#located().count;
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
    const collection = this.#located();
    return bytes + collection.bytes() + collection.indexBytes();
  }

  /** Walks row ids upwards. A row keeps its id while it lives, so it is seen exactly once. */
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
      if (map.kindOf(row) >= big) this.#detach(row);
      map.setValue(row, Shape.value, vb, vs, vn);
    }
    if (expireAt !== 0 || this.expiry.size !== 0) this.expiry.set(row, expireAt);
    return row;
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
      this.#refer(new BigStream(this.arena, shape));
      kind = shape | big;
      value = reference;
    }
    if (row === 0) return map.insert(hash, kind, b, s, n, value, 0, value.length);
    if (map.kindOf(row) >= big) this.#detach(row);
    if (map.watch !== undefined) map.watch.beforeChange(row);
    this.expiry.set(row, 0);
    map.setValue(row, kind, value, 0, value.length);
    return row;
  }

  /** Gives the collection a number, and puts that in `reference`. */
  #refer(collection: Collection): void {
    const index = this.freeCollections.pop() ?? this.collections.length;
    this.collections[index] = collection;
    reference.writeUInt32LE(index);
  }

  drop(row: Row): void {
    const { map } = this;
    if (map.watch !== undefined) map.watch.beforeChange(row);
    if (map.kindOf(row) >= big) this.#detach(row);
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

  // Maps and sets

  field(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    const { map } = this;
    map.locate(row);
    const kind = map.kind;
    if (kind < big) {
      const p = findPacked(map, kind === Shape.ranked ? 8 : 0, kind === Shape.map ? 1 : 0, b, s, n);
      if (p < 0) return false;
      if (out !== undefined) {
        if (kind === Shape.map) setPart(out, map.b, skip(map.b, p));
        else out.set(emptyBytes, 0, 0);
      }
      return true;
    }
    const fields = (this.#located() as BigFields | BigRanked).map;
    const id = fields.find(b, s, n, fields.hash(b, s, n));
    if (id === 0) return false;
    if (out !== undefined) {
      fields.locate(id);
      out.set(fields.b, fields.valueAt, fields.valueLength);
    }
    return true;
  }

  fieldAt(row: Row, index: number, field: Slice, value: Slice): void {
    const { map } = this;
    map.locate(row);
    const kind = map.kind;
    if (kind >= big) {
      const collection = this.#located() as BigFields | BigRanked;
      const id = collection instanceof BigRanked ? collection.idAtRank(index) : index + 1;
      const fields = collection.map;
      fields.locate(id);
      field.set(fields.b, fields.keyAt, fields.keyLength);
      value.set(fields.b, fields.valueAt, fields.valueLength);
      return;
    }
    const before = kind === Shape.ranked ? 8 : 0;
    const p = seekPacked(map, before, kind === Shape.map ? 2 : 1, index) + before;
    setPart(field, map.b, p);
    if (kind === Shape.map) setPart(value, map.b, skip(map.b, p));
    else value.set(emptyBytes, 0, 0);
  }

  eachField(row: Row, visit: FieldVisitor): void {
    const { map } = this;
    if (!map.address.get(row)) return;
    map.locate(row);
    if (map.kind < big) {
      this.#eachPacked(visit);
      return;
    }
    const collection = this.#located();
    if (collection instanceof BigFields) collection.each(visit);
    else (collection as BigRanked).scan(0, collection.count, visit);
  }

  /** A packed row is walked whole, and the walk of a big one begins after it became big. */
  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number {
    const { map } = this;
    if (!map.address.get(row)) return 0;
    map.locate(row);
    if (map.kind < big) {
      this.#eachPacked(visit);
      return 0;
    }
    return (this.#located() as BigFields | BigRanked).scan(cursor, budget, visit);
  }

  putField(
    row: Row,
    fb: Buffer,
    fs: number,
    fn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): boolean {
    const { map } = this;
    map.locate(row);
    const kind = map.kind;
    if (kind >= big) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      return (this.#collection(row) as BigFields).put(fb, fs, fn, vb, vs, vn);
    }
    const isMap = kind === Shape.map;
    const p = findPacked(map, 0, isMap ? 1 : 0, fb, fs, fn);
    if (p >= 0) {
      if (isMap) this.#replaceField(row, p, fb, fs, fn, vb, vs, vn);
      return false;
    }
    const added = fn + (isMap ? vn + lengthBytes(vn) : 0) + lengthBytes(fn);
    if (this.#outgrows(added)) {
      (this.#enlarge(row) as BigFields).put(fb, fs, fn, vb, vs, isMap ? vn : 0);
    } else {
      const end = map.valueAt + map.valueLength;
      if (isMap) insertPackedPair(map, row, end, fb, fs, fn, vb, vs, vn);
      else insertPacked(map, row, end, fb, fs, fn);
    }
    return true;
  }

  removeField(row: Row, b: Buffer, s: number, n: number): boolean {
    const { map } = this;
    map.locate(row);
    const kind = map.kind;
    if (kind < big) {
      const before = kind === Shape.ranked ? 8 : 0;
      const p = findPacked(map, before, kind === Shape.map ? 1 : 0, b, s, n);
      if (p < 0) return false;
      if (map.b[map.valueAt] === 1) {
        this.drop(row);
        return true;
      }
      let end = skip(map.b, p + before);
      if (kind === Shape.map) end = skip(map.b, end);
      removePacked(map, row, p, end, 1);
      return true;
    }
    if (map.watch !== undefined) map.watch.beforeChange(row);
    const collection = this.#collection(row) as BigFields | BigRanked;
    if (!collection.remove(b, s, n)) return false;
    if (collection.count === 0) this.drop(row);
    return true;
  }

  // Ranked rows

  score(row: Row, b: Buffer, s: number, n: number): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.#located() as BigRanked).score(b, s, n);
    const p = findPacked(map, 8, 0, b, s, n);
    return p < 0 ? NaN : readScore(map.b, p);
  }

  rank(row: Row, b: Buffer, s: number, n: number): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.#located() as BigRanked).rank(b, s, n);
    const found = findPacked(map, 8, 0, b, s, n);
    if (found < 0) return -1;
    let rank = 0;
    for (let p = map.valueAt + 1; p < found; rank++) p = skip(map.b, p + 8);
    return rank;
  }

  putScore(row: Row, b: Buffer, s: number, n: number, score: number): boolean {
    const { map } = this;
    // Minus zero would not compare equal to zero byte for byte.
    score += 0;
    map.locate(row);
    if (map.kind >= big) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      return (this.#collection(row) as BigRanked).put(b, s, n, score);
    }
    const p = findPacked(map, 8, 0, b, s, n);
    if (p >= 0) {
      if (readScore(map.b, p) === score) return false;
      movePackedRanked(map, row, p, score);
      return false;
    }
    if (this.#outgrows(8 + n + lengthBytes(n))) {
      (this.#enlarge(row) as BigRanked).put(b, s, n, score);
    } else {
      insertPackedRanked(map, row, b, s, n, score);
    }
    return true;
  }

  eachByRank(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    const size = this.count(row);
    if (from < 0 || from >= size) return;
    this.#walkRanks(row, reverse ? size - 1 - from : from, count, reverse, visit);
  }

  eachByScore(
    row: Row,
    range: ScoreRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const low = this.#rankOfMin(row, range);
    const high = this.#rankOfMax(row, range);
    this.#walkRange(row, low, high, reverse, offset, limit, visit);
  }

  countByScore(row: Row, range: ScoreRange): number {
    return Math.max(0, this.#rankOfMax(row, range) - this.#rankOfMin(row, range));
  }

  eachByLex(
    row: Row,
    range: LexRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const low = this.#rankOfLexMin(row, range);
    const high = this.#rankOfLexMax(row, range);
    this.#walkRange(row, low, high, reverse, offset, limit, visit);
  }

  countByLex(row: Row, range: LexRange): number {
    return Math.max(0, this.#rankOfLexMax(row, range) - this.#rankOfLexMin(row, range));
  }

  // Arrays

  element(row: Row, index: number, out: Slice): boolean {
    const { map } = this;
    if (!map.address.get(row)) return false;
    map.locate(row);
    if (map.kind >= big) return (this.#located() as BigArray).element(index, out);
    if (index < 0 || index >= map.b[map.valueAt]!) return false;
    setPart(out, map.b, seekPacked(map, 0, 1, index));
    return true;
  }

  eachElement(row: Row, from: number, count: number, reverse: boolean, visit: BytesVisitor): void {
    const { map } = this;
    if (!map.address.get(row)) return;
    map.locate(row);
    if (map.kind >= big) {
      (this.#located() as BigArray).each(from, count, reverse, visit);
      return;
    }
    const { b, valueAt } = map;
    const size = b[valueAt]!;
    if (from < 0 || from >= size || count <= 0) return;
    if (reverse) {
      const places = packedPlaces(b, valueAt, from + 1, 0);
      for (let i = from; i >= 0 && i > from - count; i--) {
        const length = readLength(b, places[i]!);
        if (visit(b, places[i]! + lengthBytes(length), length)) return;
      }
      return;
    }
    let p = seekPacked(map, 0, 1, from);
    for (let left = Math.min(count, size - from); left > 0; left--) {
      const length = readLength(b, p);
      p += lengthBytes(length);
      if (visit(b, p, length)) return;
      p += length;
    }
  }

  push(row: Row, atHead: boolean, b: Buffer, s: number, n: number): void {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      (this.#collection(row) as BigArray).push(atHead, b, s, n);
    } else if (this.#outgrows(n + lengthBytes(n))) {
      (this.#enlarge(row) as BigArray).push(atHead, b, s, n);
    } else {
      insertPacked(map, row, map.valueAt + (atHead ? 1 : map.valueLength), b, s, n);
    }
  }

  pop(row: Row, atHead: boolean): void {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      const array = this.#collection(row) as BigArray;
      array.pop(atHead);
      if (array.count === 0) this.drop(row);
      return;
    }
    const count = map.b[map.valueAt]!;
    if (count === 1) {
      this.drop(row);
      return;
    }
    const p = seekPacked(map, 0, 1, atHead ? 0 : count - 1);
    removePacked(map, row, p, skip(map.b, p), 1);
  }

  setElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      (this.#collection(row) as BigArray).set(index, b, s, n);
      return;
    }
    const p = seekPacked(map, 0, 1, index);
    const old = readLength(map.b, p);
    if (map.valueLength + n - old + 1 > maxPackedBytes) {
      (this.#enlarge(row) as BigArray).set(index, b, s, n);
    } else {
      replacePacked(map, row, p, b, s, n);
    }
  }

  insertElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      (this.#collection(row) as BigArray).insert(index, b, s, n);
    } else if (this.#outgrows(n + lengthBytes(n))) {
      (this.#enlarge(row) as BigArray).insert(index, b, s, n);
    } else {
      insertPacked(map, row, seekPacked(map, 0, 1, index), b, s, n);
    }
  }

  removeElements(row: Row, index: number, count: number): void {
    const { map } = this;
    const size = this.count(row);
    const removed = Math.min(count, size - index);
    if (removed <= 0 || index < 0) return;
    if (removed === size) {
      this.drop(row);
      return;
    }
    map.locate(row);
    if (map.kind >= big) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      (this.#collection(row) as BigArray).remove(index, removed);
      return;
    }
    const p = seekPacked(map, 0, 1, index);
    let end = p;
    for (let i = 0; i < removed; i++) end = skip(map.b, end);
    removePacked(map, row, p, end, removed);
  }

  // Streams

  streamState(row: Row, out: Slice): void {
    const { map } = this;
    map.locate(row);
    out.set(map.b, map.valueAt + referenceBytes, map.valueLength - referenceBytes);
  }

  setStreamState(row: Row, b: Buffer, s: number, n: number): void {
    const { map } = this;
    map.locate(row);
    const old = map.valueLength - referenceBytes;
    if (old !== n) {
      const from = b === map.b ? Buffer.from(b.subarray(s, s + n)) : b;
      map.splice(row, referenceBytes, old, n);
      map.locate(row);
      copyBytes(map.b, map.valueAt + referenceBytes, from, from === b ? s : 0, n);
      return;
    }
    if (map.watch !== undefined) map.watch.beforeChange(row);
    if (b === map.b) b.copyWithin(map.valueAt + referenceBytes, s, s + n);
    else copyBytes(map.b, map.valueAt + referenceBytes, b, s, n);
  }

  streamRecord(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean {
    return this.#stream(row).find(b, s, n, out);
  }

  eachStreamRecord(
    row: Row,
    from: Buffer,
    to: Buffer,
    reverse: boolean,
    _want: number,
    visit: FieldVisitor,
  ): void {
    this.#stream(row).each(from, to, reverse, visit);
  }

  addStreamRecord(
    row: Row,
    kb: Buffer,
    ks: number,
    kn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void {
    this.#changing(row).add(kb, ks, kn, vb, vs, vn);
  }

  setStreamRecord(
    row: Row,
    kb: Buffer,
    ks: number,
    kn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void {
    this.#changing(row).set(kb, ks, kn, vb, vs, vn);
  }

  removeStreamRecord(row: Row, b: Buffer, s: number, n: number): boolean {
    return this.#changing(row).remove(b, s, n);
  }

  removeStreamRecords(row: Row, from: Buffer, to: Buffer): number {
    return this.#changing(row).removeRange(from, to);
  }

  #stream(row: Row): BigStream {
    return this.#collection(row) as BigStream;
  }

  /** The stream, its row shown to a snapshot first. */
  #changing(row: Row): BigStream {
    const { watch } = this.map;
    if (watch !== undefined) watch.beforeChange(row);
    return this.#stream(row);
  }

  // Collections

  /** The collection of the located big row. */
  #located(): Collection {
    return this.collections[this.map.b.readUInt32LE(this.map.valueAt)]!;
  }

  #collection(row: Row): Collection {
    this.map.locate(row);
    return this.#located();
  }

  /** Takes a big row's collection away from it, to be freed later. The row must get a value or go. */
  #detach(row: Row): void {
    const { map } = this;
    if (map.watch !== undefined) map.watch.beforeChange(row);
    map.locate(row);
    const index = map.b.readUInt32LE(map.valueAt);
    this.reclaimer.addCollection(this.collections[index]!);
    this.collections[index] = undefined;
    this.freeCollections.push(index);
  }

  /** Whether the located packed row is too small for another element of that many bytes. */
  #outgrows(added: number): boolean {
    const { map } = this;
    return map.b[map.valueAt]! >= maxPackedElements || map.valueLength + added > maxPackedBytes;
  }

  /** Makes a packed row big. Bytes the caller holds stay where they are until it writes them. */
  #enlarge(row: Row): Collection {
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
      this.#eachPacked((fb, fs, fn, vb, vs, vn) => {
        fields.put(fb, fs, fn, vb, vs, vn);
      });
      collection = fields;
    }
    this.#refer(collection);
    map.setValue(row, shape | big, reference, 0, referenceBytes);
    return collection;
  }

  // Packed rows

  #replaceField(
    row: Row,
    p: number,
    fb: Buffer,
    fs: number,
    fn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void {
    const { map } = this;
    const q = skip(map.b, p);
    const old = readLength(map.b, q);
    if (old === vn) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      const at = q + lengthBytes(old);
      if (vb === map.b) vb.copyWithin(at, vs, vs + vn);
      else copyBytes(map.b, at, vb, vs, vn);
    } else if (map.valueLength + vn - old + 1 > maxPackedBytes) {
      (this.#enlarge(row) as BigFields).put(fb, fs, fn, vb, vs, vn);
    } else {
      replacePacked(map, row, q, vb, vs, vn);
    }
  }

  /** Walks the located packed map, set or ranked row. */
  #eachPacked(visit: FieldVisitor): void {
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

  #rankOfMin(row: Row, range: ScoreRange): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.#located() as BigRanked).rankOfMin(range);
    return packedRankOfScore(map, range.min, range.minExclusive);
  }

  #rankOfMax(row: Row, range: ScoreRange): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.#located() as BigRanked).rankOfMax(range);
    return packedRankOfScore(map, range.max, !range.maxExclusive);
  }

  #rankOfLexMin(row: Row, range: LexRange): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.#located() as BigRanked).rankOfLexMin(range);
    return range.min === undefined ? 0 : packedRankOfBytes(map, range.min, range.minExclusive);
  }

  #rankOfLexMax(row: Row, range: LexRange): number {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) return (this.#located() as BigRanked).rankOfLexMax(range);
    if (range.max === undefined) return map.b[map.valueAt]!;
    return packedRankOfBytes(map, range.max, !range.maxExclusive);
  }

  /** Walks within the ranks [low, high). A negative `limit` is none. */
  #walkRange(
    row: Row,
    low: number,
    high: number,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void {
    const available = high - low - offset;
    if (offset < 0 || available <= 0) return;
    const count = limit < 0 ? available : Math.min(limit, available);
    this.#walkRanks(row, reverse ? high - 1 - offset : low + offset, count, reverse, visit);
  }

  /** Walks from an ascending rank. */
  #walkRanks(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) {
      (this.#located() as BigRanked).walk(from, count, reverse, visit);
      return;
    }
    const { b, valueAt } = map;
    const size = b[valueAt]!;
    const places = packedPlaces(b, valueAt, size, 8);
    const step = reverse ? -1 : 1;
    for (let i = from, left = count; left > 0 && i >= 0 && i < size; i += step, left--) {
      const p = places[i]!;
      const length = readLength(b, p + 8);
      if (visit(b, p + 8 + lengthBytes(length), length, readScore(b, p))) return;
    }
  }
}

/** Where the first `count` elements of a packed array or ranked row begin. */
function packedPlaces(b: Buffer, valueAt: number, count: number, before: number): Int32Array {
  // A walk's own: a visitor may start another.
  const places = new Int32Array(count);
  for (let i = 0, p = valueAt + 1; i < count; i++) {
    places[i] = p;
    p = skip(b, p + before);
  }
  return places;
}

function setPart(out: Slice, b: Buffer, p: number): void {
  const length = readLength(b, p);
  out.set(b, p + lengthBytes(length), length);
}
