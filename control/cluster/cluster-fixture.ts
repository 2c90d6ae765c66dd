// A cluster for tests of plans: carries changes out as nodes would, one step of a group's log at a time.

import {
  firstGroup,
  type GroupDefinition,
  type NodeRole,
  type NodeState,
  type ReplicaStatus,
} from '../../contracts/cluster.ts';
import type {
  ClusterState,
  GroupChange,
  GroupPurpose,
  NodeSighting,
  ReplicaMove,
} from './cluster-state.ts';

interface Log {
  leader: number;
  term: number;
  voters: number[];
  learners: number[];
}

export class ClusterFixture {
  now = 1_000_000;
  nodes: NodeSighting[] = [];
  groups: GroupDefinition[] = [];
  purposes: GroupPurpose[] = [];
  moves: ReplicaMove[] = [];
  /** Log of each group. Replicas are numbers: a thousand times the node, and a count. */
  readonly logs = new Map<number, Log>();
  /** Request units a second of each group, told by its leader. */
  readonly units = new Map<number, number>();
  /** Nodes with a full disk. */
  readonly full = new Set<number>();
  readonly #transferredAt = new Map<number, number>();
  readonly #purposelessSince = new Map<number, number>();
  #nextGroup = firstGroup;

  /** Zones of the nodes from 1 on. */
  constructor(zones: readonly string[]) {
    for (const zone of zones) this.addNode(zone);
  }

  addNode(zone: string): number {
    const node = this.nodes.length + 1;
    const none = {
      control: '',
      redis: '',
      influx: '',
      redisClients: '',
      influxClients: '',
      admin: '',
    };
    this.nodes.push({
      node,
      zone,
      state: 'up',
      addresses: none,
      incarnation: 1,
      joinId: String(node),
      reachable: true,
      since: this.now,
    });
    return node;
  }

  set(
    node: number,
    change: { state?: NodeState; reachable?: boolean; roles?: readonly NodeRole[] },
  ): void {
    this.nodes = this.nodes.map((one) =>
      one.node === node
        ? { ...one, ...change, ...(change.reachable === undefined ? {} : { since: this.now }) }
        : one,
    );
  }

  get state(): ClusterState {
    const wanted = new Set(this.purposes.map((one) => JSON.stringify(one)));
    for (const { group, tenant, model, partition, series } of this.groups) {
      const purpose = {
        ...{ tenant, model },
        ...(partition === undefined ? {} : { partition }),
        ...(series === undefined ? {} : { series }),
      };
      if (wanted.has(JSON.stringify(purpose))) this.#purposelessSince.delete(group);
      else if (!this.#purposelessSince.has(group)) this.#purposelessSince.set(group, this.now);
    }
    return {
      nodes: this.nodes,
      groups: this.groups,
      purposes: this.purposes,
      statuses: this.statuses(),
      moves: this.moves,
      purposelessSince: this.#purposelessSince,
      transferredAt: this.#transferredAt,
    };
  }

  statuses(): ReplicaStatus[] {
    return [...this.logs].flatMap(([group, { leader, term, voters, learners }]) => {
      const isKnown = leader !== 0 && this.isReachable(nodeOf(leader));
      if (!isKnown) return [];
      const units = this.units.get(group) ?? 0;
      const base = { group, leader: nodeOf(leader), term, applied: 0, rows: 0, bytes: 0, units };
      const full = (replica: number): Partial<ReplicaStatus> =>
        this.full.has(nodeOf(replica)) ? { takesNoWrites: 'node' } : {};
      const others = voters.filter((one) => one !== leader && this.full.has(nodeOf(one)));
      return [
        { ...base, ...full(leader), replica: leader, role: 'leader' as const, voters, learners },
        ...others.map((replica) => ({
          ...{ ...base, ...full(replica), units: 0, replica },
          ...{ role: 'follower' as const, voters: [], learners: [] },
        })),
      ];
    });
  }

  isReachable(node: number): boolean {
    return this.nodes.some((one) => one.node === node && one.reachable);
  }

  leaderOf(group: number): number {
    return nodeOf(this.logs.get(group)!.leader);
  }

  nodesOf(group: number): number[] {
    const { replicas } = this.groups.find((one) => one.group === group)!;
    return replicas.map(({ node }) => node).sort((a, b) => a - b);
  }

  apply(changes: readonly GroupChange[]): void {
    for (const change of changes) this.#apply(change);
  }

  #apply(change: GroupChange): void {
    if (change.kind === 'create') {
      const group = this.#nextGroup++;
      const replicas = change.nodes.map((node) => ({
        replica: node * 1000,
        node,
        state: 'voter' as const,
      }));
      const initial = replicas.map(({ replica }) => replica);
      this.groups.push({ ...change.purpose, group, epoch: 1, replicas, initial });
      this.logs.set(group, { leader: initial[0]!, term: 1, voters: initial, learners: [] });
      return;
    }
    const { group } = change;
    if (change.kind === 'endMove') {
      this.moves = this.moves.filter((move) => move.group !== group);
    } else if (change.kind === 'delete') {
      this.groups = this.groups.filter((one) => one.group !== group);
      this.logs.delete(group);
    } else if (change.kind === 'transfer') {
      const log = this.logs.get(group)!;
      const heir = log.voters.find((replica) => nodeOf(replica) === change.to);
      if (heir === undefined || nodeOf(log.leader) !== change.from)
        throw new Error('no such transfer');
      Object.assign(log, { leader: heir, term: log.term + 1 });
      this.#transferredAt.set(group, this.now);
    } else {
      this.groups = this.groups.map((one) => (one.group === group ? changed(one, change) : one));
    }
  }

  /** A step of each group's leader towards its definition, and an election where the leader is gone. */
  step(ms = 1000): void {
    this.now += ms;
    for (const { group, replicas } of this.groups) {
      const log = this.logs.get(group)!;
      const alive = log.voters.filter((replica) => this.isReachable(nodeOf(replica)));
      if (alive.length * 2 <= log.voters.length) {
        log.leader = 0;
        continue;
      }
      if (!alive.includes(log.leader)) Object.assign(log, { leader: alive[0], term: log.term + 1 });
      const joining = replicas.find(
        ({ replica, state, node }) =>
          state === 'voter' && !log.voters.includes(replica) && this.isReachable(node),
      );
      const leaving = replicas.find(
        ({ replica, state }) => state === 'leaving' && log.voters.includes(replica),
      );
      if (joining !== undefined && !log.learners.includes(joining.replica))
        log.learners = [joining.replica];
      else if (joining !== undefined) {
        log.learners = [];
        log.voters = [...log.voters, joining.replica];
      } else if (leaving !== undefined && leaving.replica !== log.leader) {
        log.voters = log.voters.filter((replica) => replica !== leaving.replica);
      }
      log.learners = log.learners.filter((one) =>
        replicas.some(({ replica, state }) => replica === one && state !== 'leaving'),
      );
    }
  }
}

function changed(
  definition: GroupDefinition,
  change: GroupChange & { kind: 'add' | 'leave' | 'forget' },
): GroupDefinition {
  const { replicas, epoch } = definition;
  const next = { ...definition, epoch: epoch + 1 };
  switch (change.kind) {
    case 'add':
      if (replicas.some(({ node }) => node === change.node))
        throw new Error('two replicas on a node');
      return {
        ...next,
        replicas: [
          ...replicas,
          { replica: change.node * 1000 + epoch + 1, node: change.node, state: 'voter' },
        ],
      };
    case 'leave':
      return {
        ...next,
        replicas: replicas.map((one) =>
          one.node === change.node ? { ...one, state: 'leaving' } : one,
        ),
      };
    case 'forget':
      return { ...next, replicas: replicas.filter(({ replica }) => replica !== change.replica) };
  }
}

function nodeOf(replica: number): number {
  return Math.floor(replica / 1000);
}
