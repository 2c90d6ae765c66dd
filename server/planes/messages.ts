// What the control plane (main thread) and a data plane (worker thread) say to each other. All of it is
// plain data. The main thread calls, the plane answers each call once; the plane reports on its own too.

import type { TlsMaterial } from '../../access/gateway/tls-context.ts';
import type { PartitionChangeStatus } from '../../control/metadata/partition-catalog.ts';
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
  RestoreOrder,
  RestoreScope,
  RestoreStatus,
} from '../../storage-node/backup/plane-restores.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { TenancyUpdate, UserDefinition } from '../../contracts/tenancy/definitions.ts';
import type { ClusterView, ReplicaStatus } from '../../contracts/cluster.ts';
import type { SharedSockets } from '../lifecycle/process-set.ts';
import type { Config, ConfigKey, ConfigValue } from '../settings/schema.ts';

/** What a plane is started with: the first message to it. */
export interface PlaneData {
  config: Config;
  /** Every table that is not as it comes, by ascending number. */
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
  /** Nobody is served before `listen`. */
  holdsBack?: boolean | undefined;
  /** Where clients are heard; absent on a server of one process, which opens its own. */
  sockets?: SharedSockets | undefined;
}

/** What a plane has to know to take part in a cluster. */
export interface PlaneCluster {
  /** Id of the cluster; its nodes talk to no other one. */
  id: number;
  /** Number of this node. */
  node: number;
  /** How often the node has been started, told to peers so that they know a restarted one. */
  incarnation: number;
  /** All nodes have it. */
  secret: Uint8Array;
  /** Where the plane listens for other nodes. */
  host: string;
  port: number;
  view: ClusterView;
}

export interface ConfigChange {
  key: ConfigKey;
  value: ConfigValue;
}

/** What a plane can be asked. An error it throws comes back as the error of the call. */
interface PlaneCalls {
  metrics(): MetricSample[];
  /** Why it should get no traffic, as a disk that is full; [] when all is well. */
  health(): string[];
  /**
   * The whole catalog after a change. Once answered, nothing is done by the old one any more. Throws, and
   * keeps the old one, when a table that is to change its model holds rows.
   */
  tables(tables: readonly TableDefinition[]): void;
  /** As `tables`, for the databases of InfluxDB. */
  seriesTables(tables: readonly SeriesTableDefinition[]): void;
  /** Another engine for all tables that have no definition. Throws when one of them holds rows. */
  defaultModel(model: TableModel): void;
  rowCount(table: number): number;
  /** Begins the change that the table's placement tells of; one that runs already goes on. */
  changePartitions(table: TableDefinition): void;
  partitionChange(table: number): PartitionChangeStatus;
  /** Answered when it has ended. */
  cancelPartitionChange(table: number): void;
  /** Rows of each partition. */
  partitionSizes(table: number): { number: number; rows: number }[];
  /** Tables that hold rows and have no definition. */
  undefinedTables(): number[];
  /**
   * What has changed of tenants, users and tokens. Once answered nobody is let in by the old state, and
   * who may be in no more is out.
   */
  tenancy(update: TenancyUpdate): void;
  /**
   * Deletes all data of the tenant with this number, which is `dropping`; none of its clients is left. Once
   * answered the deletion survives a crash. A tenant of which there is nothing is no error.
   */
  dropTenant(number: number): void;
  /** What tenants have spent, as far as it changed after the snapshot of that number; 0 for all. */
  usage(since: number): MeterSnapshot;
  /** Tenants with a limit on request units, and how near they are to it. */
  admission(query: AdmissionQuery): TenantAdmission[];
  /** Keys or series that cost most, the most first. */
  top(query: TopQuery): TopEntry[];
  /** The newest first. */
  slowlog(query: SlowlogQuery): SlowlogEntry[];
  /** The newest first. */
  steps(query: SlowlogQuery): StepEntry[];
  /** Databases of the tenant with this number that hold something or were made. */
  databases(tenant: number): DatabaseInfo[];
  /** One that is there already is left as it is. Throws where databases are not made by name. */
  createDatabase(database: DatabaseName): void;
  /** One that is not there is no error. */
  dropDatabase(database: DatabaseName): void;
  /** A step of a backup: each is answered at once, and what it began goes on. */
  backup(order: BackupOrder): BackupStatus;
  /** A step of a restore. What the last one ends is undone before it is answered. */
  restore(order: RestoreOrder): RestoreStatus;
  /** Of these tables, partitions and tenants, those whose rows or points can be written here. */
  leads(scope: RestoreScope): RestoreScope;
  /** Of a plane that was told to hold back: serves from now on. */
  listen(): Endpoint[];
  /** Nodes and groups after a change of either. Throws on a server that is not a node of a cluster. */
  cluster(view: ClusterView): void;
  /** Replicas that the plane of this node has; none on a server that is not a node of a cluster. */
  groupStatus(): ReplicaStatus[];
  /**
   * Gives the lead of a group that this node leads to the replica on another node. Answered once that leads; throws
   * where this node does not lead it, and where the other one cannot take over in time.
   */
  transferGroup(order: { group: number; to: number }): void;
  /** A live setting was changed from outside. */
  setConfig(change: ConfigChange): void;
  /** There is another certificate. Throws, and keeps the old one, when it cannot be served with. */
  tls(material: TlsMaterial): void;
  /** Stops accepting; answers once what was under way is done, or the time is up. */
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

/** A user that a client makes or changes. What is not said stays, or is as of a user without any right. */
export interface UserRequest {
  tenant: string;
  name: string;
  /** Whether it must be new, or must be there; unsaid, either. */
  expect?: 'new' | 'there';
  change: Partial<Omit<UserDefinition, 'tenant' | 'name'>>;
}

/** What a plane can ask of the control plane for its clients. Answered once it is in force everywhere. */
export interface ControlCalls {
  setUser(request: UserRequest): UserDefinition;
  dropUser(user: { tenant: string; name: string }): void;
  /**
   * The rows of a change of partitions are copied: records that it is made, and answers the new definition; undefined
   * when the change was withdrawn. After an error it is asked again: the change may have been made.
   */
  commitPartitions(change: { table: number; targets: number[] }): TableDefinition | undefined;
  /** Of a file of a backup that another node of the cluster makes or restores. */
  chunk(of: { node: number; request: ChunkRequest }): ChunkAnswer;
}

export type ControlCallName = keyof ControlCalls;
export type ControlArgument<K extends ControlCallName> = Parameters<ControlCalls[K]>[0];
export type ControlResult<K extends ControlCallName> = ReturnType<ControlCalls[K]>;

/** The control plane's side. */
export type ControlHandlers = {
  [K in ControlCallName]: (argument: ControlArgument<K>) => MaybePromise<ControlResult<K>>;
};

/** The control plane's answer to what a plane asked. */
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
  /** It wants an answer. */
  | { type: 'asks'; id: number; call: ControlCallName; argument: unknown }
  /** It has recovered what was on disk, and listens, unless it holds back. */
  | { type: 'ready'; endpoints: Endpoint[] }
  /** A client changed a live setting (CONFIG SET). */
  | ({ type: 'configChanged' } & ConfigChange)
  | { type: 'log'; level: LogLevel; msg: string; fields?: Record<string, unknown> }
  /** It cannot go on. One line for people; the process ends with exit code 1. */
  | { type: 'fatal'; message: string };
