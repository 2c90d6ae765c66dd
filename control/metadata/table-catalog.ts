// Which tables there are and what properties they have, kept in the document store.
//
// A change is made durable first and then given to the data plane. The plane has the last word on a
// change of model, for only it knows for certain that a table holds no row: if it objects, the change is
// taken back.

import type { DocumentStore, Json } from './document-store.ts';
import { type TableDefinition, type TableModel, tableModels } from './table-definition.ts';

const collection = 'tables';

/** Everything of a table but its number. */
export type TableProperty = Exclude<keyof TableDefinition, 'id'>;
export type TableChange = Partial<Pick<TableDefinition, TableProperty>>;

interface StoredTable {
  definition: TableDefinition;
  /** Made by a person; otherwise it follows the default model for as long as it is empty. */
  explicit: boolean;
  /** A model asked for while no server ran, to be taken on at the next start if the table is empty. */
  wanted?: TableModel;
}

/** The data planes, as the catalog sees them. */
export interface TableHolders {
  rowCount(table: number): Promise<number>;
  /** Resolves once nothing is done by the old definitions; rejects if a table cannot change so. */
  setTables(tables: readonly TableDefinition[]): Promise<void>;
}

/** A change that is not possible. `reason` tells a missing table from a conflict from a bad value. */
export class TableError extends Error {
  override readonly name = 'TableError';
  readonly reason: 'missing' | 'conflict' | 'invalid';

  constructor(reason: TableError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

export interface CatalogOptions {
  databases: number;
  defaultModel: TableModel;
}

export class TableCatalog {
  readonly #store: DocumentStore;
  readonly #options: CatalogOptions;
  readonly #tables = new Map<number, StoredTable>();
  readonly #revisions = new Map<number, number>();
  #holders: TableHolders | undefined;
  #lastChange: Promise<unknown> = Promise.resolve();

  private constructor(store: DocumentStore, options: CatalogOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** Loads the catalog. Every database a client can name has a table from here on. */
  static async open(store: DocumentStore, options: CatalogOptions): Promise<TableCatalog> {
    const catalog = new TableCatalog(store, options);
    for (const document of await store.list(collection)) {
      const table = document.body as unknown as StoredTable;
      catalog.#tables.set(table.definition.id, table);
      catalog.#revisions.set(table.definition.id, document.revision);
    }
    const missing: StoredTable[] = [];
    for (let id = 0; id < options.databases; id++) {
      if (!catalog.#tables.has(id)) {
        missing.push({ definition: defaultDefinition(id, options.defaultModel), explicit: false });
      }
    }
    await catalog.#save(missing);
    return catalog;
  }

  /** By ascending number, those beyond the databases a client can name as well. */
  definitions(): TableDefinition[] {
    return [...this.#tables.values()].map((table) => table.definition).sort((a, b) => a.id - b.id);
  }

  /** By number or name. */
  find(idOrName: string): TableDefinition {
    const isId = /^\d+$/.test(idOrName);
    for (const { definition } of this.#tables.values()) {
      if (isId ? definition.id === Number(idOrName) : definition.name === idOrName) {
        return definition;
      }
    }
    const range = `there are databases 0 to ${this.#options.databases - 1} (redis.databases)`;
    throw new TableError('missing', `no table ${idOrName}: ${range}`);
  }

  /** Model asked for while no server ran, if it is yet to be taken on. */
  wantedModel(id: number): TableModel | undefined {
    return this.#tables.get(id)?.wanted;
  }

  isExplicit(id: number): boolean {
    return this.#tables.get(id)?.explicit ?? false;
  }

  async rowCount(id: number): Promise<number | undefined> {
    return await this.#holders?.rowCount(id);
  }

  /**
   * From now on changes are given to these holders. Tables whose model should be another one take it on
   * if they are empty; those that cannot are returned.
   */
  async attach(
    holders: TableHolders,
  ): Promise<{ id: number; has: TableModel; wants: TableModel }[]> {
    this.#holders = holders;
    const kept: { id: number; has: TableModel; wants: TableModel }[] = [];
    for (const { definition, explicit, wanted } of this.#tables.values()) {
      const { id, model } = definition;
      const wants = wanted ?? (explicit ? model : this.#options.defaultModel);
      if (wants === model) continue;
      try {
        await this.#inTurn(() => this.#change(id, { model: wants }, explicit));
      } catch (error) {
        if (!(error instanceof TableError)) throw error;
        kept.push({ id, has: model, wants });
      }
    }
    return kept;
  }

  /** Gives a database properties of its own. Refused when it has them already: then `alter` it. */
  create(idOrName: string, change: TableChange): Promise<TableDefinition> {
    return this.#inTurn(() => {
      const { id } = this.find(idOrName);
      if (this.isExplicit(id)) {
        throw new TableError('conflict', `table ${id} already exists: alter it instead`);
      }
      return this.#change(id, change, true);
    });
  }

  alter(idOrName: string, change: TableChange): Promise<TableDefinition> {
    return this.#inTurn(() => this.#change(this.find(idOrName).id, change, true));
  }

  /** Back to the defaults. Rows stay; refused if they would need another engine. */
  reset(idOrName: string): Promise<TableDefinition> {
    return this.#inTurn(() => {
      const { id } = this.find(idOrName);
      const { id: _, ...defaults } = defaultDefinition(id, this.#options.defaultModel);
      return this.#change(id, defaults, false);
    });
  }

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#lastChange.then(change);
    this.#lastChange = done.catch(() => {});
    return done;
  }

  async #change(id: number, change: TableChange, explicit: boolean): Promise<TableDefinition> {
    const before = this.#tables.get(id)!;
    const definition = { ...before.definition, ...change };
    this.#check(definition);
    const changesModel = definition.model !== before.definition.model;
    const { wanted: _, ...rest } = before;
    if (changesModel && this.#holders === undefined) {
      // Nobody can say whether the table is empty: the next start will know.
      const wanted = definition.model;
      definition.model = before.definition.model;
      await this.#save([{ ...rest, definition, explicit, wanted }]);
      return definition;
    }
    if (changesModel) await this.#refuseIfRows(id, before.definition.model, definition.model);
    await this.#save([{ ...rest, definition, explicit }]);
    try {
      await this.#holders?.setTables(this.definitions());
    } catch (error) {
      await this.#save([before]);
      const reason = error instanceof Error ? error.message : String(error);
      throw new TableError('conflict', `table ${id} cannot change so: ${reason}`);
    }
    return definition;
  }

  async #refuseIfRows(id: number, from: TableModel, to: TableModel): Promise<void> {
    const rows = (await this.rowCount(id)) ?? 0;
    if (rows === 0) return;
    throw new TableError(
      'conflict',
      `table ${id} holds ${rows} rows in the ${from} engine and cannot become ${to}: empty it first (FLUSHDB) or use another database`,
    );
  }

  #check(definition: TableDefinition): void {
    const { id, name, model, ttlDefaultMs, maxRowBytes } = definition;
    const invalid = (message: string) => new TableError('invalid', message);
    if (!tableModels.includes(model)) {
      throw invalid(`model cannot be ${model}: it must be one of ${tableModels.join(', ')}`);
    }
    if (!/^[a-z][a-z0-9_-]{0,62}$/i.test(name)) {
      throw invalid(
        `name cannot be ${name}: a letter, then up to 62 letters, digits, dashes and underscores`,
      );
    }
    for (const [property, value] of Object.entries({ ttlDefaultMs, maxRowBytes })) {
      if (!Number.isSafeInteger(value) || value < 0) {
        throw invalid(`${property} cannot be ${value}: it must be a whole number from 0`);
      }
    }
    for (const other of this.#tables.values()) {
      if (other.definition.name === name && other.definition.id !== id) {
        throw new TableError('conflict', `table ${other.definition.id} is called ${name} already`);
      }
    }
  }

  async #save(tables: readonly StoredTable[]): Promise<void> {
    if (tables.length === 0) return;
    const revisions = await this.#store.write(
      tables.map((table) => ({
        collection,
        id: documentId(table.definition.id),
        body: table as unknown as Json,
        expected: this.#revisions.get(table.definition.id) ?? 0,
      })),
    );
    tables.forEach((table, i) => {
      this.#tables.set(table.definition.id, table);
      this.#revisions.set(table.definition.id, revisions[i]!);
    });
  }
}

/** Documents sort as the numbers do. */
function documentId(table: number): string {
  return String(table).padStart(6, '0');
}

function defaultDefinition(id: number, model: TableModel): TableDefinition {
  return { id, name: `db${id}`, model, readOnly: false, ttlDefaultMs: 0, maxRowBytes: 0 };
}
