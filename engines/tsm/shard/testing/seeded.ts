import type { Rng } from '../../../../universal-row/environment.ts';

/** The same numbers for the same seed. */
export function seeded(seed: number): Rng {
  let state = Math.imul(seed, 2_654_435_761) + 1;
  return {
    next() {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}
