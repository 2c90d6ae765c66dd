// Interface of the backup of one pod, for both kinds of data.

import type { ChunkDisk } from './chunk-format.ts';
import type { LogPoint, PodPart } from './manifest-content.ts';

export interface PartOptions {
  disk: ChunkDisk;
  /** Directory of the backup in progress. */
  directory: string;
  /** Group of a replica in a cluster, and the tenant of its time series. */
  group?: number | undefined;
  tenant?: number | undefined;
  /** Where the last backup of the chain stands; or why there is none to continue from. Undefined: it was not asked for. */
  since: LogPoint | string | undefined;
}

export interface PartBackup {
  /** Model of the pod. The point is fixed: later changes are not in the backup. */
  readonly model: string;
  /** Group of a replica in a cluster. */
  readonly group: number | undefined;
  readonly point: LogPoint;
  /** Where the log was then. */
  readonly lsn: number;
  /** How far it is, in a unit of its own. */
  readonly done: number;
  readonly total: number;
  /** As they are on disk. */
  readonly bytes: number;
  /** Writes the part; once. Rejects with `BackupCancelled` after `cancel`. */
  run(): Promise<PodPart>;
  cancel(): void;
  /** Releases its resources, whether it has run or not. Its pin continues keeping the log. */
  release(): Promise<void>;
}

/** Prefix of the names of a part's files. */
export function chunkPrefix(
  plane: string,
  { model, group }: Pick<PartBackup, 'model' | 'group'>,
): string {
  return group === undefined ? `${plane}-${model}` : `${plane}-${model}-group-${group}`;
}

export class BackupCancelled extends Error {
  override readonly name = 'BackupCancelled';

  constructor() {
    super('cancelled');
  }
}
