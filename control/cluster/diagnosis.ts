// Diagnosis of a cluster: problems, and remedies for an operator.

import {
  type ClusterReport,
  type GroupReport,
  mayHaveReplicas,
  type NodeReport,
} from './cluster-report.ts';

export interface Finding {
  /**
   * `error`: some data cannot be written now. `warning`: one more failure could lead to that. `notice`: a change is
   * in progress.
   */
  readonly severity: 'error' | 'warning' | 'notice';
  readonly problem: string;
  readonly remedy: string;
}

const order = ['error', 'warning', 'notice'] as const;
/** Groups named in a finding at most. */
const named = 5;

/** The worst first; none when all is well. */
export function diagnose(report: ClusterReport, rebuildAfterMs: number, now: number): Finding[] {
  const findings = [
    ...metadataFindings(report),
    ...report.nodes.flatMap((node) =>
      node.state === 'draining'
        ? drainFindings(node, report)
        : nodeFindings(node, rebuildAfterMs, now),
    ),
    ...portFindings(report),
    ...levelFindings(report),
    ...groupFindings(report),
    ...fenceFindings(report),
    ...diskFindings(report),
    ...spreadFindings(report),
  ];
  return findings.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}

function metadataFindings({ leader, nodes }: ClusterReport): Finding[] {
  if (leader !== 0) return [];
  const voters = nodes.filter(({ votes }) => votes).map(({ node }) => node);
  return [
    {
      severity: 'error',
      problem: `the metadata have no leader${voters.length === 0 ? '' : ` among their voters, nodes ${voters.join(', ')}`}: changes of tenants, tables and nodes are refused, and nothing is repaired`,
      remedy:
        'start enough of these nodes that more than half of them run, and see that they reach each other',
    },
  ];
}

function levelFindings({ level, nodes }: ClusterReport): Finding[] {
  const behind = nodes.filter((one) => one.level === level).map(({ node }) => node);
  if (behind.length === nodes.length) return [];
  return [
    {
      severity: 'notice',
      problem: `nodes ${behind.join(', ')} run an earlier release than others: what only later ones know is refused`,
      remedy: 'start them with the later release, one after the other',
    },
  ];
}

function drainFindings({ node, replicas, votes }: NodeReport, report: ClusterReport): Finding[] {
  const { nodes, groups } = report;
  const down = new Set(nodes.filter(({ reachable }) => !reachable).map((one) => one.node));
  const voters = nodes.filter((one) => one.votes).map((one) => one.node);
  const needs = (members: readonly number[]): boolean => isNeeded(node, members, down);
  const waiting = groups.filter((group) => needs(group.replicas.map((one) => one.node)));
  const isVoteNeeded = votes && needs(voters);
  if (replicas === 0 && !isVoteNeeded) {
    return [
      {
        severity: 'notice',
        problem: `node ${node} is drained`,
        remedy: `polyrow node remove ${node}, or polyrow node drain ${node} --undo to use it again`,
      },
    ];
  }
  const problem = `node ${node} is being drained: ${replicas} replicas are left`;
  if (waiting.length === 0 && !isVoteNeeded)
    return [{ severity: 'notice', problem, remedy: 'wait until there are none' }];
  const kept = [
    ...(waiting.length > 0 ? [namesOf(waiting)] : []),
    ...(isVoteNeeded ? ['the metadata'] : []),
  ].join(' and ');
  const members = waiting.flatMap((group) => group.replicas.map((one) => one.node));
  const missing = new Set([...members, ...(isVoteNeeded ? voters : [])]);
  const names = [...missing].filter((one) => down.has(one) && one !== node).sort((a, b) => a - b);
  return [
    {
      severity: 'notice',
      problem: `${problem}; it stays in ${kept}, as without it no majority of the others could be reached`,
      remedy: `start nodes ${names.join(', ')} again, or add nodes`,
    },
  ];
}

/** Whether the other members have no reachable majority without this node. The plan of a drain applies the same rule. */
function isNeeded(node: number, members: readonly number[], down: ReadonlySet<number>): boolean {
  const others = members.filter((one) => one !== node);
  const there = others.filter((one) => !down.has(one));
  return members.includes(node) && others.length > 0 && 2 * there.length <= others.length;
}

function nodeFindings(
  { node, state, reachable, answered, since, addresses }: NodeReport,
  rebuildAfterMs: number,
  now: number,
): Finding[] {
  if (state === 'joining') {
    return [
      {
        severity: 'notice',
        problem: `node ${node} is joining`,
        remedy: 'wait until it has a copy of the metadata',
      },
    ];
  }
  if (reachable && answered) return [];
  if (reachable) {
    return [
      {
        severity: 'warning',
        problem: `node ${node} (${addresses.control}) is in reach, and did not tell its replicas in time: which of them lead is not known`,
        remedy: 'ask again; if it lasts, see whether its machine is overloaded, and its log',
      },
    ];
  }
  const leftMs = since + rebuildAfterMs - now;
  const rebuild =
    leftMs > 0
      ? `its replicas are made anew on other nodes in ${Math.ceil(leftMs / 1000)} s`
      : 'its replicas are made anew on other nodes, if there are any';
  return [
    {
      severity: 'warning',
      problem: `node ${node} (${addresses.control}) has been out of reach for ${Math.max(0, Math.round((now - since) / 1000))} s; ${rebuild}`,
      remedy: `start it, or see why the others cannot reach it; if it is lost permanently: polyrow node drain ${node}, then polyrow node remove ${node}`,
    },
  ];
}

/** Ports that a node picks anew at each start are not announced to other nodes. */
function portFindings({ nodes }: ClusterReport): Finding[] {
  return nodes.flatMap(({ node, addresses }) => {
    const free = [
      ...(addresses.redisClients.endsWith(':0') ? ['redis.port'] : []),
      ...(addresses.influxClients.endsWith(':0') ? ['influx.port'] : []),
    ];
    if (free.length === 0) return [];
    return [
      {
        severity: 'notice',
        problem: `node ${node} has 0 as ${free.join(' and ')}: the port is another one at each start, and cluster clients cannot be sent there`,
        remedy: `start it with ${free.map((name) => `--${name} PORT`).join(' ')}`,
      } as const,
    ];
  });
}

function groupFindings({ groups, nodes }: ClusterReport): Finding[] {
  const down = new Set(nodes.filter(({ reachable }) => !reachable).map(({ node }) => node));
  const leaderless = groups.filter(({ leader }) => leader === 0);
  const lost = leaderless.filter(({ replicas }) => {
    const alive = replicas.filter(({ node }) => !down.has(node)).length;
    return alive * 2 <= replicas.length;
  });
  const electing = leaderless.filter(
    (group) => !lost.includes(group) && group.mayLead === undefined,
  );
  const moving = groups.filter(({ leader, settled }) => leader !== 0 && !settled);
  const findings: Finding[] = [];
  if (lost.length > 0) {
    const needed = [...new Set(lost.flatMap(({ replicas }) => replicas.map(({ node }) => node)))]
      .filter((node) => down.has(node))
      .sort((a, b) => a - b);
    findings.push({
      severity: 'error',
      problem: `${namesOf(lost)} cannot be used: half of the replicas or more are out of reach`,
      remedy: `start nodes ${needed.join(', ')} again, with their data directories`,
    });
  }
  if (electing.length > 0) {
    findings.push({
      severity: 'error',
      problem: `${namesOf(electing)} without a leader`,
      remedy:
        'wait some seconds for an election; if it lasts, see the logs of the nodes with replicas',
    });
  }
  if (moving.length > 0) {
    findings.push({
      severity: 'notice',
      problem: `${namesOf(moving)} changing members`,
      remedy: 'wait until new replicas have caught up',
    });
  }
  return findings;
}

/** Under a relaxed `wal.fsync`, after machines have stopped before a sync. */
function fenceFindings({ groups, nodes }: ClusterReport): Finding[] {
  const down = nodes.filter(({ reachable }) => !reachable).map(({ node }) => node);
  const fenced = groups.filter(({ replicas }) => replicas.some((one) => one.fenced === true));
  const waiting = fenced.filter(
    ({ leader, replicas }) =>
      leader === 0 && replicas.filter((one) => one.fenced !== true).length * 2 <= replicas.length,
  );
  const behind = fenced.filter((group) => !waiting.includes(group));
  const lost = groups.filter(({ replicas }) => replicas.some((one) => one.mayHaveLost === true));
  const findings: Finding[] = [];
  if (waiting.length > 0) {
    const members = new Set(waiting.flatMap(({ replicas }) => replicas.map(({ node }) => node)));
    const missing = down.filter((node) => members.has(node));
    const all = missing.length === 0 ? 'all nodes' : `nodes ${missing.join(', ')}, too`;
    findings.push({
      severity: 'error',
      problem: `${namesOf(waiting)}: most replicas are on machines that stopped before the log was synced (wal.fsync), and any of them may have what the others lack`,
      remedy: `start ${all}: a leader is elected once all replicas are there. If one is lost permanently, start the others with --wal.accept-loss yes, and lose what only that one has`,
    });
  }
  if (behind.length > 0) {
    findings.push({
      severity: 'notice',
      problem: `${namesOf(behind)} with a replica on a machine that stopped before the log was synced (wal.fsync): it has no vote until it has caught up`,
      remedy: 'wait some seconds',
    });
  }
  if (lost.length > 0) {
    findings.push({
      severity: 'warning',
      problem: `${namesOf(lost)} may have lost acknowledged writes: most replicas were on machines that stopped before the log was synced (wal.fsync). With everysec it is about the last two seconds before that`,
      remedy:
        'write again what clients wrote last, where they can tell; --wal.fsync always excludes it. This is shown until the leader of the group is another one, or started again',
    });
  }
  return findings;
}

/** Leaders leave such nodes where a majority of the others has room. */
function diskFindings({ groups }: ClusterReport): Finding[] {
  const nodes = new Set<number>();
  const stuck: GroupReport[] = [];
  for (const group of groups) {
    const full = group.replicas.filter(({ takesNoWrites }) => takesNoWrites !== undefined);
    for (const { node } of full) nodes.add(node);
    const isLed = full.every(({ node }) => node !== group.leader);
    const isStuck = full.length > 0 && 2 * full.length >= group.replicas.length;
    if (!isLed || isStuck) stuck.push(group);
  }
  if (nodes.size === 0) return [];
  const names = [...nodes].sort((a, b) => a - b).join(', ');
  const where =
    nodes.size === 1
      ? `node ${names} has no room on its disk, or it fails`
      : `nodes ${names} have no room on their disks, or they fail`;
  const isStuck = stuck.length > 0;
  return [
    {
      severity: isStuck ? 'error' : 'warning',
      problem: `${where}: ${isStuck ? `writes to ${namesOf(stuck)} are refused` : 'others lead its groups'}`,
      remedy:
        'make room there, or drain the node; its log says which path is full. What it missed it gets from the other replicas',
    },
  ];
}

function spreadFindings({ nodes, groups, wantedReplicas }: ClusterReport): Finding[] {
  const usable = nodes.filter(mayHaveReplicas);
  const findings: Finding[] = [];
  if (usable.length < wantedReplicas) {
    findings.push({
      severity: 'warning',
      problem: `there ${usable.length === 1 ? 'is 1 node' : `are ${usable.length} nodes`} for ${wantedReplicas} replicas (cluster.replicas)`,
      remedy: `start ${wantedReplicas - usable.length} more with cluster.seeds, or set cluster.replicas`,
    });
  }
  const wanted = Math.min(wantedReplicas, usable.length);
  const few = groups.filter(({ replicas }) => replicas.length < wanted);
  if (few.length > 0) {
    findings.push({
      severity: 'warning',
      problem: `${namesOf(few)} with fewer than ${wanted} replicas`,
      remedy: 'wait: replicas are added while the cluster runs, some at a time',
    });
  }
  const zoneOf = new Map(nodes.map(({ node, zone }) => [node, zone]));
  const zones = new Set(usable.map(({ zone }) => zone));
  const crowded = groups.filter(({ replicas }) => {
    const used = new Set(replicas.map(({ node }) => zoneOf.get(node)));
    return used.size < Math.min(replicas.length, zones.size);
  });
  if (crowded.length > 0 && zones.size > 1) {
    findings.push({
      severity: 'warning',
      problem: `${namesOf(crowded)} with two replicas in a zone though there are ${zones.size} zones`,
      remedy: 'wait until they are moved, or add nodes to the zones with the fewest',
    });
  }
  return findings;
}

function namesOf(groups: readonly GroupReport[]): string {
  const some = groups
    .slice(0, named)
    .map(({ group }) => group)
    .join(', ');
  const noun = groups.length === 1 ? 'group' : 'groups';
  return groups.length > named ? `${groups.length} ${noun} (${some}, …)` : `${noun} ${some}`;
}
