// Contents of a backup's manifest.

import type { ChunkFile } from './chunk-format.ts';

/** The place in a pod's log that a part of a backup is of: it has every entry up to `index`, and no later one. */
export interface LogPoint {
  /** Tells this log from any other. */
  readonly volume: number;
  readonly index: number;
}

/** A table of rows, as of the backup's point. */
export interface TableCount {
  readonly table: number;
  readonly rows: number;
  /**
   * Checksum over all rows, as `RowTally` computes it. An incremental part has it if it was requested; a full part
   * has the rows themselves.
   */
  readonly checksum?: string;
}

/** A stretch of time of a retention policy, as of the backup's point. */
export interface ShardRef {
  readonly shard: number;
  readonly database: string;
  readonly policy: string;
  readonly startSeconds: number;
  readonly seconds: number;
  /** Whether its points are in this backup; else they are as in the one before. */
  readonly included: boolean;
}

/** Part of one pod. */
export interface PodPart {
  /**
   * `memory`, `kv`, `tsm`: a single server has one pod of each. `tsm-2-of-4`: the second of four partitions of time
   * series.
   */
  readonly model: string;
  /** In a cluster: number of the pod's group of replicas. Indexes are those of the group's log. */
  readonly group?: number;
  /** For a group of time series: the number of its tenant. */
  readonly tenant?: number;
  /**
   * `all`: all contents. `entries`: the log entries since the point of the backup before, in order.
   * `shards`: of time series, the shards changed since.
   */
  readonly kind: 'all' | 'entries' | 'shards';
  readonly point: LogPoint;
  /** For `entries` and `shards`: the index after which they begin. */
  readonly after?: number;
  /** When the point was, in milliseconds since 1970. */
  readonly at: number;
  /** Why it is everything although less was asked for. */
  readonly reason?: string;
  readonly files: readonly ChunkFile[];
  readonly tables?: readonly TableCount[];
  readonly shards?: readonly ShardRef[];
}

/** Tenants and databases in a backup. */
export interface BackupScope {
  /** Undefined: everyone's. */
  readonly tenant?: { readonly name: string; readonly number: number };
}

export interface BackupManifest {
  readonly version: number;
  readonly id: string;
  /** Id of the full backup that the chain began with: of itself, when it is one. */
  readonly chain: string;
  /** The backup that this one continues. */
  readonly parent?: string;
  readonly scope: BackupScope;
  /** Version of the program. */
  readonly program: string;
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly metadata: { readonly revision: number; readonly files: readonly ChunkFile[] };
  readonly parts: readonly PodPart[];
}
