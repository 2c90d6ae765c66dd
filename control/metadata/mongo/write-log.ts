// The log of writes. The first writer to insert at a position owns it.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Collection } from 'mongodb';
import { MetadataUnavailable } from '../document-store.ts';
import type { Connection } from './connection.ts';
import type { Deadline } from './deadline.ts';
import { inOurWords, isDuplicate, isInDoubt } from './failures.ts';
import { type LogRecord, placeOf, revisionOf } from './layout.ts';

/** Pause between two attempts to determine the outcome of a write. */
const retryMs = 50;

export class WriteLog {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get #log(): Collection<LogRecord> {
    return this.#connection.collections.log;
  }

  async at(revision: number, deadline: Deadline): Promise<LogRecord | undefined> {
    const place = { _id: placeOf(revision) };
    return (await deadline.run((options) => this.#log.findOne(place, options))) ?? undefined;
  }

  /** The write that has a revision, not necessarily as its first. */
  async around(revision: number, deadline: Deadline): Promise<LogRecord | undefined> {
    const range = { _id: { $lte: placeOf(revision) } };
    const found = await deadline.run((options) =>
      this.#log.findOne(range, { sort: { _id: -1 }, ...options }),
    );
    return found !== null && found.last >= revision ? found : undefined;
  }

  /** From a revision that a write begins with, to the end or the first gap. */
  async *from(revision: number, deadline: Deadline): AsyncGenerator<LogRecord> {
    const range = { _id: { $gte: placeOf(revision) } };
    const cursor = this.#log.find(range).sort({ _id: 1 });
    try {
      for (let next = revision; ; ) {
        const record = await deadline.run(() => cursor.next());
        if (record === null || revisionOf(record._id) !== next) return;
        yield record;
        next = record.last + 1;
      }
    } finally {
      // Not awaited: the close may exceed the deadline as well.
      cursor.close().catch(() => {});
    }
  }

  /** False when the place is taken by another. */
  async append(record: LogRecord, deadline: Deadline): Promise<boolean> {
    try {
      await deadline.run((options) => this.#log.insertOne(record, options));
      return true;
    } catch (error) {
      if (isDuplicate(error)) return false;
      if (!isInDoubt(error)) throw error;
      return await this.#outcome(record, deadline, error);
    }
  }

  /**
   * Whether a write was made that nothing came back from. It may still be on its way: so if its place is
   * free, the place is taken from it.
   */
  async #outcome(record: LogRecord, deadline: Deadline, cause: unknown): Promise<boolean> {
    const { _id } = record;
    const last = revisionOf(_id);
    for (; !deadline.isPassed; await sleep(retryMs)) {
      try {
        const there = await this.at(last, deadline);
        if (there !== undefined) return there.write === record.write;
        const holder = { _id, write: randomUUID(), last, at: Date.now(), changes: [] };
        await deadline.run((options) => this.#log.insertOne(holder, options));
        return false;
      } catch (error) {
        // A duplicate id means that the position is taken; the majority read shows by which write. After the deadline
        // the loop ends.
        const isOpen = isDuplicate(error) || isInDoubt(error);
        if (!isOpen && !(inOurWords(error) instanceof MetadataUnavailable)) throw error;
      }
    }
    throw deadline.passed('unknown', inOurWords(cause));
  }

  /** Removes a write from a position that had been used and dropped long before. */
  async retract({ _id, write }: LogRecord, deadline: Deadline): Promise<void> {
    await deadline.run((options) => this.#log.deleteOne({ _id, write }, options));
  }

  /** Deletes all writes before `before`, which is the first revision of a write. */
  async trim(before: number, deadline: Deadline): Promise<void> {
    const older = { _id: { $lt: placeOf(before) } };
    await deadline.run((options) => this.#log.deleteMany(older, options));
  }
}
