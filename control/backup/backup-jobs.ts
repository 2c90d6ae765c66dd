// Running and finished backups and restores. One runs at a time, because they share the limit on the load of the data
// planes. The server provides their implementation.

type JobKind = 'backup' | 'restore';
type JobState = 'running' | 'done' | 'failed' | 'cancelled';

export interface BackupRequest {
  /** On the server's machine. */
  directory: string;
  /** Name of the tenant to back up; if undefined, all tenants. */
  tenant?: string;
  /** Whether to back up only the changes since the last backup in the directory. */
  incremental?: boolean;
}

export interface RestoreRequest {
  directory: string;
  /** Id of the backup; if undefined, the last one in the directory. */
  backup?: string;
  /** Name of the tenant to restore; if undefined, all tenants in the backup. */
  tenant?: string;
  /** Name of the restored tenant. */
  as?: string;
  /** Replaces existing rows. */
  replace?: boolean;
  /** Existing tenants get the users and tokens of the backup that they lack. */
  users?: boolean;
}

/** Progress of a running job. */
interface JobProgress {
  /** Current phase, as text. */
  phase: string;
  /** From 0 to 1. */
  fraction: number;
  /** Bytes of the backup written or read so far. */
  bytes: number;
}

export interface Job extends JobProgress {
  id: string;
  kind: JobKind;
  state: JobState;
  request: BackupRequest | RestoreRequest;
  /** Unix milliseconds. */
  startedAt: number;
  endedAt?: number;
  error?: string;
  /** The result. */
  result?: object;
}

/** Runs backups and restores. Throws if `signal` is aborted, and then leaves no partial result. */
export interface BackupWorker {
  backup(id: string, request: BackupRequest, job: RunningJob): Promise<object>;
  restore(id: string, request: RestoreRequest, job: RunningJob): Promise<object>;
}

export interface RunningJob {
  readonly signal: AbortSignal;
  report(progress: Partial<JobProgress>): void;
}

const statusOfReason = { missing: 404, conflict: 409 } as const;

/** A job that does not exist, or cannot run now. */
class JobError extends Error {
  override readonly name = 'JobError';
  /** HTTP status of the response. */
  readonly statusCode: number;

  constructor(reason: keyof typeof statusOfReason, message: string) {
    super(message);
    this.statusCode = statusOfReason[reason];
  }
}

const keptJobs = 50;

export class BackupJobs {
  readonly #worker: BackupWorker;
  readonly #newId: () => string;
  readonly #jobs: Job[] = [];
  #running: { job: Job; abort: AbortController; ended: Promise<void> } | undefined;

  constructor(worker: BackupWorker, newId: () => string) {
    this.#worker = worker;
    this.#newId = newId;
  }

  backup(request: BackupRequest): Job {
    return this.#start('backup', request, (job, running) =>
      this.#worker.backup(job.id, request, running),
    );
  }

  restore(request: RestoreRequest): Job {
    return this.#start('restore', request, (job, running) =>
      this.#worker.restore(job.id, request, running),
    );
  }

  /** The newest first. */
  list(): Job[] {
    return this.#jobs.toReversed();
  }

  find(id: string): Job {
    const job = this.#jobs.find((one) => one.id === id);
    if (job === undefined) throw new JobError('missing', `no backup or restore ${id}`);
    return job;
  }

  /** Cancels a job. Resolves when the job has ended, cancelled or not. */
  async cancel(id: string): Promise<Job> {
    const job = this.find(id);
    if (this.#running?.job === job) {
      this.#running.abort.abort();
      await this.#running.ended;
    }
    return job;
  }

  /** Resolves when no job is running any more. */
  async close(): Promise<void> {
    this.#running?.abort.abort();
    await this.#running?.ended;
  }

  #start(
    kind: JobKind,
    request: BackupRequest | RestoreRequest,
    work: (job: Job, running: RunningJob) => Promise<object>,
  ): Job {
    if (this.#running !== undefined) {
      const { job } = this.#running;
      throw new JobError('conflict', `${job.kind} ${job.id} is under way`);
    }
    const job: Job = {
      id: this.#newId(),
      kind,
      state: 'running',
      request,
      startedAt: Date.now(),
      phase: 'begins',
      fraction: 0,
      bytes: 0,
    };
    this.#jobs.push(job);
    if (this.#jobs.length > keptJobs) this.#jobs.shift();
    const abort = new AbortController();
    const running: RunningJob = {
      signal: abort.signal,
      report: (progress) => Object.assign(job, progress),
    };
    const ended = work(job, running).then(
      (result) => this.#end(job, { state: 'done', fraction: 1, phase: 'done', result }),
      (error: Error) =>
        this.#end(job, {
          state: abort.signal.aborted ? 'cancelled' : 'failed',
          phase: 'ended',
          error: abort.signal.aborted ? 'cancelled' : error.message,
        }),
    );
    this.#running = { job, abort, ended };
    return job;
  }

  #end(job: Job, change: Partial<Job>): void {
    Object.assign(job, change, { endedAt: Date.now() });
    this.#running = undefined;
  }
}
