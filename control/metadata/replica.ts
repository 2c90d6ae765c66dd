// All documents of a store, in memory, as of one revision.

import { byBytes } from './document-checks.ts';
import type { DocumentChange, Snapshot, StoredDocument } from './document-store.ts';

export class Replica {
  readonly #collections = new Map<string, Map<string, StoredDocument>>();
  #revision = 0;

  get revision(): number {
    return this.#revision;
  }

  get(collection: string, id: string): StoredDocument | undefined {
    return this.#collections.get(collection)?.get(id);
  }

  /** By id, in the order of their bytes. */
  list(collection: string): StoredDocument[] {
    const documents = [...(this.#collections.get(collection)?.values() ?? [])];
    return documents.sort((a, b) => byBytes(a.id, b.id));
  }

  snapshot(): Snapshot {
    const names = [...this.#collections.keys()].sort(byBytes);
    return { revision: this.#revision, documents: names.flatMap((name) => this.list(name)) };
  }

  /** Afterwards the state is at `revision`, by default the last change's. */
  apply(changes: readonly DocumentChange[], revision = changes.at(-1)?.revision): void {
    for (const { collection, id, revision: at, body } of changes) {
      if (body === undefined) this.#remove(collection, id);
      else this.#put({ collection, id, revision: at, body });
    }
    this.#revision = revision ?? this.#revision;
  }

  /**
   * Replaces its state by a snapshot. Returns the changes that lead there. Removals come first, under the next known
   * revision, because their own is unknown.
   */
  replace(snapshot: Snapshot): DocumentChange[] {
    const gone = new Map<string, StoredDocument>();
    for (const documents of this.#collections.values()) {
      for (const document of documents.values()) gone.set(keyOf(document), document);
    }
    const changed: StoredDocument[] = [];
    for (const document of snapshot.documents) {
      const before = gone.get(keyOf(document));
      gone.delete(keyOf(document));
      if (before?.revision !== document.revision) changed.push(document);
    }
    const next = this.#revision + 1;
    for (const { collection, id } of gone.values()) this.#remove(collection, id);
    for (const document of changed) this.#put(document);
    this.#revision = snapshot.revision;
    return [
      ...[...gone.values()].map(({ collection, id }) => {
        return { revision: next, collection, id, body: undefined };
      }),
      ...changed.sort((a, b) => a.revision - b.revision),
    ];
  }

  #put(document: StoredDocument): void {
    let documents = this.#collections.get(document.collection);
    if (documents === undefined) {
      documents = new Map();
      this.#collections.set(document.collection, documents);
    }
    documents.set(document.id, document);
  }

  #remove(collection: string, id: string): void {
    const documents = this.#collections.get(collection);
    documents?.delete(id);
    if (documents?.size === 0) this.#collections.delete(collection);
  }
}

function keyOf({ collection, id }: StoredDocument): string {
  return `${collection}/${id}`;
}
