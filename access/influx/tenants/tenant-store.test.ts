import { inOneGo } from '../../../universal-row/slices.ts';
import { describe, expect, test, vi } from 'vitest';
import {
  type CatalogChange,
  SeriesError,
  type SeriesStore,
} from '../../../contracts/series-store.ts';
import { MemorySeriesStore } from '../http/testing/memory-series-store.ts';
import { DatabaseIndex } from './database-index.ts';
import { databasePrefix, isClientName, ownerOf } from './database-names.ts';
import { TenantStore } from './tenant-store.ts';

/** With the counter that the index looks at. */
class CountedStore extends MemorySeriesStore {
  catalogVersion = 0;

  override change(change: CatalogChange): void {
    super.change(change);
    this.catalogVersion++;
  }
}

function setting() {
  const store = new CountedStore('d', 'first');
  const index = new DatabaseIndex(store);
  let isActive = true;
  const view = (tenant: number) =>
    new TenantStore({ store, index, tenant, isActive: () => isActive });
  const suspend = () => (isActive = false);
  return { store, own: view(0), a: view(7), b: view(77), suspend };
}

const names = (store: SeriesStore) => store.databases().map(({ name }) => name);
const create = (store: SeriesStore, database: string) =>
  store.change({ kind: 'createDatabase', database });
const drop = (store: SeriesStore, database: string) =>
  store.change({ kind: 'dropDatabase', database });

describe('names', () => {
  test('are told apart by the tenant', () => {
    for (const tenant of [0, 1, 12, 4_000_000]) {
      for (const name of ['d', 'a b', '12', 'é']) {
        expect(ownerOf(databasePrefix(tenant) + name)).toEqual({ tenant, name });
      }
    }
  });

  test('of what is nobody’s are those of nobody', () => {
    for (const kept of ['\u0001restore\u0001d', '\u00010\u0001d', '\u00012', '\u0001']) {
      expect(ownerOf(kept).tenant).toBe(-1);
    }
  });

  test('of clients cannot be those of others', () => {
    expect(isClientName('d')).toBe(true);
    expect(isClientName(`${databasePrefix(3)}d`)).toBe(false);
  });
});

describe('databases', () => {
  test('are each tenant’s own', () => {
    const { own, a, b } = setting();
    void create(b, 'd');
    void create(a, 'd');
    void create(a, 'x');
    expect([names(own), names(a), names(b)]).toEqual([['d', 'first'], ['d', 'x'], ['d']]);
    expect(a.database('d')?.name).toBe('d');
    expect(b.database('x')).toBeUndefined();
    expect(a.database('first')).toBeUndefined();
    void drop(a, 'd');
    expect([names(own), names(a), names(b)]).toEqual([['d', 'first'], ['x'], ['d']]);
  });

  test('of others cannot be named', () => {
    const { store, own, a, b } = setting();
    void create(b, 'd');
    const kept = `${databasePrefix(77)}d`;
    expect(store.database(kept)).toBeDefined();
    for (const view of [own, a]) {
      expect(view.database(kept)).toBeUndefined();
      expect(() => create(view, kept)).toThrow('invalid name');
      expect(() => drop(view, kept)).toThrow(SeriesError);
      expect(inOneGo(view.measurements({ database: kept }))).toEqual([]);
      expect(inOneGo(view.seriesKeys({ database: kept }))).toEqual([]);
      expect(inOneGo(view.seriesCardinality({ database: kept }))).toBe(0);
    }
    expect(names(b)).toEqual(['d']);
  });

  test('that came and went elsewhere are noticed', () => {
    const { store, own, a } = setting();
    void create(store, `${databasePrefix(7)}restored`);
    void drop(store, 'first');
    expect([names(own), names(a)]).toEqual([['d'], ['restored']]);
    void create(store, `${databasePrefix(7)}again`);
    void create(a, 'mine');
    expect(names(a).sort()).toEqual(['again', 'mine', 'restored']);
  });
});

test('what others have makes no answer longer', () => {
  const { store, a } = setting();
  for (let tenant = 100; tenant < 1100; tenant++) void create(store, `${databasePrefix(tenant)}d`);
  void create(a, 'd');
  names(a);
  const listed = vi.spyOn(store, 'databases');
  const looked = vi.spyOn(store, 'database');
  expect(names(a)).toEqual(['d']);
  void create(a, 'e');
  void drop(a, 'd');
  expect(names(a)).toEqual(['e']);
  expect([listed.mock.calls.length, looked.mock.calls.length]).toEqual([0, 2]);
});

describe('messages', () => {
  test('name databases as clients do', async () => {
    const { a } = setting();
    const batch = { groups: [] } as never;
    const request = {
      database: 'nope',
      retentionPolicy: '',
      measurement: 'm',
      from: 0n,
      to: 1n,
      fields: [],
      descending: false,
    };
    expect(() => inOneGo(a.scan(request))).toThrow(/^database not found: nope$/);
    await expect(
      Promise.resolve()
        .then(() => a.write('nope', '', batch))
        .catch((error: Error) => error.message),
    ).resolves.toMatch(/^database not found: "?nope"?$/);
  });
});

test('nothing is changed for a tenant that may do nothing any more', () => {
  const { store, a, suspend } = setting();
  void create(a, 'd');
  suspend();
  const changes: (() => unknown)[] = [
    () => create(a, 'e'),
    () => drop(a, 'd'),
    () => a.write('d', '', { groups: [] } as never),
    () => inOneGo(a.deletePoints({ database: 'd' })),
    () => inOneGo(a.dropSeries({ database: 'd' })),
  ];
  for (const change of changes) expect(change).toThrow(/takes no requests/);
  expect(store.databases()).toHaveLength(3);
});
