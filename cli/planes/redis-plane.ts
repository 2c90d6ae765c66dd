// The Redis data plane, a worker thread: listener, gateway, pods. It shares nothing with the main thread
// and speaks with it by messages.

import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { Router } from '../../access/gateway/router.ts';
import { allCommands } from '../../access/redis/commands/all.ts';
import { CommandRegistry } from '../../access/redis/commands/registry.ts';
import { RedisServer, type OutputLimit } from '../../access/redis/server.ts';
import type { TableDefinition, TableModel } from '../../control/metadata/table-definition.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { openPod } from '../../storage-node/pod-host.ts';
import type { Pod } from '../../storage-node/pod.ts';
import type { TableRules } from '../../storage-node/table-rules.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import { LiveConfig } from '../config/live-config.ts';
import { redisConfigEntries } from '../config/redis-names.ts';
import type { Config, ConfigKey } from '../config/schema.ts';
import { packageVersion } from '../version.ts';
import { createEngine } from './engines.ts';
import { planeData, report as tell, serveCalls } from './plane-port.ts';
import { listening, planeFatal, planeLog, urlHost } from './plane-support.ts';
import { redisSamples } from './redis-samples.ts';

if (parentPort === null) throw new Error('the Redis plane runs in a worker thread');
const port = parentPort;
const { config, tables: firstTables } = await planeData(port);
const live = new LiveConfig(config);

// Pods are told apart in their logs, so that no log is ever replayed into another's engine.
const podIds: Readonly<Record<TableModel, number>> = { memory: 1, kv: 2 };

interface PlanePod {
  pod: Pod;
  rules: Map<number, TableRules>;
}

const pods = new Map<TableModel, PlanePod>();
let tables: readonly TableDefinition[] = firstTables;
const router = new Router();
let server: RedisServer | undefined;
let peakMemory = 0;

const log = planeLog(port);
const fatal = planeFatal(port);

function rulesOf(table: TableDefinition): TableRules {
  return {
    readOnly: table.readOnly,
    ttlDefaultMs: table.ttlDefaultMs,
    maxRowBytes: table.maxRowBytes === 0 ? Infinity : table.maxRowBytes,
  };
}

function memoryLimit(bytes: number): number {
  return bytes === 0 ? Infinity : bytes;
}

async function openModel(
  model: TableModel,
  definitions: readonly TableDefinition[],
): Promise<void> {
  const directory = resolve(config['data-dir'], 'redis', model);
  realDisk.makeDirectory(directory);
  const rules = new Map<number, TableRules>();
  for (const table of definitions) if (table.model === model) rules.set(table.id, rulesOf(table));
  const engine = await createEngine(model, {
    directory: join(directory, 'data'),
    disk: realDisk,
    cacheBytes: config['kv.cache-bytes'],
  });
  const pod = await openPod({
    engine,
    disk: realDisk,
    directory,
    podId: podIds[model],
    fsync: live.get('wal.fsync'),
    segmentBytes: config['wal.segment-bytes'],
    checkpointBytes: config['wal.checkpoint-bytes'],
    maxMemoryBytes: model === 'memory' ? memoryLimit(live.get('memory.max-bytes')) : Infinity,
    tables: rules,
    tableCount: config['redis.databases'],
    clock: systemClock,
    rng: systemRng,
    report: log,
    fatal,
    acceptLoss: config['wal.accept-loss'] === 'yes',
  });
  pod.start();
  pods.set(model, { pod, rules });
}

/** Puts a catalog into force: opens what it needs, and tells the pods and the router. */
async function adopt(definitions: readonly TableDefinition[]): Promise<void> {
  for (const model of new Set(definitions.map((table) => table.model))) {
    if (!pods.has(model)) await openModel(model, definitions);
  }
  // Checked in the same tick in which the catalog comes into force: no write can slip in between.
  for (const table of definitions) {
    for (const [model, { pod }] of pods) {
      const rows = model === table.model ? 0 : pod.tableSize(table.id).rows;
      if (rows > 0) {
        throw new Error(
          `database ${table.id} cannot be of model ${table.model}: it holds ${rows} rows in the ${model} engine; empty it first (FLUSHDB)`,
        );
      }
    }
  }
  for (const [model, { rules }] of pods) {
    for (const table of definitions) {
      if (table.model === model) rules.set(table.id, rulesOf(table));
      else rules.delete(table.id);
    }
  }
  tables = definitions;
  router.set(
    Array.from({ length: config['redis.databases'] }, (_, id) => {
      const model =
        definitions.find((table) => table.id === id)?.model ?? config['redis.default-model'];
      const pod = podOf(model);
      return { executor: pod, mayWait: model !== 'memory' || pod.tasksMayWait };
    }),
  );
}

function podOf(model: string): Pod {
  const found = pods.get(model as TableModel);
  if (found === undefined) throw new RangeError(`no pod of model ${model}`);
  return found.pod;
}

function podOfTable(table: number): Pod {
  const model = tables.find(({ id }) => id === table)?.model ?? config['redis.default-model'];
  return podOf(model);
}

function usedMemory(): number {
  let bytes = 0;
  for (const { pod } of pods.values()) bytes += pod.engineStats().memoryBytes;
  peakMemory = Math.max(peakMemory, bytes);
  return bytes;
}

function outputLimit(kind: 'normal' | 'pubsub'): OutputLimit {
  return {
    hardBytes: live.get(`redis.output-limit.${kind}-hard-bytes`),
    softBytes: live.get(`redis.output-limit.${kind}-soft-bytes`),
    softSeconds: live.get(`redis.output-limit.${kind}-soft-seconds`),
  };
}

/** Microseconds to milliseconds; a negative number switches the slow log off. */
function slowlogMs(micros: number): number {
  return micros < 0 ? Infinity : micros / 1000;
}

/** Acts on a live setting, whoever changed it. */
function applySetting(key: ConfigKey): void {
  if (server === undefined) return;
  switch (key) {
    case 'wal.fsync':
      for (const { pod } of pods.values()) pod.setFsync(live.get('wal.fsync'));
      break;
    case 'memory.max-bytes':
      podOf('memory').maxMemoryBytes = memoryLimit(live.get('memory.max-bytes'));
      break;
    case 'redis.password':
      server.setPassword(live.get('redis.password'));
      break;
    case 'redis.maxclients':
      server.maxClients = live.get('redis.maxclients');
      break;
    case 'redis.timeout':
      server.idleTimeout = live.get('redis.timeout');
      break;
    case 'redis.slowlog-log-slower-than':
      server.slowlogMs = slowlogMs(live.get('redis.slowlog-log-slower-than'));
      break;
    case 'redis.slowlog-max-len':
      server.slowlog.maxLength = live.get('redis.slowlog-max-len');
      break;
    case 'redis.proto-max-bulk-len':
      server.limits.bulkBytes = live.get('redis.proto-max-bulk-len');
      break;
    case 'redis.client-query-buffer-limit':
      server.limits.queryBytes = live.get('redis.client-query-buffer-limit');
      break;
    default:
      server.outputLimits = { normal: outputLimit('normal'), pubsub: outputLimit('pubsub') };
  }
}

function createServer(settings: Config, version: string): RedisServer {
  return new RedisServer({
    host: settings['redis.host'],
    port: settings['redis.port'],
    backlog: settings['redis.tcp-backlog'],
    maxClients: settings['redis.maxclients'],
    idleTimeout: settings['redis.timeout'],
    tcpKeepAliveSeconds: settings['redis.tcp-keepalive'],
    password: settings['redis.password'],
    maxBulkBytes: settings['redis.proto-max-bulk-len'],
    maxQueryBytes: settings['redis.client-query-buffer-limit'],
    slowlogMs: slowlogMs(settings['redis.slowlog-log-slower-than']),
    slowlogLength: settings['redis.slowlog-max-len'],
    outputLimits: { normal: outputLimit('normal'), pubsub: outputLimit('pubsub') },
    registry: new CommandRegistry(allCommands),
    router,
    config: redisConfigEntries(live),
    report: log,
    facts: {
      version,
      runId: randomBytes(20).toString('hex'),
      startedAt: Date.now(),
      executable: process.argv[1] ?? process.execPath,
      configFile: '',
      dataDirectory: resolve(settings['data-dir']),
      usedMemory,
      peakMemory: () => Math.max(peakMemory, usedMemory()),
      persistence,
      tableSize: (table) => podOfTable(table).tableSize(table),
      lookups: () => ({
        hits: sum((pod) => pod.lookups.hits),
        misses: sum((pod) => pod.lookups.misses),
      }),
      expiredRows: () => sum((pod) => pod.expiredRows),
      checkpoint: async () => {
        for (const { pod } of pods.values()) await pod.checkpoint();
      },
      lastCheckpointAt: () =>
        Math.max(0, ...[...pods.values()].map(({ pod }) => pod.stats.lastCheckpointAt)),
      checkpointInProgress: () => [...pods.values()].some(({ pod }) => pod.checkpointInProgress),
      shutdown: () => process.kill(process.pid, 'SIGTERM'),
    },
  });
}

function sum(of: (pod: Pod) => number): number {
  let total = 0;
  for (const { pod } of pods.values()) total += of(pod);
  return total;
}

function persistence(): Record<string, string | number> {
  const failing = [...pods.values()].find(({ pod }) => pod.writeFailure !== undefined);
  return {
    aof_last_write_status: failing === undefined ? 'ok' : 'err',
    aof_last_bgrewrite_status: sum((pod) => pod.stats.checkpointFailures) === 0 ? 'ok' : 'err',
    aof_current_size: sum((pod) => pod.logStatus().bytes),
    aof_pending_bio_fsync: 0,
  };
}

function samples(): MetricSample[] {
  return redisSamples(
    server,
    [...pods].map(([model, { pod }]) => ({ model, pod })),
  );
}

async function start(): Promise<void> {
  await adopt(firstTables);
  server = createServer(config, packageVersion());
  live.onChange((key, value) => {
    applySetting(key);
    if (!fromOutside) tell(port, { type: 'configChanged', key, value });
  });
  const listener = server;
  await listening('redis', config['redis.host'], config['redis.port'], () => listener.listen());
  tell(port, {
    type: 'ready',
    endpoints: [{ name: 'redis', url: `redis://${urlHost(config['redis.host'])}:${server.port}` }],
  });
}

let fromOutside = false;

serveCalls(port, {
  metrics: samples,
  health: () => {
    const reasons: string[] = [];
    for (const [model, { pod }] of pods) {
      const failure = pod.writeFailure;
      if (failure !== undefined) reasons.push(`${model}: ${failure.message}`);
    }
    return reasons;
  },
  tables: adopt,
  rowCount: (table) => podOfTable(table).tableSize(table).rows,
  setConfig: ({ key, value }) => {
    fromOutside = true;
    try {
      live.set(key, value);
    } finally {
      fromOutside = false;
    }
  },
  drain: (graceMs) => server?.drain(graceMs),
  stop: async () => {
    await server?.drain(0);
    for (const { pod } of pods.values()) await pod.close();
  },
});

start().catch(fatal);
