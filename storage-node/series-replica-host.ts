// Opens a pod of time series that is one replica of a group: the engine with its last checkpoint,
// then the committed entries of the group's log beyond it.

import type { GroupDefinition } from '../contracts/cluster.ts';
import { LogPins, type ReplicaPins } from './backup/log-pins.ts';
import { firstPosition, joiningPosition } from './replicator/raft/log-position.ts';
import { RaftLog } from './replicator/raft/raft-log.ts';
import type { RaftPod } from './replicator/raft/raft-pod.ts';
import { SeriesPod, type SeriesPodOptions } from './series-pod.ts';

type Engine = SeriesPodOptions['engine'];

/** An engine whose files may be ahead of its index. */
interface AheadOfIndex {
  /** The log ends there: entries with higher indexes will be others than those in the files. Durable when it returns. */
  logEndsAt(index: number): void;
  /** Makes all applied entries durable in the log: files never hold entries that a power cut takes from the log. */
  syncLog?: (() => Promise<void>) | undefined;
}

export interface SeriesReplicaHostOptions
  extends Omit<SeriesPodOptions, 'log' | 'pins' | 'engine'> {
  engine: Engine & Partial<AheadOfIndex>;
  /** Runs the logs of all groups of this process. */
  raft: RaftPod;
  definition: Pick<GroupDefinition, 'group' | 'initial'>;
  replica: number;
  /** Absent where no backups are made. */
  pins?: ReplicaPins | undefined;
}

export async function openSeriesReplica(
  options: SeriesReplicaHostOptions,
): Promise<{ pod: SeriesPod; log: RaftLog }> {
  const { raft, definition, replica, pins, ...others } = options;
  const { engine } = others;
  const { group, initial } = definition;
  await engine.open();
  const log = new RaftLog({
    pod: raft,
    group,
    replica,
    first: initial.includes(replica) ? firstPosition(initial) : joiningPosition,
    durableIndex: engine.appliedIndex,
    logEndsAt: (index) => engine.logEndsAt?.(index),
  });
  engine.syncLog = () => log.sync();
  const { report } = others;
  const held = pins && LogPins.open({ ...pins, log, holdsLog: false, report });
  return { pod: new SeriesPod({ ...others, log, pins: held }), log };
}
