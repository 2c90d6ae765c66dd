import { afterEach, expect, test } from 'vitest';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { AdminFixture } from '../admin/admin-fixture.ts';
import { type ClusterAdmin, ClusterError } from './cluster-admin.ts';
import { clusterRoutes } from './cluster-routes.ts';

const report = {
  cluster: 7,
  node: 1,
  leader: 1,
  level: 2,
  wantedReplicas: 3,
  nodes: [],
  groups: [],
};
let f: AdminFixture;
let calls: unknown[][];

afterEach(() => f.close());

async function start(hasCluster = true): Promise<void> {
  calls = [];
  const note =
    (name: string) =>
    async (...words: unknown[]): Promise<void> => {
      calls.push([name, ...words]);
      if (words[0] === 404) throw new ClusterError(404, 'no such thing');
    };
  const cluster: ClusterAdmin = {
    report: async () => report,
    minutes: async (span) => {
      calls.push(['minutes', span.from, span.to]);
      const groups = [{ group: 17, units: Array.from({ length: span.to - span.from }, () => 2.5) }];
      return [{ node: 3, plane: 'redis', capacity: 4000, groups }];
    },
    findings: async () => [{ severity: 'notice', problem: 'a', remedy: 'b' }],
    setNodeState: note('state'),
    removeNode: note('remove'),
    transfer: note('transfer'),
    move: note('move'),
  };
  const routes = hasCluster ? cluster : undefined;
  f = await AdminFixture.start(realDisk, { moreRoutes: [(app) => clusterRoutes(app, routes)] });
  await f.addTenants();
}

test('operators see and change the cluster, viewers see it, tenants do not', async () => {
  await start();
  for (const who of ['operator', 'viewer']) {
    expect((await f.ask('GET', '/v1/cluster', undefined, who)).json()).toEqual(report);
  }
  const { findings } = (await f.ask('GET', '/v1/cluster/findings', undefined, 'viewer')).json() as {
    findings: object[];
  };
  expect(findings).toHaveLength(1);
  expect((await f.ask('GET', '/v1/cluster', undefined, 'shop')).status).toBe(403);
  expect((await f.ask('DELETE', '/v1/cluster/nodes/2', undefined, 'viewer')).status).toBe(403);
  expect(calls).toEqual([]);
});

test.each<[string, string, object | undefined, unknown[], number]>([
  ['PATCH', '/v1/cluster/nodes/2', { state: 'draining' }, ['state', 2, 'draining'], 200],
  ['DELETE', '/v1/cluster/nodes/2', undefined, ['remove', 2], 200],
  ['POST', '/v1/cluster/groups/17/transfer', { to: 3 }, ['transfer', 17, 3], 200],
  ['POST', '/v1/cluster/groups/17/move', { from: 1, to: 3 }, ['move', 17, 1, 3], 202],
])('%s %s', async (method, path, body, call, status) => {
  await start();
  expect((await f.ask(method, path, body)).status).toBe(status);
  expect(calls).toEqual([call]);
  expect((await f.ask(method, path.replace(/(nodes|groups)\/\d+/, '$1/x'), body)).status).toBe(400);
  expect((await f.ask(method, path.replace(/(nodes|groups)\/\d+/, '$1/404'), body)).status).toBe(
    404,
  );
  if (body !== undefined) expect((await f.ask(method, path, {})).status).toBe(400);
});

test('what replicas served is told by the minute, an hour at most', async () => {
  await start();
  const page = '/v1/cluster/minutes';
  const from = 28_000_000 * 60_000;
  const ask = (to: number, who = 'viewer') =>
    f.ask('GET', `${page}?from=${from}&to=${to}`, undefined, who);
  const answer = await ask(from + 2 * 60_000);
  expect(answer.json()).toEqual({
    planes: [
      { node: 3, plane: 'redis', capacity: 4000, groups: [{ group: 17, units: [2.5, 2.5] }] },
    ],
  });
  expect(calls).toEqual([['minutes', 28_000_000, 28_000_002]]);
  expect((await ask(from + 60 * 60_000)).status).toBe(200);
  for (const to of [from, from - 60_000, from + 61 * 60_000, from + 90_000]) {
    expect((await ask(to)).status).toBe(400);
  }
  expect((await ask(from + 60_000, 'shop')).status).toBe(403);
});

test('a node of a cluster forms no other one', async () => {
  await start();
  const answer = await f.ask('POST', '/v1/cluster/init', {});
  expect(answer.status).toBe(409);
  expect(answer.json()).toEqual({ error: 'this node is in a cluster already' });
});

test('a server on its own says that it is no node', async () => {
  await start(false);
  for (const [method, path] of [
    ['GET', '/v1/cluster'],
    ['GET', '/v1/cluster/findings'],
    ['DELETE', '/v1/cluster/nodes/1'],
    ['POST', '/v1/cluster/init'],
  ] as const) {
    const answer = await f.ask(method, path, method === 'POST' ? {} : undefined);
    expect(answer.status).toBe(409);
    expect(answer.text).toContain('cluster.listen');
  }
});
