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
  #at = 0;

  /** Forgets all. */
  reset(): void {
    this.#items.length = 0;
  }

  /** The answer, which is forgotten. None at all, as of a command that would block, is nil. */
  result(): CallResult {
    const items = this.#items;
    const only = items[0];
    const isOnly = items.length === 1;
    this.#at = 0;
    let value: Value = undefined;
    let status: string | undefined;
    let failure: string | undefined;
    if (items.length === 0) value = false;
    else if (isOnly && only instanceof Status) status = only.text;
    else if (isOnly && only instanceof Failure) failure = only.text;
    else value = this.#present();
    items.length = 0;
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
    this.#items.push(okStatus);
  }

  simple(text: string): void {
    this.#items.push(new Status(text));
  }

  error(text: string): void {
    this.#items.push(new Failure(text.replace(/[\r\n]/g, ' ')));
  }

  integer(value: number): void {
    this.#items.push(value);
  }

  bigInteger(value: bigint): void {
    this.#items.push(Number(value));
  }

  bulk(b: Buffer, s: number, n: number): void {
    this.#items.push(b.toString('latin1', s, s + n));
  }

  text(value: string): void {
    this.#items.push(bytesOf(value));
  }

  verbatim(value: string): void {
    if (this.version < 3) {
      this.text(value);
      return;
    }
    const inner = tableOf('format', 'txt');
    inner.set('string', bytesOf(value));
    this.#items.push(tableOf('verbatim_string', inner));
  }

  nil(): void {
    this.#items.push(this.version < 3 ? false : missing);
  }

  nilArray(): void {
    this.nil();
  }

  double(value: number): void {
    this.#items.push(this.version < 3 ? formatDouble(value) : tableOf('double', value));
  }

  boolean(value: boolean): void {
    this.#items.push(this.version < 3 ? (value ? 1 : 0) : value);
  }

  array(count: number): void {
    this.#items.push(new Header('array', count));
  }

  map(pairs: number): void {
    this.#items.push(new Header('map', pairs));
  }

  set(count: number): void {
    this.#items.push(new Header('set', count));
  }

  open(): number {
    return this.#items.length;
  }

  close(mark: number, kind: Kind, count: number): void {
    this.#items.splice(mark, 0, new Header(kind, count));
  }

  mark(): number {
    return this.#items.length;
  }

  rollback(mark: number): void {
    this.#items.length = mark;
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
