// Runs backups and restores for the admin API. Their code is loaded on demand.

import { randomBytes } from 'node:crypto';
import { isAbsolute, relative } from 'node:path';
import { BackupJobs } from '../../control/backup/backup-jobs.ts';
import { newBackupId } from '../../storage-node/backup/manifest.ts';
import type { BackupContext } from './backup-run.ts';

/** Backups do not lie in the data directory. */
export function backupJobs(whole: BackupContext, dataDirectory: string): BackupJobs {
  return new BackupJobs(
    {
      backup: async (id, request, job) => {
        checkDirectory(request.directory, dataDirectory);
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

function checkDirectory(set: string, dataDirectory: string): void {
  if (!isAbsolute(set)) throw new Error(`the directory must be an absolute path, not ${set}`);
  const within = relative(dataDirectory, set);
  if (within === '' || !(within.startsWith('..') || isAbsolute(within))) {
    throw new Error(`${set} is in the data directory: a backup there would go with it`);
  }
}
