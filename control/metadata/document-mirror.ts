// Some collections of the document store, in memory. A write through the mirror is visible in it at once; writes of
// others come through the store's feed. Both take the same path, on which each change of a document is applied once, in
// the order of revisions.

import {
  type DocumentStore,
  type DocumentWrite,
  type Json,
  RevisionConflict,
} from './document-store.ts';

export interface MirrorWrite {
  collection: string;
  id: string;
  /** undefined removes it. */
  body: Json | undefined;
}

export interface MirrorChange extends MirrorWrite {
  before: Json | undefined;
}

interface Mirrored {
  revision: number;
  /** undefined: removed in that revision, and news of an older one may yet come. */
  body: Json | undefined;
}

const reloadAfterMs = 1000;

export class DocumentMirror {
  readonly #store: DocumentStore;
  readonly #documents = new Map<string, Map<string, Mirrored>>();
  readonly #onChange: (change: MirrorChange) => void;
  readonly #unwatch: () => void;
  /** Removed documents, until the feed has come to their removal. */
  readonly #removed = new Map<string, { collection: string; id: string; revision: number }>();
  #revision = 0;
  /** How far the feed has come. */
  #fed = 0;
  /** Snapshots on their way. */
  #loading = 0;
  #isClosed = false;

  private constructor(
    store: DocumentStore,
    collections: readonly string[],
    onChange: (change: MirrorChange) => void,
  ) {
    this.#store = store;
    this.#onChange = onChange;
    for (const collection of collections) this.#documents.set(collection, new Map());
    this.#unwatch = store.watch(
      ({ collection, id, body, revision }) => {
        this.#fed = revision;
        this.#apply(collection, id, body, revision);
        this.#forgetRemoved();
      },
      () => void this.#load(),
    );
  }

  /** `onChange` is notified of every document there is, then of every change. */
  static async open(
    store: DocumentStore,
    collections: readonly string[],
    onChange: (change: MirrorChange) => void,
  ): Promise<DocumentMirror> {
    // Watch before loading, so that no change is missed.
    const mirror = new DocumentMirror(store, collections, onChange);
    await mirror.#loadOnce();
    return mirror;
  }

  /** After a gap in the feed. The store's own words tell why it cannot be had. */
  async #load(): Promise<void> {
    for (;;) {
      try {
        await this.#loadOnce();
        return;
      } catch {
        if (this.#isClosed) return;
        await new Promise((resolve) => setTimeout(resolve, reloadAfterMs).unref());
      }
    }
  }

  async #loadOnce(): Promise<void> {
    this.#loading++;
    try {
      const { documents, revision } = await this.#store.snapshot();
      const there = new Set<string>();
      for (const { collection, id, body, revision: of } of documents) {
        there.add(nameOf(collection, id));
        this.#apply(collection, id, body, of);
      }
      for (const [collection, mirrored] of this.#documents) {
        for (const id of mirrored.keys()) {
          if (!there.has(nameOf(collection, id))) this.#apply(collection, id, undefined, revision);
        }
      }
      this.#revision = Math.max(this.#revision, revision);
    } finally {
      this.#loading--;
      this.#forgetRemoved();
    }
  }

  /** Revision of the latest change it has seen. */
  get revision(): number {
    return this.#revision;
  }

  get(collection: string, id: string): Json | undefined {
    return this.#documents.get(collection)!.get(id)?.body;
  }

  has(collection: string, id: string): boolean {
    return this.get(collection, id) !== undefined;
  }

  /**
   * Applies all changes or none, durably. Throws `RevisionConflict` if another writer was first;
   * the mirror then has the other write, and the caller may retry.
   */
  async write(writes: readonly MirrorWrite[]): Promise<void> {
    const revisions = await this.#tryWrite(writes.map((write) => this.#expecting(write)));
    writes.forEach(({ collection, id, body }, i) => {
      // The feed may already have delivered a later change.
      if (revisions[i]! > this.#fed) this.#apply(collection, id, body, revisions[i]!);
    });
  }

  #expecting(write: MirrorWrite): DocumentWrite {
    // Only new documents can be written to a collection that is not mirrored.
    const found = this.#documents.get(write.collection)?.get(write.id);
    return { ...write, expected: found?.body === undefined ? 0 : found.revision };
  }

  async #tryWrite(writes: readonly DocumentWrite[]): Promise<number[]> {
    try {
      return await this.#store.write(writes);
    } catch (error) {
      if (error instanceof RevisionConflict) {
        for (const { collection, id } of writes) await this.#refresh(collection, id);
      }
      throw error;
    }
  }

  async #refresh(collection: string, id: string): Promise<void> {
    const revision = this.#store.revision;
    const found = await this.#store.get(collection, id);
    this.#apply(collection, id, found?.body, found?.revision ?? revision);
  }

  close(): void {
    this.#isClosed = true;
    this.#unwatch();
  }

  #apply(collection: string, id: string, body: Json | undefined, revision: number): void {
    const documents = this.#documents.get(collection);
    if (documents === undefined) return;
    const found = documents.get(id);
    if (found !== undefined && found.revision >= revision) return;
    this.#revision = Math.max(this.#revision, revision);
    documents.set(id, { revision, body });
    if (body === undefined) this.#removed.set(nameOf(collection, id), { collection, id, revision });
    if (found?.body === undefined && body === undefined) return;
    this.#onChange({ collection, id, before: found?.body, body });
  }

  #forgetRemoved(): void {
    // A snapshot may still be on its way that has them.
    if (this.#loading > 0) return;
    for (const [key, removed] of this.#removed) {
      if (removed.revision > this.#fed) continue;
      this.#removed.delete(key);
      const documents = this.#documents.get(removed.collection)!;
      if (documents.get(removed.id)?.revision === removed.revision) documents.delete(removed.id);
    }
  }
}

function nameOf(collection: string, id: string): string {
  return `${collection}/${id}`;
}
