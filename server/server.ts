// One server: a control plane in this thread and the data planes in threads of their own. Defines the order in which
// they start and stop.

import { resolve } from 'node:path';
import { hashPassword } from '../access/gateway/secrets.ts';
import { AdminServer } from '../control/admin/admin-server.ts';
import type { AuditLog } from '../control/admin/audit/audit-log.ts';
import { Health } from '../control/admin/health.ts';
import { MetricsPage } from '../control/admin/metrics-page.ts';
import type { BackupJobs } from '../control/backup/backup-jobs.ts';
import { backupRoutes } from '../control/backup/backup-routes.ts';
import { SeriesTableCatalog } from '../control/metadata/series-table-catalog.ts';
import { PartitionCatalog, type PartitionHolder } from '../control/metadata/partition-catalog.ts';
import { TableCatalog } from '../control/metadata/table-catalog.ts';
import { Tables } from '../control/metadata/tables.ts';
import type { Endpoint } from '../control/monitor/endpoint.ts';
import { WorkflowEngine } from '../control/workflows/workflow-engine.ts';
import { workflowRoutes } from '../control/workflows/workflow-routes.ts';
import { TenantCatalog } from '../control/tenants/tenant-catalog.ts';
import { realDisk } from '../storage-node/disk/real-disk.ts';
import { defaultTenant, defaultUser } from '../contracts/tenancy/definitions.ts';
import { clusterRoutes } from '../control/cluster/cluster-routes.ts';
import type { BackupContext } from './backup/backup-run.ts';
import { ClusterPlanes } from './backup/cluster-planes.ts';
import { ownPlanes } from './backup/plane-orders.ts';
import { backupJobs } from './backup/backup-service.ts';
import { cleanAfterTakeOver, mustTakeOver } from './cluster/take-over-mark.ts';
import type { ClusterNode } from './cluster/cluster-node.ts';
import type { ClusterMetadata } from './cluster/cluster-metadata.ts';
import { PartitionChanges } from './cluster/partition-changes.ts';
import { WidePlanes } from './cluster/wide-planes.ts';
import { openNode, refuseNodeAlone } from './cluster/open-node.ts';
import { configView } from './settings/admin-view.ts';
import { type AdminToken, openAdminToken } from './lifecycle/admin-token.ts';
import { openAuditLog, openUsageHistory } from './lifecycle/control-logs.ts';
import { rolesOf } from './settings/cluster-addresses.ts';
import { exposures, isLoopback } from './settings/exposure.ts';
import { LiveConfig } from './settings/live-config.ts';
import { ConfigError, type ResolvedConfig } from './settings/resolve.ts';
import { DataDirectory } from './lifecycle/data-directory.ts';
import { ExitError, listenError } from './lifecycle/exit-error.ts';
import type { ProcessSet } from './lifecycle/process-set.ts';
import { type Metadata, openMetadata } from './lifecycle/metadata.ts';
import { adminCertificateFile, ServerTls } from './lifecycle/tls.ts';
import type { Logger } from './logging.ts';
import type { PlaneData } from './planes/messages.ts';
import {
  planeAccess,
  seriesTableHolder,
  tableHolders,
  tenantHolders,
  UsageCollector,
  partitionHolder,
} from './planes/plane-calls.ts';
import type { PlaneHost, Planes } from './planes/plane-host.ts';
import { SettingRelay } from './planes/setting-relay.ts';
import { userHandlers } from './planes/user-handlers.ts';
import { serverSamples } from './server-samples.ts';

const healthTimeoutMs = 1000;
const metricsTimeoutMs = 2000;
const callTimeoutMs = 10_000;
/** Milliseconds after the start: loading the admin API's pages, 0.2 s of a processor, would slow the first requests of clients. */
const adminLoadMs = 3000;
/** Beyond the grace time, for the last sync to disk. */
const stopTimeoutMs = 60_000;

export interface ServerOptions {
  resolved: ResolvedConfig;
  logger: Logger;
  version: string;
  /** New, or loading already. */
  planes: Planes;
  /** Absent of a server of one process. */
  processSet?: ProcessSet | undefined;
  /** The server cannot continue. Acknowledged writes are as safe as the fsync policy promises. */
  onFailure: (reason: string) => void;
}

interface ServerCatalogs {
  tenants: TenantCatalog;
  catalog: TableCatalog;
  seriesTables: SeriesTableCatalog;
}

/** Opened resources, to be closed in reverse order. */
type Closer = () => Promise<void> | void;

export class Server {
  readonly #options: ServerOptions;
  readonly #config: LiveConfig;
  readonly #log: Logger;
  readonly #health = new Health();
  readonly #metrics = new MetricsPage();
  readonly #planes: Planes;
  readonly #relay: SettingRelay;
  readonly #closers: Closer[] = [];
  #data: DataDirectory | undefined;
  #tls: ServerTls | undefined;
  #adminToken: AdminToken | undefined;
  #usage: UsageCollector | undefined;
  #backups: BackupJobs | undefined;
  /** Its node in a cluster; undefined for a standalone server. */
  #node: ClusterNode | undefined;
  #clusterPlanes: ClusterPlanes | undefined;
  #clusterMetadata: ClusterMetadata | undefined;
  #widePlanes: WidePlanes | undefined;
  /** Where it waited for its cluster. */
  #adminPort: number | undefined;
  readonly #waiting = new AbortController();
  #failed = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#log = options.logger;
    this.#config = new LiveConfig(options.resolved.config);
    this.#planes = options.planes;
    this.#relay = new SettingRelay(this.#config, options.planes, options.logger);
  }

  get dataDirectory(): string {
    return resolve(this.#config.get('data-dir'));
  }

  /** The operator's token, if this start has made it: it is shown once. */
  get newAdminToken(): string | undefined {
    return this.#adminToken?.isNew ? this.#adminToken.secret : undefined;
  }

  /** Resolves once clients are served. On failure everything is closed again. */
  async start(): Promise<Endpoint[]> {
    try {
      return await this.#start();
    } catch (error) {
      await this.#eachPlane((plane) => plane.terminate());
      // No client was served yet, so the stop counts as clean.
      if (this.#data?.wasUnclean === false) this.#data.markClean();
      await this.#close();
      throw error;
    }
  }

  async #start(): Promise<Endpoint[]> {
    this.#tls = await ServerTls.open(this.#config.all(), (level, message, fields) =>
      this.#log[level](fields ?? {}, message),
    );
    this.#closers.push(() => this.#tls?.close());
    const data = DataDirectory.open(this.dataDirectory);
    this.#data = data;
    this.#closers.push(() => data.unlock());
    for (const remark of data.remarks) this.#log.warn(remark);
    if (data.wasUnclean) {
      this.#log.warn('the last server on this data directory did not stop cleanly: recovering');
    }
    const report = (message: string): void => this.#log.warn(message);
    this.#adminToken = openAdminToken(data);
    const audit = openAuditLog(data, report);
    this.#closers.push(() => audit.close());
    const metadata = await this.#openMetadata(data, audit);
    const { store } = metadata;
    this.#metrics.addSource(async () => metadata.samples());
    data.markUnclean();

    const databases = this.#config.get('redis.databases');
    const whyNotOpen = (): string | undefined => this.#exposures(true)[0];
    const workflows = await WorkflowEngine.open(store, {
      report,
      ...(metadata.isShared ? {} : { leaseMs: 0 }),
    });
    this.#metrics.addSource(async () => workflows.samples());
    const tenants = await TenantCatalog.open(store, {
      workflows,
      databases,
      hashPassword,
      report,
      whyNotOpen,
    });
    this.#closers.push(() => tenants.close());
    this.#closers.push(() => workflows.close());
    this.#refuseExposure(tenants);
    const catalog = await TableCatalog.open(store, {
      databases,
      defaultModel: this.#config.get('redis.default-model'),
      owners: tenants,
      partitions: this.#options.processSet?.processes ?? 1,
      level: () => this.#node?.level ?? Infinity,
    });
    const seriesTables = await SeriesTableCatalog.open(store, tenants);
    const partitions = new PartitionCatalog(catalog, (message) => this.#log.warn(message));
    this.#closers.push(() => partitions.close());
    const usage = new UsageCollector(this.#planes, openUsageHistory(data, report), report);
    this.#usage = usage;
    this.#closers.push(() => usage.close());
    const backups: BackupContext = {
      planes: this.#clusterPlanes ?? ownPlanes(this.#planes),
      disk: realDisk,
      catalogs: { tenants, tables: catalog, seriesTables },
      revision: () => store.revision,
      program: this.#options.version,
    };
    this.#backups = backupJobs(backups, this.dataDirectory);
    this.#watchParts();
    const {
      admin,
      url: adminUrl,
      sharedUrl,
    } = await this.#startAdmin(
      new Tables(catalog, seriesTables, partitions),
      tenants,
      workflows,
      audit,
    );

    const takesOver = this.#node !== undefined && mustTakeOver(this.dataDirectory);
    const serves = rolesOf(this.#config.all()).includes('gateway');
    const planeData = {
      config: this.#config.all(),
      tables: catalog.definitions(),
      defaultModel: catalog.defaultModel,
      seriesTables: seriesTables.definitions(),
      tenancy: tenants.snapshot(),
      tls: this.#tls?.material,
      sockets: this.#options.processSet?.sockets,
      holdsBack: takesOver || !serves,
    };
    this.#relay.start();
    const endpoints = await this.#startPlanes(planeData, { tenants, partitions, audit });
    this.#relay.catchUp(planeData.config);
    const kept = await catalog.attach(tableHolders(this.#planes, this.#widePlanes));
    for (const { id, has, wants } of kept) {
      this.#log.warn(`database ${id} holds rows and stays on the ${has} engine, not ${wants}`);
    }
    partitions.attach(this.#partitionHolder(catalog));
    seriesTables.attach(seriesTableHolder(this.#planes));
    await tenants.attach(tenantHolders(this.#planes, catalog, seriesTables, usage));
    if (this.#node !== undefined) this.#takePart(this.#node, { tenants, catalog, seriesTables });
    if (takesOver) endpoints.push(...(await this.#takeOver(backups, serves)));
    else if (this.#node !== undefined) cleanAfterTakeOver(this.dataDirectory);
    workflows.start();
    usage.start();
    this.#tls?.follow(Object.values(this.#planes), data);
    this.#closers.push(() => data.remove(adminCertificateFile));
    data.write('admin-endpoint', `${adminUrl}\n`);
    this.#closers.push(() => data.remove('admin-endpoint'));
    this.#health.phase = 'running';
    this.#loadSoon(admin);
    return [...endpoints.flat(), { name: 'admin', url: sharedUrl ?? adminUrl }];
  }

  /** A request that comes before loads the pages itself. */
  #loadSoon(admin: AdminServer): void {
    const load = async (): Promise<void> => {
      try {
        await admin.load();
      } catch (error) {
        this.#log.error({ err: error }, 'no admin API');
      }
    };
    const timer = setTimeout(() => void load(), adminLoadMs).unref();
    this.#closers.push(() => clearTimeout(timer));
  }

  /** Side by side; the first that cannot start ends the start. */
  async #startPlanes(
    planeData: PlaneData,
    parts: { tenants: TenantCatalog; partitions: PartitionCatalog; audit: AuditLog },
  ): Promise<Endpoint[][]> {
    const { tenants, partitions, audit } = parts;
    return await Promise.all(
      (['redis', 'influx'] as const).map((name) => {
        const plane: PlaneHost = this.#planes[name];
        const cluster = this.#node?.planeCluster(name);
        return plane.start(cluster === undefined ? planeData : { ...planeData, cluster }, {
          configChanged: (change) => this.#relay.changedBy(plane, change),
          log: (level, message, fields) => this.#log[level](fields ?? {}, message),
          died: (reason) => this.#options.onFailure(`the ${plane.name} plane ended: ${reason}`),
          control: {
            ...userHandlers(plane.name, tenants, audit),
            commitPartitions: ({ table, targets }) => partitions.commit(table, targets),
            queries: (of) => this.#widePlanes?.queries(of) ?? [],
            chunk: (of) => {
              if (this.#clusterPlanes === undefined) throw new Error('there are no other nodes');
              return this.#clusterPlanes.chunk(of);
            },
          },
        });
      }),
    );
  }

  /**
   * A graceful stop: not ready, no new clients, running requests end, everything goes to disk.
   * Rejects if that failed; the next start then recovers.
   */
  async stop(): Promise<void> {
    this.#health.phase = 'draining';
    const graceMs = this.#config.get('shutdown.grace-ms');
    try {
      await this.#backups?.close();
      await this.#node?.handOver();
      await this.#eachPlane((plane) =>
        plane
          .call('drain', graceMs, graceMs + callTimeoutMs)
          .catch((error: Error) => this.#log.warn(`clients were cut off: ${error.message}`)),
      );
      await this.#usage?.refresh();
      await this.#eachPlane((plane) => plane.stop(stopTimeoutMs));
      this.#data?.markClean();
    } finally {
      await this.#close();
    }
  }

  async #openMetadata(data: DataDirectory, audit: AuditLog): Promise<Metadata> {
    if (this.#config.get('cluster.listen') === '') {
      refuseNodeAlone(data);
      const metadata = await openMetadata(data, this.#config.get('metadata'), (level, message) =>
        this.#log[level](message),
      );
      this.#closers.push(() => metadata.store.close());
      return metadata;
    }
    const opened = await openNode({
      config: this.#config,
      data,
      planes: this.#planes,
      processSet: this.#options.processSet,
      admin: { ...this.#adminOptions(audit), tls: this.#tls?.admin },
      signal: this.#waiting.signal,
      report: (level, message, fields) => this.#log[level](fields ?? {}, message),
      onFatal: (error) => this.#options.onFailure(error.message),
    });
    const { cluster, node } = opened;
    this.#adminPort = opened.adminPort;
    this.#clusterMetadata = cluster;
    this.#node = node;
    this.#clusterPlanes = new ClusterPlanes(this.#planes, cluster, node);
    this.#widePlanes = new WidePlanes(this.#planes, cluster, node);
    this.#closers.push(() => (this.#failed ? cluster.abandon() : cluster.close()));
    this.#closers.push(() => node.close());
    return opened;
  }

  #partitionHolder(tables: TableCatalog): PartitionHolder {
    const holder = partitionHolder(this.#planes, this.#widePlanes);
    const metadata = this.#clusterMetadata;
    if (metadata === undefined) return holder;
    const changes = new PartitionChanges({
      ...{ metadata, planes: this.#planes, tables },
      sizes: (table) => holder.sizes(table),
      level: () => this.#node!.level,
      report: (message) => this.#log.warn(message),
      made: (fields) => this.#log.info(fields, 'partitions have changed'),
    });
    this.#closers.push(() => changes.close());
    return changes;
  }

  /** Moves a single server's data into the cluster; clients are served only afterwards. */
  async #takeOver(context: BackupContext, serves: boolean): Promise<Endpoint[][]> {
    const { takeOver } = await import('./cluster/take-over.ts');
    await takeOver({
      ...{ directory: this.dataDirectory, config: this.#config.all(), context },
      signal: this.#waiting.signal,
      progress: (text) => (this.#health.waitsFor = text),
      report: (level, message, fields) => this.#log[level](fields ?? {}, message),
    });
    if (!serves) return [];
    return await this.#eachPlane((plane) => plane.call('listen', undefined, callTimeoutMs));
  }

  /**
   * From now on changes by other nodes are followed, and the cluster places this node's replicas.
   */
  #takePart(node: ClusterNode, { tenants, catalog, seriesTables }: ServerCatalogs): void {
    const report = (message: string): void => this.#log.warn(message);
    for (const following of [catalog.follow(report), seriesTables.follow(report)]) {
      this.#closers.push(() => following.close());
    }
    node.start(() => ({
      tenants: tenants.snapshot().tenants.map(({ number }) => number),
      tables: catalog.definitions(),
      defaultModel: catalog.defaultModel,
      ownerOf: (table) => tenants.ownerOf(table)?.number,
    }));
  }

  /** Ends a start that waits for a cluster; `start` rejects then. No effect on a start that does not. */
  stopWaiting(): void {
    this.#waiting.abort(new ExitError('stopped while it waited for a cluster'));
  }

  #refuseExposure(tenants: TenantCatalog): void {
    const { open } = tenants.user(defaultTenant, defaultUser);
    const problems = this.#exposures(open);
    if (problems.length > 0) throw new ConfigError(problems);
  }

  /** Listeners reachable from other machines without a password. */
  #exposures(defaultUserIsOpen: boolean): string[] {
    const isOpen = defaultUserIsOpen && this.#config.get('redis.password') === '';
    return exposures(this.#config.all(), isOpen);
  }

  /** Reloads settings that can change without a restart. */
  async reload(): Promise<void> {
    await this.#tls?.reload();
  }

  /** After a failure: releases shared resources and leaves the marker. */
  async abandon(): Promise<void> {
    this.#health.phase = 'draining';
    this.#failed = true;
    await this.#eachPlane((plane) => plane.terminate());
    await this.#close();
  }

  /** Side by side. Rejects with the first failure once all are done with it. */
  async #eachPlane<T>(what: (plane: PlaneHost) => Promise<T>): Promise<T[]> {
    const outcomes = await Promise.allSettled(Object.values(this.#planes).map(what));
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
  }

  async #close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  async #startAdmin(
    tables: Tables,
    tenants: TenantCatalog,
    workflows: WorkflowEngine,
    audit: AuditLog,
  ): Promise<{ admin: AdminServer; url: string; sharedUrl: string | undefined }> {
    const usage = this.#usage!;
    const wide = this.#widePlanes;
    wide?.tellUsage(usage.history, () => usage.refresh());
    const host = this.#config.get('admin.host');
    const port = this.#adminPort ?? this.#config.get('admin.port');
    const admin = new AdminServer({
      ...this.#adminOptions(audit),
      wideAudit: wide?.tellAudit(audit),
      metrics: this.#metrics,
      tables,
      config: configView(this.#config, this.#options.resolved.sources),
      tenants,
      planes: this.#widePlanes?.access() ?? planeAccess(this.#planes),
      usage: usage.history,
      usageElsewhere: wide && ((query) => wide.usage(query)),
      refreshUsage: () => usage.refresh(),
      version: this.#options.version,
      tls: this.#tls?.admin,
      moreRoutes: [
        (app) => backupRoutes(app, this.#backups!),
        (app) => workflowRoutes(app, workflows),
        (app) => clusterRoutes(app, this.#node),
      ],
    });
    try {
      const url = await admin.listen(host, port);
      this.#closers.push(() => admin.close());
      const { processSet } = this.#options;
      const sharedUrl = processSet && (await admin.listenOnShared(processSet.sockets.admin));
      return { admin, url, sharedUrl };
    } catch (error) {
      await admin.close();
      throw listenError(error, host, port, 'admin.port');
    }
  }

  /** Also of the pages of a server that waits for a cluster. */
  #adminOptions(audit: AuditLog) {
    const token = this.#config.get('admin.token');
    const isOpen = token === '';
    return {
      health: this.#health,
      audit,
      operatorTokens: [
        { name: 'admin-token', secret: this.#adminToken!.secret },
        { name: 'admin.token', secret: token },
      ],
      isLocal: isOpen && isLoopback(this.#config.get('admin.host')),
      requestsPerSecond: () => this.#config.get('admin.requests-per-second'),
      onError: (error: Error) =>
        this.#log.error({ err: error }, 'a request to the admin API failed'),
    };
  }

  #watchParts(): void {
    this.#metrics.addSource(async () =>
      serverSamples({
        version: this.#options.version,
        directory: this.dataDirectory,
        wasUnclean: this.#data?.wasUnclean === true,
        planes: Object.values(this.#planes),
        tls: this.#tls,
      }),
    );
    for (const plane of Object.values(this.#planes)) {
      this.#health.addCheck(async () => {
        if (!plane.isUp) return [`the ${plane.name} plane is gone`];
        return await plane
          .call('health', undefined, healthTimeoutMs)
          .catch((error: Error) => [error.message]);
      });
      this.#metrics.addSource(async () => {
        if (!plane.isUp) return [];
        return await plane.call('metrics', undefined, metricsTimeoutMs).catch(() => []);
      });
    }
  }
}
