// cmsgpack: MessagePack of Lua values. https://github.com/msgpack/msgpack/blob/master/spec.md

import type { Machine } from '../machine.ts';
import { isWork, LuaTable, type Value, type Work } from '../values.ts';
import { checkInteger, checkString } from './checks.ts';

/** Tables that lie deeper are packed as nil. */
const maxNesting = 16;
const maxUnpackDepth = 128;
const scratch = Buffer.alloc(8);

/** Instructions for a value. */
const valueUnits = 40;
/** Parts of the text that are put together now and then. */
const keptParts = 4096;

class Packer {
  readonly #m: Machine;
  #text = '';
  #parts: string[] = [];

  constructor(m: Machine) {
    this.#m = m;
  }

  get text(): string {
    this.#join();
    return this.#m.made(this.#text);
  }

  #join(): void {
    this.#text += this.#parts.join('');
    this.#parts = [];
    if (this.#text.length > this.#m.limits.stringBytes) throw this.#m.error('not enough memory');
  }

  #bytes(...codes: number[]): void {
    this.#parts.push(String.fromCharCode(...codes));
    this.#m.charge(1);
  }

  /** A tag, and a number of `size` bytes. */
  #sized(tag: number, value: number, size: 1 | 2 | 4): void {
    scratch[0] = tag;
    scratch.writeUIntBE(value, 1, size);
    this.#parts.push(scratch.toString('latin1', 0, 1 + size));
    this.#m.charge(1);
  }

  /** Remaining work for a table; undefined when it is done. */
  value(value: Value, depth: number): Work<void> | undefined {
    this.#m.charge(valueUnits);
    if (value instanceof LuaTable && depth < maxNesting) return this.#table(value, depth);
    if (typeof value === 'string') this.#string(value);
    else if (typeof value === 'number') this.#number(value);
    else if (typeof value === 'boolean') this.#bytes(value ? 0xc3 : 0xc2);
    else this.#bytes(0xc0);
    return undefined;
  }

  #string(text: string): void {
    const { length } = text;
    if (length < 32) this.#bytes(0xa0 | length);
    else if (length <= 0xff) this.#sized(0xd9, length, 1);
    else if (length <= 0xffff) this.#sized(0xda, length, 2);
    else this.#sized(0xdb, length, 4);
    this.#parts.push(text);
    this.#m.allocate(length);
  }

  #number(value: number): void {
    if (!Number.isInteger(value) || Math.abs(value) >= 2 ** 63) this.#float(value);
    else if (value >= 0) this.#positive(value);
    else if (value >= -32) this.#bytes(value & 0xff);
    else if (value >= -0x80) this.#sized(0xd0, value & 0xff, 1);
    else if (value >= -0x8000) this.#sized(0xd1, value & 0xffff, 2);
    else if (value >= -0x80000000) this.#sized(0xd2, value >>> 0, 4);
    else this.#long(0xd3, value);
  }

  #positive(value: number): void {
    if (value <= 127) this.#bytes(value);
    else if (value <= 0xff) this.#sized(0xcc, value, 1);
    else if (value <= 0xffff) this.#sized(0xcd, value, 2);
    else if (value <= 0xffffffff) this.#sized(0xce, value, 4);
    else this.#long(0xcf, value);
  }

  #long(tag: number, value: number): void {
    scratch.writeBigUInt64BE(BigInt.asUintN(64, BigInt(value)));
    this.#parts.push(String.fromCharCode(tag) + scratch.toString('latin1', 0, 8));
  }

  #float(value: number): void {
    if (Math.fround(value) === value) {
      scratch.writeFloatBE(value);
      this.#parts.push(`\xca${scratch.toString('latin1', 0, 4)}`);
    } else {
      scratch.writeDoubleBE(value);
      this.#parts.push(`\xcb${scratch.toString('latin1', 0, 8)}`);
    }
  }

  *#table(table: LuaTable, depth: number): Work<void> {
    const { length } = table;
    const isList = table.restCount === 0 && !table.list.includes(undefined);
    if (isList) {
      this.#header(length, 0x90, 0xdc);
      for (const value of table.list) yield* this.#within(value, depth);
      return;
    }
    let count = table.restCount;
    for (let at = table.seek(0); at >= 0; at = table.seek(at + 1)) count++;
    this.#header(count, 0x80, 0xde);
    for (let at = table.seek(0); at >= 0; at = table.seek(at + 1)) {
      this.#number(at + 1);
      yield* this.#within(table.list[at], depth);
    }
    for (let at = table.seekRest(0); at >= 0; at = table.seekRest(at + 1)) {
      yield* this.#within(table.restKey(at), depth);
      yield* this.#within(table.restValue(at), depth);
    }
  }

  *#within(value: Value, depth: number): Work<void> {
    const work = this.value(value, depth + 1);
    if (work !== undefined) yield* work;
    if (this.#parts.length >= keptParts) this.#join();
    if (this.#m.n < 0) yield* this.#m.pause();
  }

  #header(count: number, small: number, large: number): void {
    if (count <= 15) this.#bytes(small | count);
    else if (count <= 0xffff) this.#sized(large, count, 2);
    else this.#sized(large + 1, count, 4);
  }
}

class Unpacker {
  readonly #m: Machine;
  readonly #bytes: Buffer;
  at: number;

  constructor(m: Machine, bytes: Buffer, at: number) {
    this.#m = m;
    this.#bytes = bytes;
    this.at = at;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length;
  }

  /** Where the next so many bytes begin. */
  #take(count: number): number {
    const start = this.at;
    if (start + count > this.#bytes.length) throw this.#m.error('Missing bytes in input.');
    this.at += count;
    return start;
  }

  #uint(size: number): number {
    return this.#bytes.readUIntBE(this.#take(size), size);
  }

  #int(size: number): number {
    return this.#bytes.readIntBE(this.#take(size), size);
  }

  #string(length: number): string {
    const start = this.#take(length);
    this.#m.allocate(length);
    return this.#bytes.toString('latin1', start, start + length);
  }

  /** The next value, or the work to read it. */
  value(depth = 0): Value {
    if (depth > maxUnpackDepth) throw this.#m.error('Bad data format in input.');
    this.#m.charge(valueUnits);
    const tag = this.#bytes[this.#take(1)]!;
    if (tag < 0x80) return tag;
    if (tag >= 0xe0) return tag - 256;
    if (tag < 0x90) return this.#map(tag & 15, depth);
    if (tag < 0xa0) return this.#list(tag & 15, depth);
    if (tag < 0xc0) return this.#string(tag & 31);
    return this.#tagged(tag, depth);
  }

  #tagged(tag: number, depth: number): Value {
    switch (tag) {
      case 0xc0:
        return undefined;
      case 0xc2:
      case 0xc3:
        return tag === 0xc3;
      case 0xca:
        return this.#bytes.readFloatBE(this.#take(4));
      case 0xcb:
        return this.#bytes.readDoubleBE(this.#take(8));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.#uint(1 << (tag - 0xcc));
      case 0xcf:
        return Number(this.#bytes.readBigUInt64BE(this.#take(8)));
      case 0xd0:
      case 0xd1:
      case 0xd2:
        return this.#int(1 << (tag - 0xd0));
      case 0xd3:
        return Number(this.#bytes.readBigInt64BE(this.#take(8)));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.#string(this.#uint(1 << (tag - 0xd9)));
      case 0xdc:
      case 0xdd:
        return this.#list(this.#uint(2 << (tag - 0xdc)), depth);
      case 0xde:
      case 0xdf:
        return this.#map(this.#uint(2 << (tag - 0xde)), depth);
      default:
        throw this.#m.error('Bad data format in input.');
    }
  }

  *#list(count: number, depth: number): Work<Value> {
    const list: Value[] = [];
    for (let i = 0; i < count; i++) {
      const found = this.value(depth + 1);
      list.push(isWork(found) ? yield* found : found);
      this.#m.grew();
      if (this.#m.n < 0) yield* this.#m.pause();
    }
    return new LuaTable(list);
  }

  *#map(count: number, depth: number): Work<Value> {
    const table = new LuaTable();
    for (let i = 0; i < count; i++) {
      const first = this.value(depth + 1);
      const key = isWork(first) ? yield* first : first;
      const second = this.value(depth + 1);
      const value = isWork(second) ? yield* second : second;
      if (this.#m.n < 0) yield* this.#m.pause();
      if (key === undefined || key !== key) throw this.#m.error('Bad data format in input.');
      if (table.set(key, value)) this.#m.grew();
    }
    return table;
  }
}

function* unpack(m: Machine, name: string, args: readonly Value[], most: number): Work<Value[]> {
  const text = checkString(m, args[0], 1, name);
  const isAll = most === 0;
  const offset = isAll ? 0 : checkInteger(m, args.at(name === 'unpack_one' ? 1 : 2), 2, name, 0);
  if (offset < 0 || most < 0) {
    throw m.error(
      `Invalid request to unpack with offset of ${offset} and limit of ${text.length}.`,
    );
  }
  if (offset > text.length) {
    throw m.error(`Start offset ${offset} greater than input length ${text.length}.`);
  }
  m.allocate(text.length);
  const unpacker = new Unpacker(m, Buffer.from(text, 'latin1'), offset);
  const values: Value[] = [];
  while (!unpacker.isAtEnd && (isAll || values.length < most)) {
    const found = unpacker.value();
    values.push(isWork(found) ? yield* found : found);
    if (m.n < 0) yield* m.pause();
  }
  return isAll ? values : [unpacker.isAtEnd ? -1 : unpacker.at, ...values];
}

export function cmsgpackLibrary(m: Machine): Record<string, Value> {
  return {
    pack: m.stepping(function* (...args) {
      if (args.length === 0) throw m.argument(0, 'pack', 'MessagePack pack needs input.');
      const packer = new Packer(m);
      for (const value of args) {
        const work = packer.value(value, 0);
        if (work !== undefined) yield* work;
      }
      return packer.text;
    }),
    unpack: m.stepping((...args) => unpack(m, 'unpack', args, 0)),
    unpack_one: m.stepping((...args) => unpack(m, 'unpack_one', args, 1)),
    unpack_limit: m.stepping((...args) =>
      unpack(m, 'unpack_limit', args, checkInteger(m, args[1], 2, 'unpack_limit')),
    ),
    _NAME: 'cmsgpack',
    _VERSION: 'lua-cmsgpack 0.4.0',
    _COPYRIGHT: 'Copyright (C) 2012, Salvatore Sanfilippo',
    _DESCRIPTION: 'MessagePack C implementation for Lua',
  };
}
