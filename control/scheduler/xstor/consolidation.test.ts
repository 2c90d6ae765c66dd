import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ClusterBuilder } from '../cluster-builder.ts';
import { refusalOf, usualLimits } from '../hard-limits.ts';
import { Chance } from '../simulation/chance.ts';
import { carriedOut, WorkingCluster } from '../working-cluster.ts';
import { formGroups, lossBound, lossProbability } from './copysets.ts';
import { evictions, GatewayScaler, type HostNode, hostsFor } from './gateway-scaler.ts';
import { modelMix, usualModelMix } from './model-mix.ts';

describe('subcluster groups', () => {
  test('are of whole size, with zones as equal as can be; the rest waits', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100 }), fc.constantFrom(9, 27), (count, size) => {
        const waiting = Array.from({ length: count }, (_, node) => ({ node, zone: node % 3 }));
        const groups = formGroups(waiting, size);
        expect(groups).toHaveLength(Math.floor(count / size));
        const all = groups.flat();
        expect(new Set(all).size).toBe(all.length);
        for (const group of groups) {
          expect(group).toHaveLength(size);
          const zones = [0, 1, 2].map((zone) => group.filter((node) => node % 3 === zone).length);
          expect(Math.max(...zones) - Math.min(...zones)).toBeLessThanOrEqual(1);
        }
      }),
    );
  });

  test('bound what three failed disks can lose', () => {
    expect(lossBound(27)).toBeCloseTo(0.00625, 5);
    expect(lossBound(9)).toBeCloseTo(0.0049, 4);
    const partitions = [
      [0, 1, 2],
      [2, 1, 0],
      [0, 1, 3],
    ];
    expect(lossProbability(partitions, 4)).toBe(2 / 4);
  });

  test('get nothing while one of their nodes is being added', () => {
    const builder = new ClusterBuilder({ dimensions: ['cpu'], points: 1, pointSeconds: 60 });
    for (let node = 0; node < 6; node++) {
      builder.node({ id: `n${node}`, state: node === 4 ? 'adding' : 'active' });
      builder.pod({ id: `p${node}`, node, subcluster: Math.floor(node / 3), limits: [1] });
    }
    builder.table('t', 't');
    const row = builder.row([0]);
    builder.partition({ id: '0', table: 0, bytes: 1, leader: { row }, follower: { row } });
    builder.replica(0, 0, true);
    const cluster = new WorkingCluster(builder.build());
    const limits = { ...usualLimits, crossSubcluster: true };
    const refused = [1, 2, 3, 5].filter((pod) => refusalOf(cluster, 0, pod, limits) !== undefined);
    expect(refused).toEqual([3, 5]);
  });
});

describe('pods of the in-memory model', () => {
  test('move within the threshold and the cap, keep replicas apart, and leave only empty nodes', () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const chance = new Chance(seed);
        const builder = new ClusterBuilder({ dimensions: ['cpu'], points: 1, pointSeconds: 60 });
        for (let node = 0; node < 10; node++) {
          const hardware = node < 4 ? 'memory' : 'ssd';
          builder.node({ id: `n${node}`, hardware, memoryBytes: 100 });
        }
        const table = builder.table('t');
        const leader = { row: builder.row([1]) };
        const partitions = Array.from({ length: 8 }, (_, i) =>
          builder.partition({ id: `t/${i}`, table, leader }),
        );
        const held = new Set<string>();
        for (let i = 0; i < 20; i++) {
          const node = chance.below(10);
          const memoryBytes = chance.uniform(5, 25);
          const pod = builder.pod({ id: `p${i}`, node, model: 'memory', limits: [1], memoryBytes });
          const partition = chance.pick(partitions);
          if (held.has(`${node}/${partition}`)) continue;
          held.add(`${node}/${partition}`);
          builder.replica(partition, pod, false);
        }
        const model = builder.build();
        const parameters = { ...usualModelMix, moves: 1 + chance.below(10) };
        const proposals = modelMix(parameters).plan(model, { now: 0, rng: chance });
        const after = carriedOut(model, proposals);
        const moves = proposals.filter(({ change }) => change.kind === 'move-pod');
        expect(moves.length).toBeLessThanOrEqual(parameters.moves);
        const used = model.nodes.ids.map(() => 0);
        after.nodeOfPod.forEach((node, pod) => {
          used[node]! += model.pods.memoryBytes[pod]!;
        });
        for (const { change } of moves) {
          if (change.kind !== 'move-pod') continue;
          expect(change.fromNode).toBeLessThan(4);
          expect(used[change.toNode]).toBeLessThanOrEqual(75);
        }
        after.isNodeDisabled.forEach((isDisabled, node) => {
          if (isDisabled) expect(used[node]).toBeCloseTo(0);
        });
        for (const replicas of after.replicasOfPartition) {
          const nodes = replicas.map((replica) => after.nodeOfPod[after.podOf[replica]!]);
          expect(new Set(nodes).size).toBe(nodes.length);
        }
      }),
      { numRuns: 200 },
    );
  });
});

test('pods of the in-memory model go to the first node with room where not all have room, and else to the emptiest', () => {
  const targets = (ssdMemory: number): number[] => {
    const builder = new ClusterBuilder({ dimensions: ['cpu'], points: 1, pointSeconds: 60 });
    builder.node({ id: 'm', hardware: 'memory', memoryBytes: 100 });
    for (let pod = 0; pod < 4; pod++) {
      builder.pod({ id: `m${pod}`, node: 0, model: 'memory', limits: [1], memoryBytes: 10 });
    }
    for (const [node, used] of [20, 10].entries()) {
      builder.node({ id: `s${node}`, hardware: 'ssd', memoryBytes: ssdMemory });
      const pod = { id: `s${node}`, node: node + 1, limits: [1], memoryBytes: used };
      builder.pod({ ...pod, model: 'memory' });
    }
    const proposals = modelMix().plan(builder.build(), { now: 0, rng: new Chance(1) });
    return proposals.flatMap(({ change }) => (change.kind === 'move-pod' ? [change.toNode] : []));
  };
  expect(targets(100)).toEqual([2, 1, 2, 1]);
  // Room for one pod on the first node, and for two on the second.
  expect(targets(40)).toEqual([1, 2, 2]);
});

describe('gateways', () => {
  test('follow the load up at once, and down after five minutes of less', () => {
    const scaler = new GatewayScaler();
    expect(scaler.desired(0, 10, 0.7)).toBe(10);
    expect(scaler.desired(15_000, 10, 0.76)).toBe(10);
    expect(scaler.desired(30_000, 10, 1.4)).toBe(20);
    expect(scaler.desired(45_000, 20, 0.35)).toBe(20);
    expect(scaler.desired(200_000, 20, 0.35)).toBe(20);
    expect(scaler.desired(330_001, 20, 0.35)).toBe(10);
    expect(scaler.desired(700_000, 10, 0)).toBe(2);
  });

  test('go to the nodes with the lowest use, and leave those that need their processors', () => {
    const host = (node: number, cpuP95: number, more: Partial<HostNode> = {}): HostNode => ({
      node,
      cpuP95,
      cpu: cpuP95,
      memory: 0.3,
      gateways: 1,
      ...more,
    });
    const none = { gateways: 0 };
    const full = host(3, 0.1, { memory: 0.6, gateways: 0 });
    // One that is there, or is placed, counts as 1.5 x .2.
    const nodes = [host(0, 0.45, none), host(1, 0.1, none), host(2, 0.21), full];
    expect(hostsFor(3, nodes, 0.2)).toEqual([1, 1, 0]);
    expect(hostsFor(9, nodes, 0.2)).toEqual([1, 1, 0]);
    const busy = [host(0, 0.7), host(1, 0.7, { gateways: 0 }), host(2, 0.3)];
    expect(evictions(busy)).toEqual([0]);
  });
});
