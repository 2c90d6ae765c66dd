// LevelDB behind the few operations the engine uses. While the database is being reopened after a
// failure, reads wait. Values are opaque here.

import { ClassicLevel } from 'classic-level';
import type { Snapshot } from 'classic-level';
import { prefixEnd } from './key-layout.ts';
import { type LevelZero, LevelZeroCounter } from './level-stats.ts';

const pageBytes = 1024 * 1024;

type Database = ClassicLevel<Buffer, Buffer>;
export type LevelSnapshot = Snapshot;

export interface LevelOptions {
  blockCacheBytes?: number;
  /** Size of the memtable: the most that a reopen replays. */
  writeBufferBytes?: number | undefined;
  blockBytes?: number;
  maxFileBytes?: number;
  compression?: boolean;
}

export interface Page {
  keys: Buffer[];
  values: Buffer[];
  /** Nothing more in the range. */
  ended: boolean;
}

/** Puts and deletes that are written together or not at all. */
export class LevelBatch {
  readonly keys: Buffer[] = [];
  /** undefined deletes. */
  readonly values: (Buffer | undefined)[] = [];
  bytes = 0;

  put(key: Buffer, value: Buffer): void {
    this.keys.push(key);
    this.values.push(value);
    this.bytes += key.length + value.length;
  }

  del(key: Buffer): void {
    this.keys.push(key);
    this.values.push(undefined);
    this.bytes += key.length;
  }
}

// Below this many keys a second thread does not pay.
const keysPerThread = 16;
const readThreads = 3;

export class LevelStore {
  readonly directory: string;
  readonly #db: Database;
  readonly #levelZero = new LevelZeroCounter();
  #reopening: Promise<void> | undefined = undefined;

  constructor(directory: string, options: LevelOptions = {}) {
    this.directory = directory;
    this.#db = new ClassicLevel<Buffer, Buffer>(directory, {
      keyEncoding: 'buffer',
      valueEncoding: 'buffer',
      cacheSize: options.blockCacheBytes ?? 32 * 1024 * 1024,
      writeBufferSize: options.writeBufferBytes ?? 32 * 1024 * 1024,
      blockSize: options.blockBytes ?? 4096,
      maxFileSize: options.maxFileBytes ?? 8 * 1024 * 1024,
      compression: options.compression ?? true,
    });
  }

  async open(): Promise<void> {
    try {
      await this.#db.open();
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`the LevelDB in ${this.directory} cannot be opened: ${reason}`, {
        cause: error,
      });
    }
    // Reads level 0 before any compaction starts.
    this.#levelZero.read(this.#db.getProperty('leveldb.stats'));
  }

  async close(): Promise<void> {
    await this.#reopening?.catch(() => {});
    await this.#db.close();
  }

  /** Closes and opens again: after a failed write LevelDB's log may end in half a record. */
  reopen(): Promise<void> {
    this.#reopening ??= (async () => {
      this.#levelZero.closed();
      await this.#db.close();
      await this.open();
    })().finally(() => {
      this.#reopening = undefined;
    });
    return this.#reopening;
  }

  write(batch: LevelBatch): Promise<void> {
    const chained = this.#db.batch();
    const { keys, values } = batch;
    for (let i = 0; i < keys.length; i++) {
      const value = values[i];
      if (value === undefined) chained.del(keys[i]!);
      else chained.put(keys[i]!, value);
    }
    return chained.write();
  }

  /** Values in the order of the keys, as of the moment of the call; read by so many threads at most. */
  async getMany(keys: Buffer[], most = readThreads): Promise<(Buffer | undefined)[]> {
    if (this.#reopening !== undefined) await this.#reopening;
    const threads = Math.min(most, Math.ceil(keys.length / keysPerThread));
    if (threads <= 1) return this.#db.getMany(keys);
    const each = Math.ceil(keys.length / threads);
    const parts: Promise<(Buffer | undefined)[]>[] = [];
    for (let i = 0; i < keys.length; i += each) {
      parts.push(this.#db.getMany(keys.slice(i, i + each)));
    }
    return (await Promise.all(parts)).flat();
  }

  async get(key: Buffer): Promise<Buffer | undefined> {
    if (this.#reopening !== undefined) await this.#reopening;
    return this.#db.get(key);
  }

  /** The value on the spot, at the cost of the event loop; 'busy' while the database is reopened. */
  getSync(key: Buffer): Buffer | undefined | 'busy' {
    if (this.#reopening !== undefined) return 'busy';
    return this.#db.getSync(key);
  }

  /** Up to so many records or about so many bytes of [gte, lt), as of the moment of the call. */
  async page(
    gte: Buffer,
    lt: Buffer,
    reverse: boolean,
    records: number,
    bytes: number,
    snapshot?: LevelSnapshot,
  ): Promise<Page> {
    if (this.#reopening !== undefined) await this.#reopening;
    const iterator = this.#db.iterator({
      gte,
      lt,
      reverse,
      limit: records,
      highWaterMarkBytes: Math.min(bytes, 1024 * 1024),
      fillCache: snapshot === undefined,
      ...(snapshot === undefined ? {} : { snapshot }),
    });
    const page: Page = { keys: [], values: [], ended: false };
    try {
      let read = 0;
      while (page.keys.length < records && read < bytes) {
        const entries = await iterator.nextv(records - page.keys.length);
        for (const [key, value] of entries) {
          page.keys.push(key);
          page.values.push(value);
          read += key.length + value.length;
        }
        if (entries.length === 0) {
          page.ended = true;
          break;
        }
      }
    } finally {
      await iterator.close();
    }
    return page;
  }

  /** Up to `limit` keys of [gte, lt). */
  async keys(gte: Buffer, lt: Buffer, limit: number): Promise<Buffer[]> {
    if (this.#reopening !== undefined) await this.#reopening;
    return this.#db.keys({ gte, lt, limit, fillCache: false }).all();
  }

  /** The state as it is now, for reads until it is closed. */
  snapshot(): LevelSnapshot {
    return this.#db.snapshot();
  }

  /**
   * Resolves once all writes are in synced files. Writing with `sync` would not suffice: it syncs
   * LevelDB's current log alone, and the contents of the previous log may not have reached a table
   * yet.
   */
  async flush(): Promise<void> {
    const beyond = Buffer.alloc(1, 255);
    await this.#db.compactRange(beyond, beyond);
  }

  approximateBytes(): Promise<number> {
    return this.#db.approximateSize(Buffer.alloc(1, 0), Buffer.alloc(1, 255));
  }

  /** Files waiting in level 0 for compaction, and bytes compacted so far. */
  levelZero(): LevelZero {
    const isOpen = this.#reopening === undefined && this.#db.status === 'open';
    return this.#levelZero.read(isOpen ? this.#db.getProperty('leveldb.stats') : undefined);
  }
}

/** Sees all records whose keys begin with this. */
export async function eachWith(
  level: LevelStore,
  code: string,
  see: (key: Buffer, value: Buffer) => void,
): Promise<void> {
  const end = prefixEnd(Buffer.from(code));
  let from = Buffer.from(code);
  for (;;) {
    const page = await level.page(from, end, false, 1000, pageBytes);
    page.keys.forEach((key, i) => see(key, page.values[i]!));
    const last = page.keys[page.keys.length - 1];
    if (page.ended || last === undefined) return;
    from = Buffer.concat([last, Buffer.alloc(1)]);
  }
}
