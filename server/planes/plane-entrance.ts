// The admission queue before the pod of the InfluxDB plane, configured by database properties and settings.

import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { PodEntrance } from '../../storage-node/admission/pod-entrance.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { modelProperties } from '../../contracts/table-properties.ts';
import { keptName } from './influx-databases.ts';
import type { InfluxTables } from './influx-tables.ts';
import { adder } from './pod-samples.ts';

const usualPriority = modelProperties('series').writePriority;

export function seriesEntrance(tables: InfluxTables): PodEntrance {
  return new PodEntrance({
    clock: systemClock,
    priorityOf: (tenant, name) =>
      tables.get(keptName({ tenant, name }))?.writePriority ?? usualPriority,
  });
}

export function entranceSamples(plane: string, entrance: PodEntrance): MetricSample[] {
  const samples: MetricSample[] = [];
  for (const kind of ['read', 'write'] as const) {
    const add = adder(samples, { plane, kind });
    const { waited, waitedMs, refused } = entrance.counts[kind];
    add('gauge', 'pod_waiting', 'Requests that wait for the pod.', entrance.waitingOf(kind));
    add('counter', 'pod_waited', 'Requests that had to wait for the pod.', waited);
    add('counter', 'pod_wait_seconds', 'Time that requests waited for the pod.', waitedMs / 1000);
    add('counter', 'pod_refused', 'Requests refused because the pod had too much to do.', refused);
  }
  return samples;
}
