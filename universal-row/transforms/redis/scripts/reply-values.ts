// A command's reply to a script as Lua values: the conversions of redis-server.

import { CommandError } from '../../../errors.ts';
import type { Reply } from '../../../reply.ts';
import { LuaTable, type Value } from '../../../scripting/values.ts';
import { formatDouble } from '../support/format-double.ts';

/** A command's reply to a script. */
export interface CallResult {
  readonly value: Value;
  /** A status line, in place of a value. */
  readonly status: string | undefined;
  /** An error, in place of a value. */
  readonly failure: string | undefined;
}

type Kind = 'array' | 'map' | 'set';

class Header {
  readonly kind: Kind;
  readonly count: number;

  constructor(kind: Kind, count: number) {
    this.kind = kind;
    this.count = count;
  }
}

class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

class Failure {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const okStatus = new Status('OK');

/** A nil within an aggregate of RESP3; in RESP2 it is false. */
const missing = Symbol('nil');

export function tableOf(key: string, value: Value): LuaTable {
  const table = new LuaTable();
  table.set(key, value);
  return table;
}

export class ReplyValues implements Reply {
  /** 3 after redis.setresp(3). */
  version = 2;
  readonly #items: unknown[] = [];
  /** Items in use: most answers are one item, and to set the length of an array to 0 is slow. */
  #count = 0;
  #at = 0;

  /** Forgets all. */
  reset(): void {
    if (this.#count > 1) this.#items.length = 0;
    this.#count = 0;
  }

  #push(item: unknown): void {
    this.#items[this.#count++] = item;
  }

  /** The answer, which is forgotten. None at all, as of a command that would block, is nil. */
  result(): CallResult {
    const only = this.#items[0];
    const isOnly = this.#count === 1;
    this.#at = 0;
    let value: Value = undefined;
    let status: string | undefined;
    let failure: string | undefined;
    if (this.#count === 0) value = false;
    else if (isOnly && only instanceof Status) status = only.text;
    else if (isOnly && only instanceof Failure) failure = only.text;
    else value = this.#present();
    // The array outlives the answer, which may be long.
    if (isOnly) this.#items[0] = undefined;
    this.reset();
    return { value, status, failure };
  }

  #read(): Value {
    const item = this.#items[this.#at++];
    if (typeof item !== 'object') return item;
    if (item instanceof Status) return tableOf('ok', item.text);
    if (item instanceof Failure) return tableOf('err', item.text);
    if (!(item instanceof Header)) return item;
    const { kind, count } = item;
    if (kind === 'array' || this.version < 3) {
      const list: Value[] = [];
      const words = kind === 'map' ? count * 2 : count;
      for (let i = 0; i < words; i++) list.push(this.#present());
      return new LuaTable(list);
    }
    const inner = new LuaTable();
    for (let i = 0; i < count; i++) {
      const key = this.#present();
      const value = kind === 'map' ? this.#present() : true;
      if (key !== undefined) inner.set(key, value);
    }
    return tableOf(kind, inner);
  }

  #present(): Value {
    const value = this.#read();
    return value === missing ? undefined : value;
  }

  ok(): void {
    this.#push(okStatus);
  }

  simple(text: string): void {
    this.#push(new Status(text));
  }

  error(text: string): void {
    this.#push(new Failure(text.replace(/[\r\n]/g, ' ')));
  }

  integer(value: number): void {
    this.#push(value);
  }

  bigInteger(value: bigint): void {
    this.#push(Number(value));
  }

  bulk(b: Buffer, s: number, n: number): void {
    this.#push(b.toString('latin1', s, s + n));
  }

  bulkHead(): void {
    this.#push('');
  }

  bulkPart(b: Buffer, s: number, n: number): void {
    this.#items[this.#count - 1] += b.toString('latin1', s, s + n);
  }

  bulkTail(): void {
    // The string is whole.
  }

  text(value: string): void {
    this.#push(bytesOf(value));
  }

  verbatim(value: string): void {
    if (this.version < 3) {
      this.text(value);
      return;
    }
    const inner = tableOf('format', 'txt');
    inner.set('string', bytesOf(value));
    this.#push(tableOf('verbatim_string', inner));
  }

  nil(): void {
    this.#push(this.version < 3 ? false : missing);
  }

  nilArray(): void {
    this.nil();
  }

  double(value: number): void {
    this.#push(this.version < 3 ? formatDouble(value) : tableOf('double', value));
  }

  boolean(value: boolean): void {
    this.#push(this.version < 3 ? (value ? 1 : 0) : value);
  }

  array(count: number): void {
    this.#push(new Header('array', count));
  }

  map(pairs: number): void {
    this.#push(new Header('map', pairs));
  }

  set(count: number): void {
    this.#push(new Header('set', count));
  }

  open(): number {
    return this.#count;
  }

  close(mark: number, kind: Kind, count: number): void {
    this.#items.splice(mark, 0, new Header(kind, count));
    this.#count++;
  }

  mark(): number {
    return this.#count;
  }

  rollback(mark: number): void {
    this.#items.length = mark;
    this.#count = mark;
  }

  fork(): Reply {
    throw new CommandError('ERR an answer within a script cannot be put aside');
  }
}

/** A text as the bytes of its UTF-8, one character for each. */
export function bytesOf(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return /^[\0-\x7f]*$/.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}
