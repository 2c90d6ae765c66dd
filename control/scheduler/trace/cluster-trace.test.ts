import { expect, test } from 'vitest';
import { tenantDemand } from '../tenant-demand.ts';
import { WorkingCluster } from '../working-cluster.ts';
import { clusterTrace, type RecordedCluster, type RecordedPlane } from './cluster-trace.ts';
import { readTrace, traceLines } from './trace-file.ts';
import { modelOf } from './trace-model.ts';

type Group = RecordedCluster['groups'][number];

const node = (number: number, state: 'up' | 'draining' | 'removed' = 'up') => ({
  node: number,
  zone: `zone${number}`,
  state,
});

/** Replicas on nodes 1 to 3. */
function group(number: number, leader: number, more: Partial<Group> = {}): Group {
  const replicas = [1, 2, 3].map((on) => ({ node: on, state: 'voter' as const, bytes: 1000 * on }));
  return { group: number, tenant: 5, model: 'kv', leader, replicas, ...more };
}

function plane(
  on: number,
  units: Record<number, number[]>,
  more: Partial<RecordedPlane> = {},
): RecordedPlane {
  const byGroup = new Map(Object.entries(units).map(([one, all]) => [Number(one), all]));
  return { node: on, plane: 'redis', capacity: 0, units: byGroup, ...more };
}

function cluster(more: Partial<RecordedCluster>): RecordedCluster {
  return {
    startAt: Date.parse('2026-01-01T00:00:00Z'),
    minutes: 2,
    nodes: [node(1), node(2), node(3)],
    groups: [group(17, 1)],
    planes: [],
    tenantOf: (number) => (number === 5 ? 'shop' : 'other'),
    tableOf: (partition) => (partition === 4096 ? 'shop/orders' : undefined),
    quotas: new Map(),
    ...more,
  };
}

test('a group becomes a partition, with the load of the leader and that of a follower', async () => {
  // The lead went from node 1 to node 2 in the second minute.
  const planes = [
    plane(1, { 17: [90, 4] }, { capacity: 300 }),
    plane(2, { 17: [6, 80] }),
    plane(3, { 17: [2, 8] }, { capacity: 200 }),
  ];
  const trace = clusterTrace(cluster({ groups: [group(17, 2)], planes }));
  expect(trace.series).toEqual([
    { id: 'shop/kv leader', values: { ru: Float32Array.of(90, 80) } },
    { id: 'shop/kv follower', values: { ru: Float32Array.of(4, 6) } },
  ]);
  expect(trace.partitions[0]!.replicas).toEqual([
    { pod: 'node1/redis', leads: false, healthy: true },
    { pod: 'node2/redis', leads: true, healthy: true },
    { pod: 'node3/redis', leads: false, healthy: true },
  ]);
  // A node that knows no capacity of its own has the largest of the others.
  const limits = new Map(trace.pods.map(({ id, limits: [limit] }) => [id, limit]));
  expect([1, 2, 3].map((one) => limits.get(`node${one}/redis`))).toEqual([300, 300, 200]);
  // What is written is read again, and makes a model.
  async function* lines(): AsyncGenerator<string> {
    for (const line of traceLines(trace)) yield line.trimEnd();
  }
  const model = modelOf(await readTrace(lines()));
  // No time series were used.
  expect(model.pods.ids).toEqual(['node1/redis', 'node2/redis', 'node3/redis']);
  const working = new WorkingCluster(model);
  expect(Array.from(working.podLoad.slice(0, 2))).toEqual([4, 6]);
});

test('partitions of a divided table are told apart, and a quota counts once', () => {
  const groups = [
    group(17, 1),
    group(18, 2, { partition: 4096 }),
    group(19, 3, { model: 'tsm', tenant: 6 }),
    group(20, 3, { partition: 4097 }),
  ];
  const planes = [
    plane(1, { 17: [10, 10] }),
    plane(2, { 18: [30, 50] }),
    plane(3, { 19: [1, 1] }, { plane: 'influx' }),
  ];
  const trace = clusterTrace(cluster({ groups, planes, quotas: new Map([['shop/redis', 400]]) }));
  expect(trace.partitions.map(({ id, table }) => [id, table])).toEqual([
    ['shop/kv', 'shop/kv'],
    ['shop/orders/4096', 'shop/orders'],
    ['other/tsm', 'other/tsm'],
    ['shop/partitions/4097', 'shop/partitions'],
  ]);
  expect(trace.tables.map(({ quota }) => quota)).toEqual([400, undefined, undefined, undefined]);
  expect(trace.partitions[2]!.replicas![0]!.pod).toBe('node1/influx');
  const working = new WorkingCluster(modelOf(trace));
  const shop = working.model.tenants.indexOf('shop');
  expect(working.tenantQuota[shop]).toBe(400);
  expect([...tenantDemand(working)(shop).values]).toEqual([40, 60]);
  // Nothing is known of capacities: 50 units a second on average over three pods are 40 % of their limits.
  expect(trace.pods[0]!.limits[0]).toBeCloseTo(50 / 3 / 0.4);
});

test('nodes that are gone, replicas that leave, and groups without a leader or a replica', () => {
  const groups = [
    group(17, 0, {
      replicas: [
        { node: 1, state: 'leaving', bytes: 1 },
        { node: 2, state: 'learner', bytes: 2 },
        { node: 3, state: 'voter', bytes: 3 },
        { node: 4, state: 'voter', bytes: 3 },
      ],
    }),
    group(18, 4, { replicas: [{ node: 4, state: 'voter', bytes: 3 }] }),
  ];
  const nodes = [node(1), node(2, 'draining'), node(3), node(4, 'removed')];
  const trace = clusterTrace(cluster({ groups, nodes, planes: [plane(3, { 17: [7, 7] })] }));
  expect(trace.nodes.map(({ id, state }) => [id, state])).toEqual([
    ['node1', 'active'],
    ['node2', 'draining'],
    ['node3', 'active'],
  ]);
  expect(trace.partitions).toHaveLength(1);
  expect(trace.partitions[0]!.replicas).toEqual([
    { pod: 'node2/redis', leads: false, healthy: false },
    { pod: 'node3/redis', leads: true, healthy: true },
  ]);
  expect(() => modelOf(trace)).not.toThrow();
});
