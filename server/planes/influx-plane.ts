// The InfluxDB data plane, a worker thread: HTTP listener and the pod of time series. It shares nothing with
// the main thread and speaks with it by messages.

import type { QueriesElsewhere } from '../../access/influx/statements/query-registry.ts';
import { resolve } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { Principals } from '../../access/gateway/principals.ts';
import { InfluxMetering } from '../../access/influx/http/metering.ts';
import { InfluxServer } from '../../access/influx/http/server.ts';
import { TenantAuthenticator } from '../../access/influx/tenants/tenant-authenticator.ts';
import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import { SeriesPricer } from '../../request-units/series-pricer.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { PlaneBackups } from '../../storage-node/backup/plane-backups.ts';
import { seriesRestore, seriesSource } from '../../storage-node/backup/plane-parts.ts';
import { seriesModel } from '../../storage-node/backup/series-share.ts';
import { type LedScope, PlaneRestores } from '../../storage-node/backup/plane-restores.ts';
import type { Endpoint } from '../../control/monitor/endpoint.ts';
import { dropShadowDatabases } from '../../storage-node/backup/series-restore.ts';
import { isShadowDatabase } from '../../storage-node/backup/shadow.ts';
import type { SeriesPod } from '../../storage-node/series-pod.ts';
import { systemClock } from '../../universal-row/environment.ts';
import { modelProperties } from '../../contracts/table-properties.ts';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import { LiveConfig } from '../settings/live-config.ts';
import { admissionReport } from './admission-report.ts';
import { admissionSamples } from './admission-samples.ts';
import {
  createDatabase,
  databasesOf,
  dropAllDatabases,
  dropDatabase,
  keptName,
} from './influx-databases.ts';
import { hashSamples } from './hash-samples.ts';
import { influxSamples } from './influx-samples.ts';
import { backgroundOf } from './influx-background.ts';
import { leaderWaitMs } from './plane-groups.ts';
import { ClusterSeries } from './cluster-series.ts';
import type { PlaneCluster } from './messages.ts';
import { LocalSeries } from './local-series.ts';
import type { Partition } from '../../access/influx/partitions/partitioned-store.ts';
import { InfluxTables } from './influx-tables.ts';
import { userChanges } from './influx-users.ts';
import { PlaneAdmission } from './plane-admission.ts';
import { PlaneMemory } from './plane-memory.ts';
import { PlaneSteps } from './plane-steps.ts';
import { PlanePodAdmission } from './plane-pod-admission.ts';
import { costTable, PlaneMeter } from './plane-meter.ts';
import { ask, chunkDiskOf, planeData, report, serveCalls } from './plane-port.ts';
import {
  listening,
  notInCluster,
  planeFatal,
  planeLog,
  tlsListeners,
  urlHost,
} from './plane-support.ts';

if (parentPort === null) throw new Error('the InfluxDB plane runs in a worker thread');
const port = parentPort;
const data = await planeData(port);
const { config, tls: tlsMaterial, tenancy, seriesTables, cluster: place, holdsBack } = data;
const live = new LiveConfig(config);
const tables = new InfluxTables(seriesTables);
const log = planeLog(port);
const fatal = planeFatal(port);
const steps = new PlaneSteps('influx', log);
const memory = new PlaneMemory('influx', live);

/** Least memory for points, however many engines there are. */
const leastHeadBytes = 8 * 1024 * 1024;
/** Time between two looks for shards older than their policy keeps. */
const retentionIntervalMs = 5000;

const tls = await tlsListeners(tlsMaterial);
const pricer = new SeriesPricer(costTable(config).models.series);
// Flushes and merges are charged to the tenants that wrote the points.
const meter = new PlaneMeter('influx', (accounts) => {
  for (const account of accounts) pricer.chargeMerging(account);
});
const usualPriority = modelProperties('series').writePriority;
const podAdmission = new PlanePodAdmission({
  directory: resolve(config['data-dir'], 'influx'),
  warn: (message, fields) => log('warn', message, fields),
  plane: 'influx',
  priorityOf: (tenant, name) =>
    tables.get(keptName({ tenant, name }))?.writePriority ?? usualPriority,
  live,
  accounts: () => meter.meter.activeAccounts(),
  // A step of a query goes on after its `resume` has returned.
  sliceMs: 0,
});
const metering = new InfluxMetering({ meter: meter.meter, hot: meter.hot, pricer });
const admission = new PlaneAdmission({
  plane: 'influx',
  live,
  accountOf: (tenant) => meter.meter.account(tenant),
  pod: podAdmission.controller,
  nodes: place?.view.nodes.length ?? 1,
  warn: (fields, message) => log('warn', message, fields),
});
const principals = new Principals({
  databases: config['redis.databases'],
  defaultPassword: config['redis.password'],
});
follow(tenancy);
const changeUsers = userChanges(principals, {
  setUser: (request) => ask(port, 'setUser', request),
  dropUser: (user) => ask(port, 'dropUser', user),
});
/** The one copy of all time series; in a cluster `cluster` has the replicas. */
let local: LocalSeries | undefined;
let cluster: ClusterSeries | undefined;
let authenticator: TenantAuthenticator | undefined;
let server: InfluxServer | undefined;

function follow(update: TenancyUpdate): void {
  podAdmission.follow(update);
  principals.update(update);
  admission.gateway.update(update);
}

/** A negative number keeps no slow request. */
function slowMs(): number {
  const ms = live.get('influx.slow-request-ms');
  return ms < 0 ? Infinity : ms;
}

/** A setting in which 0 stands for no limit. */
function limit(value: number): number {
  return value === 0 ? Infinity : value;
}

/** One of so many that share the memory. */
function newEngine(directory: string, engines: number): TsmEngine {
  const allHeadBytes = config['tsm.head-bytes'];
  const engine = new TsmEngine({
    directory,
    disk: realDisk,
    clock: systemClock,
    headBytes: engines > 1 ? Math.max(allHeadBytes / engines, leastHeadBytes) : allHeadBytes,
    coldAfterMs: config['tsm.cold-after'] * 1000,
    limits: {
      seriesPerDatabase: limit(config['tsm.max-series-per-database']),
      valuesPerTag: limit(config['tsm.max-values-per-tag']),
    },
  });
  engine.seriesAllowance = (database) => authenticator?.seriesAllowance(database);
  engine.databasesOfTenant = (database) => authenticator?.databasesOfTenant(database) ?? [database];
  return engine;
}

function podOptions() {
  return {
    checkpointBytes: config['wal.checkpoint-bytes'],
    retentionIntervalMs,
    tables,
    background: backgroundOf(meter.meter, pricer, () => live.get('ru.metering') === 'on'),
    clock: systemClock,
    admission: podAdmission.controller,
    steps: steps.watch,
  };
}

function openLocal(): Promise<LocalSeries> {
  return LocalSeries.open({
    ...podOptions(),
    newEngine,
    disk: realDisk,
    directory: resolve(config['data-dir'], 'influx'),
    partitions: config['influx.partitions'],
    fsync: live.get('wal.fsync'),
    segmentBytes: config['wal.segment-bytes'],
    acceptLoss: config['wal.accept-loss'] === 'yes',
    report: log,
    fatal,
  });
}

/** Opens the cluster's replacement for a pod of its own. */
async function joinCluster(of: PlaneCluster): Promise<ClusterSeries> {
  cluster = await ClusterSeries.open({
    data: of,
    tables,
    directory: resolve(config['data-dir'], 'cluster', 'influx'),
    fsync: live.get('wal.fsync'),
    segmentBytes: config['wal.segment-bytes'],
    acceptLoss: config['wal.accept-loss'] === 'yes',
    newEngine,
    podOptions,
    chargedTo: (tenant) => meter.meter.find(tenant)?.lru ?? 0,
    leaderWaitMs,
    admission: podAdmission.controller,
    isRestoring: () => restores.isRunning,
    report: log,
    fatal,
  });
  await cluster.setView(of.view);
  setInterval(dropLeftovers, 1000).unref();
  return cluster;
}

function setFsync(): void {
  const policy = live.get('wal.fsync');
  if (cluster !== undefined) cluster.setFsync(policy);
  else for (const pod of localPods()) pod.setFsync(policy);
}

function localPods(): readonly SeriesPod[] {
  return cluster?.localPods() ?? local?.pods ?? [];
}

/** As metrics name them. */
function namedPods(): { pod: SeriesPod; group?: number; partition?: number }[] {
  if (cluster !== undefined) {
    return cluster.named().map(({ pod, group, series }) => ({
      ...{ pod, group },
      ...(series && { partition: series.partition + 1 }),
    }));
  }
  const pods = localPods();
  return pods.map((pod, i) => (pods.length === 1 ? { pod } : { pod, partition: i + 1 }));
}

/** Throws before there is anything. */
function storeHere(): Partition {
  const store = cluster?.store ?? local?.store;
  if (store === undefined) throw new Error('the time series are being opened');
  return store;
}

async function start(): Promise<void> {
  if (place === undefined) local = await openLocal();
  else await joinCluster(place);
  const store = storeHere();
  authenticator = new TenantAuthenticator({
    principals,
    store,
    changeUsers,
    clock: systemClock,
    queriesElsewhere: place && ((tenant) => queriesElsewhere(place.node, tenant)),
    onIgnored: (address) =>
      log('info', 'credentials are ignored: no user has a password or a token yet', {
        client: address,
      }),
  });
  const maxBodyBytes = config['influx.max-body-bytes'];
  const isSecure = config['influx.tls'] === 'on';
  const listener = new InfluxServer({
    host: config['influx.host'],
    port: config['influx.port'],
    socket: data.sockets?.influx,
    tls: isSecure ? tls : undefined,
    store,
    authenticator,
    forwarder: cluster?.forwarder,
    metering: live.get('ru.metering') === 'on' ? metering : undefined,
    admission: admission.gateway,
    podAdmission: podAdmission.controller,
    steps: steps.watch,
    memory: memory.memory,
    slowRequestMs: slowMs(),
    maxBodyBytes,
    // A body with a higher compression ratio is more likely an attack than data.
    maxUnpackedBytes: 10 * maxBodyBytes,
    maxConnections: config['influx.max-connections'],
    allowedHosts: config['influx.allowed-hosts'].split(/[,\s]+/).filter((name) => name !== ''),
    queries: {
      maxConcurrent: config['influx.max-concurrent-queries'],
      timeoutMs: config['influx.query-timeout'] * 1000,
      maxMemoryBytes: config['influx.query-memory-bytes'],
    },
    report: log,
  });
  server = listener;
  cluster?.serve((connection) => listener.serveForwarded(connection));
  const served = holdsBack === true ? [] : await listen(listener);
  steps.start();
  report(port, { type: 'ready', endpoints: served });
}

function queriesElsewhere(node: number, tenant: number): QueriesElsewhere {
  return {
    node,
    list: () => ask(port, 'queries', { tenant }),
    kill: async (id) => (await ask(port, 'queries', { tenant, kill: id })).length > 0,
  };
}

async function listen(listener: InfluxServer): Promise<Endpoint[]> {
  const host = config['influx.host'];
  let listensOn = 0;
  await listening('influx', host, config['influx.port'], async () => {
    listensOn = await listener.listen();
  });
  const scheme = config['influx.tls'] === 'on' ? 'https' : 'http';
  return [{ name: 'influx', url: `${scheme}://${urlHost(host)}:${listensOn}` }];
}

/** Name of a tenant that was charged or has a limit. */
function nameOf(tenant: number): string | undefined {
  return metering.nameOf(tenant) ?? admission.gateway.limiterOf(tenant)?.name;
}

const chunkDisk = chunkDiskOf(port);
const backups = new PlaneBackups(chunkDisk, () =>
  cluster === undefined
    ? localPods().map((one, i, all) =>
        seriesSource(seriesModel({ partition: i, of: all.length }), one),
      )
    : cluster.named().map(({ pod, group, tenant, series }) => {
        const model = seriesModel(series ?? { partition: 0, of: 1 });
        return seriesSource(model, pod, group, tenant);
      }),
);
const restores = new PlaneRestores(
  (start) => seriesRestore(chunkDisk(start.node), start, podsOf),
  ({ tenants }) => {
    for (const tenant of tenants) for (const pod of podsOf(tenant)) pod?.parts.pins?.clear();
  },
);

/** The partitions of a tenant; undefined for those of which this node of a cluster has no replica. */
function podsOf(tenant: number): readonly (SeriesPod | undefined)[] {
  return cluster === undefined ? localPods() : cluster.partitionsOf(tenant);
}

/** The partitions of tenants' time series that this plane leads. */
function ledOf(tenants: readonly number[]): LedScope {
  const all = tenants.map((tenant) => ({ tenant, pods: podsOf(tenant) }));
  const led = all.map(({ tenant, pods }) => ({
    ...{ tenant, of: pods.length },
    partitions: [...pods.keys()].filter((partition) => pods[partition]?.role === 'leader'),
  }));
  const some = led.filter(({ partitions }) => partitions.length > 0);
  const isWhole = ({ partitions, of }: { partitions: readonly number[]; of: number }): boolean =>
    partitions.length === of;
  return {
    tables: [],
    tenants: some.filter(isWhole).map(({ tenant }) => tenant),
    divided: some.filter((one) => !isWhole(one)),
  };
}

/** Drops the leftovers of failed restores that another node led. */
function dropLeftovers(): void {
  if (restores.isRunning) return;
  for (const one of localPods()) {
    if (one.role !== 'leader' || !one.databases().some(({ name }) => isShadowDatabase(name)))
      continue;
    dropShadowDatabases(one).catch((error: unknown) => {
      log('warn', 'what a restore has left is not deleted yet', { err: error });
    });
  }
}

serveCalls(port, {
  metrics: () => [
    ...influxSamples(server, namedPods()),
    ...(cluster?.samples() ?? []),
    ...hashSamples('influx'),
    ...meter.samples(nameOf),
    ...podAdmission.samples(),
    ...steps.samples(),
    ...memory.samples(),
    ...admissionSamples('influx', admission.gateway, (tenant) => meter.labelOf(tenant, nameOf)),
  ],
  health: () => {
    const failures = localPods().flatMap(({ writeFailure }) => writeFailure ?? []);
    return failures.slice(0, 1).map(({ message }) => `tsm: ${message}`);
  },
  // Handled by the Redis plane.
  tables: () => {},
  seriesTables: (definitions) => {
    tables.set(definitions);
    cluster?.tablesChanged();
    admission.gateway.quotaModesChanged();
  },
  defaultModel: () => {},
  rowCount: () => 0,
  changePartitions: () => {
    throw new Error('only tables of Redis have partitions');
  },
  partitionStep: () => [],
  partitionChange: () => ({ state: 'done' }),
  cancelPartitionChange: () => {},
  partitionSizes: () => [],
  seriesPartitions: (database) => {
    const found = podsOf(database.tenant);
    if (found.length === 0) return [{ number: 1 }];
    const name = keptName(database);
    return found.map((pod, i) => ({
      number: i + 1,
      series: pod?.parts.engine.seriesCountOf(name),
    }));
  },
  undefinedTables: () => [],
  tenancy: follow,
  dropTenant: async (tenant) => {
    // In a cluster they go with the tenant's group.
    if (local !== undefined) await dropAllDatabases(local.store, tenant);
    metering.forget(tenant);
    server?.slow.forget(tenant);
    steps.watch.forget(tenant);
    meter.forget(tenant);
    podAdmission.forget(tenant);
  },
  usage: (since) => meter.usage(since),
  quotaDemands: () => admission.gateway.demands(),
  quotaShares: (told) => admission.setShares(told),
  admission: (query) => admissionReport(admission.gateway, query),
  top: (query) => meter.top('series', query),
  slowlog: ({ tenant, limit }) =>
    (server?.slow.newest(limit, tenant) ?? []).map(({ spentMs, ...entry }) => ({
      ...entry,
      durationMicros: Math.round(spentMs * 1000),
    })),
  queries: ({ tenant, kill }) => authenticator?.queriesHere(tenant, kill) ?? [],
  steps: (query) => steps.list(query),
  databases: (tenant) => databasesOf(storeHere(), tenant),
  createDatabase: (database) => createDatabase(storeHere(), database),
  dropDatabase: (database) => dropDatabase(storeHere(), database),
  backup: (order) => backups.order(order),
  restore: (order) => restores.order(order),
  leads: ({ tenants }) => ledOf(tenants),
  listen: () => listen(server!),
  cluster: (view) => (cluster ?? notInCluster()).setView(view),
  groupStatus: () => cluster?.status() ?? [],
  groupMinutes: (span) => ({
    plane: 'influx',
    capacity: podAdmission.podRate,
    groups: cluster?.minutes(span) ?? [],
  }),
  transferGroup: ({ group, to }) => (cluster ?? notInCluster()).transfer(group, to),
  setConfig: ({ key, value }) => {
    live.set(key, value);
    admission.settingChanged(key);
    memory.settingChanged(key);
    podAdmission.settingChanged(key);
    if (key === 'influx.slow-request-ms' && server !== undefined)
      server.slow.thresholdMs = slowMs();
    if (key === 'wal.fsync') setFsync();
    if (key === 'redis.password') principals.setDefaultPassword(live.get('redis.password'));
    if (key === 'ru.metering' && server !== undefined) {
      server.metering = live.get('ru.metering') === 'on' ? metering : undefined;
    }
  },
  tls: (material) => tls?.renew(material),
  drain: async (graceMs) => {
    podAdmission.close();
    await server?.drain(graceMs);
    admission.close();
  },
  stop: async () => {
    await server?.close();
    steps.close();
    await local?.close();
    await cluster?.close();
  },
});

start().catch(fatal);
