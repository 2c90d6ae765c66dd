// Where to cut a region so that the left part has a ratio of its load: Libra, section IV-B. The node samples the
// region's requests for a while. Those that span the cut count for both sides, so that there is no exact answer; a lower
// and an upper bound are found, and the cut is between them.

export interface RequestSample<Key> {
  start: Key;
  /** Inclusive; of a request for one key it is `start`. */
  end: Key;
  /** Operations or bytes, by the dimension that matters. */
  weight: number;
}

/**
 * The first key of the right part: a key of the sample, halfway between the bounds in the order of sampled keys.
 * undefined when all requests are for one key, so that no cut divides the load.
 */
export function splitPoint<Key>(
  samples: readonly RequestSample<Key>[],
  ratio: number,
  compare: (a: Key, b: Key) => number,
): Key | undefined {
  return splitPoints(samples, [ratio], compare)[0];
}

/**
 * First keys of all parts but the leftmost, so that the parts have these ratios of the load, from the left, and the
 * last one the rest. Ascending, and fewer where two cuts are at one key.
 */
export function splitPoints<Key>(
  samples: readonly RequestSample<Key>[],
  ratios: readonly number[],
  compare: (a: Key, b: Key) => number,
): Key[] {
  const byStart = [...samples].sort((a, b) => compare(a.start, b.start));
  const keys = byStart
    .map(({ start }) => start)
    .filter((key, i, all) => i === 0 || compare(key, all[i - 1]!) !== 0);
  if (keys.length <= 1) return [];
  const byEnd = [...samples].sort((a, b) => compare(b.end, a.end));
  const total = samples.reduce((sum, { weight }) => sum + weight, 0);
  const places = new Set<number>();
  let ratio = 0;
  for (const part of ratios) {
    ratio += part;
    const lower = byStart[Math.min(byStart.length - 1, reach(byStart, ratio * total))]!.start;
    const upper = byEnd[Math.max(0, reach(byEnd, (1 - ratio) * total) - 1)]!.end;
    const between = (placeOf(keys, lower, compare) + placeOf(keys, upper, compare)) / 2;
    // The left part must not be empty.
    places.add(Math.min(keys.length - 1, Math.max(1, Math.round(between))));
  }
  return [...places].map((place) => keys[place]!);
}

/** How many of the first samples have this weight together. */
function reach<Key>(samples: readonly RequestSample<Key>[], weight: number): number {
  let sum = 0;
  for (let i = 0; i < samples.length; i++) {
    sum += samples[i]!.weight;
    // Rounding must not take one more.
    if (sum >= weight * (1 - 1e-12)) return i + 1;
  }
  return samples.length;
}

/** Index of the first key that is not before `key`. */
function placeOf<Key>(keys: readonly Key[], key: Key, compare: (a: Key, b: Key) => number): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(keys[middle]!, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
