// Applies settings to the Redis server, at its start and whenever a setting changes.

import { resolve } from 'node:path';
import { randomBytes } from 'node:crypto';
import type { TlsListeners } from '../../access/gateway/tls-context.ts';
import { nodeIdOf } from '../../access/redis/cluster.ts';
import { parseEventClasses } from '../../access/redis/keyspace-events.ts';
import type { RedisTls } from '../../access/redis/listeners.ts';
import type { RedisServer } from '../../access/redis/server.ts';
import type { ServerFacts } from '../../access/redis/server-facts.ts';
import type { Endpoint } from '../../control/monitor/endpoint.ts';
import { stringLimit } from '../../universal-row/transforms/redis/support/string-limit.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import { outputLimits } from '../settings/output-limits.ts';
import type { Config, ConfigKey } from '../settings/schema.ts';
import type { PlaneCache } from './plane-cache.ts';
import { urlHost } from './plane-support.ts';
import type { RedisPods } from './redis-pods.ts';

/** Time in which a client has to log in, where it has to. */
const loginTimeoutMs = 10_000;

/** Settings for a new server. */
export function serverSettings(settings: Config) {
  stringLimit.bytes = settings['redis.proto-max-bulk-len'];
  return {
    host: settings['redis.host'],
    port: settings['redis.port'],
    backlog: settings['redis.tcp-backlog'],
    maxClients: settings['redis.maxclients'],
    idleTimeout: settings['redis.timeout'],
    loginTimeoutMs,
    tcpKeepAliveSeconds: settings['redis.tcp-keepalive'],
    maxBulkBytes: settings['redis.proto-max-bulk-len'],
    maxQueryBytes: settings['redis.client-query-buffer-limit'],
    slowlogMs: slowlogMs(settings['redis.slowlog-log-slower-than']),
    busyReplyMs: busyReplyMs(settings['redis.busy-reply-threshold']),
    slowlogLength: settings['redis.slowlog-max-len'],
    outputLimits: outputLimits(settings['redis.client-output-buffer-limit']),
    clusterId:
      settings['redis.cluster-mode'] === 'off'
        ? undefined
        : nodeIdOf(resolve(settings['data-dir'])),
  };
}

/** Before its first client. */
export function applyAtStart(server: RedisServer, live: LiveConfig): void {
  server.latency.thresholdMs = latencyMs(live);
  server.changes.classes = eventClasses(live);
  server.changes.maxTrackedKeys = live.get('redis.tracking-table-max-keys');
}

/** A live setting that is the server's own has changed. */
export function applyToServer(server: RedisServer, live: LiveConfig, key: ConfigKey): void {
  switch (key) {
    case 'redis.maxclients':
      server.maxClients = live.get('redis.maxclients');
      break;
    case 'redis.timeout':
      server.idleTimeout = live.get('redis.timeout');
      break;
    case 'redis.slowlog-log-slower-than':
      server.slowlogMs = slowlogMs(live.get('redis.slowlog-log-slower-than'));
      break;
    case 'redis.busy-reply-threshold':
      server.busyReplyMs = busyReplyMs(live.get('redis.busy-reply-threshold'));
      break;
    case 'redis.slowlog-max-len':
      server.slowlogLimits.length = live.get('redis.slowlog-max-len');
      break;
    case 'redis.latency-monitor-threshold':
      server.latency.thresholdMs = latencyMs(live);
      break;
    case 'redis.notify-keyspace-events':
      server.changes.classes = eventClasses(live);
      break;
    case 'redis.tracking-table-max-keys':
      server.changes.maxTrackedKeys = live.get('redis.tracking-table-max-keys');
      break;
    case 'redis.proto-max-bulk-len':
      stringLimit.bytes = live.get('redis.proto-max-bulk-len');
      server.limits.bulkBytes = stringLimit.bytes;
      break;
    case 'redis.client-query-buffer-limit':
      server.limits.queryBytes = live.get('redis.client-query-buffer-limit');
      break;
    case 'redis.client-output-buffer-limit':
      server.output.limits = outputLimits(live.get('redis.client-output-buffer-limit'));
      break;
    default:
  }
}

/** Settings under which TLS is served here, if it is. */
export function tlsOf(settings: Config, listeners: TlsListeners): { tls?: RedisTls } {
  const onPort = settings['redis.tls'] === 'on';
  const ownPort = settings['redis.tls-port'];
  if (!onPort && ownPort === 0) return {};
  return { tls: { listeners, onPort, ownPort } };
}

/** A TLS port of its own is an endpoint of its own. */
export function endpointsOf(settings: Config, listener: RedisServer): Endpoint[] {
  const host = urlHost(settings['redis.host']);
  const scheme = settings['redis.tls'] === 'on' ? 'rediss' : 'redis';
  const all = [{ name: 'redis', url: `${scheme}://${host}:${listener.port}` }];
  if (listener.tlsPort !== 0) {
    all.push({ name: 'tls', url: `rediss://${host}:${listener.tlsPort}` });
  }
  return all;
}

export function serverFacts(of: {
  readonly settings: Config;
  readonly version: string;
  readonly pods: RedisPods;
  readonly cache: PlaneCache;
}): ServerFacts {
  const { settings, version, pods, cache } = of;
  return {
    version,
    runId: randomBytes(20).toString('hex'),
    startedAt: Date.now(),
    executable: process.argv[1] ?? process.execPath,
    configFile: '',
    dataDirectory: resolve(settings['data-dir']),
    memory: () => pods.memoryUse(),
    persistence: () => pods.persistence(),
    tableSize: (table, ifLed) => pods.sizeOf(table, ifLed),
    lookups: () => ({
      hits: pods.sum((pod) => pod.lookups.hits) + cache.found,
      misses: pods.sum((pod) => pod.lookups.misses) + cache.absent,
    }),
    expiredRows: () => pods.sum((pod) => pod.expiredRows),
    evictedRows: (firstTable) => pods.evictedRows(firstTable),
    checkpoint: () => pods.checkpoint(),
    synced: () => pods.synced(),
    lastCheckpointAt: () => pods.lastCheckpointAt,
    checkpointInProgress: () => pods.checkpointInProgress,
    shutdown: () => process.kill(process.pid, 'SIGTERM'),
  };
}

function latencyMs(live: LiveConfig): number {
  return live.get('redis.latency-monitor-threshold') || Infinity;
}

/** Letters that are none are ignored: only a configuration file can have them. */
function eventClasses(live: LiveConfig): string {
  return parseEventClasses(live.get('redis.notify-keyspace-events')) ?? '';
}

/** Microseconds to milliseconds; a negative number switches the slow log off. */
function slowlogMs(micros: number): number {
  return micros < 0 ? Infinity : micros / 1000;
}

/** 0 for never. */
function busyReplyMs(ms: number): number {
  return ms === 0 ? Infinity : ms;
}
