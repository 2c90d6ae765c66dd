// Documents in MongoDB, or in a server with its protocol. layout.ts describes the layout. Any
// number of these stores may share one database; each has all documents in memory, and fetches
// newer writes before it answers.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ChangeFollower } from '../change-follower.ts';
import { checkCollection, checkName, encodeBodies } from '../document-checks.ts';
import {
  type DocumentChange,
  type DocumentStore,
  type DocumentWrite,
  MetadataUnavailable,
  RevisionConflict,
  type Snapshot,
  type StoredDocument,
} from '../document-store.ts';
import { Checkpoints } from './checkpoints.ts';
import { Connection } from './connection.ts';
import { Deadline } from './deadline.ts';
import { inOurWords, ofReading } from './failures.ts';
import { type ChangeRecord, type LogRecord, revisionOf } from './layout.ts';
import { LogHints } from './log-hints.ts';
import { freshMs, LogReplica } from './log-replica.ts';
import { WriteLog } from './write-log.ts';

interface MongoDocumentStoreOptions {
  uri: string;
  /** Name of the database; by default the URI's, or `polyrow`. */
  database?: string;
  /** Time limit of a call in milliseconds. A call that has to wait for another call may take twice as long. */
  timeoutMs?: number;
  /** Polling interval without change streams. With change streams, polls are rarer. */
  pollMs?: number;
  /** Changes kept for followers, at least. */
  historyLength?: number;
  /** A store without the revisions read from it before counts as restored after this time. */
  restoredAfterMs?: number;
}

/** Bytes of bodies in the log after which a checkpoint is due, however few the writes. */
const checkpointBytes = 32 * 1024 * 1024;

export class MongoDocumentStore implements DocumentStore {
  readonly #timeoutMs: number;
  readonly #pollMs: number;
  readonly #historyLength: number;
  readonly #connection: Connection;
  readonly #log: WriteLog;
  readonly #checkpoints: Checkpoints;
  readonly #replica: LogReplica;
  readonly #hintListeners = new Set<() => void>();
  readonly #followers = new Set<ChangeFollower>();
  #hints: LogHints | undefined;
  #pull: Promise<unknown> = Promise.resolve();
  /** Starts when `#pull` is done; callers until then share it. */
  #nextPull: Promise<void> | undefined;
  #lastQueued: Promise<unknown> = Promise.resolve();
  #checkpointing: Promise<void> | undefined;

  /** Nothing is sent before the first call. Throws when the URI is not one. */
  constructor(options: MongoDocumentStoreOptions) {
    this.#timeoutMs = options.timeoutMs ?? 5000;
    this.#pollMs = options.pollMs ?? 250;
    this.#historyLength = options.historyLength ?? 10_000;
    const { uri, database } = options;
    this.#connection = new Connection({ uri, database, timeoutMs: this.#timeoutMs });
    this.#log = new WriteLog(this.#connection);
    this.#checkpoints = new Checkpoints(this.#connection);
    this.#replica = new LogReplica(this.#log, this.#checkpoints, options.restoredAfterMs ?? 10_000);
  }

  get revision(): number {
    return this.#replica.documents.revision;
  }

  get pollMs(): number {
    return this.streams ? 4 * this.#pollMs : this.#pollMs;
  }

  /** Whether changes arrive by a change stream instead of polling. */
  get streams(): boolean {
    return this.#hints?.isOpen ?? false;
  }

  async get(collection: string, id: string): Promise<StoredDocument | undefined> {
    checkName(collection, id);
    await this.#fresh();
    return structuredClone(this.#replica.documents.get(collection, id));
  }

  async list(collection: string): Promise<StoredDocument[]> {
    checkCollection(collection);
    await this.#fresh();
    return structuredClone(this.#replica.documents.list(collection));
  }

  async snapshot(): Promise<Snapshot> {
    await this.#fresh();
    return structuredClone(this.#replica.documents.snapshot());
  }

  async changes(after: number): Promise<DocumentChange[]> {
    await this.#freshOrBeyond(after);
    try {
      return structuredClone(await this.#replica.changes(after, new Deadline(this.#timeoutMs)));
    } catch (error) {
      throw ofReading(error);
    }
  }

  async write(writes: readonly DocumentWrite[]): Promise<number[]> {
    const texts = encodeBodies(writes);
    if (writes.length === 0) return [];
    const changes = writes.map(({ collection, id }, i): ChangeRecord => {
      const body = texts[i];
      return body === undefined ? { collection, id } : { collection, id, body };
    });
    const deadline = new Deadline(this.#timeoutMs);
    const done = this.#lastQueued.then(() => this.#write(writes, changes, deadline));
    this.#lastQueued = done.catch(() => {});
    try {
      const first = await done;
      for (const hint of this.#hintListeners) hint();
      return changes.map((_, i) => first + i);
    } catch (error) {
      throw inOurWords(error);
    }
  }

  /** The revision of the first change. */
  async #write(
    writes: readonly DocumentWrite[],
    changes: ChangeRecord[],
    deadline: Deadline,
  ): Promise<number> {
    // The last writer knows the end of the log without a query.
    const replica = this.#replica;
    let isKnown = performance.now() - replica.pulledAt < freshMs;
    for (let attempt = 0; ; attempt++) {
      if (!isKnown) await this.#fresh();
      const conflict = conflictOf(writes, replica);
      if (conflict !== undefined && !isKnown) throw conflict;
      // The list may include documents that have been replaced since.
      isKnown = false;
      if (conflict !== undefined) continue;
      const last = replica.position + changes.length;
      const write = randomUUID();
      const record = { _id: replica.nextPlace, write, last, at: Date.now(), changes };
      if (await this.#append(record, deadline)) {
        replica.take(record);
        this.#considerCheckpoint();
        return revisionOf(record._id);
      }
      // Another writer was faster and made progress. The next position to try is the one after it:
      // checking whether it is free takes as long.
      await sleep(Math.random() * Math.min(20, attempt));
      await this.#pullNext(deadline);
      isKnown = true;
    }
  }

  async #append(record: LogRecord, deadline: Deadline): Promise<boolean> {
    const knownAt = this.#replica.pulledAt;
    if (!(await this.#log.append(record, deadline))) return false;
    if (performance.now() - knownAt < freshMs) return true;
    // This took so long that the place may have been used and dropped meanwhile: if so, before a checkpoint
    // that is further on than the history is long.
    try {
      const newest = await this.#checkpoints.newest(deadline);
      const kept = newest === undefined ? 1 : revisionOf(newest._id) - this.#historyLength + 1;
      if (revisionOf(record._id) >= kept) return true;
      await this.#log.retract(record, deadline);
    } catch (error) {
      throw deadline.passed('unknown', inOurWords(error));
    }
    // Or it was in the history itself, and was dropped with it.
    throw new MetadataUnavailable('the metadata changes too fast to be written', 'unknown');
  }

  onHint(listener: () => void): () => void {
    this.#hintListeners.add(listener);
    this.#hints ??= new LogHints(this.#connection, () => {
      for (const hint of this.#hintListeners) hint();
    });
    return () => {
      this.#hintListeners.delete(listener);
    };
  }

  watch(listener: (change: DocumentChange) => void, missed?: () => void): () => void {
    const follower = new ChangeFollower(
      this,
      { changed: (changes) => changes.forEach(listener), replaced: () => missed?.() },
      { after: this.revision },
    );
    this.#followers.add(follower);
    return () => {
      this.#followers.delete(follower);
      // Its pending request ends by itself.
      void follower.close();
    };
  }

  async close(): Promise<void> {
    this.#hintListeners.clear();
    const closing = [...this.#followers].map((follower) => follower.close());
    await this.#lastQueued;
    while (this.#checkpointing !== undefined) await this.#checkpointing;
    if (this.#hints !== undefined) closing.push(this.#hints.close());
    await this.#connection.close();
    await Promise.all(closing);
  }

  async #pullNext(deadline: Deadline): Promise<void> {
    try {
      await this.#replica.pullNext(deadline);
    } catch (error) {
      throw ofReading(error);
    }
  }

  /** Resolves when everything written before the call is known. */
  #fresh(): Promise<void> {
    this.#nextPull ??= this.#pull
      .catch(() => {})
      .then(() => {
        this.#pull = this.#nextPull!;
        this.#nextPull = undefined;
        return this.#pullOnce();
      });
    return this.#nextPull;
  }

  /** If not all changes can be fetched, those beyond a revision will do. */
  async #freshOrBeyond(revision: number): Promise<void> {
    try {
      await this.#fresh();
    } catch (error) {
      if (this.revision <= revision) throw error;
    }
  }

  async #pullOnce(): Promise<void> {
    const deadline = () => new Deadline(this.#timeoutMs);
    try {
      await this.#connection.open(deadline());
      await this.#replica.pull(deadline);
      this.#connection.succeeded();
    } catch (error) {
      this.#connection.failed();
      throw ofReading(error);
    }
  }

  #considerCheckpoint(): void {
    const { revisions, bytes } = this.#replica.sinceCheckpoint;
    const isDue = revisions >= Math.max(1, this.#historyLength / 10) || bytes >= checkpointBytes;
    if (!isDue || this.#checkpointing !== undefined) return;
    this.#checkpointing = this.#checkpoint()
      .catch((error: unknown) => {
        // Out of reach: the next write tries again.
        if (!(inOurWords(error) instanceof MetadataUnavailable)) throw error;
        return false;
      })
      .then((isMade) => {
        this.#checkpointing = undefined;
        // Writes made meanwhile may be due for another checkpoint.
        if (isMade) this.#considerCheckpoint();
      });
  }

  async #checkpoint(): Promise<boolean> {
    const { position, lastWrite } = this.#replica;
    const snapshot = this.#replica.documents.snapshot();
    const deadline = () => new Deadline(this.#timeoutMs);
    await this.#checkpoints.write(snapshot, position, lastWrite!, deadline);
    this.#replica.checkpointMade(position);
    // The last write stays, by which it is seen that the store is still the same.
    const kept = position - this.#historyLength + 1;
    const before = Math.min(kept, revisionOf(lastWrite!.place));
    if (before > 1) await this.#log.trim(before, deadline());
    return true;
  }
}

function conflictOf(
  writes: readonly DocumentWrite[],
  { documents }: LogReplica,
): RevisionConflict | undefined {
  for (const { collection, id, expected } of writes) {
    const found = documents.get(collection, id)?.revision ?? 0;
    if (found !== expected) return new RevisionConflict(collection, id, expected, found);
  }
  return undefined;
}
