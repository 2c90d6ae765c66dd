// Which groups' lead goes to another node: away from nodes that drain, and from nodes that lead many groups more than
// others could.

import type { GroupDefinition, ReplicaStatus } from '../../contracts/cluster.ts';
import type { ClusterState, GroupChange } from './cluster-state.ts';
import type { Placement } from './placement.ts';

/** The lead of a group stays so long where it was brought. */
const restMs = 30_000;
/** Away from a node that drains it is tried again sooner. */
const drainRestMs = 2000;

export class LeaderSpread {
  readonly #placement: Placement;
  readonly #leaders: ReadonlyMap<number, ReplicaStatus>;
  readonly #transferredAt: ReadonlyMap<number, number>;
  readonly #now: number;
  /** Groups that each node leads. */
  readonly #counts = new Map<number, number>();

  constructor(
    { nodes, transferredAt }: ClusterState,
    placement: Placement,
    leaders: ReadonlyMap<number, ReplicaStatus>,
    now: number,
  ) {
    this.#placement = placement;
    this.#leaders = leaders;
    this.#transferredAt = transferredAt;
    this.#now = now;
    for (const { node } of nodes) this.#counts.set(node, 0);
  }

  /** At most `limit`. The groups are those that are not changed otherwise. */
  transfers(groups: readonly GroupDefinition[], limit: number): GroupChange[] {
    const led = groups.flatMap((definition) => {
      const leader = this.#leaders.get(definition.group);
      const from = definition.replicas.find(({ replica }) => replica === leader?.replica);
      if (leader === undefined || from === undefined) return [];
      this.#counts.set(from.node, this.#countOf(from.node) + 1);
      return [
        {
          definition,
          leader,
          from: from.node,
          mustGo: from.state === 'leaving' || !this.#placement.isUsable(from.node),
        },
      ];
    });
    // Those that must go come first, then those of the busiest nodes.
    led.sort(
      (a, b) =>
        Number(b.mustGo) - Number(a.mustGo) || this.#countOf(b.from) - this.#countOf(a.from),
    );
    const changes: GroupChange[] = [];
    for (const { definition, leader, from, mustGo } of led) {
      if (changes.length >= limit) break;
      const { group } = definition;
      const rested = this.#now - (this.#transferredAt.get(group) ?? -Infinity);
      if (rested < (mustGo ? drainRestMs : restMs)) continue;
      const to = this.#heir(definition, leader, from);
      if (to === undefined) continue;
      if (!mustGo && this.#countOf(from) < this.#countOf(to) + 2) continue;
      this.#counts.set(from, this.#countOf(from) - 1);
      this.#counts.set(to, this.#countOf(to) + 1);
      changes.push({ kind: 'transfer', group, from, to });
    }
    return changes;
  }

  #countOf(node: number): number {
    return this.#counts.get(node) ?? 0;
  }

  /** The voter's node that leads the fewest groups. */
  #heir({ replicas }: GroupDefinition, leader: ReplicaStatus, from: number): number | undefined {
    let heir: number | undefined;
    for (const { node, replica, state } of replicas) {
      const mayLead = state === 'voter' && leader.voters.includes(replica) && node !== from;
      if (!mayLead || !this.#placement.isReachable(node)) continue;
      if (heir === undefined || this.#countOf(node) < this.#countOf(heir)) heir = node;
    }
    return heir;
  }
}
