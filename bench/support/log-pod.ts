// A pod on the memory engine, with our log or with a bare one.

import { join } from 'node:path';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { Pod } from '../../storage-node/pod.ts';
import { LocalGroup } from '../../storage-node/replicator/group/local-group.ts';
import type { FsyncPolicy, PartitionLog } from '../../storage-node/replicator/partition-log.ts';
import { noRules } from '../../storage-node/table-rules.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import { BareLog } from './bare-log.ts';

export type LogKind = 'group' | 'bare';

async function openLog(
  kind: LogKind,
  fsync: FsyncPolicy,
  directory: string,
): Promise<PartitionLog> {
  if (kind === 'bare') return new BareLog(join(directory, 'bare'), fsync);
  return LocalGroup.open({
    disk: realDisk,
    directory,
    fsync,
    clock: systemClock,
    ids: { cluster: 1, pod: 1 },
    group: 1,
    appliedIndex: 0,
    apply() {
      throw new Error('the log is new');
    },
  });
}

/** Makes no checkpoints, as the pod is never restarted. */
export async function openLogPod(
  kind: LogKind,
  fsync: FsyncPolicy,
  directory: string,
): Promise<Pod> {
  const pod = new Pod({
    engine: new MemoryEngine(),
    log: await openLog(kind, fsync, directory),
    tables: new Map([[0, noRules]]),
    clock: systemClock,
    rng: systemRng,
    maxMemoryBytes: Infinity,
    checkpointBytes: Infinity,
    report: (level, message, fields) => console.error(level, message, fields),
  });
  pod.start();
  return pod;
}
