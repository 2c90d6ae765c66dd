import { Chance } from '../../control/scheduler/simulation/chance.ts';
import { formGroups, lossBound, lossProbability } from '../../control/scheduler/xstor/copysets.ts';
import {
  partitionCount,
  partitionLimits,
  type PlacementParameters,
  type PlacementPod,
  placeTable,
  type TableRequest,
  termsOf,
  usualPlacement,
} from '../../control/scheduler/xstor/place.ts';
import type { Experiment, Measure } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';

const tables = 5000;
const nodes = 9;
const subclusters = 12;
const podCount = nodes * subclusters;
const podLru = 100_000;
const gibibyte = 2 ** 30;

interface Table extends TableRequest {
  /** Share of the bytes set aside that will be used. */
  filled: number;
}

/** So many that the fullest term is about 60 % in the end. */
function drawTables(chance: Chance): { requests: Table[]; diskBytes: number } {
  const limit = partitionLimits(podLru);
  const drawn = Array.from({ length: tables }, () => ({
    lru: chance.lognormal(0, 1.5),
    bytes: chance.lognormal(0, 1.5),
    filled: chance.uniform(0.1, 0.9),
  }));
  const total = (of: 'lru' | 'bytes'): number => drawn.reduce((sum, one) => sum + one[of] * 3, 0);
  const lruScale = (podCount * podLru * usualPlacement.overRu * 0.6) / total('lru');
  const requests = drawn.map(({ lru, bytes, filled }) => {
    const estimate = { lru: lru * lruScale, bytes: bytes * 2 * gibibyte };
    const partitions = partitionCount(estimate, limit);
    const each = (all: number): number => all / partitions;
    return {
      partitions,
      allocatedLru: each(estimate.lru),
      allocatedBytes: each(estimate.bytes),
      filled,
    };
  });
  const bytes = requests.reduce((sum, one) => sum + one.partitions * 3 * one.allocatedBytes, 0);
  return { requests, diskBytes: bytes / podCount / usualPlacement.overDisk / 0.6 };
}

type Terms = Record<PlacementParameters['terms'][number], number>;
const termNames = ['usedDisk', 'allocatedRu', 'allocatedDisk'] as const;

/** Standard deviation of each term over pods, and the largest term. */
function place(
  { requests, diskBytes }: ReturnType<typeof drawTables>,
  parameters: PlacementParameters,
  seed: number,
): { deviation: Terms; most: number; spread: number } {
  const chance = new Chance(seed);
  const pods = Array.from({ length: podCount }, (_, i): PlacementPod => {
    const node = i % nodes;
    const nothing = { usedBytes: 0, allocatedLru: 0, allocatedBytes: 0 };
    const subcluster = Math.floor(i / nodes);
    return { node, zone: node % 3, subcluster, lru: podLru, diskBytes, ...nothing };
  });
  let spread = 0;
  for (const request of requests) {
    const placed = placeTable(pods, request, chance, parameters).flat();
    const held = new Uint32Array(podCount);
    for (const pod of placed) {
      held[pod]!++;
      pods[pod]!.usedBytes += request.allocatedBytes * request.filled;
    }
    spread = Math.max(spread, Math.max(...held) - Math.min(...held));
  }
  const terms = pods.map((pod) =>
    termsOf(pod, { allocatedLru: 0, allocatedBytes: 0 }, usualPlacement),
  );
  const deviationOf = (name: (typeof termNames)[number]): number => {
    const mean = terms.reduce((sum, one) => sum + one[name], 0) / podCount;
    return Math.sqrt(terms.reduce((sum, one) => sum + (one[name] - mean) ** 2, 0) / podCount);
  };
  return {
    deviation: {
      usedDisk: deviationOf('usedDisk'),
      allocatedRu: deviationOf('allocatedRu'),
      allocatedDisk: deviationOf('allocatedDisk'),
    },
    most: Math.max(...terms.flatMap((one) => Object.values(one))),
    spread,
  };
}

export const placementScore: Experiment = {
  id: 'XS-5.3-place',
  title: 'New tables are placed by an even spread and a score',
  kind: 'SIM',
  source: 'X-Stor, section 5.3.1, eq. 6',
  setup:
    '5,000 tables with lognormal estimates of load and size come one by one to 108 pods in 12 subclusters; of the bytes ' +
    'set aside for each 10 to 90 % are used. The even spread is the same for all; the rest goes by the score of eq. 6, ' +
    'at random, or by one of its terms alone.',
  run({ seeds, quick, progress }) {
    const runs = seeds.slice(0, quick ? 1 : seeds.length).map((seed) => {
      progress(`seed ${seed}`);
      const drawn = drawTables(new Chance(seed));
      const by = (terms: PlacementParameters['terms']) =>
        place(drawn, { ...usualPlacement, terms }, seed);
      return {
        scored: by(usualPlacement.terms),
        // Without terms all scores are 0, and chance decides.
        random: by([]),
        single: termNames.map((name) => by([name])),
      };
    });
    const worstOf = (deviation: Terms): number => Math.max(...Object.values(deviation));
    const names: Record<(typeof termNames)[number], string> = {
      usedDisk: 'disk used',
      allocatedRu: 'LRU set aside',
      allocatedDisk: 'disk set aside',
    };
    const measures: Measure[] = [
      ...termNames.map((name) =>
        overSeeds(
          runs.map(({ scored, random }) => scored.deviation[name] / random.deviation[name]),
          {
            metric: `${names[name]}: deviation over pods, of that of random placement`,
            threshold: 0.5,
            better: 'lower',
          },
          runs.map(() => 1),
        ),
      ),
      ...termNames.map((name, i) =>
        overSeeds(
          runs.map(
            ({ scored, single }) => worstOf(scored.deviation) / worstOf(single[i]!.deviation),
          ),
          {
            metric: `worst deviation, of that of placement by ${names[name]} alone`,
            threshold: 0.8,
            better: 'lower',
          },
          runs.map(() => 1),
        ),
      ),
      overSeeds(
        runs.map(({ scored }) => scored.most),
        { metric: 'largest term of any pod', threshold: usualPlacement.threshold, better: 'lower' },
      ),
      overSeeds(
        runs.map(({ scored }) => scored.spread),
        {
          metric: 'replicas of a table on its fullest pod beyond those on its emptiest, most',
          threshold: 1,
          better: 'lower',
        },
      ),
    ];
    const line = (of: 'scored' | 'random') =>
      termNames.map((name) => ({
        label: names[name],
        points: runs.map((one, i): [number, number] => [i + 1, one[of].deviation[name]]),
      }));
    return {
      measures,
      xLabel: 'seed',
      yLabel: 'deviation of the term over pods',
      before: { title: 'at random', lines: line('random') },
      after: { title: 'by the score', lines: line('scored') },
    };
  },
};

interface DiskSetting {
  nodes: number;
  partitions: number;
}

/** Loss probability when three disks fail, of partitions in subclusters and of partitions anywhere. */
function losses({ nodes: size, partitions }: DiskSetting, seed: number): [number, number] {
  const chance = new Chance(seed);
  const members = Array.from({ length: size }, (_, node) => ({ node, zone: node % 3 }));
  const [group] = formGroups(members, size);
  const disks = size * subclusters;
  // Disk s of node n is that of the pod of subcluster s.
  const pods = Array.from({ length: disks }, (_, i): PlacementPod => {
    const node = group![i % size]!;
    const load = { usedBytes: 0, allocatedLru: 0, allocatedBytes: 0 };
    const subcluster = Math.floor(i / size);
    return { node, zone: node % 3, subcluster, lru: Infinity, diskBytes: Infinity, ...load };
  });
  const request = { partitions: 10, allocatedLru: 0, allocatedBytes: 0 };
  const inSubclusters: number[][] = [];
  while (inSubclusters.length < partitions) {
    inSubclusters.push(...placeTable(pods, request, chance));
  }
  const anywhere = Array.from({ length: partitions }, () => {
    const chosen: number[] = [];
    while (chosen.length < 3) {
      const disk = chance.below(disks);
      if (chosen.every((one) => one % size !== disk % size)) chosen.push(disk);
    }
    return chosen;
  });
  return [lossProbability(inSubclusters, disks), lossProbability(anywhere, disks)];
}

export const copysets: Experiment = {
  id: 'XS-3-copyset',
  title: 'Subclusters keep partitions from sharing many sets of disks',
  kind: 'SIM',
  source: 'X-Stor, section 3',
  setup:
    'Three disks chosen at random fail at once; the chance that a partition has all its replicas on them, counted over ' +
    'all triples of disks. Partitions are placed into the 12 subclusters of a group of 27 or 9 nodes, and anywhere on ' +
    'three nodes.',
  run({ seeds, quick, progress }) {
    const some = seeds.slice(0, quick ? 1 : seeds.length);
    const many = quick ? 12_000 : 100_000;
    const settings: (DiskSetting & { threshold: number })[] = [
      { nodes: 9, partitions: 10_170, threshold: 0.49 },
      { nodes: 9, partitions: many, threshold: 0.49 },
      { nodes: 27, partitions: 10_170, threshold: 0.63 },
      { nodes: 27, partitions: many, threshold: 0.63 },
    ];
    const measures: Measure[] = [];
    const points: Record<'in subclusters' | 'anywhere', [number, number][]> = {
      'in subclusters': [],
      anywhere: [],
    };
    for (const { threshold, ...setting } of settings) {
      progress(`${setting.nodes} nodes, ${setting.partitions} partitions`);
      const runs = some.map((seed) => losses(setting, seed));
      const [inSubclusters, anywhere] = [0, 1].map((i) => runs.map((run) => run[i]! * 100));
      measures.push(
        overSeeds(
          inSubclusters!,
          {
            metric: `${setting.nodes} nodes, ${setting.partitions} partitions: loss when three disks fail, %`,
            threshold,
            better: 'lower',
          },
          anywhere,
        ),
      );
      if (setting.nodes === 9 && setting.partitions === 10_170) {
        measures.push(
          overSeeds(
            anywhere!.map((one, i) => one / inSubclusters![i]!),
            {
              metric: 'anywhere, times as likely as in subclusters (9 nodes, 10,170 partitions)',
              threshold: 9,
              better: 'higher',
            },
          ),
        );
      }
    }
    for (const partitions of [100, 300, 1000, 3000, 10_000]) {
      const [inSubclusters, anywhere] = losses({ nodes: 9, partitions }, 1);
      points['in subclusters'].push([partitions, inSubclusters * 100]);
      points.anywhere.push([partitions, anywhere * 100]);
    }
    measures.push({
      metric: 'bound for 27 nodes, however many partitions there are, %',
      value: lossBound(27) * 100,
      threshold: 0.63,
      better: 'lower',
    });
    const line = (label: keyof typeof points) => ({ label, points: points[label] });
    return {
      measures,
      xLabel: 'partitions on 9 nodes',
      yLabel: '% that three failed disks lose one',
      before: { title: 'anywhere', lines: [line('anywhere')] },
      after: { title: 'in subclusters', lines: [line('in subclusters')] },
    };
  },
};
