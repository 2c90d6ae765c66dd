// struct: values as bytes in the layouts of C. Sizes are those of a 64-bit machine.

import type { Machine } from '../machine.ts';
import type { Callable, Value } from '../values.ts';
import { checkInteger, checkNumber, checkString } from './checks.ts';

const maxIntegerSize = 32;
const sizes: Record<string, number> = { b: 1, h: 2, l: 8, i: 4, t: 8, f: 4, d: 8 };

interface Item {
  readonly letter: string;
  readonly size: number;
  /** Bytes before it. */
  readonly padding: number;
  readonly isLittle: boolean;
}

/** Reads a format, item by item; positions decide how much is left free between them. */
class Format {
  readonly #m: Machine;
  readonly #text: string;
  readonly #name: string;
  #at = 0;
  #isLittle = true;
  #alignment = 1;

  /** `name` is the function's, for errors. */
  constructor(m: Machine, text: string, name: string) {
    this.#m = m;
    this.#text = text;
    this.#name = name;
  }

  #number(otherwise: number): number {
    const digits = /^\d{1,10}/.exec(this.#text.slice(this.#at, this.#at + 10))?.[0];
    if (digits === undefined) return otherwise;
    this.#at += digits.length;
    return Number(digits);
  }

  #control(letter: string): boolean {
    if (letter === ' ') return true;
    if (letter === '<' || letter === '>') {
      this.#isLittle = letter === '<';
      return true;
    }
    if (letter !== '!') return false;
    const alignment = this.#number(8);
    if (alignment === 0 || (alignment & (alignment - 1)) !== 0) {
      throw this.#m.error('alignment is not a power of 2');
    }
    this.#alignment = alignment;
    return true;
  }

  /** The next item, which begins at `position`; undefined at the end. */
  next(position: number): Item | undefined {
    let letter: string;
    do {
      if (this.#at >= this.#text.length) return undefined;
      letter = this.#text[this.#at++]!;
    } while (this.#control(letter));
    const size = this.#sizeOf(letter);
    let padding = 0;
    if (/[bBhHlLiITfd]/.test(letter) && size > 1) {
      const align = Math.min(size, this.#alignment);
      if (align > 1) {
        if ((align & (align - 1)) !== 0) throw this.#m.error('alignment is not a power of 2');
        padding = (align - (position & (align - 1))) & (align - 1);
      }
    }
    return { letter, size, padding, isLittle: this.#isLittle };
  }

  #sizeOf(letter: string): number {
    if (letter === 'c') return this.#number(1);
    if (letter === 'x') return 1;
    if (letter === 's') return 0;
    if (letter === 'i' || letter === 'I') {
      const size = this.#number(4);
      if (size > maxIntegerSize || size === 0) {
        throw this.#m.error(`integral size ${size} is larger than limit of ${maxIntegerSize}`);
      }
      return size;
    }
    const size = /^[bBhHlLTfd]$/.test(letter) ? sizes[letter.toLowerCase()] : undefined;
    if (size === undefined) {
      throw this.#m.argument(1, this.#name, `invalid format option '${letter}'`);
    }
    return size;
  }
}

function integerBytes(value: number, { size, isLittle }: Item): string {
  const whole = Number.isFinite(value) ? BigInt(Math.trunc(value)) : 0n;
  let rest = BigInt.asUintN(64, whole);
  const codes: number[] = [];
  for (let i = 0; i < size; i++) {
    codes.push(Number(rest & 255n));
    rest >>= 8n;
  }
  if (!isLittle) codes.reverse();
  return String.fromCharCode(...codes);
}

function integerOf(text: string, { letter, size, isLittle }: Item): number {
  let value = 0n;
  for (let i = 0; i < size; i++) {
    const at = isLittle ? size - 1 - i : i;
    value = (value << 8n) | BigInt(text.charCodeAt(at));
  }
  const isSigned = letter >= 'a';
  const bits = Math.min(64, size * 8);
  return Number(isSigned ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value));
}

function floatBytes(value: number, { size, isLittle }: Item): string {
  const view = new DataView(new ArrayBuffer(8));
  if (size === 4) view.setFloat32(0, value, isLittle);
  else view.setFloat64(0, value, isLittle);
  return Buffer.from(view.buffer, 0, size).toString('latin1');
}

function floatOf(text: string, { size, isLittle }: Item): number {
  const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return size === 4 ? view.getFloat32(0, isLittle) : view.getFloat64(0, isLittle);
}

function pack(m: Machine, args: readonly Value[]): string {
  const format = new Format(m, checkString(m, args[0], 1, 'pack'), 'pack');
  const parts: string[] = [];
  let position = 0;
  let word = 1;
  for (let item = format.next(position); item !== undefined; item = format.next(position)) {
    m.charge(4);
    let text: string;
    if (item.letter === 'x') text = '\0';
    else if (item.letter === 's' || item.letter === 'c') {
      const value = checkString(m, args[word], word + 1, 'pack');
      const size = item.size === 0 ? value.length : item.size;
      if (value.length < size) throw m.argument(word + 1, 'pack', 'string too short');
      text = item.letter === 's' ? `${value}\0` : value.slice(0, size);
      word++;
    } else {
      const value = checkNumber(m, args[word], word + 1, 'pack');
      const isFloat = item.letter === 'f' || item.letter === 'd';
      text = isFloat ? floatBytes(value, item) : integerBytes(value, item);
      word++;
    }
    parts.push('\0'.repeat(item.padding), text);
    position += item.padding + text.length;
    m.allocate(text.length);
  }
  return parts.join('');
}

function unpack(m: Machine, args: readonly Value[]): Value[] {
  const format = new Format(m, checkString(m, args[0], 1, 'unpack'), 'unpack');
  const data = checkString(m, args[1], 2, 'unpack');
  const start = checkInteger(m, args[2], 3, 'unpack', 1);
  if (start < 1) throw m.argument(3, 'unpack', 'offset must be 1 or greater');
  let position = start - 1;
  const values: Value[] = [];
  for (let item = format.next(position); item !== undefined; item = format.next(position)) {
    m.charge(4);
    position += item.padding;
    let { size } = item;
    if (item.letter === 'c' && size === 0) {
      const counted = values.pop();
      if (typeof counted !== 'number') throw m.error("format 'c0' needs a previous size");
      size = counted;
    }
    if (item.letter === 's') {
      const end = data.indexOf('\0', position);
      if (end < 0) throw m.error('unfinished string in data');
      values.push(data.slice(position, end));
      position = end + 1;
      continue;
    }
    if (size < 0 || position + size > data.length)
      throw m.argument(2, 'unpack', 'data string too short');
    const text = data.slice(position, position + size);
    position += size;
    if (item.letter === 'x') continue;
    if (item.letter === 'c') values.push(text);
    else if (item.letter === 'f' || item.letter === 'd') values.push(floatOf(text, item));
    else values.push(integerOf(text, item));
  }
  return [...values, position + 1];
}

function size(m: Machine, text: Value): number {
  const format = new Format(m, checkString(m, text, 1, 'size'), 'size');
  let position = 0;
  for (let item = format.next(position); item !== undefined; item = format.next(position)) {
    if (item.letter === 's') throw m.argument(1, 'size', "option 's' has no fixed size");
    if (item.letter === 'c' && item.size === 0) {
      throw m.argument(1, 'size', "option 'c0' has no fixed size");
    }
    position += item.padding + item.size;
  }
  return position;
}

export function structLibrary(m: Machine): Record<string, Callable> {
  return {
    pack: (...args) => pack(m, args),
    unpack: (...args) => unpack(m, args),
    size: (format) => size(m, format),
  };
}
