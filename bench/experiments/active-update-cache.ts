import { ActiveUpdateCache, type Flight } from '../../access/gateway/active-update-cache.ts';
import { Heap } from '../../request-units/heap.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance, Zipf } from './sim/chance.ts';

const hotPerSecond = 50_000;
const coldPerSecond = 5000;
const coldKeys = 100_000;
const ttlMs = 10_000;
/** Time of a node's answer, in milliseconds. */
const typicalMs = 5;
const hot = 'hot';

type Way = 'plain' | 'single' | 'active';

interface Run {
  /** Most reads of the hot key that its node got in any time to live. */
  readsPerTtl: number;
  mostAtOnce: number;
  /** Milliseconds between when a value was read at its node and when a client got it from the cache. */
  oldest: number;
  /** Reads of the hot key that a node was asked for or that waited for that, a minute, after its first load. */
  late: number;
  /** Reads of the hot key at its node by second. */
  bySecond: Float64Array;
}

interface Read {
  key: string;
  askedAt: number;
  /** When the node reads it. */
  servedAt: number;
  endsAt: number;
  flight: Flight | undefined;
}

/**
 * A cache without refresh: the reader that misses an expired entry fetches it. Capacity is
 * unlimited, as only time matters here.
 */
class PlainCache {
  readonly #entries = new Map<string, { value: number; until: number }>();

  get(key: string, now: number): number | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || now >= entry.until ? undefined : entry.value;
  }

  set(key: string, value: number, askedAt: number): void {
    this.#entries.set(key, { value, until: askedAt + ttlMs });
  }
}

const capacityBytes = 16 * 1024 * 1024;
const valueBytes = 1000;

function run(way: Way, seconds: number, seed: number): Run {
  const chance = new Chance(seed);
  const zipf = new Zipf(coldKeys, 0.8, chance);
  const plain = new PlainCache();
  const cache = new ActiveUpdateCache<number>(
    { ttlMs, capacityBytes, ...(way === 'single' && { hotHits: Infinity }) },
    chance,
  );
  const reads = new Heap<Read>((a, b) => a.endsAt < b.endsAt);
  const hotReads: number[] = [];
  const bySecond = new Float64Array(seconds);
  let [now, atOnce, mostAtOnce, oldest, late] = [0, 0, 0, 0, 0];
  const begin = (key: string, flight: Flight | undefined): void => {
    const took = typicalMs * chance.lognormal(0, 0.3);
    reads.push({ key, askedAt: now, servedAt: now + took / 2, endsAt: now + took, flight });
    if (key !== hot) return;
    hotReads.push(now);
    bySecond[Math.floor(now / 1000)]!++;
    mostAtOnce = Math.max(mostAtOnce, ++atOnce);
  };
  const end = ({ key, askedAt, servedAt, flight }: Read): void => {
    if (key === hot) atOnce--;
    if (flight !== undefined) cache.loaded(flight, servedAt, valueBytes);
    else plain.set(key, servedAt, askedAt);
  };
  const read = (key: string): void => {
    let value: number | undefined;
    if (way === 'plain') {
      value = plain.get(key, now);
      if (value === undefined) begin(key, undefined);
    } else {
      const look = cache.look(key, now);
      if (look === 'hit' || look === 'refresh') value = cache.value;
      if (look === 'load' || look === 'refresh') begin(key, cache.flight);
    }
    if (value !== undefined) oldest = Math.max(oldest, now - value);
    else if (key === hot && now > 100) late++;
  };
  let swept = 0;
  while (now < seconds * 1000) {
    now += chance.exponential((hotPerSecond + coldPerSecond) / 1000);
    if (now >= seconds * 1000) break;
    for (let first = reads.peek(); first !== undefined && first.endsAt <= now; ) {
      end(reads.pop()!);
      first = reads.peek();
    }
    read(chance.happens(hotPerSecond / (hotPerSecond + coldPerSecond)) ? hot : names[zipf.next()]!);
    if (way === 'plain' || now < swept + 500) continue;
    swept = now;
    cache.sweep(now, (flight) => begin(flight.key, flight));
  }
  return {
    readsPerTtl: mostWithin(hotReads, ttlMs),
    mostAtOnce,
    oldest,
    late: (late * 60) / seconds,
    bySecond,
  };
}

const names = Array.from({ length: coldKeys }, (_, i) => `cold:${i}`);

function mostWithin(times: readonly number[], span: number): number {
  let most = 0;
  for (let from = 0, to = 0; to < times.length; to++) {
    while (times[to]! - times[from]! >= span) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

function lineOf({ bySecond }: Run): Line[] {
  const points = Array.from(bySecond, (count, second): [number, number] => [second, count]);
  return [{ label: "hot key's reads at its node", points }];
}

export const activeUpdateCache: Experiment = {
  id: 'AB-4.4-aulru',
  title: 'Hot entries of the gateway cache are refreshed before they expire',
  kind: 'SIM',
  quickSeeds: 1,
  source: 'ABase, section 4.4',
  setup:
    'One proxy: a key of 50,000 reads a second beside 5,000 of 100,000 others (Zipf 0.8), a cache of 16 MiB, a time to live of ' +
    '10 s and a node that answers in about 5 ms. Without: a cache whose entries expire, and everyone who misses reads; of ' +
    'those that wait, one with single loads.',
  run({ quick, seeds, progress }) {
    const seconds = quick ? 25 : 60;
    const runs = (way: Way): Run[] =>
      seeds.map((seed) => {
        progress(`${way}, seed ${seed}`);
        return run(way, seconds, seed);
      });
    const plain = runs('plain');
    const single = runs('single');
    const active = runs('active');
    type Figure = 'readsPerTtl' | 'mostAtOnce' | 'oldest' | 'late';
    const most = (all: readonly Run[], of: Figure): number =>
      Math.max(...all.map((one) => one[of]));
    const mean = (all: readonly Run[], of: Figure): number =>
      all.reduce((sum, one) => sum + one[of], 0) / all.length;
    return {
      measures: [
        {
          metric: 'most reads of the hot key at its node in any time to live',
          value: most(active, 'readsPerTtl'),
          threshold: 2,
          better: 'lower',
          without: most(plain, 'readsPerTtl'),
        },
        {
          metric: 'most of them at once',
          value: most(active, 'mostAtOnce'),
          threshold: 1,
          better: 'lower',
          without: most(plain, 'mostAtOnce'),
        },
        {
          metric: 'the same in a cache whose entries expire, the mean of seeds',
          value: mean(plain, 'mostAtOnce'),
          threshold: 100,
          better: 'higher',
        },
        {
          metric: 'oldest answer, ms since its node was read',
          value: most(active, 'oldest'),
          threshold: ttlMs,
          better: 'lower',
          without: most(plain, 'oldest'),
        },
        {
          metric: 'reads of the hot key a minute that had to wait for a node',
          value: mean(active, 'late'),
          threshold: 0,
          better: 'lower',
          without: mean(single, 'late'),
        },
      ],
      xLabel: 'second',
      yLabel: 'reads/s',
      before: { title: 'entries expire', lines: lineOf(plain[0]!) },
      after: { title: 'and are refreshed', lines: lineOf(active[0]!) },
    };
  },
};
