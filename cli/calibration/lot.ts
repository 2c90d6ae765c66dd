/** Deterministic pseudo-random numbers, so that two runs of one release measure the same. */
export class Lot {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * limit);
  }

  /** The numbers below `count`, in an order of their own. */
  order(count: number): number[] {
    const numbers = Array.from({ length: count }, (_, i) => i);
    for (let i = count - 1; i > 0; i--) {
      const other = this.below(i + 1);
      [numbers[i], numbers[other]] = [numbers[other]!, numbers[i]!];
    }
    return numbers;
  }
}
