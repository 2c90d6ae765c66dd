// Memory for typed arrays that live no longer than the work on one batch.

import { type Form, formBytes, type Values, valuesIn } from '../head/packed-column.ts';

const initialBytes = 256 * 1024;

export class Scratch {
  #memory = new ArrayBuffer(initialBytes);
  #used = 0;

  /** Arrays given out so far are not used any more. */
  clear(): void {
    this.#used = 0;
  }

  /** Arrays keep their previous contents. */
  values(form: Form, count: number): Values {
    const at = this.#take(count * formBytes[form]);
    return valuesIn(form, this.#memory, at, count);
  }

  bytes(count: number): Uint8Array {
    const at = this.#take(count);
    return new Uint8Array(this.#memory, at, count);
  }

  u16(count: number): Uint16Array {
    const at = this.#take(count * 2);
    return new Uint16Array(this.#memory, at, count);
  }

  u32(count: number): Uint32Array {
    const at = this.#take(count * 4);
    return new Uint32Array(this.#memory, at, count);
  }

  f64(count: number): Float64Array {
    const at = this.#take(count * 8);
    return new Float64Array(this.#memory, at, count);
  }

  #take(bytes: number): number {
    if (this.#used + bytes > this.#memory.byteLength) {
      // Arrays given out keep the memory they are in.
      this.#memory = new ArrayBuffer(Math.max(bytes, this.#memory.byteLength * 2));
      this.#used = 0;
    }
    const at = this.#used;
    this.#used = (at + bytes + 7) & ~7;
    return at;
  }
}
