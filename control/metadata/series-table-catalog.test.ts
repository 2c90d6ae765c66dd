import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { modelProperties } from '../../contracts/table-properties.ts';
import { EmbeddedDocumentStore } from './embedded-document-store.ts';
import {
  type SeriesOwner,
  SeriesTableCatalog,
  type SeriesPartition,
  type SeriesTableHolder,
} from './series-table-catalog.ts';
import { TableCatalog } from './table-catalog.ts';
import type { SeriesTableDefinition, TableChange } from './table-definition.ts';
import { Tables } from './tables.ts';

const hour = 3_600_000;

/** The plane: databases by tenant, and what it was told. */
class FakePlane implements SeriesTableHolder {
  readonly names = new Map<number, string[]>();
  told: readonly SeriesTableDefinition[] = [];
  objection: string | undefined;

  async databases(tenant: number): Promise<string[]> {
    return this.names.get(tenant) ?? [];
  }

  async createDatabase(tenant: number, name: string): Promise<void> {
    if (name.startsWith('bad')) throw new Error('invalid name');
    this.names.set(tenant, [...(this.names.get(tenant) ?? []), name]);
  }

  async partitions(tenant: number, name: string): Promise<SeriesPartition[]> {
    return [{ number: 1, series: `${tenant} ${name}`.length }];
  }

  async setTables(tables: readonly SeriesTableDefinition[]): Promise<void> {
    if (this.objection !== undefined) throw new Error(this.objection);
    this.told = tables;
  }
}

let path: string;
let store: EmbeddedDocumentStore;
let plane: FakePlane;
let catalog: SeriesTableCatalog;
const shop: SeriesOwner = { name: 'shop', number: 7, state: 'active' };
let owners: SeriesOwner[];

async function open(): Promise<void> {
  const owner = (tenant: string) => owners.find(({ name }) => name === tenant);
  catalog = await SeriesTableCatalog.open(store, { owner });
  catalog.attach(plane);
}

beforeEach(async () => {
  path = mkdtempSync(join(tmpdir(), 'polyrow-series-tables-'));
  store = await EmbeddedDocumentStore.open(path);
  plane = new FakePlane();
  plane.names.set(0, ['telegraf']);
  owners = [shop];
  await open();
});
afterEach(async () => {
  await store.close();
  rmSync(path, { recursive: true });
});

const refused = async (promise: Promise<unknown>): Promise<string> =>
  await promise.then(
    () => 'done',
    (error: Error & { reason: string }) => `${error.reason}: ${error.message}`,
  );

test('a database has the properties of its model until somebody gives it others', async () => {
  expect(await catalog.find('default', 'telegraf')).toEqual({
    tenant: 'default',
    definition: { ...modelProperties('series'), model: 'series', tenant: 0, name: 'telegraf' },
    explicit: false,
  });
  expect(await catalog.find('default', 'nothing')).toBeUndefined();
  const { definition } = await catalog.alter('default', 'telegraf', { readOnly: true });
  expect(definition).toMatchObject({ readOnly: true, writePriority: 'high' });
  expect(plane.told).toEqual([definition]);
  await open();
  expect(catalog.definitions()).toEqual([definition]);
  await catalog.reset('default', 'telegraf');
  expect([catalog.definitions(), plane.told]).toEqual([[], []]);
});

test('one that is created is made with its properties', async () => {
  await catalog.create('shop', 'd', { ttlDefaultMs: hour, shardingKind: 'hash' });
  expect(plane.names.get(7)).toEqual(['d']);
  expect(plane.told).toMatchObject([{ tenant: 7, name: 'd', ttlDefaultMs: hour }]);
  expect(await refused(catalog.create('shop', 'd', {}))).toBe(
    'conflict: table d already exists: alter it instead',
  );
  expect((await catalog.tablesOf('shop')).map(({ definition }) => definition.name)).toEqual(['d']);
  expect(await refused(catalog.create('shop', 'bad', {}))).toMatch(/^conflict: .*invalid name/);
  expect(catalog.definitions()).toHaveLength(1);
});

test('what cannot be is refused, and changes nothing', async () => {
  const check = async (change: TableChange, message: string) => {
    expect(await refused(catalog.alter('default', 'telegraf', change))).toContain(message);
  };
  await check({ ttlDefaultMs: hour - 1 }, 'invalid: ttlDefaultMs cannot be 3599999');
  await check({ ttlDefaultMs: -1 }, 'invalid: ttlDefaultMs cannot be -1');
  await check({ maxRowBytes: 1.5 }, 'invalid: maxRowBytes cannot be 1.5');
  await check({ model: 'kv' }, 'invalid: InfluxDB database telegraf cannot be of model kv');
  await check({ name: 'other' }, 'cannot be given another name');
  await check({ shardingKind: 'range' }, 'invalid: shardingKind range is not yet available');
  await check({ consistency: 'weak' as 'strong' }, 'invalid: consistency: expected strong');
  for (const name of ['', 'a/b', '..', 'a\u0001b', 'x'.repeat(256)]) {
    expect(await refused(catalog.create('default', name, {}))).toContain('invalid: a database');
  }
  expect(await refused(catalog.alter('default', 'nothing', {}))).toContain('missing: no InfluxDB');
  expect(await refused(catalog.alter('nobody', 'd', {}))).toBe('missing: no tenant nobody');
  plane.objection = 'not now';
  await check({ readOnly: true }, 'conflict: table telegraf cannot change so: not now');
  expect(catalog.definitions()).toEqual([]);
  await open();
  expect(catalog.definitions()).toEqual([]);
});

test('a tenant that is dropped leaves nothing, and gets nothing more', async () => {
  await catalog.create('shop', 'd', { readOnly: true });
  await catalog.alter('default', 'telegraf', { readOnly: true });
  owners = [{ ...shop, state: 'dropping' }];
  await catalog.forgetTenant(shop);
  expect(plane.told).toMatchObject([{ tenant: 0 }]);
  expect(await refused(catalog.create('shop', 'e', {}))).toBe('missing: no tenant shop');
  await open();
  expect(catalog.definitions()).toMatchObject([{ tenant: 0, name: 'telegraf' }]);
});

test('properties from a backup go over what there is, but for those that are not available', async () => {
  const consistency = { kind: 'bounded', maxStalenessMs: 1, maxLagEntries: 2 } as const;
  const change = { shardingKind: 'range', maxRowBytes: 9, consistency } as const;
  await catalog.adopt('default', 'telegraf', change);
  await catalog.adopt('default', 'new', change);
  expect(catalog.definitions()).toMatchObject([
    { name: 'telegraf', shardingKind: 'hash', maxRowBytes: 9, consistency },
    { name: 'new', shardingKind: 'hash', maxRowBytes: 9, consistency },
  ]);
});

test('two servers on one store see each other’s changes when they make one', async () => {
  const other = await SeriesTableCatalog.open(store);
  await catalog.alter('default', 'telegraf', { readOnly: true });
  await other.create('default', 'telegraf', { maxRowBytes: 5 }).catch(() => {});
  other.attach(plane);
  await other.alter('default', 'telegraf', { maxRowBytes: 5 });
  expect(other.definitions()).toMatchObject([{ readOnly: true, maxRowBytes: 5 }]);
});

describe('names of all tables', () => {
  let tables: Tables;
  beforeEach(async () => {
    const owner = { name: 'shop', firstTable: 4096, databases: 2 };
    const rows = await TableCatalog.open(store, {
      databases: 2,
      defaultModel: 'memory',
      owners: {
        owner: (name) => (name === 'shop' ? owner : undefined),
        ownerOf: (table) => (table >= 4096 ? owner : undefined),
      },
    });
    tables = new Tables(rows, catalog);
    plane.names.set(0, ['telegraf', 'orders', '1']);
    plane.names.set(7, ['d']);
    await rows.alter('0', { name: 'orders' });
  });

  test('Redis has numbers and its own names, InfluxDB the others', async () => {
    const check = async (reference: string, expected: object, within?: string) =>
      expect(await tables.describe(reference, within)).toMatchObject(expected);
    await check('0', { model: 'memory', database: 0 });
    await check('1', { model: 'memory', database: 1 });
    await check('series:1', { model: 'series', database: '1' });
    await check('orders', { model: 'memory', name: 'orders' });
    await check('series:orders', { model: 'series', name: 'orders' });
    await check('telegraf', { model: 'series', tenant: 'default' });
    await check('shop/d', { model: 'series', tenant: 'shop', database: 'd' });
    await check('d', { tenant: 'shop', database: 'd' }, 'shop');
    await check('series:shop/d', { tenant: 'shop', database: 'd' }, 'shop');
    await check('shop/1', { model: 'memory', tenant: 'shop', database: 1 });
  });

  test('nobody names what is another’s', async () => {
    expect(await refused(tables.describe('telegraf', 'shop'))).toMatch(/^missing/);
    expect(await refused(tables.describe('default/telegraf', 'shop'))).toMatch(/^missing/);
    expect(await refused(tables.describe('series:default/telegraf', 'shop'))).toMatch(/^missing/);
    expect(await refused(tables.describe('nothing'))).toContain('no table nothing');
  });

  test('all of a tenant are listed together', async () => {
    const names = async (tenant?: string) =>
      (await tables.list(tenant)).map(({ database }) => database);
    expect(await names()).toEqual([0, 1, '1', 'orders', 'telegraf']);
    expect(await names('shop')).toEqual([0, 1, 'd']);
  });
});

test('a change of another server on the same store is given to the plane', async () => {
  const other = await SeriesTableCatalog.open(store);
  const following = catalog.follow(() => {});
  await other.create('default', 'telegraf', { ttlDefaultMs: hour });
  while (plane.told.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(plane.told).toMatchObject([{ name: 'telegraf', ttlDefaultMs: hour }]);
  expect((await catalog.find('default', 'telegraf'))?.explicit).toBe(true);
  await following.close();
});
