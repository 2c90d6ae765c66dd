// The databases of tenants in the InfluxDB plane, for the control plane.

import type { DatabaseInfo, DatabaseName } from '../../control/monitor/database-info.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { CatalogChange, SeriesStore } from '../../contracts/series-store.ts';

// Separator of the tenant's prefix in stored names; names of tenant 0 have none.
const separator = '\u0001';

/** Longest time slice before other work runs. */
const sliceMs = 5;

/** A store that operators change regardless of a database's properties. */
interface AdministeredStore extends SeriesStore {
  administer(change: CatalogChange): MaybePromise<void>;
}

function prefixOf(tenant: number): string {
  return tenant === 0 ? '' : `${separator}${tenant}${separator}`;
}

/** Stored name of a tenant's database. */
export function keptName({ tenant, name }: DatabaseName): string {
  return prefixOf(tenant) + name;
}

export function databasesOf(store: SeriesStore, tenant: number): DatabaseInfo[] {
  return namesOf(store, tenant).map((name) => ({ name: name.slice(prefixOf(tenant).length) }));
}

function namesOf(store: SeriesStore, tenant: number): string[] {
  const prefix = prefixOf(tenant);
  return store
    .databases()
    .map(({ name }) => name)
    .filter((name) => name.startsWith(prefix) && (tenant !== 0 || !name.startsWith(separator)));
}

export async function createDatabase(store: SeriesStore, to: DatabaseName): Promise<void> {
  if (to.name.startsWith(separator)) throw new Error(`a database cannot have this name`);
  await store.change({ kind: 'createDatabase', database: keptName(to) });
  await durable(store);
}

export async function dropDatabase(store: AdministeredStore, to: DatabaseName): Promise<void> {
  const database = keptName(to);
  if (to.name.startsWith(separator)) return;
  await store.administer({ kind: 'dropDatabase', database });
  await durable(store);
}

export async function dropAllDatabases(store: AdministeredStore, tenant: number): Promise<void> {
  // No databases are created meanwhile, as the tenant is being dropped. The loop yields to other
  // tenants.
  let sliceStart = performance.now();
  for (const database of namesOf(store, tenant)) {
    const dropped = store.administer({ kind: 'dropDatabase', database });
    if (dropped instanceof Promise) await dropped;
    if (performance.now() - sliceStart < sliceMs) continue;
    await new Promise(setImmediate);
    sliceStart = performance.now();
  }
  await durable(store);
}

function durable(store: SeriesStore): Promise<void> {
  return new Promise((resolve) => store.whenSafe(store.endTick(), resolve));
}
