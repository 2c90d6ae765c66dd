// Tables and their properties, kept in the document store.
//
// A table is a number, and belongs to the tenant in whose span it is: its n-th database is table
// first + n. The databases of tenant default have a definition from the start. The definition of
// another tenant's database is made on request; until then its table has the default model and no
// other property.
//
// A change is made durable first and then given to the data plane. The plane decides on a change of
// model, as only it knows for certain that a table is empty: if it objects, the change is undone.

import { defaultTenant } from '../../contracts/tenancy/definitions.ts';
import { type DocumentStore, RevisionConflict } from './document-store.ts';
import {
  evenRanges,
  type Partition,
  partitionMapError,
  undivided,
} from '../../contracts/partition-map.ts';
import type { TableProperties } from '../../contracts/table-properties.ts';
import { ForeignChanges } from './foreign-changes.ts';
import { PartitionNumbers } from './partition-numbers.ts';
import {
  inCluster,
  partitionMapOf,
  placedAs,
  type TableChange,
  type TableDefinition,
  type TableModel,
  type TablePlacement,
} from './table-definition.ts';
import { type StoredTable, tableCollections, TableDocuments } from './table-documents.ts';
import { TableLookup, type TableOwners } from './table-lookup.ts';
import {
  changedProperties,
  changesLevel,
  changesRefusal,
  withoutUnavailable,
  checkDefinition,
  newDefinition,
  refuseUnknown,
  TableError,
} from './table-rules.ts';

export { TableError } from './table-rules.ts';

/** The data planes, as the catalog sees them. */
export interface TableHolders {
  /** Undefined when not all of its partitions can be counted now. */
  rowCount(table: number, partitions: readonly number[]): Promise<number | undefined>;
  /** The tables are on several nodes, which receive a definition one after the other. */
  readonly isCluster?: boolean;
  /** Resolves once nothing is done by the old definitions; rejects if a table cannot change so. */
  setTables(tables: readonly TableDefinition[]): Promise<void>;
  /** Tables that hold rows and have no definition. */
  undefinedTables(): Promise<number[]>;
  /** For all tables without a definition. Rejects if one of them holds rows. */
  setDefaultModel(model: TableModel): Promise<void>;
}

export interface CatalogOptions {
  /** Databases of the tenant `default`. */
  databases: number;
  defaultModel: TableModel;
  /** The other tenants; none when missing. */
  owners?: TableOwners;
  /** Partitions of database 0 from its start, and of tables that are made without saying how many; 1 when missing. */
  partitions?: number;
  /** Level supported by all nodes of the cluster; missing without other nodes. */
  level?: () => number;
}

/** For a change of partitions with few rows in them: groups have to be made for them, and led. */
const reshapeMs = 20_000;
const watchEveryMs = 50;

export class TableCatalog {
  readonly #store: DocumentStore;
  readonly #options: CatalogOptions;
  readonly #numbers: PartitionNumbers;
  readonly #documents: TableDocuments;
  readonly #lookup: TableLookup;
  #holders: TableHolders | undefined;
  /** Definitions with a change of partitions that was asked for as a change of properties. */
  readonly #reshaping = new WeakSet<TableDefinition>();
  #lastChange: Promise<unknown> = Promise.resolve();

  private constructor(store: DocumentStore, options: CatalogOptions) {
    this.#store = store;
    this.#options = options;
    this.#numbers = new PartitionNumbers(store);
    this.#documents = new TableDocuments(store, options.defaultModel);
    this.#lookup = new TableLookup(this.#documents, options);
  }

  /** Loads the catalog. Every database of tenant default has a definition from here on. */
  static async open(store: DocumentStore, options: CatalogOptions): Promise<TableCatalog> {
    const catalog = new TableCatalog(store, options);
    if (!(await catalog.#documents.load()))
      await catalog.#documents.saveDefaultModel(options.defaultModel);
    const missing: StoredTable[] = [];
    for (let id = 0; id < options.databases; id++) {
      if (catalog.#documents.tables.has(id)) continue;
      const definition = newDefinition(id, id, options.defaultModel);
      missing.push({ definition: await catalog.#divided(definition), explicit: false });
    }
    await catalog.#documents.save(missing);
    return catalog;
  }

  /** The database selected by default is divided from its start. */
  async #divided(definition: TableDefinition): Promise<TableDefinition> {
    const { partitions = 1 } = this.#options;
    if (definition.id !== 0 || partitions === 1) return definition;
    return { ...definition, partitions, placement: await this.#evenly(partitions, definition) };
  }

  async #evenly(partitions: number, { model }: TableDefinition): Promise<TablePlacement> {
    const numbers = await this.#numbers.take(partitions);
    const ranges = evenRanges(partitions);
    return {
      epoch: 1,
      partitions: ranges.map(([first, last], i) => ({ number: numbers[i]!, first, last, model })),
    };
  }

  /** Engine of the tables without a definition. */
  get defaultModel(): TableModel {
    return this.#documents.defaultModel;
  }

  /** Calls the listener after each change of `definitions`, those of other nodes as well. One listener at a time. */
  onChange(listener: () => void): void {
    this.#documents.onChange = listener;
  }

  /** By ascending number, those beyond the databases a client can name as well. */
  definitions(): TableDefinition[] {
    return [...this.#documents.tables.values()]
      .map((table) => table.definition)
      .sort((a, b) => a.id - b.id);
  }

  /** As recorded; undefined where a table has the defaults. */
  definition(id: number): TableDefinition | undefined {
    return this.#documents.tables.get(id)?.definition;
  }

  /** Every table of a tenant, by database; the default where it has no definition of its own. */
  tablesOf(tenant: string): TableDefinition[] {
    const owner = this.#lookup.owner(tenant);
    return Array.from(
      { length: owner.databases },
      (_, n) => this.#lookup.table(owner, n).definition,
    );
  }

  /**
   * Finds a table by number or name in tenant default, or by `tenant/database` in another tenant. With `within` the
   * table is always one of that tenant.
   */
  find(reference: string, within?: string): TableDefinition {
    return this.#lookup.find(reference, within).table.definition;
  }

  /** The tenant a table belongs to, and which of its databases it is. */
  placeOf(id: number): { tenant: string; database: number } {
    return this.#lookup.placeOf(id);
  }

  /** Model asked for while no server ran, if it is yet to be taken on. */
  wantedModel(id: number): TableModel | undefined {
    return this.#documents.tables.get(id)?.wanted;
  }

  isExplicit(id: number): boolean {
    return this.#documents.tables.get(id)?.explicit ?? false;
  }

  /** Undefined when it is not known: without data planes, or while a partition has no leader that answers. */
  async rowCount(id: number): Promise<number | undefined> {
    const { partitions } = partitionMapOf(this.#stored(id).definition);
    return await this.#holders?.rowCount(
      id,
      partitions.map(({ number }) => number),
    );
  }

  /** As recorded, or with the defaults. */
  #stored(id: number): StoredTable {
    const owner = this.#lookup.ownerOf(id);
    return this.#documents.tables.get(id) ?? this.#lookup.table(owner, id - owner.firstTable);
  }

  /** Rows of a table that only an empty one may change. Throws when they are not known; 0 before data planes are attached. */
  async #rowsAgainst(id: number): Promise<number> {
    const rows = await this.rowCount(id);
    if (rows !== undefined || this.#holders === undefined) return rows ?? 0;
    const name = this.#lookup.nameOf(id);
    throw new TableError(
      'conflict',
      `it is not known whether table ${name} is empty: not all of its partitions have a leader that answers`,
    );
  }

  /**
   * Passes changes to these holders from now on. Empty tables whose model should change get the new model. Tables
   * that cannot be changed are returned.
   */
  async attach(
    holders: TableHolders,
  ): Promise<{ id: number; has: TableModel; wants: TableModel }[]> {
    this.#holders = holders;
    await this.#serialized(() => this.#followDefaultModel(holders));
    const kept: { id: number; has: TableModel; wants: TableModel }[] = [];
    for (const table of this.#documents.tables.values()) {
      const { definition, explicit, wanted } = table;
      const { id, model } = definition;
      const wants = wanted ?? (explicit ? model : this.#options.defaultModel);
      if (wants === model) continue;
      // In a cluster, a change of model would move the rows. The row count is unknown for a table without a leader.
      if (holders.isCluster === true && (await this.rowCount(id)) !== 0) {
        kept.push({ id, has: model, wants });
        continue;
      }
      try {
        await this.#serialized(() => this.#change(table, { model: wants }, explicit));
      } catch (error) {
        if (!(error instanceof TableError)) throw error;
        kept.push({ id, has: model, wants });
      }
    }
    return kept;
  }

  /**
   * Follows changes by other servers in the same store. Called once, after `attach`; the caller
   * closes it.
   */
  follow(report: (message: string) => void): ForeignChanges {
    let told = { model: this.#documents.defaultModel, tables: '' };
    return new ForeignChanges({
      store: this.#store,
      collections: tableCollections,
      report: (message) => report(`tables that another node has changed: ${message}`),
      adopt: () =>
        this.#serialized(async () => {
          await this.#documents.load();
          const model = this.#documents.defaultModel;
          if (model !== told.model) await this.#holders?.setDefaultModel(model);
          const tables = JSON.stringify([...this.#documents.revisions]);
          if (tables !== told.tables) await this.#holders?.setTables(this.definitions());
          told = { model, tables };
        }),
    });
  }

  /** Gives a database properties of its own. Refused when it has them already: then `alter` it. */
  create(reference: string, change: TableChange, within?: string): Promise<TableDefinition> {
    return this.#changed(async () => {
      const { table } = this.#lookup.find(reference, within);
      const { id } = table.definition;
      if (this.isExplicit(id)) {
        const name = this.#lookup.nameOf(id);
        throw new TableError('conflict', `table ${name} already exists: alter it instead`);
      }
      const { partitions = 1 } = this.#options;
      const isDivided = partitions > 1 && change.partitions === undefined;
      const mayDivide = isDivided && (await this.rowCount(id)) === 0;
      return this.#change(table, mayDivide ? { ...change, partitions } : change, true, true);
    });
  }

  alter(reference: string, change: TableChange, within?: string): Promise<TableDefinition> {
    return this.#changed(() =>
      this.#change(this.#lookup.find(reference, within).table, change, true),
    );
  }

  /** Adopts the properties of a table of another server, without those that are unavailable here. */
  adopt(reference: string, change: TableChange, within?: string): Promise<TableDefinition> {
    return this.#changed(() => {
      const { table } = this.#lookup.find(reference, within);
      return this.#change(table, withoutUnavailable(change), true, true);
    });
  }

  /** Back to the defaults. Rows stay; refused if they would need another engine. */
  reset(reference: string, within?: string): Promise<TableDefinition> {
    return this.#changed(async () => {
      const { owner, table } = this.#lookup.find(reference, within);
      const { id } = table.definition;
      const { defaultModel } = this.#options;
      const { id: _, ...defaults } = newDefinition(id, id - owner.firstTable, defaultModel);
      // A table with rows stays divided.
      if ((await this.#rowsAgainst(id)) > 0) {
        const { partitions } = table.definition;
        return this.#change(table, { ...defaults, partitions }, false, true);
      }
      return this.#change(table, defaults, false, true);
    });
  }

  /**
   * Divides an empty table like another table, or as it was divided before. Returns its partitions by ascending
   * slots. A table that has this division already may hold rows.
   */
  divide(
    reference: string,
    as: readonly Partition[] | undefined,
    within?: string,
  ): Promise<readonly Partition[]> {
    return this.#serialized(async () => {
      const { table } = this.#lookup.find(reference, within);
      const { definition } = table;
      const { id, model, placement } = definition;
      const has = partitionMapOf(definition).partitions;
      const wants = as ?? undivided(id, model).partitions;
      const isSame =
        has.length === wants.length &&
        has.every((one, i) => one.first === wants[i]!.first && one.last === wants[i]!.last);
      if (isSame) return has;
      const rows = await this.#rowsAgainst(id);
      if (rows > 0 || placement?.change !== undefined) {
        throw new TableError(
          'conflict',
          `table ${this.#lookup.nameOf(id)} holds ${rows} rows in other partitions: empty it first (FLUSHDB)`,
        );
      }
      const error = partitionMapError({ epoch: 1, partitions: wants });
      if (error !== undefined) throw new TableError('invalid', error);
      // As in `#newPlacement`.
      const wasChanged = (placement?.epoch ?? 0) > 1;
      const isUndivided = as === undefined && !wasChanged;
      const numbers = isUndivided ? [id] : await this.#numbers.take(wants.length);
      const partitions = wants.map(({ first, last, model: of }, i) => {
        return { number: numbers[i]!, first, last, model: of };
      });
      const epoch = wasChanged ? placement!.epoch + 1 : 1;
      const placed = isUndivided ? undefined : { epoch, partitions };
      const divided = { ...definition, partitions: partitions.length, placement: placed };
      await this.#documents.save([{ ...table, explicit: true, definition: divided }]);
      await this.#holders?.setTables(this.definitions());
      return partitions;
    });
  }

  /**
   * Records the partitions of a table, as `change` derives them from the recorded ones. When all of
   * them have one model, so does the table. The data planes are not notified.
   */
  place(
    id: number,
    change: (definition: TableDefinition) => TablePlacement | Promise<TablePlacement>,
  ): Promise<TableDefinition> {
    return this.#serialized(async () => {
      const before = this.#stored(id);
      const definition = placedAs(before.definition, await change(before.definition));
      await this.#documents.save([{ ...before, definition, explicit: true }]);
      return definition;
    });
  }

  /** So many numbers for partitions, never given out before. */
  partitionNumbers(count: number): Promise<number[]> {
    return this.#numbers.take(count);
  }

  /** Forgets the definitions of a tenant that is being dropped. Its rows are gone already. */
  forgetTenant(tenant: string): Promise<void> {
    return this.#serialized(async () => {
      const tables = [...this.#documents.tables.values()].filter(
        (table) => table.tenant === tenant,
      );
      if (tables.length === 0) return;
      for (const { definition } of tables) await this.#documents.remove(definition.id);
      await this.#holders?.setTables(this.definitions());
    });
  }

  /** Tables without a definition that hold rows are given one first, so that they stay where they are. */
  async #followDefaultModel(holders: TableHolders): Promise<void> {
    const model = this.#options.defaultModel;
    const before = this.#documents.defaultModel;
    if (model === before) return;
    const pinned: StoredTable[] = [];
    for (const id of await holders.undefinedTables()) {
      const owner = this.#lookup.ownerOf(id);
      pinned.push(this.#lookup.table(owner, id - owner.firstTable));
    }
    await this.#documents.save(pinned);
    await holders.setTables(this.definitions());
    await this.#documents.saveDefaultModel(model);
    try {
      await holders.setDefaultModel(model);
    } catch (error) {
      await this.#documents.saveDefaultModel(before);
      throw error;
    }
  }

  #serialized<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#lastChange.then(async () => {
      try {
        return await change();
      } catch (error) {
        if (!(error instanceof RevisionConflict)) throw error;
        // Another server has changed the documents, or an earlier write with an unknown outcome has succeeded.
        await this.#documents.load();
        return await change();
      }
    });
    this.#lastChange = done.catch(() => {});
    return done;
  }

  async #change(
    table: StoredTable,
    change: TableChange,
    explicit: boolean,
    makes = false,
  ): Promise<TableDefinition> {
    const { id } = table.definition;
    const before = this.#documents.tables.get(id) ?? table;
    const isNew = !this.#documents.tables.has(id);
    const { name = before.definition.name, model = before.definition.model } = change;
    const definition = {
      ...before.definition,
      ...changedProperties(before.definition, change),
      id,
      name,
      model: model as TableModel,
    };
    const { level = () => Infinity } = this.#options;
    refuseUnknown(before.definition, definition, level());
    this.#check(definition, before.tenant);
    await this.#checkSharding(before.definition, definition, makes);
    if (this.#holders?.isCluster === true && isReshaped(before.definition, definition)) {
      return this.#reshape(before, definition, explicit);
    }
    const placement = await this.#newPlacement(before.definition, definition);
    if (placement === undefined) delete (definition as { placement?: unknown }).placement;
    else Object.assign(definition, { placement });
    const changesModel = definition.model !== before.definition.model;
    const { wanted: _, ...rest } = before;
    if (changesModel && this.#holders === undefined) {
      // It is unknown whether the table is empty; the next start decides.
      const kept = { ...definition, model: before.definition.model };
      await this.#documents.save([
        { ...rest, definition: kept, explicit, wanted: definition.model },
      ]);
      return kept;
    }
    if (changesModel) await this.#refuseIfRows(id, before.definition.model, definition.model);
    await this.#documents.save([{ ...rest, definition, explicit }]);
    try {
      await this.#holders?.setTables(this.definitions());
    } catch (error) {
      if (isNew) await this.#documents.remove(id);
      else await this.#documents.save([before]);
      const reason = error instanceof Error ? error.message : String(error);
      throw new TableError(
        'conflict',
        `table ${this.#lookup.nameOf(id)} cannot change so: ${reason}`,
      );
    }
    return definition;
  }

  /** In a cluster the change may be one of partitions, made while clients continue: resolves when that has ended. */
  async #changed(change: () => Promise<TableDefinition>): Promise<TableDefinition> {
    const definition = await this.#serialized(change);
    return this.#reshaping.has(definition) ? this.#whenReshaped(definition.id) : definition;
  }

  async #whenReshaped(id: number): Promise<TableDefinition> {
    const name = this.#lookup.nameOf(id);
    for (const end = performance.now() + reshapeMs; performance.now() < end; ) {
      const { definition } = this.#stored(id);
      const { change, failure } = definition.placement ?? {};
      if (failure !== undefined) {
        throw new TableError('conflict', `table ${name} cannot change so: ${failure}`);
      }
      if (change === undefined) return definition;
      await new Promise((resolve) => setTimeout(resolve, watchEveryMs));
    }
    throw new TableError(
      'conflict',
      `partitions of table ${name} are still being changed: polyrow partition list shows how far that is`,
    );
  }

  /**
   * The nodes of a cluster learn of a definition one after the other. So even an empty table changes like one with rows,
   * which its old partitions hand over: rows may be written meanwhile.
   */
  async #reshape(
    before: StoredTable,
    after: TableDefinition,
    explicit: boolean,
  ): Promise<TableDefinition> {
    const { id, model } = before.definition;
    // The old partitions hand over rows whose number is not known, too.
    const rows = (await this.rowCount(id)) ?? 0;
    if (rows > 0 && after.partitions !== before.definition.partitions) {
      throw this.#notDivided(id, `it holds ${rows} rows`);
    }
    if (rows > 0) await this.#refuseIfRows(id, model, after.model);
    if ((this.#options.level ?? (() => Infinity))() < changesLevel) {
      throw new TableError('conflict', changesRefusal);
    }
    this.#refuseIfChanging(before.definition);
    const map = partitionMapOf(before.definition);
    const { partitions: targets } = await this.#evenly(after.partitions, after);
    const change = inCluster({ sources: map.partitions.map(({ number }) => number), targets });
    const definition = {
      ...after,
      ...{ model, partitions: map.partitions.length, placement: { ...map, change } },
    };
    const { wanted: _, ...rest } = before;
    await this.#documents.save([{ ...rest, definition, explicit }]);
    await this.#holders?.setTables(this.definitions());
    this.#reshaping.add(definition);
    return definition;
  }

  #refuseIfChanging({ id, placement }: TableDefinition): void {
    if (placement?.change === undefined) return;
    const name = this.#lookup.nameOf(id);
    throw new TableError('conflict', `partitions of table ${name} are being changed`);
  }

  #notDivided(id: number, why: string): TableError {
    return new TableError(
      'conflict',
      `table ${this.#lookup.nameOf(id)} cannot be divided so, as ${why}: use polyrow partition split and merge`,
    );
  }

  /** An empty table may be divided anew. */
  async #newPlacement(
    before: TableDefinition,
    after: TableDefinition,
  ): Promise<TablePlacement | undefined> {
    const { id, partitions, model } = after;
    const isSame = partitions === before.partitions && model === before.model;
    if (isSame) return before.placement;
    const rows = await this.rowCount(id);
    if (rows === undefined && partitions === before.partitions && partitions === 1)
      return undefined;
    if (rows !== 0) {
      const has =
        rows === undefined ? 'it is not known whether it is empty' : `it holds ${rows} rows`;
      if (partitions === before.partitions) return before.placement;
      throw this.#notDivided(id, has);
    }
    this.#refuseIfChanging(before);
    const epoch = before.placement?.epoch ?? 0;
    // Groups of a cluster may have closed the table under its own number.
    if (partitions === 1 && epoch <= 1) return undefined;
    const placement = await this.#evenly(partitions, after);
    return epoch <= 1 ? placement : { ...placement, epoch: epoch + 1 };
  }

  /** Sharding is set when a table is made, and never changes. */
  async #checkSharding(
    { id, shardingKind: has }: TableDefinition,
    { shardingKind: wants }: TableProperties,
    makes: boolean,
  ): Promise<void> {
    if (has === wants || (makes && (await this.#rowsAgainst(id)) === 0)) return;
    throw new TableError(
      'conflict',
      `table ${this.#lookup.nameOf(id)} is sharded by ${has}: that is fixed when a table is created, and while it holds rows`,
    );
  }

  async #refuseIfRows(id: number, from: TableModel, to: TableModel): Promise<void> {
    const rows = await this.#rowsAgainst(id);
    if (rows === 0) return;
    throw new TableError(
      'conflict',
      `table ${this.#lookup.nameOf(id)} holds ${rows} rows in the ${from} engine and cannot become ${to}: empty it first (FLUSHDB) or use another database`,
    );
  }

  #check(definition: TableDefinition, tenant = defaultTenant): void {
    checkDefinition(definition);
    const { id, name } = definition;
    const owner = this.#lookup.owner(tenant);
    const namesake = this.#lookup.databaseCalled(owner, name);
    if (namesake === undefined || owner.firstTable + namesake === id) return;
    if (namesake >= owner.databases && !this.#documents.tables.has(owner.firstTable + namesake))
      return;
    const other = this.#lookup.nameOf(owner.firstTable + namesake);
    throw new TableError('conflict', `table ${other} is called ${name} already`);
  }
}

function isReshaped(before: TableDefinition, after: TableDefinition): boolean {
  return after.partitions !== before.partitions || after.model !== before.model;
}
