// A Bloom filter that shows that a key is not in a table, so that writes of new rows need no reads. The filter grows
// by adding parts, each twice the size of the one before. With ten bits and five probes a key, about one in a hundred
// absent keys is looked up in vain.

const bitsPerKey = 10;
const probes = 5;

class Part {
  readonly #words: Uint32Array;
  readonly #mask: number;
  #room: number;

  constructor(keys: number) {
    const bits = 2 ** Math.ceil(Math.log2(keys * bitsPerKey));
    this.#words = new Uint32Array(bits / 32);
    this.#mask = bits - 1;
    this.#room = Math.floor(bits / bitsPerKey);
  }

  get full(): boolean {
    return this.#room <= 0;
  }

  get bytes(): number {
    return this.#words.length * 4;
  }

  add(high: number, low: number): void {
    let at = high;
    let isNew = false;
    for (let i = 0; i < probes; i++) {
      const bit = at & this.#mask;
      const word = this.#words[bit >>> 5]!;
      const mark = 1 << (bit & 31);
      if ((word & mark) === 0) isNew = true;
      this.#words[bit >>> 5] = word | mark;
      at = (at + low) | 0;
    }
    if (isNew) this.#room--;
  }

  mayHold(high: number, low: number): boolean {
    let at = high;
    for (let i = 0; i < probes; i++) {
      const bit = at & this.#mask;
      if ((this.#words[bit >>> 5]! & (1 << (bit & 31))) === 0) return false;
      at = (at + low) | 0;
    }
    return true;
  }
}

export class KeyFilter {
  readonly #parts: Part[];
  #keys: number;

  constructor(keys = 4096) {
    this.#keys = keys;
    this.#parts = [new Part(keys)];
  }

  get bytes(): number {
    let bytes = 0;
    for (const part of this.#parts) bytes += part.bytes;
    return bytes;
  }

  /** `hash` is below 2^48 and well spread. */
  add(hash: number): void {
    const high = Math.floor(hash / 65536) | 0;
    const low = step(hash);
    let last = this.#parts[this.#parts.length - 1]!;
    if (last.full) {
      this.#keys *= 2;
      last = new Part(this.#keys);
      this.#parts.push(last);
    }
    last.add(high, low);
  }

  mayHold(hash: number): boolean {
    const high = Math.floor(hash / 65536) | 0;
    const low = step(hash);
    for (const part of this.#parts) if (part.mayHold(high, low)) return true;
    return false;
  }
}

/** The distance between probes: odd, so that it meets every bit of a power of two. */
function step(hash: number): number {
  const high = Math.floor(hash / 65536);
  return Math.imul(high ^ (hash % 65536), 0x9e3779b1) | 1;
}
