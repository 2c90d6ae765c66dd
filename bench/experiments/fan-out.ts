import { FanOut } from '../gateway-pools/fan-out.ts';
import type { Experiment, Measure } from './experiment.ts';
import { Chance, Zipf } from './sim/chance.ts';

interface Setting {
  proxies: number;
  groups: number;
  keys: number;
  exponent: number;
  /** Entries of each proxy's cache. */
  entries: number;
  requests: number;
}

interface Run {
  /** Per cent of the second half of the requests. */
  hits: number;
  /** Requests of the busiest proxy over the mean. */
  hottest: number;
  /** Requests for the hottest key at the proxy that serves most of them. */
  peakOfKey: number;
}

function run({ proxies, groups, keys, exponent, entries, requests }: Setting, seed: number): Run {
  const chance = new Chance(seed);
  const zipf = new Zipf(keys, exponent, chance);
  const fanOut = new FanOut(proxies, groups);
  const caches = Array.from({ length: proxies }, () => new Set<number>());
  const served = new Uint32Array(proxies);
  const hot = new Uint32Array(proxies);
  let hits = 0;
  for (let n = 0; n < requests; n++) {
    const key = zipf.next();
    const proxy = fanOut.pick(key, chance);
    const cache = caches[proxy]!;
    const isHit = touch(cache, key, entries);
    if (n < requests / 2) continue;
    if (isHit) hits++;
    served[proxy]!++;
    if (key === 0) hot[proxy]!++;
  }
  const half = requests / 2;
  return {
    hits: (100 * hits) / half,
    hottest: Math.max(...served) / (half / proxies),
    peakOfKey: Math.max(...hot),
  };
}

/** Whether it was there; it is the most recently used one from now on. A set keeps the order of insertion. */
function touch(cache: Set<number>, key: number, entries: number): boolean {
  const isHit = cache.delete(key);
  cache.add(key);
  if (cache.size > entries) for (const oldest of cache) return cache.delete(oldest) && isHit;
  return isHit;
}

const main: Setting = {
  proxies: 375,
  groups: 75,
  keys: 60_000,
  exponent: 0.6,
  entries: 640,
  requests: 8_000_000,
};

/** The paper's other rows, scaled down to as many requests a proxy, with sets of keys that give its rates before. */
const rows: readonly (Omit<Setting, 'requests'> & { paper: string; after: number })[] = [
  {
    proxies: 163,
    groups: 32,
    keys: 3400,
    exponent: 0.65,
    entries: 52,
    paper: '5 to 67 %',
    after: 67,
  },
  {
    proxies: 115,
    groups: 15,
    keys: 13_000,
    exponent: 0.6,
    entries: 230,
    paper: '10 to 33 %',
    after: 33,
  },
  {
    proxies: 79,
    groups: 15,
    keys: 4000,
    exponent: 0.75,
    entries: 115,
    paper: '24 to 60 %',
    after: 60,
  },
  {
    proxies: 151,
    groups: 15,
    keys: 4000,
    exponent: 0.75,
    entries: 115,
    paper: '24 to 60 %',
    after: 60,
  },
  {
    proxies: 420,
    groups: 15,
    keys: 4000,
    exponent: 0.75,
    entries: 115,
    paper: '24 to 60 %',
    after: 60,
  },
];

export const fanOut: Experiment = {
  id: 'AB-4.4-fanout',
  title: 'Limited fan-out of keys over proxies',
  kind: 'SIM',
  source: 'ABase, section 4.4 and Table 2',
  setup:
    'Withdrawn as a claim about the server, which has one gateway a protocol and does not run this policy (bench/gateway-pools). ' +
    '375 proxies with 640 entries each and 60,000 keys by Zipf 0.6: any proxy for any key, and 75 groups. Then the ' +
    "other rows of the paper's table in a smaller size, and all numbers of groups.",
  run({ seeds, quick, progress }) {
    const some = seeds.slice(0, quick ? 1 : 3);
    const requests = quick ? 2_000_000 : main.requests;
    const runs = (setting: Setting): Run[] =>
      some.map((seed) => {
        progress(`${setting.proxies} proxies in ${setting.groups} groups, seed ${seed}`);
        return run(setting, seed);
      });
    const before = runs({ ...main, requests, groups: 1 });
    const after = runs({ ...main, requests });
    // The steps of the sweep, of which the third and the fifth are compared below.
    const sweep = [1, 5, 15, 25, 75, 125, 375].map((groups) => ({
      groups,
      ...run({ ...main, groups, requests: requests / (quick ? 4 : 2) }, some[0]!),
    }));
    const measures: Measure[] = [
      {
        metric: 'hits without groups, %',
        value: mean(before, 'hits'),
        threshold: 6,
        better: 'lower',
        paper: '5 %',
      },
      {
        metric: 'hits, %',
        value: mean(after, 'hits'),
        threshold: 86,
        better: 'higher',
        without: mean(before, 'hits'),
        paper: '86 %',
      },
      {
        metric: 'requests that the node is spared, %',
        value: 100 - (100 * (100 - mean(after, 'hits'))) / (100 - mean(before, 'hits')),
        threshold: 85,
        better: 'higher',
        paper: '85 %',
      },
      {
        metric: 'hottest proxy, of the mean',
        value: mean(after, 'hottest'),
        threshold: 1.5,
        better: 'lower',
      },
      {
        metric: 'more groups, more hits: steps of the sweep in which they fall',
        value: falls(sweep.map(({ hits }) => hits)),
        threshold: 0,
        better: 'lower',
      },
      {
        metric:
          "a hot key's peak at one proxy for 75 groups, of that for 15 times 5, furthest off, %",
        value: Math.abs(sweep[4]!.peakOfKey / (sweep[2]!.peakOfKey * 5) - 1) * 100,
        threshold: 25,
        better: 'lower',
      },
    ];
    for (const { paper, after: target, ...setting } of rows) {
      const own = { ...setting, requests: setting.proxies * (quick ? 6000 : 12_000) };
      // The case without groups is shown, not judged.
      const without = quick ? {} : { without: mean(runs({ ...own, groups: 1 }), 'hits') };
      measures.push({
        metric: `${setting.proxies} proxies in ${setting.groups} groups: hits, %`,
        value: mean(runs(own), 'hits'),
        threshold: target,
        better: 'higher',
        ...without,
        paper,
      });
    }
    const line = (of: 'hits' | 'hottest') => ({
      label: of === 'hits' ? 'hits, %' : 'hottest proxy, % of the mean',
      points: sweep.map((one): [number, number] => [
        one.groups,
        of === 'hits' ? one.hits : one.hottest * 100,
      ]),
    });
    return {
      measures,
      xLabel: 'groups',
      yLabel: '%',
      before: {
        title: 'any proxy for any key',
        lines: [
          {
            label: 'hits, %',
            points: [[1, sweep[0]!.hits] as const, [375, sweep[0]!.hits] as const],
          },
        ],
      },
      after: { title: 'by number of groups', lines: [line('hits'), line('hottest')] },
    };
  },
};

function mean(runs: readonly Run[], of: keyof Run): number {
  return runs.reduce((sum, one) => sum + one[of], 0) / runs.length;
}

function falls(values: readonly number[]): number {
  return values.filter((value, i) => i > 0 && value < values[i - 1]! - 0.1).length;
}
