// Layout of a stream and its groups in a row of shape `stream`: its state and its records. `id` is
// a stream id as `StreamId.write` has it, v a varint, numbers u32 and u48 are big-endian.
//
//   state     last id | greatest id deleted by XDEL id | entries ever added v | entries v | groups v | next group v |
//             1 if there are field names
//   01                              field names: count v, (length v, name)*
//   02 group name                   group: number v | last id | entries read + 1 v | consumers v | pending v |
//                                   next consumer v | greatest id that may be pending
//   03 group u32, consumer u32      consumer: seen u48 | pending v | name
//   04 group u32, consumer name     number of the consumer u32
//   05 group u32, id                pending entry: consumer u32 | delivered u48 | deliveries v
//   06 group u32, consumer u32, id  the same entry, by consumer; empty
//   07 id                           entry: 0, count v, (length v, name, length v, value)*
//                                   or 1, (length v, value)* for the names in record 01
//
// Numbers of groups and consumers are never reused, so that leftovers of one never belong to
// another. Entries come last: adding one at the end is adding at the end of the row.

import { Change } from '../../row-change.ts';
import { emptyBytes, equalBytes, Slice } from '../../bytes.ts';
import type { Row, Rows } from '../../rows.ts';
import { Packed, Unpacked } from './stream-bytes.ts';
import { StreamId } from './stream-id.ts';

const Kind = {
  names: 1,
  group: 2,
  consumer: 3,
  consumerName: 4,
  pending: 5,
  pendingOf: 6,
  entry: 7,
} as const;

/** Where new records go. */
export type NewRecords = Pick<Rows, 'addStreamRecord'>;

const slice = new Slice();
const unpacked = new Unpacked();
const packed = new Packed();
const key = new Packed();

/** A stream's state. */
export class StreamState {
  readonly last = new StreamId();
  readonly maxDeleted = new StreamId();
  entriesAdded = 0;
  length = 0;
  groups = 0;
  nextGroup = 0;
  hasNames = false;

  clear(): void {
    this.last.setZero();
    this.maxDeleted.setZero();
    this.entriesAdded = 0;
    this.length = 0;
    this.groups = 0;
    this.nextGroup = 0;
    this.hasNames = false;
  }

  load(rows: Rows, row: Row): void {
    rows.streamState(row, slice);
    // A row without a state was only just created.
    if (slice.n === 0) return this.clear();
    const from = unpacked.open(slice);
    from.id(this.last);
    from.id(this.maxDeleted);
    this.entriesAdded = from.varint();
    this.length = from.varint();
    this.groups = from.varint();
    this.nextGroup = from.varint();
    this.hasNames = from.b[from.at] === 1;
  }

  save(rows: Pick<Rows, 'setStreamState'>, row: Row): void {
    packed.begin().id(this.last).id(this.maxDeleted).varint(this.entriesAdded).varint(this.length);
    packed
      .varint(this.groups)
      .varint(this.nextGroup)
      .byte(this.hasNames ? 1 : 0);
    rows.setStreamState(row, packed.b, 0, packed.n);
  }
}

/** A consumer group: the record of its name. */
export class StreamGroup {
  number = 0;
  readonly last = new StreamId();
  /** -1 when it is not known. */
  entriesRead = -1;
  consumers = 0;
  pending = 0;
  nextConsumer = 0;
  /** No entry behind this one is pending. */
  readonly highest = new StreamId();

  /** False when there is no such group. */
  find(rows: Rows, row: Row, b: Buffer, s: number, n: number): boolean {
    key.begin().byte(Kind.group).raw(b, s, n);
    if (!rows.streamRecord(row, key.b, 0, key.n, slice)) return false;
    this.read(slice);
    return true;
  }

  read(from: Slice): void {
    const u = unpacked.open(from);
    this.number = u.varint();
    u.id(this.last);
    this.entriesRead = u.varint() - 1;
    this.consumers = u.varint();
    this.pending = u.varint();
    this.nextConsumer = u.varint();
    u.id(this.highest);
  }

  #pack(): void {
    packed
      .begin()
      .varint(this.number)
      .id(this.last)
      .varint(this.entriesRead + 1);
    packed.varint(this.consumers).varint(this.pending).varint(this.nextConsumer).id(this.highest);
  }

  add(rows: NewRecords, row: Row, b: Buffer, s: number, n: number): void {
    key.begin().byte(Kind.group).raw(b, s, n);
    this.#pack();
    rows.addStreamRecord(row, key.b, 0, key.n, packed.b, 0, packed.n);
  }

  save(rows: Rows, row: Row, b: Buffer, s: number, n: number): void {
    key.begin().byte(Kind.group).raw(b, s, n);
    this.#pack();
    rows.setStreamRecord(row, key.b, 0, key.n, packed.b, 0, packed.n);
  }

  static remove(rows: Rows, row: Row, b: Buffer, s: number, n: number): void {
    key.begin().byte(Kind.group).raw(b, s, n);
    rows.removeStreamRecord(row, key.b, 0, key.n);
  }
}

/** A consumer of a group. */
export class StreamConsumer {
  group = 0;
  number = 0;
  /** Unix milliseconds. */
  seen = 0;
  pending = 0;
  name: Buffer = emptyBytes;

  /** False when the group has none of this name. */
  find(rows: Rows, row: Row, group: number, b: Buffer, s: number, n: number): boolean {
    key.begin().byte(Kind.consumerName).u32(group).raw(b, s, n);
    if (!rows.streamRecord(row, key.b, 0, key.n, slice)) return false;
    this.load(rows, row, group, slice.b.readUInt32BE(slice.s));
    return true;
  }

  /** False when the group has none with this number. */
  load(rows: Rows, row: Row, group: number, number: number): boolean {
    this.group = group;
    this.number = number;
    key.begin().byte(Kind.consumer).u32(group).u32(number);
    if (!rows.streamRecord(row, key.b, 0, key.n, slice)) return false;
    const from = unpacked.open(slice);
    this.seen = from.u48();
    this.pending = from.varint();
    const length = slice.s + slice.n - from.at;
    const { name } = this;
    if (!equalBytes(name, 0, name.length, slice.b, from.at, length)) {
      this.name = Buffer.from(slice.b.subarray(from.at, from.at + length));
    }
    return true;
  }

  /** Makes a consumer of the group, which is to be saved afterwards. */
  create(rows: Rows, row: Row, group: StreamGroup, b: Buffer, s: number, n: number): void {
    this.seen = rows.now;
    this.pending = 0;
    this.name = Buffer.from(b.subarray(s, s + n));
    this.add(rows, row, group);
    rows.note?.(Change.consumerMade);
  }

  /** As `create`, of one whose name, time and count of pending entries are set. */
  add(rows: NewRecords, row: Row, group: StreamGroup): void {
    const { name } = this;
    this.group = group.number;
    this.number = group.nextConsumer++;
    group.consumers++;
    key.begin().byte(Kind.consumerName).u32(this.group).raw(name, 0, name.length);
    packed.begin().u32(this.number);
    rows.addStreamRecord(row, key.b, 0, key.n, packed.b, 0, packed.n);
    this.#pack();
    rows.addStreamRecord(row, key.b, 0, key.n, packed.b, 0, packed.n);
  }

  #pack(): void {
    key.begin().byte(Kind.consumer).u32(this.group).u32(this.number);
    packed.begin().u48(this.seen).varint(this.pending).raw(this.name, 0, this.name.length);
  }

  save(rows: Rows, row: Row): void {
    this.#pack();
    rows.setStreamRecord(row, key.b, 0, key.n, packed.b, 0, packed.n);
  }

  remove(rows: Rows, row: Row): void {
    key.begin().byte(Kind.consumerName).u32(this.group).raw(this.name, 0, this.name.length);
    rows.removeStreamRecord(row, key.b, 0, key.n);
    key.begin().byte(Kind.consumer).u32(this.group).u32(this.number);
    rows.removeStreamRecord(row, key.b, 0, key.n);
  }
}

/** An entry that was delivered to a consumer and is not acknowledged. */
export class PendingEntry {
  consumer = 0;
  /** Unix milliseconds. */
  delivered = 0;
  deliveries = 0;

  /** False when the entry is not pending. */
  find(rows: Rows, row: Row, group: number, id: StreamId): boolean {
    key.begin().byte(Kind.pending).u32(group).id(id);
    if (!rows.streamRecord(row, key.b, 0, key.n, slice)) return false;
    this.read(slice);
    return true;
  }

  read(from: Slice): void {
    const u = unpacked.open(from);
    this.consumer = u.u32();
    this.delivered = u.u48();
    this.deliveries = u.varint();
  }

  #pack(group: number, id: StreamId): void {
    key.begin().byte(Kind.pending).u32(group).id(id);
    packed.begin().u32(this.consumer).u48(this.delivered).varint(this.deliveries);
  }

  /** Makes an entry pending that is not. */
  add(rows: NewRecords, row: Row, group: number, id: StreamId): void {
    this.#pack(group, id);
    rows.addStreamRecord(row, key.b, 0, key.n, packed.b, 0, packed.n);
    this.addTo(rows, row, group, id);
  }

  save(rows: Rows, row: Row, group: number, id: StreamId): void {
    this.#pack(group, id);
    rows.setStreamRecord(row, key.b, 0, key.n, packed.b, 0, packed.n);
  }

  remove(rows: Rows, row: Row, group: number, id: StreamId): void {
    key.begin().byte(Kind.pending).u32(group).id(id);
    rows.removeStreamRecord(row, key.b, 0, key.n);
    this.removeFrom(rows, row, group, id);
  }

  /** Notes it with its consumer. */
  addTo(rows: NewRecords, row: Row, group: number, id: StreamId): void {
    key.begin().byte(Kind.pendingOf).u32(group).u32(this.consumer).id(id);
    rows.addStreamRecord(row, key.b, 0, key.n, emptyBytes, 0, 0);
  }

  removeFrom(rows: Rows, row: Row, group: number, id: StreamId): void {
    key.begin().byte(Kind.pendingOf).u32(group).u32(this.consumer).id(id);
    rows.removeStreamRecord(row, key.b, 0, key.n);
  }
}

// Ranges of keys, each a buffer of its own: walks keep them.

export interface KeyRange {
  readonly from: Buffer;
  readonly to: Buffer;
  /** Bytes of a key before the ranged part: an id, a name. */
  readonly prefix: number;
}

const range = (prefix: Buffer, from: Buffer, to: Buffer): KeyRange => ({
  from: Buffer.concat([prefix, from]),
  to: Buffer.concat([prefix, to]),
  prefix: prefix.length,
});

/** All that begin with the prefix. */
const all = (prefix: Buffer): KeyRange => {
  const to = Buffer.from(prefix);
  for (let i = to.length - 1; ; i--) {
    to[i] = (to[i]! + 1) & 255;
    if (to[i] !== 0) break;
  }
  return { from: prefix, to, prefix: prefix.length };
};

const idBytes = (id: StreamId, isIncluded: boolean): Buffer => {
  key.begin().id(id);
  // Nothing lies between an id and the same with a zero byte behind it.
  if (isIncluded) key.byte(0);
  return key.copy();
};

const ids = (prefix: Buffer, first: StreamId, last: StreamId): KeyRange =>
  range(prefix, idBytes(first, false), idBytes(last, true));

const entryPrefix = Buffer.of(Kind.entry);
export const allEntries: KeyRange = all(entryPrefix);
export const allGroups: KeyRange = all(Buffer.of(Kind.group));

/** Entries from one id to another, both included. */
export function entriesBetween(first: StreamId, last: StreamId): KeyRange {
  return ids(entryPrefix, first, last);
}

/** Entries from one id on. */
export function entriesFrom(first: StreamId): KeyRange {
  const from = key.begin().byte(Kind.entry).id(first).copy();
  return { from, to: allEntries.to, prefix: allEntries.prefix };
}

export function consumerNames(group: number): KeyRange {
  return all(key.begin().byte(Kind.consumerName).u32(group).copy());
}

export function consumersOf(group: number): KeyRange {
  return all(key.begin().byte(Kind.consumer).u32(group).copy());
}

export function pendingOfGroup(group: number): KeyRange {
  return all(key.begin().byte(Kind.pending).u32(group).copy());
}

/** By consumer, all consumers of the group. */
export function pendingByConsumers(group: number): KeyRange {
  return all(key.begin().byte(Kind.pendingOf).u32(group).copy());
}

export function pendingOfConsumer(group: number, consumer: number): KeyRange {
  return all(key.begin().byte(Kind.pendingOf).u32(group).u32(consumer).copy());
}

/** Pending entries of the group, or of one consumer; both ids are included. */
export function pendingBetween(
  group: number,
  consumer: number | undefined,
  first: StreamId,
  last: StreamId,
): KeyRange {
  key.begin();
  if (consumer === undefined) key.byte(Kind.pending).u32(group);
  else key.byte(Kind.pendingOf).u32(group).u32(consumer);
  return ids(key.copy(), first, last);
}

// Entries

/** Whether an entry with the id exists; its content if `out` is given. */
export function findEntry(rows: Rows, row: Row, id: StreamId, out?: Slice): boolean {
  key.begin().byte(Kind.entry).id(id);
  return rows.streamRecord(row, key.b, 0, key.n, out);
}

export function addEntry(rows: NewRecords, row: Row, id: StreamId, content: Packed): void {
  key.begin().byte(Kind.entry).id(id);
  rows.addStreamRecord(row, key.b, 0, key.n, content.b, 0, content.n);
}

export function removeEntry(rows: Rows, row: Row, id: StreamId): boolean {
  key.begin().byte(Kind.entry).id(id);
  return rows.removeStreamRecord(row, key.b, 0, key.n);
}

/** Names of more bytes are written with each entry. */
export const maxNamesBytes = 1024;

const namesKey = Buffer.of(Kind.names);

/** The field names that entries of the stream refer to; false when there are none. */
export function findNames(rows: Rows, row: Row, out: Slice): boolean {
  return rows.streamRecord(row, namesKey, 0, 1, out);
}

export function addNames(rows: NewRecords, row: Row, names: Packed): void {
  rows.addStreamRecord(row, namesKey, 0, 1, names.b, 0, names.n);
}

export function saveNames(rows: Rows, row: Row, isNew: boolean, names: Packed): void {
  if (isNew) addNames(rows, row, names);
  else rows.setStreamRecord(row, namesKey, 0, 1, names.b, 0, names.n);
}

/** The first entry's id, or the last one's; false when the stream has no entries. */
export function edgeId(rows: Rows, row: Row, isLast: boolean, to: StreamId): boolean {
  let found = false;
  const { from, to: end } = allEntries;
  rows.eachStreamRecord(row, from, end, isLast, 1, (kb, ks) => {
    to.read(kb, ks + 1);
    found = true;
    return true;
  });
  return found;
}
