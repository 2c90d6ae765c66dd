// Opens a pod on a directory: the engine with its last checkpoint, then the log from there on.

import { join } from 'node:path';
import type { Disk } from '../universal-row/environment.ts';
import { type MaybePromise, whenReady } from '../universal-row/maybe-promise.ts';
import { localGroup } from '../engines/applied-indexes.ts';
import type { Engine } from '../engines/engine.ts';
import { applyWithFaults } from '../engines/apply-with-faults.ts';
import { LogPins } from './backup/log-pins.ts';
import { Pod } from './pod.ts';
import type { PodOptions } from './pod-options.ts';
import { LocalGroup } from './replicator/group/local-group.ts';
import type { FsyncPolicy } from './replicator/partition-log.ts';

interface PodHostOptions extends Omit<PodOptions, 'log' | 'group' | 'pins'> {
  disk: Disk;
  /** The log goes to `wal` in it. */
  directory: string;
  podId: number;
  fsync: FsyncPolicy;
  segmentBytes: number;
  /** Cuts a damaged log where the damage begins instead of refusing to open it. */
  acceptLoss: boolean;
  /** Most log kept for the next incremental backup; 0 for none. */
  keepLogBytes?: number;
  /** The log cannot continue, and neither can the process. */
  fatal: (error: Error) => void;
}

// Replayed entries are passed to an engine on disk in portions, and it catches up between them.
const replaySliceBytes = 1024 * 1024;

function endReplaySlice(engine: Engine, done: MaybePromise<void>): MaybePromise<void> {
  return whenReady(done, () => {
    engine.endTick();
    if (engine.failure !== undefined) throw engine.failure;
    return engine.congested === true ? engine.drained!() : undefined;
  });
}

export async function openPod(options: PodHostOptions): Promise<Pod> {
  const { engine, report } = options;
  const startedAt = options.clock.monotonic();
  await engine.open();
  const fromCheckpoint = engine.appliedIndexOf(localGroup);
  let entries = 0;
  let bytes = 0;
  let handedOver = 0;
  const log = await LocalGroup.open({
    disk: options.disk,
    directory: join(options.directory, 'wal'),
    fsync: options.fsync,
    segmentBytes: options.segmentBytes,
    clock: options.clock,
    ids: { cluster: 1, pod: options.podId },
    group: localGroup,
    appliedIndex: fromCheckpoint,
    fatal: options.fatal,
    acceptLoss: options.acceptLoss,
    apply(buf, start, end, index) {
      entries++;
      bytes += end - start;
      const done = applyWithFaults(engine, buf, start, end, index);
      if (bytes - handedOver < replaySliceBytes) return done;
      handedOver = bytes;
      return endReplaySlice(engine, done);
    },
  });
  engine.endTick();
  const pins = LogPins.open({
    disk: options.disk,
    directory: options.directory,
    log,
    maxBytes: options.keepLogBytes ?? 0,
    holdsLog: true,
    report,
  });
  const pod = new Pod({ ...options, log, pins });
  pod.stats.loadedEntries = entries;
  report('info', `${engine.model} pod is ready`, {
    checkpointIndex: fromCheckpoint,
    replayedEntries: entries,
    replayedBytes: bytes,
    ms: Math.round(options.clock.monotonic() - startedAt),
  });
  return pod;
}
