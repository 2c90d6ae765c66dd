// Write queue from memory to disk. Changes of commands are collected; at the end of a tick, when
// the previous batch is on disk, all collected changes are written as one LevelDB batch, together
// with the index of the last log entry in it. So the disk always holds the state after some entry,
// and a record changed many times in a while is written once. LevelDB does not sync: the log above
// does.
//
// When LevelDB fails, the failed batch is collected again, and the database is reopened now and
// then until writing works.

import { LevelBatch, type LevelStore } from './level-store.ts';
import type { KvRecord } from './record-space.ts';

/** Services the queue needs from its owner. */
export interface QueueOwner {
  /** Whether everything done so far belongs to committed entries. */
  readonly betweenCommands: boolean;
  /** Adds records about the engine itself: applied index, tables. */
  addState(batch: LevelBatch): void;
  /** The state was not written after all. */
  stateLost(): void;
  /** A record is on disk as of this batch. */
  written(record: KvRecord): void;
  discarded(record: KvRecord): void;
  batchWritten(batch: number, notes: readonly Note[]): void;
}

/** A record about a purge, and the purge to run once the record is on disk. */
export interface Note {
  key: Buffer;
  value: Buffer | undefined;
  row?: number;
  generation?: number;
  /** About how much the purge will free. */
  bytes?: number;
}

interface Sealed {
  number: number;
  records: KvRecord[];
  notes: Note[];
  batch: LevelBatch;
  then: Waiter[];
}

interface Waiter {
  resolve: () => void;
  reject: (reason: unknown) => void;
}

const retryMs = 500;

export class WriteQueue {
  failure: Error | undefined = undefined;
  /** Bytes of records that are not known to be on disk. */
  waitingBytes = 0;
  batches = 0;
  writtenRecords = 0;
  writtenBytes = 0;
  lastBatchMs = 0;
  maxBatchMs = 0;
  /** Number of the batch being gathered. */
  gathering = 1;
  /** Notes written in the same batch. */
  readonly notes: Note[] = [];
  stateChanged = false;
  #records: KvRecord[] = [];
  #then: Waiter[] = [];
  readonly #sealed: Sealed[] = [];
  #writing: Promise<void> | undefined = undefined;
  #retryTimer: NodeJS.Timeout | undefined = undefined;
  #closed = false;
  readonly #level: LevelStore;
  readonly #owner: QueueOwner;
  readonly #limitBytes: number;
  #drained: Waiter[] = [];

  constructor(level: LevelStore, owner: QueueOwner, limitBytes: number) {
    this.#level = level;
    this.#owner = owner;
    this.#limitBytes = limitBytes;
  }

  /** Lets a changed record go with the next batch. */
  add(record: KvRecord): void {
    record.batch = this.gathering;
    this.#records.push(record);
  }

  get overLimit(): boolean {
    return this.waitingBytes > this.#limitBytes;
  }

  #letGo(): void {
    if (!this.overLimit) for (const waiter of this.#drained.splice(0)) waiter.resolve();
  }

  /** Resolves when no more waits than should. */
  drained(): Promise<void> {
    if (!this.overLimit) return Promise.resolve();
    return new Promise((resolve, reject) => this.#drained.push({ resolve, reject }));
  }

  /** Notes that are not on disk yet. */
  get notesUnderWay(): number {
    let count = this.notes.length;
    for (const { notes } of this.#sealed) count += notes.length;
    return count;
  }

  endTick(): void {
    if (this.#writing !== undefined || this.failure !== undefined || this.#closed) return;
    if (this.#hasWork() && this.#owner.betweenCommands) {
      this.#seal();
      this.#writeNext();
    }
  }

  /**
   * Calls `then` at the moment when the disk holds exactly the state committed at this call, and
   * resolves after it.
   */
  async settled(then: () => void = () => {}): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    if (!this.#hasWork() && this.#writing === undefined) {
      then();
      return;
    }
    await new Promise<void>((resolve, reject) => {
      this.#then.push({
        resolve: () => {
          then();
          resolve();
        },
        reject,
      });
      if (this.#owner.betweenCommands) {
        this.#seal();
        this.#writeNext();
      }
    });
  }

  /** Changes of uncommitted entries are not written: they cannot be committed any more. */
  async close(): Promise<void> {
    try {
      if (this.failure === undefined && this.#owner.betweenCommands) await this.settled();
    } finally {
      this.#closed = true;
      clearTimeout(this.#retryTimer);
      await this.#writing;
      for (const waiter of this.#drained.splice(0)) waiter.resolve();
    }
  }

  #hasWork(): boolean {
    return (
      this.#records.length > 0 ||
      this.notes.length > 0 ||
      this.stateChanged ||
      this.#then.length > 0
    );
  }

  #seal(): void {
    const number = this.gathering;
    const batch = new LevelBatch();
    const records: KvRecord[] = [];
    for (const record of this.#records) {
      if (record.batch !== number) continue;
      const { space } = record;
      if (space.dropped || space.table.dropped) {
        record.batch = 0;
        this.#owner.discarded(record);
        continue;
      }
      records.push(record);
      if (record.present) {
        record.fresh = false;
        space.onDisk = true;
        batch.put(space.diskKey(record.key), space.encode(record));
      } else if (!record.fresh) {
        batch.del(space.diskKey(record.key));
      }
    }
    const notes = this.notes.splice(0);
    for (const { key, value } of notes) {
      if (value === undefined) batch.del(key);
      else batch.put(key, value);
    }
    this.#owner.addState(batch);
    this.stateChanged = false;
    this.#records = [];
    this.gathering++;
    this.#sealed.push({ number, records, notes, batch, then: this.#then.splice(0) });
  }

  #writeNext(): void {
    if (this.#writing !== undefined) return;
    const sealed = this.#sealed[0];
    if (sealed === undefined) return;
    this.#writing = this.#write(sealed);
  }

  async #write(sealed: Sealed): Promise<void> {
    const startedAt = performance.now();
    try {
      await this.#level.write(sealed.batch);
    } catch (error) {
      this.#writing = undefined;
      this.#fail(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.lastBatchMs = performance.now() - startedAt;
    this.maxBatchMs = Math.max(this.maxBatchMs, this.lastBatchMs);
    this.batches++;
    this.writtenRecords += sealed.batch.keys.length;
    this.writtenBytes += sealed.batch.bytes;
    this.failure = undefined;
    this.#sealed.shift();
    for (const record of sealed.records) this.#owner.written(record);
    this.#owner.batchWritten(sealed.number, sealed.notes);
    this.#writing = undefined;
    for (const waiter of sealed.then) waiter.resolve();
    this.#letGo();
    if (this.#closed) return;
    if (this.#sealed.length > 0) this.#writeNext();
    else this.endTick();
  }

  #fail(error: Error): void {
    const cause = error.cause instanceof Error ? error.cause : error;
    this.failure = new Error(`LevelDB in ${this.#level.directory}: ${cause.message}`, {
      cause: error,
    });
    const notes: Note[] = [];
    for (const sealed of this.#sealed.splice(0)) {
      for (const record of sealed.records) {
        if (record.batch === sealed.number) this.add(record);
      }
      notes.push(...sealed.notes);
      for (const waiter of sealed.then) waiter.reject(this.failure);
    }
    this.notes.unshift(...notes);
    this.#owner.stateLost();
    this.stateChanged = true;
    this.#retryLater();
  }

  #retryLater(): void {
    if (this.#closed) return;
    this.#retryTimer = setTimeout(() => void this.#retry(), retryMs);
    this.#retryTimer.unref();
  }

  async #retry(): Promise<void> {
    try {
      await this.#level.reopen();
    } catch {
      this.#retryLater();
      return;
    }
    if (this.#closed) return;
    if (!this.#owner.betweenCommands) {
      this.#retryLater();
      return;
    }
    this.#seal();
    this.#writeNext();
  }
}
