// The records under one LevelDB prefix, as far as they are cached: the meta records of a table, its
// expiry index, or the sub-records of one row.
//
// `stretches` are the key ranges cached completely: a key inside that is not among `records` is not
// on disk either. A new row's space begins as one stretch over everything.
//
// `order` exists during an iteration over the space. It then holds, in key order, every record that
// waits to be written and every record within a stretch, so that an iteration within a stretch
// finds all of them.

import { emptyBytes } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import { lastKey, prefixEnd } from './key-layout.ts';
import { decodeRow, encodeRow, type RowForm } from './record.ts';
import { LruItem } from './size-aware-lru.ts';
import { SortedRecords } from './sorted-records.ts';

// V8's object, its place in a map, and the `Buffer` object of its value.
const recordOverheadBytes = 240;

/** The table of a space, as the space and its users see it. */
interface SpaceTable {
  readonly table: number;
  readonly dropped: boolean;
  readonly bypassesCache: boolean;
}

export class KvRecord extends LruItem {
  readonly space: RecordSpace;
  /** Within the space. */
  readonly key: string;
  #present = false;
  /** As on disk; for scores see `score`, for containers' meta records the fields of `RowRecord`. */
  value: Buffer = emptyBytes;
  score = 0;
  /** Number of the write batch it goes to disk with; 0 when the disk has it as it is. */
  batch = 0;
  /** Bytes counted as waiting to be written. */
  waitingBytes = 0;
  /** Whether it is in the space's order. */
  ordered = false;
  /** The command that has changed it already. */
  touchedBy = 0;
  /** The disk has never seen this key, so there is nothing to delete. */
  fresh = false;

  constructor(space: RecordSpace, key: string) {
    super();
    this.space = space;
    this.key = key;
  }

  /** False: there is no such record, or it is to be deleted. */
  get present(): boolean {
    return this.#present;
  }

  set present(present: boolean) {
    if (this.ordered && present !== this.#present) {
      const { order } = this.space;
      if (order !== undefined) order.absent += present ? -1 : 1;
    }
    this.#present = present;
  }

  footprint(): number {
    return recordOverheadBytes + this.key.length + this.value.length;
  }

  ghostKey(): number {
    const { key } = this;
    let h = this.space.id | 0;
    for (let i = 0; i < key.length; i++) h = Math.imul(h ^ key.charCodeAt(i), 0x01000193);
    return h;
  }
}

/** A meta record: the row itself. */
export class RowRecord extends KvRecord implements RowForm {
  shape: Shape = Shape.none;
  expireAt = 0;
  /** Where a value row's bytes begin in `value`; a stream's state is all of it. */
  valueStart = 0;
  /** Buffer of a value row after an append, with free space behind the value. */
  spare: Buffer | undefined = undefined;
  /**
   * Container number used in sub-record keys. With it, the container's elements and their
   * approximate payload size.
   */
  number = 0;
  count = 0;
  bytes = 0;
  /** Position of an array's first element. */
  head = 0;
  /** Sub-records of a container, once any were accessed. */
  sub: RecordSpace | undefined = undefined;
  /** The row handle, 0 while there is none. */
  slot = 0;

  override footprint(): number {
    return 160 + super.footprint();
  }
}

type SpaceKind = 'meta' | 'expiry' | 'sub';

/** A range [from, to) of keys of which everything is in memory. Kept and given up as one. */
export class Stretch extends LruItem {
  readonly space: RecordSpace;
  from: string;
  to: string;
  records = 0;

  constructor(space: RecordSpace, from: string, to: string) {
    super();
    this.space = space;
    this.from = from;
    this.to = to;
  }

  ghostKey(): number {
    return this.space.id ^ (this.from.length << 16) ^ this.from.charCodeAt(this.from.length - 1);
  }
}

let nextId = 1;

export class RecordSpace {
  readonly id = nextId++;
  readonly kind: SpaceKind;
  readonly table: SpaceTable;
  readonly prefix: Buffer;
  readonly end: Buffer;
  readonly records = new Map<string, KvRecord>();
  order: SortedRecords<KvRecord> | undefined = undefined;
  /** By key, without overlaps. */
  readonly stretches: Stretch[] = [];
  /** The row was dropped, so its waiting records need not be written. */
  dropped = false;
  /** Its row is gone: it will not be read. */
  ended = false;
  /** Whether the disk may hold any of it. */
  onDisk = true;
  /** Keys being read, each with its promise. */
  readonly loading = new Map<string, Promise<void>>();
  /** How much the next page read asks for: doubles while reads of this space follow each other. */
  pageRecords = 0;
  lastPageTick = -100;
  /** Rounds of reads in a row that asked for one record of this space. */
  singles = 0;
  lastMissTick = 0;
  lastRound = 0;

  constructor(kind: SpaceKind, table: SpaceTable, prefix: Buffer) {
    this.kind = kind;
    this.table = table;
    this.prefix = prefix;
    this.end = prefixEnd(prefix);
  }

  newRecord(key: string): KvRecord {
    const record = this.kind === 'meta' ? new RowRecord(this, key) : new KvRecord(this, key);
    this.records.set(key, record);
    return record;
  }

  /** The key in LevelDB. */
  diskKey(key: string): Buffer {
    if (key === lastKey) return this.end;
    const { prefix } = this;
    const n = prefix.length;
    const to = Buffer.allocUnsafe(n + key.length);
    for (let i = 0; i < n; i++) to[i] = prefix[i]!;
    to.write(key, n, 'latin1');
    return to;
  }

  keyOf(diskKey: Buffer): string {
    return diskKey.toString('latin1', this.prefix.length);
  }

  encode(record: KvRecord): Buffer {
    if (record instanceof RowRecord) return encodeRow(record);
    if (!isScore(record)) return record.value;
    const to = Buffer.allocUnsafe(8);
    to.writeDoubleBE(record.score, 0);
    return to;
  }

  /** Throws `RangeError` when it is damaged. */
  decode(record: KvRecord, value: Buffer): void {
    record.present = true;
    if (record instanceof RowRecord) decodeRow(record, value);
    else if (isScore(record)) record.score = value.readDoubleBE(0);
    else record.value = value;
  }

  /** The stretch that a key lies in. */
  stretchAt(key: string): Stretch | undefined {
    const stretch = this.stretches[this.#after(key) - 1];
    return stretch !== undefined && key < stretch.to ? stretch : undefined;
  }

  /** The stretch that knows the keys just below this one. */
  stretchBelow(key: string): Stretch | undefined {
    const i = this.#after(key) - 1;
    const stretch = this.stretches[i];
    if (stretch !== undefined && stretch.from < key) return stretch.to >= key ? stretch : undefined;
    const below = this.stretches[i - 1];
    return below !== undefined && below.to >= key ? below : undefined;
  }

  /** The first stretch that begins behind the key. */
  nextAbove(key: string): Stretch | undefined {
    return this.stretches[this.#after(key)];
  }

  /** The last stretch that ends before the key. */
  nextBelow(key: string): Stretch | undefined {
    const i = this.#after(key) - 1;
    const stretch = this.stretches[i];
    return stretch !== undefined && stretch.to >= key ? this.stretches[i - 1] : stretch;
  }

  addStretch(stretch: Stretch): void {
    this.stretches.splice(this.#after(stretch.from), 0, stretch);
  }

  removeStretch(stretch: Stretch): void {
    this.stretches.splice(this.#after(stretch.from) - 1, 1);
  }

  /** The parts of [from, to) that lie in no stretch. */
  gaps(from: string, to: string): { from: string; to: string }[] {
    const gaps: { from: string; to: string }[] = [];
    let at = from;
    for (let i = Math.max(0, this.#after(from) - 1); at < to; i++) {
      const stretch = this.stretches[i];
      if (stretch === undefined || stretch.from >= to) {
        gaps.push({ from: at, to });
        break;
      }
      if (stretch.from > at) gaps.push({ from: at, to: stretch.from });
      if (stretch.to > at) at = stretch.to;
    }
    return gaps;
  }

  ensureOrder(): SortedRecords<KvRecord> {
    if (this.order !== undefined) return this.order;
    const records: KvRecord[] = [];
    for (const record of this.records.values()) {
      if (record.batch !== 0 || this.stretchAt(record.key) !== undefined) records.push(record);
    }
    this.order = SortedRecords.from(records);
    return this.order;
  }

  /** Index of the first stretch that begins behind the key. */
  #after(key: string): number {
    const { stretches } = this;
    let low = 0;
    let high = stretches.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (stretches[middle]!.from <= key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isScore(record: KvRecord): boolean {
  return record.space.kind === 'sub' && record.key.charCodeAt(0) === 122;
}
