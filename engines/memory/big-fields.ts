// A map or set beyond the packed size: an index of its own, each field and its value in one block.

import type { FieldVisitor, Shape } from '../../universal-row/rows.ts';
import type { Arena } from './arena.ts';
import { ByteMap } from './byte-map.ts';
import type { Collection } from './collection.ts';

export class BigFields implements Collection {
  readonly shape: Shape;
  held = false;
  dropped = false;
  readonly map: ByteMap;

  constructor(arena: Arena, shape: Shape) {
    this.shape = shape;
    this.map = new ByteMap(arena, true);
  }

  get count(): number {
    return this.map.size;
  }

  put(fb: Buffer, fs: number, fn: number, vb: Buffer, vs: number, vn: number): boolean {
    const { map } = this;
    const hash = map.hash(fb, fs, fn);
    const id = map.find(fb, fs, fn, hash);
    if (id === 0) {
      map.insert(hash, 0, fb, fs, fn, vb, vs, vn);
      return true;
    }
    // Members of a set have no value to replace.
    map.locate(id);
    if (vn !== 0 || map.valueLength !== 0) map.setValue(id, 0, vb, vs, vn);
    return false;
  }

  remove(b: Buffer, s: number, n: number): boolean {
    const id = this.map.find(b, s, n, this.map.hash(b, s, n));
    if (id === 0) return false;
    this.map.remove(id);
    return true;
  }

  each(visit: FieldVisitor): void {
    const { map } = this;
    for (let id = map.size; id > 0; id--) {
      map.locate(id);
      const b = map.b;
      if (visit(b, map.keyAt, map.keyLength, b, map.valueAt, map.valueLength)) return;
    }
  }

  /**
   * Walks ids downwards; the cursor is the next id to see. Ids are dense and a removal moves the last
   * entry into the gap, so an entry not yet seen only ever moves to an id yet to be seen.
   */
  scan(cursor: number, budget: number, visit: FieldVisitor): number {
    const { map } = this;
    let id = cursor === 0 || cursor > map.size ? map.size : cursor;
    for (let left = Math.max(1, budget); left > 0 && id > 0; left--) {
      map.locate(id--);
      const b = map.b;
      if (visit(b, map.keyAt, map.keyLength, b, map.valueAt, map.valueLength)) break;
    }
    return id;
  }

  bytes(): number {
    return this.map.blockBytes;
  }

  compact(from: number, limit: number): void {
    this.map.compact(from, limit);
  }

  get extent(): number {
    return this.map.nextId;
  }

  indexBytes(): number {
    return this.map.ownBytes();
  }

  dismantle(limit: number): boolean {
    return this.map.dismantle(limit);
  }
}
