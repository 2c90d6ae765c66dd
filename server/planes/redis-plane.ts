// The Redis data plane, a worker thread: listener, gateway, pods. It shares nothing with the main thread
// and speaks with it by messages.

import { resolve } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { Principals } from '../../access/gateway/principals.ts';
import { Router } from '../../access/gateway/router.ts';
import { allCommands } from '../../access/redis/commands/all.ts';
import { CommandRegistry } from '../../access/redis/commands/registry.ts';
import { ClusterMap } from '../../access/redis/cluster-map.ts';
import { GroupExecutor } from '../../access/gateway/pods/group-executor.ts';
import { loadedScripts } from '../../access/redis/node-questions.ts';
import { RedisServer } from '../../access/redis/server.ts';
import type { Endpoint } from '../../control/monitor/endpoint.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { TenantAccount } from '../../request-units/meter.ts';
import { PlaneBackups } from '../../storage-node/backup/plane-backups.ts';
import { rowRestore, rowSource } from '../../storage-node/backup/plane-parts.ts';
import { PlaneRestores } from '../../storage-node/backup/plane-restores.ts';
import type { TenantScriptState } from '../../storage-node/pod-server/node-scripts.ts';
import type { ClusterView } from '../../contracts/cluster.ts';
import { isPartition } from '../../contracts/partition-map.ts';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import { libraryTable } from '../../contracts/tenancy/library-tables.ts';
import { LiveConfig } from '../settings/live-config.ts';
import { redisConfigEntries } from '../settings/redis-names.ts';
import type { ConfigKey } from '../settings/schema.ts';
import { packageVersion } from '../version.ts';
import { admissionReport } from './admission-report.ts';
import { admissionSamples } from './admission-samples.ts';
import { ClusterPartitions } from './cluster-partitions.ts';
import { ClusterRoutes } from './cluster-routes.ts';
import { ClusterRows } from './cluster-rows.ts';
import { leaderWaitMs } from './plane-groups.ts';
import { PlaneAdmission } from './plane-admission.ts';
import { LoopbackPods, podsBehindTcp } from './loopback-pods.ts';
import { costTable } from './plane-meter.ts';
import type { PlaneCluster } from './messages.ts';
import { ask, chunkDiskOf, planeData, report as tell, serveCalls } from './plane-port.ts';
import { listening, notInCluster, planeFatal, planeLog, tlsListeners } from './plane-support.ts';
import { RedisPlaneMeter } from './redis-metering.ts';
import { hashSamples } from './hash-samples.ts';
import { redisSamples } from './redis-samples.ts';
import { PlaneCache } from './plane-cache.ts';
import { PlaneLibraries, readLibraries } from './plane-libraries.ts';
import { PlaneMemory } from './plane-memory.ts';
import { PlanePartitions } from './plane-partitions.ts';
import { PlaneReads } from './plane-reads.ts';
import { PlaneSteps } from './plane-steps.ts';
import { PlanePodAdmission } from './plane-pod-admission.ts';
import { RedisPartitions } from './redis-partitions.ts';
import { RedisCatalog } from './redis-catalog.ts';
import { RedisPods } from './redis-pods.ts';
import {
  applyAtStart,
  applyToServer,
  endpointsOf,
  serverFacts,
  serverSettings,
  tlsOf,
} from './redis-server-settings.ts';
import { slowest } from './redis-slowest.ts';
import { RedisTables } from './redis-tables.ts';

if (parentPort === null) throw new Error('the Redis plane runs in a worker thread');
const port = parentPort;
const data = await planeData(port);
const { config, tables: firstTables, tls: tlsMaterial } = data;
const live = new LiveConfig(config);
const log = planeLog(port);
const fatal = planeFatal(port);
const steps = new PlaneSteps('redis', log);

const tables = new RedisTables(data.defaultModel, () => pods.local(), data.cluster !== undefined);
const principals = new Principals({
  databases: config['redis.databases'],
  defaultPassword: live.get('redis.password'),
});
const tls = await tlsListeners(tlsMaterial);
const meter = new RedisPlaneMeter(costTable(config), (table) => tables.ownerOf(table));
meter.enabled = live.get('ru.metering') === 'on';
const { meter: accounts } = meter.plane;
/** Accounts with recent spending, up to date. */
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
  nodes: data.cluster?.view.nodes.length ?? 1,
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
const pods = new RedisPods({
  ...{ live, tables, meter, podAdmission, steps, reads, fatal },
  report: log,
  beforeLargeEntry: () => server?.tick.end(),
});
const router = new Router();
const registry = new CommandRegistry(allCommands);
const divided = new RedisPartitions({
  tables,
  pods: pods.byModel,
  entries: new Map(registry.entries().map((entry) => [entry.fullName, entry])),
  open: (model) => pods.openModel(model),
  commit: (table, targets) => ask(port, 'commitPartitions', { table, targets }),
  changed: (definition) => {
    tables.setDefinition(definition);
    catalog.route();
  },
  backupRuns: () => backups.isRunning,
  report: (level, message, fields) => log(level, message, fields),
});
const clusterRoutes = new ClusterRoutes({
  tables,
  entries: new Map(registry.entries().map((entry) => [entry.fullName, entry])),
  rows: () => pods.cluster!,
  router,
  divided: (tenant) => server?.changes.missed(tenant),
  pricerOf: (model) => meter.pricerOf(model),
  quotaModeOf: (table) => tables.definition(table)?.quotaMode,
  consistencyOf: (table) => tables.definition(table)?.consistency,
  // A client directed to the leaders asks each of them itself.
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
const clusterPartitions =
  data.cluster === undefined
    ? undefined
    : new ClusterPartitions({
        podOf: (number, model) => {
          const group = clusterRoutes.groupOfModel(number, model);
          return group === undefined ? undefined : pods.cluster?.podOfGroup(group);
        },
        pods: () => pods.local(),
        askLeader: (number, question) => pods.cluster!.askLeader(number, question),
        adopt: (definition) => {
          tables.divide(definition);
          catalog.route();
        },
        report: log,
      });

const libraries = new PlaneLibraries({
  pods: () => pods.byModel.values(),
  home: () => pods.ofModel(tables.defaultModel),
  tenant: (number) => {
    const definition = tables.tenant(number);
    return definition && server?.tenant(definition).scripts.functions;
  },
  tenants: () => server?.tenants.keys() ?? [],
  warn: (message, fields) => log('warn', message, fields),
});
const memory = new PlaneMemory('redis', live);

const loopback = podsBehindTcp
  ? new LoopbackPods({
      podOf: (table) => {
        const model = tables.modelOf(table);
        return { executor: pods.ofModel(model), mayWait: pods.mayWait(model) };
      },
      refusalOf: (command) => pods.ofTable(command.table)?.refusal(command),
      scriptsOf,
      publish: (tenant, message) => void server?.hear(tenant, message),
      report: log,
      failed: fatal,
    })
  : undefined;

const catalog = new RedisCatalog({
  ...{
    tables,
    pods,
    router,
    divided,
    clusterRoutes,
    meter,
    admission,
    partitions,
    cache,
    loopback,
  },
  isServing: () => server !== undefined,
});

/** In a cluster they stay where they are. */
async function gatherLibraries(): Promise<void> {
  if (pods.cluster === undefined) await libraries.gather();
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
  if (pods.cluster === undefined) await divided.dropAll(span);
  for (const pod of pods.byModel.values()) {
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

/** Applies a live setting, whatever the source of the change. */
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
      pods.setFsync();
      break;
    case 'memory.max-bytes':
      pods.memoryLimitChanged();
      break;
    case 'memory.eviction-policy':
    case 'memory.eviction-samples':
      pods.setEviction();
      break;
    case 'redis.password':
      principals.setDefaultPassword(live.get('redis.password'));
      break;
    case 'ru.metering':
      meter.enabled = live.get('ru.metering') === 'on';
      server.metering = meter.enabled ? meter.metering : undefined;
      break;
    default:
      applyToServer(server, live, key);
  }
}

function newServer(): RedisServer {
  return new RedisServer({
    ...serverSettings(config),
    ...(tls === undefined ? {} : tlsOf(config, tls)),
    sockets: data.sockets && { port: data.sockets.redis, tls: data.sockets.redisTls },
    principals,
    users: {
      setUser: async (tenant, name, change) => {
        await ask(port, 'setUser', { tenant, name, change });
      },
      dropUser: (tenant, name) => ask(port, 'dropUser', { tenant, name }),
    },
    metering: meter.enabled ? meter.metering : undefined,
    admission: admission.gateway,
    partitions: partitions.ceilings,
    podAdmission: podAdmission.controller,
    steps: steps.watch,
    memory: memory.memory,
    registry,
    router,
    clusterMap,
    readLibraries:
      pods.cluster &&
      ((tenant) => {
        const done = readLibraries(router.to(libraryTable(tenant)).executor, tenant);
        server?.tick.schedule();
        return done;
      }),
    config: redisConfigEntries(live),
    pauseChanged: (isPaused) => pods.keepExpired(isPaused),
    report: log,
    facts: serverFacts({ settings: config, version: packageVersion(), pods, cache }),
  });
}

function samples(): MetricSample[] {
  return [
    ...redisSamples(server, pods.named()),
    ...(pods.cluster?.samples() ?? []),
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

/** Libraries of this tenant, or of all, are read again before they are used. */
function outdateLibraries(tenant?: number): void {
  for (const { number, scripts } of server?.tenants.values() ?? []) {
    if (tenant === undefined || number === tenant) scripts.functions.outdate();
  }
}

/** Script state shared with scripts of this node's clients. */
function scriptsOf(number: number): TenantScriptState | undefined {
  const definition = tables.tenant(number);
  return definition && server?.servedScripts(definition);
}

/** Opens the cluster's replacement for pods of its own. */
async function joinCluster(of: PlaneCluster): Promise<void> {
  pods.cluster = await ClusterRows.open({
    data: of,
    directory: resolve(config['data-dir'], 'cluster', 'redis'),
    fsync: live.get('wal.fsync'),
    segmentBytes: config['wal.segment-bytes'],
    acceptLoss: config['wal.accept-loss'] === 'yes',
    newEngine: (model, directory) => pods.newEngine(model, directory),
    podOptions: (model) => pods.podOptions(model),
    pricerOf: (model) => meter.pricerOf(model),
    keepLogBytes: config['backup.keep-log-bytes'],
    admission: podAdmission.controller,
    groupOf: (table) => clusterRoutes.groupOf(table),
    knows: (number) => tables.knows(number),
    successorOf: (number) => clusterRoutes.successorOf(number),
    answerPartition: (question) => clusterPartitions!.answer(question),
    refusalOf: ({ table, grows }) => refusalHere(table, grows),
    leaderWaitMs,
    loadedScripts: () => (server === undefined ? [] : loadedScripts(server)),
    scriptsOf,
    nodeIsThere: () => outdateLibraries(),
    leaderMoved: outdateLibraries,
    answer: (question) => {
      const definition = tables.tenant(question.tenant);
      return definition && server?.answerNode(question, definition);
    },
    changes: () => server?.changes,
    heard: (tenant, message) => server?.hear(tenant, message) ?? true,
    monitors: {
      heard: (tenant, lines) => server?.monitors.hear(tenant, lines),
      watched: (isWatched) => {
        if (server !== undefined) server.monitors.isWatchedElsewhere = isWatched;
      },
    },
    report: log,
    fatal,
  });
  const maintenance = setInterval(() => {
    pods.setMemoryLimit();
    if (!restores.isRunning) pods.dropLeftovers();
  }, 1000);
  maintenance.unref();
}

/** The part of a table's rules that every node can check. */
function refusalHere(table: number, grows: boolean): string | undefined {
  const rules = pods.rulesOf(tables.modelOf(table)).get(table);
  if (rules?.readOnly === true) return "READONLY You can't write against a read only table.";
  return grows ? rules?.quota?.refusal() : undefined;
}

/** Nodes or groups have changed. */
async function adoptView(view: ClusterView): Promise<void> {
  if (pods.cluster === undefined) notInCluster();
  clusterRoutes.setGroups(view.groups);
  clusterMap?.setNodes(
    view.nodes
      .filter(({ state }) => state !== 'removed')
      .map(({ node, addresses }) => ({ node, address: addresses.redisClients })),
  );
  await pods.cluster.setView(view);
  pods.setEviction();
  pods.setMemoryLimit();
  catalog.route();
}

async function start(): Promise<void> {
  follow(data.tenancy);
  await loopback?.start();
  if (data.cluster !== undefined) {
    await joinCluster(data.cluster);
    tables.setDefinitions(firstTables);
    await adoptView(data.cluster.view);
  }
  await catalog.adopt(firstTables);
  if (pods.cluster === undefined) await divided.dropOrphans();
  server = newServer();
  server.elsewhere = pods.cluster;
  server.monitors.elsewhere = pods.cluster?.monitors;
  server.changes.elsewhere = pods.cluster?.changes;
  server.cache = cache.inUse;
  await gatherLibraries();
  applyAtStart(server, live);
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
  return endpointsOf(config, listener);
}

let fromOutside = false;

const chunkDisk = chunkDiskOf(port);
const backups = new PlaneBackups(chunkDisk, () =>
  Array.from(pods.named(), ({ model, pod, group }) =>
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
  (start) => rowRestore(chunkDisk(start.node), start, (table) => pods.ofTable(table)!),
  ({ tables: numbers }) => {
    for (const number of numbers) pods.ofTable(number)?.parts.pins?.clear();
  },
);

serveCalls(port, {
  metrics: samples,
  health: () => pods.failures(),
  tables: (definitions) => catalog.adopt(definitions),
  // Handled by the InfluxDB plane.
  seriesTables: () => {},
  defaultModel: async (model) => {
    await catalog.adoptDefault(model);
    await gatherLibraries();
  },
  rowCount: (table) => pods.sizeOf(table, true).rows,
  changePartitions: (definition) => divided.begin(definition),
  partitionStep: (orders) => clusterPartitions?.step(orders) ?? notInCluster(),
  partitionChange: (table) => divided.status(table),
  cancelPartitionChange: (table) => divided.cancel(table),
  // Handled by the InfluxDB plane.
  seriesPartitions: () => [],
  partitionSizes: (table) =>
    tables.partitionsOf(table).flatMap(({ number }) => {
      const pod = pods.ofTable(number);
      return pod?.role === 'leader' ? [{ number, rows: pod.tableSize(number).rows }] : [];
    }),
  undefinedTables: () => catalog.undefinedTables(),
  tenancy: follow,
  dropTenant,
  usage: (since) => meter.plane.usage(since),
  quotaDemands: () => admission.gateway.demands(),
  quotaShares: (told) => admission.setShares(told),
  admission: (query) => admissionReport(admission.gateway, query),
  top: (query) => meter.plane.top('key', query),
  slowlog: (query) => slowest(server, query),
  queries: () => [],
  steps: (query) => steps.list(query),
  databases: (tenant) => catalog.databasesOf(tenant),
  createDatabase: () => {
    throw new Error('the databases of Redis are numbers: a tenant has them from its start');
  },
  dropDatabase: () => {
    throw new Error('the databases of Redis are numbers: they cannot be dropped');
  },
  backup: (order) => backups.order(order),
  leads: ({ tables: numbers }) => ({
    tables: numbers.filter((table) => pods.ofTable(table)?.role === 'leader'),
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
  groupStatus: () => pods.cluster?.status() ?? [],
  groupMinutes: (span) => ({
    plane: 'redis',
    capacity: podAdmission.podRate,
    groups: pods.cluster?.minutes(span) ?? [],
  }),
  transferGroup: ({ group, to }) => {
    if (pods.cluster === undefined) notInCluster();
    pods.cluster.transfer(group, to);
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
    await clusterPartitions?.close();
    await pods.cluster?.close();
    for (const pod of pods.byModel.values()) await pod.close();
  },
});

start().catch(fatal);
