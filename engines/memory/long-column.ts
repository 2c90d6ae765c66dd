// Columns of numbers that grow without a copy of all of them: in chunks of 64 K, of which only the first one is ever
// copied, while it is small. A column of a hundred million numbers grows in as short a step as one of a thousand.

const chunkBits = 16;
const chunkLength = 1 << chunkBits;
const chunkMask = chunkLength - 1;

abstract class LongColumn<A extends Int32Array | Float64Array> {
  /** The places there are: 0 to `length` - 1. */
  length = 0;
  byteLength = 0;
  protected chunks: A[] = [];

  protected abstract make(length: number): A;

  /** Makes at least `length` places, all 0. Returns the bytes that it grew by. */
  reserve(length: number): number {
    const before = this.byteLength;
    while (this.length < length) this.#grow(length);
    return this.byteLength - before;
  }

  #grow(length: number): void {
    if (this.length >= chunkLength) {
      this.#push(this.make(chunkLength));
      return;
    }
    const most = Math.max(16, length, this.length + (this.length >>> 1));
    const larger = this.make(Math.min(chunkLength, most));
    if (this.chunks.length > 0) larger.set(this.chunks[0]!);
    this.clear();
    this.#push(larger);
  }

  #push(chunk: A): void {
    this.chunks.push(chunk);
    this.length += chunk.length;
    this.byteLength += chunk.byteLength;
  }

  /** Releases all places. */
  clear(): void {
    this.chunks = [];
    this.length = 0;
    this.byteLength = 0;
  }
}

// Each has its own `at` and `set`: shared ones would see arrays of two kinds, which makes both slower.

export class IntColumn extends LongColumn<Int32Array> {
  protected override make(length: number): Int32Array {
    return new Int32Array(length);
  }

  /** Value at `i`; 0 beyond the end. */
  get(i: number): number {
    return i < this.length ? this.chunks[i >>> chunkBits]![i & chunkMask]! : 0;
  }

  /** For a place that there is. */
  at(i: number): number {
    return this.chunks[i >>> chunkBits]![i & chunkMask]!;
  }

  /** For a place that there is. */
  set(i: number, value: number): void {
    this.chunks[i >>> chunkBits]![i & chunkMask] = value;
  }
}

export class FloatColumn extends LongColumn<Float64Array> {
  protected override make(length: number): Float64Array {
    return new Float64Array(length);
  }

  /** For a place that there is. */
  at(i: number): number {
    return this.chunks[i >>> chunkBits]![i & chunkMask]!;
  }

  /** For a place that there is. */
  set(i: number, value: number): void {
    this.chunks[i >>> chunkBits]![i & chunkMask] = value;
  }
}
