import { WorkKind } from '../../storage-node/admission/work-kind.ts';
import { mean } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { runQueuedPod, type SourceRun } from './workloads/queued-pod.ts';

/** Quotas, and units of a request that is one or two reads of the disk. */
const tenants = [
  { quota: 1, units: 1 },
  { quota: 2, units: 4 },
  { quota: 4, units: 16 },
];

function run(ioCost: 'operations' | 'units', seconds: number, seed: number): SourceRun[] {
  return runQueuedPod({
    slots: 8,
    operationMs: 0.1,
    queues: { ioCost, workers: { basic: 4, extra: 0 }, tenantCap: false },
    seconds,
    seed,
    sources: tenants.map(({ quota, units }, i) => ({
      tenant: i + 1,
      quota,
      load: { backlog: 64 },
      make: (chance) => ({
        kind: WorkKind.smallRead,
        cost: units,
        cpuMs: 0.001,
        operations: 1 + chance.below(2),
      }),
    })),
  });
}

function sharesOf(runs: readonly SourceRun[]): number[] {
  const total = runs.reduce((sum, { operations }) => sum + operations, 0);
  return runs.map(({ operations }) => operations / total);
}

/** Per cent by which the share furthest from its quota is off. */
function furthest(runs: readonly SourceRun[]): number {
  const total = tenants.reduce((sum, { quota }) => sum + quota, 0);
  return Math.max(
    ...sharesOf(runs).map((share, i) => 100 * Math.abs((share * total) / tenants[i]!.quota - 1)),
  );
}

function lines(runs: readonly SourceRun[]): Line[] {
  const shares = sharesOf(runs);
  return [
    {
      label: 'share of quotas',
      points: tenants.map(({ quota }, i): [number, number] => [i + 1, (100 * quota) / 7]),
    },
    {
      label: 'share of reads',
      points: shares.map((share, i): [number, number] => [i + 1, 100 * share]),
    },
  ];
}

export const readCost: Experiment = {
  id: 'AB-4.3-r1',
  title: 'Before the disk, a request costs its reads',
  kind: 'SIM',
  source: 'ABase, section 4.3, rule 1',
  setup:
    'Three tenants with quotas of 1, 2 and 4 that always have something waiting for the disk, in requests of 1, 4 and 16 ' +
    'units, each of which is one or two reads that take alike. Without the mechanism requests cost their units there too.',
  run({ seeds, quick }) {
    const seconds = quick ? 5 : 20;
    const before = seeds.map((seed) => run('units', seconds, seed));
    const after = seeds.map((seed) => run('operations', seconds, seed));
    return {
      measures: [
        {
          metric: 'share of reads, furthest from that of quotas, %',
          value: mean(after.map(furthest)),
          threshold: 5,
          better: 'lower',
          without: mean(before.map(furthest)),
        },
        {
          metric: 'by units: share of reads, furthest from that of quotas, %',
          value: mean(before.map(furthest)),
          threshold: 20,
          better: 'higher',
        },
      ],
      xLabel: 'tenant',
      yLabel: '% of all',
      before: { title: 'by units', lines: lines(before[0]!) },
      after: { title: 'by reads of the disk', lines: lines(after[0]!) },
    };
  },
};
