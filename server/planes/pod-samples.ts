// Metrics of every pod, for all models.

import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { PartitionLog } from '../../storage-node/replicator/partition-log.ts';

type AddSample = (type: 'gauge' | 'counter', name: string, help: string, value: number) => void;

/** Adds samples with these labels. Names are given without `polyrow_` and a counter's `_total`. */
export function adder(
  samples: MetricSample[],
  labels: Readonly<Record<string, string>>,
): AddSample {
  return (type, name, help, value) => {
    const suffix = type === 'counter' ? '_total' : '';
    samples.push({ name: `polyrow_${name}${suffix}`, help, type, value, labels });
  };
}

interface LoggedPod {
  readonly stats: {
    readonly checkpoints: number;
    readonly checkpointFailures: number;
    readonly lastCheckpointMs: number;
  };
  readonly writeFailure: Error | undefined;
  logStatus(): ReturnType<PartitionLog['status']>;
}

export function addLogAndCheckpoints(add: AddSample, pod: LoggedPod): void {
  const log = pod.logStatus();
  add('counter', 'wal_appended_bytes', 'Bytes appended to the log.', log.appendedLsn);
  add(
    'gauge',
    'wal_unsynced_bytes',
    'Bytes not yet forced to disk.',
    log.appendedLsn - log.durableLsn,
  );
  add('gauge', 'wal_size_bytes', 'Bytes of log kept.', log.bytes);
  add('gauge', 'wal_segments', 'Log files kept.', log.segments);
  add('counter', 'wal_entries', 'Entries appended.', log.entries);
  add('counter', 'wal_frames', 'Writes to the log.', log.frames);
  add('counter', 'wal_fsyncs', 'Times the log was forced to disk.', log.fsyncs);
  add('gauge', 'wal_last_fsync_seconds', 'The last fsync took.', log.lastFsyncMs / 1000);
  add('gauge', 'wal_max_fsync_seconds', 'The longest fsync took.', log.maxFsyncMs / 1000);
  add('counter', 'pod_checkpoints', 'Checkpoints made.', pod.stats.checkpoints);
  add(
    'counter',
    'pod_checkpoint_failures',
    'Checkpoints that failed.',
    pod.stats.checkpointFailures,
  );
  add(
    'gauge',
    'pod_last_checkpoint_seconds',
    'The last checkpoint took.',
    pod.stats.lastCheckpointMs / 1000,
  );
  add(
    'gauge',
    'pod_write_failure',
    '1 while writes are refused.',
    pod.writeFailure === undefined ? 0 : 1,
  );
}
