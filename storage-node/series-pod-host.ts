// Opens a pod of time series on a directory: the engine with its last checkpoint, then the log from
// there on.

import { join } from 'node:path';
import type { Clock, Disk } from '../universal-row/environment.ts';
import type { StepWatcher } from '../contracts/step-watcher.ts';
import type { PodAdmission } from '../contracts/pod-admission.ts';
import type { PortableSeriesEngine } from '../engines/series-engine.ts';
import { LogPins } from './backup/log-pins.ts';
import { LocalGroup } from './replicator/group/local-group.ts';
import type { FsyncPolicy } from './replicator/partition-log.ts';
import { SeriesPod, type SeriesPodOptions } from './series-pod.ts';
import type { TableRulesByName } from './table-rules.ts';

interface SeriesPodHostOptions {
  engine: PortableSeriesEngine;
  disk: Disk;
  /** The log goes to `wal` in it. */
  directory: string;
  podId: number;
  fsync: FsyncPolicy;
  segmentBytes: number;
  checkpointBytes: number;
  retentionIntervalMs: number;
  /** Properties of databases; none when left out. */
  tables?: TableRulesByName | undefined;
  background?: SeriesPodOptions['background'];
  /** Cuts a damaged log where the damage begins instead of refusing to open it. */
  acceptLoss: boolean;
  clock: Clock;
  admission?: PodAdmission | undefined;
  /** Hears of maintenance that takes long. */
  steps?: StepWatcher | undefined;
  report: SeriesPodOptions['report'];
  /** The log cannot continue, and neither can the process. */
  fatal: (error: Error) => void;
}

// One partition spans all of a single-node pod, so it has one group.
const onlyGroup = 1;

// A replay that fills the engine's memory gives it time to write some of it out.
const replayBackgroundMs = 50;

export async function openSeriesPod(options: SeriesPodHostOptions): Promise<SeriesPod> {
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
    durableIndex: engine.durableIndex,
    fatal: options.fatal,
    acceptLoss: options.acceptLoss,
    apply(buf, start, end, index) {
      entries++;
      bytes += end - start;
      engine.apply(buf, start, end, index);
      while (engine.congested && engine.failure === undefined) {
        engine.background(replayBackgroundMs);
      }
    },
  });
  const pins = LogPins.open({
    disk: options.disk,
    directory: options.directory,
    log,
    maxBytes: 0,
    // A backup of time series asks the engine which shards have changed, and not the log.
    holdsLog: false,
    report,
  });
  const pod = new SeriesPod({
    engine,
    log,
    pins,
    tables: options.tables,
    background: options.background,
    clock: options.clock,
    admission: options.admission,
    steps: options.steps,
    checkpointBytes: options.checkpointBytes,
    retentionIntervalMs: options.retentionIntervalMs,
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
