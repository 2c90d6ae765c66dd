// Carries out the plans of `planMembership` on the node that leads the metadata.

import type { NodeDefinition } from '../../contracts/cluster.ts';
import { nodeOfReplica, replicaId } from '../../storage-node/replicator/raft/replica-id.ts';
import { type MembershipView, planMembership } from './membership.ts';
import type { RaftReplicatedGroup } from './raft-replicated-group.ts';

interface MembershipKeeperOptions {
  node: number;
  group: RaftReplicatedGroup;
  nodes: () => readonly NodeDefinition[];
  unreachableMs: (node: number) => number;
  replaceVoterMs: () => number;
  /** Called when a node is no longer a member. */
  removed: (node: number) => void;
}

const lookMs = 250;

export class MembershipKeeper {
  readonly #options: MembershipKeeperOptions;
  readonly #timer: NodeJS.Timeout;
  #members = new Set<number>();

  constructor(options: MembershipKeeperOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.look(), lookMs);
    this.#timer.unref();
  }

  /** Members of the group, by their nodes, as this replica's log has them. */
  members(): { voters: number[]; learners: number[]; isChanging: boolean } {
    const { members } = this.#options.group.raft.status();
    const voters = members.voters.map(nodeOfReplica);
    const outgoing = members.outgoing.map(nodeOfReplica);
    const learners = members.learners.map(nodeOfReplica).filter((node) => !voters.includes(node));
    return { voters, learners, isChanging: outgoing.length > 0 };
  }

  /** Looks whether there is something to do. */
  look(): void {
    const { node, group, nodes, unreachableMs, replaceVoterMs } = this.#options;
    if (!group.isLeader) {
      this.#members.clear();
      return;
    }
    const { voters, learners, isChanging } = this.members();
    this.#tellRemoved([...voters, ...learners]);
    // No node is removed before the documents are loaded.
    if (isChanging || nodes().length === 0) return;
    const view: MembershipView = {
      self: node,
      nodes: nodes(),
      voters,
      learners,
      unreachableMs,
      replaceVoterMs: replaceVoterMs(),
    };
    const step = planMembership(view);
    if (step === undefined) return;
    if (step.kind === 'transfer') group.raft.transfer(replicaId(step.to));
    else {
      const changes = step.changes.map(({ node: of, to }) => ({ replica: replicaId(of), to }));
      group.raft.changeMembers(changes);
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #tellRemoved(members: readonly number[]): void {
    const now = new Set(members);
    const before = this.#members;
    this.#members = now;
    for (const node of before) if (!now.has(node)) this.#options.removed(node);
  }
}
