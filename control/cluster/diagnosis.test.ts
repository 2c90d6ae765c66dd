import { expect, test } from 'vitest';
import { ClusterFixture } from './cluster-fixture.ts';
import { type ClusterReport, clusterReport, isWhole } from './cluster-report.ts';
import { diagnose } from './diagnosis.ts';
import { plan } from './plan.ts';

const policy = { replicas: 3, rebuildAfterMs: 60_000 };

/** Three groups of three replicas, if there are nodes enough. */
function clusterOf(zones: readonly string[]): ClusterFixture {
  const cluster = new ClusterFixture(zones);
  cluster.purposes = [1, 2, 3].map((tenant) => ({ tenant, model: 'memory' }));
  for (let i = 0; i < 40; i++) {
    cluster.apply(plan(cluster.state, policy, cluster.now));
    cluster.step();
  }
  return cluster;
}

function reportOf(
  cluster: ClusterFixture,
  leader = 1,
  silent: ReadonlySet<number> = new Set(),
): ClusterReport {
  const statuses = cluster.statuses().filter((one) => !silent.has(one.leader));
  const { nodes, groups } = cluster;
  return clusterReport({
    cluster: 7,
    node: 1,
    leader,
    voters: [1, 2, 3],
    wantedReplicas: 3,
    nodes,
    groups,
    statuses,
    silent,
  });
}

function findings(cluster: ClusterFixture, leader = 1): string[] {
  return diagnose(reportOf(cluster, leader), policy.rebuildAfterMs, cluster.now).map(
    ({ severity, problem }) => `${severity}: ${problem}`,
  );
}

test('ports that are others at each start are named', () => {
  const cluster = clusterOf(['a', 'b', 'c']);
  cluster.nodes = cluster.nodes.map((one) =>
    one.node === 2 ? { ...one, addresses: { ...one.addresses, redisClients: '127.0.0.1:0' } } : one,
  );
  expect(findings(cluster)).toEqual([
    'notice: node 2 has 0 as redis.port: the port is another one at each start, and cluster clients cannot be sent there',
  ]);
});

test('the level is that of the earliest release among the nodes', () => {
  const cluster = clusterOf(['a', 'b', 'c']);
  const setBuilds = (...starts: number[]): void => {
    cluster.nodes = cluster.nodes.map((one, i) =>
      starts[i] === undefined ? one : { ...one, build: { level: 2, incarnation: starts[i] } },
    );
  };
  expect(reportOf(cluster).level).toBe(1);
  setBuilds(1, 1);
  expect(reportOf(cluster).level).toBe(1);
  expect(findings(cluster)).toEqual([
    'notice: nodes 3 run an earlier release than others: what only later ones know is refused',
  ]);
  setBuilds(1, 1, 1);
  expect(reportOf(cluster).level).toBe(2);
  // Node 2 was started with an earlier one since.
  cluster.nodes = cluster.nodes.map((one) => (one.node === 2 ? { ...one, incarnation: 2 } : one));
  expect(reportOf(cluster).level).toBe(1);
});

test('a node that does not answer in time may lead groups without a known leader', () => {
  const cluster = clusterOf(['a', 'b', 'c']);
  const silent = cluster.leaderOf(cluster.groups[0]!.group);
  const report = reportOf(cluster, 1, new Set([silent]));
  for (const { group, leader, mayLead } of report.groups) {
    const isLed = cluster.leaderOf(group) !== silent;
    expect([leader, mayLead]).toEqual(isLed ? [cluster.leaderOf(group), undefined] : [0, [silent]]);
  }
  expect(report.nodes.filter(({ answered }) => !answered).map(({ node }) => node)).toEqual([
    silent,
  ]);
  expect(diagnose(report, policy.rebuildAfterMs, cluster.now)).toMatchObject([
    { severity: 'warning', problem: expect.stringContaining('did not tell its replicas in time') },
  ]);
});

test('a cluster that is whole has nothing wrong with it', () => {
  const cluster = clusterOf(['a', 'b', 'c']);
  expect(findings(cluster)).toEqual([]);
  const report = reportOf(cluster);
  expect(isWhole(report)).toBe(true);
  expect(report.nodes.map(({ leads, replicas }) => [leads, replicas])).toEqual([
    [1, 3],
    [1, 3],
    [1, 3],
  ]);
});

test.each<[string, (cluster: ClusterFixture) => void, string[]]>([
  [
    'a node that is out of reach',
    (cluster) => {
      cluster.set(3, { reachable: false });
      cluster.step(20_000);
    },
    [
      'warning: node 3 () has been out of reach for 20 s; its replicas are made anew on other nodes in 40 s',
    ],
  ],
  [
    'a majority that is out of reach',
    (cluster) => {
      cluster.set(2, { reachable: false });
      cluster.set(3, { reachable: false });
      cluster.step(1000);
    },
    [
      'error: groups 16, 17, 18 cannot be used: half of the replicas or more are out of reach',
      'warning: node 2 () has been out of reach for 1 s; its replicas are made anew on other nodes in 59 s',
      'warning: node 3 () has been out of reach for 1 s; its replicas are made anew on other nodes in 59 s',
    ],
  ],
  [
    'a group without a leader',
    (cluster) => {
      cluster.logs.get(17)!.leader = 0;
    },
    ['error: group 17 without a leader'],
  ],
  [
    'a node that drains with nowhere to go',
    (cluster) => cluster.set(3, { state: 'draining' }),
    [
      'warning: there are 2 nodes for 3 replicas (cluster.replicas)',
      'notice: node 3 is being drained: 3 replicas are left',
    ],
  ],
  [
    'a node that drains while another one is out of reach',
    (cluster) => {
      cluster.set(2, { reachable: false });
      cluster.set(3, { state: 'draining' });
      // Others lead what node 2 led.
      cluster.step(0);
    },
    [
      'warning: node 2 () has been out of reach for 0 s; its replicas are made anew on other nodes in 60 s',
      'warning: there are 2 nodes for 3 replicas (cluster.replicas)',
      'notice: node 3 is being drained: 3 replicas are left; it stays in groups 16, 17, 18 and the metadata, as without it no majority of the others could be reached',
    ],
  ],
  [
    'a group that changes',
    (cluster) => {
      const [first, ...others] = cluster.groups;
      const [replica, ...rest] = first!.replicas;
      cluster.groups = [
        { ...first!, replicas: [{ ...replica!, state: 'leaving' }, ...rest] },
        ...others,
      ];
    },
    ['notice: group 16 changing members'],
  ],
])('%s', (_, spoil, expected) => {
  const cluster = clusterOf(['a', 'b', 'c']);
  spoil(cluster);
  expect(findings(cluster)).toEqual(expected);
});

test('too few nodes, and metadata without a leader', () => {
  const cluster = clusterOf(['', '']);
  expect(findings(cluster, 0)).toEqual([
    'error: the metadata have no leader among their voters, nodes 1, 2: changes of tenants, tables and nodes are refused, and nothing is repaired',
    'warning: there are 2 nodes for 3 replicas (cluster.replicas)',
  ]);
  expect(isWhole(reportOf(cluster, 0))).toBe(false);
  expect(isWhole(reportOf(cluster)), 'as many replicas as there are nodes').toBe(true);
});

test('two replicas in a zone though there are three', () => {
  const cluster = clusterOf(['a', 'a', 'b']);
  cluster.addNode('c');
  expect(findings(cluster)).toEqual([
    'warning: groups 16, 17, 18 with two replicas in a zone though there are 3 zones',
  ]);
});

test('fenced replicas, a group that waits for all of them, and a loss', () => {
  const cluster = clusterOf(['a', 'b', 'c']);
  const report = reportOf(cluster);
  const [group] = report.groups;
  const told = (
    leader: number,
    fenced: number,
    down: number[] = [],
    mayHaveLost = false,
  ): string[] => {
    const replicas = group!.replicas.map((one, i) => ({
      ...one,
      ...(i < fenced ? { fenced: true } : {}),
      ...(mayHaveLost && i === 0 ? { mayHaveLost } : {}),
    }));
    const nodes = report.nodes.map((one) => ({ ...one, reachable: !down.includes(one.node) }));
    const groups = [{ ...group!, leader, replicas }, ...report.groups.slice(1)];
    const found = diagnose({ ...report, nodes, groups }, policy.rebuildAfterMs, cluster.now);
    return found
      .filter(({ problem }) => problem.includes('wal.fsync'))
      .map(({ severity, remedy }) => `${severity}: ${remedy}`);
  };
  expect(told(1, 0)).toEqual([]);
  expect(told(1, 1)).toEqual(['notice: wait some seconds']);
  expect(told(0, 2)[0]).toMatch(/^error: start all nodes: a leader is elected once all/);
  expect(told(0, 2, [3])[0]).toMatch(/^error: start nodes 3, too: .*--wal.accept-loss yes/);
  expect(told(1, 0, [], true)[0]).toMatch(/^warning: write again what clients wrote last/);
});

test('nodes with a full disk, which others lead for if they can', () => {
  const cluster = clusterOf(['a', 'b', 'c']);
  const led = cluster.groups.find(({ group }) => cluster.leaderOf(group) === 2)!.group;
  cluster.full.add(2);
  expect(findings(cluster)).toEqual([
    `error: node 2 has no room on its disk, or it fails: writes to group ${led} are refused`,
  ]);
  cluster.apply(plan(cluster.state, policy, cluster.now));
  expect(findings(cluster)).toEqual([
    'warning: node 2 has no room on its disk, or it fails: others lead its groups',
  ]);
  cluster.full.add(1);
  cluster.full.add(3);
  expect(findings(cluster)).toEqual([
    'error: nodes 1, 2, 3 have no room on their disks, or they fail: writes to groups 16, 17, 18 are refused',
  ]);
});
