// Documents in a LevelDB of our own. Keys, with a zero byte between their parts:
//
//   d <collection> <id>      {"revision": n, "body": ...}
//   h <revision, 16 digits>  a change, as JSON, with the last revision of its write
//
// A change and its history entry go in one synced batch, so that neither is ever there alone.

import { ClassicLevel } from 'classic-level';
import { byBytes, checkCollection, checkName, encodeBodies } from './document-checks.ts';
import {
  type DocumentChange,
  type DocumentStore,
  type DocumentWrite,
  HistoryGone,
  type Json,
  RevisionConflict,
  type Snapshot,
  type StoredDocument,
} from './document-store.ts';

interface Body {
  revision: number;
  body: Json;
}

interface HistoryEntry extends DocumentChange {
  /** Last revision of the same write; older versions left it out. */
  last?: number;
}

/** Bytes after which `changes` leaves the rest to the next call. */
const changesBytes = 16 * 1024 * 1024;

const separator = '\0';
const afterSeparator = '\x01';

interface EmbeddedDocumentStoreOptions {
  /** Changes kept for followers. */
  historyLength?: number;
}

export class EmbeddedDocumentStore implements DocumentStore {
  readonly #db: ClassicLevel<string, string>;
  readonly #historyLength: number;
  readonly #listeners = new Set<(change: DocumentChange) => void>();
  #revision = 0;
  #oldest = 1;
  /** Writes wait for each other: a comparison holds until its change is made. */
  #lastQueued: Promise<unknown> = Promise.resolve();

  private constructor(db: ClassicLevel<string, string>, historyLength: number) {
    this.#db = db;
    this.#historyLength = historyLength;
  }

  /** Throws an error with the code LEVEL_LOCKED in its cause when another process has it open. */
  static async open(
    path: string,
    options: EmbeddedDocumentStoreOptions = {},
  ): Promise<EmbeddedDocumentStore> {
    const db = new ClassicLevel<string, string>(path, { compression: false });
    await db.open();
    const store = new EmbeddedDocumentStore(db, options.historyLength ?? 10_000);
    const history = { gt: `h${separator}`, lt: `h${afterSeparator}`, limit: 1 };
    const [first] = await db.keys(history).all();
    const [last] = await db.keys({ ...history, reverse: true }).all();
    store.#revision = last === undefined ? 0 : Number(last.slice(2));
    store.#oldest = first === undefined ? 1 : Number(first.slice(2));
    return store;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Followers hear of every change at once, so polling is rare. */
  readonly pollMs = 60_000;

  async get(collection: string, id: string): Promise<StoredDocument | undefined> {
    checkName(collection, id);
    const text = await this.#db.get(documentKey(collection, id));
    return text === undefined ? undefined : { collection, id, ...(JSON.parse(text) as Body) };
  }

  async list(collection: string): Promise<StoredDocument[]> {
    checkCollection(collection);
    const prefix = documentKey(collection, '');
    const range = { gte: prefix, lt: prefix.slice(0, -1) + afterSeparator };
    return (await this.#db.iterator(range).all()).map(document);
  }

  snapshot(): Promise<Snapshot> {
    // Serialized with the writes, so that the revision matches the documents.
    return this.#serialized(async () => {
      const range = { gte: `d${separator}`, lt: `d${afterSeparator}` };
      const documents = (await this.#db.iterator(range).all()).map(document);
      return { revision: this.#revision, documents: documents.sort(byName) };
    });
  }

  write(changes: readonly DocumentWrite[]): Promise<number[]> {
    return this.#serialized(() => this.#write(changes));
  }

  #serialized<T>(action: () => Promise<T>): Promise<T> {
    const done = this.#lastQueued.then(action);
    this.#lastQueued = done.catch(() => {});
    return done;
  }

  async #write(writes: readonly DocumentWrite[]): Promise<number[]> {
    const texts = encodeBodies(writes);
    for (const { collection, id, expected } of writes) {
      const found = (await this.get(collection, id))?.revision ?? 0;
      if (found !== expected) throw new RevisionConflict(collection, id, expected, found);
    }
    const batch = this.#db.batch();
    const changes: DocumentChange[] = [];
    const last = this.#revision + writes.length;
    let revision = this.#revision;
    writes.forEach(({ collection, id }, i) => {
      const text = texts[i];
      // Followers get a copy, because the caller may change its object later.
      const body = text === undefined ? undefined : (JSON.parse(text) as Json);
      const change: DocumentChange = { revision: ++revision, collection, id, body };
      const key = documentKey(collection, id);
      if (body === undefined) batch.del(key);
      else batch.put(key, JSON.stringify({ revision, body } satisfies Body));
      batch.put(historyKey(revision), JSON.stringify({ ...change, last } satisfies HistoryEntry));
      changes.push(change);
    });
    let oldest = this.#oldest;
    for (; revision - oldest >= this.#historyLength; oldest++) batch.del(historyKey(oldest));
    await batch.write({ sync: true });
    this.#revision = revision;
    this.#oldest = oldest;
    for (const change of changes) for (const listener of this.#listeners) listener(change);
    return changes.map((change) => change.revision);
  }

  async changes(after: number): Promise<DocumentChange[]> {
    const oldest = this.#oldest;
    if (after + 1 < oldest || after > this.#revision) throw new HistoryGone(after, oldest);
    const range = { gt: historyKey(after), lt: `h${afterSeparator}` };
    const changes: DocumentChange[] = [];
    let bytes = 0;
    for await (const [key, text] of this.#db.iterator(range)) {
      // Some may have been dropped between the look above and the first read.
      if (changes.length === 0 && key !== historyKey(after + 1)) {
        throw new HistoryGone(after, this.#oldest);
      }
      const { revision, collection, id, body, last } = JSON.parse(text) as HistoryEntry;
      changes.push({ revision, collection, id, body });
      bytes += text.length;
      if (bytes > changesBytes && revision === (last ?? revision)) break;
    }
    return changes;
  }

  watch(listener: (change: DocumentChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onHint(listener: () => void): () => void {
    return this.watch(listener);
  }

  async close(): Promise<void> {
    await this.#lastQueued;
    await this.#db.close();
  }
}

function documentKey(collection: string, id: string): string {
  return `d${separator}${collection}${separator}${id}`;
}

function document([key, text]: [string, string]): StoredDocument {
  const [, collection, id] = key.split(separator) as [string, string, string];
  return { collection, id, ...(JSON.parse(text) as Body) };
}

function byName(a: StoredDocument, b: StoredDocument): number {
  return byBytes(a.collection, b.collection) || byBytes(a.id, b.id);
}

function historyKey(revision: number): string {
  return `h${separator}${String(revision).padStart(16, '0')}`;
}
