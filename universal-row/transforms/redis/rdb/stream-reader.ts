// A stream in the RDB format, with its groups, their consumers and pending entries, as the records
// of the row. The input is untrusted: contradictions, and two records with one key, are refused.

import { emptyBytes, parseBigInteger, Slice } from '../../../bytes.ts';
import { stepBytes } from '../../../steps.ts';
import type { ByteList } from '../support/byte-list.ts';
import { Names } from '../support/long-walks.ts';
import { Packed } from '../stream-bytes.ts';
import { StreamId } from '../stream-id.ts';
import {
  addEntry,
  addNames,
  maxNamesBytes,
  type NewRecords,
  PendingEntry,
  StreamConsumer,
  StreamGroup,
  StreamState,
} from '../stream-layout.ts';
import type { Pauses, RdbCursor } from './cursor.ts';
import { badData } from './format.ts';
import { PackedElements } from './packed.ts';

/** 1 is of Redis 5, 2 of 7.0, 3 of 7.2. */
export type StreamVersion = 1 | 2 | 3;

export const idBytes = 16;
export const EntryFlag = { deleted: 1, sameFields: 2 } as const;
/** An id, a time, and a count of one byte at least. */
const pendingBytes = 25;
/** Elements that are looked at between two pauses. */
const elementsPerStep = 256;
const latestTime = 2 ** 48 - 1;
const noRow = 0;

/** Entries that a group has delivered, in the order of their ids. */
interface Deliveries {
  ids: Buffer;
  times: Float64Array;
  counts: Float64Array;
  /** 1 for those whose consumer is known. */
  isOwned: Uint8Array;
}

/** The entries of one listpack: how many it says there are, and the names in front of them. */
interface Node {
  elements: PackedElements;
  ms: bigint;
  seq: bigint;
  names: Buffer[];
  /** Whether these are the names that the stream's entries have in common. */
  isCommon: boolean;
}

export class StreamReader {
  readonly #from: RdbCursor;
  readonly #version: StreamVersion;
  readonly #list: ByteList;
  readonly #records: NewRecords;
  readonly #state = new StreamState();
  readonly #group = new StreamGroup();
  readonly #consumer = new StreamConsumer();
  readonly #pending = new PendingEntry();
  readonly #content = new Packed();
  readonly #string = new Slice();
  readonly #id = new StreamId();
  readonly #first = new StreamId();
  readonly #last = new StreamId();
  #commonNames: Buffer[] | undefined;
  #length = 0;
  /** Elements since the last pause. */
  #seen = 0;

  constructor(from: RdbCursor, list: ByteList, version: StreamVersion) {
    this.#from = from;
    this.#version = version;
    this.#list = list;
    this.#state.clear();
    this.#records = {
      addStreamRecord(_, kb, ks, kn, vb, vs, vn) {
        list.add(kb, ks, kn);
        list.add(vb, vs, vn);
      },
    };
  }

  /** Adds keys and values of records to the list, in pairs; pauses as `ValueReader` does. */
  *records(): Pauses {
    const from = this.#from;
    const state = this.#state;
    for (let nodes = from.length(); nodes > 0; nodes--) yield* this.#readNode();
    state.length = from.counter();
    if (state.length !== this.#length) throw badData;
    this.#readId(state.last);
    if (this.#last.compare(state.last) > 0) throw badData;
    state.entriesAdded = state.length;
    if (this.#version > 1) {
      // The first id is the first entry's.
      this.#readId(this.#id);
      this.#readId(state.maxDeleted);
      state.entriesAdded = from.counter();
    }
    state.groups = from.length();
    const names = new Names();
    for (let i = 0; i < state.groups; i++) yield* this.#readGroup(names);
  }

  /** The row's state, once the records are read. */
  state(): Buffer {
    let bytes: Buffer = emptyBytes;
    const save = (_: number, b: Buffer, s: number, n: number): void => {
      bytes = Buffer.from(b.subarray(s, s + n));
    };
    this.#state.save({ setStreamState: save }, noRow);
    return bytes;
  }

  /** Whether it is time for a pause, after one more element. */
  #isFull(): boolean {
    const isFull = ++this.#seen >= elementsPerStep || this.#from.work >= stepBytes;
    if (!isFull) return this.#list.count >= elementsPerStep;
    this.#seen = 0;
    this.#from.work = 0;
    return true;
  }

  #readId(to: StreamId): void {
    setId(to, this.#from.wideLength(), this.#from.wideLength());
  }

  *#readNode(): Pauses {
    const string = this.#string;
    yield* this.#from.string(string);
    if (string.n !== idBytes) throw badData;
    const ms = string.b.readBigUInt64BE(string.s);
    const seq = string.b.readBigUInt64BE(string.s + 8);
    yield* this.#from.string(string);
    const elements = new PackedElements('listpack', string);
    const count = integer(elements);
    const deleted = integer(elements);
    const fields = integer(elements);
    const names: Buffer[] = [];
    for (let i = 0n; i < fields; i++) {
      names.push(element(elements).copy());
      if (this.#isFull()) yield;
    }
    if (integer(elements) !== 0n) throw badData;
    const node: Node = { elements, ms, seq, names, isCommon: this.#isCommon(names) };
    const tally = { entries: 0n, deleted: 0n };
    while (yield* this.#readEntry(node, tally));
    if (tally.entries !== count || tally.deleted !== deleted) throw badData;
  }

  /** The names of the first entries become those that entries have in common. */
  #isCommon(names: Buffer[]): boolean {
    if (this.#commonNames === undefined) {
      if (names.reduce((bytes, { length }) => bytes + length + 1, 0) > maxNamesBytes) return false;
      const packed = this.#content.begin().varint(names.length);
      for (const name of names) packed.bytes(name, 0, name.length);
      addNames(this.#records, noRow, packed);
      this.#state.hasNames = true;
      this.#commonNames = names;
      return true;
    }
    const common = this.#commonNames;
    return names.length === common.length && names.every((name, i) => name.equals(common[i]!));
  }

  *#readEntry(
    node: Node,
    tally: { entries: bigint; deleted: bigint },
  ): Generator<undefined, boolean, undefined> {
    const { elements, names } = node;
    const out = new Slice();
    if (!elements.next(out)) return false;
    const flags = Number(integerOf(out));
    const ms = BigInt.asUintN(64, node.ms + integer(elements));
    const seq = BigInt.asUintN(64, node.seq + integer(elements));
    const isSame = (flags & EntryFlag.sameFields) !== 0;
    const fields = isSame ? names.length : Number(integer(elements));
    if (fields < 1) throw badData;
    const content = this.#content.begin();
    if (isSame && node.isCommon) content.byte(1);
    else content.byte(0).varint(fields);
    for (let i = 0; i < fields; i++) {
      if (!isSame) addString(content, element(elements));
      else if (!node.isCommon) content.bytes(names[i]!, 0, names[i]!.length);
      addString(content, element(elements));
      if (this.#isFull()) yield;
    }
    if (integer(elements) !== BigInt(isSame ? fields + 3 : 2 * fields + 4)) throw badData;
    if ((flags & EntryFlag.deleted) !== 0) {
      tally.deleted++;
      return true;
    }
    tally.entries++;
    const id = this.#id;
    setId(id, ms, seq);
    if (id.compare(this.#last) <= 0) throw badData;
    if (this.#length++ === 0) this.#first.set(id);
    this.#last.set(id);
    addEntry(this.#records, noRow, id, content);
    if (this.#isFull()) yield;
    return true;
  }

  *#readGroup(names: Names): Pauses {
    const from = this.#from;
    const group = this.#group;
    const name = yield* this.#newName(names);
    group.number = this.#state.nextGroup++;
    group.consumers = 0;
    group.nextConsumer = 0;
    this.#readId(group.last);
    group.entriesRead = this.#readProgress(group.last);
    group.pending = from.length();
    if (group.pending * pendingBytes > from.left) throw badData;
    const deliveries = yield* this.#readDeliveries(group.pending);
    group.highest.setZero();
    if (group.pending > 0) idAt(deliveries.ids, group.pending - 1, group.highest);
    let owned = 0;
    const consumers = new Names();
    for (let left = from.length(); left > 0; left--) {
      owned += yield* this.#readConsumer(consumers, deliveries);
    }
    if (owned !== group.pending) throw badData;
    group.add(this.#records, noRow, name, 0, name.length);
    if (this.#isFull()) yield;
  }

  *#newName(names: Names): Generator<undefined, Buffer, undefined> {
    yield* this.#from.string(this.#string);
    const name = this.#string.copy();
    names.mark();
    if (!names.add(name.toString('latin1'))) throw badData;
    return name;
  }

  /** How many entries a group that is at this id has read; -1 when that is not known. */
  #readProgress(last: StreamId): number {
    if (this.#version > 1) {
      const read = this.#from.wideLength();
      if (read === 2n ** 64n - 1n) return -1;
      if (read > BigInt(Number.MAX_SAFE_INTEGER)) throw badData;
      return Number(read);
    }
    // Redis 5 did not count. As Redis 7 guesses it.
    const { length, last: end } = this.#state;
    const order = last.compare(end);
    if (length === 0 || order === 0) return length === 0 && order > 0 ? -1 : length;
    const toFirst = last.compare(this.#first);
    if (order > 0 || toFirst > 0) return -1;
    return toFirst === 0 ? 1 : 0;
  }

  *#readDeliveries(count: number): Generator<undefined, Deliveries, undefined> {
    const from = this.#from;
    const ids = Buffer.allocUnsafe(count * idBytes);
    const times = new Float64Array(count);
    const counts = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      const at = from.take(idBytes);
      from.b.copy(ids, i * idBytes, at, at + idBytes);
      const id = i * idBytes;
      if (i > 0 && ids.compare(ids, id - idBytes, id, id, id + idBytes) <= 0) throw badData;
      times[i] = this.#time();
      counts[i] = from.counter();
      if (this.#isFull()) yield;
    }
    return { ids, times, counts, isOwned: new Uint8Array(count) };
  }

  #time(): number {
    const time = Number(this.#from.b.readBigInt64LE(this.#from.take(8)));
    return Math.min(Math.max(time, 0), latestTime);
  }

  /** Answers how many entries are pending with it. */
  *#readConsumer(
    names: Names,
    { ids, times, counts, isOwned }: Deliveries,
  ): Generator<undefined, number, undefined> {
    const from = this.#from;
    const consumer = this.#consumer;
    consumer.name = yield* this.#newName(names);
    consumer.seen = this.#time();
    // When it was last given an entry.
    if (this.#version > 2) from.take(8);
    consumer.pending = from.length();
    const { pending } = consumer;
    if (pending > isOwned.length) throw badData;
    consumer.add(this.#records, noRow, this.#group);
    this.#pending.consumer = consumer.number;
    for (let i = 0; i < pending; i++) {
      const place = placeOf(ids, from.b, from.take(idBytes));
      if (place < 0 || isOwned[place] === 1) throw badData;
      isOwned[place] = 1;
      this.#pending.delivered = times[place]!;
      this.#pending.deliveries = counts[place]!;
      idAt(ids, place, this.#id);
      this.#pending.add(this.#records, noRow, this.#group.number, this.#id);
      if (this.#isFull()) yield;
    }
    if (this.#isFull()) yield;
    return pending;
  }
}

function addString(content: Packed, { b, s, n }: Slice): void {
  content.bytes(b, s, n);
}

const found = new Slice();

/** The next element, which must be there; good until the one after it. */
function element(elements: PackedElements): Slice {
  if (!elements.next(found)) throw badData;
  return found;
}

function integer(elements: PackedElements): bigint {
  return integerOf(element(elements));
}

function integerOf({ b, s, n }: Slice): bigint {
  const value = n <= 20 ? parseBigInteger(b, s, n) : undefined;
  if (value === undefined) throw badData;
  return value;
}

function setId(to: StreamId, ms: bigint, seq: bigint): void {
  to.msHigh = Number(ms >> 32n);
  to.msLow = Number(ms & 0xffffffffn);
  to.seqHigh = Number(seq >> 32n);
  to.seqLow = Number(seq & 0xffffffffn);
}

function idAt(ids: Buffer, index: number, to: StreamId): void {
  const at = index * idBytes;
  to.msHigh = ids.readUInt32BE(at);
  to.msLow = ids.readUInt32BE(at + 4);
  to.seqHigh = ids.readUInt32BE(at + 8);
  to.seqLow = ids.readUInt32BE(at + 12);
}

/** Where the id at `s` is among the ids, which are in order; -1 when it is not. */
function placeOf(ids: Buffer, b: Buffer, s: number): number {
  let low = 0;
  let high = ids.length / idBytes - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const order = ids.compare(b, s, s + idBytes, middle * idBytes, (middle + 1) * idBytes);
    if (order === 0) return middle;
    if (order < 0) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
