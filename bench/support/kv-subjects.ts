// Subjects of the kv bench: our engine through its contract, and `classic-level` with one awaited
// call an operation. Both are given the same LevelDB settings, and the same total memory for
// caches.

import { ClassicLevel } from 'classic-level';
import type { Engine } from '../../engines/engine.ts';
import { KvEngine } from '../../engines/kv/kv-engine.ts';
import { Slice } from '../../universal-row/bytes.ts';
import { ReadFault } from '../../universal-row/errors.ts';

const mebibyte = 1024 * 1024;
export const rowCacheBytes = 64 * mebibyte;
export const blockCacheBytes = 32 * mebibyte;
export const writeBufferBytes = 32 * mebibyte;
export const maxFileBytes = 8 * mebibyte;
export const blockBytes = 4096;
export const keyBytes = 16;

export interface KvSubject {
  /** Puts a value under each key; done when LevelDB has all of them. */
  fill(keys: Uint32Array, values: Values): Promise<void>;
  /** Gets each key. Throws when one is missing or its value is not the one put. */
  read(keys: Uint32Array, values: Values): Promise<void>;
  close(): Promise<void>;
}

/** Values of one length: windows of random bytes, a different one for each of many keys. */
export class Values {
  readonly bytes: Buffer;
  readonly length: number;

  constructor(length: number, random: () => number) {
    this.length = length;
    this.bytes = Buffer.from(Uint8Array.from({ length: mebibyte + length }, () => random() * 256));
  }

  startOf(key: number): number {
    return (Math.imul(key, 0x9e3779b1) >>> 0) % mebibyte;
  }

  check(key: number, b: Buffer, s: number, n: number): void {
    const start = this.startOf(key);
    const last = this.length - 1;
    if (
      n !== this.length ||
      b[s] !== this.bytes[start] ||
      b[s + last] !== this.bytes[start + last]
    ) {
      throw new Error(`the value of key ${key} is not what was put`);
    }
  }
}

/** The key as 16 decimal digits, which sort as their numbers do. */
function writeKey(to: Buffer, key: number): void {
  let rest = key;
  for (let i = keyBytes - 1; i >= 0; i--) {
    to[i] = 48 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}

// ---- ours

export class EngineSubject implements KvSubject {
  readonly #engine: KvEngine;
  readonly #tick: number;
  readonly #key = Buffer.alloc(keyBytes);
  readonly #slice = new Slice();

  /** `tick` operations are done in each tick of the event loop, as if so many clients had sent one. */
  static async open(directory: string, ordered: boolean, tick: number): Promise<EngineSubject> {
    const engine = new KvEngine({
      directory,
      cacheBytes: rowCacheBytes,
      isOrdered: () => ordered,
      level: { blockCacheBytes, writeBufferBytes, maxFileBytes, blockBytes, compression: false },
    });
    await engine.open();
    return new EngineSubject(engine, tick);
  }

  private constructor(engine: KvEngine, tick: number) {
    this.#engine = engine;
    this.#tick = tick;
  }

  async fill(keys: Uint32Array, values: Values): Promise<void> {
    const engine = this.#engine;
    await this.#inTicks(keys, (key) => this.#put(engine, key, values));
    await engine.store.queue.settled();
  }

  #put(engine: Engine, key: number, values: Values): void {
    writeKey(this.#key, key);
    const start = values.startOf(key);
    engine.table(0).putValue(this.#key, 0, keyBytes, values.bytes, start, values.length, 0);
    engine.commit(engine.appliedIndex + 1);
  }

  async read(keys: Uint32Array, values: Values): Promise<void> {
    const table = this.#engine.table(0);
    const slice = this.#slice;
    await this.#inTicks(keys, (key) => {
      writeKey(this.#key, key);
      const row = table.find(this.#key, 0, keyBytes);
      if (row === 0) throw new Error(`there is no key ${key}`);
      table.value(row, slice);
      values.check(key, slice.b, slice.s, slice.n);
    });
  }

  /** Runs `operation` for all keys, again after the load where it faulted, as a pod does. */
  async #inTicks(keys: Uint32Array, operation: (key: number) => void): Promise<void> {
    const engine = this.#engine;
    for (let at = 0; at < keys.length; at += this.#tick) {
      let pending: readonly number[] = Array.from(keys.subarray(at, at + this.#tick));
      while (pending.length > 0) {
        const faulted: number[] = [];
        const loads: Promise<void>[] = [];
        for (const key of pending) {
          try {
            operation(key);
          } catch (error) {
            if (!(error instanceof ReadFault)) throw error;
            engine.rollback();
            faulted.push(key);
            loads.push(error.ready);
          }
        }
        engine.endTick();
        pending = faulted;
        if (loads.length > 0) await Promise.all(loads);
      }
      if (engine.failure !== undefined) throw engine.failure;
      if (engine.congested) await engine.drained();
      await nextTick();
    }
  }

  close(): Promise<void> {
    return this.#engine.close();
  }
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

// ---- the peer

export class LevelSubject implements KvSubject {
  readonly #db: ClassicLevel<Buffer, Buffer>;
  readonly #key = Buffer.alloc(keyBytes);

  static async open(directory: string): Promise<LevelSubject> {
    const db = new ClassicLevel<Buffer, Buffer>(directory, {
      keyEncoding: 'buffer',
      valueEncoding: 'buffer',
      cacheSize: blockCacheBytes + rowCacheBytes,
      writeBufferSize: writeBufferBytes,
      maxFileSize: maxFileBytes,
      blockSize: blockBytes,
      compression: false,
    });
    await db.open();
    return new LevelSubject(db);
  }

  private constructor(db: ClassicLevel<Buffer, Buffer>) {
    this.#db = db;
  }

  async fill(keys: Uint32Array, values: Values): Promise<void> {
    for (const key of keys) {
      writeKey(this.#key, key);
      const start = values.startOf(key);
      await this.#db.put(this.#key, values.bytes.subarray(start, start + values.length));
    }
  }

  async read(keys: Uint32Array, values: Values): Promise<void> {
    for (const key of keys) {
      writeKey(this.#key, key);
      const value = await this.#db.get(this.#key);
      if (value === undefined) throw new Error(`there is no key ${key}`);
      values.check(key, value, 0, value.length);
    }
  }

  close(): Promise<void> {
    return this.#db.close();
  }
}
