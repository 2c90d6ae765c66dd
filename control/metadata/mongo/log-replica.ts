// All documents in memory, built from the log. The state never contains a part of a write.

import {
  type DocumentChange,
  HistoryGone,
  MetadataUnavailable,
  type StoredDocument,
} from '../document-store.ts';
import { Replica } from '../replica.ts';
import type { Checkpoints } from './checkpoints.ts';
import type { Deadline } from './deadline.ts';
import { type CheckpointRecord, changesOf, type LogRecord, placeOf, revisionOf } from './layout.ts';
import { RecentChanges } from './recent-changes.ts';
import type { WriteLog } from './write-log.ts';

/** Writes read one by one before the rest is read in one go. */
const oneByOne = 3;
/** Within this time no writer can have written so much that the log up to there is dropped. */
export const freshMs = 1000;
/** Bytes of bodies after which `changes` leaves the rest to the next call. */
const changesBytes = 8 * 1024 * 1024;

export class LogReplica {
  readonly documents = new Replica();
  readonly #log: WriteLog;
  readonly #checkpoints: Checkpoints;
  readonly #restoredAfterMs: number;
  readonly #recent = new RecentChanges();
  #isLoaded = false;
  #position = 0;
  #lastWrite: { place: string; write: string } | undefined;
  #pulledAt = Number.NEGATIVE_INFINITY;
  /** When it was last made sure that the end of the log is its end, and the log the same. */
  #checkedAt = Number.NEGATIVE_INFINITY;
  #behindSince: number | undefined;
  #checkpointed = 0;
  #bytesSince = 0;

  /**
   * A store without the revisions read from it before was restored, if it stays so for
   * `restoredAfterMs`.
   */
  constructor(log: WriteLog, checkpoints: Checkpoints, restoredAfterMs: number) {
    this.#restoredAfterMs = restoredAfterMs;
    this.#log = log;
    this.#checkpoints = checkpoints;
  }

  /** The last occupied revision. The last change's revision may be lower. */
  get position(): number {
    return this.#position;
  }

  get lastWrite(): { place: string; write: string } | undefined {
    return this.#lastWrite;
  }

  /** When, in monotonic milliseconds, all that is known was all there was. */
  get pulledAt(): number {
    return this.#pulledAt;
  }

  /** Revisions, and bytes of bodies, since the last checkpoint. */
  get sinceCheckpoint(): { revisions: number; bytes: number } {
    return { revisions: this.#position - this.#checkpointed, bytes: this.#bytesSince };
  }

  checkpointMade(position: number): void {
    this.#checkpointed = Math.max(this.#checkpointed, position);
    this.#bytesSince = 0;
  }

  /**
   * Applies at least all writes that were in the log at the call. After a failure, some of them may be applied. Must
   * not be called concurrently.
   */
  async pull(newDeadline: () => Deadline): Promise<void> {
    const began = performance.now();
    if (!(await this.#pullFew(began, newDeadline()))) {
      if (!this.#isLoaded)
        throw new MetadataUnavailable('the metadata changes too fast to be read');
      // Entries that arrive meanwhile are left to the next call, so that this one ends.
      const rest = this.#log.from(this.#position + 1, newDeadline());
      for await (const record of rest) this.take(record);
    }
    this.#pulledAt = began;
  }

  /** As far as the next write, if there is one. */
  async pullNext(deadline: Deadline): Promise<void> {
    const record = await this.#log.at(this.#position + 1, deadline);
    if (record !== undefined) this.take(record);
  }

  /** One by one, which is quick where nothing or little has come. Whether that was all. */
  async #pullFew(began: number, deadline: Deadline): Promise<boolean> {
    for (let reads = 0; reads < oneByOne; reads++) {
      if (!this.#isLoaded) await this.#load(await this.#checkpoints.newest(deadline), deadline);
      const record = await this.#log.at(this.#position + 1, deadline);
      if (record !== undefined) this.take(record);
      else if (began - this.#checkedAt < freshMs) return true;
      else if (await this.#isEnd(deadline)) {
        this.#checkedAt = began;
        return true;
      }
    }
    return false;
  }

  /** The next write; any other is known already. */
  take(record: LogRecord): void {
    const first = revisionOf(record._id);
    if (first !== this.#position + 1) return;
    const changes = changesOf(record);
    const bytes = record.changes.reduce((sum, { body }) => sum + (body?.length ?? 0), 0);
    this.documents.apply(changes);
    this.#recent.add({ first, last: record.last, changes, bytes });
    this.#position = record.last;
    this.#lastWrite = { place: record._id, write: record.write };
    this.#bytesSince += bytes;
  }

  /** The first known changes after a revision. */
  async changes(after: number, deadline: Deadline): Promise<DocumentChange[]> {
    const { revision } = this.documents;
    if (after === revision) return [];
    if (after > revision) throw new HistoryGone(after, revision);
    return this.#recent.after(after) ?? (await this.#changesInLog(after, deadline));
  }

  async #changesInLog(after: number, deadline: Deadline): Promise<DocumentChange[]> {
    const end = this.#position;
    const begin = await this.#log.around(after + 1, deadline);
    if (begin === undefined) throw new HistoryGone(after, end);
    const changes: DocumentChange[] = [];
    let bytes = 0;
    let last = after;
    for await (const record of this.#log.from(revisionOf(begin._id), deadline)) {
      changes.push(...changesOf(record).filter((change) => change.revision > after));
      bytes += record.changes.reduce((sum, { body }) => sum + (body?.length ?? 0), 0);
      last = record.last;
      if (last >= end || (bytes > changesBytes && changes.length > 0)) return changes;
    }
    // Dropped from under us.
    throw new HistoryGone(after, last);
  }

  /** That there is no next write means that this is the last, or that the next ones are dropped. */
  async #isEnd(deadline: Deadline): Promise<boolean> {
    const newest = await this.#checkpoints.newest(deadline);
    const reached = newest === undefined ? 0 : revisionOf(newest._id);
    if (reached > this.#position) {
      // Unless it has come only now.
      if ((await this.#log.at(this.#position + 1, deadline)) === undefined) {
        await this.#load(newest, deadline);
      }
      return false;
    }
    this.#checkpointed = Math.max(this.#checkpointed, reached);
    if (await this.#hasLastWrite(deadline)) {
      this.#behindSince = undefined;
      return true;
    }
    // A node that has just taken over may be behind for a moment.
    this.#behindSince ??= performance.now();
    if (performance.now() - this.#behindSince < this.#restoredAfterMs) {
      throw new MetadataUnavailable(
        'the metadata store lacks changes that were read from it before',
      );
    }
    this.#behindSince = undefined;
    await this.#load(newest, deadline);
    return false;
  }

  async #hasLastWrite(deadline: Deadline): Promise<boolean> {
    if (this.#lastWrite === undefined) return true;
    const { place, write } = this.#lastWrite;
    return (await this.#log.at(revisionOf(place), deadline))?.write === write;
  }

  /** From a checkpoint, or from nothing. */
  async #load(from: CheckpointRecord | undefined, deadline: Deadline): Promise<void> {
    this.#isLoaded = false;
    let documents: StoredDocument[] | undefined = [];
    if (from !== undefined) documents = await this.#checkpoints.read(from, deadline);
    // Dropped for a newer one, which the next attempt finds.
    if (documents === undefined) return;
    this.documents.replace({ revision: from?.revision ?? 0, documents });
    this.#recent.clear();
    this.#position = from === undefined ? 0 : revisionOf(from._id);
    this.#lastWrite = from === undefined ? undefined : { place: from.place, write: from.write };
    this.#checkpointed = this.#position;
    this.#bytesSince = 0;
    this.#isLoaded = true;
  }

  /** The place for the next write. */
  get nextPlace(): string {
    return placeOf(this.#position + 1);
  }
}
