// What the Redis plane reports to /metrics.

import type { CommandEntry } from '../../access/redis/commands/registry.ts';
import type { RedisServer } from '../../access/redis/server.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { Pod } from '../../storage-node/pod.ts';

export function redisSamples(
  server: RedisServer | undefined,
  pods: readonly { model: string; pod: Pod }[],
): MetricSample[] {
  const samples: MetricSample[] = [];
  if (server !== undefined) addServer(samples, server);
  for (const { model, pod } of pods) addPod(samples, model, pod);
  return samples;
}

function addServer(samples: MetricSample[], server: RedisServer): void {
  const { counters } = server;
  const gauge = (name: string, help: string, value: number): void => {
    samples.push({ name: `polyrow_redis_${name}`, help, type: 'gauge', value });
  };
  const counter = (name: string, help: string, value: number): void => {
    samples.push({ name: `polyrow_redis_${name}_total`, help, type: 'counter', value });
  };
  gauge('connections', 'Open Redis connections.', server.connections.size);
  gauge('blocked_clients', 'Clients waiting in a blocking command.', server.blockedClients);
  gauge('channels', 'Channels with subscribers.', server.pubsub.channels.size);
  counter('connections_accepted', 'Connections accepted.', counters.connections);
  counter('connections_rejected', 'Connections over the limit.', counters.rejectedConnections);
  counter('error_replies', 'Errors answered.', counters.errors);
  counter(
    'output_limit_disconnections',
    'Clients cut off because they did not read.',
    counters.outputLimitDisconnections,
  );
  let received = counters.bytesIn;
  let sent = counters.bytesOut;
  for (const connection of server.connections.values()) {
    received += connection.bytesIn;
    sent += connection.bytesOut;
  }
  counter('received_bytes', 'Bytes received.', received);
  counter('sent_bytes', 'Bytes sent.', sent);
  for (const entry of server.registry.all()) addCommand(samples, entry);
}

// The set of commands is fixed, so it may label.
function addCommand(samples: MetricSample[], entry: CommandEntry): void {
  for (const sub of entry.subcommands?.values() ?? []) addCommand(samples, sub);
  if (entry.calls === 0) return;
  const labels = { command: entry.fullName };
  samples.push(
    {
      name: 'polyrow_redis_commands_total',
      help: 'Commands run.',
      type: 'counter',
      value: entry.calls,
      labels,
    },
    {
      name: 'polyrow_redis_command_seconds_total',
      help: 'Time spent running commands.',
      type: 'counter',
      value: entry.spentMs / 1000,
      labels,
    },
    {
      name: 'polyrow_redis_commands_failed_total',
      help: 'Commands answered with an error.',
      type: 'counter',
      value: entry.failedCalls,
      labels,
    },
  );
}

function addPod(samples: MetricSample[], model: string, pod: Pod): void {
  const labels = { model };
  const add = (type: 'gauge' | 'counter', name: string, help: string, value: number): void => {
    const suffix = type === 'counter' ? '_total' : '';
    samples.push({ name: `polyrow_${name}${suffix}`, help, type, value, labels });
  };
  const engine = pod.engineStats();
  add('gauge', 'engine_rows', 'Rows held.', engine.rows);
  add('gauge', 'engine_memory_bytes', 'Memory held for rows and indexes.', engine.memoryBytes);
  add('gauge', 'engine_used_bytes', 'Memory that live rows need.', engine.usedBytes);
  add('gauge', 'engine_disk_bytes', 'Bytes on disk.', engine.diskBytes);
  add(
    'gauge',
    'engine_pending_reclaim_bytes',
    'Bytes dropped and not yet reclaimed.',
    engine.pendingReclaimBytes,
  );
  add('counter', 'engine_cache_hits', 'Reads answered from the row cache.', engine.cacheHits);
  add('counter', 'engine_cache_misses', 'Reads that went to disk.', engine.cacheMisses);
  for (const [name, value] of Object.entries(engine.extra)) {
    add('gauge', `engine_${name}`, 'Engine detail.', value);
  }
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
  add('counter', 'pod_expired_rows', 'Rows dropped when their time had come.', pod.expiredRows);
  add(
    'counter',
    'pod_read_faults',
    'Commands run again after a read from disk.',
    pod.stats.readFaults,
  );
  add(
    'counter',
    'pod_internal_errors',
    'Commands that failed by a fault of ours.',
    pod.stats.internalErrors,
  );
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
