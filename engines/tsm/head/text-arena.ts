// The strings of a head: their bytes one after the other in chunks, each after its length. A string is
// known by where it begins. One that was added a moment ago is not added again: fields that are strings
// are mostly states, the same few over and over.

import { equalBytes, hashBytes } from '../../../universal-row/bytes.ts';

const chunkBytes = 256 * 1024;
const firstChunkBytes = 1024;
const lengthBytes = 4;
const recentSlots = 256;

export class TextArena {
  bytes = 0;
  readonly #chunks: Buffer[] = [];
  /** For each chunk, the position of its first byte. */
  readonly #starts: number[] = [];
  #used = 0;
  #end = 0;
  /** Positions of recent strings by hash, plus one. */
  #recent: Float64Array | undefined = undefined;

  /** Where the string is. */
  add(from: Buffer, start: number, end: number): number {
    const length = end - start;
    const slot = hashBytes(from, start, length) % recentSlots;
    this.#recent ??= new Float64Array(recentSlots);
    const recent = this.#recent[slot]! - 1;
    if (recent >= 0 && this.#isAt(recent, from, start, length)) return recent;
    this.#reserve(lengthBytes + length);
    const chunk = this.#chunks[this.#chunks.length - 1]!;
    const position = this.#starts[this.#starts.length - 1]! + this.#used;
    chunk.writeUInt32LE(length, this.#used);
    from.copy(chunk, this.#used + lengthBytes, start, end);
    this.#used += lengthBytes + length;
    this.#recent[slot] = position + 1;
    return position;
  }

  text(position: number): string {
    const index = this.#chunkOf(position);
    const chunk = this.#chunks[index]!;
    const at = position - this.#starts[index]!;
    const length = chunk.readUInt32LE(at);
    return chunk.toString('utf8', at + lengthBytes, at + lengthBytes + length);
  }

  #isAt(position: number, from: Buffer, start: number, length: number): boolean {
    const index = this.#chunkOf(position);
    const chunk = this.#chunks[index]!;
    const at = position - this.#starts[index]!;
    const there = chunk.readUInt32LE(at);
    return equalBytes(chunk, at + lengthBytes, there, from, start, length);
  }

  #chunkOf(position: number): number {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.#starts[middle]! <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #reserve(bytes: number): void {
    const last = this.#chunks[this.#chunks.length - 1];
    if (last !== undefined && this.#used + bytes <= last.length) return;
    // Small heads are many, so chunks grow with their contents.
    const size = Math.max(bytes, Math.min(chunkBytes, Math.max(firstChunkBytes, this.bytes)));
    if (last !== undefined) this.#end += last.length;
    this.#chunks.push(Buffer.allocUnsafeSlow(size));
    this.#starts.push(this.#end);
    this.#used = 0;
    this.bytes += size;
  }
}
