// The rows and points of a single server become those of the cluster that was formed of its directory:
//
//   1  a backup of all of them is made in `cluster/carried`, whole or not at all
//   2  it is restored into the groups of the first node, which serves no client and admits no other node until that is done
//   3  the single server's data is deleted
//
// `cluster/take-over` records that it is not done yet. A start after a kill continues with the
// first step not done.

import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningJob } from '../../control/backup/backup-jobs.ts';
import type { TableModel } from '../../control/metadata/table-definition.ts';
import { TsmEngine } from '../../engines/tsm/tsm-engine.ts';
import { listBackups, newBackupId, partialPath } from '../../storage-node/backup/manifest.ts';
import { type BackupSource, PlaneBackups } from '../../storage-node/backup/plane-backups.ts';
import { rowSource, seriesSource } from '../../storage-node/backup/plane-parts.ts';
import { seriesModel } from '../../storage-node/backup/series-share.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { openPod } from '../../storage-node/pod-host.ts';
import {
  recordedPartitions,
  seriesPartitionDirectory,
} from '../../storage-node/series-partitions.ts';
import { openSeriesPod } from '../../storage-node/series-pod-host.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import { type BackupContext, runBackup } from '../backup/backup-run.ts';
import type { BackupPlane, BackupPlanes } from '../backup/plane-orders.ts';
import { runRestore } from '../backup/restore-run.ts';
import { createEngine } from '../../engines/create-engine.ts';
import { podIds } from '../planes/pod-ids.ts';
import type { Config } from '../settings/schema.ts';
import { carriedPath, cleanAfterTakeOver, forgetTakeOver } from './take-over-mark.ts';

type Report = (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;

interface TakeOverOptions {
  /** The data directory. */
  directory: string;
  config: Config;
  /** For the restore: the planes of the node, and its catalogs. */
  context: BackupContext;
  signal: AbortSignal;
  /** Reports progress, for display. */
  progress: (text: string) => void;
  report: Report;
}

export async function takeOver(options: TakeOverOptions): Promise<void> {
  const { directory, context, signal, progress, report } = options;
  const set = carriedPath(directory);
  mkdirSync(set, { recursive: true, mode: 0o700 });
  for (const id of listBackups(realDisk, set).partial) {
    rmSync(partialPath(set, id), { recursive: true, force: true });
  }
  const job = (what: string): RunningJob => ({
    signal,
    report: ({ fraction = 0 }) =>
      progress(
        `the cluster takes over the single server's data: ${what}, ${Math.round(100 * fraction)} %`,
      ),
  });
  if (listBackups(realDisk, set).ids.length === 0) await carry(options, set, job('reading'));
  const { tenants } = await runRestore(
    context,
    newBackupId(Date.now(), '00000000'),
    { directory: set, replace: true },
    job('writing'),
  );
  const rows = tenants.flatMap(({ tables }) => tables).reduce((sum, one) => sum + one.rows, 0);
  const points = tenants.flatMap(({ shards }) => shards).reduce((sum, one) => sum + one.rows, 0);
  report('info', "the single server's data are the cluster's now", { rows, points });
  forgetTakeOver(directory);
  cleanAfterTakeOver(directory);
}

/** A full backup of the single server's data. */
async function carry(options: TakeOverOptions, set: string, job: RunningJob): Promise<void> {
  const { context } = options;
  const pods = new OldPods(options);
  try {
    const planes = [await pods.rows(), await pods.series()];
    const id = newBackupId(Date.now(), '00000000');
    await runBackup({ ...context, planes: onlyThese(planes) }, id, { directory: set }, job);
  } finally {
    await pods.close();
  }
}

function onlyThese(all: BackupPlane[]): BackupPlanes {
  return {
    all: () => all,
    shares: async () => all.map((plane) => ({ plane })),
    open: () => () => {},
  };
}

/** The pods of the single server, for readers. */
class OldPods {
  readonly #options: TakeOverOptions;
  readonly #open: { close(): Promise<void> }[] = [];

  constructor(options: TakeOverOptions) {
    this.#options = options;
  }

  #common() {
    const { config, report } = this.#options;
    return {
      ...{ disk: realDisk, clock: systemClock, report },
      fsync: 'no' as const,
      segmentBytes: config['wal.segment-bytes'],
      checkpointBytes: Infinity,
      acceptLoss: config['wal.accept-loss'] === 'yes',
      fatal: (error: Error) => {
        throw error;
      },
    };
  }

  async rows(): Promise<BackupPlane> {
    const { directory, config } = this.#options;
    const sources: BackupSource[] = [];
    for (const model of ['memory', 'kv'] satisfies TableModel[]) {
      const path = join(directory, 'redis', model);
      if (!existsSync(path)) continue;
      const engine = await createEngine(model, {
        directory: join(path, 'data'),
        disk: realDisk,
        cacheBytes: config['kv.cache-bytes'],
        writeBufferBytes: config['kv.write-buffer-bytes'],
      });
      const pod = await openPod({
        ...this.#common(),
        ...{ engine, directory: path, podId: podIds[model], maxMemoryBytes: Infinity },
        tables: new Map(),
        rng: systemRng,
      });
      this.#open.push(pod);
      sources.push(rowSource(model, pod, () => false));
    }
    return planeOf(
      'redis',
      new PlaneBackups(
        () => realDisk,
        () => sources,
      ),
    );
  }

  async series(): Promise<BackupPlane> {
    const { directory, config } = this.#options;
    const path = join(directory, 'influx');
    if (!existsSync(join(path, 'data'))) {
      return planeOf(
        'influx',
        new PlaneBackups(
          () => realDisk,
          () => [],
        ),
      );
    }
    const count = recordedPartitions(realDisk, path) ?? 1;
    const sources: BackupSource[] = [];
    for (let partition = 0; partition < count; partition++) {
      const own = seriesPartitionDirectory(path, partition);
      const pod = await openSeriesPod({
        ...this.#common(),
        engine: new TsmEngine({
          directory: join(own, 'data'),
          disk: realDisk,
          clock: systemClock,
          headBytes: config['tsm.head-bytes'],
        }),
        ...{ directory: own, podId: podIds.tsm },
        retentionIntervalMs: Infinity,
      });
      this.#open.push(pod);
      sources.push(seriesSource(seriesModel({ partition, of: count }), pod));
    }
    return planeOf(
      'influx',
      new PlaneBackups(
        () => realDisk,
        () => sources,
      ),
    );
  }

  async close(): Promise<void> {
    for (const pod of this.#open) await pod.close();
  }
}

function planeOf(name: string, backups: PlaneBackups): BackupPlane {
  const notHere = (): never => {
    throw new Error('nothing is restored into what a single server had');
  };
  return { name, backup: (order) => backups.order(order), restore: notHere, leads: notHere };
}
