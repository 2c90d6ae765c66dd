// Where data is moved to: a server that speaks the Redis protocol. Values go in by RESTORE, and those that are too
// large for one command by commands of their type.

import { setTimeout as sleep } from 'node:timers/promises';
import { emptyBytes } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import { Crc64 } from '../../universal-row/transforms/redis/rdb/crc64.ts';
import { formatDouble } from '../../universal-row/transforms/redis/support/format-double.ts';
import { ValueReader } from '../../universal-row/transforms/redis/rdb/value-reader.ts';
import { printable } from '../output/values.ts';
import type { DatabaseMap } from './database-map.ts';
import type { RdbValue } from './rdb-reader.ts';
import { type Endpoint, RedisError, type Reply, RespLink, type Word } from './resp-link.ts';

/** Payloads up to here go in one command where the server takes them. */
const largePayload = 4 * 1024 * 1024;
const batchBytes = 256 * 1024;
const batchWords = 1000;
const shownFailures = 20;
const fenceMs = 50;
const settleMs = 250;
const fenceTries = 100;
/** The RDB version that says that all types written so far are in it. */
const olderVersion = 10;
const newerVersion = 12;
const firstNewerType = 20;

export interface Tally {
  keys: number;
  expired: number;
  functions: number;
  /** Not asked for, by the map of databases. */
  unmapped: number;
  /** Values of modules. */
  modules: number;
}

export class Target {
  readonly link: RespLink;
  readonly databases: DatabaseMap;
  readonly tally: Tally = { keys: 0, expired: 0, functions: 0, unmapped: 0, modules: 0 };
  /** Errors from the server, up to a limit. */
  readonly failures: string[] = [];
  failed = 0;
  #db = -1;
  #bulkLimit = largePayload;

  private constructor(link: RespLink, databases: DatabaseMap) {
    this.link = link;
    this.databases = databases;
  }

  static async open(endpoint: Endpoint, databases: DatabaseMap): Promise<Target> {
    const target = new Target(await RespLink.open(endpoint), databases);
    const limit = await target.link.ask(['CONFIG', 'GET', 'proto-max-bulk-len']);
    if (Array.isArray(limit) && limit.length === 2) target.#bulkLimit = Number(String(limit[1]));
    return target;
  }

  /**
   * Sets this connection's name, and waits until no other has it: commands of a killed import are
   * then done, or never will be.
   */
  async fence(name: string): Promise<void> {
    for (let tries = 0; ; tries++) {
      const clients = String(await this.link.call('CLIENT', 'LIST')).split('\n');
      const others = clients.filter((line) => line.split(' ').includes(`name=${name}`));
      if (others.length === 0) {
        // Work in progress may end after the connection was closed.
        if (tries > 0) await sleep(settleMs);
        break;
      }
      if (tries === fenceTries) {
        // The machine of the other import may have failed without closing the connection.
        for (const line of others) {
          await this.link.ask(['CLIENT', 'KILL', 'ID', /\bid=(\d+)/.exec(line)![1]!]);
        }
      }
      await sleep(fenceMs);
    }
    await this.link.call('CLIENT', 'SETNAME', name);
  }

  /** Selects a database of the target. */
  async select(db: number): Promise<void> {
    if (this.#db === db) return;
    await this.link.call('SELECT', String(db));
    this.#db = db;
  }

  /** Commands that are sent on the link select databases of their own. */
  forgetDatabase(): void {
    this.#db = -1;
  }

  /** Whether none of the databases that are written to has a key. */
  async isEmpty(): Promise<boolean> {
    const keyspace = String(await this.link.call('INFO', 'keyspace'));
    for (const [, db] of keyspace.matchAll(/^db(\d+):keys=[1-9]/gm)) {
      if (this.databases.isTarget(Number(db))) return false;
    }
    return true;
  }

  /** Sends a command, and records an error reply with `what` as its subject. */
  #send(words: readonly Word[], what: () => string, onDone?: () => void): void {
    this.link.send(words, (reply) => {
      if (reply instanceof RedisError) this.fail(what(), reply);
      else onDone?.();
    });
  }

  fail(what: string, error: Error): void {
    this.failed++;
    if (this.failures.length < shownFailures) {
      this.failures.push(`${printable(what)}: ${printable(error.message)}`);
    }
  }

  /** Stores the value under the key, replacing any existing one. */
  async put(item: RdbValue): Promise<void> {
    const db = this.databases.of(item.db);
    if (db === undefined) {
      this.tally.unmapped++;
      return;
    }
    if (item.expireAt !== 0 && item.expireAt <= Date.now()) {
      this.tally.expired++;
      return;
    }
    if (db !== this.#db) {
      await this.link.drained();
      await this.select(db);
    }
    if (item.value.length < largePayload) this.#restore(item, payloadOf(item));
    else await this.#putLarge(item);
    await this.link.room();
  }

  /** Like `put`, for a payload of DUMP. */
  async putDumped(db: number, key: Buffer, payload: Buffer, expireAt: number): Promise<void> {
    const value = payload.subarray(1, -10);
    const item: RdbValue = { kind: 'value', db, key, type: payload[0]!, value, expireAt };
    if (payload.length < largePayload) this.#restore(item, payload);
    else await this.#putLarge(item);
    await this.link.room();
  }

  #restore(item: RdbValue, payload: Buffer): void {
    const time = String(item.expireAt);
    const key = Buffer.from(item.key);
    this.#send(
      ['RESTORE', key, time, payload, 'REPLACE', 'ABSTTL'],
      () => nameOf(item.db, key),
      () => this.tally.keys++,
    );
  }

  async #putLarge(item: RdbValue): Promise<void> {
    const typed = Buffer.concat([Buffer.of(item.type), item.value]);
    const reader = new ValueReader(typed, 0, typed.length);
    const { shape, list } = reader;
    const isWhole = shape === Shape.stream || shape === Shape.timed;
    if (isWhole || (shape === Shape.value && item.value.length + 16 < this.#bulkLimit)) {
      if (typed.length + 10 > this.#bulkLimit) {
        const text = `${typed.length} bytes in one value; the server takes ${this.#bulkLimit} (proto-max-bulk-len)`;
        this.fail(nameOf(item.db, item.key), new Error(text));
      } else this.#restore(item, payloadOf(item));
      return;
    }
    const key = Buffer.from(item.key);
    const what = (): string => nameOf(item.db, key);
    const failedBefore = this.failed;
    this.#send(['DEL', key], what);
    const batch = new Batch(shape, key);
    const flush = async (): Promise<void> => {
      for (const words of batch.commands()) {
        this.#send(words, what);
        await this.link.room();
      }
    };
    for (const _ of reader.elements()) {
      batch.take(list);
      list.clear();
      if (batch.isFull) await flush();
    }
    batch.take(list);
    await flush();
    if (item.expireAt !== 0) this.#send(['PEXPIREAT', key, String(item.expireAt)], what);
    await this.link.drained();
    if (this.failed === failedBefore) this.tally.keys++;
  }

  async loadFunction(code: Buffer): Promise<void> {
    this.#send(
      ['FUNCTION', 'LOAD', 'REPLACE', Buffer.from(code)],
      () => 'a function library',
      () => this.tally.functions++,
    );
    await this.link.room();
  }

  call(...words: Word[]): Promise<Reply> {
    return this.link.call(...words);
  }

  close(): void {
    this.link.close();
  }
}

export function nameOf(db: number, key: Buffer): string {
  return `database ${db}, key ${key.toString('utf8', 0, 200)}`;
}

function payloadOf({ type, value }: RdbValue): Buffer {
  const payload = Buffer.allocUnsafe(value.length + 11);
  payload[0] = type;
  value.copy(payload, 1);
  payload.writeUInt16LE(type >= firstNewerType ? newerVersion : olderVersion, value.length + 1);
  const crc = new Crc64();
  crc.add(payload, 0, value.length + 3);
  crc.write(payload, value.length + 3);
  return payload;
}

/** Elements of a value, as arguments of the command that adds them. */
class Batch {
  readonly #shape: Shape;
  readonly #key: Buffer;
  #words: Buffer[] = [];
  #bytes = 0;

  constructor(shape: Shape, key: Buffer) {
    this.#shape = shape;
    this.#key = key;
  }

  get isFull(): boolean {
    return this.#bytes >= batchBytes || this.#words.length >= batchWords;
  }

  take(list: ValueReader['list']): void {
    for (let i = 0; i < list.count; i++) {
      const word = Buffer.from(list.buf.subarray(list.start(i), list.start(i) + list.length(i)));
      if (this.#shape === Shape.ranked) this.#words.push(Buffer.from(formatDouble(list.score(i))));
      this.#words.push(word);
      this.#bytes += word.length;
    }
  }

  *commands(): Generator<Word[]> {
    const words = this.#words;
    this.#words = [];
    this.#bytes = 0;
    if (this.#shape === Shape.value) {
      const whole = words[0] ?? emptyBytes;
      for (let at = 0; at < whole.length; at += largePayload) {
        yield ['APPEND', this.#key, whole.subarray(at, at + largePayload)];
      }
      return;
    }
    const names: Partial<Record<Shape, string>> = {
      [Shape.array]: 'RPUSH',
      [Shape.set]: 'SADD',
      [Shape.ranked]: 'ZADD',
      [Shape.map]: 'HSET',
    };
    if (words.length > 0) yield [names[this.#shape]!, this.#key, ...words];
  }
}
