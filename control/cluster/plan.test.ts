import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ClusterFixture } from './cluster-fixture.ts';
import type { GroupChange, GroupPurpose, PlanPolicy } from './cluster-state.ts';
import { deleteAfterMs, plan, planBounds } from './plan.ts';

const policy: PlanPolicy = { replicas: 3, rebuildAfterMs: 60_000 };

function purposes(count: number): GroupPurpose[] {
  return Array.from({ length: count }, (_, i) => ({
    tenant: 0,
    model: 'memory',
    partition: 0x4000_0000 + i,
  }));
}

/** Steps until nothing is left to do, or the steps are used up. */
function settle(cluster: ClusterFixture, of: PlanPolicy = policy, steps = 3000): GroupChange[] {
  const all: GroupChange[] = [];
  let calm = 0;
  for (let i = 0; i < steps && calm < 40; i++) {
    const changes = plan(cluster.state, of, cluster.now);
    const groups = changes.flatMap((change) =>
      'group' in change && change.kind !== 'endMove' ? [change.group] : [],
    );
    expect(new Set(groups).size, 'a change at a time').toBe(groups.length);
    cluster.apply(changes);
    all.push(...changes);
    cluster.step();
    calm = changes.length === 0 ? calm + 1 : 0;
  }
  expect(calm, 'it comes to rest').toBe(40);
  return all;
}

/** Groups whose majority can be reached, and could not be any more once these changes are made. */
function abandoned(cluster: ClusterFixture, changes: readonly GroupChange[]): number[] {
  return changes.flatMap((change) => {
    if (change.kind !== 'leave') return [];
    const { group, node } = change;
    const { replicas } = cluster.groups.find((one) => one.group === group)!;
    const leaving = replicas.find((one) => one.node === node)!.replica;
    const { voters } = cluster.logs.get(group)!;
    const nodeOf = (replica: number) => replicas.find((one) => one.replica === replica)!.node;
    const isReached = (of: readonly number[]) =>
      2 * of.filter((one) => cluster.isReachable(nodeOf(one))).length > of.length;
    return isReached(voters) && !isReached(voters.filter((one) => one !== leaving)) ? [group] : [];
  });
}

function clusterOf(
  zones: readonly string[],
  groups: number,
  of: PlanPolicy = policy,
): ClusterFixture {
  const cluster = new ClusterFixture(zones);
  cluster.purposes = purposes(groups);
  settle(cluster, of);
  return cluster;
}

function spread(
  cluster: ClusterFixture,
  of: (group: number) => readonly number[],
): Map<number, number> {
  const counts = new Map(cluster.nodes.map(({ node }) => [node, 0]));
  for (const { group } of cluster.groups) {
    for (const node of of(group)) counts.set(node, counts.get(node)! + 1);
  }
  return counts;
}

const replicasOf = (cluster: ClusterFixture) => spread(cluster, (group) => cluster.nodesOf(group));
const leadersOf = (cluster: ClusterFixture) =>
  spread(cluster, (group) => [cluster.leaderOf(group)]);

function evenness(counts: Map<number, number>, nodes = [...counts.keys()]): number {
  const of = nodes.map((node) => counts.get(node)!);
  return Math.max(...of) - Math.min(...of);
}

describe('new groups', () => {
  test.each([
    [1, [1]],
    [2, [1, 2]],
    [3, [1, 2, 3]],
  ])('of %i nodes have replicas on all', (nodes, expected) => {
    const cluster = clusterOf(
      Array.from({ length: nodes }, () => ''),
      1,
    );
    expect(cluster.nodesOf(16)).toEqual(expected);
  });

  test('of divided time series are made once each, and led evenly', () => {
    const cluster = new ClusterFixture(['', '', '']);
    cluster.purposes = [0, 1].flatMap((tenant) =>
      Array.from({ length: 6 }, (_, partition): GroupPurpose => {
        return { tenant, model: 'tsm', series: { partition, of: 6 } };
      }),
    );
    settle(cluster);
    expect(cluster.groups.map(({ tenant, series }) => ({ tenant, series }))).toEqual(
      cluster.purposes.map(({ tenant, series }) => ({ tenant, series })),
    );
    expect(evenness(leadersOf(cluster))).toBeLessThanOrEqual(1);
  });

  test('have as many replicas as they should, on different nodes, evenly, and so are their leaders', () => {
    const cluster = clusterOf(['', '', '', '', ''], 50);
    for (const { group } of cluster.groups) expect(new Set(cluster.nodesOf(group)).size).toBe(3);
    expect(evenness(replicasOf(cluster))).toBeLessThanOrEqual(2);
    expect(evenness(leadersOf(cluster))).toBeLessThanOrEqual(1);
  });

  test('are in different zones as far as there are enough', () => {
    const cluster = clusterOf(['a', 'a', 'a', 'b', 'b', 'c'], 20);
    const zone = new Map(cluster.nodes.map((node) => [node.node, node.zone]));
    for (const { group } of cluster.groups) {
      const of = cluster.nodesOf(group).map((node) => zone.get(node));
      expect(new Set(of)).toEqual(new Set(['a', 'b', 'c']));
    }
  });

  test('are not placed on nodes that join, drain or are out of reach', () => {
    const cluster = new ClusterFixture(['', '', '', '']);
    cluster.set(1, { state: 'joining' });
    cluster.set(2, { state: 'draining' });
    cluster.set(3, { reachable: false });
    cluster.purposes = purposes(1);
    expect(plan(cluster.state, policy, cluster.now)).toEqual([
      { kind: 'create', purpose: cluster.purposes[0], nodes: [4] },
    ]);
  });

  test.each([
    { reachable: [true, true, true, false], nodes: [1, 2, 3] },
    { reachable: [true, true, false], nodes: [1, 2, 3] },
    // Most have to be in reach.
    { reachable: [true, false], nodes: [1] },
    { reachable: [true, true, false, false, false], nodes: [1, 2, 3], copies: 3 },
    { reachable: [true, true, false, false, false], nodes: [1, 2], copies: 5 },
  ])(
    'have replicas on nodes that are silent for a moment where there are no others: $reachable',
    ({ reachable, nodes, copies = 3 }) => {
      const cluster = new ClusterFixture(reachable.map(() => ''));
      for (const [i, isThere] of reachable.entries()) cluster.set(i + 1, { reachable: isThere });
      cluster.purposes = purposes(1);
      const [change] = plan(cluster.state, { ...policy, replicas: copies }, cluster.now);
      expect(change).toEqual({ kind: 'create', purpose: cluster.purposes[0], nodes });
    },
  );

  test('come at a bounded rate', () => {
    const cluster = new ClusterFixture(['', '', '']);
    cluster.purposes = purposes(planBounds.create + 1);
    expect(plan(cluster.state, policy, cluster.now)).toHaveLength(planBounds.create);
  });
});

describe('nodes', () => {
  test('that come get replicas and leaders, until all have about as many', () => {
    const cluster = clusterOf([''], 12);
    for (let nodes = 2; nodes <= 5; nodes++) {
      cluster.addNode('');
      settle(cluster);
      for (const { group } of cluster.groups) {
        expect(cluster.nodesOf(group)).toHaveLength(Math.min(nodes, 3));
      }
      expect(evenness(replicasOf(cluster))).toBeLessThanOrEqual(2);
      expect(evenness(leadersOf(cluster))).toBeLessThanOrEqual(1);
    }
  });

  test('of a new zone relieve zones that have two replicas of a group', () => {
    const cluster = clusterOf(['a', 'a', 'b'], 6);
    cluster.addNode('c');
    settle(cluster);
    const zone = new Map(cluster.nodes.map((node) => [node.node, node.zone]));
    for (const { group } of cluster.groups) {
      expect(new Set(cluster.nodesOf(group).map((node) => zone.get(node))).size).toBe(3);
    }
  });

  test('that are out of reach keep their replicas for a time; then others have them', () => {
    const cluster = clusterOf(['', '', '', ''], 8);
    cluster.set(2, { reachable: false });
    const before = cluster.groups;
    for (let i = 0; i < 59; i++) {
      cluster.apply(plan(cluster.state, policy, cluster.now));
      cluster.step();
    }
    expect(cluster.groups).toEqual(before);
    settle(cluster);
    expect(replicasOf(cluster).get(2)).toBe(0);
    for (const { group } of cluster.groups) expect(cluster.nodesOf(group)).toEqual([1, 3, 4]);
    cluster.set(2, { reachable: true });
    settle(cluster);
    expect(evenness(replicasOf(cluster))).toBeLessThanOrEqual(2);
  });

  test('that are lost keep their replicas where no other node could have them', () => {
    const cluster = clusterOf(['', '', ''], 2);
    cluster.set(3, { reachable: false });
    cluster.step(policy.rebuildAfterMs * 10);
    expect(settle(cluster).filter(({ kind }) => kind !== 'transfer')).toEqual([]);
    expect(cluster.nodesOf(16)).toEqual([1, 2, 3]);
  });

  test('that are drained give up their leaders first, then their replicas', () => {
    const cluster = clusterOf(['', '', '', ''], 8);
    cluster.set(1, { state: 'draining' });
    const first = plan(cluster.state, policy, cluster.now);
    expect(first.some(({ kind }) => kind === 'transfer')).toBe(true);
    const changes = settle(cluster);
    expect(replicasOf(cluster).get(1)).toBe(0);
    for (const { group } of cluster.groups) expect(cluster.nodesOf(group)).toEqual([2, 3, 4]);
    // The new one has caught up before the old one leaves.
    for (const { group } of cluster.groups) {
      const of = changes.filter((change) => 'group' in change && change.group === group);
      const kinds = of.map(({ kind }) => kind).filter((kind) => kind !== 'transfer');
      expect([[], ['add', 'leave', 'forget']]).toContainEqual(kinds);
    }
  });

  test('leave a node that keeps none from its next start on', () => {
    const cluster = clusterOf(['', '', '', ''], 8);
    cluster.set(1, { roles: ['gateway', 'control'] });
    settle(cluster);
    for (const { group } of cluster.groups) expect(cluster.nodesOf(group)).toEqual([2, 3, 4]);
    cluster.set(2, { roles: ['control'] });
    cluster.purposes = purposes(9);
    settle(cluster);
    expect(cluster.nodesOf(cluster.groups.at(-1)!.group)).toEqual([3, 4]);
  });

  test('that are drained leave even if no other node can have their replicas', () => {
    const cluster = clusterOf(['', '', ''], 2);
    cluster.set(1, { state: 'draining' });
    settle(cluster);
    expect(cluster.nodesOf(16)).toEqual([2, 3]);
    cluster.set(2, { state: 'draining' });
    settle(cluster);
    cluster.set(3, { state: 'draining' });
    settle(cluster);
    expect(cluster.nodesOf(16)).toEqual([3]);
  });

  test('that are drained keep what a majority needs while another node is out of reach', () => {
    const cluster = clusterOf(['', '', ''], 4);
    cluster.set(2, { reachable: false });
    cluster.set(3, { state: 'draining' });
    for (const ms of [0, policy.rebuildAfterMs * 2]) {
      cluster.step(ms);
      settle(cluster);
      for (const { group } of cluster.groups) {
        expect(cluster.nodesOf(group)).toEqual([1, 2, 3]);
        expect(cluster.leaderOf(group)).toBe(1);
      }
    }
    cluster.set(2, { reachable: true });
    settle(cluster);
    for (const { group } of cluster.groups) expect(cluster.nodesOf(group)).toEqual([1, 2]);
  });

  test('that are drained while out of reach leave as well', () => {
    const cluster = clusterOf(['', '', '', ''], 4);
    cluster.set(4, { reachable: false });
    cluster.set(4, { state: 'draining' });
    settle(cluster);
    expect(replicasOf(cluster).get(4)).toBe(0);
  });

  test('that are lost while a replica joins there do not hold the group up', () => {
    const cluster = clusterOf(['', '', '', '', ''], 1);
    cluster.set(1, { state: 'draining' });
    const [add] = plan(cluster.state, policy, cluster.now).filter(({ kind }) => kind === 'add');
    cluster.apply([add!]);
    cluster.set((add as { node: number }).node, { reachable: false });
    cluster.step(policy.rebuildAfterMs);
    settle(cluster);
    expect(cluster.nodesOf(16)).toHaveLength(3);
    expect(cluster.nodesOf(16)).not.toContain(1);
  });
});

describe('groups', () => {
  test('without a purpose are deleted after a while', () => {
    const cluster = clusterOf(['', '', ''], 3);
    cluster.purposes = purposes(1);
    expect(plan(cluster.state, policy, cluster.now)).toEqual([]);
    cluster.now += deleteAfterMs;
    const changes = plan(cluster.state, policy, cluster.now);
    expect(changes).toEqual([
      { kind: 'delete', group: 17 },
      { kind: 'delete', group: 18 },
    ]);
  });

  test('that are wanted again in time are kept', () => {
    const cluster = clusterOf(['', '', ''], 2);
    cluster.purposes = purposes(1);
    plan(cluster.state, policy, cluster.now);
    cluster.purposes = purposes(2);
    plan(cluster.state, policy, cluster.now);
    cluster.purposes = purposes(1);
    cluster.now += deleteAfterMs;
    expect(plan(cluster.state, policy, cluster.now)).toEqual([]);
  });

  test('without a leader are left alone', () => {
    const cluster = clusterOf(['', '', '', '', ''], 1);
    for (const node of cluster.nodesOf(16).slice(0, 2)) cluster.set(node, { reachable: false });
    cluster.step(policy.rebuildAfterMs);
    expect(plan(cluster.state, policy, cluster.now)).toEqual([]);
  });

  test('get more or fewer replicas when the setting changes', () => {
    const cluster = clusterOf(['', '', '', '', ''], 4, { ...policy, replicas: 1 });
    for (const replicas of [5, 3, 1]) {
      settle(cluster, { ...policy, replicas });
      for (const { group } of cluster.groups) expect(cluster.nodesOf(group)).toHaveLength(replicas);
    }
  });

  test('that are one too many leave the one that is out of reach, where a majority needs the others', () => {
    const cluster = clusterOf(['', '', ''], 2);
    cluster.set(2, { reachable: false });
    settle(cluster, { ...policy, replicas: 2 });
    for (const { group } of cluster.groups) expect(cluster.nodesOf(group)).toEqual([1, 3]);
  });

  test('a replica that has moved is not moved again when its node gets another one', () => {
    const cluster = clusterOf(['', ''], 1);
    cluster.addNode('');
    cluster.moves = [{ group: 16, from: 1, to: 3 }];
    settle(cluster);
    expect(cluster.moves).toEqual([]);
    expect(cluster.nodesOf(16)).toEqual([1, 2, 3]);
  });

  test('a replica moves where an operator wants it', () => {
    const cluster = clusterOf(['', '', '', ''], 4);
    const from = cluster.leaderOf(16);
    const to = [1, 2, 3, 4].find((node) => !cluster.nodesOf(16).includes(node))!;
    cluster.moves = [{ group: 16, from, to }];
    for (let i = 0; i < 20 && cluster.moves.length > 0; i++) {
      cluster.apply(plan(cluster.state, policy, cluster.now));
      cluster.step();
    }
    expect(cluster.nodesOf(16)).toContain(to);
    expect(cluster.nodesOf(16)).not.toContain(from);
    expect(cluster.moves).toEqual([]);
    settle(cluster);
    expect(cluster.nodesOf(16), 'and stays there').toContain(to);
  });

  test('a move that cannot be is given up', () => {
    const cluster = clusterOf(['', '', '', ''], 1);
    cluster.set(4, { state: 'draining' });
    cluster.moves = [
      { group: 16, from: cluster.nodesOf(16)[0]!, to: 4 },
      { group: 99, from: 1, to: 2 },
    ];
    settle(cluster);
    expect(cluster.moves).toEqual([]);
  });
});

describe('leaders under load', () => {
  /** Request units of the groups that each node leads. */
  const loads = (cluster: ClusterFixture): number[] => {
    const of = new Map(cluster.nodes.map(({ node }) => [node, 0]));
    for (const { group } of cluster.groups) {
      const node = cluster.leaderOf(group);
      of.set(node, of.get(node)! + (cluster.units.get(group) ?? 0));
    }
    return [...of.values()];
  };
  const worst = (cluster: ClusterFixture): number => {
    const of = loads(cluster);
    return Math.max(...of) / (of.reduce((sum, one) => sum + one, 0) / of.length);
  };
  /** Of 12 groups on three nodes those that node 1 leads are asked for most. */
  const skewed = (of: PlanPolicy = policy): ClusterFixture => {
    const cluster = clusterOf(['', '', ''], 12, of);
    for (const { group } of cluster.groups)
      cluster.units.set(group, cluster.leaderOf(group) === 1 ? 1000 : 50);
    return cluster;
  };

  test('go where there is less of it, and numbers of leaders alone leave it as it is', () => {
    const byCount = skewed();
    const before = worst(byCount);
    settle(byCount, { ...policy, spreadBy: 'count' });
    expect(worst(byCount)).toBe(before);
    expect(before).toBeGreaterThan(2);
    const byUnits = skewed();
    const changes = settle(byUnits);
    expect(worst(byUnits)).toBeLessThan(1.5);
    // Few change, and nothing is copied.
    expect(changes.map(({ kind }) => kind)).toEqual(changes.map(() => 'transfer'));
    expect(changes.length).toBeLessThanOrEqual(4);
  });

  test('stay where one of them is all of the load', () => {
    const cluster = clusterOf(['', '', ''], 6);
    cluster.units.set(cluster.groups[0]!.group, 10_000);
    expect(settle(cluster)).toEqual([]);
  });

  test('are spread by their number while there is little load', () => {
    const cluster = clusterOf(['', '', ''], 12);
    for (const { group } of cluster.groups)
      cluster.units.set(group, cluster.leaderOf(group) === 1 ? 70 : 0);
    expect(loads(cluster)).toContain(280);
    expect(settle(cluster)).toEqual([]);
  });

  test('leave a node that drains, busy or not, and come to rest', () => {
    const cluster = skewed();
    cluster.addNode('');
    cluster.set(1, { state: 'draining' });
    settle(cluster);
    expect(leadersOf(cluster).get(1)).toBe(0);
    expect(loads(cluster)[0]).toBe(0);
  });

  test('leave a node with a full disk for as long as it is full, busy or not, and stay where all are full', () => {
    const cluster = skewed();
    cluster.addNode('');
    settle(cluster);
    cluster.full.add(1);
    const before = cluster.groups.map(({ group }) => cluster.nodesOf(group).join());
    const changes = settle(cluster);
    expect(leadersOf(cluster).get(1)).toBe(0);
    expect(new Set(changes.map(({ kind }) => kind))).toEqual(new Set(['transfer']));
    expect(cluster.groups.map(({ group }) => cluster.nodesOf(group).join())).toEqual(before);
    // New groups are elsewhere.
    cluster.purposes = purposes(16);
    settle(cluster);
    for (const { group } of cluster.groups.slice(12))
      expect(cluster.nodesOf(group)).toEqual([2, 3, 4]);
    // Where a majority has no room, the leader that says so stays.
    const led = leadersOf(cluster);
    cluster.full.add(2);
    cluster.full.add(3);
    settle(cluster);
    expect(cluster.groups.every(({ group }) => cluster.nodesOf(group).length === 3)).toBe(true);
    for (const { group } of cluster.groups) {
      const room = cluster.nodesOf(group).filter((node) => !cluster.full.has(node));
      if (room.length === 2) expect(room).toContain(cluster.leaderOf(group));
    }
    expect(led.get(1)).toBe(0);
    cluster.full.add(4);
    expect(settle(cluster)).toEqual([]);
    cluster.purposes = purposes(17);
    settle(cluster);
    expect(cluster.groups).toHaveLength(16);
    cluster.full.clear();
    settle(cluster);
    expect(cluster.groups).toHaveLength(17);
    expect(leadersOf(cluster).get(1)).toBeGreaterThan(0);
  });

  test('of any loads come to rest, and never to a busier node than before', () => {
    const units = fc.array(fc.integer({ min: 0, max: 2000 }), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(units, (of) => {
        const cluster = clusterOf(['', '', '', ''], 8);
        cluster.groups.forEach(({ group }, i) => cluster.units.set(group, of[i]!));
        const total = of.reduce((sum, one) => sum + one, 0);
        const before = Math.max(...loads(cluster));
        settle(cluster);
        if (total >= 400) expect(Math.max(...loads(cluster))).toBeLessThanOrEqual(before);
        else expect(evenness(leadersOf(cluster))).toBeLessThanOrEqual(1);
      }),
      { numRuns: 40 },
    );
  });
});

test('whatever happens to nodes, a majority of every group stays, and all is well once they are back', () => {
  const event = fc.oneof(
    fc.record({
      kind: fc.constant('down' as const),
      node: fc.nat(),
      steps: fc.integer({ min: 0, max: 90 }),
    }),
    fc.record({
      kind: fc.constant('drain' as const),
      node: fc.nat(),
      steps: fc.integer({ min: 0, max: 20 }),
    }),
    fc.record({
      kind: fc.constant('add' as const),
      node: fc.nat(),
      steps: fc.integer({ min: 0, max: 20 }),
    }),
  );
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 8 }),
      fc.integer({ min: 1, max: 6 }),
      (events, groups) => {
        const cluster = clusterOf(['a', 'b', 'c', ''], groups);
        for (const { kind, node, steps } of events) {
          const chosen = (node % cluster.nodes.length) + 1;
          if (kind === 'add' && cluster.nodes.length < 8)
            cluster.addNode(node % 2 === 0 ? '' : 'a');
          const up = cluster.nodes.filter(({ state }) => state === 'up').length;
          if (kind === 'drain' && up > 3) cluster.set(chosen, { state: 'draining' });
          if (kind === 'down') cluster.set(chosen, { reachable: false });
          for (let i = 0; i < steps; i++) {
            cluster.apply(plan(cluster.state, policy, cluster.now));
            cluster.step();
          }
          // One node is down at a time: no group is ever without a leader.
          for (const { group } of cluster.groups)
            expect(cluster.logs.get(group)!.leader).not.toBe(0);
          if (kind === 'down') cluster.set(chosen, { reachable: true });
          cluster.step();
        }
        for (const { node } of cluster.nodes) cluster.set(node, { state: 'up' });
        settle(cluster);
        for (const { group, replicas } of cluster.groups) {
          expect(new Set(cluster.nodesOf(group)).size).toBe(3);
          expect(replicas.map(({ replica }) => replica).sort((a, b) => a - b)).toEqual(
            [...cluster.logs.get(group)!.voters].sort((a, b) => a - b),
          );
        }
        expect(evenness(leadersOf(cluster))).toBeLessThanOrEqual(Math.max(2, groups));
      },
    ),
    { numRuns: 60 },
  );
});

test('no change that is planned takes the majority of a group out of reach, whatever operators do while nodes are down', () => {
  const event = fc.record({
    kind: fc.constantFrom('down', 'down', 'up', 'drain', 'undo', 'add', 'replicas', 'move'),
    node: fc.nat(),
    steps: fc.integer({ min: 0, max: 90 }),
  });
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 5 }),
      fc.array(event, { maxLength: 10 }),
      (nodes, events) => {
        let of = policy;
        const cluster = clusterOf(
          Array.from({ length: nodes }, () => ''),
          2,
        );
        for (const { kind, node, steps } of events) {
          const chosen = (node % cluster.nodes.length) + 1;
          const up = cluster.nodes.filter(({ state }) => state === 'up').length;
          if (kind === 'down' || kind === 'up') cluster.set(chosen, { reachable: kind === 'up' });
          if (kind === 'drain' && up > 1) cluster.set(chosen, { state: 'draining' });
          if (kind === 'undo') cluster.set(chosen, { state: 'up' });
          if (kind === 'add' && cluster.nodes.length < 7) cluster.addNode('');
          if (kind === 'replicas') of = { ...policy, replicas: (node % 5) + 1 };
          const { group } = cluster.groups[node % 2]!;
          const [from] = cluster.nodesOf(group);
          if (kind === 'move' && !cluster.nodesOf(group).includes(chosen))
            cluster.moves = [{ group, from: from!, to: chosen }];
          for (let i = 0; i < steps; i++) {
            const changes = plan(cluster.state, of, cluster.now);
            expect(abandoned(cluster, changes)).toEqual([]);
            cluster.apply(changes);
            cluster.step();
          }
        }
        // What had to wait goes on once all are back.
        for (const { node } of cluster.nodes) cluster.set(node, { reachable: true });
        settle(cluster, of);
        const usable = cluster.nodes.filter(({ state }) => state === 'up').map((one) => one.node);
        for (const { group } of cluster.groups) {
          const members = cluster.nodesOf(group);
          expect(members.length).toBe(Math.min(of.replicas, usable.length));
          for (const node of members) expect(usable).toContain(node);
        }
      },
    ),
    { numRuns: 60 },
  );
});
