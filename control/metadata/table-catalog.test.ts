import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EmbeddedDocumentStore } from './embedded-document-store.ts';
import { type CatalogOptions, TableCatalog, type TableHolders } from './table-catalog.ts';
import type { TableDefinition } from './table-definition.ts';

let path: string;
let store: EmbeddedDocumentStore;
let catalog: TableCatalog;

/** A data plane that holds rows in some tables and remembers what it was told. */
class FakePlane implements TableHolders {
  readonly rows = new Map<number, number>();
  tables: readonly TableDefinition[] = [];
  objection: string | undefined;

  rowCount(table: number): Promise<number> {
    return Promise.resolve(this.rows.get(table) ?? 0);
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
