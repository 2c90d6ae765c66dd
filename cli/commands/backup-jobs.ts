// Begins a backup or a restore on a server, watches it to its end, and has it cancelled by Ctrl-C.

import type { Job } from '../../control/backup/backup-jobs.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import type { AdminClient } from './admin-client.ts';
import { progressView } from './backup-progress.ts';

const pollMs = 200;

/** The job's result. Throws `ExitError` when it failed. */
export async function runJob<R>(
  client: AdminClient,
  page: '/v1/backups' | '/v1/restores',
  request: object,
  json: boolean,
): Promise<R> {
  const view = await progressView(json);
  let job = (await client.request('POST', page, request)) as Job;
  let isCancelled = false;
  const cancel = (): void => {
    isCancelled = true;
    // Its end is seen by the next look.
    client.request('DELETE', `${page}/${job.id}`).catch(() => {});
  };
  process.once('SIGINT', cancel);
  try {
    while (job.state === 'running') {
      view.update(job);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
      job = await client.get<Job>(`${page}/${job.id}`);
    }
    view.update(job);
  } finally {
    process.off('SIGINT', cancel);
    view.end();
  }
  if (job.state === 'done') return job.result as R;
  if (isCancelled) throw new ExitError(`${job.kind} cancelled; nothing of it is left`);
  throw new ExitError(
    `${job.kind} ${job.state}: ${job.error ?? 'unknown error'}`,
    exitCodes.failed,
  );
}
