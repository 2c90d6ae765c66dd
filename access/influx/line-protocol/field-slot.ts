// The parser's cache of a measurement's fields: by the bytes of their keys, and by the field that
// followed last time. In most bodies each line has the fields of the one before it, in the same
// order, so a key is found by one comparison, four bytes at a time.

import { equalBytes } from '../../../universal-row/bytes.ts';
import { keyedHash } from '../../../universal-row/keyed-hash.ts';
import { type FieldType, fieldTypeCodes } from '../../../universal-row/series/field-type.ts';
import { BatchColumn } from './batch-column.ts';
import { equals } from './characters.ts';
import { unescapeFieldKey } from './line-key.ts';

const noColumn = new BatchColumn('', 'float', true);

export class FieldSlot {
  readonly name: string;
  /** Bytes of the key with its equals sign. */
  readonly length: number;
  /** Those bytes in words of four, little-endian; the last one overlaps when they don't come out even. */
  readonly words: Int32Array;
  /** The field that came after this one. */
  next: FieldSlot | undefined = undefined;
  /** Code of the type that came last, and its column. -1 when there was none. */
  type = -1;
  column: BatchColumn = noColumn;
  /** `time` is not stored. */
  readonly ignored: boolean;
  /** By the code of their type; absent while there is none. */
  private columns: (BatchColumn | undefined)[] | undefined = undefined;

  constructor(key: Buffer) {
    this.name = unescapeFieldKey(key.toString('utf8'));
    this.ignored = this.name === 'time';
    this.length = key.length + 1;
    const { length } = this;
    this.words = new Int32Array(length < 4 ? 1 : Math.ceil(length / 4));
    if (length < 4) {
      this.words[0] = key.readUIntLE(0, length - 1) | (equals << (8 * (length - 1)));
      return;
    }
    let w = 0;
    for (let i = 0; i < length - 4; i += 4) this.words[w++] = key.readInt32LE(i);
    // The equals sign is behind the key.
    this.words[w] = key.readUIntLE(length - 4, 3) | (equals << 24);
  }

  /** Whether the bytes at `at` are this key and an equals sign. */
  matches(view: DataView, at: number, end: number): boolean {
    const { length, words } = this;
    if (at + length >= end) return false;
    if (length < 4) {
      let word = 0;
      for (let i = 0; i < length; i++) word |= view.getUint8(at + i) << (i * 8);
      return word === words[0];
    }
    const last = at + length - 4;
    let w = 0;
    for (let i = at; i < last; i += 4) if (view.getInt32(i, true) !== words[w++]) return false;
    return view.getInt32(last, true) === words[w];
  }

  /** Makes the column of this type the current one. The row under way loses a value of another type. */
  convert(type: FieldType, row: number): void {
    const code = fieldTypeCodes[type];
    if (this.type >= 0 && this.column.active) this.column.disclaim(row);
    this.columns ??= [];
    let column = this.columns[code];
    if (column === undefined) {
      column = new BatchColumn(this.name, type, this.ignored);
      this.columns[code] = column;
    }
    this.type = code;
    this.column = column;
  }
}

/** The slots of one measurement, by the bytes of their keys. */
export class FieldTable {
  // By the order in which they came: the key as written, its hash, and the slot.
  private readonly keys: Buffer[] = [];
  private readonly hashes: number[] = [];
  private readonly slots: FieldSlot[] = [];
  /** Index + 1 in those at the hash, 0 where there is none. */
  private places = new Int32Array(16);
  private readonly byName = new Map<string, FieldSlot>();

  get size(): number {
    return this.slots.length;
  }

  /** The slot of a key as it was written; two ways to write one name have the same slot. */
  find(buf: Buffer, start: number, end: number): FieldSlot {
    const hash = keyedHash(buf, start, end);
    const mask = this.places.length - 1;
    let place = hash & mask;
    for (; ; place = (place + 1) & mask) {
      const index = this.places[place]! - 1;
      if (index < 0) break;
      if (this.hashes[index] === hash) {
        const key = this.keys[index]!;
        if (equalBytes(key, 0, key.length, buf, start, end - start)) return this.slots[index]!;
      }
    }
    return this.add(Buffer.from(buf.subarray(start, end)), hash, place);
  }

  private add(key: Buffer, hash: number, place: number): FieldSlot {
    let slot = new FieldSlot(key);
    const same = this.byName.get(slot.name);
    if (same === undefined) this.byName.set(slot.name, slot);
    else slot = same;
    this.keys.push(key);
    this.hashes.push(hash);
    const count = this.slots.push(slot);
    this.places[place] = count;
    if (count * 2 > this.places.length) this.rehash();
    return slot;
  }

  private rehash(): void {
    const places = new Int32Array(this.places.length * 2);
    for (let index = 0; index < this.hashes.length; index++) {
      let place = this.hashes[index]! & (places.length - 1);
      while (places[place] !== 0) place = (place + 1) & (places.length - 1);
      places[place] = index + 1;
    }
    this.places = places;
  }
}
