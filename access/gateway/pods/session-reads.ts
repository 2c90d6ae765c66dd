// Reads of a session on a follower. The state of the follower must include everything that the client has seen, on
// whichever replica it was seen.

import type { ReplicaLog } from '../../../contracts/local-pod.ts';
import type { ReadSession } from '../../../universal-row/command.ts';

/** After so long the leader is asked instead. */
const patienceMs = 500;

/**
 * Whether the replica has the state that the session has seen of the group, now or in a moment. If
 * the session does not know that state, it waits for all earlier commits, which include it.
 */
export function catchUp(
  session: ReadSession,
  group: number,
  log: ReplicaLog | undefined,
): boolean | Promise<boolean> {
  if (log === undefined) return false;
  const index = session.needs(group);
  if (index <= log.appliedIndex) {
    session.saw(group, log.appliedIndex);
    return true;
  }
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), patienceMs);
    const then = (isThere: boolean): void => {
      clearTimeout(timer);
      if (isThere) session.saw(group, log.appliedIndex);
      resolve(isThere);
    };
    if (index !== Infinity) log.whenApplied(index, then);
    else log.readBarrier((outcome) => then(outcome === 'committed'));
  });
}
