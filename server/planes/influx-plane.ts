// The InfluxDB data plane, a worker thread: HTTP listener and the pod of time series. It shares nothing with
// the main thread and speaks with it by messages.

import { join, resolve } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { Principals } from '../../access/gateway/principals.ts';
import { InfluxMetering } from '../../access/influx/http/metering.ts';
import { InfluxServer } from '../../access/influx/http/server.ts';
import { TenantGate } from '../../access/influx/tenants/tenant-gate.ts';
import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import { SeriesPricer } from '../../request-units/series-pricer.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { PlaneBackups } from '../../storage-node/backup/plane-backups.ts';
import { seriesRestore, seriesSource } from '../../storage-node/backup/plane-parts.ts';
import { PlaneRestores } from '../../storage-node/backup/plane-restores.ts';
import { dropShadowDatabases } from '../../storage-node/backup/series-restore.ts';
import { openSeriesPod } from '../../storage-node/series-pod-host.ts';
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
import { InfluxTables } from './influx-tables.ts';
import { userChanges } from './influx-users.ts';
import { PlaneAdmission } from './plane-admission.ts';
import { PlaneMemory } from './plane-memory.ts';
import { PlaneSteps } from './plane-steps.ts';
import { PlanePodAdmission } from './plane-pod-admission.ts';
import { costTable, PlaneMeter } from './plane-meter.ts';
import { ask, planeData, report, serveCalls } from './plane-port.ts';
import { listening, planeFatal, planeLog, tlsListeners, urlHost } from './plane-support.ts';

if (parentPort === null) throw new Error('the InfluxDB plane runs in a worker thread');
const port = parentPort;
const { config, tls: tlsMaterial, tenancy, seriesTables } = await planeData(port);
const live = new LiveConfig(config);
const tables = new InfluxTables(seriesTables);
const log = planeLog(port);
const fatal = planeFatal(port);
const steps = new PlaneSteps('influx', log);
const memory = new PlaneMemory('influx', live);

// Pods are told apart in their logs: 1 and 2 are the Redis plane's.
const podId = 3;

const tls = await tlsListeners(tlsMaterial);
const pricer = new SeriesPricer(costTable(config).models.series);
// What was written becomes files, which are merged: charged to whoever wrote it.
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
let pod: SeriesPod | undefined;
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

async function openPod(): Promise<{ pod: SeriesPod; engine: TsmEngine }> {
  const directory = resolve(config['data-dir'], 'influx');
  realDisk.makeDirectory(directory);
  const engine = new TsmEngine({
    directory: join(directory, 'data'),
    disk: realDisk,
    clock: systemClock,
    headBytes: config['tsm.head-bytes'],
    coldAfterMs: config['tsm.cold-after'] * 1000,
    limits: {
      seriesPerDatabase: limit(config['tsm.max-series-per-database']),
      seriesPerMeasurement: limit(config['tsm.max-series-per-measurement']),
      valuesPerTag: limit(config['tsm.max-values-per-tag']),
    },
  });
  const opened = await openSeriesPod({
    engine,
    disk: realDisk,
    directory,
    podId,
    fsync: live.get('wal.fsync'),
    segmentBytes: config['wal.segment-bytes'],
    checkpointBytes: config['wal.checkpoint-bytes'],
    retentionIntervalMs: config['tsm.retention-check-interval'] * 1000,
    tables,
    background: backgroundOf(meter.meter, pricer, () => live.get('ru.metering') === 'on'),
    acceptLoss: config['wal.accept-loss'] === 'yes',
    clock: systemClock,
    admission: podAdmission.controller,
    steps: steps.watch,
    report: log,
    fatal,
  });
  return { pod: opened, engine };
}

async function start(): Promise<void> {
  const { pod: opened, engine } = await openPod();
  pod = opened;
  await dropShadowDatabases(pod);
  pod.start();
  const gate = new TenantGate({
    principals,
    store: pod,
    changeUsers,
    clock: systemClock,
    onIgnored: (address) =>
      log('info', 'credentials are ignored: no user has a password or a token yet', {
        client: address,
      }),
  });
  engine.seriesAllowance = (database) => gate.seriesAllowance(database);
  const host = config['influx.host'];
  const maxBodyBytes = config['influx.max-body-bytes'];
  const isSecure = config['influx.tls'] === 'on';
  const listener = new InfluxServer({
    host,
    port: config['influx.port'],
    tls: isSecure ? tls : undefined,
    store: pod,
    gate,
    metering: live.get('ru.metering') === 'on' ? metering : undefined,
    admission: admission.gateway,
    podAdmission: podAdmission.controller,
    steps: steps.watch,
    memory: memory.memory,
    slowRequestMs: slowMs(),
    maxBodyBytes,
    // What packs better than this is more likely to be an attack than data.
    maxUnpackedBytes: 10 * maxBodyBytes,
    maxConnections: config['influx.max-connections'],
    allowedHosts: config['influx.allowed-hosts'].split(/[,\s]+/).filter((name) => name !== ''),
    queries: {
      maxConcurrent: config['influx.max-concurrent-queries'],
      timeoutMs: config['influx.query-timeout'] * 1000,
      maxMemoryBytes: config['influx.query-memory-bytes'],
      maxSeries: config['influx.max-select-series'],
      maxPoints: config['influx.max-select-points'],
      maxBuckets: config['influx.max-select-buckets'],
    },
    report: log,
  });
  server = listener;
  let listensOn = 0;
  await listening('influx', host, config['influx.port'], async () => {
    listensOn = await listener.listen();
  });
  const url = `${isSecure ? 'https' : 'http'}://${urlHost(host)}:${listensOn}`;
  steps.start();
  report(port, { type: 'ready', endpoints: [{ name: 'influx', url }] });
}

/** Of tenants that were charged or have a limit. */
function nameOf(tenant: number): string | undefined {
  return metering.nameOf(tenant) ?? admission.gateway.limiterOf(tenant)?.name;
}

const backups = new PlaneBackups(realDisk, () =>
  pod === undefined ? [] : [seriesSource('tsm', pod)],
);
const restores = new PlaneRestores((start) => seriesRestore(realDisk, start, pod!));

serveCalls(port, {
  metrics: () => [
    ...(pod === undefined ? [] : influxSamples(server, pod)),
    ...hashSamples('influx'),
    ...meter.samples(nameOf),
    ...podAdmission.samples(),
    ...steps.samples(),
    ...memory.samples(),
    ...admissionSamples('influx', admission.gateway, (tenant) => meter.labelOf(tenant, nameOf)),
  ],
  health: () => {
    const failure = pod?.writeFailure;
    return failure === undefined ? [] : [`tsm: ${failure.message}`];
  },
  // Those of the Redis plane.
  tables: () => {},
  seriesTables: (definitions) => {
    tables.set(definitions);
    admission.gateway.quotaModesChanged();
  },
  defaultModel: () => {},
  rowCount: () => 0,
  undefinedTables: () => [],
  tenancy: follow,
  dropTenant: async (tenant) => {
    await dropAllDatabases(pod!, tenant);
    metering.forget(tenant);
    server?.slow.forget(tenant);
    steps.watch.forget(tenant);
    meter.forget(tenant);
    podAdmission.forget(tenant);
  },
  usage: (since) => meter.usage(since),
  admission: (query) => admissionReport(admission.gateway, query),
  top: (query) => meter.top('series', query),
  slowlog: ({ tenant, limit }) =>
    (server?.slow.newest(limit, tenant) ?? []).map(({ spentMs, ...entry }) => ({
      ...entry,
      durationMicros: Math.round(spentMs * 1000),
    })),
  steps: (query) => steps.list(query),
  databases: (tenant) => databasesOf(pod!, tenant),
  createDatabase: (database) => createDatabase(pod!, database),
  dropDatabase: (database) => dropDatabase(pod!, database),
  backup: (order) => backups.order(order),
  restore: (order) => restores.order(order),
  setConfig: ({ key, value }) => {
    live.set(key, value);
    admission.settingChanged(key);
    memory.settingChanged(key);
    podAdmission.settingChanged(key);
    if (key === 'influx.slow-request-ms' && server !== undefined)
      server.slow.thresholdMs = slowMs();
    if (key === 'wal.fsync') pod?.setFsync(live.get('wal.fsync'));
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
    await pod?.close();
  },
});

start().catch(fatal);
