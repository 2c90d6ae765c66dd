// A Raft group of the control plane in the form that the metadata use.

import type {
  ProposalRefusal,
  ReplicatedGroup,
  ReplicatedMachine,
} from '../../contracts/replicated-group.ts';
import type { LogPosition } from '../../storage-node/replicator/raft/log-position.ts';
import { Refusal } from '../../storage-node/replicator/raft/proposal-log.ts';
import type { RaftGroup } from '../../storage-node/replicator/raft/raft-group.ts';
import type { RaftHost } from '../../storage-node/replicator/raft/raft-host.ts';
import { nodeOfReplica } from '../../storage-node/replicator/raft/replica-id.ts';

interface RaftReplicatedGroupOptions {
  host: RaftHost;
  group: number;
  replica: number;
  /** First position of a group that the log does not know. */
  first: LogPosition;
  machine: ReplicatedMachine;
  /** `leader` or `isLeader` has changed. */
  onLeader?: () => void;
}

const refusals = new Map<number, ProposalRefusal>([
  [Refusal.notLeader, 'not leader'],
  [Refusal.overloaded, 'overloaded'],
  [Refusal.tooLarge, 'too large'],
]);

export class RaftReplicatedGroup implements ReplicatedGroup {
  readonly raft: RaftGroup;
  #leader = 0;

  constructor({ host, group, replica, first, machine, onLeader }: RaftReplicatedGroupOptions) {
    this.raft = host.openGroup({
      ...{ group, replica, first, machine },
      listener: {
        onOutcome: (position, outcome) => machine.settled(position, outcome),
        onRole: (_role, leader) => {
          this.#leader = leader === 0 ? 0 : nodeOfReplica(leader);
          machine.leaderChanged();
          onLeader?.();
        },
      },
    });
  }

  get leader(): number {
    return this.#leader;
  }

  get isLeader(): boolean {
    return this.raft.role === 'leader';
  }

  propose(payload: Uint8Array): number | ProposalRefusal {
    const position = this.raft.propose(payload);
    return position > 0 ? position : (refusals.get(position) ?? 'closed');
  }

  readBarrier(then: (isSafe: boolean) => void): void {
    this.raft.readBarrier(then);
  }

  stateIsDurable(index: number): void {
    this.raft.stateIsDurable(index);
  }
}
