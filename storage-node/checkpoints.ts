// The checkpoints of a pod: one at a time, when the log has grown by so much, and the log before each is dropped.

import type { Clock } from '../universal-row/environment.ts';
import type { PartitionLog } from './replicator/partition-log.ts';

export interface CheckpointStats {
  checkpoints: number;
  lastCheckpointMs: number;
  lastCheckpointAt: number;
  /** Log index of the last checkpoint; 0 before the first since the start. */
  lastCheckpointIndex: number;
  checkpointFailures: number;
}

interface CheckpointsOptions {
  engine: { checkpoint(): Promise<number> };
  log: PartitionLog;
  clock: Clock;
  /** A checkpoint is made whenever the log has grown by this much. */
  everyBytes: number;
  stats: CheckpointStats;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
  /** Resolves when a checkpoint may begin; at once when left out. */
  ready?: () => Promise<boolean>;
  /**
   * Called when a checkpoint begins; the returned function is called when it is made, before the
   * log is dropped.
   */
  begun?: () => () => void;
}

export class Checkpoints {
  readonly #options: CheckpointsOptions;
  #running: Promise<void> | undefined;
  /** Log size as of the last checkpoint. */
  #bytes: number;

  constructor(options: CheckpointsOptions) {
    this.#options = options;
    this.#bytes = options.log.writtenBytes;
  }

  /** The checkpoint in progress; undefined if there is none. */
  get running(): Promise<void> | undefined {
    return this.#running;
  }

  makeIfDue(): void {
    const { log, everyBytes } = this.#options;
    if (log.writtenBytes - this.#bytes >= everyBytes) void this.make();
  }

  make(): Promise<void> {
    this.#running ??= this.#make().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #make(): Promise<void> {
    const { engine, log, clock, stats, report, ready, begun } = this.#options;
    if (ready !== undefined && !(await ready())) return;
    const startedAt = clock.monotonic();
    this.#bytes = log.writtenBytes;
    const made = begun?.();
    try {
      const index = await engine.checkpoint();
      made?.();
      log.truncate(index);
      stats.checkpoints++;
      stats.lastCheckpointMs = clock.monotonic() - startedAt;
      stats.lastCheckpointAt = clock.now();
      stats.lastCheckpointIndex = index;
    } catch (error) {
      stats.checkpointFailures++;
      report('warn', 'a checkpoint failed; the log keeps growing until one succeeds', {
        err: error,
      });
    }
  }
}
