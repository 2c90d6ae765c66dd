// Records in memory above LevelDB: those that wait to be written, those kept because they may be read
// again, and the knowledge of what is not there. Reads answer at once or throw `ReadFault`; writes
// are visible at once and can be undone until `commit`.

import { Shape } from '../../universal-row/rows.ts';
import type { ReadGate, SuspendedEntry } from '../engine.ts';
import { lastKey, subPrefix } from './key-layout.ts';
import type { LevelBatch, LevelStore } from './level-store.ts';
import { Loader, type LoadReceiver } from './loader.ts';
import { KvRecord, RowRecord } from './record-space.ts';
import { RecordSpace, Stretch } from './record-space.ts';
import { LruItem, SizeAwareLru } from './size-aware-lru.ts';
import { WriteQueue, type Note, type QueueOwner } from './write-queue.ts';

/** Undoes one change. */
export interface Undo {
  undo(): void;
}

/** See `Engine.suspend`. */
export interface SuspendedJournal extends SuspendedEntry {
  readonly journal: Undo[];
}

/** What the engine adds to the store's own part of a batch. */
export interface StoreOwner {
  addState(batch: LevelBatch): void;
  stateLost(): void;
  /** What these notes are about may be purged. */
  notesWritten(notes: readonly Note[]): void;
}

export interface StoreOptions {
  cacheBytes: number;
  /** Of records that wait to be written, beyond which writers should wait as well. */
  waitingLimitBytes: number;
  readGate: ReadGate | undefined;
}

const stretchRecords = 1024;
const stretchOverheadBytes = 160;
// Rows with sub-records in memory that are passed over in one turn, at most.
const maxPassedOver = 1000;
// Records of dropped rows let go of in one turn.
const sweepRecords = 500;

export class RecordStore implements LoadReceiver, QueueOwner {
  turn = 1;
  hits = 0;
  misses = 0;
  /** Of what is kept to know that there is nothing. */
  absentBytes = 0;
  /** Changes with each command, for what is noted once a command. */
  command = 1;
  readonly queue: WriteQueue;
  readonly loader: Loader;
  readonly lru = new SizeAwareLru();
  readonly #owner: StoreOwner;
  readonly #options: StoreOptions;
  #journal: Undo[] = [];
  /** Journals put aside. */
  #suspended = 0;
  readonly #slots: (RowRecord | undefined)[] = [undefined];
  readonly #freeSlots: number[] = [];
  /** Batches on disk whose records still hide what older loads may bring. */
  #unreleased: { below: number; batch: number; records: KvRecord[] }[] = [];
  #justWritten: KvRecord[] = [];
  /** Spaces whose row is gone, with how far they were cleared out of memory. */
  readonly #abandoned: { space: RecordSpace; records: IterableIterator<KvRecord> }[] = [];

  constructor(level: LevelStore, owner: StoreOwner, options: StoreOptions) {
    this.#owner = owner;
    this.#options = options;
    this.queue = new WriteQueue(level, this, options.waitingLimitBytes);
    this.loader = new Loader(level, this, options.readGate);
  }

  // ---- reading

  /** The record under a key, undefined when there is none. */
  read(space: RecordSpace, key: string): KvRecord | undefined {
    const record = space.records.get(key);
    if (record !== undefined) {
      this.touch(record);
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

  /** As `touch`, of what is not read yet. */
  keep(item: LruItem): void {
    item.lruTurn = this.turn;
    if (item.lruClass >= 0) this.lru.refresh(item);
  }

  touch(item: LruItem): void {
    this.hits++;
    item.lruTurn = this.turn;
    if (item.lruClass >= 0) this.lru.hit(item);
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
      this.touch(stretch);
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
      this.touch(stretch);
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
      this.touch(stretch);
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
   * The page goes beyond what this walk asks for, as far as its size allows: the next walk is likely to
   * go a little further.
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

  /** Writes a record, whatever there was. */
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
    this.#journal.push(new Created(this, record));
    return record;
  }

  /** Before a row is changed: notes how it was, and lets it go with the next batch. */
  touchRow(row: RowRecord): void {
    if (row.touchedBy === this.command) return;
    row.touchedBy = this.command;
    // What is read through it in the course of the command must outlive its undoing.
    if (row.present && row.shape !== Shape.value) this.subOf(row);
    this.#journal.push(new RowChanged(this, row));
    this.markChanged(row);
  }

  #change(space: RecordSpace, key: string): KvRecord {
    let record = space.records.get(key);
    if (record === undefined) {
      record = space.newRecord(key);
      record.fresh = space.stretches.length > 0 && space.stretchAt(key) !== undefined;
      this.#journal.push(new Created(this, record));
    } else if (record.touchedBy === this.command) {
      return record;
    } else {
      this.#journal.push(new Changed(this, record));
    }
    record.touchedBy = this.command;
    this.markChanged(record);
    return record;
  }

  markChanged(record: KvRecord): void {
    record.lruTurn = this.turn;
    if (record.batch === this.queue.gathering) return;
    if (record.batch === 0) {
      if (record.lruClass >= 0) this.#unkeep(record);
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

  /** Something else to undo. */
  onRollback(undo: Undo): void {
    this.#journal.push(undo);
  }

  note(note: Note): void {
    const { notes } = this.queue;
    notes.push(note);
    this.#journal.push({
      undo: () => {
        // An entry put aside may have noted something since.
        notes.splice(notes.lastIndexOf(note), 1);
      },
    });
  }

  get betweenCommands(): boolean {
    return this.#journal.length === 0 && this.#suspended === 0;
  }

  suspend(): SuspendedJournal | undefined {
    this.command++;
    if (this.#journal.length === 0) return undefined;
    const entry = { isSuspended: true as const, journal: this.#journal };
    this.#journal = [];
    this.#suspended++;
    return entry;
  }

  resume(entry: SuspendedJournal | undefined): void {
    this.command++;
    if (entry === undefined) return;
    this.#journal = entry.journal;
    this.#suspended--;
  }

  savepoint(): number {
    this.command++;
    return this.#journal.length;
  }

  rollbackTo(savepoint: number): void {
    this.command++;
    for (let i = this.#journal.length - 1; i >= savepoint; i--) this.#journal[i]!.undo();
    this.#journal.length = savepoint;
  }

  commit(): void {
    this.command++;
    if (this.#journal.length > 0) this.#journal = [];
  }

  rollback(): void {
    this.command++;
    for (let i = this.#journal.length - 1; i >= 0; i--) this.#journal[i]!.undo();
    this.#journal = [];
  }

  // ---- row handles

  slotOf(row: RowRecord): number {
    if (row.slot === 0) {
      row.slot = this.#freeSlots.pop() ?? this.#slots.length;
      this.#slots[row.slot] = row;
    }
    return row.slot;
  }

  rowAt(slot: number): RowRecord | undefined {
    return this.#slots[slot];
  }

  // ---- what loads bring

  receiveRecord(space: RecordSpace, key: string, value: Buffer | undefined): void {
    // What is in memory is at least as new.
    if (this.knows(space, key)) return;
    const record = space.newRecord(key);
    if (value !== undefined) space.decode(record, value);
    this.#keep(record);
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
          this.#addStretch(stretch, bytes);
          stretch = new Stretch(space, key, gap.to);
          bytes = stretchOverheadBytes;
        }
        let record = space.records.get(key);
        if (record === undefined) {
          record = space.newRecord(key);
          space.decode(record, values[i]!);
        } else if (record.lruClass >= 0) {
          this.#unkeep(record);
        }
        if (!record.ordered) order.add(record);
        if (record.batch === 0) {
          record.lruBytes = record.footprint();
          bytes += record.lruBytes;
        }
        stretch.records++;
      }
      this.#addStretch(stretch, bytes);
    }
  }

  #addStretch(stretch: Stretch, bytes: number): void {
    stretch.space.addStretch(stretch);
    stretch.lruTurn = this.turn;
    if (isPassing(stretch.space)) this.lru.addPassing(stretch, bytes);
    else this.lru.add(stretch, bytes);
  }

  /** All of a new space is in memory: there is nothing. */
  addEmptyStretch(space: RecordSpace): void {
    this.#addStretch(new Stretch(space, '', lastKey), stretchOverheadBytes);
  }

  loadDone(): void {
    this.#releaseUnhidden();
  }

  // ---- what the queue reports

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
    // A load that began before may bring what the batch has replaced: until it is over, the records of
    // the batch stay in its way.
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
    const { space } = record;
    if (space.ended || space.table.dropped) {
      this.forget(record);
      return;
    }
    const stretch = space.stretchAt(record.key);
    if (stretch === undefined) {
      if (record.ordered) space.order!.delete(record);
      this.#keep(record);
    } else if (record.present) {
      const bytes = record.footprint();
      if (record.lruBytes === 0) stretch.records++;
      this.lru.resize(stretch, Math.max(0, stretch.lruBytes + bytes - record.lruBytes));
      record.lruBytes = bytes;
      if (stretch.records > 2 * stretchRecords) {
        // Rows that nobody scans do not need an order.
        if (space.kind === 'meta' && space.order === undefined) this.#loosen(stretch);
        else this.#split(stretch);
      }
    } else {
      if (record.lruBytes > 0) {
        stretch.records--;
        this.lru.resize(stretch, Math.max(0, stretch.lruBytes - record.lruBytes));
        record.lruBytes = 0;
      }
      // A handle that is still held answers "dropped", and a new row under the key takes it over.
      this.forget(record);
    }
  }

  #split(stretch: Stretch): void {
    const { space } = stretch;
    const middle = { key: '', records: 0, bytes: stretchOverheadBytes };
    let seen = 0;
    space.ensureOrder().forward(stretch.from, stretch.to, (record) => {
      if (record.lruBytes === 0) return false;
      if (++seen <= stretchRecords) return false;
      if (middle.key === '') middle.key = record.key;
      middle.records++;
      middle.bytes += record.lruBytes;
      return false;
    });
    if (middle.key === '') return;
    const upper = new Stretch(space, middle.key, stretch.to);
    upper.records = middle.records;
    stretch.to = middle.key;
    stretch.records -= middle.records;
    const rest = stretch.lruBytes + stretchOverheadBytes - middle.bytes;
    this.lru.resize(stretch, Math.max(stretchOverheadBytes, rest));
    this.#addStretch(upper, middle.bytes);
  }

  /** Keeps the records, but not the knowledge that there are no others. */
  #loosen(stretch: Stretch): void {
    const { space } = stretch;
    this.lru.remove(stretch);
    space.removeStretch(stretch);
    for (const record of space.records.values()) {
      if (record.lruClass >= 0 || record.key < stretch.from || record.key >= stretch.to) continue;
      record.lruBytes = 0;
      if (record.batch === 0) this.#keep(record);
    }
  }

  /** A clean record outside of all stretches stays while there is room. */
  #keep(record: KvRecord): void {
    if (record.lruTurn === 0) record.lruTurn = this.turn;
    const bytes = record.footprint();
    if (!record.present) this.absentBytes += bytes;
    if (isPassing(record.space)) this.lru.addPassing(record, bytes);
    else this.lru.add(record, bytes);
  }

  #unkeep(record: KvRecord): void {
    if (!record.present) this.absentBytes -= record.lruBytes;
    this.lru.remove(record);
  }

  /** Takes a record out of memory. */
  forget(record: KvRecord): void {
    const { space } = record;
    if (record.lruClass >= 0) this.#unkeep(record);
    if (record.ordered) space.order?.delete(record);
    record.ordered = false;
    record.lruBytes = 0;
    if (space.records.get(record.key) === record) space.records.delete(record.key);
    if (record instanceof RowRecord && record.slot !== 0) {
      this.#slots[record.slot] = undefined;
      this.#freeSlots.push(record.slot);
      record.slot = 0;
    }
  }

  /** Undoing made a record clean again. */
  settle(record: KvRecord): void {
    const { space } = record;
    if (space.stretchAt(record.key) !== undefined) return;
    if (record.ordered) space.order!.delete(record);
    record.lruBytes = 0;
    if (record.lruClass < 0) this.#keep(record);
  }

  // ---- what is gone

  /** The row is gone: its records will be let go of at leisure, unless this is undone. */
  abandon(space: RecordSpace): void {
    if (space.kind === 'sub') {
      space.ended = true;
      this.#journal.push({
        undo: () => {
          space.ended = false;
        },
      });
    }
    this.#abandoned.push({ space, records: space.records.values() });
  }

  /** Lets go of so many records of rows that are gone; true when there are more. */
  sweep(limit: number): boolean {
    if (!this.betweenCommands) return this.#abandoned.length > 0;
    let left = limit;
    for (let next = this.#abandoned[0]; next !== undefined; next = this.#abandoned[0]) {
      const { space, records } = next;
      if (space.ended || space.table.dropped) {
        for (const stretch of space.stretches.splice(0)) this.lru.remove(stretch);
        for (;;) {
          if (left-- <= 0) return true;
          const { value: record, done } = records.next();
          if (done === true) break;
          if (record instanceof RowRecord && record.sub !== undefined) {
            this.#abandoned.push({ space: record.sub, records: record.sub.records.values() });
          }
          // One that is on its way to disk is forgotten when it is there.
          if (record.batch === 0) this.forget(record);
        }
      }
      this.#abandoned.shift();
    }
    return false;
  }

  // ---- turns

  endTurn(): void {
    this.loader.send();
    this.queue.endTurn();
    if (this.#abandoned.length > 0) this.sweep(sweepRecords);
    this.#makeRoom();
    this.turn++;
  }

  #makeRoom(): void {
    const { lru } = this;
    if (lru.passingBytes > 0) this.#letPass();
    if (lru.bytes <= this.#options.cacheBytes) return;
    const guard = this.loader.guardTurn();
    let passedOver = 0;
    while (lru.bytes > this.#options.cacheBytes) {
      const victim = lru.victim(guard);
      if (victim === undefined) return;
      if (victim instanceof Stretch) {
        this.#giveUpStretch(victim, guard);
      } else if (victim instanceof RowRecord && isHeld(victim)) {
        if (++passedOver > maxPassedOver) return;
        victim.lruTurn = this.turn;
        lru.refresh(victim);
      } else if (victim instanceof KvRecord) {
        lru.noteEvicted(victim);
        this.forget(victim);
      }
    }
  }

  /** What was passing through goes once the commands that asked for it have had their turns. */
  #letPass(): void {
    const { lru } = this;
    const guard = this.loader.guardTurn();
    let passedOver = 0;
    for (;;) {
      const oldest = lru.oldestPassing;
      if (oldest === undefined || oldest.lruTurn >= guard) return;
      if (oldest instanceof Stretch) {
        this.#giveUpStretch(oldest, guard);
      } else if (oldest instanceof RowRecord && isHeld(oldest)) {
        // Its sub-records go first.
        if (++passedOver > maxPassedOver) return;
        oldest.lruTurn = this.turn;
        lru.refresh(oldest);
      } else if (oldest instanceof KvRecord) {
        this.forget(oldest);
      }
    }
  }

  #giveUpStretch(stretch: Stretch, guard: number): void {
    const { space } = stretch;
    if (!isPassing(space)) this.lru.noteEvicted(stretch);
    this.lru.remove(stretch);
    space.removeStretch(stretch);
    const within: KvRecord[] = [];
    if (space.order === undefined) {
      for (const record of space.records.values()) {
        if (record.key >= stretch.from && record.key < stretch.to) within.push(record);
      }
    } else {
      space.order.forward(stretch.from, stretch.to, (record) => {
        within.push(record);
        return false;
      });
    }
    for (const record of within) {
      if (record.lruClass >= 0) continue;
      record.lruBytes = 0;
      if (record.batch !== 0) continue;
      const stays = record.lruTurn >= guard || (record instanceof RowRecord && isHeld(record));
      if (!stays || !record.present) {
        this.forget(record);
        continue;
      }
      if (record.ordered) space.order?.delete(record);
      this.#keep(record);
    }
    if (space.stretches.length === 0) {
      space.order?.clear();
      space.order = undefined;
    }
  }
}

/** The times of expiry are read over and over by the pod itself, whatever clients read. */
function isPassing({ kind, table }: RecordSpace): boolean {
  return table.bypassesCache && kind !== 'expiry';
}

/** Whether sub-records in memory depend on it. */
function isHeld(row: RowRecord): boolean {
  const { sub } = row;
  return sub !== undefined && (sub.records.size > 0 || sub.stretches.length > 0);
}

class Created implements Undo {
  readonly #store: RecordStore;
  readonly #record: KvRecord;

  constructor(store: RecordStore, record: KvRecord) {
    this.#store = store;
    this.#record = record;
  }

  undo(): void {
    this.#record.batch = 0;
    this.#record.present = false;
    this.#store.recount(this.#record);
    this.#store.forget(this.#record);
  }
}

class Changed implements Undo {
  readonly #store: RecordStore;
  readonly #record: KvRecord;
  readonly #present: boolean;
  readonly #value: Buffer;
  readonly #score: number;
  readonly #batch: number;

  constructor(store: RecordStore, record: KvRecord) {
    this.#store = store;
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
    this.#store.recount(record);
    if (record.batch === 0) this.#store.settle(record);
  }
}

class RowChanged implements Undo {
  readonly #row: RowRecord;
  readonly #changed: Changed;
  readonly #shape: RowRecord['shape'];
  readonly #expireAt: number;
  readonly #valueStart: number;
  readonly #number: number;
  readonly #count: number;
  readonly #bytes: number;
  readonly #head: number;
  readonly #sub: RecordSpace | undefined;

  constructor(store: RecordStore, row: RowRecord) {
    this.#row = row;
    this.#changed = new Changed(store, row);
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
