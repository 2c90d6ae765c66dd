// cjson: JSON of Lua values.

import type { Machine } from '../machine.ts';
import { formatG } from '../numbers.ts';
import { LightUserdata, LuaTable, typeName, type Value, type Work } from '../values.ts';
import { decodeJson, type DecodeOptions } from './cjson-decode.ts';
import { checkInteger, checkString } from './checks.ts';

interface EncodeOptions {
  /** Sparse lists become objects. */
  convertsSparse: boolean;
  /** A list is sparse when its greatest index is beyond `sparseSafe` and beyond `sparseRatio` for each element. */
  sparseRatio: number;
  sparseSafe: number;
  maxDepth: number;
  /** Infinities and NaN are written, as such or as null. */
  invalidNumbers: 'no' | 'yes' | 'null';
  precision: number;
}

const encodeDefaults: EncodeOptions = {
  convertsSparse: false,
  sparseRatio: 2,
  sparseSafe: 10,
  maxDepth: 1000,
  invalidNumbers: 'no',
  precision: 14,
};
const decodeDefaults: DecodeOptions = { maxDepth: 1000, allowInvalidNumbers: true };

/** cjson.null, the same everywhere. */
const nil = new LightUserdata('null');

const special: Record<string, string> = {
  '"': '\\"',
  '\\': '\\\\',
  '/': '\\/',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\f': '\\f',
  '\r': '\\r',
  '\x7f': '\\u007f',
};

function escaped(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/["\\/\0-\x1f\x7f]/g, (c) =>
    Object.hasOwn(special, c) ? special[c]! : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Strings beyond this are escaped in pieces. */
const pieceBytes = 8 * 1024;
/** Instructions for each byte that escapes add, and for a number. */
const escapeUnits = 16;
const numberUnits = 64;
/** Parts of the text that are put together now and then. */
const keptParts = 1024;

class Encoder {
  readonly #m: Machine;
  readonly #options: EncodeOptions;
  #bytes = 0;
  #text = '';
  #parts: string[] = [];

  constructor(m: Machine, options: EncodeOptions) {
    this.#m = m;
    this.#options = options;
  }

  *text(value: Value): Work<string> {
    const work = this.#value(value, 0);
    if (work !== undefined) yield* work;
    this.#join();
    return this.#m.made(this.#text);
  }

  #join(): void {
    this.#text += this.#parts.join('');
    this.#parts = [];
  }

  #put(part: string): void {
    this.#bytes += part.length;
    this.#parts.push(part);
    if (this.#parts.length >= keptParts) this.#join();
    this.#m.charge(2 + (part.length >>> 1));
    if (this.#bytes > this.#m.limits.stringBytes) throw this.#m.error('not enough memory');
  }

  /** Remaining work for a long string; undefined when it is done. */
  #string(text: string): Work<void> | undefined {
    if (text.length > pieceBytes) return this.#longString(text);
    this.#put(`"${this.#escaped(text)}"`);
    return undefined;
  }

  #escaped(text: string): string {
    const shown = escaped(text);
    this.#m.charge((shown.length - text.length) * escapeUnits);
    return shown;
  }

  *#longString(text: string): Work<void> {
    this.#put('"');
    for (let at = 0; at < text.length; at += pieceBytes) {
      this.#put(this.#escaped(text.slice(at, at + pieceBytes)));
      if (this.#m.n < 0) yield* this.#m.pause();
    }
    this.#put('"');
  }

  #fail(value: Value, why: string): never {
    throw this.#m.error(`Cannot serialise ${typeName(value)}: ${why}`);
  }

  /** Remaining work for a table or a long string; undefined when it is done. */
  #value(value: Value, depth: number): Work<void> | undefined {
    if (typeof value === 'string') return this.#string(value);
    if (value instanceof LuaTable) return this.#table(value, depth + 1);
    if (typeof value === 'number') this.#put(this.#number(value));
    else if (typeof value === 'boolean') this.#put(String(value));
    else if (value === undefined || value === nil) this.#put('null');
    else this.#fail(value, 'type not supported');
    return undefined;
  }

  #number(value: number): string {
    this.#m.charge(numberUnits);
    if (Number.isFinite(value)) return formatG(value, this.#options.precision);
    if (this.#options.invalidNumbers === 'null') return 'null';
    if (this.#options.invalidNumbers === 'no') this.#fail(value, 'must not be NaN or Inf');
    return formatG(value, 14);
  }

  *#table(table: LuaTable, depth: number): Work<void> {
    if (depth > this.#options.maxDepth) {
      throw this.#m.error(`Cannot serialise, excessive nesting (${depth})`);
    }
    const most = this.#listLength(table);
    this.#m.charge(numberUnits + (Math.max(most, 0) >>> 3));
    if (most > 0) {
      this.#put('[');
      for (let i = 1; i <= most; i++) {
        if (i > 1) this.#put(',');
        const work = this.#value(table.get(i), depth);
        if (work !== undefined) yield* work;
        if (this.#m.n < 0) yield* this.#m.pause();
      }
      this.#put(']');
    } else yield* this.#object(table, depth);
  }

  /** Greatest index of a list; 0 or less for an object. */
  #listLength(table: LuaTable): number {
    let most = 0;
    let items = 0;
    for (let at = table.seek(0); at >= 0; at = table.seek(at + 1)) {
      items++;
      most = at + 1;
    }
    for (let at = table.seekRest(0); at >= 0; at = table.seekRest(at + 1)) {
      const key = table.restKey(at);
      if (typeof key !== 'number' || key < 1 || !Number.isInteger(key)) return -1;
      items++;
      if (key > most) most = key;
    }
    const { sparseRatio, sparseSafe, convertsSparse } = this.#options;
    if (sparseRatio > 0 && most > items * sparseRatio && most > sparseSafe) {
      if (!convertsSparse) this.#fail(table, 'excessively sparse array');
      return -1;
    }
    return most;
  }

  *#object(table: LuaTable, depth: number): Work<void> {
    this.#put('{');
    let isFirst = true;
    for (let at = table.seek(0); at >= 0; at = table.seek(at + 1)) {
      yield* this.#field(isFirst, at + 1, table.list[at], depth);
      isFirst = false;
    }
    for (let at = table.seekRest(0); at >= 0; at = table.seekRest(at + 1)) {
      yield* this.#field(isFirst, table.restKey(at), table.restValue(at), depth);
      isFirst = false;
    }
    this.#put('}');
  }

  *#field(isFirst: boolean, key: Value, value: Value, depth: number): Work<void> {
    if (!isFirst) this.#put(',');
    if (typeof key === 'number') this.#put(`"${this.#number(key)}"`);
    else if (typeof key === 'string') {
      const work = this.#string(key);
      if (work !== undefined) yield* work;
    } else this.#fail(key, 'table key must be a number or string');
    this.#put(':');
    const work = this.#value(value, depth);
    if (work !== undefined) yield* work;
    if (this.#m.n < 0) yield* this.#m.pause();
  }
}

interface CjsonLibrary {
  readonly functions: Record<string, Value>;
  /** Resets settings of an earlier script before a script begins. */
  readonly reset: () => void;
}

export function cjsonLibrary(m: Machine): CjsonLibrary {
  let encoding = { ...encodeDefaults };
  let decoding = { ...decodeDefaults };
  let isChanged = false;
  const whole = (value: Value, name: string, least: number, most: number, old: number): number => {
    if (value === undefined) return old;
    isChanged = true;
    const number = checkInteger(m, value, 1, name);
    if (number < least || number > most) {
      throw m.argument(1, name, `expected integer between ${least} and ${most}`);
    }
    return number;
  };
  const flag = (value: Value, old: boolean): boolean => {
    if (value === undefined) return old;
    isChanged = true;
    return value === true;
  };
  const functions: Record<string, Value> = {
    encode: m.stepping((...args) => {
      if (args.length !== 1) throw m.argument(1, 'encode', 'expected 1 argument');
      return new Encoder(m, encoding).text(args[0]);
    }),
    decode: m.stepping((...args) => {
      if (args.length !== 1) throw m.argument(1, 'decode', 'expected 1 argument');
      return decodeJson(m, checkString(m, args[0], 1, 'decode'), decoding, nil);
    }),
    encode_sparse_array: (convert: Value, ratio: Value, safe: Value) => {
      encoding.convertsSparse = flag(convert, encoding.convertsSparse);
      encoding.sparseRatio = whole(
        ratio,
        'encode_sparse_array',
        0,
        2 ** 31 - 1,
        encoding.sparseRatio,
      );
      encoding.sparseSafe = whole(safe, 'encode_sparse_array', 0, 2 ** 31 - 1, encoding.sparseSafe);
      return [encoding.convertsSparse, encoding.sparseRatio, encoding.sparseSafe];
    },
    encode_max_depth: (depth: Value) =>
      (encoding.maxDepth = whole(depth, 'encode_max_depth', 1, 1000, encoding.maxDepth)),
    decode_max_depth: (depth: Value) =>
      (decoding.maxDepth = whole(depth, 'decode_max_depth', 1, 1000, decoding.maxDepth)),
    encode_number_precision: (digits: Value) =>
      (encoding.precision = whole(digits, 'encode_number_precision', 1, 14, encoding.precision)),
    encode_keep_buffer: (keep: Value) => keep !== false,
    encode_invalid_numbers: (setting: Value) => {
      isChanged = true;
      if (setting === 'null') encoding.invalidNumbers = 'null';
      else if (setting !== undefined) encoding.invalidNumbers = setting === true ? 'yes' : 'no';
      return encoding.invalidNumbers === 'null' ? 'null' : encoding.invalidNumbers === 'yes';
    },
    decode_invalid_numbers: (setting: Value) => {
      decoding.allowInvalidNumbers = flag(setting, decoding.allowInvalidNumbers);
      return decoding.allowInvalidNumbers;
    },
    null: nil,
    _NAME: 'cjson',
    _VERSION: '2.1.0',
  };
  return {
    functions,
    reset: () => {
      if (!isChanged) return;
      isChanged = false;
      encoding = { ...encodeDefaults };
      decoding = { ...decodeDefaults };
    },
  };
}
