// The data planes as seen by backups and restores: those of this server, or of all nodes of its cluster.

import type { BackupOrder, BackupStatus } from '../../storage-node/backup/plane-backups.ts';
import type {
  LedScope,
  RestoreOrder,
  RestoreScope,
  RestoreStatus,
} from '../../storage-node/backup/plane-restores.ts';
import type { PlaneHost, Planes } from '../planes/plane-host.ts';

export interface BackupPlane {
  readonly name: string;
  backup(order: BackupOrder): Promise<BackupStatus>;
  restore(order: RestoreOrder): Promise<RestoreStatus>;
  /** Tables and tenants of `scope` whose rows or points the plane can write. */
  leads(scope: RestoreScope): Promise<LedScope>;
}

/** A plane's share of a backup: these groups of a cluster, or all groups. */
export interface BackupShare {
  readonly plane: BackupPlane;
  readonly groups?: readonly number[];
}

export interface BackupPlanes {
  /** All that can be reached. */
  all(): BackupPlane[];
  /** Shares of a backup of a tenant, by its number, or of all tenants. */
  shares(tenant: number | undefined): Promise<BackupShare[]>;
  /** Lets other nodes write and read files of the directory until the function returned is called. */
  open(directory: string): () => void;
}

/** Timeout of a step: the longest one drops the tables that a restore has replaced. */
export const stepTimeoutMs = 10 * 60_000;

/** Backup planes of a single server. */
export function ownPlanes(planes: Planes): BackupPlanes {
  const all = (Object.values(planes) as PlaneHost[]).map(
    (plane): BackupPlane => ({
      name: plane.name,
      backup: (order) => plane.call('backup', order, stepTimeoutMs),
      restore: (order) => plane.call('restore', order, stepTimeoutMs),
      leads: (scope) => plane.call('leads', scope, stepTimeoutMs),
    }),
  );
  return {
    all: () => all,
    shares: async () => all.map((plane) => ({ plane })),
    open: () => () => {},
  };
}

const pollMs = 50;

/** Asks all planes repeatedly until each is `ended`. Gives up when the signal aborts. */
export async function untilAll<S>(
  planes: readonly BackupPlane[],
  signal: AbortSignal,
  ask: (plane: BackupPlane) => Promise<S>,
  ended: (status: S) => boolean,
  seen: (statuses: readonly S[]) => void,
): Promise<S[]> {
  for (;;) {
    signal.throwIfAborted();
    const statuses = await Promise.all(planes.map(ask));
    seen(statuses);
    if (statuses.every(ended)) return statuses;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
