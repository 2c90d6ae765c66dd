// Makes a remote store always readable. It follows the store, keeps all of it in memory and in a local file, and answers
// from there, so an unavailable or slow store delays no reader and no start. Only writes need the store: while it is
// unavailable they are refused at once. When it is back, watchers get all changes made meanwhile.

import { ChangeFollower } from '../change-follower.ts';
import { checkCollection, checkName } from '../document-checks.ts';
import {
  type DocumentChange,
  type DocumentStore,
  type DocumentWrite,
  MetadataUnavailable,
  type Snapshot,
  type StoredDocument,
} from '../document-store.ts';
import { DamagedCopy, type LastKnown, LastKnownCopy, readLastKnown } from './last-known-copy.ts';
import { Replica } from '../replica.ts';

interface ResilientStoreOptions {
  store: DocumentStore;
  /** File of the copy. */
  copy: string;
  /** Time a start waits for the store if there is no copy to continue with. */
  startTimeoutMs?: number;
  onEvent?: (event: MetadataEvent) => void;
}

export type MetadataEvent =
  | { kind: 'lost'; error: Error; status: MetadataStatus }
  | { kind: 'back'; status: MetadataStatus }
  | { kind: 'copy-failed'; error: Error }
  | { kind: 'copy-back' };

export interface MetadataStatus {
  /** The store answered when it was last asked. */
  up: boolean;
  revision: number;
  /** Milliseconds since the cached state was last known to be complete. */
  ageMs: number;
}

const confirmEveryMs = 10_000;
/** Time a start waits for the store if there is a copy. */
const copyAfterMs = 2000;
/** Time a write that is made waits until it can be read here. */
const seenTimeoutMs = 2000;

export class ResilientStore implements DocumentStore {
  readonly #store: DocumentStore;
  readonly #copy: LastKnownCopy;
  readonly #onEvent: (event: MetadataEvent) => void;
  readonly #replica = new Replica();
  readonly #snapshot = () => this.#replica.snapshot();
  readonly #watchers = new Set<(change: DocumentChange) => void>();
  #follower: ChangeFollower | undefined;
  /** undefined until the store has answered, or has failed to. */
  #isUp: boolean | undefined;
  #failure: Error | undefined;
  /** Milliseconds since 1970; 0 before anything is known. */
  #confirmedAt = 0;
  #copyConfirmedAt = 0;
  #copyFails = false;

  private constructor(options: ResilientStoreOptions) {
    this.#store = options.store;
    this.#onEvent = options.onEvent ?? (() => {});
    this.#copy = new LastKnownCopy(options.copy, (error) => this.#copyTried(error));
  }

  /**
   * Resolves with the store's contents, or with the copy's if the store cannot be reached. Rejects
   * with `MetadataUnavailable` if there is no copy either; the store is closed then.
   */
  static async open(options: ResilientStoreOptions): Promise<ResilientStore> {
    const store = new ResilientStore(options);
    let known: LastKnown | undefined;
    let noCopy = 'there is no copy of the last known state';
    try {
      known = readLastKnown(options.copy);
    } catch (error) {
      if (!(error instanceof DamagedCopy)) throw error;
      noCopy = error.message;
      store.#copyTried(error);
    }
    if (known !== undefined) {
      store.#replica.replace(known.snapshot);
      store.#confirmedAt = known.confirmedAt;
    }
    const { startTimeoutMs = 10_000 } = options;
    const patienceMs = known === undefined ? startTimeoutMs : Math.min(startTimeoutMs, copyAfterMs);
    await store.#begin(patienceMs, known !== undefined);
    if (store.#confirmedAt === 0) {
      const reason = store.#failure?.message ?? 'the metadata store does not answer';
      const failure = { cause: store.#failure };
      await store.close();
      throw new MetadataUnavailable(`${reason}; and ${noCopy}`, 'none', failure);
    }
    return store;
  }

  #begin(timeoutMs: number, hasCopy: boolean): Promise<void> {
    return new Promise((resolve) => {
      const giveUp = () => {
        if (this.#isUp === undefined)
          this.#failed(new Error('the metadata store is slow to answer'));
        resolve();
      };
      const timer = setTimeout(giveUp, timeoutMs);
      const begun = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#follower = new ChangeFollower(this.#store, {
        changed: (changes) => this.#changed(changes),
        replaced: (snapshot) => this.#replaced(snapshot),
        reached: () => {
          this.#reached();
          begun();
        },
        failed: (error) => {
          this.#failed(error);
          if (hasCopy) begun();
        },
      });
    });
  }

  get revision(): number {
    return this.#replica.revision;
  }

  get pollMs(): number {
    return this.#store.pollMs;
  }

  get status(): MetadataStatus {
    const ageMs = Math.max(0, Date.now() - this.#confirmedAt);
    return { up: this.#isUp ?? false, revision: this.revision, ageMs };
  }

  async get(collection: string, id: string): Promise<StoredDocument | undefined> {
    checkName(collection, id);
    return structuredClone(this.#replica.get(collection, id));
  }

  async list(collection: string): Promise<StoredDocument[]> {
    checkCollection(collection);
    return structuredClone(this.#replica.list(collection));
  }

  async snapshot(): Promise<Snapshot> {
    return structuredClone(this.#replica.snapshot());
  }

  async write(changes: readonly DocumentWrite[]): Promise<number[]> {
    if (!this.#isUp) {
      const reason = this.#failure?.message ?? 'it has not answered yet';
      const message = `metadata cannot be changed now, it can only be used as last known: ${reason}`;
      throw new MetadataUnavailable(message, 'none', { cause: this.#failure });
    }
    const revisions = await this.#store.write(changes);
    await this.#follower!.caughtUp(revisions.at(-1) ?? 0, seenTimeoutMs);
    return revisions;
  }

  /** Only the store itself has them. Watchers do not need them. */
  async changes(after: number): Promise<DocumentChange[]> {
    return await this.#store.changes(after);
  }

  /** Misses no change: after any gap, the difference to the earlier reports is reported. */
  watch(listener: (change: DocumentChange) => void): () => void {
    this.#watchers.add(listener);
    return () => {
      this.#watchers.delete(listener);
    };
  }

  onHint(listener: () => void): () => void {
    return this.#store.onHint(listener);
  }

  async close(): Promise<void> {
    // Side by side: the follower may be waiting for an answer that closing puts an end to.
    await Promise.all([this.#follower?.close(), this.#store.close()]);
    if (this.#isUp) this.#copy.confirm(this.#snapshot);
    await this.#copy.close();
  }

  #changed(changes: readonly DocumentChange[]): void {
    this.#replica.apply(changes);
    this.#copy.add(changes, this.#snapshot);
    this.#tell(changes);
  }

  #replaced(snapshot: Snapshot): void {
    const changes = this.#replica.replace(snapshot);
    this.#copy.replace(this.#snapshot);
    this.#tell(changes);
  }

  #tell(changes: readonly DocumentChange[]): void {
    for (const change of changes) for (const watcher of this.#watchers) watcher(change);
  }

  #reached(): void {
    this.#confirmedAt = Date.now();
    if (this.#confirmedAt - this.#copyConfirmedAt >= confirmEveryMs) {
      this.#copyConfirmedAt = this.#confirmedAt;
      this.#copy.confirm(this.#snapshot);
    }
    const wasLost = this.#isUp === false;
    this.#isUp = true;
    this.#failure = undefined;
    if (wasLost) this.#onEvent({ kind: 'back', status: this.status });
  }

  #failed(error: Error): void {
    const isNews = this.#isUp !== false;
    this.#isUp = false;
    this.#failure = error;
    // Without anything to continue with, `open` tells.
    if (isNews && this.#confirmedAt > 0) {
      this.#onEvent({ kind: 'lost', error, status: this.status });
    }
  }

  #copyTried(error: Error | undefined): void {
    if (error !== undefined && !this.#copyFails) this.#onEvent({ kind: 'copy-failed', error });
    if (error === undefined && this.#copyFails) this.#onEvent({ kind: 'copy-back' });
    this.#copyFails = error !== undefined;
  }
}
