// Runs backups and restores for the admin API. Their code is loaded on demand.

import { randomBytes } from 'node:crypto';
import { BackupJobs } from '../../control/backup/backup-jobs.ts';
import { newBackupId } from '../../storage-node/backup/manifest.ts';
import type { BackupContext } from './backup-run.ts';

export function backupJobs(whole: BackupContext): BackupJobs {
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
