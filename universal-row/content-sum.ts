// A checksum over a set of items, independent of their order. It detects damage; it does not protect against a forger.

/** A 64-bit sum in two halves, each mixed in a different way. */
export class ContentSum {
  #low = 0;
  #high = 0;

  /** Adds an item `what` with this `content`; both are 32-bit hashes. */
  add(what: number, content: number): void {
    this.#low = (this.#low + mix(what, content)) >>> 0;
    this.#high = (this.#high + mix(content ^ 0x5bd1e995, what)) >>> 0;
  }

  /** Adds another set, by its sum. */
  addSum(text: string): void {
    this.#high = (this.#high + Number.parseInt(text.slice(0, 8), 16)) >>> 0;
    this.#low = (this.#low + Number.parseInt(text.slice(8), 16)) >>> 0;
  }

  /** In hexadecimal. */
  get text(): string {
    return [this.#high, this.#low].map((lane) => lane.toString(16).padStart(8, '0')).join('');
  }
}

const double = new Float64Array(1);
const words = new Int32Array(double.buffer);

/** By its bits: 0 and -0 are two numbers. */
export function hashNumber(value: number): number {
  double[0] = value;
  return mix(words[0]!, words[1]!);
}

/** Two numbers to one, every bit of which depends on every bit of theirs. */
export function mix(a: number, b: number): number {
  let h = Math.imul(a ^ (b >>> 15) ^ (b << 17), 0x85ebca6b) ^ Math.imul(b, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}
