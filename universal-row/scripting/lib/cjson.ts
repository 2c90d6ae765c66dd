// cjson: JSON of Lua values.

import type { Machine } from '../machine.ts';
import { formatG } from '../numbers.ts';
import { LightUserdata, LuaTable, typeName, type Value } from '../values.ts';
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

function quoted(text: string): string {
  // oxlint-disable-next-line no-control-regex
  const escaped = text.replace(/["\\/\0-\x1f\x7f]/g, (c) =>
    Object.hasOwn(special, c) ? special[c]! : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `"${escaped}"`;
}

class Encoder {
  readonly #m: Machine;
  readonly #options: EncodeOptions;
  #bytes = 0;
  readonly #parts: string[] = [];

  constructor(m: Machine, options: EncodeOptions) {
    this.#m = m;
    this.#options = options;
  }

  text(value: Value): string {
    this.#value(value, 0);
    return this.#m.made(this.#parts.join(''));
  }

  #put(part: string): void {
    this.#bytes += part.length;
    this.#parts.push(part);
    this.#m.charge(1 + (part.length >>> 3));
    if (this.#bytes > this.#m.limits.stringBytes) throw this.#m.error('not enough memory');
  }

  #fail(value: Value, why: string): never {
    throw this.#m.error(`Cannot serialise ${typeName(value)}: ${why}`);
  }

  #value(value: Value, depth: number): void {
    switch (typeof value) {
      case 'string':
        this.#put(quoted(value));
        return;
      case 'number':
        this.#put(this.#number(value));
        return;
      case 'boolean':
        this.#put(String(value));
        return;
      case 'undefined':
        this.#put('null');
        return;
      default:
        if (value === nil) this.#put('null');
        else if (value instanceof LuaTable) this.#table(value, depth + 1);
        else this.#fail(value, 'type not supported');
    }
  }

  #number(value: number): string {
    if (Number.isFinite(value)) return formatG(value, this.#options.precision);
    if (this.#options.invalidNumbers === 'null') return 'null';
    if (this.#options.invalidNumbers === 'no') this.#fail(value, 'must not be NaN or Inf');
    return formatG(value, 14);
  }

  #table(table: LuaTable, depth: number): void {
    if (depth > this.#options.maxDepth) {
      throw this.#m.error(`Cannot serialise, excessive nesting (${depth})`);
    }
    const most = this.#listLength(table);
    if (most > 0) {
      this.#put('[');
      for (let i = 1; i <= most; i++) {
        if (i > 1) this.#put(',');
        this.#value(table.get(i), depth);
      }
      this.#put(']');
    } else this.#object(table, depth);
  }

  /** The greatest index of a list; 0 or less for what is an object. */
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

  #object(table: LuaTable, depth: number): void {
    let isFirst = true;
    const field = (key: Value, value: Value): void => {
      if (!isFirst) this.#put(',');
      isFirst = false;
      if (typeof key === 'number') this.#put(`"${this.#number(key)}":`);
      else if (typeof key === 'string') this.#put(`${quoted(key)}:`);
      else this.#fail(key, 'table key must be a number or string');
      this.#value(value, depth);
    };
    this.#put('{');
    for (let at = table.seek(0); at >= 0; at = table.seek(at + 1)) field(at + 1, table.list[at]);
    for (let at = table.seekRest(0); at >= 0; at = table.seekRest(at + 1)) {
      field(table.restKey(at), table.restValue(at));
    }
    this.#put('}');
  }
}

export interface CjsonLibrary {
  readonly functions: Record<string, Value>;
  /** Before a script begins: what another one has set is forgotten. */
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
    encode: (...args: Value[]) => {
      if (args.length !== 1) throw m.argument(1, 'encode', 'expected 1 argument');
      return new Encoder(m, encoding).text(args[0]);
    },
    decode: (...args: Value[]) => {
      if (args.length !== 1) throw m.argument(1, 'decode', 'expected 1 argument');
      return decodeJson(m, checkString(m, args[0], 1, 'decode'), decoding, nil);
    },
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
