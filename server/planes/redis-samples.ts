// Metrics of the Redis plane.

import type { CommandEntry } from '../../access/redis/commands/registry.ts';
import type { RedisServer } from '../../access/redis/server.ts';
import type { TableModel } from '../../control/metadata/table-definition.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { Pod } from '../../storage-node/pod.ts';
import { addLogAndCheckpoints, adder } from './pod-samples.ts';

/** A pod of the one copy of a model's tables, or of a replica of a group. */
export interface NamedPod {
  readonly model: TableModel;
  readonly group?: number;
  readonly pod: Pod;
}

export function redisSamples(
  server: RedisServer | undefined,
  pods: Iterable<NamedPod>,
): MetricSample[] {
  const samples: MetricSample[] = [];
  if (server !== undefined) addServer(samples, server);
  for (const pod of pods) addPod(samples, pod);
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
  gauge(
    'unauthenticated_connections',
    'Open connections that have to log in and have not.',
    server.logins.size,
  );
  counter(
    'login_timeouts',
    'Connections closed because they did not log in.',
    server.logins.timeouts,
  );
  counter(
    'unauthenticated_replaced',
    'Connections that had not logged in and gave way to newer ones.',
    server.logins.replaced,
  );
  gauge('blocked_clients', 'Clients waiting in a blocking command.', server.blocked.size);
  gauge('channels', 'Channels with subscribers.', server.countListeners('channels'));
  counter('connections_accepted', 'Connections accepted.', counters.connections);
  counter('connections_rejected', 'Connections over the limit.', counters.rejectedConnections);
  counter('error_replies', 'Errors answered.', counters.errors);
  counter(
    'output_limit_disconnections',
    'Clients cut off because they did not read.',
    server.output.disconnections,
  );
  counter(
    'keyspace_events_dropped',
    'Keyspace notifications not sent, as subscribers did not keep up or the key is too long for their patterns.',
    server.changes.droppedEvents,
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

function addPod(samples: MetricSample[], { model, group, pod }: NamedPod): void {
  const add = adder(samples, group === undefined ? { model } : { model, group: String(group) });
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
  add('counter', 'pod_expired_rows', 'Rows dropped when their time had come.', pod.expiredRows);
  let evicted = 0;
  for (const count of pod.evictedRows.values()) evicted += count;
  add('counter', 'pod_evicted_rows', 'Rows dropped to make room.', evicted);
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
  add('counter', 'pod_long_commands', 'Commands run in steps.', pod.stats.longCommands);
  add('counter', 'pod_long_steps', 'Steps of long commands.', pod.stats.longSteps);
  add('gauge', 'pod_long_commands_running', 'Long commands that hold tables.', pod.longRuns);
  add(
    'gauge',
    'pod_waiting_commands',
    'Commands that wait for a table that a long command holds.',
    pod.waitingCommands,
  );
  addLogAndCheckpoints(add, pod);
}
