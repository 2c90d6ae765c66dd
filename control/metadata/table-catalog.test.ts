import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { replaced } from '../../contracts/partition-map.ts';
import { defaultTableProperties } from '../../contracts/table-properties.ts';
import { EmbeddedDocumentStore } from './embedded-document-store.ts';
import { type CatalogOptions, TableCatalog, type TableHolders } from './table-catalog.ts';
import type { TableOwners } from './table-lookup.ts';
import { partitionMapOf, type TableDefinition, type TableModel } from './table-definition.ts';
import { until } from '../../test/support/until.ts';

let path: string;
let store: EmbeddedDocumentStore;
let catalog: TableCatalog;

/** A data plane that holds rows in some tables and remembers what it was told. */
class FakePlane implements TableHolders {
  readonly rows = new Map<number, number | undefined>();
  readonly isCluster: boolean;
  tables: readonly TableDefinition[] = [];
  defaultModel: TableModel | undefined;
  objection: string | undefined;

  constructor(isCluster = false) {
    this.isCluster = isCluster;
  }

  rowCount(table: number): Promise<number | undefined> {
    return Promise.resolve(this.rows.has(table) ? this.rows.get(table) : 0);
  }

  undefinedTables(): Promise<number[]> {
    const defined = new Set(this.tables.map(({ id }) => id));
    return Promise.resolve([...this.rows.keys()].filter((id) => !defined.has(id)));
  }

  async setDefaultModel(model: TableModel): Promise<void> {
    if (this.objection !== undefined) throw new Error(this.objection);
    this.defaultModel = model;
  }

  async setTables(tables: readonly TableDefinition[]): Promise<void> {
    if (this.objection !== undefined) throw new Error(this.objection);
    this.tables = tables;
  }
}

let plane: FakePlane;

async function open(options: Partial<CatalogOptions> = {}): Promise<void> {
  catalog = await TableCatalog.open(store, { databases: 4, defaultModel: 'memory', ...options });
}

beforeEach(async () => {
  path = mkdtempSync(join(tmpdir(), 'polyrow-catalog-'));
  store = await EmbeddedDocumentStore.open(path);
  plane = new FakePlane();
  await open();
});
afterEach(async () => {
  await store.close();
  rmSync(path, { recursive: true });
});

function modelOf(table: number): string {
  return catalog.find(String(table)).model;
}

test('every database has a table from the start', () => {
  expect(catalog.definitions().map(({ id, name, model }) => [id, name, model])).toEqual([
    [0, 'db0', 'memory'],
    [1, 'db1', 'memory'],
    [2, 'db2', 'memory'],
    [3, 'db3', 'memory'],
  ]);
  expect(() => catalog.find('4')).toThrow('no table 4: there are databases 0 to 3');
});

test('a change is given to the plane, and is there after a reopen', async () => {
  await catalog.attach(plane);
  await catalog.create('2', { model: 'kv', name: 'orders', ttlDefaultMs: 1000 });
  expect(plane.tables[2]).toMatchObject({ id: 2, model: 'kv', name: 'orders' });
  await catalog.alter('orders', { readOnly: true });
  expect(plane.tables[2]).toMatchObject({ readOnly: true, ttlDefaultMs: 1000 });
  await open();
  expect(catalog.find('orders')).toEqual({
    ...defaultTableProperties,
    id: 2,
    name: 'orders',
    model: 'kv',
    readOnly: true,
    ttlDefaultMs: 1000,
    maxRowBytes: 0,
  });
});

test('a table is made once, and goes back to the defaults', async () => {
  await catalog.attach(plane);
  await catalog.create('1', { model: 'kv' });
  await expect(catalog.create('1', {})).rejects.toThrow('table 1 already exists');
  await catalog.reset('1');
  expect(modelOf(1)).toBe('memory');
  await catalog.create('1', {});
});

test('leases are refused until all nodes know them, and stay where they are', async () => {
  let level = 1;
  await open({ level: () => level });
  const asked = (): Promise<unknown> => catalog.alter('0', { consistency: 'lease' });
  await expect(asked()).rejects.toThrow('not all nodes');
  level = 2;
  await asked();
  level = 1;
  await catalog.alter('0', { ttlDefaultMs: 5 });
  expect(catalog.find('0').consistency).toEqual({ kind: 'lease' });
});

describe('a change of model', () => {
  test('is refused while the table holds rows', async () => {
    await catalog.attach(plane);
    plane.rows.set(1, 5);
    await expect(catalog.alter('1', { model: 'kv' })).rejects.toThrow(
      'table 1 holds 5 rows in the memory engine and cannot become kv',
    );
    expect(modelOf(1)).toBe('memory');
    await catalog.alter('1', { maxRowBytes: 10 });
  });

  test('is taken back when the plane objects', async () => {
    await catalog.attach(plane);
    plane.objection = 'a row has just come';
    await expect(catalog.alter('1', { model: 'kv' })).rejects.toThrow('a row has just come');
    expect(modelOf(1)).toBe('memory');
    await open();
    expect(modelOf(1)).toBe('memory');
  });

  test('without a plane waits for the next start', async () => {
    await catalog.alter('1', { model: 'kv' });
    expect([modelOf(1), catalog.wantedModel(1)]).toEqual(['memory', 'kv']);
    await open();
    expect(await catalog.attach(plane)).toEqual([]);
    expect([modelOf(1), catalog.wantedModel(1)]).toEqual(['kv', undefined]);
    expect(plane.tables[1]?.model).toBe('kv');
  });

  test('that waited is not made when there are rows after all', async () => {
    await catalog.alter('1', { model: 'kv' });
    plane.rows.set(1, 1);
    await open();
    expect(await catalog.attach(plane)).toEqual([{ id: 1, has: 'memory', wants: 'kv' }]);
    expect(modelOf(1)).toBe('memory');
  });
});

describe('in a cluster', () => {
  let wide: FakePlane;
  beforeEach(async () => {
    wide = new FakePlane(true);
    await catalog.attach(wide);
  });

  /** Makes the change of partitions that is under way, or says why it came to nothing. */
  async function carryOut(table: number, failure?: string): Promise<TableDefinition> {
    await until(() => catalog.find(String(table)).placement?.change !== undefined);
    const begun = catalog.find(String(table));
    await catalog.place(table, ({ id, model, placement }) => {
      const map = partitionMapOf({ id, model, placement });
      if (failure !== undefined) return { ...map, failure };
      const { sources, targets } = placement!.change!;
      return replaced(map, sources, targets);
    });
    return begun;
  }

  test('a table is divided as one with rows is: its old partitions hand over to the new ones', async () => {
    const made = catalog.create('2', { model: 'kv', partitions: 4, ttlDefaultMs: 7 });
    const begun = await carryOut(2);
    expect(begun).toMatchObject({ model: 'memory', partitions: 1, ttlDefaultMs: 7 });
    expect(begun.placement).toMatchObject({ partitions: [{ number: 2 }] });
    expect(begun.placement!.change).toMatchObject({ sources: [2], attempt: expect.any(Number) });
    expect(wide.tables[2]!.placement).toEqual(begun.placement);
    const definition = await made;
    expect(definition).toMatchObject({ model: 'kv', partitions: 4, ttlDefaultMs: 7 });
    expect(definition.placement!.partitions.map(({ first, model }) => [first, model])).toEqual([
      [0, 'kv'],
      [4096, 'kv'],
      [8192, 'kv'],
      [12_288, 'kv'],
    ]);
    const undivided = catalog.alter('2', { partitions: 1 });
    expect((await carryOut(2)).placement!.change!.sources).toHaveLength(4);
    expect(await undivided).toMatchObject({ partitions: 1 });
  });

  test('a change that comes to nothing says why', async () => {
    const made = catalog.create('2', { partitions: 4 });
    made.catch(() => {});
    await carryOut(2, 'a source has no leader');
    await expect(made).rejects.toThrow('table 2 cannot change so: a source has no leader');
    expect(catalog.find('2')).toMatchObject({ partitions: 1 });
  });

  test('rows that are known refuse it, those that are not are handed over', async () => {
    wide.rows.set(2, 3);
    await expect(catalog.alter('2', { partitions: 2 })).rejects.toThrow('it holds 3 rows');
    await expect(catalog.alter('2', { model: 'kv' })).rejects.toThrow('holds 3 rows in the memory');
    wide.rows.set(2, undefined);
    const made = catalog.alter('2', { partitions: 2 });
    await carryOut(2);
    expect(await made).toMatchObject({ partitions: 2 });
  });

  test('what can only be done with an empty table is not done while its rows are not known', async () => {
    wide.rows.set(2, undefined);
    const ranges = [
      { number: 8, first: 0, last: 99, model: 'memory' },
      { number: 9, first: 100, last: 16_383, model: 'memory' },
    ] as const;
    await expect(catalog.divide('2', ranges)).rejects.toThrow('not known whether table 2 is empty');
    await expect(catalog.reset('2')).rejects.toThrow('not known whether table 2 is empty');
    await open({ defaultModel: 'kv' });
    expect(await catalog.attach(wide)).toContainEqual({ id: 2, has: 'memory', wants: 'kv' });
  });

  test('is refused until all nodes know changes of partitions', async () => {
    await open({ level: () => 2 });
    await catalog.attach(wide);
    await expect(catalog.alter('2', { partitions: 2 })).rejects.toThrow('not all nodes');
  });
});

test('another default model is taken on by empty tables that nobody made', async () => {
  await catalog.attach(plane);
  await catalog.create('0', { model: 'memory' });
  plane.rows.set(1, 7);
  await open({ defaultModel: 'kv' });
  expect(await catalog.attach(plane)).toEqual([{ id: 1, has: 'memory', wants: 'kv' }]);
  expect([0, 1, 2, 3].map(modelOf)).toEqual(['memory', 'memory', 'kv', 'kv']);
});

test('fewer databases forget nothing', async () => {
  await catalog.alter('3', { readOnly: true });
  await open({ databases: 2 });
  expect(catalog.find('3').readOnly).toBe(true);
});

test('values that make no sense', async () => {
  const check = (change: object, message: string) =>
    expect(catalog.alter('1', change)).rejects.toThrow(message);
  await check({ model: 'tape' }, 'model cannot be tape: it must be one of memory, kv');
  await check({ ttlDefaultMs: -1 }, 'ttlDefaultMs cannot be -1');
  await check({ maxRowBytes: 0.5 }, 'maxRowBytes cannot be 0.5');
  await check({ name: '7' }, 'name cannot be 7');
  await check({ name: 'db2' }, 'table 2 is called db2 already');
  expect(catalog.find('1').name).toBe('db1');
});

describe('tables of other tenants', () => {
  const shop = { name: 'shop', firstTable: 4096, databases: 4 };
  const mill = { name: 'mill', firstTable: 4100, databases: 2 };
  const all = [shop, mill];
  const owners: TableOwners = {
    owner: (name) => all.find((owner) => owner.name === name),
    ownerOf: (table) =>
      all.find(
        ({ firstTable, databases }) => table >= firstTable && table < firstTable + databases,
      ),
  };
  beforeEach(() => open({ owners }));

  test('are found by tenant and database, and have no definition until someone asks for one', async () => {
    await catalog.attach(plane);
    expect(catalog.find('shop/3')).toMatchObject({ id: 4099, name: 'db3', model: 'memory' });
    expect(catalog.find('shop/db3').id).toBe(4099);
    expect(catalog.find('1', 'mill').id).toBe(4101);
    expect(catalog.definitions()).toHaveLength(4);
    await catalog.create('shop/1', { name: 'orders', readOnly: true });
    expect(plane.tables.at(-1)).toMatchObject({ id: 4097, name: 'orders', readOnly: true });
    expect(catalog.find('shop/orders').id).toBe(4097);
    expect(catalog.find('orders', 'shop').id).toBe(4097);
    expect(catalog.placeOf(4097)).toEqual({ tenant: 'shop', database: 1 });
    expect(catalog.tablesOf('shop').map(({ name }) => name)).toEqual([
      'db0',
      'orders',
      'db2',
      'db3',
    ]);
    await open({ owners });
    expect(catalog.find('shop/orders').readOnly).toBe(true);
  });

  test.each([
    ['shop/4', undefined, 'no table shop/4: there are databases 0 to 3'],
    ['mill/2', undefined, 'no table mill/2'],
    ['4096', undefined, 'no table 4096'],
    ['4097', 'shop', 'no table 4097'],
    ['mill/0', 'shop', 'no table mill/0 in tenant shop'],
    ['default/0', 'shop', 'no table default/0 in tenant shop'],
    ['gone/0', undefined, 'no tenant gone'],
    ['shop/', undefined, 'no table shop/'],
    ['shop/db9', undefined, 'no table shop/db9'],
    ['shop/-1', undefined, 'no table shop/-1'],
  ])('%s within %s: %s', (reference, within, message) => {
    expect(() => catalog.find(reference, within)).toThrow(message);
  });

  test('have names of their own', async () => {
    await catalog.alter('0', { name: 'orders' });
    await catalog.alter('shop/0', { name: 'orders' });
    await expect(catalog.alter('shop/1', { name: 'orders' })).rejects.toThrow(
      'table shop/0 is called orders already',
    );
    await expect(catalog.alter('shop/1', { name: 'db2' })).rejects.toThrow(
      'table shop/2 is called db2 already',
    );
  });

  test('have none left of a change that the plane refused', async () => {
    await catalog.attach(plane);
    plane.objection = 'no';
    await expect(catalog.alter('mill/1', { readOnly: true })).rejects.toThrow(
      'table mill/1 cannot change so: no',
    );
    expect(catalog.definitions()).toHaveLength(4);
    await open({ owners });
    expect(catalog.definitions()).toHaveLength(4);
  });

  test('that hold rows keep their engine when the default model changes', async () => {
    await catalog.attach(plane);
    plane.rows.set(4098, 3);
    await open({ owners, defaultModel: 'kv' });
    expect(catalog.defaultModel).toBe('memory');
    expect(await catalog.attach(plane)).toEqual([{ id: 4098, has: 'memory', wants: 'kv' }]);
    expect([catalog.defaultModel, plane.defaultModel]).toEqual(['kv', 'kv']);
    expect([2, 3].map((n) => catalog.find(`shop/${n}`).model)).toEqual(['memory', 'kv']);
    // A later start knows both without asking.
    await open({ owners, defaultModel: 'kv' });
    expect([2, 3].map((n) => catalog.find(`shop/${n}`).model)).toEqual(['memory', 'kv']);
  });

  test('are forgotten with their tenant', async () => {
    await catalog.attach(plane);
    for (const table of ['shop/0', 'shop/3', 'mill/0'])
      await catalog.alter(table, { readOnly: true });
    await catalog.forgetTenant('shop');
    expect(plane.tables.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4100]);
    await open({ owners });
    expect(catalog.definitions().map(({ id }) => id)).toEqual([0, 1, 2, 3, 4100]);
  });
});

test('a table that another server has changed is looked at again, and changed all the same', async () => {
  const other = await TableCatalog.open(store, { databases: 4, defaultModel: 'memory' });
  await other.alter('1', { ttlDefaultMs: 5000 });
  const changed = await catalog.alter('1', { readOnly: true });
  expect(changed).toMatchObject({ readOnly: true, ttlDefaultMs: 5000 });
  await other.alter('1', { maxRowBytes: 10 });
  expect(other.find('1')).toMatchObject({ readOnly: true, ttlDefaultMs: 5000, maxRowBytes: 10 });
});

describe('two servers on one store', () => {
  let other: TableCatalog;
  let otherPlane: FakePlane;
  let reports: string[];
  let following: { close(): Promise<void> };

  beforeEach(async () => {
    await catalog.attach(plane);
    other = await TableCatalog.open(store, { databases: 4, defaultModel: 'memory' });
    otherPlane = new FakePlane();
    await other.attach(otherPlane);
    reports = [];
    following = other.follow((message) => reports.push(message));
  });
  afterEach(() => following.close());

  test('a change of one is given to the plane of the other', async () => {
    await catalog.create('2', { name: 'orders', ttlDefaultMs: 1000 });
    await until(() => otherPlane.tables[2]?.name === 'orders');
    expect(other.find('orders').ttlDefaultMs).toBe(1000);
    await catalog.reset('2');
    await until(() => otherPlane.tables[2]?.name === 'db2');
    expect(reports).toEqual([]);
  });

  test('so is what changed before it followed, and a change that a conflict told of', async () => {
    await until(() => otherPlane.tables.length === 4);
    otherPlane.tables = [];
    await Promise.all([
      catalog.create('1', { name: 'one' }),
      catalog.create('2', { name: 'two' }),
      other.create('3', { name: 'three' }),
    ]);
    await until(() => otherPlane.tables.map(({ name }) => name).join() === 'db0,one,two,three');
  });

  test('a plane that refuses is told again', async () => {
    otherPlane.objection = 'not now';
    await catalog.create('2', { name: 'orders' });
    await until(() => reports.length > 0);
    otherPlane.objection = undefined;
    await until(() => otherPlane.tables[2]?.name === 'orders');
    expect(reports).toEqual(['tables that another node has changed: not now']);
  });
});
