// Off-heap memory for keys and values, so that millions of them are not millions of objects.
//
//   chunk 1 MiB = 16 pages of 64 KiB; a page holds blocks of one size class
//   address     = unit of 8 bytes: chunk number << 17 | unit in chunk; 0 is none
//   ~index      = a negative address: a block beyond `maxBlockBytes`, in a Buffer of its own
//
// A free block's first four bytes link to the next free block of its page. A page without a used
// block goes back to the pool for any class, a chunk without a used page back to the system.

import { emptyBytes, viewed } from '../../universal-row/bytes.ts';
import { assert } from '../../universal-row/assert.ts';
import { spareBuffers } from '../../universal-row/spare-buffers.ts';

const chunkBytes = 1 << 20;
const pageBytes = 1 << 16;
const chunkShift = 17;
const unitMask = (1 << chunkShift) - 1;
const pageShift = 13;
const pagesPerChunk = 16;
const maxChunks = 1 << (31 - chunkShift);
const freePage = 255;
/** Large blocks are rounded up to this. */
const largeStep = 4096;

/** Less waste than this is not worth a compaction. */
const minWasteBytes = 8 << 20;

const maxBlockBytes = 16384;

/** Block sizes: steps of 8 to 128, of an eighth to 4 KiB, then those that divide a page well. */
function makeClassSizes(): number[] {
  const sizes: number[] = [];
  for (let n = 8; n <= 128; n += 8) sizes.push(n);
  for (let base = 128; base < 4096; base *= 2) {
    for (let i = 1; i <= 8; i++) sizes.push(base + (base / 8) * i);
  }
  for (let blocks = 15; blocks >= 4; blocks--) sizes.push(Math.floor(pageBytes / blocks / 8) * 8);
  return sizes;
}

const classSizes = Int32Array.from(makeClassSizes());
const classBlocks = classSizes.map((size) => Math.floor(pageBytes / size));
/** Size class by size in units. */
const classOfUnits = new Uint8Array(maxBlockBytes / 8 + 1);
for (let units = 1, c = 0; units < classOfUnits.length; units++) {
  if (units * 8 > classSizes[c]!) c++;
  classOfUnits[units] = c;
}

export class Arena {
  /** Memory by chunk number; where a chunk was released, no bytes. */
  chunks: Buffer[] = [emptyBytes];
  larges: Buffer[] = [];
  /** Bytes of blocks in use, rounded up to their allocated size. */
  usedBytes = 0;
  /** Bytes got from the system for blocks. */
  heldBytes = 0;
  /** Bytes of the typed arrays that index the blocks; kept by their owners. */
  indexBytes = 0;

  private words: Int32Array[] = [new Int32Array(0)];
  private freeChunkNumbers: number[] = [];
  private freeLarges: number[] = [];
  private freePages = 0;
  private chunkFreePages = new Uint8Array(16);

  // By page number. A page is in at most one list: the pool, or its class's pages with room.
  private pageClass = new Uint8Array(16 * pagesPerChunk);
  private pageUsed = new Uint16Array(16 * pagesPerChunk);
  private pageFree = new Int32Array(16 * pagesPerChunk);
  private pageBump = new Int32Array(16 * pagesPerChunk);
  private pageNext = new Int32Array(16 * pagesPerChunk);
  private pagePrevious = new Int32Array(16 * pagesPerChunk);
  /** By page, whether its blocks are being moved away; then it is in no list. */
  private pageLeaving = new Uint8Array(16 * pagesPerChunk);
  /** By chunk, likewise; its free pages are in no list either. */
  private chunkLeaving = new Uint8Array(16);
  /** Waste that the last compaction could not help. */
  private acceptedWaste = 0;

  private roomy = new Int32Array(classSizes.length);
  private pool = 0;

  /** The memory an address is in, at `offset(address)`. */
  buffer(address: number): Buffer {
    return address < 0 ? this.larges[~address]! : this.chunks[address >>> chunkShift]!;
  }

  offset(address: number): number {
    return address < 0 ? 0 : (address & unitMask) << 3;
  }

  /** Bytes that fit in the block. */
  capacity(address: number): number {
    if (address < 0) return this.larges[~address]!.length;
    return classSizes[this.pageClass[address >>> pageShift]!]!;
  }

  /** Whether a block of `n` bytes made now would be no other size than this one. */
  fits(address: number, n: number): boolean {
    if (address >= 0) {
      return (
        n <= maxBlockBytes && classOfUnits[(n + 7) >>> 3] === this.pageClass[address >>> pageShift]
      );
    }
    const capacity = this.larges[~address]!.length;
    return n <= capacity && n > maxBlockBytes && n > capacity >>> 1;
  }

  /** A block of at least `n` bytes, its contents arbitrary. */
  allocate(n: number): number {
    if (n > maxBlockBytes) return this.#allocateLarge(n);
    const c = classOfUnits[(n + 7) >>> 3]!;
    let page = this.roomy[c]!;
    if (page === 0) page = this.#openPage(c);
    this.usedBytes += classSizes[c]!;
    const used = ++this.pageUsed[page]!;
    let address = this.pageFree[page]!;
    if (address !== 0) {
      this.pageFree[page] = this.words[address >>> chunkShift]![(address & unitMask) << 1]!;
    } else {
      address = this.pageBump[page]!;
      this.pageBump[page] = address + (classSizes[c]! >>> 3);
    }
    if (used === classBlocks[c]) this.#unlinkRoomy(page, c);
    return address;
  }

  /** As `allocate`, with slack if it is large: the block is likely to grow. */
  allocateGrowing(n: number): number {
    return this.allocate(n > maxBlockBytes ? n + (n >>> 2) : n);
  }

  free(address: number): void {
    if (address < 0) {
      this.#freeLarge(address);
      return;
    }
    const page = address >>> pageShift;
    const c = this.pageClass[page]!;
    this.usedBytes -= classSizes[c]!;
    this.words[address >>> chunkShift]![(address & unitMask) << 1] = this.pageFree[page]!;
    this.pageFree[page] = address;
    const used = --this.pageUsed[page]!;
    if (used === 0) {
      this.#retirePage(page, c);
    } else if (used === classBlocks[c]! - 1 && this.pageLeaving[page] === 0) {
      this.#linkRoomy(page, c);
    }
  }

  /** Whether so much of the chunks is free that moving blocks together pays. */
  isSparse(): boolean {
    const waste = this.heldBytes - this.usedBytes;
    if (waste < this.acceptedWaste) this.acceptedWaste = waste;
    return waste > minWasteBytes && waste > this.usedBytes / 3 && waste > this.acceptedWaste * 1.25;
  }

  /**
   * Begins a compaction: the emptiest chunks, as many as the others have room for, take no more blocks
   * and are to be emptied by `move`. Ended by `endCompaction`.
   */
  beginCompaction(): void {
    const chunks: { chunk: number; used: number }[] = [];
    let room = 0;
    for (let chunk = 1; chunk < this.chunks.length; chunk++) {
      if (this.chunks[chunk]!.length === 0) continue;
      const used = this.#usedIn(chunk);
      chunks.push({ chunk, used });
      room += chunkBytes - used;
    }
    chunks.sort((a, b) => a.used - b.used);
    let moving = 0;
    for (const { chunk, used } of chunks) {
      moving += used;
      room -= chunkBytes - used;
      // Room in pages of other size classes is of no use: not all of it counts.
      if (moving > room * 0.8) return;
      this.#leaveChunk(chunk);
    }
  }

  #usedIn(chunk: number): number {
    let used = 0;
    const first = chunk * pagesPerChunk;
    for (let page = first; page < first + pagesPerChunk; page++) {
      const c = this.pageClass[page]!;
      if (c !== freePage) used += this.pageUsed[page]! * classSizes[c]!;
    }
    return used;
  }

  #leaveChunk(chunk: number): void {
    const first = chunk * pagesPerChunk;
    for (let page = first; page < first + pagesPerChunk; page++) {
      const c = this.pageClass[page]!;
      if (c === freePage) {
        this.#unlinkPool(page);
        this.chunkFreePages[chunk]!++;
        continue;
      }
      if (this.pageUsed[page]! < classBlocks[c]!) this.#unlinkRoomy(page, c);
      this.pageLeaving[page] = 1;
    }
    this.chunkLeaving[chunk] = 1;
    if (this.chunkFreePages[chunk] === pagesPerChunk) this.#dropChunk(chunk);
  }

  isLeaving(address: number): boolean {
    return address > 0 && this.pageLeaving[address >>> pageShift] !== 0;
  }

  /** Copies a block elsewhere and frees it; the new address. */
  move(address: number): number {
    const capacity = this.capacity(address);
    const to = this.allocate(capacity);
    const o = this.offset(address);
    this.buffer(address).copy(this.buffer(to), this.offset(to), o, o + capacity);
    this.free(address);
    return to;
  }

  /** Allocations not moved by now stay where they are. */
  endCompaction(): void {
    for (let chunk = 1; chunk < this.chunks.length; chunk++) {
      if (this.chunkLeaving[chunk] === 0) continue;
      this.chunkLeaving[chunk] = 0;
      this.chunkFreePages[chunk] = 0;
      const first = chunk * pagesPerChunk;
      for (let page = first; page < first + pagesPerChunk; page++) {
        const c = this.pageClass[page]!;
        if (c === freePage) {
          this.#linkPool(page);
          continue;
        }
        this.pageLeaving[page] = 0;
        if (this.pageUsed[page]! < classBlocks[c]!) this.#linkRoomy(page, c);
      }
    }
    this.acceptedWaste = this.heldBytes - this.usedBytes;
  }

  #linkRoomy(page: number, c: number): void {
    const head = this.roomy[c]!;
    this.pageNext[page] = head;
    this.pagePrevious[page] = 0;
    if (head !== 0) this.pagePrevious[head] = page;
    this.roomy[c] = page;
  }

  #unlinkRoomy(page: number, c: number): void {
    const next = this.pageNext[page]!;
    const previous = this.pagePrevious[page]!;
    if (next !== 0) this.pagePrevious[next] = previous;
    if (previous !== 0) this.pageNext[previous] = next;
    else this.roomy[c] = next;
  }

  #openPage(c: number): number {
    if (this.pool === 0) this.#addChunk();
    const page = this.pool;
    this.#unlinkPool(page);
    this.pageClass[page] = c;
    this.pageUsed[page] = 0;
    this.pageFree[page] = 0;
    this.pageBump[page] = page << pageShift;
    this.#linkRoomy(page, c);
    return page;
  }

  #retirePage(page: number, c: number): void {
    const chunk = page >>> (chunkShift - pageShift);
    if (this.pageLeaving[page] !== 0) {
      this.pageLeaving[page] = 0;
      this.pageClass[page] = freePage;
      if (++this.chunkFreePages[chunk]! === pagesPerChunk) this.#dropChunk(chunk);
      return;
    }
    this.#unlinkRoomy(page, c);
    this.#linkPool(page);
    // One chunk's worth of free pages stays, so that a load that goes up and down keeps its memory.
    if (this.chunkFreePages[chunk] === pagesPerChunk && this.freePages >= 2 * pagesPerChunk) {
      this.#releaseChunk(chunk);
    }
  }

  #linkPool(page: number): void {
    const head = this.pool;
    this.pageClass[page] = freePage;
    this.pageNext[page] = head;
    this.pagePrevious[page] = 0;
    if (head !== 0) this.pagePrevious[head] = page;
    this.pool = page;
    this.freePages++;
    this.chunkFreePages[page >>> (chunkShift - pageShift)]!++;
  }

  #unlinkPool(page: number): void {
    const next = this.pageNext[page]!;
    const previous = this.pagePrevious[page]!;
    if (next !== 0) this.pagePrevious[next] = previous;
    if (previous !== 0) this.pageNext[previous] = next;
    else this.pool = next;
    this.freePages--;
    this.chunkFreePages[page >>> (chunkShift - pageShift)]!--;
  }

  #addChunk(): void {
    const chunk = this.freeChunkNumbers.pop() ?? this.chunks.length;
    assert(chunk < maxChunks, 'an arena stays below 16 GiB');
    if (chunk >= this.chunkFreePages.length) this.#growColumns();
    const memory = viewed(Buffer.allocUnsafeSlow(chunkBytes));
    this.chunks[chunk] = memory;
    this.words[chunk] = new Int32Array(memory.buffer, memory.byteOffset, chunkBytes / 4);
    this.heldBytes += chunkBytes;
    const first = chunk * pagesPerChunk;
    for (let page = first + pagesPerChunk - 1; page >= first; page--) this.#linkPool(page);
  }

  #releaseChunk(chunk: number): void {
    const first = chunk * pagesPerChunk;
    for (let page = first; page < first + pagesPerChunk; page++) this.#unlinkPool(page);
    this.#dropChunk(chunk);
  }

  /** Gives back a chunk whose pages are free and in no list. */
  #dropChunk(chunk: number): void {
    this.chunkFreePages[chunk] = 0;
    this.chunkLeaving[chunk] = 0;
    this.chunks[chunk] = emptyBytes;
    this.words[chunk] = this.words[0]!;
    this.freeChunkNumbers.push(chunk);
    this.heldBytes -= chunkBytes;
  }

  #growColumns(): void {
    const chunks = this.chunkFreePages.length * 2;
    const pages = chunks * pagesPerChunk;
    this.chunkFreePages = copyInto(new Uint8Array(chunks), this.chunkFreePages);
    this.chunkLeaving = copyInto(new Uint8Array(chunks), this.chunkLeaving);
    this.pageClass = copyInto(new Uint8Array(pages), this.pageClass);
    this.pageUsed = copyInto(new Uint16Array(pages), this.pageUsed);
    this.pageFree = copyInto(new Int32Array(pages), this.pageFree);
    this.pageBump = copyInto(new Int32Array(pages), this.pageBump);
    this.pageNext = copyInto(new Int32Array(pages), this.pageNext);
    this.pagePrevious = copyInto(new Int32Array(pages), this.pagePrevious);
    this.pageLeaving = copyInto(new Uint8Array(pages), this.pageLeaving);
  }

  #allocateLarge(n: number): number {
    const capacity = Math.ceil(n / largeStep) * largeStep;
    const index = this.freeLarges.pop() ?? this.larges.length;
    this.larges[index] = spareBuffers.take(capacity);
    this.usedBytes += capacity;
    this.heldBytes += capacity;
    return ~index;
  }

  #freeLarge(address: number): void {
    const index = ~address;
    const large = this.larges[index]!;
    const capacity = large.length;
    this.larges[index] = emptyBytes;
    spareBuffers.give(large);
    this.freeLarges.push(index);
    this.usedBytes -= capacity;
    this.heldBytes -= capacity;
  }
}

function copyInto<T extends Uint8Array | Uint16Array | Int32Array>(to: T, from: T): T {
  to.set(from);
  return to;
}
