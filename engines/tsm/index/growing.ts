// Numbers by index, in one typed array that grows. Its users read `array` directly.

/** What the parts of one index hold, kept up to date by its allocators. */
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
    // By half: at ten million series what is kept spare counts.
    this.array = new Uint32Array(before.length + (before.length >>> 1) + 4);
    this.array.set(before);
    this.#tally.bytes += this.array.byteLength - before.byteLength;
  }
}
