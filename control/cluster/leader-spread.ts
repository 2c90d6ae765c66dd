// Selects leaders to move to another node: away from draining nodes, from nodes with a full disk, and from nodes with more load
// than others. Load is measured in request units if there are any, else in groups that a node leads.

import type { GroupDefinition, ReplicaStatus } from '../../contracts/cluster.ts';
import {
  type ClusterState,
  type GroupChange,
  type PlanPolicy,
  replicaKey,
} from './cluster-state.ts';
import { relief } from './leader-loads.ts';
import type { Placement } from './placement.ts';

/** Minimum time between two transfers of a group's leadership. */
const restMs = 30_000;
/** As `restMs`, for transfers away from a draining node. */
const drainRestMs = 2000;
/** Request units a second of all groups for each node, from which on leaders are spread by units. */
const leastUnits = 100;

interface Led {
  readonly definition: GroupDefinition;
  readonly leader: ReplicaStatus;
  readonly from: number;
  readonly mustGo: boolean;
}

export class LeaderSpread {
  readonly #placement: Placement;
  readonly #leaders: ReadonlyMap<number, ReplicaStatus>;
  readonly #transferredAt: ReadonlyMap<number, number>;
  readonly #now: number;
  readonly #by: NonNullable<PlanPolicy['spreadBy']>;
  /** Groups that each node leads. */
  readonly #counts = new Map<number, number>();
  /** Request units a second of each group, by whichever replica they were served in the last minute. */
  readonly #units = new Map<number, number>();

  /** Replicas that refuse writes. */
  readonly #stuck = new Set<string>();

  constructor(
    { nodes, transferredAt, statuses }: ClusterState,
    placement: Placement,
    leaders: ReadonlyMap<number, ReplicaStatus>,
    now: number,
    by: NonNullable<PlanPolicy['spreadBy']>,
  ) {
    this.#placement = placement;
    this.#leaders = leaders;
    this.#transferredAt = transferredAt;
    this.#now = now;
    this.#by = by;
    for (const { node } of nodes) this.#counts.set(node, 0);
    for (const { group, replica, units = 0, takesNoWrites } of statuses) {
      if (takesNoWrites !== undefined) this.#stuck.add(replicaKey({ group, replica }));
      this.#units.set(group, (this.#units.get(group) ?? 0) + units);
    }
  }

  /** Returns at most `limit` changes. `groups` are those without another change. */
  transfers(groups: readonly GroupDefinition[], limit: number): GroupChange[] {
    const led = this.#led(groups);
    const going = this.#byCount(
      led.filter(({ mustGo }) => mustGo),
      limit,
    );
    const staying = led.filter(({ mustGo }) => !mustGo);
    const left = limit - going.length;
    const byUnits = this.#by === 'units' && this.#isLoaded();
    return [...going, ...(byUnits ? this.#byUnits(staying, left) : this.#byCount(staying, left))];
  }

  #led(groups: readonly GroupDefinition[]): Led[] {
    return groups.flatMap((definition) => {
      const leader = this.#leaders.get(definition.group);
      const from = definition.replicas.find(({ replica }) => replica === leader?.replica);
      if (leader === undefined || from === undefined) return [];
      this.#counts.set(from.node, this.#countOf(from.node) + 1);
      const mustGo =
        from.state === 'leaving' ||
        !this.#placement.isUsable(from.node) ||
        (this.#isStuck(leader) && this.#mayWrite(definition, leader));
      return [{ definition, leader, from: from.node, mustGo }];
    });
  }

  #isStuck(of: Pick<ReplicaStatus, 'group' | 'replica'>): boolean {
    return this.#stuck.has(replicaKey(of));
  }

  /** Whether a majority of the voters takes writes. Otherwise a leader that refuses them is better than one whose writes wait for others. */
  #mayWrite({ group }: GroupDefinition, { voters }: ReplicaStatus): boolean {
    const ready = voters.filter((replica) => !this.#isStuck({ group, replica }));
    return 2 * ready.length > voters.length;
  }

  #isLoaded(): boolean {
    let total = 0;
    for (const units of this.#units.values()) total += units;
    return total >= leastUnits * this.#placement.size;
  }

  #byUnits(led: readonly Led[], limit: number): GroupChange[] {
    const moves = relief(
      led.map(({ definition, leader, from, mustGo }) => ({
        group: definition.group,
        units: this.#units.get(definition.group) ?? 0,
        node: from,
        heirs: this.#isRested(definition.group, mustGo) ? this.#heirs(definition, leader) : [],
      })),
      this.#placement.reachable(),
      limit,
    );
    return moves.map(({ group, from, to }) => ({ kind: 'transfer', group, from, to }));
  }

  #byCount(led: Led[], limit: number): GroupChange[] {
    // Leaders on the busiest nodes come first.
    led.sort((a, b) => this.#countOf(b.from) - this.#countOf(a.from));
    const changes: GroupChange[] = [];
    for (const { definition, leader, from, mustGo } of led) {
      if (changes.length >= limit) break;
      const { group } = definition;
      if (!this.#isRested(group, mustGo)) continue;
      const to = this.#fewest(this.#heirs(definition, leader));
      if (to === undefined) continue;
      if (!mustGo && this.#countOf(from) < this.#countOf(to) + 2) continue;
      this.#counts.set(from, this.#countOf(from) - 1);
      this.#counts.set(to, this.#countOf(to) + 1);
      changes.push({ kind: 'transfer', group, from, to });
    }
    return changes;
  }

  #isRested(group: number, mustGo: boolean): boolean {
    const rested = this.#now - (this.#transferredAt.get(group) ?? -Infinity);
    return rested >= (mustGo ? drainRestMs : restMs);
  }

  #countOf(node: number): number {
    return this.#counts.get(node) ?? 0;
  }

  /** Nodes of other voters that can be reached, and have room on their disks. */
  #heirs({ group, replicas }: GroupDefinition, leader: ReplicaStatus): number[] {
    return replicas
      .filter(
        ({ node, replica, state }) =>
          state === 'voter' &&
          replica !== leader.replica &&
          leader.voters.includes(replica) &&
          this.#placement.isReachable(node) &&
          !this.#isStuck({ group, replica }),
      )
      .map(({ node }) => node);
  }

  #fewest(heirs: readonly number[]): number | undefined {
    let fewest: number | undefined;
    for (const node of heirs) {
      if (fewest === undefined || this.#countOf(node) < this.#countOf(fewest)) fewest = node;
    }
    return fewest;
  }
}
