// Reads that may return stale data, answered by a replica of this process that is not the leader.

import type { LocalPod, ReplicaLog } from '../../../contracts/local-pod.ts';
import type { Command, ReadBounds } from '../../../universal-row/command.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import { catchUp } from './session-reads.ts';

interface FollowerReadsOptions {
  readonly group: () => number;
  readonly log: () => ReplicaLog | undefined;
  /** Whether the pod, which does not lead, may answer such a read. */
  readonly may: (pod: LocalPod, bounds: ReadBounds | undefined) => boolean;
  /** Runs the command where the leader is. */
  readonly elsewhere: (command: Command, reply: Reply) => Promise<Reply | void>;
}

export class FollowerReads {
  /** Since the start. */
  count = 0;
  readonly #options: FollowerReadsOptions;

  constructor(options: FollowerReadsOptions) {
    this.#options = options;
  }

  read(pod: LocalPod, command: Command, reply: Reply): MaybePromise<Reply | void> {
    const { group, log, may: mayRead, elsewhere } = this.#options;
    const session = command.bounds?.session;
    if (session === undefined) return this.#readNow(pod, command, reply);
    const isThere = catchUp(session, group(), log());
    const read = (may: boolean): MaybePromise<Reply | void> =>
      may && mayRead(pod, command.bounds)
        ? this.#readNow(pod, command, reply)
        : elsewhere(command, reply);
    return isThere instanceof Promise ? isThere.then(read) : read(isThere);
  }

  #readNow(pod: LocalPod, command: Command, reply: Reply): MaybePromise<Reply | void> {
    this.count++;
    const mark = reply.mark();
    const done = pod.read(command, reply);
    if (!(done instanceof Promise)) return this.#afterRead(command, reply, mark);
    return done.then((own) => this.#afterRead(command, own ?? reply, mark) ?? own);
  }

  #afterRead(command: Command, reply: Reply, mark: number): Promise<Reply | void> | undefined {
    if (command.notRun === undefined) return undefined;
    command.notRun = undefined;
    reply.rollback(mark);
    return this.#options.elsewhere(command, reply);
  }
}
