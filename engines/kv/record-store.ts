// Records in memory above LevelDB: those waiting to be written, cached ones, and cached absences.
// Reads answer at once or throw `ReadFault`; writes are visible at once and can be undone until
// `commit`.

import { Shape } from '../../universal-row/rows.ts';
import type { ReadScheduler } from '../engine.ts';
import { ChangedRecord, Created, Journal, RowChanged } from './journal.ts';
import { lastKey, subPrefix } from './key-layout.ts';
import type { LevelBatch, LevelStore } from './level-store.ts';
import { Loader, type LoadReceiver } from './loader.ts';
import { RecordCache, stretchOverheadBytes, stretchRecords } from './record-cache.ts';
import { type KvRecord, RecordSpace, RowRecord, Stretch } from './record-space.ts';
import { WriteQueue, type Note, type QueueOwner } from './write-queue.ts';

/** The engine's own part of a batch. */
export interface StoreOwner {
  addState(batch: LevelBatch): void;
  stateLost(): void;
  /** The records that these notes describe may be purged. */
  notesWritten(notes: readonly Note[]): void;
}

interface StoreOptions {
  cacheBytes: number;
  /** Size of records waiting to be written, beyond which writers should wait too. */
  waitingLimitBytes: number;
  readScheduler: ReadScheduler | undefined;
}

// Records of dropped rows that are freed in one tick.
const sweepRecords = 500;

export class RecordStore implements LoadReceiver, QueueOwner {
  /** See `Engine.holdsBack`. */
  holdsBack = false;
  misses = 0;
  readonly queue: WriteQueue;
  readonly loader: Loader;
  readonly cache: RecordCache;
  readonly journal = new Journal();
  readonly #owner: StoreOwner;
  /** Batches on disk whose records still take precedence over results of older loads. */
  #unreleased: { below: number; batch: number; records: KvRecord[] }[] = [];
  #justWritten: KvRecord[] = [];
  readonly #guardTick = (): number => this.loader.guardTick();
  /** Spaces whose row is gone, with how far they were cleared out of memory. */
  readonly #abandoned: { space: RecordSpace; records: IterableIterator<KvRecord> }[] = [];

  constructor(level: LevelStore, owner: StoreOwner, options: StoreOptions) {
    this.#owner = owner;
    this.cache = new RecordCache(options.cacheBytes);
    this.queue = new WriteQueue(level, this, options.waitingLimitBytes);
    this.loader = new Loader(level, this, options.readScheduler);
  }

  get tick(): number {
    return this.cache.tick;
  }

  get betweenCommands(): boolean {
    return this.journal.betweenCommands && !this.holdsBack;
  }

  // ---- reading

  /** The record under a key, undefined when there is none. */
  read(space: RecordSpace, key: string): KvRecord | undefined {
    const record = space.records.get(key);
    if (record !== undefined) {
      this.cache.touch(record);
      return record.present ? record : undefined;
    }
    if (space.stretchAt(key) !== undefined) return undefined;
    this.misses++;
    this.loader.fault(space, key);
    const loaded = space.records.get(key);
    return loaded?.present === true ? loaded : undefined;
  }

  /** Whether `read` would answer. */
  knows(space: RecordSpace, key: string): boolean {
    return space.records.has(key) || space.stretchAt(key) !== undefined;
  }

  /**
   * Visits records with from <= key < to after passing over `offset` of them; `want` is how many are
   * likely to be needed in all.
   */
  forward(
    space: RecordSpace,
    from: string,
    to: string,
    offset: number,
    want: number,
    visit: (record: KvRecord) => boolean | void,
  ): void {
    let at = from;
    let seen = 0;
    const seePresent = (record: KvRecord): boolean | void => {
      if (!record.present) return false;
      return ++seen > offset ? visit(record) : false;
    };
    while (at < to) {
      const stretch = space.stretchAt(at);
      if (stretch === undefined) return this.#missPage(space, at, to, false, want - seen);
      this.cache.touch(stretch);
      const order = space.ensureOrder();
      const end = stretch.to < to ? stretch.to : to;
      if (seen < offset && order.absent === 0) {
        const count = order.count(at, end);
        if (seen + count <= offset) {
          seen += count;
          at = stretch.to;
          continue;
        }
        at = order.keyAfter(at, offset - seen);
        seen = offset;
      }
      if (order.forward(at, end, seePresent)) return;
      at = stretch.to;
    }
  }

  /** As `forward`, from the greatest key below `to` downwards. */
  backward(
    space: RecordSpace,
    from: string,
    to: string,
    offset: number,
    want: number,
    visit: (record: KvRecord) => boolean | void,
  ): void {
    let at = to;
    let seen = 0;
    const seePresent = (record: KvRecord): boolean | void => {
      if (!record.present) return false;
      return ++seen > offset ? visit(record) : false;
    };
    while (at > from) {
      const stretch = space.stretchBelow(at);
      if (stretch === undefined) return this.#missPage(space, at, from, true, want - seen);
      this.cache.touch(stretch);
      const order = space.ensureOrder();
      const end = stretch.from > from ? stretch.from : from;
      if (seen < offset && order.absent === 0) {
        const count = order.count(end, at);
        if (seen + count <= offset) {
          seen += count;
          at = stretch.from;
          continue;
        }
        at = `${order.keyBefore(at, offset - seen)}\0`;
        seen = offset;
      }
      if (order.backward(end, at, seePresent)) return;
      at = stretch.from;
    }
  }

  /** How many records there are with from <= key < to. */
  count(space: RecordSpace, from: string, to: string): number {
    let at = from;
    let count = 0;
    while (at < to) {
      const stretch = space.stretchAt(at);
      if (stretch === undefined) return this.#missPage(space, at, to, false, 0);
      this.cache.touch(stretch);
      const order = space.ensureOrder();
      const end = stretch.to < to ? stretch.to : to;
      if (order.absent === 0) {
        count += order.count(at, end);
      } else {
        order.forward(at, end, (record) => {
          if (record.present) count++;
        });
      }
      at = stretch.to;
    }
    return count;
  }

  /**
   * The page extends beyond the walk's request, as far as its size allows: the next walk is likely
   * to go a little further.
   */
  #missPage(
    space: RecordSpace,
    at: string,
    walkEnd: string,
    reverse: boolean,
    want: number,
  ): never {
    this.misses++;
    const part = (reverse ? walkEnd : at).charCodeAt(0);
    let bound = reverse ? '' : lastKey;
    if (space.kind === 'sub') bound = String.fromCharCode(reverse ? part : part + 1);
    // Reading on to the next stretch is enough.
    const stretch = reverse ? space.nextBelow(at) : space.nextAbove(at);
    if (stretch !== undefined) {
      if (!reverse && stretch.from < bound) bound = stretch.from;
      if (reverse && stretch.to > bound) bound = stretch.to;
    }
    return this.loader.faultPage(space, at, bound, reverse, want);
  }

  /** Where a container's sub-records are. */
  subOf(row: RowRecord): RecordSpace {
    row.sub ??= new RecordSpace('sub', row.space.table, subPrefix(row.number));
    return row.sub;
  }

  // ---- writing

  /** Writes a record, replacing any existing one. */
  put(space: RecordSpace, key: string, value: Buffer, score: number): void {
    const record = this.#change(space, key);
    record.present = true;
    record.value = value;
    record.score = score;
    this.recount(record);
  }

  /** Deletes a record, whether there is one or not. */
  remove(space: RecordSpace, key: string): void {
    const record = this.#change(space, key);
    record.present = false;
    record.score = 0;
    this.recount(record);
  }

  /** The record under a key, in memory from here on, known to be `fresh` or found absent. */
  newRow(space: RecordSpace, key: string, fresh: boolean): RowRecord {
    const record = space.newRecord(key) as RowRecord;
    record.fresh = fresh;
    this.journal.push(new Created(this, record));
    return record;
  }

  /** Before a row is changed: notes how it was, and lets it go with the next batch. */
  touchRow(row: RowRecord): void {
    if (row.touchedBy === this.journal.command) return;
    row.touchedBy = this.journal.command;
    // Sub-records read through this row during the command must outlive its undoing.
    if (row.present && row.shape !== Shape.value) this.subOf(row);
    this.journal.push(new RowChanged(this, row));
    this.markChanged(row);
  }

  #change(space: RecordSpace, key: string): KvRecord {
    let record = space.records.get(key);
    if (record === undefined) {
      record = space.newRecord(key);
      record.fresh = space.stretches.length > 0 && space.stretchAt(key) !== undefined;
      this.journal.push(new Created(this, record));
    } else if (record.touchedBy === this.journal.command) {
      return record;
    } else {
      this.journal.push(new ChangedRecord(this, record));
    }
    record.touchedBy = this.journal.command;
    this.markChanged(record);
    return record;
  }

  markChanged(record: KvRecord): void {
    record.lruTick = this.cache.tick;
    if (record.batch === this.queue.gathering) return;
    if (record.batch === 0) {
      if (record.lruClass >= 0) this.cache.remove(record);
      if (!record.ordered) record.space.order?.add(record);
    }
    this.queue.add(record);
  }

  /** The record's size has changed. */
  recount(record: KvRecord): void {
    const bytes = record.batch === 0 ? 0 : record.footprint();
    this.queue.waitingBytes += bytes - record.waitingBytes;
    record.waitingBytes = bytes;
  }

  note(note: Note): void {
    const { notes } = this.queue;
    notes.push(note);
    this.journal.push({
      undo: () => {
        // An entry put aside may have noted something since.
        notes.splice(notes.lastIndexOf(note), 1);
      },
    });
  }

  // ---- results of loads
  //

  receiveRecord(space: RecordSpace, key: string, value: Buffer | undefined): void {
    // The cached record is at least as new.
    if (this.knows(space, key)) return;
    const record = space.newRecord(key);
    if (value !== undefined) space.decode(record, value);
    this.cache.add(record);
  }

  receivePage(
    space: RecordSpace,
    from: string,
    to: string,
    keys: string[],
    values: Buffer[],
  ): void {
    const gaps = space.gaps(from, to);
    if (gaps.length === 0) return;
    const order = space.ensureOrder();
    let i = 0;
    for (const gap of gaps) {
      while (i < keys.length && keys[i]! < gap.from) i++;
      let stretch = new Stretch(space, gap.from, gap.to);
      let bytes = stretchOverheadBytes;
      for (; i < keys.length && keys[i]! < gap.to; i++) {
        const key = keys[i]!;
        if (stretch.records === stretchRecords) {
          stretch.to = key;
          this.cache.addStretch(stretch, bytes);
          stretch = new Stretch(space, key, gap.to);
          bytes = stretchOverheadBytes;
        }
        let record = space.records.get(key);
        if (record === undefined) {
          record = space.newRecord(key);
          space.decode(record, values[i]!);
        } else if (record.lruClass >= 0) {
          this.cache.remove(record);
        }
        if (!record.ordered) order.add(record);
        if (record.batch === 0) {
          record.lruBytes = record.footprint();
          bytes += record.lruBytes;
        }
        stretch.records++;
      }
      this.cache.addStretch(stretch, bytes);
    }
  }

  loadDone(): void {
    this.#releaseUnhidden();
  }

  // ---- reports of the write queue
  //

  addState(batch: LevelBatch): void {
    this.#owner.addState(batch);
  }

  stateLost(): void {
    this.#owner.stateLost();
  }

  written(record: KvRecord): void {
    this.#justWritten.push(record);
  }

  discarded(record: KvRecord): void {
    this.recount(record);
    this.forget(record);
  }

  batchWritten(batch: number, notes: readonly Note[]): void {
    // An earlier load may return records that the batch has replaced: until it is complete, the
    // batch's records stay and take precedence.
    this.#unreleased.push({ below: this.loader.nextNumber, batch, records: this.#justWritten });
    this.#justWritten = [];
    this.#releaseUnhidden();
    this.#owner.notesWritten(notes);
  }

  #releaseUnhidden(): void {
    const oldest = this.loader.oldestNumber;
    let released = 0;
    for (const { below, batch, records } of this.#unreleased) {
      if (oldest < below) break;
      for (const record of records) if (record.batch === batch) this.#release(record);
      released++;
    }
    if (released > 0) this.#unreleased.splice(0, released);
  }

  #release(record: KvRecord): void {
    record.batch = 0;
    this.recount(record);
    this.cache.release(record);
  }

  /** See `Created`. */
  forget(record: KvRecord): void {
    this.cache.forget(record);
  }

  /** See `ChangedRecord`. */
  settle(record: KvRecord): void {
    this.cache.settle(record);
  }

  // ---- dropped records
  //

  /** The row is gone: its records are freed later, in slices, unless this is undone. */
  abandon(space: RecordSpace): void {
    if (space.kind === 'sub') {
      space.ended = true;
      this.journal.push({
        undo: () => {
          space.ended = false;
        },
      });
    }
    this.#abandoned.push({ space, records: space.records.values() });
  }

  /** Frees so many records of rows that are gone; true when there are more. */
  sweep(limit: number): boolean {
    if (!this.journal.betweenCommands) return this.#abandoned.length > 0;
    let left = limit;
    for (let next = this.#abandoned[0]; next !== undefined; next = this.#abandoned[0]) {
      const { space, records } = next;
      if (space.ended || space.table.dropped) {
        for (const stretch of space.stretches.splice(0)) this.cache.lru.remove(stretch);
        for (;;) {
          if (left-- <= 0) return true;
          const { value: record, done } = records.next();
          if (done === true) break;
          if (record instanceof RowRecord && record.sub !== undefined) {
            this.#abandoned.push({ space: record.sub, records: record.sub.records.values() });
          }
          // A record that is being written to disk is dropped when the write has finished.
          if (record.batch === 0) this.forget(record);
        }
      }
      this.#abandoned.shift();
    }
    return false;
  }

  // ---- ticks

  endTick(): void {
    this.loader.send();
    this.queue.endTick();
    if (this.#abandoned.length > 0) this.sweep(sweepRecords);
    this.cache.makeRoom(this.#guardTick);
    this.cache.tick++;
  }
}
