// Metrics of the InfluxDB plane.

import type { InfluxMetrics } from '../../access/influx/http/influx-metrics.ts';
import type { InfluxServer } from '../../access/influx/http/server.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import { addLogAndCheckpoints, adder } from './pod-samples.ts';

/** A pod, and in a cluster the group that it is a replica of. */
interface NamedPod {
  readonly pod: SeriesPod;
  readonly group?: number;
  /** Of divided time series, from 1 on. */
  readonly partition?: number;
}

export function influxSamples(
  server: InfluxServer | undefined,
  pods: readonly NamedPod[],
): MetricSample[] {
  const samples: MetricSample[] = [];
  if (server !== undefined) addServer(samples, server.metrics());
  for (const pod of pods) addPod(samples, pod);
  return samples;
}

function addServer(samples: MetricSample[], metrics: InfluxMetrics): void {
  const add = adder(samples, {});
  add('gauge', 'influx_connections', 'Open InfluxDB connections.', metrics.connections);
  add('counter', 'influx_received_bytes', 'Bytes of bodies received.', metrics.bytesIn);
  add('counter', 'influx_sent_bytes', 'Bytes of query answers.', metrics.bytesOut);
  add('counter', 'influx_lines_rejected', 'Lines that could not be read.', metrics.linesRejected);
  add(
    'counter',
    'influx_write_timeouts',
    'Writes answered with a timeout because the engine was behind.',
    metrics.writeTimeouts,
  );
  add('gauge', 'influx_queries_running', 'Queries running now.', metrics.queriesRunning);
  add('gauge', 'influx_query_memory_bytes', 'Memory of running queries.', metrics.queryMemoryBytes);
  add('counter', 'influx_queries', 'Queries run.', metrics.queriesRun);
  add(
    'counter',
    'influx_replica_queries',
    'Queries answered by a replica that does not lead.',
    metrics.queriesReadHere,
  );
  add('counter', 'influx_statements_failed', 'Statements that failed.', metrics.statementsFailed);
  add('counter', 'influx_writes', 'Writes answered.', metrics.writeSeconds.count);
  add('counter', 'influx_write_seconds', 'Time spent on writes.', metrics.writeSeconds.sum);
  add('counter', 'influx_query_seconds', 'Time spent on queries.', metrics.querySeconds.sum);
  // Routes are a fixed set.
  for (const [route, classes] of Object.entries(metrics.requests)) {
    for (const [status, value] of Object.entries(classes)) {
      adder(samples, { route, status })('counter', 'influx_requests', 'Requests.', value);
    }
  }
}

function addPod(samples: MetricSample[], { pod, group, partition }: NamedPod): void {
  const add = adder(samples, {
    model: 'tsm',
    ...(group !== undefined && { group: String(group) }),
    ...(partition !== undefined && { partition: String(partition) }),
  });
  const engine = pod.engineStats();
  add('gauge', 'series_databases', 'Databases.', engine.databases);
  add('gauge', 'series_shards', 'Shards of all databases.', engine.shards);
  add('gauge', 'series_count', 'Series in all shards.', engine.series);
  add(
    'gauge',
    'series_head_points',
    'Points in memory that are not in a file yet.',
    engine.headPoints,
  );
  add('gauge', 'series_head_bytes', 'Memory of those points.', engine.headBytes);
  add('gauge', 'series_index_bytes', 'Memory of the indexes of series.', engine.indexBytes);
  add('gauge', 'series_files', 'Files of points.', engine.files);
  add(
    'gauge',
    'series_pending_compaction_bytes',
    'Bytes of files that wait for compaction.',
    engine.pendingCompactionBytes,
  );
  add('gauge', 'engine_memory_bytes', 'Memory held for rows and indexes.', engine.memoryBytes);
  add('gauge', 'engine_disk_bytes', 'Bytes on disk.', engine.diskBytes);
  for (const [name, value] of Object.entries(engine.extra)) {
    add('gauge', `engine_${name}`, 'Engine detail.', value);
  }
  add('counter', 'series_points_written', 'Points stored.', pod.stats.pointsWritten);
  add('counter', 'series_points_refused', 'Points refused.', pod.stats.pointsRefused);
  add(
    'counter',
    'series_congested_writes',
    'Writes that waited for the engine to catch up.',
    pod.stats.congestedWrites,
  );
  addLogAndCheckpoints(add, pod);
}
