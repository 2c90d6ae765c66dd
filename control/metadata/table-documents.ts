// Definitions of tables as documents of the store, and the default model; kept in memory with their revisions.

import { modelProperties } from '../../contracts/table-properties.ts';
import type { DocumentStore, Json } from './document-store.ts';
import type { TableDefinition, TableModel } from './table-definition.ts';
import { documentId } from './table-rules.ts';

const collection = 'tables';
const defaultsCollection = 'tableDefaults';
const modelDocument = 'model';

export const tableCollections = [collection, defaultsCollection];

export interface StoredTable {
  definition: TableDefinition;
  /** Missing for tenant default. */
  tenant?: string;
  /** Made by a person; otherwise it follows the default model for as long as it is empty. */
  explicit: boolean;
  /** A model asked for while no server ran, to be taken on at the next start if the table is empty. */
  wanted?: TableModel;
}

export class TableDocuments {
  readonly tables = new Map<number, StoredTable>();
  readonly revisions = new Map<number, number>();
  /** Called after each change of `tables`. */
  onChange: () => void = () => {};
  readonly #store: DocumentStore;
  #defaults: { model: TableModel; revision: number };

  constructor(store: DocumentStore, defaultModel: TableModel) {
    this.#store = store;
    this.#defaults = { model: defaultModel, revision: 0 };
  }

  /** Engine of the tables without a definition. */
  get defaultModel(): TableModel {
    return this.#defaults.model;
  }

  /** Loads the store's state. False where it has no default model yet. */
  async load(): Promise<boolean> {
    const documents = await this.#store.list(collection);
    const defaults = await this.#store.get(defaultsCollection, modelDocument);
    this.tables.clear();
    this.revisions.clear();
    for (const { body, revision } of documents) {
      const stored = body as unknown as StoredTable;
      // Definitions of earlier releases lack later properties.
      const definition = { ...modelProperties(stored.definition.model), ...stored.definition };
      // Earlier releases only counted the load on partitions.
      if (definition.placement === undefined) Object.assign(definition, { partitions: 1 });
      const table = { ...stored, definition };
      this.tables.set(table.definition.id, table);
      this.revisions.set(table.definition.id, revision);
    }
    this.onChange();
    if (defaults === undefined) return false;
    const { model } = defaults.body as unknown as { model: TableModel };
    this.#defaults = { model, revision: defaults.revision };
    return true;
  }

  async saveDefaultModel(model: TableModel): Promise<void> {
    const document = { collection: defaultsCollection, id: modelDocument };
    const expected = this.#defaults.revision;
    const [revision] = await this.#store.write([{ ...document, body: { model }, expected }]);
    this.#defaults = { model, revision: revision! };
  }

  async save(tables: readonly StoredTable[]): Promise<void> {
    if (tables.length === 0) return;
    const revisions = await this.#store.write(
      tables.map((table) => ({
        collection,
        id: documentId(table.definition.id),
        body: table as unknown as Json,
        expected: this.revisions.get(table.definition.id) ?? 0,
      })),
    );
    tables.forEach((table, i) => {
      this.tables.set(table.definition.id, table);
      this.revisions.set(table.definition.id, revisions[i]!);
    });
    this.onChange();
  }

  async remove(id: number): Promise<void> {
    const expected = this.revisions.get(id) ?? 0;
    if (expected > 0) {
      const document = { collection, id: documentId(id), body: undefined, expected };
      await this.#store.write([document]);
    }
    this.tables.delete(id);
    this.revisions.delete(id);
    this.onChange();
  }
}
