// Large buffers that are used again. The pages of a new buffer come from the system as they are first written, which takes
// four times as long as the copy into them (measured: 10 ms in place of 2.4 ms for 16 MB), and each new one brings the next
// garbage collection nearer. So a client that sends large strings again and again has the same memory used each time.

/** Smaller buffers are for their users to keep. */
const leastSpareBytes = 512 * 1024;
/** Total size of spares in each thread. */
const keptBytes = 96 * 1024 * 1024;
/** A spare is taken where at most a quarter of it is left over. */
const leastUse = 0.75;

interface Spare {
  memory: ArrayBuffer;
  /** Not taken since the last look. */
  isOld: boolean;
}

export class SpareBuffers {
  /** Bytes of all spares. */
  bytes = 0;
  /** Buffers that were made, as no spare was large enough. */
  made = 0;
  /** A spare that was not used for this long, or twice as long, is given to the garbage collector. */
  keptMs = 1000;
  readonly #spares: Spare[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** A buffer of so many bytes with memory of its own; its contents are undefined. */
  take(bytes: number): Buffer {
    let best = -1;
    for (let i = 0; i < this.#spares.length; i++) {
      const size = this.#spares[i]!.memory.byteLength;
      if (size < bytes || size * leastUse > bytes) continue;
      if (best < 0 || size < this.#spares[best]!.memory.byteLength) best = i;
    }
    if (best < 0) {
      this.made++;
      // Rounded up, so that a slightly larger request can reuse it. Pages that are never written take no memory.
      const memory = bytes < leastSpareBytes ? bytes : roundedUp(bytes);
      return Buffer.allocUnsafeSlow(memory).subarray(0, bytes);
    }
    const [{ memory }] = this.#spares.splice(best, 1) as [Spare];
    this.bytes -= memory.byteLength;
    return Buffer.from(memory, 0, bytes);
  }

  /** Returns a buffer of `take` that is used no more, by anyone. Small ones, and too many, are not kept. */
  give(buffer: Buffer): void {
    const memory = buffer.buffer as ArrayBuffer;
    const size = memory.byteLength;
    if (size < leastSpareBytes || this.bytes + size > keptBytes) return;
    this.#spares.push({ memory, isOld: false });
    this.bytes += size;
    if (this.#timer === undefined) this.#timer = setTimeout(this.#age, this.keptMs).unref();
  }

  readonly #age = (): void => {
    this.#timer = undefined;
    const kept = this.#spares.filter(({ isOld }) => !isOld);
    this.#spares.splice(0, Infinity, ...kept);
    this.bytes = 0;
    for (const spare of kept) {
      this.bytes += spare.memory.byteLength;
      spare.isOld = true;
    }
    if (kept.length > 0) this.#timer = setTimeout(this.#age, this.keptMs).unref();
  };
}

/** To a sixteenth of the power of two below. */
function roundedUp(bytes: number): number {
  const step = 2 ** Math.max(0, 31 - Math.clz32(bytes) - 4);
  return Math.ceil(bytes / step) * step;
}

/** Spares of this thread. */
export const spareBuffers = new SpareBuffers();
