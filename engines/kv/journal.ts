// Undo log of an entry: the changes its commands have made in memory, until `commit`.

import type { SuspendedEntry } from '../engine.ts';
import type { KvRecord, RecordSpace, RowRecord } from './record-space.ts';

/** Undoes one change. */
interface Undo {
  undo(): void;
}

/** See `Engine.suspend`. */
export interface SuspendedJournal extends SuspendedEntry {
  readonly journal: Undo[];
}

/** Puts the state of records right after they were changed back. */
interface RecordKeeper {
  /** The record's size has changed. */
  recount(record: KvRecord): void;
  /** A record that was not in memory before is there no more. */
  forget(record: KvRecord): void;
  /** The record does not differ from the one on disk any more. */
  settle(record: KvRecord): void;
}

export class Journal {
  /** Changes with each command; marks entries noted at most once a command. */
  command = 1;
  #entries: Undo[] = [];
  /** Journals put aside. */
  #suspended = 0;

  push(undo: Undo): void {
    this.#entries.push(undo);
  }

  get betweenCommands(): boolean {
    return this.#entries.length === 0 && this.#suspended === 0;
  }

  suspend(): SuspendedJournal | undefined {
    this.command++;
    if (this.#entries.length === 0) return undefined;
    const entry = { isSuspended: true as const, journal: this.#entries };
    this.#entries = [];
    this.#suspended++;
    return entry;
  }

  resume(entry: SuspendedJournal | undefined): void {
    this.command++;
    if (entry === undefined) return;
    this.#entries = entry.journal;
    this.#suspended--;
  }

  savepoint(): number {
    this.command++;
    return this.#entries.length;
  }

  rollbackTo(savepoint: number): void {
    this.command++;
    for (let i = this.#entries.length - 1; i >= savepoint; i--) this.#entries[i]!.undo();
    this.#entries.length = savepoint;
  }

  commit(): void {
    this.command++;
    if (this.#entries.length > 0) this.#entries = [];
  }

  rollback(): void {
    this.rollbackTo(0);
    this.#entries = [];
  }
}

/** Undoes that a record came into memory. */
export class Created implements Undo {
  readonly #keeper: RecordKeeper;
  readonly #record: KvRecord;

  constructor(keeper: RecordKeeper, record: KvRecord) {
    this.#keeper = keeper;
    this.#record = record;
  }

  undo(): void {
    this.#record.batch = 0;
    this.#record.present = false;
    this.#keeper.recount(this.#record);
    this.#keeper.forget(this.#record);
  }
}

/** Undoes a change of a record. */
export class ChangedRecord implements Undo {
  readonly #keeper: RecordKeeper;
  readonly #record: KvRecord;
  readonly #present: boolean;
  readonly #value: Buffer;
  readonly #score: number;
  readonly #batch: number;

  constructor(keeper: RecordKeeper, record: KvRecord) {
    this.#keeper = keeper;
    this.#record = record;
    this.#present = record.present;
    this.#value = record.value;
    this.#score = record.score;
    this.#batch = record.batch;
  }

  undo(): void {
    const record = this.#record;
    record.present = this.#present;
    record.value = this.#value;
    record.score = this.#score;
    record.batch = this.#batch;
    this.#keeper.recount(record);
    if (record.batch === 0) this.#keeper.settle(record);
  }
}

/** Undoes a change of a row. */
export class RowChanged implements Undo {
  readonly #row: RowRecord;
  readonly #changed: ChangedRecord;
  readonly #shape: RowRecord['shape'];
  readonly #expireAt: number;
  readonly #valueStart: number;
  readonly #number: number;
  readonly #count: number;
  readonly #bytes: number;
  readonly #head: number;
  readonly #sub: RecordSpace | undefined;

  constructor(keeper: RecordKeeper, row: RowRecord) {
    this.#row = row;
    this.#changed = new ChangedRecord(keeper, row);
    this.#shape = row.shape;
    this.#expireAt = row.expireAt;
    this.#valueStart = row.valueStart;
    this.#number = row.number;
    this.#count = row.count;
    this.#bytes = row.bytes;
    this.#head = row.head;
    this.#sub = row.sub;
  }

  undo(): void {
    const row = this.#row;
    row.shape = this.#shape;
    row.expireAt = this.#expireAt;
    row.valueStart = this.#valueStart;
    row.number = this.#number;
    row.count = this.#count;
    row.bytes = this.#bytes;
    row.head = this.#head;
    row.sub = this.#sub;
    this.#changed.undo();
  }
}
