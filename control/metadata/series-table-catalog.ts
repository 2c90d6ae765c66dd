// Properties of the databases of InfluxDB, kept in the document store beside those of tables.
// Databases are made and dropped by their clients: a database is listed here only if it was given
// properties, which belong to its name: they exist before the database is made and after it is
// dropped, until they are removed.

import { defaultTenant } from '../../contracts/tenancy/definitions.ts';
import { modelProperties, type TableProperties } from '../../contracts/table-properties.ts';
import { type DocumentStore, type Json, RevisionConflict } from './document-store.ts';
import { ForeignChanges } from './foreign-changes.ts';
import { type SeriesTableDefinition, seriesModel, type TableChange } from './table-definition.ts';
import { changedProperties, TableError, withoutUnavailable } from './table-rules.ts';

const collection = 'seriesTables';

/** InfluxDB has no policy that keeps points for less. */
const minTtlMs = 3_600_000;

/** A partition of a database's time series. */
export interface SeriesPartition {
  /** From 1 on. */
  readonly number: number;
  /** Those of each shard counted. Missing when the node that answers has none of them. */
  readonly series?: number | undefined;
}

/** The data plane that has the databases, as the catalog sees it. Tenants go by their numbers. */
export interface SeriesTableHolder {
  databases(tenant: number): Promise<string[]>;
  /** One that is there already is left as it is. */
  createDatabase(tenant: number, name: string): Promise<void>;
  partitions(tenant: number, name: string): Promise<SeriesPartition[]>;
  /** Resolves once nothing is done by the old definitions. */
  setTables(tables: readonly SeriesTableDefinition[]): Promise<void>;
}

export interface SeriesOwner {
  readonly name: string;
  readonly number: number;
  readonly state: string;
}

/** Tenants that may have databases. */
interface SeriesOwners {
  /** Undefined when there is no such tenant. */
  owner(tenant: string): SeriesOwner | undefined;
}

export interface SeriesTable {
  /** Name of the tenant. */
  readonly tenant: string;
  readonly definition: SeriesTableDefinition;
  /** Whether the database was given properties. */
  readonly explicit: boolean;
}

interface Kept {
  readonly definition: SeriesTableDefinition;
  readonly revision: number;
}

export class SeriesTableCatalog {
  readonly #store: DocumentStore;
  readonly #owners: SeriesOwners | undefined;
  /** By document id. */
  readonly #tables = new Map<string, Kept>();
  #holder: SeriesTableHolder | undefined;
  #lastChange: Promise<unknown> = Promise.resolve();

  private constructor(store: DocumentStore, owners: SeriesOwners | undefined) {
    this.#store = store;
    this.#owners = owners;
  }

  /** Without `owners` there is tenant default alone. */
  static async open(store: DocumentStore, owners?: SeriesOwners): Promise<SeriesTableCatalog> {
    const catalog = new SeriesTableCatalog(store, owners);
    await catalog.#load();
    return catalog;
  }

  /** From now on changes are given to it. */
  attach(holder: SeriesTableHolder): void {
    this.#holder = holder;
  }

  /**
   * Follows changes by other servers in the same store. Called once, after `attach`; the caller
   * closes it.
   */
  follow(report: (message: string) => void): ForeignChanges {
    let told = '';
    return new ForeignChanges({
      store: this.#store,
      collections: [collection],
      report: (message) => report(`databases that another node has changed: ${message}`),
      adopt: () =>
        this.#serialized(async () => {
          await this.#load();
          const tables = JSON.stringify(
            Array.from(this.#tables, ([id, { revision }]) => [id, revision]),
          );
          if (tables !== told) await this.#tellHolder();
          told = tables;
        }),
    });
  }

  // ---- reads
  //

  /** Empty when no data plane can say. */
  async partitions(tenant: string, name: string): Promise<SeriesPartition[]> {
    return (await this.#holder?.partitions(this.#owner(tenant).number, name)) ?? [];
  }

  definitions(): SeriesTableDefinition[] {
    return Array.from(this.#tables.values(), ({ definition }) => definition);
  }

  /** Databases of a tenant, by name: existing ones, as far as known, and those with properties. */
  async tablesOf(tenant: string): Promise<SeriesTable[]> {
    const owner = this.#owner(tenant);
    const names = new Set(await this.#holder?.databases(owner.number));
    for (const { tenant: number, name } of this.definitions()) {
      if (number === owner.number) names.add(name);
    }
    return [...names].sort().map((name) => this.#table(owner, name));
  }

  /** Undefined for an unknown database. */
  async find(tenant: string, name: string): Promise<SeriesTable | undefined> {
    const owner = this.#owner(tenant);
    const table = this.#table(owner, name);
    return table.explicit || (await this.#exists(owner, name)) ? table : undefined;
  }

  // ---- changes

  /** Gives a database properties of its own, and makes it if it is not there. */
  create(tenant: string, name: string, change: TableChange): Promise<SeriesTable> {
    return this.#serialized(async () => {
      const owner = this.#owner(tenant);
      checkDatabaseName(name);
      if (this.#tables.has(documentId(owner, name))) {
        throw new TableError('conflict', `table ${name} already exists: alter it instead`);
      }
      const isThere = await this.#exists(owner, name);
      const table = await this.#change(owner, name, change, !isThere);
      if (isThere) return table;
      try {
        await this.#holder?.createDatabase(owner.number, name);
      } catch (error) {
        await this.#remove([documentId(owner, name)]);
        await this.#tellHolder();
        throw new TableError('conflict', `table ${name} cannot be made: ${textOf(error)}`);
      }
      return table;
    });
  }

  alter(tenant: string, name: string, change: TableChange): Promise<SeriesTable> {
    return this.#serialized(async () => {
      const owner = this.#owner(tenant);
      await this.#expect(owner, name);
      return await this.#change(owner, name, change, false);
    });
  }

  /** Adopts the properties of a database of another server, without those that are unavailable here. */
  adopt(tenant: string, name: string, change: TableChange): Promise<SeriesTable> {
    return this.#serialized(async () => {
      const owner = this.#owner(tenant);
      checkDatabaseName(name);
      const isThere = await this.#exists(owner, name);
      return await this.#change(owner, name, withoutUnavailable(change), !isThere);
    });
  }

  /**
   * Resets a database to the default properties. Its points stay, except those beyond the
   * retention.
   */
  reset(tenant: string, name: string): Promise<SeriesTable> {
    return this.#serialized(async () => {
      const owner = this.#owner(tenant);
      await this.#expect(owner, name);
      const id = documentId(owner, name);
      const kept = this.#tables.get(id);
      if (kept === undefined) return this.#table(owner, name);
      const defaults = modelProperties(seriesModel);
      const isFixed = kept.definition.shardingKind !== defaults.shardingKind;
      if (isFixed && (await this.#exists(owner, name))) throw fixedSharding(name, kept.definition);
      await this.#remove([id]);
      try {
        await this.#tellHolder();
      } catch (error) {
        await this.#save(kept.definition);
        throw new TableError('conflict', `table ${name} cannot change so: ${textOf(error)}`);
      }
      return this.#table(owner, name);
    });
  }

  /** Forgets the properties of a tenant that is being dropped. Its databases are gone already. */
  forgetTenant({ number }: Pick<SeriesOwner, 'number'>): Promise<void> {
    return this.#serialized(async () => {
      const ids = [...this.#tables]
        .filter(([, { definition }]) => definition.tenant === number)
        .map(([id]) => id);
      if (ids.length === 0) return;
      await this.#remove(ids);
      await this.#tellHolder();
    });
  }

  async #change(
    owner: SeriesOwner,
    name: string,
    change: TableChange,
    makes: boolean,
  ): Promise<SeriesTable> {
    if (owner.state === 'dropping') throw new TableError('missing', `no tenant ${owner.name}`);
    const { definition: before, explicit } = this.#table(owner, name);
    checkChange(name, change);
    const properties = changedProperties(before, change);
    if (properties.ttlDefaultMs !== 0 && properties.ttlDefaultMs < minTtlMs) {
      throw new TableError(
        'invalid',
        `ttlDefaultMs cannot be ${properties.ttlDefaultMs}: InfluxDB keeps points for ${minTtlMs} ms (1h) at least`,
      );
    }
    if (properties.shardingKind !== before.shardingKind && !makes)
      throw fixedSharding(name, before);
    const definition = definitionOf(owner, name, properties);
    await this.#save(definition);
    try {
      await this.#tellHolder();
    } catch (error) {
      if (explicit) await this.#save(before);
      else await this.#remove([documentId(owner, name)]);
      throw new TableError('conflict', `table ${name} cannot change so: ${textOf(error)}`);
    }
    return this.#table(owner, name);
  }

  // ---- names

  #owner(tenant: string): SeriesOwner {
    const owner = this.#owners?.owner(tenant);
    if (owner !== undefined) return owner;
    if (tenant === defaultTenant) return { name: defaultTenant, number: 0, state: 'active' };
    throw new TableError('missing', `no tenant ${tenant}`);
  }

  /** The stored definition, or the default. */
  #table(owner: SeriesOwner, name: string): SeriesTable {
    const kept = this.#tables.get(documentId(owner, name));
    const definition = kept?.definition ?? definitionOf(owner, name, modelProperties(seriesModel));
    return { tenant: owner.name, definition, explicit: kept !== undefined };
  }

  async #exists({ number }: SeriesOwner, name: string): Promise<boolean> {
    return (await this.#holder?.databases(number))?.includes(name) ?? false;
  }

  async #expect(owner: SeriesOwner, name: string): Promise<void> {
    if (this.#tables.has(documentId(owner, name)) || (await this.#exists(owner, name))) return;
    throw new TableError('missing', `no InfluxDB database ${name} in tenant ${owner.name}`);
  }

  // ---- the store

  #serialized<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#lastChange.then(async () => {
      try {
        return await change();
      } catch (error) {
        if (!(error instanceof RevisionConflict)) throw error;
        // Another server has changed the documents, or an earlier write with an unknown outcome has succeeded.
        await this.#load();
        return await change();
      }
    });
    this.#lastChange = done.catch(() => {});
    return done;
  }

  async #load(): Promise<void> {
    const documents = await this.#store.list(collection);
    this.#tables.clear();
    for (const { id, body, revision } of documents) {
      const stored = body as unknown as SeriesTableDefinition;
      const definition = { ...modelProperties(seriesModel), ...stored };
      this.#tables.set(id, { definition, revision });
    }
  }

  async #save(definition: SeriesTableDefinition): Promise<void> {
    const id = documentId({ number: definition.tenant }, definition.name);
    const expected = this.#tables.get(id)?.revision ?? 0;
    const body = definition as unknown as Json;
    const [revision] = await this.#store.write([{ collection, id, body, expected }]);
    this.#tables.set(id, { definition, revision: revision! });
  }

  async #remove(ids: readonly string[]): Promise<void> {
    await this.#store.write(
      ids.map((id) => ({
        collection,
        id,
        body: undefined,
        expected: this.#tables.get(id)!.revision,
      })),
    );
    for (const id of ids) this.#tables.delete(id);
  }

  async #tellHolder(): Promise<void> {
    await this.#holder?.setTables(this.definitions());
  }
}

function definitionOf(
  { number }: SeriesOwner,
  name: string,
  properties: TableProperties,
): SeriesTableDefinition {
  return { ...properties, model: seriesModel, tenant: number, name };
}

function documentId({ number }: Pick<SeriesOwner, 'number'>, name: string): string {
  return `${String(number).padStart(6, '0')}/${name}`;
}

function checkChange(name: string, change: TableChange): void {
  if (change.model !== undefined && change.model !== seriesModel) {
    throw new TableError('invalid', `InfluxDB database ${name} cannot be of model ${change.model}`);
  }
  if (change.name !== undefined && change.name !== name) {
    throw new TableError('invalid', `InfluxDB database ${name} cannot be given another name`);
  }
}

/** InfluxDB's rules: printable, not a path, and not too long for the stored names. */
function checkDatabaseName(name: string): void {
  const isPath = name === '.' || name === '..' || /[/\\]/.test(name);
  const isLong = Buffer.byteLength(name) > 255;
  if (name !== '' && !isPath && !isLong && !/\p{Cc}/u.test(name)) return;
  throw new TableError('invalid', `a database cannot be called ${JSON.stringify(name)}`);
}

function fixedSharding(name: string, { shardingKind }: TableProperties): TableError {
  return new TableError(
    'conflict',
    `table ${name} is sharded by ${shardingKind}: that is fixed when a table is created`,
  );
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
