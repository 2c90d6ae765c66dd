// Clients of a table that a node first sees divided: it was away, or has only just started, while the partitions changed.

import { expect, test } from 'vitest';
import { GroupExecutor } from '../../access/gateway/pods/group-executor.ts';
import { GroupTicks } from '../../access/gateway/pods/group-ticks.ts';
import { Router } from '../../access/gateway/router.ts';
import type { GroupDefinition } from '../../contracts/cluster.ts';
import { firstPartition, type Partition } from '../../contracts/partition-map.ts';
import { modelProperties } from '../../contracts/table-properties.ts';
import { noLimits, type TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { TableDefinition } from '../../control/metadata/table-definition.ts';
import { ClusterRoutes } from './cluster-routes.ts';
import type { ClusterRows } from './cluster-rows.ts';
import { RedisTables } from './redis-tables.ts';

const tenant: TenantDefinition = {
  ...{
    name: 'default',
    number: 0,
    state: 'active',
    firstTable: 0,
    databases: 16,
    limits: noLimits,
  },
};
const group = 16;
const ofTenant: GroupDefinition = {
  ...{ group, tenant: 0, model: 'memory', epoch: 1, replicas: [], initial: [] },
};

function dividedTable(): TableDefinition {
  const partitions: Partition[] = [
    { number: firstPartition, first: 0, last: 8191, model: 'memory' },
    { number: firstPartition + 1, first: 8192, last: 16_383, model: 'memory' },
  ];
  const properties = { ...modelProperties('memory'), partitions: 2 };
  return { ...properties, id: 0, name: '0', model: 'memory', placement: { epoch: 2, partitions } };
}

function newExecutor(): GroupExecutor {
  return new GroupExecutor({
    ...{ group: () => group, node: 1, incarnation: 1, ticks: new GroupTicks(), waitMs: 1000 },
    ...{ local: () => undefined, remoteOf: () => undefined, refusalOf: () => undefined },
    ...{ mayWait: false, numbersTransactions: () => true },
  });
}

/** Whether a transaction that watches a key of table 0 is invalid once the node sees the table divided. `isKnown`: the node knows the group. */
function isTouched({ isKnown }: { isKnown: boolean }): boolean {
  const tables = new RedisTables('memory', () => []);
  const none = { tenants: [], users: [], tokens: [] };
  tables.follow({ whole: true, revision: 1, ...none, tenants: [tenant], gone: none });
  const executor = newExecutor();
  const others = newExecutor();
  const router = new Router();
  const rows = {
    ticks: new GroupTicks(),
    executor: (number: number) => (isKnown && number === group ? executor : undefined),
    awaited: () => others,
    waitingFor: ({ partition }: { partition?: number }) =>
      isKnown || partition !== undefined ? undefined : executor,
  };
  const routes = new ClusterRoutes({
    ...{ tables, router, entries: new Map(), rows: () => rows as unknown as ClusterRows },
    ...{ divided: () => {}, pricerOf: () => undefined, quotaModeOf: () => undefined },
    ...{ consistencyOf: () => undefined, asksOf: undefined },
  });
  routes.setGroups(isKnown ? [ofTenant] : []);
  const watch = { dirty: false, rowChanged: () => void (watch.dirty = true) };
  executor.observe(0, Buffer.from('key'), watch);
  tables.setDefinitions([dividedTable()]);
  router.setByTable((table) => routes.to(table), [rows.ticks], tables.tablesOfPartitions());
  routes.mapsChanged();
  return watch.dirty;
}

test('those who wait for a key hear of it where the group of a partition has gone before the node sees the table divided anew', () => {
  const tables = new RedisTables('memory', () => []);
  const none = { tenants: [], users: [], tokens: [] };
  tables.follow({ whole: true, revision: 1, ...none, tenants: [tenant], gone: none });
  const executors = new Map([group + 1, group + 2, group + 3].map((one) => [one, newExecutor()]));
  const router = new Router();
  const rows = {
    ticks: new GroupTicks(),
    executor: (number: number) => executors.get(number),
    awaited: newExecutor,
    waitingFor: () => undefined,
  };
  const routes = new ClusterRoutes({
    ...{ tables, router, entries: new Map(), rows: () => rows as unknown as ClusterRows },
    ...{ divided: () => {}, pricerOf: () => undefined, quotaModeOf: () => undefined },
    ...{ consistencyOf: () => undefined, asksOf: undefined },
  });
  const adopt = (definition: TableDefinition): void => {
    tables.setDefinitions([definition]);
    router.setByTable((table) => routes.to(table), [rows.ticks], tables.tablesOfPartitions());
    routes.mapsChanged();
  };
  const groupsOf = (numbers: readonly number[]): GroupDefinition[] =>
    numbers.map((n) => ({ ...ofTenant, group: group + 1 + n, partition: firstPartition + n }));
  routes.setGroups(groupsOf([0, 1]));
  adopt(dividedTable());
  let heard = 0;
  const key = Buffer.from('key');
  router.to(0).executor.observe(0, key, { rowChanged: () => heard++ });
  // The view, in which both partitions have given way to a third, comes before the definition.
  routes.setGroups(groupsOf([2]));
  executors.delete(group + 1);
  executors.delete(group + 2);
  const merged = { number: firstPartition + 2, first: 0, last: 16_383, model: 'memory' };
  adopt({ ...dividedTable(), placement: { epoch: 3, partitions: [merged] } });
  expect(heard).toBe(1);
});

test('watched keys count as touched where the change itself was not seen', () => {
  expect(isTouched({ isKnown: true })).toBe(true);
});

test('watched keys of clients that wait for a group count as touched, too', () => {
  expect(isTouched({ isKnown: false })).toBe(true);
});
