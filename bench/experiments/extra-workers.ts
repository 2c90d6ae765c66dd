import { WorkKind } from '../../storage-node/admission/work-kind.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { runQueuedPod, type SourceRun } from './workloads/queued-pod.ts';

const operationMs = 0.2;
const basic = 4;

function run(extra: number, seconds: number, seed: number): SourceRun[] {
  const rate = basic / operationMs;
  const make = () => ({ kind: WorkKind.smallRead, cost: 1, cpuMs: 0.01, operations: 1 });
  return runQueuedPod({
    slots: 16,
    operationMs,
    queues: { workers: { basic, extra }, tenantCap: false, limits: false },
    seconds,
    seed,
    sources: [
      // What waits for the disk is never less than a few hundred requests.
      { tenant: 1, quota: 98, load: { backlog: 400 }, make },
      { tenant: 2, quota: 2, load: () => rate * 0.01, make },
    ],
  });
}

/** Share of the second tenant's reads that waited for so long at most. */
function line(label: string, { readWaits }: SourceRun): Line {
  return {
    label,
    points: Array.from({ length: 41 }, (_, reads): [number, number] => [
      reads,
      (100 * readWaits.filter((wait) => wait <= (reads + 1e-9) * operationMs).length) /
        readWaits.length,
    ]),
  };
}

export const extraWorkers: Experiment = {
  id: 'AB-4.3-r4',
  title: 'More workers for the others when one tenant has them all',
  kind: 'SIM',
  source: 'ABase, section 4.3, rule 4',
  setup:
    'Four workers that read the disk, and two more. Tenant 1, with 98 % of the quotas, always has hundreds of reads ' +
    'waiting; tenant 2 sends half of its 2 %. Without the mechanism the four are all there are.',
  run({ seeds, quick }) {
    const seconds = quick ? 8 : 30;
    const before = seeds.map((seed) => run(0, seconds, seed));
    const after = seeds.map((seed) => run(2, seconds, seed));
    const waited = (runs: readonly SourceRun[][]): number =>
      mean(runs.map(([, two]) => percentile(two!.readWaits, 0.99) / operationMs));
    return {
      measures: [
        {
          metric: 'p99 of the wait of tenant 2 for a worker, reads of the disk',
          value: waited(after),
          threshold: 2,
          better: 'lower',
          without: waited(before),
        },
        {
          metric: 'off: mean wait of tenant 2 for a worker, reads of the disk',
          value: mean(before.map(([, two]) => mean(two!.readWaits) / operationMs)),
          threshold: 10,
          better: 'higher',
        },
        {
          metric: 'reads of tenant 1, of those without the mechanism, %',
          value:
            (100 * mean(after.map(([one]) => one!.operations))) /
            mean(before.map(([one]) => one!.operations)),
          threshold: 99,
          better: 'higher',
        },
      ],
      xLabel: 'wait, reads of the disk',
      yLabel: '% of reads of tenant 2',
      before: { title: 'four workers', lines: [line('tenant 2', before[0]![1]!)] },
      after: { title: 'and two for the others', lines: [line('tenant 2', after[0]![1]!)] },
    };
  },
};
