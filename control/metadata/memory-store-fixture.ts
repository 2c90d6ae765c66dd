// A document store for tests, in memory. It can fail from its n-th write on, as a server does that is killed
// between two of them, and can be given to the next life of one.

import {
  type DocumentChange,
  type DocumentStore,
  type DocumentWrite,
  RevisionConflict,
  type Snapshot,
  type StoredDocument,
} from './document-store.ts';

export class MemoryStore implements DocumentStore {
  readonly pollMs = 1000;
  revision = 0;
  /** Writes that succeed from here on. */
  writesLeft = Infinity;
  readonly #documents = new Map<string, StoredDocument>();
  readonly #history: DocumentChange[] = [];
  readonly #listeners = new Set<(change: DocumentChange) => void>();

  async get(collection: string, id: string): Promise<StoredDocument | undefined> {
    return structuredClone(this.#documents.get(`${collection}/${id}`));
  }

  async list(collection: string): Promise<StoredDocument[]> {
    return this.copyOf(collection);
  }

  copyOf(collection: string): StoredDocument[] {
    return this.#all().filter((document) => document.collection === collection);
  }

  async snapshot(): Promise<Snapshot> {
    return { revision: this.revision, documents: this.#all() };
  }

  #all(): StoredDocument[] {
    return [...this.#documents.values()].map((document) => structuredClone(document));
  }

  async changes(after: number): Promise<DocumentChange[]> {
    return this.changesAfter(after);
  }

  changesAfter(revision: number): DocumentChange[] {
    return this.#history.slice(revision);
  }

  watch(listener: (change: DocumentChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onHint(listener: () => void): () => void {
    return this.watch(listener);
  }

  async write(writes: readonly DocumentWrite[]): Promise<number[]> {
    if (this.writesLeft-- <= 0) throw new Error('the store is gone');
    return this.writeNow(writes);
  }

  /** Throws a `RevisionConflict`. */
  writeNow(writes: readonly DocumentWrite[]): number[] {
    for (const { collection, id, expected } of writes) {
      const found = this.#documents.get(`${collection}/${id}`)?.revision ?? 0;
      if (found !== expected) throw new RevisionConflict(collection, id, expected, found);
    }
    const changes = writes.map(({ collection, id, body }): DocumentChange => {
      const revision = ++this.revision;
      const document = structuredClone({ collection, id, revision, body });
      if (document.body === undefined) this.#documents.delete(`${collection}/${id}`);
      else this.#documents.set(`${collection}/${id}`, { ...document, body: document.body });
      return document;
    });
    this.#history.push(...changes);
    for (const change of changes) for (const listener of this.#listeners) listener(change);
    return changes.map(({ revision }) => revision);
  }

  /** Existing documents, as collection and id. */
  names(): string[] {
    return [...this.#documents.keys()].sort();
  }

  async close(): Promise<void> {}
}
