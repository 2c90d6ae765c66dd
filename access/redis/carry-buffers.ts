// Reusable buffers for incomplete or queued requests. Under heavy load every connection needs one several times a
// second; without reuse the garbage collector would run all the time.

import { viewed } from '../../universal-row/bytes.ts';
import { spareBuffers } from '../../universal-row/spare-buffers.ts';

const leastLog2 = 10;
const mostLog2 = 20;
/** Total size of spare buffers, in each thread. */
const keptBytes = 8 * 1024 * 1024;

export const leastCarryBytes = 2 ** leastLog2;

export class CarryBuffers {
  /** By the logarithm of their size. */
  readonly #spares: Buffer[][] = Array.from({ length: mostLog2 + 1 }, () => []);
  /** Bytes of all spares. */
  bytes = 0;

  /** Length of the buffer that `take` gives for `bytes`. */
  static lengthFor(bytes: number): number {
    const log2 = log2For(bytes);
    return log2 > mostLog2 ? bytes : 2 ** log2;
  }

  /** A buffer with room for at least `bytes`; its contents are undefined. */
  take(bytes: number): Buffer {
    const log2 = log2For(bytes);
    // The largest are rare, as large as they must be, and kept for a moment only.
    if (log2 > mostLog2) return viewed(spareBuffers.take(bytes));
    const spare = this.#spares[log2]!.pop();
    if (spare === undefined) return viewed(Buffer.allocUnsafeSlow(2 ** log2));
    this.bytes -= spare.length;
    return spare;
  }

  /** Returns a buffer that is no longer read. */
  give(buffer: Buffer): void {
    const { length } = buffer;
    if (length > 2 ** mostLog2) {
      spareBuffers.give(buffer);
      return;
    }
    if (this.bytes + length > keptBytes) return;
    this.#spares[31 - Math.clz32(length)]!.push(buffer);
    this.bytes += length;
  }
}

function log2For(bytes: number): number {
  return Math.max(leastLog2, 32 - Math.clz32(bytes - 1));
}

/** Buffers of this thread. */
export const carryBuffers = new CarryBuffers();
