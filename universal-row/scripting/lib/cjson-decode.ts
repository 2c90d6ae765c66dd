// cjson.decode: JSON text, as bytes, to Lua values.

import type { Machine } from '../machine.ts';
import { parseNumber } from '../numbers.ts';
import { type LightUserdata, LuaTable, type Value } from '../values.ts';

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
): Value {
  if (text.length >= 2 && (text[0] === '\0' || text[1] === '\0')) {
    throw m.error('JSON parser does not support UTF-16 or UTF-32');
  }
  m.allocate(text.length);
  m.charge(text.length >>> 2);
  return new Decoder(m, text, options, nil).all();
}

class Decoder {
  readonly #m: Machine;
  readonly #text: string;
  readonly #options: DecodeOptions;
  readonly #nil: LightUserdata;
  #at = 0;
  #depth = 0;

  constructor(m: Machine, text: string, options: DecodeOptions, nil: LightUserdata) {
    this.#m = m;
    this.#text = text;
    this.#options = options;
    this.#nil = nil;
  }

  all(): Value {
    const value = this.#value();
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

  /** What is found in place of something, in cjson's words. */
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

  #value(): Value {
    this.#skip();
    const text = this.#text;
    const c = text.charCodeAt(this.#at);
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

  #object(): LuaTable {
    this.#enter();
    const table = new LuaTable();
    this.#at++;
    this.#skip();
    if (this.#text[this.#at] === '}') this.#at++;
    else {
      for (;;) {
        this.#skip();
        if (this.#text[this.#at] !== '"') this.#expected('object key string');
        const key = this.#string();
        this.#skip();
        if (this.#text[this.#at] !== ':') this.#expected('colon');
        this.#at++;
        if (table.set(key, this.#value())) this.#m.grew();
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

  #array(): LuaTable {
    this.#enter();
    const list: Value[] = [];
    this.#at++;
    this.#skip();
    if (this.#text[this.#at] === ']') this.#at++;
    else {
      for (;;) {
        list.push(this.#value());
        this.#m.grew();
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

  #string(): string {
    const text = this.#text;
    let value = '';
    let from = ++this.#at;
    for (;;) {
      const c = text.charCodeAt(this.#at);
      if (c === 34) break;
      if (!(c >= 32)) {
        throw this.#m.error(`Expected value but found invalid token at character ${this.#at + 1}`);
      }
      if (c !== 92) {
        this.#at++;
        continue;
      }
      value += text.slice(from, this.#at) + this.#escape();
      from = this.#at;
    }
    value += text.slice(from, this.#at);
    this.#at++;
    return value;
  }

  #escape(): string {
    const text = this.#text;
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
