// Evictable records in memory, least recently used first: records that equal the disk, and stretches of keys of which
// all records are in memory.

import { KvRecord, type RecordSpace, RowRecord, Stretch } from './record-space.ts';
import { lastKey } from './key-layout.ts';
import { type LruItem, SizeAwareLru } from './size-aware-lru.ts';

/** Records of a stretch. */
export const stretchRecords = 1024;
export const stretchOverheadBytes = 160;
// Rows with sub-records in memory that are passed over in one tick, at most.
const maxPassedOver = 1000;

export class RecordCache {
  tick = 1;
  hits = 0;
  /** Size of the entries that record that a key is absent. */
  absentBytes = 0;
  readonly lru = new SizeAwareLru();
  readonly #limitBytes: number;
  readonly #slots: (RowRecord | undefined)[] = [undefined];
  readonly #freeSlots: number[] = [];

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Like `touch`, for an item that is not read yet. */
  keep(item: LruItem): void {
    item.lruTick = this.tick;
    if (item.lruClass >= 0) this.lru.refresh(item);
  }

  touch(item: LruItem): void {
    this.hits++;
    item.lruTick = this.tick;
    if (item.lruClass >= 0) this.lru.hit(item);
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

  // ---- stretches

  addStretch(stretch: Stretch, bytes: number): void {
    stretch.space.addStretch(stretch);
    stretch.lruTick = this.tick;
    if (isPassing(stretch.space)) this.lru.addPassing(stretch, bytes);
    else this.lru.add(stretch, bytes);
  }

  /** All of a new space is in memory: there is nothing. */
  addEmptyStretch(space: RecordSpace): void {
    this.addStretch(new Stretch(space, '', lastKey), stretchOverheadBytes);
  }

  /** A record is on disk as it is here: from now on it may be forgotten. */
  release(record: KvRecord): void {
    const { space } = record;
    if (space.ended || space.table.dropped) {
      this.forget(record);
      return;
    }
    const stretch = space.stretchAt(record.key);
    if (stretch === undefined) {
      if (record.ordered) space.order!.delete(record);
      this.add(record);
    } else if (record.present) {
      const bytes = record.footprint();
      if (record.lruBytes === 0) stretch.records++;
      this.lru.resize(stretch, Math.max(0, stretch.lruBytes + bytes - record.lruBytes));
      record.lruBytes = bytes;
      if (stretch.records > 2 * stretchRecords) {
        // Rows that are not scanned do not need an order.
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
    this.addStretch(upper, middle.bytes);
  }

  /** Keeps the records, but not the knowledge that there are no others. */
  #loosen(stretch: Stretch): void {
    const { space } = stretch;
    this.lru.remove(stretch);
    space.removeStretch(stretch);
    for (const record of space.records.values()) {
      if (record.lruClass >= 0 || record.key < stretch.from || record.key >= stretch.to) continue;
      record.lruBytes = 0;
      if (record.batch === 0) this.add(record);
    }
  }

  /** A clean record outside of all stretches stays while there is room. */
  add(record: KvRecord): void {
    if (record.lruTick === 0) record.lruTick = this.tick;
    const bytes = record.footprint();
    if (!record.present) this.absentBytes += bytes;
    if (isPassing(record.space)) this.lru.addPassing(record, bytes);
    else this.lru.add(record, bytes);
  }

  remove(record: KvRecord): void {
    if (!record.present) this.absentBytes -= record.lruBytes;
    this.lru.remove(record);
  }

  /** Takes a record out of memory. */
  forget(record: KvRecord): void {
    const { space } = record;
    if (record.lruClass >= 0) this.remove(record);
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
    if (record.lruClass < 0) this.add(record);
  }

  /** Evicts items beyond the limit, except those used in tick `guard` or later. */
  makeRoom(guardTick: () => number): void {
    const { lru } = this;
    if (lru.passingBytes > 0) this.#letPass(guardTick());
    if (lru.bytes <= this.#limitBytes) return;
    const guard = guardTick();
    let passedOver = 0;
    while (lru.bytes > this.#limitBytes) {
      const victim = lru.victim(guard);
      if (victim === undefined) return;
      if (victim instanceof Stretch) {
        this.#giveUpStretch(victim, guard);
      } else if (victim instanceof RowRecord && isHeld(victim)) {
        if (++passedOver > maxPassedOver) return;
        victim.lruTick = this.tick;
        lru.refresh(victim);
      } else if (victim instanceof KvRecord) {
        lru.noteEvicted(victim);
        this.forget(victim);
      }
    }
  }

  /** Evicts records that bypass the cache, once the commands that asked for them have run. */
  #letPass(guard: number): void {
    const { lru } = this;
    let passedOver = 0;
    for (;;) {
      const oldest = lru.oldestPassing;
      if (oldest === undefined || oldest.lruTick >= guard) return;
      if (oldest instanceof Stretch) {
        this.#giveUpStretch(oldest, guard);
      } else if (oldest instanceof RowRecord && isHeld(oldest)) {
        // Its sub-records go first.
        if (++passedOver > maxPassedOver) return;
        oldest.lruTick = this.tick;
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
      const stays = record.lruTick >= guard || (record instanceof RowRecord && isHeld(record));
      if (!stays || !record.present) {
        this.forget(record);
        continue;
      }
      if (record.ordered) space.order?.delete(record);
      this.add(record);
    }
    if (space.stretches.length === 0) {
      space.order?.clear();
      space.order = undefined;
    }
  }
}

/** The pod itself reads expiry times over and over, independent of client reads. */
function isPassing({ kind, table }: RecordSpace): boolean {
  return table.bypassesCache && kind !== 'expiry';
}

/** Whether sub-records in memory depend on it. */
function isHeld(row: RowRecord): boolean {
  const { sub } = row;
  return sub !== undefined && (sub.records.size > 0 || sub.stretches.length > 0);
}
