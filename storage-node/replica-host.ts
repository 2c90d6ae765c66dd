// Opens a pod that is one replica of a group: the engine with its last checkpoint, then the
// committed entries of the group's log beyond it.

import type { GroupDefinition } from '../contracts/cluster.ts';
import { LogPins, type ReplicaPins } from './backup/log-pins.ts';
import { Pod } from './pod.ts';
import type { PodOptions } from './pod-options.ts';
import { firstPosition, joiningPosition } from './replicator/raft/log-position.ts';
import { RaftLog } from './replicator/raft/raft-log.ts';
import type { RaftPod } from './replicator/raft/raft-pod.ts';

export interface ReplicaHostOptions extends Omit<PodOptions, 'log' | 'group' | 'pins' | 'flows'> {
  /** Runs the logs of all groups of this process. */
  raft: RaftPod;
  definition: Pick<GroupDefinition, 'group' | 'initial'>;
  replica: number;
  /** Absent where no backups are made. */
  pins?: ReplicaPins | undefined;
}

export async function openReplica(
  options: ReplicaHostOptions,
): Promise<{ pod: Pod; log: RaftLog }> {
  const { engine, raft, definition, replica, pins, ...others } = options;
  const { group, initial } = definition;
  await engine.open();
  const log = new RaftLog({
    pod: raft,
    group,
    replica,
    first: initial.includes(replica) ? firstPosition(initial) : joiningPosition,
    durableIndex: engine.appliedIndexOf(group),
  });
  const { report } = others;
  const held = pins && LogPins.open({ ...pins, log, holdsLog: true, report });
  return { pod: new Pod({ ...others, engine, log, group, pins: held }), log };
}
