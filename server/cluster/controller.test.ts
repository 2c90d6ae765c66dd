import { afterEach, expect, test } from 'vitest';
import type { ClusterView } from '../../contracts/cluster.ts';
import { ClusterViewFeed } from './cluster-view.ts';
import { Controller } from './controller.ts';
import { FakeMetadata } from './controller-fixture.ts';
import { until } from '../../test/support/until.ts';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

interface Wish {
  tenants?: number[];
}

function controllerOf(metadata: FakeMetadata, wish: Wish = {}, reports: string[] = []) {
  const clock = { now: 1_000_000 };
  const controller = new Controller({
    metadata,
    catalogs: () => ({
      tenants: [0],
      tables: [],
      defaultModel: 'memory',
      ownerOf: () => 0,
      ...wish,
    }),
    policy: () => ({ replicas: 3, rebuildAfterMs: 60_000 }),
    report: (message) => reports.push(message),
    now: () => clock.now,
  });
  open.push(controller);
  return { controller, clock };
}

async function settle({ controller, clock }: ReturnType<typeof controllerOf>): Promise<void> {
  for (let calm = 0; calm < 40; ) {
    const { changes } = await controller.round();
    calm = changes.length === 0 ? calm + 1 : 0;
    clock.now += 1000;
  }
}

test('groups get numbers of their own, and replicas on different nodes', async () => {
  const metadata = new FakeMetadata(3);
  await settle(controllerOf(metadata, { tenants: [0, 7] }));
  const groups = await metadata.groups();
  expect(groups.map(({ group }) => group)).toEqual([16, 17, 18, 19]);
  expect(groups.map(({ tenant, model }) => `${tenant} ${model}`).sort()).toEqual([
    '0 memory',
    '0 tsm',
    '7 memory',
    '7 tsm',
  ]);
  for (const { replicas, initial, epoch } of groups) {
    expect(new Set(replicas.map(({ node }) => node)).size).toBe(3);
    expect(initial).toEqual(replicas.map(({ replica }) => replica));
    expect(epoch).toBe(1);
  }
});

test('a group number is not used twice, nor is the id of a replica', async () => {
  const metadata = new FakeMetadata(4);
  const wish: Wish = {};
  const run = controllerOf(metadata, wish);
  await settle(run);
  const seen = new Map<number, Set<number>>();
  for (let i = 0; i < 6; i++) {
    const drained = (i % 4) + 1;
    metadata.setNode(drained, { state: 'draining' });
    await settle(run);
    metadata.setNode(drained, { state: 'up' });
    for (const { group, replicas } of await metadata.groups()) {
      expect(replicas.some(({ node }) => node === drained)).toBe(false);
      const known = seen.get(group) ?? new Set();
      seen.set(group, known);
      // A replica that stayed is known, one on a node that was drained in between is new.
      for (const { replica } of replicas) known.add(replica);
    }
  }
  for (const ids of seen.values()) expect(ids.size).toBeGreaterThan(4);
  wish.tenants = [];
  run.clock.now += 60_000;
  await settle(run);
  expect(await metadata.groups()).toEqual([]);
  wish.tenants = [0];
  await settle(run);
  expect((await metadata.groups()).map(({ group }) => group)).toEqual([18, 19]);
});

test('two controllers that plan at once make one group of each', async () => {
  const metadata = new FakeMetadata(3);
  const [one, other] = [controllerOf(metadata), controllerOf(metadata)];
  await Promise.all([one.controller.round(), other.controller.round(), one.controller.round()]);
  expect(await metadata.groups()).toHaveLength(2);
});

test('leaders are spread by asking the nodes that lead', async () => {
  const metadata = new FakeMetadata(3);
  await settle(controllerOf(metadata, { tenants: [0, 1, 2] }));
  expect(metadata.transfers.length).toBeGreaterThan(0);
  for (const { asked, to } of metadata.transfers) expect(asked).not.toBe(to);
});

test('it works while this node leads the metadata, and not otherwise', async () => {
  const metadata = new FakeMetadata(3);
  metadata.isLeader = false;
  const { controller } = controllerOf(metadata);
  controller.start();
  await controller.round();
  expect(await metadata.groups()).toEqual([]);
  metadata.setLeader(true);
  await until(async () => (await metadata.groups()).length === 2);
});

test('a change of the catalogs is seen at once', async () => {
  const metadata = new FakeMetadata(3);
  const wish: Wish = {};
  const { controller } = controllerOf(metadata, wish);
  controller.start();
  await until(async () => (await metadata.groups()).length === 2);
  wish.tenants = [0, 1];
  await metadata.store.write([{ collection: 'tenants', id: 'b', body: {}, expected: 0 }]);
  await until(async () => (await metadata.groups()).length === 4);
});

test('an outage of the metadata is told once, and work goes on after it', async () => {
  const metadata = new FakeMetadata(3);
  const reports: string[] = [];
  metadata.store.writesLeft = 0;
  const { controller } = controllerOf(metadata, {}, reports);
  controller.start();
  await until(() => reports.length > 0);
  metadata.setNode(4, {});
  await until(() => metadata.store.writesLeft < -1);
  metadata.store.writesLeft = Infinity;
  await until(async () => (await metadata.groups()).length === 2);
  expect(reports).toEqual(['the cluster cannot be looked after: the store is gone']);
});

test('nothing is changed while most voters of the metadata are out of reach', async () => {
  const metadata = new FakeMetadata(3);
  const { controller } = controllerOf(metadata);
  metadata.isReachable = false;
  await expect(controller.round()).rejects.toThrow('out of reach');
  expect(await metadata.groups()).toEqual([]);
  metadata.isReachable = true;
  await controller.round();
  expect(await metadata.groups()).toHaveLength(2);
});

test('the view of nodes and groups follows both', async () => {
  const metadata = new FakeMetadata(1);
  await controllerOf(metadata).controller.round();
  const feed = await ClusterViewFeed.open(metadata, () => {});
  open.push(feed);
  const seen: ClusterView[] = [feed.view];
  feed.onChange((view) => seen.push(view));
  expect(seen[0]!.groups.map(({ group }) => group)).toEqual([16, 17]);
  metadata.setNode(2, {});
  await until(() => seen.at(-1)!.nodes.length === 2);
  await controllerOf(metadata).controller.round();
  await until(() => seen.at(-1)!.groups[0]!.replicas.length === 2);
  const [found] = await metadata.store.list('groups');
  await metadata.store.write([
    { collection: 'groups', id: found!.id, body: undefined, expected: found!.revision },
  ]);
  await until(() => seen.at(-1)!.groups.length === 1);
});
