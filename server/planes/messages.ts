// Messages between the control plane (main thread) and a data plane (worker thread). All are plain
// data. The main thread calls, the plane answers each call once; the plane sends reports of its own
// too.

import type { ShownQuery } from '../../access/influx/statements/query-registry.ts';
import type { QuotaDemand, QuotaShare } from '../../access/admission/shares/shared-quotas.ts';
import type { TlsMaterial } from '../../access/gateway/tls-context.ts';
import type { PartitionChangeStatus } from '../../control/metadata/partition-catalog.ts';
import type { SeriesPartition } from '../../control/metadata/series-table-catalog.ts';
import type {
  SeriesTableDefinition,
  TableDefinition,
  TableModel,
} from '../../control/metadata/table-definition.ts';
import type { DatabaseInfo, DatabaseName } from '../../control/monitor/database-info.ts';
import type { Endpoint } from '../../control/monitor/endpoint.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { AdmissionQuery, TenantAdmission } from '../../control/monitor/tenant-admission.ts';
import type { SlowlogEntry, SlowlogQuery, StepEntry } from '../../control/monitor/slowlog.ts';
import type { TopEntry, TopQuery } from '../../control/monitor/top.ts';
import type { MeterSnapshot } from '../../request-units/meter.ts';
import type { BackupOrder, BackupStatus } from '../../storage-node/backup/plane-backups.ts';
import type { ChunkAnswer, ChunkRequest } from '../../storage-node/backup/remote-chunks.ts';
import type {
  LedScope,
  RestoreOrder,
  RestoreScope,
  RestoreStatus,
} from '../../storage-node/backup/plane-restores.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { TenancyUpdate, UserDefinition } from '../../contracts/tenancy/definitions.ts';
import type {
  ClusterView,
  MinuteSpan,
  PlaneMinutes,
  ReplicaStatus,
} from '../../contracts/cluster.ts';
import type { LedPartition, PartitionOrders } from './cluster-partitions.ts';
import type { SharedSockets } from '../lifecycle/process-set.ts';
import type { Config, ConfigKey, ConfigValue } from '../settings/schema.ts';

/** Start parameters of a plane: the first message to it. */
export interface PlaneData {
  config: Config;
  /** Tables with non-default definitions, by ascending number. */
  tables: readonly TableDefinition[];
  /** Engine of the tables that are not among them; those have no other property. */
  defaultModel: TableModel;
  /** Every database of InfluxDB that has properties of its own. */
  seriesTables: readonly SeriesTableDefinition[];
  /** Every tenant, user and token. */
  tenancy: TenancyUpdate;
  /** Absent when no listener speaks TLS. */
  tls?: TlsMaterial | undefined;
  /** Absent on a server that is not a node of a cluster. */
  cluster?: PlaneCluster | undefined;
  /** The plane serves no client before `listen`. */
  holdsBack?: boolean | undefined;
  /** Where clients are heard; absent on a server of one process, which opens its own. */
  sockets?: SharedSockets | undefined;
}

/** Parameters for a plane that is part of a cluster. */
export interface PlaneCluster {
  /** Id of the cluster; its nodes talk to no other one. */
  id: number;
  /** Number of this node. */
  node: number;
  /** Number of starts of the node. Peers use it to recognise a restarted node. */
  incarnation: number;
  /** All nodes have it. */
  secret: Uint8Array;
  /** Where the plane listens for other nodes. */
  host: string;
  port: number;
  view: ClusterView;
  /** Most bytes that a command may write. */
  maxWriteBytes: number;
  /** See `LinkContext`. */
  silenceMs?: number | undefined;
}

export interface ConfigChange {
  key: ConfigKey;
  value: ConfigValue;
}

/** Calls to a plane. An error it throws is returned as the error of the call. */
interface PlaneCalls {
  metrics(): MetricSample[];
  /** Why it should get no traffic, as a disk that is full; [] when all is well. */
  health(): string[];
  /**
   * Replaces the catalog after a change. Once answered, no operation uses the old catalog. Throws, and keeps the old
   * catalog, when a table that should change its model holds rows.
   */
  tables(tables: readonly TableDefinition[]): void;
  /** As `tables`, for the databases of InfluxDB. */
  seriesTables(tables: readonly SeriesTableDefinition[]): void;
  /** Sets the engine of all tables without a definition. Throws when one of them holds rows. */
  defaultModel(model: TableModel): void;
  rowCount(table: number): number;
  /** Begins the change given in the table's placement. A change in progress continues. */
  changePartitions(table: TableDefinition): void;
  partitionChange(table: number): PartitionChangeStatus;
  /** Answered when it has ended. */
  cancelPartitionChange(table: number): void;
  /** In a cluster: a step of a change, for all that is led here. */
  partitionStep(orders: PartitionOrders): LedPartition[];
  /** Rows of each partition. */
  partitionSizes(table: number): { number: number; rows: number }[];
  /** Partitions of a database of InfluxDB. */
  seriesPartitions(database: DatabaseName): SeriesPartition[];
  /** Tables that hold rows and have no definition. */
  undefinedTables(): number[];
  /**
   * Changes of tenants, users and tokens. Once answered, no client is admitted by the old state,
   * and clients without access are disconnected.
   */
  tenancy(update: TenancyUpdate): void;
  /**
   * Deletes all data of the tenant with this number, whose state is `dropping` and which has no clients left. Once
   * answered, the deletion survives a crash. A tenant without data is no error.
   */
  dropTenant(number: number): void;
  /** Usage of tenants that changed after the snapshot of that number; 0 for all. */
  usage(since: number): MeterSnapshot;
  /** Tenants with a limit on request units, and how near they are to their limit. */
  admission(query: AdmissionQuery): TenantAdmission[];
  /**
   * Units that tenants spent and lacked under their request unit limits, of which this node has a
   * share.
   */
  quotaDemands(): QuotaDemand[];
  /** New shares of limits. `usual` is the share of limits that are not named. */
  quotaShares(told: { usual: number; shares: readonly QuotaShare[] }): void;
  /** Keys or series that cost most, the most first. */
  top(query: TopQuery): TopEntry[];
  /** The newest first. */
  slowlog(query: SlowlogQuery): SlowlogEntry[];
  /** Queries of a tenant that run here. `kill` ends the query with that id, and returns only that query. */
  queries(of: { tenant: number; kill?: number | undefined }): ShownQuery[];
  /** The newest first. */
  steps(query: SlowlogQuery): StepEntry[];
  /** Databases of the tenant with this number that hold something or were made. */
  databases(tenant: number): DatabaseInfo[];
  /** Leaves an existing database unchanged. Throws where databases are not created by name. */
  createDatabase(database: DatabaseName): void;
  /** One that is not there is no error. */
  dropDatabase(database: DatabaseName): void;
  /** A step of a backup. It is answered at once, and its work continues in the background. */
  backup(order: BackupOrder): BackupStatus;
  /** A step of a restore. Work ended by the last step is undone before it is answered. */
  restore(order: RestoreOrder): RestoreStatus;
  /** Tables, partitions and tenants of `scope` whose rows or points can be written here. */
  leads(scope: RestoreScope): LedScope;
  /** Starts serving, for a plane whose listening was deferred. */
  listen(): Endpoint[];
  /** Nodes and groups after a change of either. Throws on a server that is not a node of a cluster. */
  cluster(view: ClusterView): void;
  /** Replicas that the plane of this node has; none on a server that is not a node of a cluster. */
  groupStatus(): ReplicaStatus[];
  /** Units served by each of those replicas, minute by minute, and what the plane can serve. */
  groupMinutes(span: MinuteSpan): PlaneMinutes;
  /**
   * Transfers the leadership of a group from this node to the replica on another node. Answered once the other node
   * leads. Throws if this node does not lead the group, or if the other node does not take over in time.
   */
  transferGroup(order: { group: number; to: number }): void;
  /** A live setting was changed from outside. */
  setConfig(change: ConfigChange): void;
  /** There is another certificate. Throws, and keeps the old one, when it cannot be served with. */
  tls(material: TlsMaterial): void;
  /** Stops accepting; answers once running requests are done, or the time is up. */
  drain(graceMs: number): void;
  /** Makes everything safe on disk and closes it. Nothing follows its answer. */
  stop(): void;
}

export type PlaneCallName = keyof PlaneCalls;
export type PlaneArgument<K extends PlaneCallName> = Parameters<PlaneCalls[K]>[0];
export type PlaneResult<K extends PlaneCallName> = ReturnType<PlaneCalls[K]>;

/** The plane's side: a function for each call. */
export type PlaneHandlers = {
  [K in PlaneCallName]: (argument: PlaneArgument<K>) => MaybePromise<PlaneResult<K>>;
};

export interface PlaneCall {
  id: number;
  call: PlaneCallName;
  argument: unknown;
}

/**
 * A user that a client creates or changes. Absent fields stay, or are those of a user without
 * rights.
 */
export interface UserRequest {
  tenant: string;
  name: string;
  /** Whether the user must be new or must exist; absent: either. */
  expect?: 'new' | 'there';
  change: Partial<Omit<UserDefinition, 'tenant' | 'name'>>;
}

/**
 * Calls of a plane to the control plane on behalf of clients. Answered once the change is in force
 * everywhere.
 */
export interface ControlCalls {
  setUser(request: UserRequest): UserDefinition;
  dropUser(user: { tenant: string; name: string }): void;
  /**
   * The rows of a change of partitions are copied: records that it is made, and answers the new definition; undefined
   * when the change was withdrawn. After an error it is asked again: the change may have been made.
   */
  commitPartitions(change: { table: number; targets: number[] }): TableDefinition | undefined;
  /** As the call of planes, of all other nodes of the cluster. */
  queries(of: { tenant: number; kill?: number | undefined }): ShownQuery[];
  /** Chunk of a backup file that another node of the cluster makes or restores. */
  chunk(of: { node: number; request: ChunkRequest }): ChunkAnswer;
}

export type ControlCallName = keyof ControlCalls;
export type ControlArgument<K extends ControlCallName> = Parameters<ControlCalls[K]>[0];
export type ControlResult<K extends ControlCallName> = ReturnType<ControlCalls[K]>;

/** The control plane's side. */
export type ControlHandlers = {
  [K in ControlCallName]: (argument: ControlArgument<K>) => MaybePromise<ControlResult<K>>;
};

/** The control plane's answer to a plane's call. */
export interface ControlAnswer {
  answers: number;
  value?: unknown;
  error?: string;
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';

export type PlaneReport =
  /** The answer to a call. */
  | { type: 'answer'; id: number; value: unknown }
  | { type: 'failed'; id: number; error: string }
  /** The plane makes a call. */
  | { type: 'asks'; id: number; call: ControlCallName; argument: unknown }
  /** The plane has recovered its data, and listens unless listening is deferred. */
  | { type: 'ready'; endpoints: Endpoint[] }
  /** A client changed a live setting (CONFIG SET). */
  | ({ type: 'configChanged' } & ConfigChange)
  | { type: 'log'; level: LogLevel; msg: string; fields?: Record<string, unknown> }
  /** The plane has failed. One line for display; the process ends with exit code 1. */
  | { type: 'fatal'; message: string };
