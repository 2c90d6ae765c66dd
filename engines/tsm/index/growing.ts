// Numbers by index, in one typed array that grows. Its users read `array` directly.

/** Memory used by the parts of one index, kept up to date by its allocators. */
export interface MemoryTally {
  bytes: number;
}

export class GrowingUint32 {
  array: Uint32Array;
  length = 0;
  readonly #tally: MemoryTally;

  constructor(tally: MemoryTally) {
    this.array = new Uint32Array(4);
    this.#tally = tally;
    tally.bytes += this.array.byteLength;
  }

  push(value: number): void {
    if (this.length === this.array.length) this.#grow();
    this.array[this.length++] = value;
  }

  #grow(): void {
    const before = this.array;
    // Grows by half: with ten million series, spare capacity matters.
    this.array = new Uint32Array(before.length + (before.length >>> 1) + 4);
    this.array.set(before);
    this.#tally.bytes += this.array.byteLength - before.byteLength;
  }
}
