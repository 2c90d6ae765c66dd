// One case of the suite on one new place for documents.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChangeFollower, type FeedListener } from '../change-follower.ts';
import type { DocumentChange, DocumentStore, Json, Snapshot } from '../document-store.ts';

/** Where documents are, empty at first. */
interface StorePlace {
  /** Opens it, or opens it once more where several can have it open. Keeps some `historyLength` changes. */
  open(historyLength: number): Promise<DocumentStore>;
  remove(): Promise<void>;
}

export interface StoreSubject {
  /** Several stores can have one place open. */
  shared: boolean;
  place(): Promise<StorePlace>;
}

export interface StoreCase {
  name: string;
  /** Left out where it cannot be tried. */
  needs?: 'shared';
  historyLength?: number;
  run(trial: Trial): Promise<void>;
}

export const collection = 'things';

export class Trial {
  readonly #place: StorePlace;
  readonly #historyLength: number;
  readonly #others: DocumentStore[] = [];
  store: DocumentStore;

  private constructor(place: StorePlace, historyLength: number, store: DocumentStore) {
    this.#place = place;
    this.#historyLength = historyLength;
    this.store = store;
  }

  static async open(subject: StoreSubject, historyLength = 1000): Promise<Trial> {
    const place = await subject.place();
    return new Trial(place, historyLength, await place.open(historyLength));
  }

  async another(): Promise<DocumentStore> {
    const store = await this.#place.open(this.#historyLength);
    this.#others.push(store);
    return store;
  }

  async reopen(): Promise<void> {
    await this.store.close();
    this.store = await this.#place.open(this.#historyLength);
  }

  async close(): Promise<void> {
    await Promise.all([this.store, ...this.#others].map((store) => store.close()));
    await this.#place.remove();
  }

  /** Writes one document; its revision. */
  async put(id: string, body: Json | undefined, expected = 0): Promise<number> {
    const [revision] = await this.store.write([{ collection, id, body, expected }]);
    return revision!;
  }

  async body(id: string): Promise<Json | undefined> {
    return (await this.store.get(collection, id))?.body;
  }

  async listed(): Promise<[id: string, body: Json][]> {
    return (await this.store.list(collection)).map(({ id, body }) => [id, body]);
  }

  /** All changes after a revision, however many calls it takes. */
  async allChanges(after: number, store = this.store): Promise<DocumentChange[]> {
    const all: DocumentChange[] = [];
    for (;;) {
      const some = await store.changes(all.at(-1)?.revision ?? after);
      if (some.length === 0) return all;
      all.push(...some);
    }
  }
}

/** The documents of a follower, built only from its notifications. */
export class Follower implements FeedListener {
  readonly told: DocumentChange[] = [];
  readonly documents = new Map<string, Json>();
  snapshots = 0;
  lastFailure: Error | undefined;
  readonly #feed: ChangeFollower;

  constructor(store: DocumentStore, after?: number) {
    const options = after === undefined ? {} : { after };
    this.#feed = new ChangeFollower(store, this, { retryMs: 50, ...options });
  }

  changed(changes: readonly DocumentChange[]): void {
    for (const change of changes) {
      this.told.push(change);
      if (change.body === undefined) this.documents.delete(change.id);
      else this.documents.set(change.id, change.body);
    }
  }

  replaced({ documents }: Snapshot): void {
    this.snapshots++;
    this.documents.clear();
    for (const { id, body } of documents) this.documents.set(id, body);
  }

  failed(error: Error): void {
    this.lastFailure = error;
  }

  async reaches(revision: number): Promise<void> {
    const isThere = await this.#feed.caughtUp(revision, 30_000);
    const where = `the feed is at ${this.#feed.position} and did not reach ${revision}`;
    assert(isThere, `${where}; it failed last with ${this.lastFailure}`);
  }

  close(): Promise<void> {
    return this.#feed.close();
  }
}

export async function eventually(check: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000;
  while (!check()) {
    assert(performance.now() < end, `${what} did not happen`);
    await sleep(10);
  }
}
