// Which databases each tenant has, so that the number of other tenants' databases does not slow a tenant down.

import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { CatalogChange, SeriesStore } from '../../../contracts/series-store.ts';
import { ownerOf } from './database-names.ts';

export interface DatabaseSource extends Pick<SeriesStore, 'databases'> {
  /** Another one whenever there may be other databases than before. */
  readonly catalogVersion: number;
}

const none: ReadonlySet<string> = new Set();

export class DatabaseIndex {
  readonly #source: DatabaseSource;
  #version: number;
  /** As they are kept, in the order they were made. */
  readonly #byTenant = new Map<number, Set<string>>();

  constructor(source: DatabaseSource) {
    this.#source = source;
    this.#version = source.catalogVersion;
    this.#rebuild();
  }

  of(tenant: number): ReadonlySet<string> {
    // Rebuilds after changes that bypassed the tenants' stores, for example a restore.
    if (this.#version !== this.#source.catalogVersion) this.#rebuild();
    return this.#byTenant.get(tenant) ?? none;
  }

  /** Makes a change, and follows it. */
  change(change: CatalogChange, make: () => MaybePromise<void>): MaybePromise<void> {
    const isCurrent = this.#version === this.#source.catalogVersion;
    const made = make();
    // Other changes until then are not tracked one by one.
    if (made instanceof Promise) return made;
    if (!isCurrent) return;
    if (change.kind === 'createDatabase') this.#add(change.database);
    else if (change.kind === 'dropDatabase') this.#remove(change.database);
    this.#version = this.#source.catalogVersion;
  }

  #rebuild(): void {
    this.#byTenant.clear();
    for (const { name } of this.#source.databases()) this.#add(name);
    this.#version = this.#source.catalogVersion;
  }

  #add(kept: string): void {
    const { tenant } = ownerOf(kept);
    const names = this.#byTenant.get(tenant);
    if (names === undefined) this.#byTenant.set(tenant, new Set([kept]));
    else names.add(kept);
  }

  #remove(kept: string): void {
    const { tenant } = ownerOf(kept);
    const names = this.#byTenant.get(tenant);
    names?.delete(kept);
    if (names?.size === 0) this.#byTenant.delete(tenant);
  }
}
