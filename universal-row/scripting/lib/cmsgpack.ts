// cmsgpack: MessagePack of Lua values. https://github.com/msgpack/msgpack/blob/master/spec.md

import type { Machine } from '../machine.ts';
import { LuaTable, type Value } from '../values.ts';
import { checkInteger, checkString } from './checks.ts';

/** Tables that lie deeper are packed as nil. */
const maxNesting = 16;
const maxUnpackDepth = 128;
const scratch = Buffer.alloc(8);

class Packer {
  readonly #m: Machine;
  readonly #parts: string[] = [];

  constructor(m: Machine) {
    this.#m = m;
  }

  get text(): string {
    return this.#m.made(this.#parts.join(''));
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

  value(value: Value, depth: number): void {
    switch (typeof value) {
      case 'string':
        this.#string(value);
        return;
      case 'number':
        this.#number(value);
        return;
      case 'boolean':
        this.#bytes(value ? 0xc3 : 0xc2);
        return;
      default:
        if (value instanceof LuaTable && depth < maxNesting) this.#table(value, depth);
        else this.#bytes(0xc0);
    }
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

  #table(table: LuaTable, depth: number): void {
    const { length } = table;
    const isList = table.restCount === 0 && !table.list.includes(undefined);
    if (isList) {
      this.#header(length, 0x90, 0xdc);
      for (const value of table.list) this.value(value, depth + 1);
      return;
    }
    let count = table.restCount;
    for (let at = table.seek(0); at >= 0; at = table.seek(at + 1)) count++;
    this.#header(count, 0x80, 0xde);
    for (let at = table.seek(0); at >= 0; at = table.seek(at + 1)) {
      this.#number(at + 1);
      this.value(table.list[at], depth + 1);
    }
    for (let at = table.seekRest(0); at >= 0; at = table.seekRest(at + 1)) {
      this.value(table.restKey(at), depth + 1);
      this.value(table.restValue(at), depth + 1);
    }
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

  value(depth = 0): Value {
    if (depth > maxUnpackDepth) throw this.#m.error('Bad data format in input.');
    this.#m.charge(1);
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

  #list(count: number, depth: number): LuaTable {
    const list: Value[] = [];
    for (let i = 0; i < count; i++) {
      list.push(this.value(depth + 1));
      this.#m.grew();
    }
    return new LuaTable(list);
  }

  #map(count: number, depth: number): LuaTable {
    const table = new LuaTable();
    for (let i = 0; i < count; i++) {
      const key = this.value(depth + 1);
      const value = this.value(depth + 1);
      if (key === undefined || key !== key) throw this.#m.error('Bad data format in input.');
      if (table.set(key, value)) this.#m.grew();
    }
    return table;
  }
}

function unpack(m: Machine, name: string, args: readonly Value[], most: number): Value[] {
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
  while (!unpacker.isAtEnd && (isAll || values.length < most)) values.push(unpacker.value());
  return isAll ? values : [unpacker.isAtEnd ? -1 : unpacker.at, ...values];
}

export function cmsgpackLibrary(m: Machine): Record<string, Value> {
  return {
    pack: (...args: Value[]) => {
      if (args.length === 0) throw m.argument(0, 'pack', 'MessagePack pack needs input.');
      const packer = new Packer(m);
      for (const value of args) packer.value(value, 0);
      return packer.text;
    },
    unpack: (...args: Value[]) => unpack(m, 'unpack', args, 0),
    unpack_one: (...args: Value[]) => unpack(m, 'unpack_one', args, 1),
    unpack_limit: (...args: Value[]) =>
      unpack(m, 'unpack_limit', args, checkInteger(m, args[1], 2, 'unpack_limit')),
    _NAME: 'cmsgpack',
    _VERSION: 'lua-cmsgpack 0.4.0',
    _COPYRIGHT: 'Copyright (C) 2012, Salvatore Sanfilippo',
    _DESCRIPTION: 'MessagePack C implementation for Lua',
  };
}
