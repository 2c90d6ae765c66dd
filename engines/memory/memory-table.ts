// The containers of a table's rows: maps, sets, ranked rows, arrays and streams, packed or big.

import { copyBytes, emptyBytes } from '../../universal-row/bytes.ts';
import type { Slice } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import type { BytesVisitor, FieldVisitor, Row } from '../../universal-row/rows.ts';
import type { RowTable } from '../engine.ts';
import type { BigArray } from './big-array.ts';
import { BigFields } from './big-fields.ts';
import { BigRanked } from './big-ranked.ts';
import type { BigStream } from './big-stream.ts';
import {
  findPacked,
  insertPacked,
  insertPackedPair,
  lengthBytes,
  maxPackedBytes,
  packedPlaces,
  readLength,
  removePacked,
  replacePacked,
  seekPacked,
  setPart,
  skip,
} from './packed.ts';
import { RankedRows } from './ranked-rows.ts';
import { big, referenceBytes } from './table-dump.ts';

export class MemoryTable extends RankedRows implements RowTable {
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
    const fields = (this.located() as BigFields | BigRanked).map;
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
      const collection = this.located() as BigFields | BigRanked;
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
      this.eachPacked(visit);
      return;
    }
    const collection = this.located();
    if (collection instanceof BigFields) collection.each(visit);
    else (collection as BigRanked).scan(0, collection.count, visit);
  }

  /** A packed row is walked whole, and the walk of a big one begins after it became big. */
  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number {
    const { map } = this;
    if (!map.address.get(row)) return 0;
    map.locate(row);
    if (map.kind < big) {
      this.eachPacked(visit);
      return 0;
    }
    return (this.located() as BigFields | BigRanked).scan(cursor, budget, visit);
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
      return (this.collection(row) as BigFields).put(fb, fs, fn, vb, vs, vn);
    }
    const isMap = kind === Shape.map;
    const p = findPacked(map, 0, isMap ? 1 : 0, fb, fs, fn);
    if (p >= 0) {
      if (isMap) this.#replaceField(row, p, fb, fs, fn, vb, vs, vn);
      return false;
    }
    const added = fn + (isMap ? vn + lengthBytes(vn) : 0) + lengthBytes(fn);
    if (this.outgrows(added)) {
      (this.enlarge(row) as BigFields).put(fb, fs, fn, vb, vs, isMap ? vn : 0);
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
    const collection = this.collection(row) as BigFields | BigRanked;
    if (!collection.remove(b, s, n)) return false;
    if (collection.count === 0) this.drop(row);
    return true;
  }

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
      (this.enlarge(row) as BigFields).put(fb, fs, fn, vb, vs, vn);
    } else {
      replacePacked(map, row, q, vb, vs, vn);
    }
  }

  // Arrays

  element(row: Row, index: number, out: Slice): boolean {
    const { map } = this;
    if (!map.address.get(row)) return false;
    map.locate(row);
    if (map.kind >= big) return (this.located() as BigArray).element(index, out);
    if (index < 0 || index >= map.b[map.valueAt]!) return false;
    setPart(out, map.b, seekPacked(map, 0, 1, index));
    return true;
  }

  eachElement(row: Row, from: number, count: number, reverse: boolean, visit: BytesVisitor): void {
    const { map } = this;
    if (!map.address.get(row)) return;
    map.locate(row);
    if (map.kind >= big) {
      (this.located() as BigArray).each(from, count, reverse, visit);
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
      (this.collection(row) as BigArray).push(atHead, b, s, n);
    } else if (this.outgrows(n + lengthBytes(n))) {
      (this.enlarge(row) as BigArray).push(atHead, b, s, n);
    } else {
      insertPacked(map, row, map.valueAt + (atHead ? 1 : map.valueLength), b, s, n);
    }
  }

  pop(row: Row, atHead: boolean): void {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      const array = this.collection(row) as BigArray;
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
      (this.collection(row) as BigArray).set(index, b, s, n);
      return;
    }
    const p = seekPacked(map, 0, 1, index);
    const old = readLength(map.b, p);
    if (map.valueLength + n - old + 1 > maxPackedBytes) {
      (this.enlarge(row) as BigArray).set(index, b, s, n);
    } else {
      replacePacked(map, row, p, b, s, n);
    }
  }

  insertElement(row: Row, index: number, b: Buffer, s: number, n: number): void {
    const { map } = this;
    map.locate(row);
    if (map.kind >= big) {
      if (map.watch !== undefined) map.watch.beforeChange(row);
      (this.collection(row) as BigArray).insert(index, b, s, n);
    } else if (this.outgrows(n + lengthBytes(n))) {
      (this.enlarge(row) as BigArray).insert(index, b, s, n);
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
      (this.collection(row) as BigArray).remove(index, removed);
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
    return this.collection(row) as BigStream;
  }

  /** The stream, its row shown to a snapshot first. */
  #changing(row: Row): BigStream {
    const { watch } = this.map;
    if (watch !== undefined) watch.beforeChange(row);
    return this.#stream(row);
  }
}
