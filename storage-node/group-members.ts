// Changes the members of a group, by its leader, to the members in the metadata: one change at a time, and no learner
// becomes a voter before it has caught up.

import type { ReplicaDefinition } from '../contracts/cluster.ts';
import type { MemberChange, Members } from './replicator/partition-log.ts';
import { countOfReplica } from './replicator/raft/replica-id.ts';

/** Lag in entries at which a learner may become a voter: the writes of a fraction of a second. */
const nearEnough = 1000;

export interface GroupState {
  /** Number of changes of the wanted members so far. The id of an added replica contains the number of its change. */
  epoch: number;
  /** The leader. */
  self: number;
  members: Members;
  commit: number;
  /** Index up to which another replica has the log, as far as is known. */
  readonly match: (replica: number) => number;
}

type MemberStep = { changes: MemberChange[] } | { transferTo: number } | undefined;

/**
 * Next change of members; undefined when the members are as wanted, or no change is possible now.
 */
export function nextMemberStep(
  wanted: readonly ReplicaDefinition[],
  { epoch, self, members, commit, match }: GroupState,
): MemberStep {
  const { voters, learners, outgoing } = members;
  // A joint change leaves by itself.
  if (outgoing.length > 0) return undefined;
  // The wanted members are older than a change by another leader. Applying them would add a removed replica again.
  if ([...voters, ...learners].some((one) => countOfReplica(one) > epoch)) return undefined;
  for (const { replica, state } of wanted) {
    if (state === 'leaving' || voters.includes(replica)) continue;
    if (!learners.includes(replica)) return { changes: [{ replica, to: 'learner' }] };
    const known = match(replica);
    if (state === 'voter' && known > 0 && commit - known <= nearEnough) {
      return { changes: [{ replica, to: 'voter' }] };
    }
  }
  const stays = new Set(
    wanted.filter(({ state }) => state !== 'leaving').map((one) => one.replica),
  );
  for (const replica of [...learners, ...voters]) {
    if (stays.has(replica)) continue;
    if (replica !== self) return { changes: [{ replica, to: 'removed' }] };
    // The best informed of the others takes over, and removes this one.
    const others = voters.filter((one) => stays.has(one)).sort((a, b) => match(b) - match(a));
    return others[0] === undefined ? undefined : { transferTo: others[0] };
  }
  return undefined;
}
