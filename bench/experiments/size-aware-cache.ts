import { mean } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance, Zipf } from './sim/chance.ts';
import { type Cache, PlainCache, SizeAwareCache, sizeOf } from './workloads/sized-trace.ts';

const itemCount = 50_000;
const exponent = 0.9;
/** Size of the cache as a fraction of all bytes. */
const cacheShare = 0.05;
/** Accesses after which the cache's window has slid by half. */
const windowAccesses = 20_000;
/** Items in each of the two sizes of the shift, and popular ones among all. */
const [small, large] = [100, 4000];
const shiftItems = 20_000;
const popularShare = 0.01;
const shiftCapacity = 4_000_000;

interface Misses {
  plain: number;
  sizeAware: number;
  lines: Line[];
}

/** Both caches over one trace; misses after the first quarter, in which they fill. */
function misses(accesses: number, seed: number): Misses {
  const chance = new Chance(seed);
  const sizes = Array.from({ length: itemCount }, () => sizeOf(chance));
  const capacity = sizes.reduce((sum, size) => sum + size, 0) * cacheShare;
  const zipf = new Zipf(itemCount, exponent, chance);
  const caches = [new PlainCache(capacity), new SizeAwareCache(capacity, windowAccesses)];
  const missed = [0, 0];
  const points: [number, number][][] = [[], []];
  const recent = [0, 0];
  const slice = accesses / 40;
  for (let n = 0; n < accesses; n++) {
    const id = zipf.next();
    caches.forEach((cache, which) => {
      if (cache.access(id, sizes[id]!)) return;
      recent[which]!++;
      if (n >= accesses / 4) missed[which]!++;
    });
    if ((n + 1) % slice !== 0) continue;
    recent.forEach((count, which) => {
      points[which]!.push([(n + 1) / 1000, (100 * count) / slice]);
      recent[which] = 0;
    });
  }
  return {
    plain: missed[0]!,
    sizeAware: missed[1]!,
    lines: ['plain LRU', 'size-aware'].map((label, which) => ({ label, points: points[which]! })),
  };
}

/**
 * At first popular items are small and the rest large. Then all items are replaced by large popular items and a small
 * rest. Returns the hits of popular items in the third window after that, relative to a cache that saw only the new items.
 */
function recovery(windows: number, seed: number): number {
  const chance = new Chance(seed);
  const zipf = new Zipf(shiftItems, exponent, chance);
  const access = (cache: Cache, isLarge: boolean, count: number): number => {
    let hits = 0;
    for (let n = 0; n < count; n++) {
      const rank = zipf.next();
      const isPopular = rank < shiftItems * popularShare;
      const id = (isLarge ? shiftItems : 0) + rank;
      const isHit = cache.access(id, isPopular === isLarge ? large : small);
      if (isHit && isPopular) hits++;
    }
    return hits;
  };
  const shifted = new SizeAwareCache(shiftCapacity, windowAccesses);
  access(shifted, false, windows * windowAccesses);
  access(shifted, true, 2 * windowAccesses);
  const fresh = new SizeAwareCache(shiftCapacity, windowAccesses);
  access(fresh, true, windows * windowAccesses);
  return access(shifted, true, windowAccesses) / access(fresh, true, windowAccesses);
}

export const sizeAwareCache: Experiment = {
  id: 'AB-4.4-salru',
  title: 'A cache that prefers small items',
  kind: 'SIM',
  quickSeeds: 1,
  source: 'ABase, section 4.4',
  setup:
    `The order of the key-value engine's cache over ${itemCount.toLocaleString('en')} items with a median of .12 kB, a ` +
    'p90 of 50 kB and a p99 of 308 kB, asked for by Zipf .9, with room for 5 % of all bytes. Then small popular items ' +
    'give way to others that are 40 times as large.',
  run({ seeds, quick, progress }) {
    const accesses = quick ? 400_000 : 1_000_000;
    const runs = seeds.map((seed) => {
      progress(`trace, seed ${seed}`);
      return misses(accesses, seed);
    });
    const recovered = seeds.map((seed) => {
      progress(`shift, seed ${seed}`);
      return recovery(quick ? 5 : 20, seed);
    });
    return {
      measures: [
        {
          metric: 'misses, of those of a plain LRU',
          value: mean(runs.map(({ plain, sizeAware }) => sizeAware / plain)),
          threshold: 0.8,
          better: 'lower',
          without: 1,
        },
        {
          metric:
            'hits of a class that becomes popular, two windows later, of those it will have, %',
          value: 100 * mean(recovered),
          threshold: 90,
          better: 'higher',
        },
      ],
      xLabel: 'thousand requests',
      yLabel: 'misses, %',
      before: { title: 'plain LRU', lines: [runs[0]!.lines[0]!] },
      after: { title: 'size-aware LRU', lines: [runs[0]!.lines[1]!] },
    };
  },
};
