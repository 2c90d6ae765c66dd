// A gateway's request to a group, wherever its leader is; it may be retried.

import type { LocalPod } from '../../../contracts/local-pod.ts';
import type { Command } from '../../../universal-row/command.ts';
import type { RowCommands } from '../../../universal-row/executor.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import { type NumberedWrite, once } from '../../../universal-row/once.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import type { GroupPlace } from './group-observers.ts';

/** A command, or several that run as one. */
export interface Attempt {
  /** Where it is noted why they were not run. */
  readonly first: Command;
  /** Nothing else runs with it. */
  readonly isAlone: boolean;
  /** The error to answer where they would have to be sent to another process, if they may not. */
  readonly onlyHere: string | undefined;
  run(place: GroupPlace, reply: Reply): MaybePromise<Reply | void>;
  /** As `run`, where other groups have the rows by now. */
  runAt(successor: RowCommands, reply: Reply): MaybePromise<Reply | void>;
}

export function attemptOf(command: Command): Attempt {
  return {
    first: command,
    isAlone: true,
    onlyHere: command.onlyHere,
    run: (place, own) => place.execute(command, own),
    runAt: (successor, own) => successor.execute(command, own),
  };
}

/** Runs on the pod of this process a command that may have run under another leader. */
export async function runOnce(
  place: LocalPod,
  attempt: Attempt,
  reply: Reply,
  gateway: Pick<NumberedWrite, 'node' | 'incarnation'>,
): Promise<Reply | void> {
  const { node, incarnation } = gateway;
  const { first } = attempt;
  const { transform, once: number, span } = first;
  if (number !== undefined) {
    first.transform = once(transform, { node, incarnation, number, first: span.first });
  }
  try {
    return await attempt.run(place, reply);
  } finally {
    first.transform = transform;
  }
}
