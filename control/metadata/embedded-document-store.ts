// Documents in a LevelDB of our own. Keys, with a zero byte between their parts:
//
//   d <collection> <id>      {"revision": n, "body": ...}
//   h <revision, 16 digits>  a change, as JSON
//
// A change and its history entry go in one synced batch, so that neither is ever there alone.

import { ClassicLevel } from 'classic-level';
import {
  type DocumentChange,
  type DocumentStore,
  type DocumentWrite,
  HistoryGone,
  type Json,
  RevisionConflict,
  type StoredDocument,
} from './document-store.ts';

interface Body {
  revision: number;
  body: Json;
}

const separator = '\0';
const afterSeparator = '\x01';

export interface EmbeddedDocumentStoreOptions {
  /** Changes kept for those who follow. */
  historyLength?: number;
}

export class EmbeddedDocumentStore implements DocumentStore {
  readonly #db: ClassicLevel<string, string>;
  readonly #historyLength: number;
  readonly #listeners = new Set<(change: DocumentChange) => void>();
  #revision = 0;
  #oldest = 1;
  /** Writes wait for each other: a comparison holds until its change is made. */
  #lastWrite: Promise<unknown> = Promise.resolve();

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

  async get(collection: string, id: string): Promise<StoredDocument | undefined> {
    const text = await this.#db.get(documentKey(collection, id));
    return text === undefined ? undefined : { collection, id, ...(JSON.parse(text) as Body) };
  }

  async list(collection: string): Promise<StoredDocument[]> {
    const prefix = documentKey(collection, '');
    const range = { gte: prefix, lt: prefix.slice(0, -1) + afterSeparator };
    const entries = await this.#db.iterator(range).all();
    return entries.map(([key, text]) => {
      return { collection, id: key.slice(prefix.length), ...(JSON.parse(text) as Body) };
    });
  }

  write(changes: readonly DocumentWrite[]): Promise<number[]> {
    const written = this.#lastWrite.then(() => this.#write(changes));
    this.#lastWrite = written.catch(() => {});
    return written;
  }

  async #write(writes: readonly DocumentWrite[]): Promise<number[]> {
    for (const { collection, id, expected } of writes) {
      const found = (await this.get(collection, id))?.revision ?? 0;
      if (found !== expected) throw new RevisionConflict(collection, id, expected, found);
    }
    const batch = this.#db.batch();
    const changes: DocumentChange[] = [];
    let revision = this.#revision;
    for (const { collection, id, body } of writes) {
      const change: DocumentChange = { revision: ++revision, collection, id, body };
      const key = documentKey(collection, id);
      if (body === undefined) batch.del(key);
      else batch.put(key, JSON.stringify({ revision, body } satisfies Body));
      batch.put(historyKey(revision), JSON.stringify(change));
      changes.push(change);
    }
    let oldest = this.#oldest;
    for (; revision - oldest >= this.#historyLength; oldest++) batch.del(historyKey(oldest));
    await batch.write({ sync: true });
    this.#revision = revision;
    this.#oldest = oldest;
    for (const change of changes) for (const listener of this.#listeners) listener(change);
    return changes.map((change) => change.revision);
  }

  async changes(after: number): Promise<DocumentChange[]> {
    if (after + 1 < this.#oldest) throw new HistoryGone(after, this.#oldest);
    const range = { gt: historyKey(after), lt: `h${afterSeparator}` };
    const texts = await this.#db.values(range).all();
    return texts.map((text) => {
      const { revision, collection, id, body } = JSON.parse(text) as DocumentChange;
      return { revision, collection, id, body };
    });
  }

  watch(listener: (change: DocumentChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    await this.#lastWrite;
    await this.#db.close();
  }
}

function documentKey(collection: string, id: string): string {
  if (collection.includes(separator) || id.includes(separator)) {
    throw new RangeError('a collection or document id cannot have a zero byte');
  }
  return `d${separator}${collection}${separator}${id}`;
}

function historyKey(revision: number): string {
  return `h${separator}${String(revision).padStart(16, '0')}`;
}
