// Dump-before-write: how a snapshot of one moment is taken while writes continue.
//
// At its moment a dump notes the highest id. It then walks the ids in the background and writes out
// each row, with a bit for each id that is done. A write first passes the dump the row it is about
// to change or remove: a row not yet written out is written out now, before the change. Rows
// created after the moment count as done. So each row is written once, in its state at that moment.
//
// The same is done one level down for the entries of a big map, set or ranked row, for the nodes of
// a big array and for the leaves of a stream, so that no write ever waits for a whole large row. Such a row's own bit is set as soon
// as its key, shape and expiry are out; its elements then belong to a dump of their own, which a
// rename does not touch, and which outlives the row if that is dropped.

import { Shape } from '../../universal-row/rows.ts';
import type { Arena } from './arena.ts';
import { eachInNode } from './array-node.ts';
import { BigArray } from './big-array.ts';
import type { NodeWatch } from './big-array.ts';
import type { BigFields } from './big-fields.ts';
import { BigRanked } from './big-ranked.ts';
import { BigStream } from './big-stream.ts';
import type { LeafWatch } from './stream-leaves.ts';
import type { ByteMap } from './byte-map.ts';
import type { EntryWatch } from './entry-blocks.ts';
import type { Collection } from './collection.ts';
import type { DumpWriter } from './dump-writer.ts';
import type { ExpiryHeap } from './expiry-heap.ts';
import { lengthBytes, readLength, readScore } from './packed.ts';
import type { Reclaimer, RetiredRows } from './reclaimer.ts';
import { LeafCursor } from './stream-leaf.ts';

/** Set in a row's kind beside its shape when the value names a collection. */
export const big = 8;
/** Bytes of a collection's number in its row's value. */
export const referenceBytes = 4;

/** Part of a snapshot that is walked in steps. */
export interface Dump {
  /** Writes out some more; false when nothing is left. */
  step(): boolean;
  /** Stops watching the table, whether the walk is complete or not. */
  end(): void;
}

const idsPerStep = 64;

/** A bit for each id below a limit. */
class IdSet {
  readonly limit: number;
  readonly #bits: Uint8Array;

  constructor(limit: number) {
    this.limit = limit;
    this.#bits = new Uint8Array((limit + 7) >>> 3);
  }

  /** Ids beyond the limit are in the set. */
  has(id: number): boolean {
    return id >= this.limit || (this.#bits[id >>> 3]! & (1 << (id & 7))) !== 0;
  }

  add(id: number): void {
    if (id < this.limit) this.#bits[id >>> 3]! |= 1 << (id & 7);
  }

  delete(id: number): void {
    if (id < this.limit) this.#bits[id >>> 3]! &= ~(1 << (id & 7));
  }
}

/** The parts of a table that a dump reads, and the field that links the table to its dump. */
interface DumpedTable {
  readonly map: ByteMap;
  readonly expiry: ExpiryHeap;
  readonly collections: (Collection | undefined)[];
  dump: TableDump | undefined;
}

export class TableDump implements Dump, EntryWatch {
  /** The rows, if the table was cleared meanwhile: they are kept until the walk is over. */
  retired: RetiredRows | undefined = undefined;

  readonly #number: number;
  readonly #table: DumpedTable;
  readonly #map: ByteMap;
  readonly #expiry: ExpiryHeap;
  readonly #collections: (Collection | undefined)[];
  readonly #out: DumpWriter;
  readonly #reclaimer: Reclaimer;
  readonly #begin: (dump: Dump) => void;
  readonly #done: IdSet;
  #next = 1;

  /** `begin` is handed the dumps of big rows, to be stepped to their ends as well. */
  constructor(
    number: number,
    table: DumpedTable,
    out: DumpWriter,
    reclaimer: Reclaimer,
    begin: (dump: Dump) => void,
  ) {
    this.#number = number;
    this.#table = table;
    this.#map = table.map;
    this.#expiry = table.expiry;
    this.#collections = table.collections;
    this.#out = out;
    this.#reclaimer = reclaimer;
    this.#begin = begin;
    this.#done = new IdSet(table.map.nextId);
    table.map.watch = this;
    table.dump = this;
  }

  created(id: number): void {
    this.#done.add(id);
  }

  beforeChange(id: number): void {
    if (this.#done.has(id)) return;
    this.#done.add(id);
    this.#dumpRow(id);
  }

  moved(): void {
    // Rows keep their ids.
  }

  step(): boolean {
    const stop = Math.min(this.#next + idsPerStep, this.#done.limit);
    for (; this.#next < stop; this.#next++) {
      if (!this.#done.has(this.#next) && this.#map.address.get(this.#next)) {
        this.beforeChange(this.#next);
      }
    }
    return this.#next < this.#done.limit;
  }

  end(): void {
    this.#map.watch = undefined;
    if (this.#table.dump === this) this.#table.dump = undefined;
    if (this.retired !== undefined) this.#reclaimer.add(this.retired);
  }

  #dumpRow(id: number): void {
    const map = this.#map;
    const { batch } = this.#out;
    map.locate(id);
    const { b, kind, keyAt, keyLength, valueAt } = map;
    const expireAt = this.#expiry.get(id);
    if (kind === Shape.value) {
      batch.value(this.#number, b, keyAt, keyLength, b, valueAt, map.valueLength, expireAt);
      this.#out.rowDone();
      return;
    }
    batch.row(this.#number, b, keyAt, keyLength);
    batch.create((kind < big ? kind : kind - big) as Shape);
    if (expireAt !== 0) batch.expire(expireAt);
    if (kind < big) {
      this.#dumpPacked(b, valueAt, kind);
      this.#out.rowDone();
      return;
    }
    const collection = this.#collections[b.readUInt32LE(valueAt)]!;
    const key = Buffer.from(b.subarray(keyAt, keyAt + keyLength));
    if (collection instanceof BigStream) {
      batch.streamState(b, valueAt + referenceBytes, map.valueLength - referenceBytes);
    }
    this.#out.rowDone();
    collection.held = true;
    this.#begin(this.#dumpOf(key, collection));
  }

  #dumpOf(key: Buffer, collection: Collection): Dump {
    const number = this.#number;
    const out = this.#out;
    const reclaimer = this.#reclaimer;
    if (collection instanceof BigArray)
      return new ArrayDump(number, key, collection, out, reclaimer);
    if (collection instanceof BigStream) {
      return new StreamDump(number, key, collection, out, reclaimer);
    }
    return new EntriesDump(number, key, collection as BigFields | BigRanked, out, reclaimer);
  }

  #dumpPacked(b: Buffer, valueAt: number, kind: number): void {
    const { batch } = this.#out;
    let p = valueAt + 1;
    for (let left = b[valueAt]!; left > 0; left--) {
      const score = kind === Shape.ranked ? readScore(b, p) : 0;
      if (kind === Shape.ranked) p += 8;
      const n = readLength(b, p);
      const s = p + lengthBytes(n);
      p = s + n;
      if (kind === Shape.array) batch.push(false, b, s, n);
      else if (kind === Shape.ranked) batch.score(score, b, s, n);
      else if (kind === Shape.set) batch.field(b, s, n, b, p, 0);
      else {
        const vn = readLength(b, p);
        const vs = p + lengthBytes(vn);
        p = vs + vn;
        batch.field(b, s, n, b, vs, vn);
      }
    }
  }
}

/** The entries of one big map, set or ranked row, from the last id down. */
class EntriesDump implements Dump, EntryWatch {
  readonly #number: number;
  readonly #key: Buffer;
  readonly #collection: BigFields | BigRanked;
  readonly #out: DumpWriter;
  readonly #reclaimer: Reclaimer;
  readonly #done: IdSet;
  #next: number;

  constructor(
    number: number,
    key: Buffer,
    collection: BigFields | BigRanked,
    out: DumpWriter,
    reclaimer: Reclaimer,
  ) {
    this.#number = number;
    this.#key = key;
    this.#collection = collection;
    this.#out = out;
    this.#reclaimer = reclaimer;
    this.#done = new IdSet(collection.map.nextId);
    this.#next = collection.map.nextId - 1;
    collection.map.watch = this;
  }

  created(id: number): void {
    this.#done.add(id);
  }

  beforeChange(id: number): void {
    if (this.#done.has(id)) return;
    this.#done.add(id);
    this.#out.continueRow(this.#number, this.#key);
    const { batch } = this.#out;
    const collection = this.#collection;
    const { map } = collection;
    map.locate(id);
    const { b } = map;
    if (collection instanceof BigRanked) {
      batch.score(collection.scoreOf(id), b, map.keyAt, map.keyLength);
    } else {
      batch.field(b, map.keyAt, map.keyLength, b, map.valueAt, map.valueLength);
    }
    this.#out.elementDone();
  }

  /** Ids only ever move down, and the walk goes down: unfinished ids stay ahead of it. */
  moved(from: number, to: number): void {
    if (this.#done.has(from)) this.#done.add(to);
    else this.#done.delete(to);
  }

  step(): boolean {
    const { map } = this.#collection;
    const stop = Math.max(0, this.#next - idsPerStep);
    for (; this.#next > stop; this.#next--) {
      if (map.address.get(this.#next)) this.beforeChange(this.#next);
    }
    return this.#next > 0;
  }

  end(): void {
    this.#collection.map.watch = undefined;
    letGo(this.#collection, this.#reclaimer);
  }
}

/** The elements of one big array, from the head on. A node that is about to change is copied first. */
class ArrayDump implements Dump, NodeWatch {
  readonly #number: number;
  readonly #key: Buffer;
  readonly #array: BigArray;
  readonly #arena: Arena;
  readonly #out: DumpWriter;
  readonly #reclaimer: Reclaimer;
  /** Block address, start and end of each node at the moment. */
  readonly #layout: Int32Array;
  /** Index of the nodes that are still as they were, by address. */
  readonly #intact = new Map<number, number>();
  readonly #copies = new Map<number, Buffer>();
  #next = 0;

  constructor(number: number, key: Buffer, array: BigArray, out: DumpWriter, reclaimer: Reclaimer) {
    this.#number = number;
    this.#key = key;
    this.#array = array;
    this.#arena = array.arena;
    this.#out = out;
    this.#reclaimer = reclaimer;
    this.#layout = array.layout();
    for (let i = 0; i < array.nodes; i++) this.#intact.set(this.#layout[3 * i]!, i);
    array.watch = this;
  }

  beforeNodeChange(address: number): void {
    const i = this.#intact.get(address);
    if (i === undefined) return;
    this.#intact.delete(address);
    const o = this.#arena.offset(address);
    const start = o + this.#layout[3 * i + 1]!;
    const end = o + this.#layout[3 * i + 2]!;
    this.#copies.set(i, Buffer.from(this.#arena.buffer(address).subarray(start, end)));
  }

  step(): boolean {
    const i = this.#next++;
    if (3 * i >= this.#layout.length) return false;
    const address = this.#layout[3 * i]!;
    const copy = this.#copies.get(i);
    if (copy !== undefined) {
      this.#copies.delete(i);
      this.#dumpNode(copy, 0, copy.length);
    } else {
      this.#intact.delete(address);
      const o = this.#arena.offset(address);
      const start = this.#layout[3 * i + 1]!;
      this.#dumpNode(this.#arena.buffer(address), o + start, o + this.#layout[3 * i + 2]!);
    }
    return true;
  }

  end(): void {
    this.#array.watch = undefined;
    letGo(this.#array, this.#reclaimer);
  }

  #dumpNode(b: Buffer, start: number, end: number): void {
    eachInNode(b, start, end, (eb, es, en) => {
      this.#out.continueRow(this.#number, this.#key);
      this.#out.batch.push(false, eb, es, en);
      this.#out.elementDone();
    });
  }
}

const leavesPerStep = 4;

/** The records of one stream. A leaf that is about to change is written out first. */
class StreamDump implements Dump, LeafWatch {
  readonly #number: number;
  readonly #key: Buffer;
  readonly #stream: BigStream;
  readonly #out: DumpWriter;
  readonly #reclaimer: Reclaimer;
  readonly #cursor = new LeafCursor();
  #next: Buffer | undefined = Buffer.alloc(0);

  constructor(
    number: number,
    key: Buffer,
    stream: BigStream,
    out: DumpWriter,
    reclaimer: Reclaimer,
  ) {
    this.#number = number;
    this.#key = key;
    this.#stream = stream;
    this.#out = out;
    this.#reclaimer = reclaimer;
    stream.beginSnapshot(this);
  }

  beforeLeafChange(b: Buffer, start: number, end: number): void {
    const cursor = this.#cursor;
    cursor.open(b, start, end);
    while (cursor.advance()) {
      this.#out.continueRow(this.#number, this.#key);
      const { key, keyLength, valueAt, valueLength } = cursor;
      this.#out.batch.streamRecord(true, key, 0, keyLength, b, valueAt, valueLength);
      this.#out.elementDone();
    }
  }

  step(): boolean {
    if (this.#next === undefined) return false;
    this.#next = this.#stream.showLeaves(this.#next, leavesPerStep);
    return this.#next !== undefined;
  }

  end(): void {
    this.#stream.endSnapshot();
    letGo(this.#stream, this.#reclaimer);
  }
}

function letGo(collection: Collection, reclaimer: Reclaimer): void {
  collection.held = false;
  if (collection.dropped) reclaimer.addCollection(collection);
}
