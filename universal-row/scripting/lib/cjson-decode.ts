// cjson.decode: JSON text, as bytes, to Lua values.

import type { Machine } from '../machine.ts';
import { parseNumber } from '../numbers.ts';
import { isWork, type LightUserdata, LuaTable, type Value, type Work } from '../values.ts';

const escapes: Record<string, string> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

export interface DecodeOptions {
  maxDepth: number;
  /** Hexadecimal numbers, infinities and NaN are read. */
  allowInvalidNumbers: boolean;
}

export function decodeJson(
  m: Machine,
  text: string,
  options: DecodeOptions,
  nil: LightUserdata,
): Work<Value> {
  if (text.length >= 2 && (text[0] === '\0' || text[1] === '\0')) {
    throw m.error('JSON parser does not support UTF-16 or UTF-32');
  }
  m.allocate(text.length);
  return new Decoder(m, text, options, nil).all();
}

/** Characters of a string that are read between two looks at the instructions. */
const pieceLength = 1024;

/** Instructions for an escape, and for a value beside its characters. */
const escapeUnits = 48;
const valueUnits = 48;

class Decoder {
  readonly #m: Machine;
  readonly #text: string;
  readonly #options: DecodeOptions;
  readonly #nil: LightUserdata;
  #at = 0;
  #depth = 0;
  /** Text of the current string. */
  #read = '';

  constructor(m: Machine, text: string, options: DecodeOptions, nil: LightUserdata) {
    this.#m = m;
    this.#text = text;
    this.#options = options;
    this.#nil = nil;
  }

  *all(): Work<Value> {
    const found = this.#value();
    const value = isWork(found) ? yield* found : found;
    this.#skip();
    if (this.#at < this.#text.length) this.#expected('the end');
    return value;
  }

  #skip(): void {
    for (;;) {
      const c = this.#text.charCodeAt(this.#at);
      if (c !== 32 && c !== 10 && c !== 13 && c !== 9) return;
      this.#at++;
    }
  }

  /** Name of the token found instead, in cjson's wording. */
  #expected(what: string): never {
    const rest = this.#text.slice(this.#at, this.#at + 8);
    let found = 'invalid token';
    const c = rest[0];
    if (c === undefined) found = 'T_END';
    else if (c === '{') found = 'T_OBJ_BEGIN';
    else if (c === '}') found = 'T_OBJ_END';
    else if (c === '[') found = 'T_ARR_BEGIN';
    else if (c === ']') found = 'T_ARR_END';
    else if (c === ',') found = 'T_COMMA';
    else if (c === ':') found = 'T_COLON';
    else if (c === '"') found = 'T_STRING';
    else if (/[-\d]/.test(c)) found = 'T_NUMBER';
    else if (/^(?:true|false)/.test(rest)) found = 'T_BOOLEAN';
    else if (rest.startsWith('null')) found = 'T_NULL';
    throw this.#m.error(`Expected ${what} but found ${found} at character ${this.#at + 1}`);
  }

  /** The next value, or the work to read it. */
  #value(): Value {
    this.#skip();
    const text = this.#text;
    const c = text.charCodeAt(this.#at);
    this.#m.charge(valueUnits);
    if (c === 34) return this.#string();
    if (c === 123) return this.#object();
    if (c === 91) return this.#array();
    if (text.startsWith('true', this.#at)) return this.#word(4, true);
    if (text.startsWith('false', this.#at)) return this.#word(5, false);
    if (text.startsWith('null', this.#at)) return this.#word(4, this.#nil);
    const number = this.#number();
    if (number === undefined) this.#expected('value');
    return number;
  }

  #word<T>(length: number, value: T): T {
    this.#at += length;
    return value;
  }

  #number(): number | undefined {
    const allowed = this.#options.allowInvalidNumbers
      ? /[-+]?(?:0[xX][\da-fA-F]+|inf(?:inity)?|nan|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)/iy
      : /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
    allowed.lastIndex = this.#at;
    const match = allowed.exec(this.#text);
    if (match === null) return undefined;
    this.#at += match[0].length;
    return parseNumber(match[0]);
  }

  #enter(): void {
    if (++this.#depth > this.#options.maxDepth) {
      throw this.#m.error(`Found too many nested data structures (${this.#depth})`);
    }
  }

  *#object(): Work<Value> {
    this.#enter();
    const table = new LuaTable();
    this.#at++;
    this.#skip();
    if (this.#text[this.#at] === '}') this.#at++;
    else {
      for (;;) {
        this.#skip();
        if (this.#text[this.#at] !== '"') this.#expected('object key string');
        const name = this.#string();
        const key = isWork(name) ? yield* name : name;
        this.#skip();
        if (this.#text[this.#at] !== ':') this.#expected('colon');
        this.#at++;
        const found = this.#value();
        const value = isWork(found) ? yield* found : found;
        if (table.set(key, value)) this.#m.grew();
        if (this.#m.n < 0) yield* this.#m.pause();
        this.#skip();
        const c = this.#text[this.#at];
        if (c !== ',' && c !== '}') this.#expected('comma or object end');
        this.#at++;
        if (c === '}') break;
      }
    }
    this.#depth--;
    return table;
  }

  *#array(): Work<Value> {
    this.#enter();
    const list: Value[] = [];
    this.#at++;
    this.#skip();
    if (this.#text[this.#at] === ']') this.#at++;
    else {
      for (;;) {
        const found = this.#value();
        list.push(isWork(found) ? yield* found : found);
        this.#m.grew();
        if (this.#m.n < 0) yield* this.#m.pause();
        this.#skip();
        const c = this.#text[this.#at];
        if (c !== ',' && c !== ']') this.#expected('comma or array end');
        this.#at++;
        if (c === ']') break;
      }
    }
    this.#depth--;
    return new LuaTable(list);
  }

  #string(): string | Work<string> {
    this.#read = '';
    this.#at++;
    return this.#readString() ?? this.#longString();
  }

  *#longString(): Work<string> {
    for (;;) {
      const text = this.#readString();
      if (text !== undefined) return text;
      if (this.#m.n < 0) yield* this.#m.pause();
    }
  }

  /** Reads a piece of the string under way; all of it once its end is found. */
  #readString(): string | undefined {
    const text = this.#text;
    let from = this.#at;
    const end = from + pieceLength;
    for (; this.#at < end; ) {
      const c = text.charCodeAt(this.#at);
      if (c === 34) {
        const value = this.#read + text.slice(from, this.#at);
        this.#at++;
        this.#m.charge(this.#at - end + pieceLength);
        return value;
      }
      if (!(c >= 32)) {
        throw this.#m.error(`Expected value but found invalid token at character ${this.#at + 1}`);
      }
      if (c !== 92) {
        this.#at++;
        continue;
      }
      this.#read += text.slice(from, this.#at) + this.#escape();
      from = this.#at;
    }
    this.#read += text.slice(from, this.#at);
    this.#m.charge(pieceLength);
    return undefined;
  }

  #escape(): string {
    const text = this.#text;
    this.#m.charge(escapeUnits);
    const letter = text[this.#at + 1] ?? '';
    if (letter !== 'u') {
      if (!Object.hasOwn(escapes, letter)) this.#invalid('invalid escape code');
      this.#at += 2;
      return escapes[letter]!;
    }
    const first = this.#unit(this.#at);
    this.#at += 6;
    if (first < 0xd800 || first > 0xdfff) return utf8(first);
    const second = text.startsWith('\\u', this.#at) ? this.#unit(this.#at) : 0;
    if (first > 0xdbff || second < 0xdc00 || second > 0xdfff) {
      this.#invalid('invalid unicode escape code');
    }
    this.#at += 6;
    return utf8(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
  }

  #unit(at: number): number {
    const digits = this.#text.slice(at + 2, at + 6);
    if (!/^[\da-fA-F]{4}$/.test(digits)) this.#invalid('invalid unicode escape code');
    return Number.parseInt(digits, 16);
  }

  #invalid(what: string): never {
    throw this.#m.error(`Expected value but found ${what} at character ${this.#at + 1}`);
  }
}

/** A code point as the bytes of its UTF-8. */
function utf8(code: number): string {
  if (code < 0x80) return String.fromCharCode(code);
  if (code < 0x800) return String.fromCharCode(0xc0 | (code >> 6), 0x80 | (code & 63));
  if (code < 0x10000) {
    return String.fromCharCode(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }
  return String.fromCharCode(
    0xf0 | (code >> 18),
    0x80 | ((code >> 12) & 63),
    0x80 | ((code >> 6) & 63),
    0x80 | (code & 63),
  );
}
