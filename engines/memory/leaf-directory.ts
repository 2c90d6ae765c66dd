// Where the leaves of a stream are, in the order of their keys: chunks of up to some hundred leaves, so that
// adding or removing a leaf moves few others. A leaf is four numbers: address, bytes used, records, and the
// snapshot that has seen it last.

const fields = 4;
const initialLeaves = 2;
const maxLeaves = 256;
/** Size of the objects of a chunk, approximate. */
const chunkOverheadBytes = 160;

export const Leaf = { address: 0, used: 1, records: 2, mark: 3 } as const;
type LeafField = (typeof Leaf)[keyof typeof Leaf];

interface Chunk {
  leaves: Int32Array;
  count: number;
}

/** A place in the directory. */
export interface LeafPlace {
  chunk: number;
  leaf: number;
}

export class LeafDirectory {
  /** Leaves in all. */
  count = 0;
  /** Changes whenever leaves are added, removed or moved. */
  version = 0;
  readonly #chunks: Chunk[] = [];
  #indexBytes = 0;

  get indexBytes(): number {
    return this.#indexBytes;
  }

  get(at: LeafPlace, field: LeafField): number {
    return this.#chunks[at.chunk]!.leaves[at.leaf * fields + field]!;
  }

  set(at: LeafPlace, field: LeafField, value: number): void {
    this.#chunks[at.chunk]!.leaves[at.leaf * fields + field] = value;
  }

  isLast(at: LeafPlace): boolean {
    return at.chunk === this.#chunks.length - 1 && at.leaf === this.#chunks[at.chunk]!.count - 1;
  }

  toFirst(at: LeafPlace): boolean {
    at.chunk = 0;
    at.leaf = 0;
    return this.count > 0;
  }

  toLast(at: LeafPlace): boolean {
    at.chunk = Math.max(0, this.#chunks.length - 1);
    at.leaf = (this.#chunks[at.chunk]?.count ?? 1) - 1;
    return this.count > 0;
  }

  forward(at: LeafPlace): boolean {
    if (at.leaf + 1 < this.#chunks[at.chunk]!.count) at.leaf++;
    else if (at.chunk + 1 < this.#chunks.length) {
      at.chunk++;
      at.leaf = 0;
    } else return false;
    return true;
  }

  /** Address of the leaf behind a place; undefined behind the last one. */
  addressAfter(at: LeafPlace): number | undefined {
    const chunk = this.#chunks[at.chunk]!;
    if (at.leaf + 1 < chunk.count) return chunk.leaves[(at.leaf + 1) * fields + Leaf.address];
    return this.#chunks[at.chunk + 1]?.leaves[Leaf.address];
  }

  backward(at: LeafPlace): boolean {
    if (at.leaf > 0) at.leaf--;
    else if (at.chunk > 0) {
      at.chunk--;
      at.leaf = this.#chunks[at.chunk]!.count - 1;
    } else return false;
    return true;
  }

  /** The `index`th leaf. */
  toIndex(at: LeafPlace, index: number): boolean {
    let left = index;
    for (let chunk = 0; chunk < this.#chunks.length; chunk++) {
      const { count } = this.#chunks[chunk]!;
      if (left < count) {
        at.chunk = chunk;
        at.leaf = left;
        return true;
      }
      left -= count;
    }
    return false;
  }

  /**
   * The last leaf for which `isAfter` is false, or the first one; `isAfter` is false up to some leaf and
   * true from there on. False when there are no leaves.
   */
  search(at: LeafPlace, isAfter: (address: number) => boolean): boolean {
    if (this.count === 0) return false;
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isAfter(this.#chunks[middle]!.leaves[Leaf.address]!)) high = middle;
      else low = middle + 1;
    }
    at.chunk = low === 0 ? 0 : low - 1;
    const { leaves, count } = this.#chunks[at.chunk]!;
    low = 0;
    high = count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isAfter(leaves[middle * fields + Leaf.address]!)) high = middle;
      else low = middle + 1;
    }
    at.leaf = low === 0 ? 0 : low - 1;
    return true;
  }

  /** Inserts a leaf before the leaf at the place. The place then denotes the new leaf. */
  insert(at: LeafPlace, address: number, used: number, records: number, mark: number): void {
    this.version++;
    if (this.#chunks.length === 0) {
      this.#chunks.push(this.#newChunk(initialLeaves));
      at.chunk = 0;
      at.leaf = 0;
    }
    let chunk = this.#chunks[at.chunk]!;
    if (chunk.count === maxLeaves) {
      // Leaves mostly come in order: behind the last one a chunk stays full.
      const keep = at.leaf === maxLeaves ? maxLeaves : maxLeaves / 2;
      this.#split(at.chunk, keep);
      if (at.leaf >= keep) {
        at.chunk++;
        at.leaf -= keep;
      }
      chunk = this.#chunks[at.chunk]!;
    }
    if (chunk.count * fields === chunk.leaves.length) this.#grow(chunk);
    const start = at.leaf * fields;
    chunk.leaves.copyWithin(start + fields, start, chunk.count * fields);
    chunk.leaves[start + Leaf.address] = address;
    chunk.leaves[start + Leaf.used] = used;
    chunk.leaves[start + Leaf.records] = records;
    chunk.leaves[start + Leaf.mark] = mark;
    chunk.count++;
    this.count++;
  }

  remove(at: LeafPlace): void {
    this.version++;
    const chunk = this.#chunks[at.chunk]!;
    const start = at.leaf * fields;
    chunk.leaves.copyWithin(start, start + fields, chunk.count * fields);
    this.count--;
    if (--chunk.count > 0) return;
    this.#chunks.splice(at.chunk, 1);
    this.#indexBytes -= chunkOverheadBytes + chunk.leaves.byteLength;
  }

  #newChunk(leaves: number): Chunk {
    const chunk = { leaves: new Int32Array(leaves * fields), count: 0 };
    this.#indexBytes += chunkOverheadBytes + chunk.leaves.byteLength;
    return chunk;
  }

  #grow(chunk: Chunk): void {
    const larger = new Int32Array(chunk.leaves.length * 2);
    larger.set(chunk.leaves);
    this.#indexBytes += larger.byteLength - chunk.leaves.byteLength;
    chunk.leaves = larger;
  }

  /** Leaves from `keep` on go to a chunk of their own. */
  #split(index: number, keep: number): void {
    const chunk = this.#chunks[index]!;
    const more = this.#newChunk(maxLeaves);
    more.count = chunk.count - keep;
    more.leaves.set(chunk.leaves.subarray(keep * fields, chunk.count * fields));
    chunk.count = keep;
    this.#chunks.splice(index + 1, 0, more);
  }
}
