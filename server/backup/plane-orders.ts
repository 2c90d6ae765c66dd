// The data planes, as backups and restores see them.

import type { BackupOrder, BackupStatus } from '../../storage-node/backup/plane-backups.ts';
import type { RestoreOrder, RestoreStatus } from '../../storage-node/backup/plane-restores.ts';

export interface BackupPlane {
  readonly name: string;
  backup(order: BackupOrder): Promise<BackupStatus>;
  restore(order: RestoreOrder): Promise<RestoreStatus>;
}

const pollMs = 50;

/** Asks all planes again and again until each is `ended`; gives up when the signal says so. */
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
