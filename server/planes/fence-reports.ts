// Reports of fenced replicas (storage-node/replicator/raft/fence.ts), and of elections after which acknowledged
// writes may be lost. They are in the log of the node, and in the status of replicas.

import type { ReplicaStatus } from '../../contracts/cluster.ts';
import type { LogStatus } from '../../storage-node/replicator/partition-log.ts';

type Report = (level: 'info' | 'warn', message: string, fields?: object) => void;
type Replication = LogStatus['replication'];

const lostText =
  'most replicas of a group were on machines that stopped before the log was synced (wal.fsync): acknowledged writes of about the last two seconds before that may be lost with everysec, more with no';

export class FenceReports {
  readonly #report: Report;
  /** Groups whose fence has ended here, and losses that were told, by group. */
  readonly #caughtUp = new Set<number>();
  readonly #told = new Map<number, number>();

  /** `wasUnclean`: the log here may have lost acknowledged entries before this start. */
  constructor(wasUnclean: boolean, report: Report) {
    this.#report = report;
    if (!wasUnclean) return;
    report(
      'warn',
      'the machine stopped before the log was synced: replicas here may lack acknowledged writes, and catch up from others before they vote',
    );
  }

  of(replication: Replication): Pick<ReplicaStatus, 'fenced' | 'mayHaveLost'> {
    if (replication === undefined) return {};
    return {
      ...(replication.isFenced ? { fenced: true } : {}),
      ...(this.#losses(replication) > 0 ? { mayHaveLost: true } : {}),
    };
  }

  /** To be called from time to time. */
  look(group: number, replication: Replication): void {
    if (replication === undefined) return;
    // A fence may have ended before the first look.
    if (replication.wasFenced && !replication.isFenced && !this.#caughtUp.has(group)) {
      this.#caughtUp.add(group);
      this.#report('info', 'a fenced replica has caught up', { group });
    }
    const losses = this.#losses(replication);
    if (losses <= (this.#told.get(group) ?? 0)) return;
    this.#told.set(group, losses);
    this.#report('warn', lostText, { group });
  }

  /**
   * Elections of the replica here, since this start, with which acknowledged writes may have been lost. It may lead no more:
   * leaders are moved soon after an election.
   */
  #losses(replication: NonNullable<Replication>): number {
    const { electionsByAll, wasFenced, members } = replication;
    const isAlone = members.voters.length === 1 && members.outgoing.length === 0;
    return electionsByAll + Number(isAlone && wasFenced);
  }
}
