// The mechanisms of the papers that place, size and schedule, and where each is measured: the table at the head of
// docs/experiments.md is made from this list and the records.

import { judged, type Measure, type Recorded, reaches } from './experiment.ts';

interface Mechanism {
  readonly id: string;
  readonly name: string;
  /** Experiment with its measures; that of the same id where it is left out. */
  readonly experiment?: string;
  /** Start of the names of its measures, where an experiment has those of several mechanisms. */
  readonly measures?: string;
  /** Where it is shown, for one without an experiment. */
  readonly elsewhere?: string;
  /** Parts of the acceptance that no experiment measures. */
  readonly open?: string;
}

const mechanisms: readonly Mechanism[] = [
  {
    id: 'XS-2-monitor',
    name: 'Request units of replicas, by the minute',
    open: 'dimensions beside request units, latencies by tenant',
  },
  { id: 'XS-3-copyset', name: 'Subclusters' },
  { id: 'XS-3-svcmix', name: 'Gateways on storage nodes' },
  { id: 'XS-3-modelmix', name: 'Memory pods on SSD nodes' },
  { id: 'XS-5.3-partitions', name: 'Number of partitions, even spread' },
  { id: 'XS-5.3-place', name: 'Placement score' },
  { id: 'XS-5.3-metrics', name: 'Violations, imbalance, cost' },
  { id: 'XS-5.3-candidates', name: 'Algorithm 1 of X-Stor; planning time' },
  { id: 'XS-5.3-role', name: 'Role switching' },
  { id: 'XS-5.3-migrate', name: 'Migration by five priorities' },
  { id: 'XS-5.3-spread', name: 'Table-count guard' },
  { id: 'XS-5.3-cycle', name: 'Daily cycle' },
  {
    id: 'XS-7-workflow',
    name: 'Workflows: nested, compensated, resumed',
    elsewhere:
      'control/workflows/workflow-engine.test.ts: killed at every point, 50 concurrent conflicting ones, 6 seeds; control/tenants/drop-tenant-workflow.test.ts: the one that ships; [why no others](../control/workflows/README.md)',
  },
  { id: 'XS-7-detect', name: 'Fault detection' },
  { id: 'AB-3-pool', name: 'Pools and zones' },
  { id: 'AB-3.3-recovery', name: 'Parallel rebuild' },
  {
    id: 'AB-4.1-write',
    name: 'Units of a write',
    elsewhere:
      'bench/experiments/baselines/abase-units.test.ts: 4 kB to three replicas are 6 units',
  },
  {
    id: 'AB-4.1-read',
    name: 'Units of a read by the expected hits',
  },
  {
    id: 'AB-4.1-complex',
    name: 'Units of collections by their lengths',
  },
  { id: 'AB-4.2-proxy', name: 'Proxy quota' },
  { id: 'AB-4.2-partition', name: 'Ceiling of a partition' },
  { id: 'AB-4.3-classes', name: 'Small and large reads apart' },
  { id: 'AB-4.3-wfq', name: 'Virtual finish times' },
  { id: 'AB-4.3-r1', name: 'Cost before the disk' },
  { id: 'AB-4.3-r2', name: 'Limits of writes', elsewhere: 'withdrawn, see below' },
  { id: 'AB-4.3-r3', name: 'Cap of a tenant', elsewhere: 'withdrawn, see below' },
  { id: 'AB-4.3-r4', name: 'Extra workers' },
  { id: 'AB-4.4-aulru', name: 'Gateway cache' },
  { id: 'AB-4.4-fanout', name: 'Limited fan-out' },
  { id: 'AB-4.4-salru', name: 'Cache by sizes' },
  { id: 'AB-5.1-scale', name: 'Quotas by forecast' },
  { id: 'AB-5.2-denoise', name: 'Denoising' },
  { id: 'AB-5.2-forecast', name: 'Forecast' },
  {
    id: 'AB-5.3-load',
    name: 'Load vectors',
    elsewhere: 'control/scheduler/abase/rescheduling.test.ts, hourly-view.test.ts',
  },
  { id: 'AB-5.3-count', name: 'Even counts' },
  { id: 'AB-5.3-intra', name: 'Algorithm 2 within a pool' },
  { id: 'AB-5.3-intra', name: 'the same: use of pools', experiment: 'AB-5.3-intra-pools' },
  { id: 'AB-5.3-inter', name: 'Between pools' },
  { id: 'AB-6-slo', name: 'Latency while tenants shift' },
  { id: 'AB-7-headroom', name: 'Headroom' },
  { id: 'AB-7-limits', name: 'Limits of a pool' },
  { id: 'AB-7-downscale', name: 'Cautious reductions' },
  { id: 'LB-II-baselines', name: 'Baselines of Libra' },
  {
    id: 'LB-III-load',
    name: 'Normalized loads, unlike nodes',
    experiment: 'LB-III-coop',
    measures: 'LB-III-load',
  },
  { id: 'LB-III-coop', name: 'Cooperative scheduling' },
  { id: 'LB-IV-mapping', name: 'Metric mapping', open: 'regions of a live server' },
  {
    id: 'LB-IV-gather',
    name: 'Gathering of loads',
  },
  { id: 'LB-IV-suspend', name: 'No moves while loads jump' },
  { id: 'LB-IV-bound', name: 'Bound of λ/2' },
  { id: 'LB-IV-split', name: 'Cuts by load' },
  { id: 'LB-IV-lazy', name: 'Lazy splits' },
  { id: 'LB-IV-merge', name: 'Merges', experiment: 'LB-IV-lazy', measures: 'LB-IV-merge' },
  { id: 'LB-V-lambda', name: 'Choice of λ' },
  { id: 'LB-V-perf', name: 'Throughput and latency' },
  {
    id: 'LB-V-perf',
    name: 'the same: how long hotspots last',
    experiment: 'LB-IV-suspend',
    measures: 'LB-V-perf',
  },
  {
    id: 'LB-V-sim',
    name: 'Simulator; planning time',
    open: 'balance beside that of live pods',
  },
  { id: 'AWS-loop', name: 'Borrowed capacity comes back', open: 'on a live cluster' },
  { id: 'AWS-growth', name: 'Quotas grow' },
  {
    id: 'AWS-growth',
    name: 'the same: a quota changed by hand',
    experiment: 'AWS-growth-manual',
    open: 'no command starts it: the server sets limits at once',
  },
];

export function mechanismTable(
  records: ReadonlyMap<string, Recorded>,
  anchor: (id: string) => string,
  short: (value: number) => string,
): string {
  const rows = mechanisms.map((mechanism) => {
    const { id, name, open } = mechanism;
    const experiment = mechanism.experiment ?? id;
    const left = open === undefined ? '' : `open: ${open}`;
    if (mechanism.elsewhere !== undefined) {
      return `| ${id} | ${name} | ${mechanism.elsewhere} | | ${left} |`;
    }
    const link = `[${experiment}](#${anchor(experiment)})`;
    const record = records.get(experiment);
    if (record === undefined) return `| ${id} | ${name} | ${link} | | not run |`;
    const measures = judged(measuresOf(mechanism, record));
    const missed = measures.filter((measure) => !reaches(measure));
    const figures = (missed.length > 0 ? missed : measures.slice(0, 1)).map(
      (measure) => `${measure.metric}: ${short(measure.value)} (${wanted(measure, short)})`,
    );
    const status =
      missed.length === 0
        ? `all ${measures.length} reached`
        : `**${missed.length} of ${measures.length} short**`;
    return `| ${id} | ${name} | ${link} | ${figures.join('; ')} | ${[status, left].filter(Boolean).join('; ')} |`;
  });
  return [
    'Scheduling, scaling and ranges, by mechanism. Measured are the figures that are short, with what is wanted, or else the first one.',
    '',
    '| id | mechanism | where | measured (wanted) | state |',
    '| -- | -- | -- | -- | -- |',
    ...rows,
  ].join('\n');
}

/** Those named for another mechanism are left to it. */
function measuresOf({ id, measures }: Mechanism, { outcome }: Recorded): Measure[] {
  const others = mechanisms.flatMap((one) =>
    one.id !== id && one.measures !== undefined ? [one.measures] : [],
  );
  return outcome.measures.filter(({ metric }) =>
    measures === undefined
      ? !others.some((other) => metric.startsWith(other))
      : metric.startsWith(measures),
  );
}

function wanted({ better, threshold }: Measure, short: (value: number) => string): string {
  return threshold === undefined ? '' : `${better === 'higher' ? '≥' : '≤'} ${short(threshold)}`;
}
