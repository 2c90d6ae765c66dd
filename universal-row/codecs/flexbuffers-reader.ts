// Reads FlexBuffers, untrusted ones too: no read leaves the bytes given, every offset points
// strictly backwards (so there is no cycle), and the total read in one decode is at most the number
// of bytes (so data referenced twice cannot multiply).
//
//   buffer   ... root slot | type of the root u8 | width of the root slot u8
//   type     what it is << 2 | log2 of its width
//   vector   length | slots | types u8 each         (an offset points at the slots)
//   map      offset to the keys | their width | length | slots | types
//   blob     length | bytes          string   length | UTF-8 | 00          key   UTF-8 | 00
//
// Only the output of our writer is supported: no typed vectors.

import { isUtf8 } from 'node:buffer';

export const FlexType = {
  null: 0,
  int: 1,
  float: 3,
  string: 5,
  indirectInt: 6,
  indirectFloat: 8,
  map: 9,
  vector: 10,
  blob: 25,
  bool: 26,
} as const;

/** One value: position and width of its slot, and its type. */
export interface FlexValue {
  readonly at: number;
  readonly slotBytes: number;
  readonly type: number;
  /** Bytes of each slot of a vector, of a length, or of an indirect number. */
  readonly width: number;
}

interface Slots {
  readonly start: number;
  readonly count: number;
  readonly width: number;
}

/** Every method throws `RangeError` for a value of another type or a truncated one. */
export class FlexReader {
  readonly #buf: Buffer;
  readonly #start: number;
  readonly #end: number;
  #budget: number;

  constructor(bytes: Uint8Array, start: number) {
    this.#buf = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#start = start;
    this.#end = bytes.length;
    this.#budget = bytes.length;
  }

  root(): FlexValue {
    if (this.#end - this.#start < 3) throw new RangeError('cut short');
    const slotBytes = this.#buf[this.#end - 1]!;
    return this.#value(this.#end - 2 - slotBytes, slotBytes, this.#buf[this.#end - 2]!);
  }

  number(value: FlexValue): number {
    if (value.type === FlexType.int) return this.#int(value.at, value.slotBytes);
    if (value.type !== FlexType.indirectFloat) throw new RangeError('not a number');
    const at = this.#target(value);
    this.#check(at, value.width);
    if (value.width === 4) return this.#buf.readFloatLE(at);
    if (value.width === 8) return this.#buf.readDoubleLE(at);
    throw new RangeError('odd width');
  }

  bigint(value: FlexValue): bigint {
    if (value.type !== FlexType.indirectInt) throw new RangeError('not a bigint');
    const at = this.#target(value);
    if (value.width !== 8) return BigInt(this.#int(at, value.width));
    this.#check(at, 8);
    return this.#buf.readBigInt64LE(at);
  }

  boolean(value: FlexValue): boolean {
    if (value.type !== FlexType.bool) throw new RangeError('not a boolean');
    return this.#uint(value.at, value.slotBytes) !== 0;
  }

  /** A view. */
  blob(value: FlexValue): Buffer {
    if (value.type !== FlexType.blob) throw new RangeError('not a blob');
    return this.#payload(value);
  }

  string(value: FlexValue): string {
    if (value.type !== FlexType.string) throw new RangeError('not a string');
    return text(this.#payload(value));
  }

  vector(value: FlexValue): FlexValue[] {
    if (value.type !== FlexType.vector) throw new RangeError('not a vector');
    const slots = this.#slots(value);
    this.#spend(slots.count);
    return Array.from({ length: slots.count }, (_, i) => this.#element(slots, i));
  }

  /** One element of a vector, the rest not looked at. */
  at(value: FlexValue, index: number): FlexValue {
    if (value.type !== FlexType.vector) throw new RangeError('not a vector');
    const slots = this.#slots(value);
    if (index >= slots.count) throw new RangeError('vector too short');
    return this.#element(slots, index);
  }

  map(value: FlexValue): [name: string, value: FlexValue][] {
    const slots = this.#mapSlots(value);
    const keys = this.#keys(slots);
    this.#spend(slots.count);
    return Array.from({ length: slots.count }, (_, i) => {
      const start = this.#keyStart(keys, i);
      const end = this.#buf.indexOf(0, start);
      if (end < 0) throw new RangeError('key without an end');
      this.#spend(end - start);
      return [text(this.#buf.subarray(start, end)), this.#element(slots, i)];
    });
  }

  /** One value of a map, by binary search: nothing else is decoded. */
  find(value: FlexValue, name: Buffer): FlexValue | undefined {
    const slots = this.#mapSlots(value);
    const keys = this.#keys(slots);
    let low = 0;
    let high = slots.count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const order = this.#compareKey(name, this.#keyStart(keys, middle));
      if (order === 0) return this.#element(slots, middle);
      if (order < 0) high = middle - 1;
      else low = middle + 1;
    }
    return undefined;
  }

  #value(at: number, slotBytes: number, packedType: number): FlexValue {
    this.#check(at, slotBytes);
    return { at, slotBytes, type: packedType >> 2, width: 1 << (packedType & 3) };
  }

  #element(slots: Slots, i: number): FlexValue {
    const packedType = this.#buf[slots.start + slots.count * slots.width + i]!;
    return this.#value(slots.start + i * slots.width, slots.width, packedType);
  }

  /** The slots of a vector or map; they and their types are within the bytes. */
  #slots(value: FlexValue): Slots {
    const start = this.#target(value);
    const width = value.width;
    const count = this.#uint(start - width, width);
    this.#check(start, count * (width + 1));
    return { start, count, width };
  }

  #mapSlots(value: FlexValue): Slots {
    if (value.type !== FlexType.map) throw new RangeError('not a map');
    return this.#slots(value);
  }

  #keys(slots: Slots): Slots {
    const at = slots.start - 3 * slots.width;
    const start = at - this.#uint(at, slots.width);
    const width = this.#uint(at + slots.width, slots.width);
    const count = this.#uint(start - width, width);
    // No keys take no bytes: they may end where the offset to them stands.
    if (start > at || count !== slots.count) throw new RangeError('map without its keys');
    this.#check(start, count * width);
    return { start, count, width };
  }

  #keyStart(keys: Slots, i: number): number {
    const at = keys.start + i * keys.width;
    const start = at - this.#uint(at, keys.width);
    if (start >= at) throw new RangeError('offset does not point back');
    this.#check(start, 1);
    return start;
  }

  #compareKey(name: Buffer, at: number): number {
    for (let i = 0; i < name.length; i++) {
      // A key ends in NUL, which no name contains: past the end of one nothing is read.
      const order = name[i]! - this.#buf[at + i]!;
      if (order !== 0) return order;
    }
    return this.#buf[at + name.length] === 0 ? 0 : -1;
  }

  #payload(value: FlexValue): Buffer {
    const start = this.#target(value);
    const length = this.#uint(start - value.width, value.width);
    this.#check(start, length);
    this.#spend(length);
    return this.#buf.subarray(start, start + length);
  }

  #target(value: FlexValue): number {
    const offset = this.#uint(value.at, value.slotBytes);
    const target = value.at - offset;
    if (offset === 0 || target < this.#start) throw new RangeError('offset does not point back');
    return target;
  }

  #int(at: number, width: number): number {
    this.#check(at, width);
    switch (width) {
      case 1:
      case 2:
      case 4:
        return this.#buf.readIntLE(at, width);
      default:
        throw new RangeError('odd width');
    }
  }

  #uint(at: number, width: number): number {
    this.#check(at, width);
    switch (width) {
      case 1:
        return this.#buf[at]!;
      case 2:
        return this.#buf.readUInt16LE(at);
      case 4:
        return this.#buf.readUInt32LE(at);
      case 8:
        return Number(this.#buf.readBigUInt64LE(at));
      default:
        throw new RangeError('odd width');
    }
  }

  #check(at: number, length: number): void {
    if (!(at >= this.#start && at + length <= this.#end)) throw new RangeError('out of bounds');
  }

  #spend(bytes: number): void {
    this.#budget -= bytes;
    if (this.#budget < 0) throw new RangeError('more values than bytes');
  }
}

function text(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new RangeError('not UTF-8');
  return bytes.toString();
}
