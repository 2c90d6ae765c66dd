// What a plane's gates report to /metrics: of each tenant with a limit, under the label that its other metrics have.

import type { TenantGate } from '../../access/admission/tenant-gate.ts';
import type { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { adder } from './pod-samples.ts';

/** Numbers of a gate that add up over tenants, with the names and words of their metrics. */
const gauges: readonly [name: string, help: string, of: (gate: TenantGate) => number][] = [
  ['quota_ru', 'Request units a second that the tenant may spend.', (gate) => gate.quota.perSecond],
  [
    'peak_ru',
    'Units a second at which a burst may be spent; 0 for any.',
    (gate) => gate.quota.peak,
  ],
  ['waiting', 'Requests that wait for request units.', (gate) => gate.waiting],
];
const counters: readonly [name: string, help: string, of: (gate: TenantGate) => number][] = [
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

/** Of partitions of Redis tables. */
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

/** Of queries, which live on what was left over. */
const queryGauges: typeof gauges = [
  ['queries_waiting', 'Queries that wait for request units.', ({ line }) => line.waiting],
  [
    'saved_ru',
    'Request units left over for queries; below 0 what is owed.',
    ({ queries }) => queries.units.balance,
  ],
];
const queryCounters: typeof counters = [
  [
    'queries_waited',
    'Queries that have waited for units.',
    ({ line: { counters: c } }) => c.waited,
  ],
  [
    'queries_waited_seconds',
    'Time that queries waited for units.',
    ({ line: { counters: c } }) => c.waitedMs / 1000,
  ],
  [
    'queries_refused',
    'Queries refused for want of units.',
    ({ line: { counters: c } }) => c.refused,
  ],
  [
    'queries_would_wait',
    'Queries that would have waited (dry run).',
    ({ line: { counters: c } }) => c.wouldWait,
  ],
];

/** Of scans, or queries, where they have a limit of their own. */
const classGauges: typeof gauges = [
  ['class_quota_ru', 'Units a second for scans, or queries.', (gate) => gate.quota.perSecond],
  ['class_waiting', 'Scans, or queries, that wait for units of theirs.', (gate) => gate.waiting],
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
  for (const [tenant, same] of byLabel(gateway.gates(), labelOf)) {
    const add = adder(samples, { tenant, plane });
    const sum = sumOver(same);
    for (const [name, help, of] of gauges) add('gauge', `tenant_${name}`, help, sum(of));
    for (const [name, help, of] of counters) add('counter', `tenant_${name}`, help, sum(of));
    add(
      'gauge',
      'tenant_quota_used_ratio',
      'Of the request units a second, what was used in the last second.',
      Math.max(...same.map((gate) => gate.use.lastSecond / gate.quota.perSecond)),
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
  for (const [tenant, same] of byLabel(gateway.classGates(), labelOf)) {
    const add = adder(samples, { tenant, plane });
    const sum = sumOver(same);
    for (const [name, help, of] of classGauges) add('gauge', `tenant_${name}`, help, sum(of));
    for (const [name, help, of] of classCounters) add('counter', `tenant_${name}`, help, sum(of));
  }
  return samples;
}

function byLabel(
  gates: Iterable<TenantGate>,
  labelOf: (tenant: number) => string,
): Map<string, TenantGate[]> {
  const all = new Map<string, TenantGate[]>();
  for (const gate of gates) {
    const label = labelOf(gate.tenant);
    const same = all.get(label);
    if (same === undefined) all.set(label, [gate]);
    else same.push(gate);
  }
  return all;
}

function sumOver(gates: readonly TenantGate[]): (of: (gate: TenantGate) => number) => number {
  return (of) => gates.reduce((total, gate) => total + of(gate), 0);
}
