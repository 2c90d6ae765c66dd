// Metrics of groups, leaders and links of a cluster node's planes.

import type { GroupStats } from '../../access/gateway/pods/group-executor.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { adder } from './pod-samples.ts';

/** A replica on this node. */
export interface ReplicaState {
  readonly group: number;
  readonly model: string;
  readonly role: 'leader' | 'follower' | 'learner' | 'closed';
  /** Node that leads; 0 while none is known. */
  readonly leader: number;
  readonly term: number;
  readonly applied: number;
  readonly commit: number;
  /** Request units a second that it served in the last whole minute. */
  readonly units: number;
  /** See `ReplicaStatus`. */
  readonly fenced: boolean;
  readonly mayHaveLost: boolean;
}

export function replicaSamples(plane: string, replicas: readonly ReplicaState[]): MetricSample[] {
  const samples: MetricSample[] = [];
  const leaders = new Map<number, number>();
  for (const replica of replicas) {
    const { group, model, role, leader, term, applied, commit, units } = replica;
    leaders.set(leader, (leaders.get(leader) ?? 0) + 1);
    const add = adder(samples, { group: String(group), model });
    add('gauge', 'cluster_group_leads', 'Whether this node leads the group.', +(role === 'leader'));
    add('gauge', 'cluster_group_learner', 'Whether it has no vote yet.', +(role === 'learner'));
    add('gauge', 'cluster_group_term', 'Counts the elections of the group.', term);
    add('counter', 'cluster_group_applied', 'Entries applied to the rows or points.', applied);
    add('counter', 'cluster_group_committed', 'Entries known to be committed.', commit);
    const fenced =
      'Whether the replica may lack acknowledged writes, and catches up before it votes.';
    add('gauge', 'cluster_group_fenced', fenced, +replica.fenced);
    const lost =
      'Whether acknowledged writes may be lost, as most machines stopped before a sync; told by the leader.';
    add('gauge', 'cluster_group_may_have_lost', lost, +replica.mayHaveLost);
    const served = 'Request units a second that the replica here served in the last whole minute.';
    add('gauge', 'cluster_group_request_units', served, units);
    const lag = Math.max(0, commit - applied);
    add('gauge', 'cluster_group_lag', 'Entries known to be committed and not applied yet.', lag);
  }
  for (const [node, groups] of leaders) {
    adder(samples, { plane, node: String(node) })(
      'gauge',
      'cluster_leaders',
      'Groups with a replica on this node, by the node that leads them; node 0 while none is known.',
      groups,
    );
  }
  return samples;
}

/** Metrics of this gateway's connections to groups, summed over all groups. */
export function wayStats(all: Iterable<GroupStats>): MetricSample[] {
  const total = { waiting: 0, waited: 0, movedOn: 0, readHere: 0, withoutLeader: 0 };
  for (const one of all) {
    for (const name of Object.keys(total) as (keyof GroupStats)[]) total[name] += one[name];
  }
  const samples: MetricSample[] = [];
  const add = adder(samples, {});
  add('gauge', 'cluster_waiting_commands', 'Commands that wait for a leader.', total.waiting);
  add('counter', 'cluster_waits', 'Waits of commands for a leader.', total.waited);
  add('counter', 'cluster_retries', 'Commands sent on to where another leads.', total.movedOn);
  add('counter', 'cluster_reads_here', 'Reads of a replica that does not lead.', total.readHere);
  add(
    'counter',
    'cluster_without_leader',
    'Commands refused, as there was no leader in time.',
    total.withoutLeader,
  );
  return samples;
}

export function linkSamples(
  links: Iterable<{
    readonly node: number;
    readonly isUp: boolean;
    readonly connects: number;
    readonly sent: number;
  }>,
): MetricSample[] {
  const samples: MetricSample[] = [];
  for (const { node, isUp, connects, sent } of links) {
    const add = adder(samples, { node: String(node) });
    add('gauge', 'cluster_link_up', 'Whether commands can be sent to the node.', +isUp);
    add('counter', 'cluster_link_connects', 'Times that the link was made.', connects);
    add('counter', 'cluster_forwarded', 'Commands sent to the node, which led.', sent);
  }
  return samples;
}

export function monitorSamples({ dropped }: { readonly dropped: number }): MetricSample[] {
  const samples: MetricSample[] = [];
  const help = 'Commands that clients of other nodes in MONITOR were not shown.';
  adder(samples, {})('counter', 'cluster_monitor_dropped', help, dropped);
  return samples;
}
