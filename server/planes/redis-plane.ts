// The Redis data plane, a worker thread: listener, gateway, pods. It shares nothing with the main thread
// and speaks with it by messages.

import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import { parentPort } from 'node:worker_threads';
import type { RemoteExecutor } from '../../access/gateway/pods/remote-executor.ts';
import { Principals } from '../../access/gateway/principals.ts';
import { type Route, Router } from '../../access/gateway/router.ts';
import { allCommands } from '../../access/redis/commands/all.ts';
import { CommandRegistry } from '../../access/redis/commands/registry.ts';
import { ClusterMap } from '../../access/redis/cluster-map.ts';
import { GroupExecutor } from '../../access/gateway/pods/group-executor.ts';
import { loadedScripts } from '../../access/redis/node-questions.ts';
import { nodeIdOf } from '../../access/redis/cluster.ts';
import { parseEventClasses } from '../../access/redis/keyspace-events.ts';
import type { RedisTls } from '../../access/redis/listeners.ts';
import type { OutputLimit } from '../../access/redis/output-limits.ts';
import type { MemoryUse } from '../../access/redis/server-facts.ts';
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
import { isShadowTable } from '../../storage-node/backup/shadow.ts';
import { openPod } from '../../storage-node/pod-host.ts';
import type { Engine } from '../../engines/engine.ts';
import type { Pod } from '../../storage-node/pod.ts';
import type { TenantScriptState } from '../../storage-node/pod-server/node-scripts.ts';
import type { ServedPod } from '../../storage-node/pod-server/served-pods.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import { stringLimit } from '../../universal-row/transforms/redis/support/string-limit.ts';
import type { ClusterView } from '../../contracts/cluster.ts';
import { isPartition } from '../../contracts/partition-map.ts';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import { isLibraryTable, libraryTable } from '../../contracts/tenancy/library-tables.ts';
import { LiveConfig } from '../settings/live-config.ts';
import { redisConfigEntries } from '../settings/redis-names.ts';
import type { Config, ConfigKey } from '../settings/schema.ts';
import { packageVersion } from '../version.ts';
import { admissionReport } from './admission-report.ts';
import { admissionSamples } from './admission-samples.ts';
import { ClusterRoutes } from './cluster-routes.ts';
import { ClusterRows } from './cluster-rows.ts';
import { createEngine, podIds } from './engines.ts';
import { PlaneAdmission } from './plane-admission.ts';
import { LoopbackPods, podsBehindTcp } from './loopback-pods.ts';
import { costTable } from './plane-meter.ts';
import type { PlaneCluster } from './messages.ts';
import { ask, chunkDiskOf, planeData, report as tell, serveCalls } from './plane-port.ts';
import {
  listening,
  notInCluster,
  notInClusterYet,
  planeFatal,
  planeLog,
  tlsListeners,
  urlHost,
} from './plane-support.ts';
import { RedisPlaneMeter } from './redis-metering.ts';
import { hashSamples } from './hash-samples.ts';
import { type NamedPod, redisSamples } from './redis-samples.ts';
import { PlaneCache } from './plane-cache.ts';
import { PlaneLibraries, readLibraries } from './plane-libraries.ts';
import { PlaneMemory } from './plane-memory.ts';
import { PlanePartitions } from './plane-partitions.ts';
import { PlaneReads } from './plane-reads.ts';
import { PlaneSteps } from './plane-steps.ts';
import { PlanePodAdmission } from './plane-pod-admission.ts';
import { RedisPartitions } from './redis-partitions.ts';
import { RedisTables } from './redis-tables.ts';

if (parentPort === null) throw new Error('the Redis plane runs in a worker thread');
const port = parentPort;
const data = await planeData(port);
const { config, tables: firstTables, tls: tlsMaterial } = data;
const live = new LiveConfig(config);

/** The one copy of each model's tables; none in a cluster, where `cluster` has the replicas. */
const pods = new Map<TableModel, Pod>();
let cluster: ClusterRows | undefined;
/** All pods on this node. */
const localPods = (): Iterable<Pod> => cluster?.localPods() ?? pods.values();
const named = (): Iterable<NamedPod> =>
  cluster?.named() ?? Array.from(pods, ([model, pod]) => ({ model, pod }));
const tables = new RedisTables(data.defaultModel, localPods);
/** For the pods of each model. */
const rulesOfModels = { memory: tables.rulesOf('memory'), kv: tables.rulesOf('kv') };
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
const registry = new CommandRegistry(allCommands);
const divided = new RedisPartitions({
  tables,
  pods,
  entries: new Map(registry.entries().map((entry) => [entry.fullName, entry])),
  open: async (model) => {
    if (!pods.has(model)) await openModel(model);
  },
  commit: (table, targets) => ask(port, 'commitPartitions', { table, targets }),
  changed: (definition) => {
    tables.setDefinition(definition);
    route();
  },
  backupRuns: () => backups.isRunning,
  report: (level, message, fields) => log(level, message, fields),
});
const clusterRoutes = new ClusterRoutes({
  tables,
  entries: new Map(registry.entries().map((entry) => [entry.fullName, entry])),
  rows: () => cluster!,
  pricerOf: (model) => meter.pricerOf(model),
  quotaModeOf: (table) => tables.definition(table)?.quotaMode,
  consistencyOf: (table) => tables.definition(table)?.consistency,
  // Who is sent to the leaders asks each of them for what it has.
  asksOf:
    config['redis.cluster-mode'] === 'redirect'
      ? (pod) => pod instanceof GroupExecutor && !pod.isElsewhere
      : undefined,
});
/** Where clients are sent that are to go to the leaders by themselves. */
const clusterMap =
  data.cluster !== undefined && config['redis.cluster-mode'] === 'redirect'
    ? new ClusterMap({ name: String(data.cluster.id), node: data.cluster.node, router })
    : undefined;
let server: RedisServer | undefined;
let peakMemory = 0;

const log = planeLog(port);
const libraries = new PlaneLibraries({
  pods: () => pods.values(),
  home: () => podOf(tables.defaultModel),
  tenant: (number) => {
    const definition = tables.tenant(number);
    return definition && server?.tenant(definition).scripts.functions;
  },
  tenants: () => server?.tenants.keys() ?? [],
  warn: (message, fields) => log('warn', message, fields),
});
const fatal = planeFatal(port);
const steps = new PlaneSteps('redis', log);
const memory = new PlaneMemory('redis', live);

/** Pods as links of gateways see them. */
const served = new Map<TableModel, ServedPod>();

const loopback = podsBehindTcp
  ? new LoopbackPods({
      podOf: (table) => served.get(tables.modelOf(table))!,
      refusalOf: (command) => podOfTable(command.table)?.refusal(command),
      scriptsOf,
      publish: (tenant, message) => void server?.hear(tenant, message),
      report: log,
      failed: fatal,
    })
  : undefined;

/**
 * Bytes that a server without rows counts as used, about as many as redis-server's own, so that a limit below it refuses
 * every write that needs memory, as tools and tests expect of `maxmemory 1`.
 */
const emptyServerBytes = 768 * 1024;

/** What the rows of a model may use. Those of kv are on disk, and use nothing of the limit. */
function memoryLimit(model: TableModel): number {
  const bytes = live.get('memory.max-bytes');
  if (bytes === 0) return Infinity;
  const left = bytes - emptyServerBytes;
  return model === 'memory' || left < 0 ? left : Infinity;
}

function newEngine(model: TableModel, directory: string): Promise<Engine> {
  return createEngine(model, {
    directory,
    disk: realDisk,
    cacheBytes: config['kv.cache-bytes'],
    writeBufferBytes: config['kv.write-buffer-bytes'],
    readGate: reads.gateOf(model),
  });
}

/** What all pods of a model have in common. */
function podOptions(model: TableModel) {
  return {
    checkpointBytes: config['wal.checkpoint-bytes'],
    maxMemoryBytes: memoryLimit(model),
    tables: rulesOfModels[model],
    clock: systemClock,
    rng: systemRng,
    background: meter.backgroundOf(model),
    admission: podAdmission.controller,
    steps: steps.watch,
  };
}

/** What restores that came to nothing have left, where another node led then. */
function dropLeftovers(): void {
  if (restores.isRunning) return;
  for (const pod of localPods()) {
    if (pod.role !== 'leader' || !pod.heldTables().some(isShadowTable)) continue;
    dropShadowTables(pod).catch((error: unknown) => {
      log('warn', 'what a restore has left is not deleted yet', { err: error });
    });
  }
}

async function openModel(model: TableModel): Promise<void> {
  const directory = resolve(config['data-dir'], 'redis', model);
  realDisk.makeDirectory(directory);
  const pod = await openPod({
    ...podOptions(model),
    engine: await newEngine(model, join(directory, 'data')),
    disk: realDisk,
    directory,
    podId: podIds[model],
    fsync: live.get('wal.fsync'),
    segmentBytes: config['wal.segment-bytes'],
    report: log,
    fatal,
    acceptLoss: config['wal.accept-loss'] === 'yes',
    keepLogBytes: config['backup.keep-log-bytes'],
  });
  await dropShadowTables(pod);
  pod.start();
  pods.set(model, pod);
  if (model === 'memory') setEviction();
  served.set(model, { executor: pod, mayWait: mayWait(model) });
}

/** Puts a catalog into force: opens what it needs, and tells the pods and the router. */
async function adopt(definitions: readonly TableDefinition[]): Promise<void> {
  const { defaultModel } = tables;
  const models = definitions.flatMap(({ model, placement }) => [
    model,
    ...(placement?.partitions ?? []).map((partition) => partition.model as TableModel),
  ]);
  for (const model of new Set([defaultModel, ...models])) {
    if (cluster === undefined && !pods.has(model)) await openModel(model);
  }
  // Checked in the same tick in which the catalog comes into force: no write can slip in between.
  const refusal = server === undefined ? undefined : divided.refusal(definitions);
  if (refusal !== undefined) throw new Error(refusal);
  for (const table of definitions) {
    if (table.placement !== undefined) continue;
    for (const { model, pod } of named()) {
      const rows = model === table.model ? 0 : pod.tableSize(table.id).rows;
      if (rows > 0) {
        throw new Error(
          `database ${table.id} cannot be of model ${table.model}: it holds ${rows} rows in the ${model} engine; empty it first (FLUSHDB)`,
        );
      }
    }
  }
  tables.setDefinitions(definitions);
  const bypassing = definitions
    .filter(({ cacheBypass }) => cacheBypass)
    .flatMap(({ id }) => tables.partitionsOf(id).map(({ number }) => number));
  for (const pod of localPods()) pod.parts.engine.setCacheBypass?.(new Set(bypassing));
  partitions.setTables(definitions);
  cache.setTables(definitions);
  route();
}

/** Tells the router where rows are. */
function route(): void {
  if (cluster !== undefined) {
    router.setByTable(
      (table) => clusterRoutes.to(table),
      [cluster.turns],
      tables.tablesOfPartitions(),
    );
    admission.gateway.quotaModesChanged();
    return;
  }
  const exceptions = new Map<number, Route>();
  for (const { id, model, quotaMode } of tables.definitions) {
    const usual = { ...routeTo(model), quotaMode };
    const route = divided.routeOf(id, usual);
    if (route !== undefined) exceptions.set(id, route);
    else if (model !== tables.defaultModel || quotaMode !== 'server') exceptions.set(id, usual);
  }
  router.set(routeTo(tables.defaultModel), exceptions, tables.tablesOfPartitions());
  admission.gateway.quotaModesChanged();
}

/** Executors of pods behind TCP. */
const remotes = new Map<TableModel, RemoteExecutor>();

function mayWait(model: TableModel): boolean {
  return model !== 'memory' || podOf(model).tasksMayWait;
}

function routeTo(model: TableModel): Route {
  const pod = podOf(model);
  const pricer = meter.pricerOf(model);
  if (loopback !== undefined) {
    let remote = remotes.get(model);
    if (remote === undefined) remotes.set(model, (remote = loopback.newExecutor()));
    return { executor: remote, pods: [remote], remote, mayWait: true, pricer };
  }
  return { executor: pod, pods: [pod], mayWait: mayWait(model), pricer };
}

function podOf(model: TableModel): Pod {
  const pod = pods.get(model);
  if (pod === undefined) throw new RangeError(`no pod of model ${model}`);
  return pod;
}

/** The pod of a table or partition; in a cluster undefined where this node has no replica of it. */
function podOfTable(number: number): Pod | undefined {
  return cluster === undefined ? podOf(tables.modelOf(number)) : cluster.podOf(number);
}

/** Rows of a table, all of its partitions together; in a cluster those of which there are replicas here. */
function sizeOf(table: number): { rows: number; expiring: number } {
  const size = { rows: 0, expiring: 0 };
  for (const { number } of tables.partitionsOf(table)) {
    const one = podOfTable(number)?.tableSize(number);
    size.rows += one?.rows ?? 0;
    size.expiring += one?.expiring ?? 0;
  }
  return size;
}

/** Another engine for the tables without a definition. */
async function adoptDefault(model: TableModel): Promise<void> {
  if (cluster === undefined && !pods.has(model)) await openModel(model);
  const { defaultModel } = tables;
  const holders = [...named()].filter((one) => one.model === defaultModel);
  const held = undefinedTables().find((table) =>
    holders.some(({ pod }) => pod.tableSize(table).rows > 0),
  );
  if (model !== defaultModel && held !== undefined) {
    throw new Error(`database ${held} holds rows in the ${defaultModel} engine`);
  }
  tables.defaultModel = model;
  route();
  await gatherLibraries();
}

/** In a cluster they stay where they are. */
async function gatherLibraries(): Promise<void> {
  if (cluster === undefined) await libraries.gather();
}

function undefinedTables(): number[] {
  const numbers = [...localPods()].flatMap((pod) => pod.heldTables());
  const held = new Set(numbers.map((number) => tables.tableOf(number)));
  return [...held]
    .filter((table) => !tables.isDefined(table) && !isLibraryTable(table) && !isShadowTable(table))
    .sort((a, b) => a - b);
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
  const ofLibraries = { first: libraryTable(number), count: 1 };
  // In a cluster the controller removes its groups.
  if (cluster === undefined) await divided.dropAll(span);
  for (const pod of pods.values()) {
    await pod.dropTables(span);
    await pod.dropTables(ofLibraries);
  }
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
    const { rows } = sizeOf(tenant!.firstTable + n);
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

function memoryUse(): MemoryUse {
  let [live, allocated, cached] = [0, 0, 0];
  for (const { model, pod } of named()) {
    const { usedBytes, memoryBytes } = pod.engineStats();
    if (model === 'kv') cached += usedBytes;
    else {
      live += usedBytes;
      allocated += memoryBytes;
    }
  }
  const used = emptyServerBytes + live + cached;
  peakMemory = Math.max(peakMemory, used);
  return {
    used,
    peak: peakMemory,
    startup: emptyServerBytes,
    uncounted: cached,
    held: emptyServerBytes + allocated + cached,
  };
}

function outputLimit(kind: 'normal' | 'pubsub'): OutputLimit {
  return {
    hardBytes: live.get(`redis.output-limit.${kind}-hard-bytes`),
    softBytes: live.get(`redis.output-limit.${kind}-soft-bytes`),
    softSeconds: live.get(`redis.output-limit.${kind}-soft-seconds`),
  };
}

function latencyMs(): number {
  return live.get('redis.latency-monitor-threshold') || Infinity;
}

function memoryPods(): Pod[] {
  return Array.from(named())
    .filter(({ model }) => model === 'memory')
    .map(({ pod }) => pod);
}

/** Several pods share the limit: each may take what the others leave. */
function setMemoryLimit(): void {
  const shares = memoryPods();
  const used = shares.map((pod) => pod.engineStats().usedBytes);
  const total = used.reduce((sum, bytes) => sum + bytes, 0);
  for (const [i, pod] of shares.entries()) {
    pod.maxMemoryBytes = memoryLimit('memory') - total + used[i]!;
  }
  for (const { model, pod } of named()) {
    if (model === 'kv') pod.maxMemoryBytes = memoryLimit('kv');
  }
}

/** Only memory tables evict: those on disk have room. */
function setEviction(): void {
  const policy = live.get('memory.eviction-policy');
  for (const pod of memoryPods()) pod.setEviction(policy, live.get('memory.eviction-samples'));
}

/** Letters that are none are ignored: only a configuration file can have them. */
function eventClasses(): string {
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
      for (const pod of localPods()) pod.setFsync(live.get('wal.fsync'));
      break;
    case 'memory.max-bytes':
      setMemoryLimit();
      // Commands that come next go by it already.
      setImmediate(() => {
        for (const pod of memoryPods()) pod.tick();
      });
      break;
    case 'memory.eviction-policy':
    case 'memory.eviction-samples':
      setEviction();
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
    case 'redis.busy-reply-threshold':
      server.busyReplyMs = busyReplyMs(live.get('redis.busy-reply-threshold'));
      break;
    case 'redis.slowlog-max-len':
      server.slowlogLimits.length = live.get('redis.slowlog-max-len');
      break;
    case 'ru.metering':
      meter.enabled = live.get('ru.metering') === 'on';
      server.metering = meter.enabled ? meter.metering : undefined;
      break;
    case 'redis.latency-monitor-threshold':
      server.latency.thresholdMs = latencyMs();
      break;
    case 'redis.notify-keyspace-events':
      server.changes.classes = eventClasses();
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
    sockets: data.sockets && { port: data.sockets.redis, tls: data.sockets.redisTls },
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
    busyReplyMs: busyReplyMs(settings['redis.busy-reply-threshold']),
    slowlogLength: settings['redis.slowlog-max-len'],
    outputLimits: { normal: outputLimit('normal'), pubsub: outputLimit('pubsub') },
    podAdmission: podAdmission.controller,
    steps: steps.watch,
    memory: memory.memory,
    registry,
    router,
    clusterId:
      settings['redis.cluster-mode'] === 'off'
        ? undefined
        : nodeIdOf(resolve(settings['data-dir'])),
    clusterMap,
    readLibraries:
      cluster &&
      ((tenant) => {
        const done = readLibraries(router.to(libraryTable(tenant)).executor, tenant);
        server?.tick.schedule();
        return done;
      }),
    config: redisConfigEntries(live),
    report: log,
    facts: {
      version,
      runId: randomBytes(20).toString('hex'),
      startedAt: Date.now(),
      executable: process.argv[1] ?? process.execPath,
      configFile: '',
      dataDirectory: resolve(settings['data-dir']),
      memory: memoryUse,
      persistence,
      tableSize: (table) => sizeOf(table),
      lookups: () => ({
        hits: sum((pod) => pod.lookups.hits) + cache.found,
        misses: sum((pod) => pod.lookups.misses) + cache.absent,
      }),
      expiredRows: () => sum((pod) => pod.expiredRows),
      evictedRows: (firstTable) => evictedRows(firstTable),
      checkpoint: async () => {
        for (const pod of localPods()) await pod.checkpoint();
      },
      lastCheckpointAt: () =>
        Math.max(0, ...[...localPods()].map((pod) => pod.stats.lastCheckpointAt)),
      checkpointInProgress: () => [...localPods()].some((pod) => pod.checkpointInProgress),
      shutdown: () => process.kill(process.pid, 'SIGTERM'),
    },
  });
}

function sum(of: (pod: Pod) => number): number {
  let total = 0;
  for (const pod of localPods()) total += of(pod);
  return total;
}

/** Of the tenant whose first table this is, or of all. */
function evictedRows(firstTable: number | undefined): number {
  return sum((pod) => {
    if (firstTable !== undefined) return pod.evictedRows.get(firstTable) ?? 0;
    let total = 0;
    for (const count of pod.evictedRows.values()) total += count;
    return total;
  });
}

function persistence(): Record<string, string | number> {
  const failing = [...localPods()].find((pod) => pod.writeFailure !== undefined);
  return {
    rdb_changes_since_last_save: sum((pod) => Math.max(0, pod.changesSinceCheckpoint)),
    aof_last_write_status: failing === undefined ? 'ok' : 'err',
    aof_last_bgrewrite_status: sum((pod) => pod.stats.checkpointFailures) === 0 ? 'ok' : 'err',
    aof_current_size: sum((pod) => pod.logStatus().bytes),
    aof_pending_bio_fsync: 0,
  };
}

function samples(): MetricSample[] {
  return [
    ...redisSamples(server, named()),
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

/** What scripts share with those of clients of this node. */
function scriptsOf(number: number): TenantScriptState | undefined {
  const definition = tables.tenant(number);
  return definition && server?.servedScripts(definition);
}

/** Opens what a node of a cluster has instead of pods of its own. */
async function joinCluster(of: PlaneCluster): Promise<void> {
  cluster = await ClusterRows.open({
    data: of,
    directory: resolve(config['data-dir'], 'cluster', 'redis'),
    newEngine,
    podOptions,
    keepLogBytes: config['backup.keep-log-bytes'],
    admission: podAdmission.controller,
    groupOf: (table) => clusterRoutes.groupOf(table),
    refusalOf: ({ table, grows }) => refusalHere(table, grows),
    leaderWaitMs: config['cluster.leader-wait-ms'],
    loadedScripts: () => (server === undefined ? [] : loadedScripts(server)),
    scriptsOf,
    nodeIsThere: () => {
      for (const { scripts } of server?.tenants.values() ?? []) scripts.functions.outdate();
    },
    answer: (question) => {
      const definition = tables.tenant(question.tenant);
      return definition && server?.answerNode(question, definition);
    },
    changes: () => server?.changes,
    heard: (tenant, message) => server?.hear(tenant, message) ?? true,
    report: log,
    fatal,
  });
  const upkeep = setInterval(() => {
    setMemoryLimit();
    dropLeftovers();
  }, 1000);
  upkeep.unref();
}

/** What of a table's rules is known on every node. */
function refusalHere(table: number, grows: boolean): string | undefined {
  const rules = rulesOfModels[tables.modelOf(table)].get(table);
  if (rules?.readOnly === true) return "READONLY You can't write against a read only table.";
  return grows ? rules?.quota?.refusal() : undefined;
}

/** Nodes or groups have changed. */
async function adoptView(view: ClusterView): Promise<void> {
  if (cluster === undefined) notInCluster();
  clusterRoutes.setGroups(view.groups);
  clusterMap?.setNodes(
    view.nodes
      .filter(({ state }) => state !== 'removed')
      .map(({ node, addresses }) => ({ node, address: addresses.redisClients })),
  );
  await cluster.setView(view);
  setEviction();
  setMemoryLimit();
  route();
}

async function start(): Promise<void> {
  follow(data.tenancy);
  await loopback?.start();
  if (data.cluster !== undefined) {
    await joinCluster(data.cluster);
    tables.setDefinitions(firstTables);
    await adoptView(data.cluster.view);
  }
  await adopt(firstTables);
  if (cluster === undefined) await divided.dropOrphans();
  server = createServer(config, packageVersion());
  server.elsewhere = cluster;
  server.changes.elsewhere = cluster?.changes;
  server.cache = cache.inUse;
  await gatherLibraries();
  server.latency.thresholdMs = latencyMs();
  server.changes.classes = eventClasses();
  server.changes.maxTrackedKeys = live.get('redis.tracking-table-max-keys');
  live.onChange((key, value) => {
    applySetting(key);
    if (!fromOutside) tell(port, { type: 'configChanged', key, value });
  });
  podAdmission.controller.cpu.afterSlice = server.tick.end;
  const served = data.holdsBack === true ? [] : await listen(server);
  steps.start();
  tell(port, { type: 'ready', endpoints: served });
}

async function listen(listener: RedisServer): Promise<Endpoint[]> {
  await listening('redis', config['redis.host'], config['redis.port'], () => listener.listen());
  return endpoints(config, listener);
}

let fromOutside = false;

const chunkDisk = chunkDiskOf(port);
const backups = new PlaneBackups(chunkDisk, () =>
  Array.from(named(), ({ model, pod, group }) =>
    rowSource(
      model,
      pod,
      () => live.get('backup.incremental-checksums') === 'on',
      (number) => {
        const table = tables.tableOf(number);
        return isPartition(table) ? undefined : table;
      },
      group,
    ),
  ),
);
const restores = new PlaneRestores(
  (start) => rowRestore(chunkDisk(start.node), start, (table) => podOfTable(table)!),
  ({ tables: numbers }) => {
    for (const number of numbers) podOfTable(number)?.parts.pins?.clear();
  },
);

serveCalls(port, {
  metrics: samples,
  health: () => {
    const reasons: string[] = [];
    for (const { model, pod } of named()) {
      const failure = pod.writeFailure;
      if (failure !== undefined) reasons.push(`${model}: ${failure.message}`);
    }
    return reasons;
  },
  tables: adopt,
  // Those of the InfluxDB plane.
  seriesTables: () => {},
  defaultModel: adoptDefault,
  rowCount: (table) => sizeOf(table).rows,
  changePartitions: (definition) => {
    if (cluster !== undefined) throw new Error(notInClusterYet.partitions);
    return divided.begin(definition);
  },
  partitionChange: (table) => divided.status(table),
  cancelPartitionChange: (table) => divided.cancel(table),
  partitionSizes: (table) =>
    tables
      .partitionsOf(table)
      .map(({ number }) => ({ number, rows: podOfTable(number)?.tableSize(number).rows ?? 0 })),
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
  leads: ({ tables: numbers }) => ({
    tables: numbers.filter((table) => podOfTable(table)?.role === 'leader'),
    tenants: [],
  }),
  restore: async (order) => {
    try {
      return await restores.order(order);
    } finally {
      // That puts other rows in place by ways of its own.
      if (order.action === 'commit' || order.action === 'end') {
        cache.clear();
        await gatherLibraries();
      }
    }
  },
  listen: () => listen(server!),
  cluster: adoptView,
  groupStatus: () => cluster?.status() ?? [],
  transferGroup: ({ group, to }) => {
    if (cluster === undefined) notInCluster();
    cluster.transfer(group, to);
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
    await loopback?.close();
    await cluster?.close();
    for (const pod of pods.values()) await pod.close();
  },
});

start().catch(fatal);
