// Runs backups and restores for the admin API. Their code is loaded on demand.

import { randomBytes } from 'node:crypto';
import { BackupJobs } from '../../control/backup/backup-jobs.ts';
import { newBackupId } from '../../storage-node/backup/manifest.ts';
import type { PlaneHost, Planes } from '../planes/plane-host.ts';
import type { BackupContext } from './backup-run.ts';
import type { BackupPlane } from './plane-orders.ts';

/** Timeout of a step: the longest one drops the tables that a restore has replaced. */
const stepTimeoutMs = 10 * 60_000;

export function backupJobs(planes: Planes, context: Omit<BackupContext, 'planes'>): BackupJobs {
  const whole: BackupContext = { ...context, planes: Object.values(planes).map(backupPlane) };
  return new BackupJobs(
    {
      backup: async (id, request, job) => {
        const { runBackup } = await import('./backup-run.ts');
        return await runBackup(whole, id, request, job);
      },
      restore: async (id, request, job) => {
        const { runRestore } = await import('./restore-run.ts');
        return await runRestore(whole, id, request, job);
      },
    },
    () => newBackupId(Date.now(), randomBytes(4).toString('hex')),
  );
}

function backupPlane(plane: PlaneHost): BackupPlane {
  return {
    name: plane.name,
    backup: (order) => plane.call('backup', order, stepTimeoutMs),
    restore: (order) => plane.call('restore', order, stepTimeoutMs),
  };
}
