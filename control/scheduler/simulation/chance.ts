// Random processes of the workloads, all from one seed.

import type { Rng } from '../../../universal-row/environment.ts';

export class Chance implements Rng {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** Uniform in [0, 1). */
  next(): number {
    return this.#random();
  }

  uniform(from: number, to: number): number {
    return from + (to - from) * this.#random();
  }

  /** A whole number from 0 to n - 1. */
  below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  happens(probability: number): boolean {
    return this.#random() < probability;
  }

  /** Time to the next event of a Poisson process with so many events a unit of time. */
  exponential(rate: number): number {
    return -Math.log(1 - this.#random()) / rate;
  }

  normal(mean = 0, deviation = 1): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.#random()));
    return mean + deviation * radius * Math.cos(2 * Math.PI * this.#random());
  }

  /** e to the power of a normal variable. */
  lognormal(mu: number, sigma: number): number {
    return Math.exp(this.normal(mu, sigma));
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

/** Ranks 0 to n - 1, rank r with a weight of 1 / (r + 1) ** exponent. Two numbers a draw (alias method). */
export class Zipf {
  readonly #chance: Chance;
  readonly #threshold: Float64Array;
  readonly #alias: Uint32Array;

  constructor(n: number, exponent: number, chance: Chance) {
    this.#chance = chance;
    this.#threshold = new Float64Array(n);
    this.#alias = new Uint32Array(n);
    const weights = Float64Array.from({ length: n }, (_, r) => (r + 1) ** -exponent);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const small: number[] = [];
    const large: number[] = [];
    for (let r = 0; r < n; r++) {
      weights[r] = (weights[r]! * n) / total;
      (weights[r]! < 1 ? small : large).push(r);
    }
    while (small.length > 0 && large.length > 0) {
      const s = small.pop()!;
      const l = large.pop()!;
      this.#threshold[s] = weights[s]!;
      this.#alias[s] = l;
      weights[l] = weights[l]! + weights[s]! - 1;
      (weights[l]! < 1 ? small : large).push(l);
    }
    for (const r of [...small, ...large]) this.#threshold[r] = 1;
  }

  next(): number {
    const r = this.#chance.below(this.#threshold.length);
    return this.#chance.next() < this.#threshold[r]! ? r : this.#alias[r]!;
  }
}

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
