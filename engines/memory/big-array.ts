// An array beyond the packed size: nodes of about 8 KiB in a ring, so that both ends are O(1) and an
// index is found by adding up the nodes' counts from the nearer end, 4 bytes a node.
//
//   node      one arena block; elements lie in [start, end) of it, room is left at either side; array-node.ts has its bytes
//
// An element that is too large for a node has one to itself.

import { copyBytes } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import type { BytesVisitor } from '../../universal-row/rows.ts';
import type { Slice } from '../../universal-row/bytes.ts';
import type { Arena } from './arena.ts';
import {
  elementBytes,
  lengthBytes,
  readLength,
  readLengthBefore,
  writeElement,
} from './array-node.ts';
import type { Collection } from './collection.ts';

const nodeBytes = 8192;
const initialNodes = 8;

/** Told before the bytes of a node's elements are changed or given up, while a snapshot is taken. */
export interface NodeWatch {
  beforeNodeChange(address: number): void;
}

export class BigArray implements Collection {
  readonly shape: Shape = Shape.array;
  held = false;
  dropped = false;
  count = 0;
  watch: NodeWatch | undefined = undefined;
  readonly arena: Arena;

  // The ring of nodes: their columns, the first one's slot, and how many there are.
  private addresses = new Int32Array(initialNodes);
  private starts = new Int32Array(initialNodes);
  private ends = new Int32Array(initialNodes);
  private counts = new Int32Array(initialNodes);
  private first = 0;
  nodes = 0;
  private blockBytes = 0;

  // Result of `#seek`: a node's place in the ring and an element's offset in its block.
  private node = 0;
  private at = 0;

  constructor(arena: Arena) {
    this.arena = arena;
    arena.indexBytes += this.indexBytes();
  }

  push(atHead: boolean, b: Buffer, s: number, n: number): void {
    const need = n + 2 * lengthBytes(n);
    this.count++;
    let slot = atHead ? this.first : this.#slot(this.nodes - 1);
    if (this.nodes === 0 || !this.#hasRoom(slot, atHead, need)) {
      const node = atHead ? 0 : this.nodes;
      this.#insertNode(node, Math.max(need, nodeBytes));
      slot = this.#slot(node);
      if (atHead) {
        const capacity = this.arena.capacity(this.addresses[slot]!);
        this.starts[slot] = capacity;
        this.ends[slot] = capacity;
      }
    }
    const address = this.addresses[slot]!;
    let at = this.ends[slot]!;
    if (atHead) {
      at = this.starts[slot]! - need;
      this.starts[slot] = at;
    } else {
      this.ends[slot] = at + need;
    }
    this.counts[slot]!++;
    writeElement(this.arena.buffer(address), this.arena.offset(address) + at, b, s, n);
  }

  pop(atHead: boolean): void {
    const node = atHead ? 0 : this.nodes - 1;
    const slot = this.#slot(node);
    if (this.watch !== undefined) this.watch.beforeNodeChange(this.addresses[slot]!);
    this.count--;
    if (--this.counts[slot]! === 0) {
      this.#removeNodes(node, 1);
      return;
    }
    const address = this.addresses[slot]!;
    const block = this.arena.buffer(address);
    const o = this.arena.offset(address);
    if (atHead) {
      const start = this.starts[slot]!;
      this.starts[slot] = start + elementBytes(readLength(block, o + start));
    } else {
      const end = this.ends[slot]!;
      this.ends[slot] = end - elementBytes(readLengthBefore(block, o + end));
    }
  }

  element(index: number, out: Slice): boolean {
    if (index < 0 || index >= this.count) return false;
    this.#seek(index);
    const address = this.addresses[this.#slot(this.node)]!;
    const block = this.arena.buffer(address);
    const p = this.arena.offset(address) + this.at;
    const length = readLength(block, p);
    out.set(block, p + lengthBytes(length), length);
    return true;
  }

  each(from: number, count: number, reverse: boolean, visit: BytesVisitor): void {
    if (from < 0 || from >= this.count || count <= 0) return;
    this.#seek(from);
    let { node, at } = this;
    let slot = this.#slot(node);
    let left = count;
    for (;;) {
      const address = this.addresses[slot]!;
      const block = this.arena.buffer(address);
      const o = this.arena.offset(address);
      const stop = reverse ? this.starts[slot]! : this.ends[slot]!;
      for (;;) {
        const length = readLength(block, o + at);
        if (visit(block, o + at + lengthBytes(length), length) || --left === 0) return;
        if (reverse) {
          if (at === stop) break;
          at -= elementBytes(readLengthBefore(block, o + at));
        } else {
          at += elementBytes(length);
          if (at === stop) break;
        }
      }
      node += reverse ? -1 : 1;
      if (node < 0 || node === this.nodes) return;
      slot = this.#slot(node);
      at = reverse ? this.#lastIn(slot) : this.starts[slot]!;
    }
  }

  set(index: number, b: Buffer, s: number, n: number): void {
    this.#seek(index);
    const slot = this.#slot(this.node);
    const address = this.addresses[slot]!;
    const block = this.arena.buffer(address);
    const p = this.arena.offset(address) + this.at;
    const length = readLength(block, p);
    if (length === n) {
      if (this.watch !== undefined) this.watch.beforeNodeChange(address);
      if (b === block) block.copyWithin(p + lengthBytes(n), s, s + n);
      else copyBytes(block, p + lengthBytes(n), b, s, n);
      return;
    }
    const from = b === block ? Buffer.from(b.subarray(s, s + n)) : b;
    const start = from === b ? s : 0;
    // In this order the row is never without elements.
    this.insert(index, from, start, n);
    this.remove(index + 1, 1);
  }

  insert(index: number, b: Buffer, s: number, n: number): void {
    if (index === 0) return this.push(true, b, s, n);
    if (index === this.count) return this.push(false, b, s, n);
    this.#seek(index);
    const need = n + 2 * lengthBytes(n);
    const slot = this.#slot(this.node);
    if (this.at === this.starts[slot] && this.node > 0) {
      // Between two nodes: behind the one before, if it has room.
      const before = this.#slot(this.node - 1);
      if (this.#hasRoom(before, false, need)) {
        this.#append(before, b, s, n, need);
        return;
      }
    }
    const address = this.addresses[slot]!;
    const start = this.starts[slot]!;
    const end = this.ends[slot]!;
    if (address < 0 || end - start + need > nodeBytes) {
      this.#splitAndInsert(b, s, n, need);
      return;
    }
    if (this.watch !== undefined) this.watch.beforeNodeChange(address);
    const block = this.arena.buffer(address);
    const o = this.arena.offset(address);
    const from = b === block ? Buffer.from(b.subarray(s, s + n)) : b;
    const fs = from === b ? s : 0;
    let at = this.at;
    const capacity = this.arena.capacity(address);
    const headMoves = start >= need && (at - start < end - at || end + need > capacity);
    if (headMoves) {
      block.copyWithin(o + start - need, o + start, o + at);
      this.starts[slot] = start - need;
      at -= need;
    } else if (end + need <= capacity) {
      block.copyWithin(o + at + need, o + at, o + end);
      this.ends[slot] = end + need;
    } else {
      // Room on both sides that only together is enough.
      block.copyWithin(o, o + start, o + at);
      block.copyWithin(o + at - start + need, o + at, o + end);
      at -= start;
      this.starts[slot] = 0;
      this.ends[slot] = end - start + need;
    }
    writeElement(block, o + at, from, fs, n);
    this.counts[slot]!++;
    this.count++;
  }

  remove(index: number, count: number): void {
    let left = Math.min(count, this.count - index);
    if (left <= 0 || index < 0) return;
    this.count -= left;
    this.#seek(index, this.count + left);
    let { node, at } = this;
    while (left > 0) {
      const slot = this.#slot(node);
      if (this.watch !== undefined) this.watch.beforeNodeChange(this.addresses[slot]!);
      if (at === this.starts[slot] && this.counts[slot]! <= left) {
        let whole = 0;
        while (node + whole < this.nodes && this.counts[this.#slot(node + whole)]! <= left) {
          left -= this.counts[this.#slot(node + whole++)]!;
        }
        this.#removeNodes(node, whole);
      } else {
        left -= this.#removeWithin(slot, at, left);
        node++;
      }
      if (left > 0) at = this.starts[this.#slot(node)]!;
    }
    this.#mergeAround(Math.min(node, this.nodes - 1));
  }

  bytes(): number {
    return this.blockBytes;
  }

  indexBytes(): number {
    return 4 * this.addresses.byteLength;
  }

  dismantle(limit: number): boolean {
    const count = Math.min(limit, this.nodes);
    this.watch = undefined;
    this.#removeNodes(this.nodes - count, count);
    if (this.nodes > 0) return false;
    this.arena.indexBytes -= this.indexBytes();
    this.addresses = new Int32Array(0);
    return true;
  }

  compact(from: number, limit: number): void {
    const stop = Math.min(this.nodes, from + limit);
    for (let node = from; node < stop; node++) {
      const slot = this.#slot(node);
      const address = this.addresses[slot]!;
      if (this.arena.isLeaving(address)) this.addresses[slot] = this.arena.move(address);
    }
  }

  get extent(): number {
    return this.nodes;
  }

  /** Block address and bounds of the elements of each node, from which a snapshot starts. */
  layout(): Int32Array {
    const layout = new Int32Array(3 * this.nodes);
    for (let node = 0; node < this.nodes; node++) {
      const slot = this.#slot(node);
      layout[3 * node] = this.addresses[slot]!;
      layout[3 * node + 1] = this.starts[slot]!;
      layout[3 * node + 2] = this.ends[slot]!;
    }
    return layout;
  }

  #slot(node: number): number {
    return (this.first + node) & (this.addresses.length - 1);
  }

  #hasRoom(slot: number, atHead: boolean, need: number): boolean {
    if (atHead) return this.starts[slot]! >= need;
    return this.ends[slot]! + need <= this.arena.capacity(this.addresses[slot]!);
  }

  #append(slot: number, b: Buffer, s: number, n: number, need: number): void {
    const address = this.addresses[slot]!;
    const at = this.ends[slot]!;
    writeElement(this.arena.buffer(address), this.arena.offset(address) + at, b, s, n);
    this.ends[slot] = at + need;
    this.counts[slot]!++;
    this.count++;
  }

  /** Finds the element at `index`, from the nearer end; `total` is the count if it is not `count`. */
  #seek(index: number, total = this.count): void {
    let node: number;
    let left: number;
    if (index < total / 2) {
      node = 0;
      left = index;
      for (let n = this.counts[this.first]!; left >= n; n = this.counts[this.#slot(++node)]!) {
        left -= n;
      }
    } else {
      node = this.nodes;
      left = total;
      while (left > index) left -= this.counts[this.#slot(--node)]!;
      left = index - left;
    }
    const slot = this.#slot(node);
    const address = this.addresses[slot]!;
    const block = this.arena.buffer(address);
    const o = this.arena.offset(address);
    this.node = node;
    if (left < this.counts[slot]! / 2) {
      let at = this.starts[slot]!;
      for (; left > 0; left--) at += elementBytes(readLength(block, o + at));
      this.at = at;
    } else {
      let at = this.ends[slot]!;
      for (left = this.counts[slot]! - left; left > 0; left--) {
        at -= elementBytes(readLengthBefore(block, o + at));
      }
      this.at = at;
    }
  }

  #lastIn(slot: number): number {
    const address = this.addresses[slot]!;
    const end = this.ends[slot]!;
    const p = this.arena.offset(address) + end;
    return end - elementBytes(readLengthBefore(this.arena.buffer(address), p));
  }

  /** Takes up to `limit` elements from `at` on out of one node; returns how many. */
  #removeWithin(slot: number, at: number, limit: number): number {
    const address = this.addresses[slot]!;
    const block = this.arena.buffer(address);
    const o = this.arena.offset(address);
    const start = this.starts[slot]!;
    const end = this.ends[slot]!;
    let stop = at;
    let removed = 0;
    while (removed < limit && stop < end) {
      stop += elementBytes(readLength(block, o + stop));
      removed++;
    }
    if (at - start < end - stop) {
      block.copyWithin(o + start + stop - at, o + start, o + at);
      this.starts[slot] = start + stop - at;
    } else {
      block.copyWithin(o + at, o + stop, o + end);
      this.ends[slot] = end - (stop - at);
    }
    this.counts[slot]! -= removed;
    return removed;
  }

  /** Splits the found node before the found element, and inserts there. */
  #splitAndInsert(b: Buffer, s: number, n: number, need: number): void {
    const { node, at } = this;
    const slot = this.#slot(node);
    const address = this.addresses[slot]!;
    if (this.watch !== undefined) this.watch.beforeNodeChange(address);
    const start = this.starts[slot]!;
    if (at > start) {
      const end = this.ends[slot]!;
      this.#insertNode(node + 1, Math.max(end - at, nodeBytes));
      const left = this.#slot(node);
      const right = this.#slot(node + 1);
      const to = this.addresses[right]!;
      const block = this.arena.buffer(address);
      const o = this.arena.offset(address);
      // Kept at the right of its block, as elements are inserted in front.
      const rightStart = this.arena.capacity(to) - (end - at);
      block.copy(this.arena.buffer(to), this.arena.offset(to) + rightStart, o + at, o + end);
      this.starts[right] = rightStart;
      this.ends[right] = rightStart + end - at;
      let moved = 0;
      for (let p = at; p < end; moved++) p += elementBytes(readLength(block, o + p));
      this.ends[left] = at;
      this.counts[left]! -= moved;
      this.counts[right] = moved;
      if (this.#hasRoom(left, false, need)) {
        // `b` may lie in the half just moved: its bytes are still where they were.
        const from = b === block ? Buffer.from(b.subarray(s, s + n)) : b;
        this.#append(left, from, from === b ? s : 0, n, need);
        return;
      }
    }
    const place = at > start ? node + 1 : node;
    this.#insertNode(place, Math.max(need, nodeBytes));
    this.#append(this.#slot(place), b, s, n, need);
  }

  /** Makes one node of two small neighbours, so that removals do not leave crumbs. */
  #mergeAround(node: number): void {
    if (node < 0) return;
    if (node + 1 < this.nodes && this.#merge(node)) return;
    if (node > 0) this.#merge(node - 1);
  }

  #merge(node: number): boolean {
    const left = this.#slot(node);
    const right = this.#slot(node + 1);
    const leftBytes = this.ends[left]! - this.starts[left]!;
    const rightBytes = this.ends[right]! - this.starts[right]!;
    if (leftBytes + rightBytes > nodeBytes / 2 || this.addresses[left]! < 0) return false;
    if (this.watch !== undefined) {
      this.watch.beforeNodeChange(this.addresses[left]!);
      this.watch.beforeNodeChange(this.addresses[right]!);
    }
    const to = this.addresses[left]!;
    const from = this.addresses[right]!;
    const block = this.arena.buffer(to);
    const o = this.arena.offset(to);
    const start = this.starts[left]!;
    block.copyWithin(o, o + start, o + start + leftBytes);
    const other = this.arena.offset(from) + this.starts[right]!;
    this.arena.buffer(from).copy(block, o + leftBytes, other, other + rightBytes);
    this.starts[left] = 0;
    this.ends[left] = leftBytes + rightBytes;
    this.counts[left]! += this.counts[right]!;
    this.#removeNodes(node + 1, 1);
    return true;
  }

  #insertNode(node: number, capacity: number): void {
    if (this.nodes === this.addresses.length) this.#growRing();
    const address = this.arena.allocate(capacity);
    this.blockBytes += this.arena.capacity(address);
    if (node < this.nodes / 2) {
      this.first = this.#slot(-1);
      this.nodes++;
      for (let i = 0; i < node; i++) this.#moveNode(i + 1, i);
    } else {
      this.nodes++;
      for (let i = this.nodes - 1; i > node; i--) this.#moveNode(i - 1, i);
    }
    const slot = this.#slot(node);
    this.addresses[slot] = address;
    this.starts[slot] = 0;
    this.ends[slot] = 0;
    this.counts[slot] = 0;
  }

  #removeNodes(node: number, count: number): void {
    for (let i = node; i < node + count; i++) {
      const address = this.addresses[this.#slot(i)]!;
      if (this.watch !== undefined) this.watch.beforeNodeChange(address);
      this.blockBytes -= this.arena.capacity(address);
      this.arena.free(address);
    }
    if (node < this.nodes - node - count) {
      for (let i = node - 1; i >= 0; i--) this.#moveNode(i, i + count);
      this.first = this.#slot(count);
    } else {
      for (let i = node + count; i < this.nodes; i++) this.#moveNode(i, i - count);
    }
    this.nodes -= count;
  }

  #moveNode(from: number, to: number): void {
    const f = this.#slot(from);
    const t = this.#slot(to);
    this.addresses[t] = this.addresses[f]!;
    this.starts[t] = this.starts[f]!;
    this.ends[t] = this.ends[f]!;
    this.counts[t] = this.counts[f]!;
  }

  #growRing(): void {
    this.arena.indexBytes += this.indexBytes();
    this.addresses = this.#unrolled(this.addresses);
    this.starts = this.#unrolled(this.starts);
    this.ends = this.#unrolled(this.ends);
    this.counts = this.#unrolled(this.counts);
    this.first = 0;
  }

  #unrolled(column: Int32Array): Int32Array<ArrayBuffer> {
    const larger = new Int32Array(column.length * 2);
    larger.set(column.subarray(this.first));
    larger.set(column.subarray(0, this.first), column.length - this.first);
    return larger;
  }
}
