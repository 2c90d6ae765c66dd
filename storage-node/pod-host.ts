// Opens a pod on a directory: the engine with what its last checkpoint held, then the log from there on.

import { join } from 'node:path';
import type { Clock, Disk, Rng } from '../universal-row/environment.ts';
import type { Engine } from '../engines/engine.ts';
import { applyWithFaults } from '../engines/apply-with-faults.ts';
import { Pod } from './pod.ts';
import { LocalGroup } from './replicator/group/local-group.ts';
import type { FsyncPolicy } from './replicator/replicated-log.ts';
import type { TableRules } from './table-rules.ts';

export interface PodHostOptions {
  engine: Engine;
  disk: Disk;
  /** The log goes to `wal` in it. */
  directory: string;
  podId: number;
  fsync: FsyncPolicy;
  segmentBytes: number;
  checkpointBytes: number;
  maxMemoryBytes: number;
  tables: Map<number, TableRules>;
  tableCount: number;
  /** Cuts a damaged log where the damage begins instead of refusing to open it. */
  acceptLoss: boolean;
  clock: Clock;
  rng: Rng;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
  /** The log cannot go on, and neither can the process. */
  fatal: (error: Error) => void;
}

// One partition spans all slots of a single-node pod, so it has one group.
const onlyGroup = 1;

export async function openPod(options: PodHostOptions): Promise<Pod> {
  const { engine, report } = options;
  const startedAt = options.clock.monotonic();
  await engine.open();
  const fromCheckpoint = engine.appliedIndex;
  let entries = 0;
  let bytes = 0;
  const log = await LocalGroup.open({
    disk: options.disk,
    directory: join(options.directory, 'wal'),
    fsync: options.fsync,
    segmentBytes: options.segmentBytes,
    clock: options.clock,
    ids: { cluster: 1, pod: options.podId },
    group: onlyGroup,
    appliedIndex: fromCheckpoint,
    fatal: options.fatal,
    acceptLoss: options.acceptLoss,
    apply(buf, start, end, index) {
      entries++;
      bytes += end - start;
      return applyWithFaults(engine, buf, start, end, index);
    },
  });
  engine.endTurn();
  const pod = new Pod({
    engine,
    log,
    tables: options.tables,
    tableCount: options.tableCount,
    clock: options.clock,
    rng: options.rng,
    maxMemoryBytes: options.maxMemoryBytes,
    checkpointBytes: options.checkpointBytes,
    report,
  });
  pod.stats.loadedEntries = entries;
  report('info', `${engine.model} pod is ready`, {
    checkpointIndex: fromCheckpoint,
    replayedEntries: entries,
    replayedBytes: bytes,
    ms: Math.round(options.clock.monotonic() - startedAt),
  });
  return pod;
}
