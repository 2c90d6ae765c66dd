import { expect, test } from 'vitest';
import { defaultTableProperties } from '../../contracts/table-properties.ts';
import { firstPartition, type Partition } from '../../contracts/partition-map.ts';
import type { TableDefinition } from '../../control/metadata/table-definition.ts';
import {
  noLimits,
  type TenancyUpdate,
  type TenantDefinition,
} from '../../contracts/tenancy/definitions.ts';
import { RedisTables } from './redis-tables.ts';

function tenant(name: string, number: number, change: Partial<TenantDefinition> = {}) {
  const firstTable = number === 0 ? 0 : 4096 + (number - 1) * 16;
  const state = 'active' as const;
  return { name, number, state, firstTable, databases: 16, limits: noLimits, ...change };
}

function update(parts: Partial<TenancyUpdate>): TenancyUpdate {
  const gone = { tenants: [], users: [], tokens: [] };
  return { whole: false, revision: 1, tenants: [], users: [], tokens: [], gone, ...parts };
}

function definition(id: number, change: Partial<TableDefinition> = {}): TableDefinition {
  return {
    ...defaultTableProperties,
    id,
    name: `db${id}`,
    model: 'memory',
    ...change,
  };
}

const sizes = new Map<number, number>();
const holder = {
  tableSize: (table: number) => ({ rows: sizes.get(table) ?? 0 }),
  tableBytes: (table: number) => (sizes.get(table) ?? 0) * 100,
};

function tables(isCluster = false): RedisTables {
  sizes.clear();
  const made = new RedisTables('memory', () => [holder], isCluster);
  made.follow(update({ whole: true, tenants: [tenant('default', 0), tenant('b', 2)] }));
  made.follow(update({ tenants: [tenant('a', 1)] }));
  return made;
}

test('a table belongs to the tenant in whose span it is', () => {
  const of = tables();
  const check = (table: number, name: string | undefined) =>
    expect(of.ownerOf(table)?.name, `table ${table}`).toBe(name);
  check(0, 'default');
  check(15, 'default');
  check(16, undefined);
  check(4095, undefined);
  check(4096, 'a');
  check(4111, 'a');
  check(4112, 'b');
  check(4127, 'b');
  check(4128, undefined);
  of.follow(update({ gone: { tenants: ['a'], users: [], tokens: [] } }));
  check(4100, undefined);
  check(4112, 'b');
  expect(of.tenant(1)).toBeUndefined();
  expect(of.tenant(2)?.name).toBe('b');
});

test('a table without a definition is one of the default model, without rules', () => {
  const of = tables();
  const [memory, kv] = [of.rulesOf('memory'), of.rulesOf('kv')];
  expect(memory.get(4096)).toEqual({
    readOnly: false,
    ttlDefaultMs: 0,
    maxRowBytes: Infinity,
    writePriority: 'normal',
    quotaMode: 'server',
    cacheBypass: false,
  });
  expect(kv.get(4096)).toBeUndefined();
  of.setDefinitions([definition(4096, { model: 'kv', readOnly: true, maxRowBytes: 7 })]);
  expect(memory.get(4096)).toBeUndefined();
  expect(kv.get(4096)).toMatchObject({ readOnly: true, maxRowBytes: 7 });
  of.setDefinitions([]);
  of.defaultModel = 'kv';
  expect(memory.get(4096)).toBeUndefined();
  expect(kv.get(4096)).toMatchObject({ readOnly: false, maxRowBytes: Infinity });
});

test('nothing more is written for a tenant that is going, or for nobody', () => {
  const of = tables();
  const rules = of.rulesOf('memory');
  expect(rules.get(4096)!.readOnly).toBe(false);
  of.follow(update({ tenants: [tenant('a', 1, { state: 'suspended' })] }));
  expect(rules.get(4096)!.readOnly).toBe(false);
  of.follow(update({ tenants: [tenant('a', 1, { state: 'dropping' })] }));
  expect(rules.get(4096)!.readOnly).toBe(true);
  of.follow(update({ gone: { tenants: ['a'], users: [], tokens: [] } }));
  expect(rules.get(4096)!.readOnly).toBe(true);
  expect(rules.get(100_000)!.readOnly).toBe(true);
});

test('limits count all tables of a tenant, and follow changes', () => {
  const of = tables();
  const rules = of.rulesOf('memory');
  sizes.set(4096, 2);
  sizes.set(4100, 3);
  sizes.set(4112, 100);
  const limits = (change: Partial<TenantDefinition['limits']>) =>
    of.follow(update({ tenants: [tenant('a', 1, { limits: { ...noLimits, ...change } })] }));
  const refusal = (table = 4096) => rules.get(table)!.quota?.refusal();
  expect(refusal()).toBeUndefined();
  limits({ keys: 6 });
  expect(refusal()).toBeUndefined();
  sizes.set(4097, 1);
  expect(refusal(4097)).toBe("LIMIT tenant 'a' is at its limit keys: it has 6 and may have 6");
  expect(refusal()).toBe("LIMIT tenant 'a' is at its limit keys: it has 6 and may have 6");
  expect(refusal(4112)).toBeUndefined();
  limits({ storedBytes: 500 });
  expect(refusal()).toBe(
    "LIMIT tenant 'a' is at its limit storedBytes: it has 600 and may have 500",
  );
  limits({});
  expect(refusal()).toBeUndefined();
});

test('ten thousand tenants have a table each', () => {
  const of = tables();
  const rules = of.rulesOf('memory');
  for (let i = 3; i < 10_003; i++) of.follow(update({ tenants: [tenant(`t${i}`, i)] }));
  for (let i = 3; i < 10_003; i++) expect(rules.get(4096 + (i - 1) * 16)!.readOnly).toBe(false);
  expect(of.ownerOf(4096 + 9999 * 16)?.name).toBe('t10000');
});

test('a partition that rows are copied to is filling, and counts once it is served', () => {
  const of = tables();
  of.follow(update({ tenants: [tenant('a', 1, { limits: { ...noLimits, keys: 100 } })] }));
  const table = 4096;
  const own = { number: table, first: 0, last: 16_383, model: 'memory' };
  const target = { ...own, number: 0x5000_0000 };
  const change = { sources: [table], targets: [target] };
  const rules = of.rulesOf('memory');
  of.setDefinitions([definition(table, { placement: { epoch: 1, partitions: [own], change } })]);
  sizes.set(table, 60).set(target.number, 60);
  expect(rules.get(target.number)!.isFilling).toBe(true);
  expect(rules.get(table)!.isFilling).not.toBe(true);
  expect(rules.get(table)!.quota!.refusal()).toBeUndefined();
  of.setDefinitions([definition(table, { placement: { epoch: 2, partitions: [target] } })]);
  sizes.set(table, 0).set(target.number, 100);
  expect(rules.get(target.number)!.isFilling).toBe(false);
  expect(rules.get(target.number)!.quota!.refusal()).toContain('it has 100 and may have 100');
});

test('in a cluster a table stays divided as in the latest map, whatever order the definitions come in', () => {
  const of = tables(true);
  const [before, after] = [firstPartition, firstPartition + 1].map((number) => {
    return { number, first: 0, last: 16_383, model: 'memory' };
  });
  const divided = (epoch: number, partition: Partition, change: Partial<TableDefinition> = {}) =>
    definition(0, { placement: { epoch, partitions: [partition] }, ...change });
  of.setDefinition(divided(3, after!));
  of.setDefinitions([divided(2, before!, { readOnly: true }), definition(1)]);
  expect(of.partitionsOf(0)).toEqual([after]);
  expect(of.knows(before!.number)).toBe(false);
  expect(of.definition(0)?.readOnly).toBe(true);
  of.setDefinitions([definition(0), definition(1)]);
  expect(of.isDivided(0)).toBe(true);
  of.setDefinitions([divided(4, before!)]);
  expect(of.partitionsOf(0)).toEqual([before]);
});

test('the coordinator of a change divides a table, and changes nothing else', () => {
  const of = tables(true);
  const partition = { number: 0, first: 0, last: 16_383, model: 'memory' };
  const attempt = (n: number, change: Partial<TableDefinition> = {}): TableDefinition => {
    const targets = [{ ...partition, number: firstPartition }];
    const placement = {
      epoch: 1,
      partitions: [partition],
      change: { sources: [0], targets, attempt: n },
    };
    return definition(0, { placement, ...change });
  };
  of.setDefinitions([definition(0, { readOnly: true })]);
  of.divide(attempt(1));
  expect(of.knows(firstPartition)).toBe(true);
  expect(of.definition(0)?.readOnly).toBe(true);
  of.divide(attempt(3));
  of.divide(attempt(2));
  expect(of.definition(0)?.placement?.change?.attempt).toBe(3);
});
