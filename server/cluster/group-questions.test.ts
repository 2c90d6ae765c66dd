import { expect, test } from 'vitest';
import type { ClusterView, ReplicaStatus } from '../../contracts/cluster.ts';
import type { PlaneHost, Planes } from '../planes/plane-host.ts';
import { groupMinutes, groupStatus, handOver, transferGroup } from './group-questions.ts';

/** A plane with replicas of groups on node 1. Transfers take a moment, unless they never come to be. */
function planeOf(groups: readonly number[], takesOver = true, isUp = true) {
  const leaders = new Map(groups.map((group) => [group, 1]));
  const orders: { group: number; to: number }[] = [];
  const status = (group: number): ReplicaStatus => {
    const leader = leaders.get(group)!;
    const role = leader === 1 ? 'leader' : 'follower';
    return {
      group,
      replica: 11,
      role,
      leader,
      term: 1,
      applied: 0,
      rows: 0,
      bytes: 0,
      voters: [11, 12, 13],
      learners: [],
    };
  };
  const plane = {
    isUp,
    call: async (name: string, order: { group: number; to: number }) => {
      if (name === 'groupStatus') return groups.map(status);
      orders.push(order);
      if (takesOver) setTimeout(() => leaders.set(order.group, order.to), 30);
      return undefined;
    },
  } as unknown as PlaneHost;
  return { plane, orders };
}

function planesOf(redis: PlaneHost, influx: PlaneHost): Planes {
  return { redis, influx };
}

const view: ClusterView = {
  nodes: [],
  groups: [16, 17, 18].map((group) => ({
    group,
    tenant: 0,
    model: 'memory',
    epoch: 1,
    initial: [],
    replicas: [1, 2, 3].map((node) => ({ node, replica: 10 + node, state: 'voter' })),
  })),
};

test('replicas of both planes are told, but of one that is not up', async () => {
  const planes = planesOf(planeOf([16, 17]).plane, planeOf([18]).plane);
  expect((await groupStatus(planes)).map(({ group }) => group)).toEqual([16, 17, 18]);
  const half = planesOf(planeOf([16]).plane, planeOf([18], true, false).plane);
  expect((await groupStatus(half)).map(({ group }) => group)).toEqual([16]);
});

test('a transfer is of the plane with the group, and ends when the other node leads', async () => {
  const [redis, influx] = [planeOf([16]), planeOf([18])];
  const planes = planesOf(redis.plane, influx.plane);
  await transferGroup(planes, { group: 18, to: 2 });
  expect(redis.orders).toEqual([]);
  expect(influx.orders).toEqual([{ group: 18, to: 2 }]);
  expect((await groupStatus(planes))[1]!.leader).toBe(2);
  await expect(transferGroup(planes, { group: 99, to: 2 })).rejects.toThrow(
    'no replica of group 99',
  );
});

test('a transfer that does not come to be is said', async () => {
  const planes = planesOf(planeOf([16], false).plane, planeOf([]).plane);
  await expect(transferGroup(planes, { group: 16, to: 2 })).rejects.toThrow(
    'did not take over group 16',
  );
});

test('before a stop all leaders go to nodes that are in reach, spread over them', async () => {
  const [redis, influx] = [planeOf([16, 17]), planeOf([18])];
  await handOver(planesOf(redis.plane, influx.plane), view, new Set([1, 2, 3]));
  const orders = [...redis.orders, ...influx.orders].map(({ to }) => to);
  expect(orders.sort((a, b) => a - b)).toEqual([2, 2, 3]);
  const alone = planeOf([16]);
  await handOver(planesOf(alone.plane, planeOf([]).plane), view, new Set([1]));
  expect(alone.orders).toEqual([]);
});

test('loads of both planes are told, but of one that is not up, and for an hour at most', async () => {
  const plane = (name: 'redis' | 'influx', isUp: boolean): PlaneHost =>
    ({
      isUp,
      call: async (_: string, { from, to }: { from: number; to: number }) => ({
        plane: name,
        capacity: 100,
        groups: [{ group: 16, units: Array.from({ length: to - from }, () => 1) }],
      }),
    }) as unknown as PlaneHost;
  const planes = planesOf(plane('redis', true), plane('influx', false));
  expect(await groupMinutes(planes, { from: 7, to: 9 })).toEqual([
    { plane: 'redis', capacity: 100, groups: [{ group: 16, units: [1, 1] }] },
  ]);
  await expect(groupMinutes(planes, { from: 0, to: 61 })).rejects.toThrow('at most 60 minutes');
});
