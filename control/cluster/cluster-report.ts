// Report of a cluster for operators: nodes and groups, with definitions and states.

import {
  type ClusterView,
  clusterLevel,
  type GroupModel,
  levelOf,
  type NodeAddresses,
  type NodeDefinition,
  type NodeRole,
  nodeRoles,
  type NodeState,
  type ReplicaState,
  type ReplicaStatus,
  type SeriesPart,
} from '../../contracts/cluster.ts';
import { replicaKey } from './cluster-state.ts';
import { isSettled, leadersOf } from './plan.ts';

export interface NodeReport {
  readonly node: number;
  readonly zone: string;
  readonly roles: readonly NodeRole[];
  readonly state: NodeState;
  /** Level of its build. */
  readonly level: number;
  readonly reachable: boolean;
  /** The node has reported its replicas in time. Otherwise their roles are unknown. */
  readonly answered: boolean;
  /** Unix milliseconds from when on it is or is not reachable. */
  readonly since: number;
  /** Whether the node votes in the metadata group. */
  readonly votes: boolean;
  readonly replicas: number;
  /** Groups that it leads. */
  readonly leads: number;
  readonly addresses: NodeAddresses;
}

interface ReplicaReport {
  readonly node: number;
  readonly replica: number;
  readonly state: ReplicaState;
  /** Role as reported by the node; `unknown` without a report. */
  readonly role: ReplicaStatus['role'] | 'unknown';
  readonly applied: number;
  readonly rows: number;
  readonly bytes: number;
  /** See `ReplicaStatus`. */
  readonly fenced?: boolean;
  readonly mayHaveLost?: boolean;
  readonly takesNoWrites?: 'node' | 'replica';
}

export interface GroupReport {
  readonly group: number;
  /** Number of the tenant. */
  readonly tenant: number;
  readonly model: GroupModel;
  readonly partition?: number;
  /** For divided time series: the partition, from 0 on. */
  readonly series?: SeriesPart;
  readonly epoch: number;
  /** Node that leads; 0 while none does, or none is known. */
  readonly leader: number;
  /** Where no leader is known: nodes in reach with replicas that did not answer in time, of which one may lead. */
  readonly mayLead?: readonly number[];
  /** The members of the log are those of the definition. */
  readonly settled: boolean;
  readonly replicas: readonly ReplicaReport[];
}

export interface ClusterReport {
  readonly cluster: number;
  /** The node that tells this. */
  readonly node: number;
  /** Node that leads the metadata; 0 without a leader. */
  readonly leader: number;
  /** Features of a later level are refused. */
  readonly level: number;
  /** How many replicas each group should have. */
  readonly wantedReplicas: number;
  readonly nodes: readonly NodeReport[];
  readonly groups: readonly GroupReport[];
}

interface ReportInput {
  cluster: number;
  node: number;
  leader: number;
  voters: readonly number[];
  wantedReplicas: number;
  nodes: readonly (NodeDefinition & { reachable: boolean; since: number })[];
  groups: ClusterView['groups'];
  statuses: readonly ReplicaStatus[];
  /** Reachable nodes that did not report their replicas in time. */
  silent: ReadonlySet<number>;
}

export function clusterReport(input: ReportInput): ClusterReport {
  const { cluster, node, leader, voters, wantedReplicas, statuses, silent } = input;
  const leaders = leadersOf(statuses);
  const byReplica = new Map(statuses.map((status) => [replicaKey(status), status]));
  const groups = input.groups.map((definition): GroupReport => {
    const { group, tenant, model, partition, series, epoch } = definition;
    const leading = leaders.get(group);
    const replicas = definition.replicas.map(({ node: on, replica, state }): ReplicaReport => {
      const {
        role = 'unknown',
        applied = 0,
        rows = 0,
        bytes = 0,
        fenced,
        mayHaveLost,
        takesNoWrites,
      } = byReplica.get(replicaKey({ group, replica })) ?? {};
      return {
        ...{ node: on, replica, state, role, applied, rows, bytes },
        ...(fenced === undefined ? {} : { fenced }),
        ...(mayHaveLost === undefined ? {} : { mayHaveLost }),
        ...(takesNoWrites === undefined ? {} : { takesNoWrites }),
      };
    });
    const leads = replicas.find(({ replica }) => replica === leading?.replica)?.node ?? 0;
    const unheard = replicas.map(({ node: on }) => on).filter((on) => silent.has(on));
    return {
      group,
      tenant,
      model,
      ...(partition === undefined ? {} : { partition }),
      ...(series === undefined ? {} : { series }),
      epoch,
      leader: leads,
      ...(leads === 0 && unheard.length > 0 ? { mayLead: unheard } : {}),
      settled: isSettled(definition, leading),
      replicas,
    };
  });
  const countOn = (on: number): number =>
    groups.reduce((sum, { replicas }) => sum + Number(replicas.some((one) => one.node === on)), 0);
  const nodes = input.nodes.map((one): NodeReport => {
    const { zone, roles = nodeRoles, state, reachable, since, addresses } = one;
    return {
      node: one.node,
      zone,
      roles,
      state,
      level: levelOf(one),
      reachable,
      answered: reachable && !silent.has(one.node),
      since,
      votes: voters.includes(one.node),
      replicas: countOn(one.node),
      leads: groups.filter((group) => group.leader === one.node).length,
      addresses,
    };
  });
  const level = clusterLevel(input.nodes);
  return { cluster, node, leader, level, wantedReplicas, nodes, groups };
}

export function mayHaveReplicas({ state, roles }: NodeReport): boolean {
  return state === 'up' && roles.includes('node');
}

/** All groups are led, have the members they should, and as many as the nodes allow. */
export function isWhole({ nodes, groups, wantedReplicas, leader }: ClusterReport): boolean {
  const usable = nodes.filter((node) => mayHaveReplicas(node) && node.reachable).length;
  const wanted = Math.min(wantedReplicas, usable);
  return (
    leader !== 0 &&
    groups.length > 0 &&
    groups.every(({ settled, replicas }) => settled && replicas.length >= wanted)
  );
}
