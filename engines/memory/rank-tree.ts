// Ids in an order, with counts: a B+tree in typed arrays that answers both "the id at this rank" and
// "the rank of this place" in O(log n).
//
//   inner node   up to 64 children, each with the number of ids below it, its first id and that id's
//                score, so that a descent compares scores without leaving the node
//   leaf         up to 64 ids, linked to the leaves before and after it
//
// The owner defines the order, and the place in it, through `RankOrder`.

const width = 64;
const widthBits = 6;
/** Neighbours that together hold no more than this become one. */
const mergeWidth = 40;

export interface RankOrder {
  /** Negative if the id is before the sought place, positive if it is after it, 0 if it is at it. */
  compare(id: number, score: number): number;
  scoreOf(id: number): number;
}

export class RankTree {
  size = 0;
  /** Where `seek` or `rank` ended. */
  leaf = 1;
  index = 0;

  private readonly order: RankOrder;

  // By leaf, from 1 on; freed ones are linked through `leafNext`.
  private leafIds = new Int32Array(2 * width);
  private leafCount = new Int32Array(2);
  private leafNext = new Int32Array(2);
  private leafPrevious = new Int32Array(2);
  private leafLimit = 1;
  private freeLeaf = 0;

  // By inner node and child, and by inner node; freed ones are linked through `innerCount`.
  private children = new Int32Array(0);
  private below = new Int32Array(0);
  private firstIds = new Int32Array(0);
  private firstScores = new Float64Array(0);
  private innerCount = new Int32Array(0);
  private innerLimit = 1;
  private freeInner = 0;

  /** Levels of inner nodes above the leaves. */
  private height = 0;
  private root: number;

  constructor(order: RankOrder) {
    this.order = order;
    this.root = this.#takeLeaf();
  }

  bytes(): number {
    return (
      this.leafIds.byteLength +
      3 * this.leafCount.byteLength +
      3 * this.children.byteLength +
      this.firstScores.byteLength +
      this.innerCount.byteLength
    );
  }

  /** Puts the id at the place the order is set to. */
  insert(id: number): void {
    const right = this.#insertBelow(this.root, this.height, id);
    this.size++;
    if (right === 0) return;
    const root = this.#takeInner();
    this.innerCount[root] = 2;
    const slot = root << widthBits;
    this.children[slot] = this.root;
    this.children[slot + 1] = right;
    this.#describe(slot, this.height);
    this.#describe(slot + 1, this.height);
    this.root = root;
    this.height++;
  }

  /** Takes out the id at the place the order is set to. */
  remove(): void {
    this.#removeBelow(this.root, this.height);
    this.size--;
    while (this.height > 0 && this.innerCount[this.root] === 1) {
      const only = this.children[this.root << widthBits]!;
      this.#giveBackInner(this.root);
      this.root = only;
      this.height--;
    }
  }

  /**
   * Number of ids before the place that the order is set to. Sets `leaf` and `index` to that place, which may be
   * behind the last id of a leaf.
   */
  rank(): number {
    let node = this.root;
    let rank = 0;
    for (let level = this.height; level > 0; level--) {
      const base = node << widthBits;
      const at = this.#childFor(node);
      for (let i = 0; i < at; i++) rank += this.below[base + i]!;
      node = this.children[base + at]!;
    }
    this.leaf = node;
    this.index = this.#placeIn(node);
    return rank + this.index;
  }

  /** Sets `leaf` and `index` to the id with this rank, 0 <= rank < size. */
  seek(rank: number): void {
    let node = this.root;
    let left = rank;
    for (let level = this.height; level > 0; level--) {
      let slot = node << widthBits;
      while (left >= this.below[slot]!) left -= this.below[slot++]!;
      node = this.children[slot]!;
    }
    this.leaf = node;
    this.index = left;
  }

  idAt(leaf: number, index: number): number {
    return this.leafIds[(leaf << widthBits) + index]!;
  }

  countIn(leaf: number): number {
    return this.leafCount[leaf]!;
  }

  next(leaf: number): number {
    return this.leafNext[leaf]!;
  }

  previous(leaf: number): number {
    return this.leafPrevious[leaf]!;
  }

  /** The child that holds the place: the last whose first id is not after it. */
  #childFor(node: number): number {
    const base = node << widthBits;
    let low = 0;
    let high = this.innerCount[node]! - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      const slot = base + middle;
      if (this.order.compare(this.firstIds[slot]!, this.firstScores[slot]!) <= 0) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #placeIn(leaf: number): number {
    const base = leaf << widthBits;
    let low = 0;
    let high = this.leafCount[leaf]!;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const id = this.leafIds[base + middle]!;
      if (this.order.compare(id, this.order.scoreOf(id)) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Returns the node split off to the right, or 0. */
  #insertBelow(node: number, level: number, id: number): number {
    if (level === 0) return this.#insertInLeaf(node, id);
    const at = this.#childFor(node);
    const slot = (node << widthBits) + at;
    const right = this.#insertBelow(this.children[slot]!, level - 1, id);
    if (right === 0) {
      this.below[slot]!++;
      this.#describeFirst(slot, level - 1);
      return 0;
    }
    this.#describe(slot, level - 1);
    return this.#insertChild(node, at + 1, right, level - 1);
  }

  #insertInLeaf(leaf: number, id: number): number {
    const at = this.#placeIn(leaf);
    if (this.leafCount[leaf]! < width) {
      this.#putInLeaf(leaf, at, id);
      return 0;
    }
    const right = this.#takeLeaf();
    const next = this.leafNext[leaf]!;
    this.leafNext[right] = next;
    this.leafPrevious[right] = leaf;
    this.leafNext[leaf] = right;
    if (next !== 0) this.leafPrevious[next] = right;
    // Ids that arrive in order leave full leaves behind.
    const keep = at === width && next === 0 ? width : width / 2;
    const base = leaf << widthBits;
    this.leafIds.copyWithin(right << widthBits, base + keep, base + width);
    this.leafCount[right] = width - keep;
    this.leafCount[leaf] = keep;
    if (at > keep || keep === width) this.#putInLeaf(right, at - keep, id);
    else this.#putInLeaf(leaf, at, id);
    return right;
  }

  #putInLeaf(leaf: number, at: number, id: number): void {
    const base = leaf << widthBits;
    const count = this.leafCount[leaf]!++;
    if (at < count) this.leafIds.copyWithin(base + at + 1, base + at, base + count);
    this.leafIds[base + at] = id;
  }

  #insertChild(node: number, at: number, child: number, level: number): number {
    const count = this.innerCount[node]!;
    if (count < width) {
      this.#moveSlots(node, at + 1, node, at, count - at);
      this.innerCount[node] = count + 1;
      const slot = (node << widthBits) + at;
      this.children[slot] = child;
      this.#describe(slot, level);
      return 0;
    }
    const right = this.#takeInner();
    const keep = at === width ? width - 1 : width / 2;
    this.#moveSlots(right, 0, node, keep, width - keep);
    this.innerCount[node] = keep;
    this.innerCount[right] = width - keep;
    if (at > keep) this.#insertChild(right, at - keep, child, level);
    else this.#insertChild(node, at, child, level);
    return right;
  }

  #removeBelow(node: number, level: number): void {
    if (level === 0) {
      const at = this.#placeIn(node);
      const base = node << widthBits;
      const count = --this.leafCount[node]!;
      this.leafIds.copyWithin(base + at, base + at + 1, base + count + 1);
      return;
    }
    const at = this.#childFor(node);
    const slot = (node << widthBits) + at;
    const child = this.children[slot]!;
    this.#removeBelow(child, level - 1);
    this.below[slot]!--;
    const count = this.#countOf(child, level - 1);
    if (count === 0) {
      this.#removeChild(node, at, level - 1);
      return;
    }
    this.#describeFirst(slot, level - 1);
    if (count <= mergeWidth / 2) this.#mergeAround(node, at, level - 1);
  }

  #mergeAround(node: number, at: number, level: number): void {
    const left = at > 0 ? at - 1 : at;
    if (left + 1 >= this.innerCount[node]!) return;
    const slot = (node << widthBits) + left;
    const a = this.children[slot]!;
    const b = this.children[slot + 1]!;
    const an = this.#countOf(a, level);
    const bn = this.#countOf(b, level);
    if (an + bn > mergeWidth) return;
    if (level === 0) {
      const from = b << widthBits;
      this.leafIds.copyWithin((a << widthBits) + an, from, from + bn);
      this.leafCount[a] = an + bn;
    } else {
      this.#moveSlots(a, an, b, 0, bn);
      this.innerCount[a] = an + bn;
    }
    this.below[slot]! += this.below[slot + 1]!;
    this.#removeChild(node, left + 1, level);
  }

  /** Frees a child whose ids are gone or have moved to a neighbour. */
  #removeChild(node: number, at: number, level: number): void {
    const child = this.children[(node << widthBits) + at]!;
    if (level === 0) this.#giveBackLeaf(child);
    else this.#giveBackInner(child);
    const count = --this.innerCount[node]!;
    this.#moveSlots(node, at, node, at + 1, count - at);
  }

  #moveSlots(to: number, toAt: number, from: number, fromAt: number, count: number): void {
    const target = (to << widthBits) + toAt;
    const start = (from << widthBits) + fromAt;
    this.children.copyWithin(target, start, start + count);
    this.below.copyWithin(target, start, start + count);
    this.firstIds.copyWithin(target, start, start + count);
    this.firstScores.copyWithin(target, start, start + count);
  }

  #countOf(node: number, level: number): number {
    return level === 0 ? this.leafCount[node]! : this.innerCount[node]!;
  }

  /** Updates a slot's copy of its child's count, first id and score; the child is at `level`. */
  #describe(slot: number, level: number): void {
    const child = this.children[slot]!;
    if (level === 0) {
      this.below[slot] = this.leafCount[child]!;
    } else {
      const base = child << widthBits;
      let sum = 0;
      for (let i = this.innerCount[child]! - 1; i >= 0; i--) sum += this.below[base + i]!;
      this.below[slot] = sum;
    }
    this.#describeFirst(slot, level);
  }

  #describeFirst(slot: number, level: number): void {
    const first = this.children[slot]! << widthBits;
    if (level === 0) {
      const id = this.leafIds[first]!;
      this.firstIds[slot] = id;
      this.firstScores[slot] = this.order.scoreOf(id);
    } else {
      this.firstIds[slot] = this.firstIds[first]!;
      this.firstScores[slot] = this.firstScores[first]!;
    }
  }

  #takeLeaf(): number {
    let leaf = this.freeLeaf;
    if (leaf !== 0) {
      this.freeLeaf = this.leafNext[leaf]!;
    } else {
      leaf = this.leafLimit++;
      if (leaf === this.leafCount.length) {
        const leaves = larger(leaf);
        this.leafIds = extended(this.leafIds, leaves * width);
        this.leafCount = extended(this.leafCount, leaves);
        this.leafNext = extended(this.leafNext, leaves);
        this.leafPrevious = extended(this.leafPrevious, leaves);
      }
    }
    this.leafCount[leaf] = 0;
    this.leafNext[leaf] = 0;
    this.leafPrevious[leaf] = 0;
    return leaf;
  }

  #giveBackLeaf(leaf: number): void {
    const next = this.leafNext[leaf]!;
    const previous = this.leafPrevious[leaf]!;
    if (next !== 0) this.leafPrevious[next] = previous;
    if (previous !== 0) this.leafNext[previous] = next;
    this.leafNext[leaf] = this.freeLeaf;
    this.freeLeaf = leaf;
  }

  #takeInner(): number {
    const free = this.freeInner;
    if (free !== 0) {
      this.freeInner = this.innerCount[free]!;
      return free;
    }
    const node = this.innerLimit++;
    if (node >= this.innerCount.length) {
      const nodes = larger(node);
      this.children = extended(this.children, nodes * width);
      this.below = extended(this.below, nodes * width);
      this.firstIds = extended(this.firstIds, nodes * width);
      this.innerCount = extended(this.innerCount, nodes);
      const scores = new Float64Array(nodes * width);
      scores.set(this.firstScores);
      this.firstScores = scores;
    }
    return node;
  }

  #giveBackInner(node: number): void {
    this.innerCount[node] = this.freeInner;
    this.freeInner = node;
  }
}

function larger(count: number): number {
  return count + Math.max(2, count >>> 2);
}

function extended(from: Int32Array, length: number): Int32Array<ArrayBuffer> {
  const to = new Int32Array(length);
  to.set(from);
  return to;
}
