// The Redis data plane, a worker thread: listener, gateway, pods. It shares nothing with the main thread
// and speaks with it by messages.

import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { Principals } from '../../access/gateway/principals.ts';
import { type Route, Router } from '../../access/gateway/router.ts';
import { allCommands } from '../../access/redis/commands/all.ts';
import { CommandRegistry } from '../../access/redis/commands/registry.ts';
import type { RedisTls } from '../../access/redis/listeners.ts';
import type { OutputLimit } from '../../access/redis/output-limits.ts';
import { RedisServer } from '../../access/redis/server.ts';
import type { TableDefinition, TableModel } from '../../control/metadata/table-definition.ts';
import type { DatabaseInfo } from '../../control/monitor/database-info.ts';
import type { Endpoint } from '../../control/monitor/endpoint.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { SlowlogEntry, SlowlogQuery } from '../../control/monitor/slowlog.ts';
import type { TenantAccount } from '../../request-units/meter.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { PlaneBackups } from '../../storage-node/backup/plane-backups.ts';
import { rowRestore, rowSource } from '../../storage-node/backup/plane-parts.ts';
import { PlaneRestores } from '../../storage-node/backup/plane-restores.ts';
import { dropShadowTables } from '../../storage-node/backup/row-restore.ts';
import { openPod } from '../../storage-node/pod-host.ts';
import type { Pod } from '../../storage-node/pod.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import { stringLimit } from '../../universal-row/transforms/redis/support/string-limit.ts';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import { LiveConfig } from '../settings/live-config.ts';
import { redisConfigEntries } from '../settings/redis-names.ts';
import type { Config, ConfigKey } from '../settings/schema.ts';
import { packageVersion } from '../version.ts';
import { admissionReport } from './admission-report.ts';
import { admissionSamples } from './admission-samples.ts';
import { createEngine } from './engines.ts';
import { PlaneAdmission } from './plane-admission.ts';
import { costTable } from './plane-meter.ts';
import { ask, planeData, report as tell, serveCalls } from './plane-port.ts';
import { listening, planeFatal, planeLog, tlsListeners, urlHost } from './plane-support.ts';
import { RedisPlaneMeter } from './redis-metering.ts';
import { hashSamples } from './hash-samples.ts';
import { redisSamples } from './redis-samples.ts';
import { PlaneCache } from './plane-cache.ts';
import { PlaneMemory } from './plane-memory.ts';
import { PlanePartitions } from './plane-partitions.ts';
import { PlaneReads } from './plane-reads.ts';
import { PlaneSteps } from './plane-steps.ts';
import { PlanePodAdmission } from './plane-pod-admission.ts';
import { RedisTables } from './redis-tables.ts';

if (parentPort === null) throw new Error('the Redis plane runs in a worker thread');
const port = parentPort;
const data = await planeData(port);
const { config, tables: firstTables, tls: tlsMaterial } = data;
const live = new LiveConfig(config);

// Pods are told apart in their logs, so that no log is ever replayed into another's engine.
const podIds: Readonly<Record<TableModel, number>> = { memory: 1, kv: 2 };

const pods = new Map<TableModel, Pod>();
const tables = new RedisTables(data.defaultModel, () => pods.values());
const principals = new Principals({
  databases: config['redis.databases'],
  defaultPassword: live.get('redis.password'),
});
const tls = await tlsListeners(tlsMaterial);
const meter = new RedisPlaneMeter(costTable(config), (table) => tables.ownerOf(table));
meter.enabled = live.get('ru.metering') === 'on';
const { meter: accounts } = meter.plane;
/** What was spent lately, as of now. */
const activeAccounts = (): Iterable<TenantAccount> => {
  meter.metering.flushAll();
  return meter.plane.meter.activeAccounts();
};
const podAdmission = new PlanePodAdmission({
  plane: 'redis',
  directory: resolve(config['data-dir'], 'redis'),
  warn: (message, fields) => log('warn', message, fields),
  live,
  accounts: activeAccounts,
});
const partitions = new PlanePartitions({
  live,
  accounts: activeAccounts,
  ownerOf: (table) => tables.ownerOf(table)?.number,
  podRate: () => podAdmission.podRate,
});
podAdmission.rateChanged = () => partitions.rateChanged();
const admission = new PlaneAdmission({
  plane: 'redis',
  live,
  accountOf: (tenant) => accounts.account(tenant),
  pod: podAdmission.controller,
  warn: (fields, message) => log('warn', message, fields),
});
const cache = new PlaneCache({
  live,
  ownerOf: (table) => tables.ownerOf(table),
  reload: (table, key, load) => server?.otherPods.reload(table, key, load),
  changed: () => {
    if (server !== undefined) server.cache = cache.inUse;
  },
});
const reads = new PlaneReads(live, (table) => tables.ownerOf(table)?.number);
const router = new Router();
let server: RedisServer | undefined;
let peakMemory = 0;

const log = planeLog(port);
const fatal = planeFatal(port);
const steps = new PlaneSteps('redis', log);
const memory = new PlaneMemory('redis', live);

function memoryLimit(bytes: number): number {
  return bytes === 0 ? Infinity : bytes;
}

async function openModel(model: TableModel): Promise<void> {
  const directory = resolve(config['data-dir'], 'redis', model);
  realDisk.makeDirectory(directory);
  const engine = await createEngine(model, {
    directory: join(directory, 'data'),
    disk: realDisk,
    cacheBytes: config['kv.cache-bytes'],
    writeBufferBytes: config['kv.write-buffer-bytes'],
    readGate: reads.gateOf(model),
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
    tables: tables.rulesOf(model),
    clock: systemClock,
    rng: systemRng,
    background: meter.backgroundOf(model),
    admission: podAdmission.controller,
    steps: steps.watch,
    report: log,
    fatal,
    acceptLoss: config['wal.accept-loss'] === 'yes',
    keepLogBytes: config['backup.keep-log-bytes'],
  });
  await dropShadowTables(pod);
  pod.start();
  pods.set(model, pod);
}

/** Puts a catalog into force: opens what it needs, and tells the pods and the router. */
async function adopt(definitions: readonly TableDefinition[]): Promise<void> {
  const { defaultModel } = tables;
  for (const model of new Set([defaultModel, ...definitions.map((table) => table.model)])) {
    if (!pods.has(model)) await openModel(model);
  }
  // Checked in the same tick in which the catalog comes into force: no write can slip in between.
  for (const table of definitions) {
    for (const [model, pod] of pods) {
      const rows = model === table.model ? 0 : pod.tableSize(table.id).rows;
      if (rows > 0) {
        throw new Error(
          `database ${table.id} cannot be of model ${table.model}: it holds ${rows} rows in the ${model} engine; empty it first (FLUSHDB)`,
        );
      }
    }
  }
  tables.setDefinitions(definitions);
  const bypassing = definitions.filter(({ cacheBypass }) => cacheBypass).map(({ id }) => id);
  for (const pod of pods.values()) pod.parts.engine.setCacheBypass?.(new Set(bypassing));
  partitions.setTables(definitions);
  cache.setTables(definitions);
  route();
}

/** Tells the router where rows are. */
function route(): void {
  const exceptions = new Map<number, Route>();
  for (const { id, model, quotaMode } of tables.definitions) {
    if (model === tables.defaultModel && quotaMode === 'server') continue;
    exceptions.set(id, { ...routeTo(model), quotaMode });
  }
  router.set(routeTo(tables.defaultModel), exceptions);
  admission.gateway.quotaModesChanged();
}

function routeTo(model: TableModel): Route {
  const pod = podOf(model);
  const mayWait = model !== 'memory' || pod.tasksMayWait;
  return { executor: pod, mayWait, pricer: meter.pricerOf(model) };
}

function podOf(model: TableModel): Pod {
  const pod = pods.get(model);
  if (pod === undefined) throw new RangeError(`no pod of model ${model}`);
  return pod;
}

function podOfTable(table: number): Pod {
  return podOf(tables.modelOf(table));
}

/** Another engine for the tables without a definition. */
async function adoptDefault(model: TableModel): Promise<void> {
  if (!pods.has(model)) await openModel(model);
  const { defaultModel } = tables;
  const held = undefinedTables().find((table) => podOf(defaultModel).tableSize(table).rows > 0);
  if (model !== defaultModel && held !== undefined) {
    throw new Error(`database ${held} holds rows in the ${defaultModel} engine`);
  }
  tables.defaultModel = model;
  route();
}

function undefinedTables(): number[] {
  const held = new Set([...pods.values()].flatMap((pod) => pod.heldTables()));
  return [...held].filter((table) => !tables.isDefined(table)).sort((a, b) => a - b);
}

function follow(update: TenancyUpdate): void {
  tables.follow(update);
  podAdmission.follow(update);
  partitions.follow(update);
  cache.tenantsChanged();
  reads.follow(update);
  principals.update(update);
  admission.gateway.update(update);
}

async function dropTenant(number: number): Promise<void> {
  const tenant = tables.tenant(number);
  if (tenant === undefined) return;
  const span = { first: tenant.firstTable, count: tenant.databases };
  for (const pod of pods.values()) await pod.dropTables(span);
  meter.forget(number);
  steps.watch.forget(number);
  podAdmission.forget(number);
  partitions.forget(number);
  cache.forgetTenant(number);
  reads.forget(number);
}

function databasesOf(number: number): DatabaseInfo[] {
  const tenant = tables.tenant(number);
  const infos: DatabaseInfo[] = [];
  for (let n = 0; n < (tenant?.databases ?? 0); n++) {
    const { rows } = podOfTable(tenant!.firstTable + n).tableSize(tenant!.firstTable + n);
    if (rows > 0) infos.push({ name: n, rows });
  }
  return infos;
}

function slowest({ tenant, limit }: SlowlogQuery): SlowlogEntry[] {
  return (server?.slowest(limit, tenant) ?? []).map(({ tenant: number, entry }) => ({
    id: entry.serial,
    at: entry.at,
    durationMicros: Math.round(entry.spentMs * 1000),
    tenant: number,
    user: entry.user,
    address: entry.client,
    text: entry.words.map((word) => shownWord(word)).join(' '),
    ru: entry.ru,
  }));
}

/** As it would be typed, with what cannot be in quotes. */
function shownWord(word: Buffer): string {
  const text = word.toString('utf8');
  return /^[!-~]+$/.test(text) && !/["'\\]/.test(text) ? text : JSON.stringify(text);
}

function usedMemory(): number {
  let bytes = 0;
  for (const pod of pods.values()) bytes += pod.engineStats().memoryBytes;
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
  memory.settingChanged(key);
  reads.settingChanged(key);
  admission.settingChanged(key);
  podAdmission.settingChanged(key);
  partitions.settingChanged(key);
  cache.settingChanged(key);
  if (server === undefined) return;
  switch (key) {
    case 'wal.fsync':
      for (const pod of pods.values()) pod.setFsync(live.get('wal.fsync'));
      break;
    case 'memory.max-bytes':
      podOf('memory').maxMemoryBytes = memoryLimit(live.get('memory.max-bytes'));
      break;
    case 'redis.password':
      principals.setDefaultPassword(live.get('redis.password'));
      break;
    case 'redis.maxclients':
      server.maxClients = live.get('redis.maxclients');
      break;
    case 'redis.login-timeout-ms':
      server.logins.timeoutMs = live.get('redis.login-timeout-ms');
      break;
    case 'redis.timeout':
      server.idleTimeout = live.get('redis.timeout');
      break;
    case 'redis.slowlog-log-slower-than':
      server.slowlogMs = slowlogMs(live.get('redis.slowlog-log-slower-than'));
      break;
    case 'redis.slowlog-max-len':
      server.slowlogLimits.length = live.get('redis.slowlog-max-len');
      break;
    case 'ru.metering':
      meter.enabled = live.get('ru.metering') === 'on';
      server.metering = meter.enabled ? meter.metering : undefined;
      break;
    case 'redis.proto-max-bulk-len':
      stringLimit.bytes = live.get('redis.proto-max-bulk-len');
      server.limits.bulkBytes = stringLimit.bytes;
      break;
    case 'redis.client-query-buffer-limit':
      server.limits.queryBytes = live.get('redis.client-query-buffer-limit');
      break;
    default:
      server.output.limits = { normal: outputLimit('normal'), pubsub: outputLimit('pubsub') };
  }
}

/** Settings under which TLS is served here, if it is. */
function tlsOf(settings: Config): { tls?: RedisTls } {
  const onPort = settings['redis.tls'] === 'on';
  const ownPort = settings['redis.tls-port'];
  if (tls === undefined || (!onPort && ownPort === 0)) return {};
  return { tls: { listeners: tls, onPort, ownPort } };
}

/** A TLS port of its own is an endpoint of its own. */
function endpoints(settings: Config, listener: RedisServer): Endpoint[] {
  const host = urlHost(settings['redis.host']);
  const scheme = settings['redis.tls'] === 'on' ? 'rediss' : 'redis';
  const all = [{ name: 'redis', url: `${scheme}://${host}:${listener.port}` }];
  if (listener.tlsPort !== 0) {
    all.push({ name: 'tls', url: `rediss://${host}:${listener.tlsPort}` });
  }
  return all;
}

function createServer(settings: Config, version: string): RedisServer {
  stringLimit.bytes = settings['redis.proto-max-bulk-len'];
  return new RedisServer({
    host: settings['redis.host'],
    port: settings['redis.port'],
    ...tlsOf(settings),
    backlog: settings['redis.tcp-backlog'],
    maxClients: settings['redis.maxclients'],
    idleTimeout: settings['redis.timeout'],
    loginTimeoutMs: settings['redis.login-timeout-ms'],
    tcpKeepAliveSeconds: settings['redis.tcp-keepalive'],
    principals,
    users: {
      setUser: async (tenant, name, change) => {
        await ask(port, 'setUser', { tenant, name, change });
      },
      dropUser: (tenant, name) => ask(port, 'dropUser', { tenant, name }),
    },
    maxBulkBytes: settings['redis.proto-max-bulk-len'],
    maxQueryBytes: settings['redis.client-query-buffer-limit'],
    metering: meter.enabled ? meter.metering : undefined,
    admission: admission.gateway,
    partitions: partitions.ceilings,
    slowlogMs: slowlogMs(settings['redis.slowlog-log-slower-than']),
    slowlogLength: settings['redis.slowlog-max-len'],
    outputLimits: { normal: outputLimit('normal'), pubsub: outputLimit('pubsub') },
    podAdmission: podAdmission.controller,
    steps: steps.watch,
    memory: memory.memory,
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
        hits: sum((pod) => pod.lookups.hits) + cache.found,
        misses: sum((pod) => pod.lookups.misses) + cache.absent,
      }),
      expiredRows: () => sum((pod) => pod.expiredRows),
      checkpoint: async () => {
        for (const pod of pods.values()) await pod.checkpoint();
      },
      lastCheckpointAt: () =>
        Math.max(0, ...[...pods.values()].map((pod) => pod.stats.lastCheckpointAt)),
      checkpointInProgress: () => [...pods.values()].some((pod) => pod.checkpointInProgress),
      shutdown: () => process.kill(process.pid, 'SIGTERM'),
    },
  });
}

function sum(of: (pod: Pod) => number): number {
  let total = 0;
  for (const pod of pods.values()) total += of(pod);
  return total;
}

function persistence(): Record<string, string | number> {
  const failing = [...pods.values()].find((pod) => pod.writeFailure !== undefined);
  return {
    aof_last_write_status: failing === undefined ? 'ok' : 'err',
    aof_last_bgrewrite_status: sum((pod) => pod.stats.checkpointFailures) === 0 ? 'ok' : 'err',
    aof_current_size: sum((pod) => pod.logStatus().bytes),
    aof_pending_bio_fsync: 0,
  };
}

function samples(): MetricSample[] {
  const ofPods = [...pods].map(([model, pod]) => ({ model, pod }));
  return [
    ...redisSamples(server, ofPods),
    ...hashSamples('redis'),
    ...meter.plane.samples(nameOf),
    ...podAdmission.samples(),
    ...steps.samples(),
    ...memory.samples(),
    ...partitions.samples(),
    ...cache.samples(),
    ...reads.samples(),
    ...admissionSamples('redis', admission.gateway, (tenant) =>
      meter.plane.labelOf(tenant, nameOf),
    ),
  ];
}

function nameOf(tenant: number): string | undefined {
  return tables.tenant(tenant)?.name;
}

async function start(): Promise<void> {
  follow(data.tenancy);
  await adopt(firstTables);
  server = createServer(config, packageVersion());
  server.cache = cache.inUse;
  live.onChange((key, value) => {
    applySetting(key);
    if (!fromOutside) tell(port, { type: 'configChanged', key, value });
  });
  const listener = server;
  podAdmission.controller.cpu.afterSlice = listener.tick.end;
  await listening('redis', config['redis.host'], config['redis.port'], () => listener.listen());
  steps.start();
  tell(port, { type: 'ready', endpoints: endpoints(config, server) });
}

let fromOutside = false;

const backups = new PlaneBackups(realDisk, () =>
  [...pods].map(([model, pod]) =>
    rowSource(model, pod, () => live.get('backup.incremental-checksums') === 'on'),
  ),
);
const restores = new PlaneRestores((start) => rowRestore(realDisk, start, podOfTable));

serveCalls(port, {
  metrics: samples,
  health: () => {
    const reasons: string[] = [];
    for (const [model, pod] of pods) {
      const failure = pod.writeFailure;
      if (failure !== undefined) reasons.push(`${model}: ${failure.message}`);
    }
    return reasons;
  },
  tables: adopt,
  // Those of the InfluxDB plane.
  seriesTables: () => {},
  defaultModel: adoptDefault,
  rowCount: (table) => podOfTable(table).tableSize(table).rows,
  undefinedTables,
  tenancy: follow,
  dropTenant,
  usage: (since) => meter.plane.usage(since),
  admission: (query) => admissionReport(admission.gateway, query),
  top: (query) => meter.plane.top('key', query),
  slowlog: slowest,
  steps: (query) => steps.list(query),
  databases: databasesOf,
  createDatabase: () => {
    throw new Error('the databases of Redis are numbers: a tenant has them from its start');
  },
  dropDatabase: () => {
    throw new Error('the databases of Redis are numbers: they cannot be dropped');
  },
  backup: (order) => backups.order(order),
  restore: async (order) => {
    try {
      return await restores.order(order);
    } finally {
      // That puts other rows in place by ways of its own.
      if (order.action === 'commit') cache.clear();
    }
  },
  setConfig: ({ key, value }) => {
    fromOutside = true;
    try {
      live.set(key, value);
    } finally {
      fromOutside = false;
    }
  },
  tls: (material) => tls?.renew(material),
  drain: (graceMs) => {
    admission.close();
    podAdmission.close();
    partitions.close();
    cache.close();
    return server?.drain(graceMs);
  },
  stop: async () => {
    await server?.drain(0);
    steps.close();
    reads.close();
    for (const pod of pods.values()) await pod.close();
  },
});

start().catch(fatal);
