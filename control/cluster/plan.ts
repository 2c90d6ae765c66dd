// Plans the next changes of a cluster's controller from the actual and the wanted state, a step at
// a time. A pure function: the controller executes a plan, sees the effects in the next state and
// plans again, so that a lost or half-done plan needs no handling.

import type { GroupDefinition, ReplicaStatus } from '../../contracts/cluster.ts';
import {
  type ClusterState,
  type GroupChange,
  type GroupPurpose,
  type PlanPolicy,
  purposeKey,
} from './cluster-state.ts';
import { LeaderSpread } from './leader-spread.ts';
import { membersOf, Placement } from './placement.ts';

/** Changes of a plan of each kind at most: all of them cost the nodes work, and a copy of a group costs most. */
export const planBounds = { create: 200, delete: 50, copies: 8, transfer: 16 } as const;
/** Copies of groups that are under way in the cluster, at most. */
const mostCopies = 16;
/** Time for which a group must have been unused before it is deleted. */
export const deleteAfterMs = 30_000;

export function plan(state: ClusterState, policy: PlanPolicy, now: number): GroupChange[] {
  return new Planner(state, policy, now).changes();
}

/**
 * Status of each group's leader, by group: of two that claim the lead, the one of the later term.
 */
export function leadersOf(statuses: readonly ReplicaStatus[]): Map<number, ReplicaStatus> {
  const leaders = new Map<number, ReplicaStatus>();
  for (const status of statuses) {
    if (status.role !== 'leader') continue;
    const known = leaders.get(status.group);
    if (known === undefined || known.term < status.term) leaders.set(status.group, status);
  }
  return leaders;
}

/**
 * Whether the log's members equal the definition's. Without a leader that is unknown, and false.
 */
export function isSettled(group: GroupDefinition, leader: ReplicaStatus | undefined): boolean {
  if (leader === undefined) return false;
  const { voters, learners } = leader;
  return group.replicas.every(({ replica, state }) => {
    if (state === 'leaving') return false;
    return state === 'voter' ? voters.includes(replica) : learners.includes(replica);
  });
}

class Planner {
  readonly #state: ClusterState;
  readonly #policy: PlanPolicy;
  readonly #now: number;
  readonly #placement: Placement;
  /** Nodes that can be reached, draining ones included. */
  readonly #reachable: ReadonlySet<number>;
  readonly #leaders: ReadonlyMap<number, ReplicaStatus>;
  readonly #changes: GroupChange[] = [];
  readonly #counts = { create: 0, delete: 0, copies: 0 };

  constructor(state: ClusterState, policy: PlanPolicy, now: number) {
    this.#state = state;
    this.#policy = policy;
    this.#now = now;
    this.#placement = new Placement(state, policy, now);
    this.#leaders = leadersOf(state.statuses);
    const reachable = state.nodes.filter((node) => node.reachable);
    this.#reachable = new Set(reachable.map(({ node }) => node));
  }

  changes(): GroupChange[] {
    const { groups, purposes } = this.#state;
    const wanted = new Set(purposes.map(purposeKey));
    const there = new Set(groups.map(purposeKey));
    const joined = this.#state.nodes.filter(({ state }) => state !== 'joining').length;
    const mayCreate = joined >= (this.#policy.leastNodes ?? 1);
    for (const purpose of purposes) {
      if (mayCreate && !there.has(purposeKey(purpose))) this.#create(purpose);
    }
    const kept = groups.filter((group) => wanted.has(purposeKey(group)));
    for (const group of groups) if (!wanted.has(purposeKey(group))) this.#delete(group);
    const changed = new Set<number>();
    let pending = kept.filter((group) => this.#isUnderWay(group)).length;
    for (const group of kept) {
      const change = this.#repair(group, pending < mostCopies);
      if (change === undefined) continue;
      changed.add(group.group);
      this.#changes.push(change);
      if (change.kind === 'add') pending++;
    }
    this.#endMoves(new Set(kept.map(({ group }) => group)), changed);
    // Loads are made equal only when nothing is amiss.
    const isCalm = changed.size === 0 && pending === 0;
    if (isCalm && this.#state.nodes.every((node) => node.reachable)) this.#balance(kept, changed);
    const spread = new LeaderSpread(
      this.#state,
      this.#placement,
      this.#leaders,
      this.#now,
      this.#policy.spreadBy ?? 'units',
    );
    const settled = kept.filter(({ group }) => !changed.has(group));
    this.#changes.push(...spread.transfers(settled, planBounds.transfer));
    return this.#changes;
  }

  /** A change that its leader is carrying out. */
  #isUnderWay(group: GroupDefinition): boolean {
    const leader = this.#leaders.get(group.group);
    return leader !== undefined && !isSettled(group, leader);
  }

  #create(purpose: GroupPurpose): void {
    if (this.#counts.create >= planBounds.create) return;
    const nodes = this.#firstNodes();
    if (nodes.length === 0) return;
    for (const node of nodes) this.#placement.count(node, 1);
    this.#counts.create++;
    this.#changes.push({ kind: 'create', purpose, nodes });
  }

  /**
   * Nodes of a new group. With a replica on one that is out of reach, and may be back soon, the group survives the loss of another.
   * But most of them have to be in reach. Where too many disks are full, the group waits for room.
   */
  #firstNodes(): number[] {
    const { replicas } = this.#policy;
    const nodes: number[] = [];
    const add = (mayBeSilent: boolean): void => {
      while (nodes.length < replicas) {
        const node = this.#placement.best(nodes, [], mayBeSilent);
        if (node === undefined) break;
        nodes.push(node);
      }
    };
    add(false);
    const inReach = nodes.length;
    add(true);
    if (2 * inReach > nodes.length) return nodes;
    const isFull = nodes.some((node) => this.#placement.isFull(node));
    return isFull ? [] : nodes.slice(0, inReach);
  }

  #delete({ group, replicas }: GroupDefinition): void {
    const since = this.#state.purposelessSince.get(group) ?? this.#now;
    if (this.#now - since < deleteAfterMs || this.#counts.delete >= planBounds.delete) return;
    this.#counts.delete++;
    for (const { node } of replicas) this.#placement.count(node, -1);
    this.#changes.push({ kind: 'delete', group });
  }

  /** The next step of a group towards replicas that are whole, as many as there should be, and where they should be. */
  #repair(group: GroupDefinition, mayCopy: boolean): GroupChange | undefined {
    const leader = this.#leaders.get(group.group);
    // Without a leader no change can be made, and the log's members are unknown.
    if (leader === undefined) return undefined;
    const known = [...leader.voters, ...leader.learners];
    const leaving = group.replicas.find(({ state }) => state === 'leaving');
    if (leaving !== undefined) {
      if (known.includes(leaving.replica)) return undefined;
      this.#placement.count(leaving.node, -1);
      return { kind: 'forget', group: group.group, replica: leaving.replica };
    }
    const members = membersOf(group);
    if (!isSettled(group, leader)) return this.#giveUpJoin(group, leader, members);
    return (
      this.#move(group, members, leader, mayCopy) ??
      this.#fill(group, members, mayCopy) ??
      this.#trim(group, members, leader)
    );
  }

  /** A new replica whose node is lost, drained or full before it has caught up. */
  #giveUpJoin(
    { group, replicas }: GroupDefinition,
    leader: ReplicaStatus,
    members: readonly number[],
  ): GroupChange | undefined {
    if (members.length < 2) return undefined;
    const stuck = replicas.find(
      ({ replica, node }) =>
        !leader.voters.includes(replica) &&
        (!this.#placement.isUsable(node) || this.#placement.isFull(node)),
    );
    return stuck && { kind: 'leave', group, node: stuck.node };
  }

  #move(
    group: GroupDefinition,
    members: readonly number[],
    leader: ReplicaStatus,
    mayCopy: boolean,
  ): GroupChange | undefined {
    const move = this.#state.moves.find((one) => one.group === group.group);
    if (move === undefined || !members.includes(move.from)) return undefined;
    if (members.includes(move.to)) return this.#leave(group, move.from, leader);
    if (!this.#placement.isReachable(move.to) || this.#placement.isFull(move.to)) return undefined;
    return this.#add(group.group, move.to, mayCopy);
  }

  /** One more replica where there are too few on nodes that stay. */
  #fill(
    group: GroupDefinition,
    members: readonly number[],
    mayCopy: boolean,
  ): GroupChange | undefined {
    const staying = members.filter((node) => this.#placement.isUsable(node));
    if (staying.length >= this.#policy.replicas) return undefined;
    const node = this.#placement.best(staying, members);
    return node === undefined ? undefined : this.#add(group.group, node, mayCopy);
  }

  #add(group: number, node: number, mayCopy: boolean): GroupChange | undefined {
    if (!mayCopy || this.#counts.copies >= planBounds.copies) return undefined;
    this.#counts.copies++;
    this.#placement.count(node, 1);
    return { kind: 'add', group, node };
  }

  /** One replica less: of a lost or draining node, or where there are too many. */
  #trim(
    definition: GroupDefinition,
    members: readonly number[],
    leader: ReplicaStatus,
  ): GroupChange | undefined {
    const { replicas } = this.#policy;
    const leaveOf = (node: number | undefined): GroupChange | undefined =>
      node === undefined ? undefined : this.#leave(definition, node, leader);
    const staying = members.filter((node) => this.#placement.isUsable(node));
    const going = members.filter((node) => !this.#placement.isUsable(node));
    const lost = going.find((node) => this.#placement.isLost(node));
    const drained = going.find((node) => !this.#placement.isLost(node));
    const leads = definition.replicas.find(({ replica }) => replica === leader.replica)?.node ?? 0;
    const enough = Math.max(1, Math.min(replicas, this.#placement.size));
    const leaves = staying.length >= enough ? leaveOf(drained) : undefined;
    if (leaves !== undefined) return leaves;
    // A lost node may come back: its replica is worth keeping as long as there is no other in its place.
    if (staying.length >= replicas && lost !== undefined) return leaveOf(lost);
    if (staying.length <= replicas) return undefined;
    // One that is out of reach goes where another one could not.
    const silent = staying.find((node) => !this.#reachable.has(node));
    return leaveOf(this.#placement.worst(staying, leads)) ?? leaveOf(silent);
  }

  /** Undefined while too few of the other voters can be reached: without a majority nothing could bring it back. */
  #leave(
    { group, replicas }: GroupDefinition,
    node: number,
    { voters }: ReplicaStatus,
  ): GroupChange | undefined {
    const nodes = voters.map((voter) => replicas.find(({ replica }) => replica === voter)?.node);
    const others = nodes.filter((one) => one !== node);
    const there = others.filter((one) => one !== undefined && this.#reachable.has(one));
    const keepsMajority = others.length === nodes.length || 2 * there.length > others.length;
    return keepsMajority ? { kind: 'leave', group, node } : undefined;
  }

  /** Also of groups that change: a replica that is added where one has left would have to leave again. */
  #endMoves(kept: ReadonlySet<number>, changed: Set<number>): void {
    for (const { group, from, to } of this.#state.moves) {
      const definition = this.#state.groups.find((one) => one.group === group);
      const isPossible =
        kept.has(group) &&
        definition?.replicas.some(({ node }) => node === from) === true &&
        this.#placement.isUsable(to);
      if (isPossible) continue;
      changed.add(group);
      this.#changes.push({ kind: 'endMove', group });
    }
  }

  #balance(groups: readonly GroupDefinition[], changed: Set<number>): void {
    for (const definition of groups) {
      const { group } = definition;
      const members = membersOf(definition);
      if (members.length < this.#policy.replicas) continue;
      const node = this.#placement.better(members);
      const change = node === undefined ? undefined : this.#add(group, node, true);
      if (change === undefined) continue;
      // Its worst replica leaves when the new one has caught up.
      changed.add(group);
      this.#changes.push(change);
    }
  }
}
