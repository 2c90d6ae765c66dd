import { mean, percentile } from '../support/statistics.ts';
import type { Experiment } from './experiment.ts';
import {
  compactionRate,
  fillingMs,
  type MergeTreeRun,
  runMergeTree,
} from './workloads/merge-tree.ts';

const seconds = 300;
const calmSeconds = 120;
const burstAt = 60_000;
const burstMs = 5000;
const burstSeconds = 120;

export const writeTokens: Experiment = {
  id: 'CR-kvstore-tokens',
  title: 'Write tokens by the health of the store',
  kind: 'SIM',
  source: "J. Vanlightly's analysis of serverless CockroachDB, part 2, admission control",
  setup:
    'A model of a log-structured merge tree: memtables of 64 MiB become sorted runs of level 0, compaction takes out ' +
    '32 MiB/s, a read looks through every run. Twice what compaction can do is written for five minutes; calm is half ' +
    'of it. Writes that find no tokens wait for up to a second. Without the mechanism all are taken on.',
  run({ seeds, progress }) {
    const all = (what: string, run: (seed: number) => MergeTreeRun): MergeTreeRun[] =>
      seeds.map((seed) => {
        progress(`${what}, seed ${seed}`);
        return run(seed);
      });
    const flood = (tokens: boolean): MergeTreeRun[] =>
      all(tokens ? 'tokens' : 'no tokens', (seed) =>
        runMergeTree({ tokens, load: () => 2, seconds, seed }),
      );
    const calm = all('calm', (seed) =>
      runMergeTree({ tokens: true, load: () => 0.5, seconds: calmSeconds, seed }),
    );
    const burst = all('burst', (seed) =>
      runMergeTree({
        tokens: true,
        load: (now) => (now >= burstAt && now < burstAt + burstMs ? 3 : 0.5),
        seconds: burstSeconds,
        seed,
      }),
    );
    const [before, after] = [flood(false), flood(true)];
    const p99 = (runs: readonly MergeTreeRun[]): number =>
      mean(runs.map(({ readLatencies }) => percentile(readLatencies, 0.99)));
    const runsOf = (runs: readonly MergeTreeRun[]): number =>
      mean(runs.map(({ readRuns }) => percentile(readRuns, 0.99)));
    const sustainable = (runs: readonly MergeTreeRun[]): number =>
      mean(
        runs.map(
          ({ admittedBytes }) =>
            (100 * admittedBytes) / (compactionRate * (seconds - fillingMs / 1000)),
        ),
      );
    return {
      measures: [
        {
          metric: 'sorted runs of level 0 that reads look through, p99',
          value: runsOf(after),
          threshold: 20,
          better: 'lower',
          without: runsOf(before),
        },
        {
          metric: 'p99 of reads, of that when calm',
          value: p99(after) / p99(calm),
          threshold: 2,
          better: 'lower',
          without: p99(before) / p99(calm),
        },
        {
          metric: 'p99 of reads without tokens, of that when calm',
          value: p99(before) / p99(calm),
          threshold: 5,
          better: 'higher',
        },
        {
          metric: 'written after the first minute, of what compaction can sustain, %',
          value: sustainable(after),
          threshold: 90,
          better: 'higher',
          without: sustainable(before),
        },
        {
          metric: 'writes delayed by a 5 s burst of 3x on a healthy store, %',
          value: mean(burst.map(({ delayed }) => delayed)),
          threshold: 0,
          better: 'lower',
        },
      ],
      xLabel: 'second',
      yLabel: 'sorted runs of level 0',
      before: { title: 'all writes taken on', lines: [before[0]!.sublevels] },
      after: { title: 'write tokens', lines: [after[0]!.sublevels] },
    };
  },
};
