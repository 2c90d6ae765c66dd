// The I/O scheduler of a pod on a simulated disk, with the server's defaults and with one rule switched off at a time.

import {
  IoScheduler,
  type IoSchedulerOptions,
} from '../../storage-node/admission/disk/io-scheduler.ts';
import { percentile } from '../support/statistics.ts';
import type { Experiment, ExperimentContext, Line, Outcome } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';
import { Simulation } from './sim/simulation.ts';

/** The disk: milliseconds an operation takes, and bytes it transfers. */
const operationMs = 0.1;
const bytesPerMs = 500_000;
const blockBytes = 4096;

interface Reads {
  tenant: number;
  weight: number;
  recordBytes: number;
  /** Records of each read. */
  records: number;
  /** The records are in order: a page of a scan. */
  isPage: boolean;
  /** Reads a second at random times; or so many reads that are always queued or running. */
  load: { perSecond: number } | { outstanding: number };
}

interface Served {
  /** Milliseconds from request to answer of each read. */
  latencies: number[];
  /** Milliseconds of disk time. */
  diskMs: number;
  records: number;
}

/** Runs the loads, in their order, against a scheduler with these options. */
function run(
  options: Partial<IoSchedulerOptions>,
  loads: readonly Reads[],
  seconds: number,
  seed: number,
): Served[] {
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const scheduler = new IoScheduler({
    clock: simulation,
    ownerOf: (table) => table,
    // The experiment is about the time in which several tenants read.
    aloneMs: Infinity,
    ...options,
  });
  const all = loads.map((): Served => ({ latencies: [], diskMs: 0, records: 0 }));
  loads.forEach(({ tenant, weight, recordBytes, records, isPage, load }, index) => {
    scheduler.setWeight(tenant, weight);
    const bytes = records * recordBytes;
    const operations = isPage ? Math.ceil(bytes / blockBytes) : records;
    const takesMs = operations * operationMs + bytes / bytesPerMs;
    const ask = (): void => {
      const askedAt = simulation.now();
      scheduler.pass(tenant, records, isPage, () => ({
        then(ended) {
          simulation.after(takesMs, () => {
            const served = all[index]!;
            served.latencies.push(simulation.now() - askedAt);
            served.diskMs += takesMs;
            served.records += records;
            void ended?.(bytes);
            if ('outstanding' in load) ask();
          });
          return undefined as never;
        },
      }));
    };
    if ('outstanding' in load) {
      for (let i = 0; i < load.outstanding; i++) simulation.after(chance.uniform(0, 1), ask);
    } else {
      const next = (): void =>
        simulation.after(chance.exponential(load.perSecond / 1000), () => {
          ask();
          next();
        });
      next();
    }
  });
  simulation.runUntil(seconds * 1000);
  return all;
}

/** A tenant that always has many reads queued. */
const busy = (tenant: number, weight: number, of: Partial<Reads> = {}): Reads => ({
  tenant,
  weight,
  recordBytes: 1000,
  records: 32,
  isPage: false,
  load: { outstanding: 200 },
  ...of,
});

/** A tenant that misses one record now and then. */
const occasional = (tenant: number, weight: number): Reads => ({
  tenant,
  weight,
  recordBytes: 1000,
  records: 1,
  isPage: false,
  load: { perSecond: 50 },
});

interface Compared {
  after: Served[][];
  before: Served[][];
}

function compare(
  { seeds, quick }: ExperimentContext,
  without: Partial<IoSchedulerOptions>,
  loads: readonly Reads[],
): Compared {
  const seconds = quick ? 20 : 120;
  return {
    after: seeds.map((seed) => run({}, loads, seconds, seed)),
    before: seeds.map((seed) => run(without, loads, seconds, seed)),
  };
}

function p99(runs: readonly Served[][], index: number): number[] {
  return runs.map((one) => percentile(one[index]!.latencies, 0.99));
}

/** The share of reads that were answered by so many milliseconds. */
function distribution(label: string, { latencies }: Served): Line {
  const sorted = [...latencies].sort((a, b) => a - b);
  const points = Array.from({ length: 101 }, (_, percent): [number, number] => [
    percent,
    sorted[Math.min(sorted.length - 1, Math.floor((percent / 100) * sorted.length))] ?? 0,
  ]);
  return { label, points };
}

function pictures(
  { before, after }: Compared,
  titles: readonly [string, string],
  index: number,
): Pick<Outcome, 'xLabel' | 'yLabel' | 'before' | 'after'> {
  return {
    xLabel: 'percentile',
    yLabel: 'ms',
    before: { title: titles[0], lines: [distribution('reads', before[0]![index]!)] },
    after: { title: titles[1], lines: [distribution('reads', after[0]![index]!)] },
  };
}

const source = 'ABase, section 4.3';
const disk =
  `The production scheduler with the server's defaults on a simulated disk: an operation takes ${operationMs} ms, and ` +
  'MBs are transferred at 500 a second in each of the reads that run.';

export const readCost: Experiment = {
  id: 'AB-4.3-r1',
  title: 'Before the disk, a request costs its operations',
  kind: 'SIM',
  source: `${source}, rule 1`,
  setup: `${disk} Three tenants with quotas of 1, 2 and 4 always have reads of 32 records queued; their records have 100, 1,000 and 8,000 bytes. Without the mechanism a read costs its kilobytes.`,
  run(context) {
    const weights = [1, 2, 4];
    const sizes = [100, 1000, 8000];
    const loads = weights.map((weight, i) => busy(i + 1, weight, { recordBytes: sizes[i]! }));
    const compared = compare(context, { costIn: 'kilobytes' }, loads);
    const off = (runs: readonly Served[][]): number[] =>
      runs.map((one) => {
        const total = one.reduce((sum, { records }) => sum + records, 0);
        const parts = one.map(({ records }, i) => records / total / (weights[i]! / 7));
        return Math.max(...parts.map((part) => Math.abs(part - 1))) * 100;
      });
    return {
      measures: [
        overSeeds(
          off(compared.after),
          {
            metric: 'operations by quota 1:2:4, furthest from it, %',
            threshold: 3,
            better: 'lower',
          },
          off(compared.before),
        ),
      ],
      ...pictures(compared, ['a read costs kilobytes', 'a read costs operations'], 0),
    };
  },
};

export const extraWorkers: Experiment = {
  id: 'AB-4.3-r4',
  title: 'More workers for the others when one tenant has them all',
  kind: 'SIM',
  source: `${source}, rule 4`,
  setup: `${disk} Tenant 1, with 98 % of the quotas, always has 200 reads of 32 records queued; tenant 2 reads one record 50 times a second. Without the mechanism there are the four workers only.`,
  run(context) {
    const loads = [busy(1, 98), occasional(2, 2)];
    const compared = compare(context, { extraWorkers: 0 }, loads);
    const aloneMs = operationMs + 1000 / bytesPerMs;
    const ofAlone = (runs: readonly Served[][]): number[] => p99(runs, 1).map((ms) => ms / aloneMs);
    const kept = compared.after.map(
      (one, i) => (100 * one[0]!.records) / compared.before[i]![0]!.records,
    );
    return {
      measures: [
        overSeeds(
          ofAlone(compared.after),
          { metric: 'p99 of tenant 2, of that alone', threshold: 1.5, better: 'lower' },
          ofAlone(compared.before),
        ),
        overSeeds(kept, {
          metric: 'records of tenant 1, of those without the mechanism, %',
          threshold: 99,
          better: 'higher',
        }),
      ],
      ...pictures(compared, ['four workers', 'two extra workers for others'], 1),
    };
  },
};

export const queueClasses: Experiment = {
  id: 'AB-4.3-classes',
  title: 'Small and large reads in queues of their own',
  kind: 'SIM',
  source,
  setup: `${disk} Two tenants with equal quotas: tenant 1 always has 20 pages of 2,000 records queued, tenant 2 reads one record 50 times a second. Without the mechanism small and large reads share a queue. There are no extra workers, so that the queues alone differ.`,
  run(context) {
    const pages = busy(1, 1, { records: 2000, isPage: true, load: { outstanding: 20 } });
    const seconds = context.quick ? 20 : 120;
    const loads = [pages, occasional(2, 1)];
    const of = (options: Partial<IoSchedulerOptions>): Served[][] =>
      context.seeds.map((seed) => run({ extraWorkers: 0, ...options }, loads, seconds, seed));
    const compared = { after: of({}), before: of({ classes: false }) };
    const aloneMs = operationMs + 1000 / bytesPerMs;
    const ofAlone = (runs: readonly Served[][]): number[] => p99(runs, 1).map((ms) => ms / aloneMs);
    return {
      measures: [
        overSeeds(
          ofAlone(compared.after),
          { metric: 'p99 of single records, of that alone', threshold: 1.3, better: 'lower' },
          ofAlone(compared.before),
        ),
      ],
      ...pictures(compared, ['one queue', 'a queue for each class'], 1),
    };
  },
};
