// Metrics of a plane's limiters: for each tenant with a limit, with the label of its other metrics.

import type { TenantLimiter } from '../../access/admission/tenant-limiter.ts';
import type { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { adder } from './pod-samples.ts';

/** Numbers of a limiter that add up over tenants, with the names and words of their metrics. */
const gauges: readonly [name: string, help: string, of: (limiter: TenantLimiter) => number][] = [
  [
    'quota_ru',
    'Request units a second that the tenant may spend.',
    (limiter) => limiter.quota.perSecond,
  ],
  [
    'peak_ru',
    'Units a second at which a burst may be spent; 0 for any.',
    (limiter) => limiter.quota.peak,
  ],
  ['waiting', 'Requests that wait for request units.', (limiter) => limiter.waiting],
];
const counters: readonly [name: string, help: string, of: (limiter: TenantLimiter) => number][] = [
  ['waited', 'Requests that have waited for units.', ({ counters: c }) => c.waited],
  [
    'waited_seconds',
    'Time that requests waited for units.',
    ({ counters: c }) => c.waitedMs / 1000,
  ],
  ['refused', 'Requests refused over the quota.', ({ counters: c }) => c.refused],
  ['burst_ru', 'Request units of the burst package.', ({ counters: c }) => c.burstRu],
  ['spare_ru', 'Request units that others left.', ({ counters: c }) => c.spareRu],
  ['would_wait', 'Requests that would have waited (dry run).', ({ counters: c }) => c.wouldWait],
  [
    'would_refuse',
    'Requests that would have been refused (dry run).',
    ({ counters: c }) => c.wouldRefuse,
  ],
];

/** Counters of partitions of Redis tables. */
const partitionCounters: typeof counters = [
  [
    'partition_refused',
    'Requests refused because a partition was at its ceiling.',
    ({ counters: c }) => c.partitionRefused,
  ],
  [
    'partition_would_refuse',
    'Requests that would have been refused so (dry run).',
    ({ counters: c }) => c.partitionWouldRefuse,
  ],
];

/** Gauges of queries, which use accumulated units. */
const queryGauges: typeof gauges = [
  [
    'queries_waiting',
    'Queries that wait for request units.',
    ({ queryLimiter }) => queryLimiter.waiting,
  ],
  [
    'saved_ru',
    'Accumulated request units for queries; below 0 a debt.',
    ({ queries }) => queries.units.balance,
  ],
];
const queryCounters: typeof counters = [
  [
    'queries_waited',
    'Queries that have waited for units.',
    ({ queryLimiter: { counters: c } }) => c.waited,
  ],
  [
    'queries_waited_seconds',
    'Time that queries waited for units.',
    ({ queryLimiter: { counters: c } }) => c.waitedMs / 1000,
  ],
  [
    'queries_refused',
    'Queries refused for want of units.',
    ({ queryLimiter: { counters: c } }) => c.refused,
  ],
  [
    'queries_would_wait',
    'Queries that would have waited (dry run).',
    ({ queryLimiter: { counters: c } }) => c.wouldWait,
  ],
];

/** Gauges of scans, or queries, where they have a limit of their own. */
const classGauges: typeof gauges = [
  ['class_quota_ru', 'Units a second for scans, or queries.', (limiter) => limiter.quota.perSecond],
  [
    'class_waiting',
    'Scans, or queries, that wait for units of theirs.',
    (limiter) => limiter.waiting,
  ],
];
const classCounters: typeof counters = [
  ['class_waited', 'Scans, or queries, that have waited for them.', ({ counters: c }) => c.waited],
  ['class_refused', 'Scans, or queries, refused over them.', ({ counters: c }) => c.refused],
];

/** `labelOf` has few values: those that come after them share one. */
export function admissionSamples(
  plane: string,
  gateway: GatewayAdmission,
  labelOf: (tenant: number) => string,
): MetricSample[] {
  const samples: MetricSample[] = [];
  for (const [tenant, same] of byLabel(gateway.limiters(), labelOf)) {
    const add = adder(samples, { tenant, plane });
    const sum = sumOver(same);
    for (const [name, help, of] of gauges) add('gauge', `tenant_${name}`, help, sum(of));
    for (const [name, help, of] of counters) add('counter', `tenant_${name}`, help, sum(of));
    add(
      'gauge',
      'tenant_quota_used_ratio',
      'Share of the quota used in the last second.',
      Math.max(...same.map((limiter) => limiter.use.lastSecond / limiter.quota.perSecond)),
    );
    if (plane === 'redis') {
      for (const [name, help, of] of partitionCounters) {
        add('counter', `tenant_${name}`, help, sum(of));
      }
      continue;
    }
    for (const [name, help, of] of queryGauges) add('gauge', `tenant_${name}`, help, sum(of));
    for (const [name, help, of] of queryCounters) add('counter', `tenant_${name}`, help, sum(of));
  }
  for (const [tenant, same] of byLabel(gateway.classLimiters(), labelOf)) {
    const add = adder(samples, { tenant, plane });
    const sum = sumOver(same);
    for (const [name, help, of] of classGauges) add('gauge', `tenant_${name}`, help, sum(of));
    for (const [name, help, of] of classCounters) add('counter', `tenant_${name}`, help, sum(of));
  }
  return samples;
}

function byLabel(
  limiters: Iterable<TenantLimiter>,
  labelOf: (tenant: number) => string,
): Map<string, TenantLimiter[]> {
  const all = new Map<string, TenantLimiter[]>();
  for (const limiter of limiters) {
    const label = labelOf(limiter.tenant);
    const same = all.get(label);
    if (same === undefined) all.set(label, [limiter]);
    else same.push(limiter);
  }
  return all;
}

function sumOver(
  limiters: readonly TenantLimiter[],
): (of: (limiter: TenantLimiter) => number) => number {
  return (of) => limiters.reduce((total, limiter) => total + of(limiter), 0);
}
