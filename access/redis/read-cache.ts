// The gateway's cache of replies to GET, for tables whose reads may be stale. A GET answered from the cache reaches
// no pod, waits for no quota and costs nothing. Writes through this gateway invalidate the entry before they are
// answered. Writes on other paths become visible late, after one time to live at most.

import type { Arguments } from '../../universal-row/arguments.ts';
import { isWrite, type TableSpan, type Transform } from '../../universal-row/command.ts';
import type { Rng } from '../../universal-row/environment.ts';
import {
  ActiveUpdateCache,
  activeUpdateCacheDefaults,
  type Flight,
} from '../gateway/active-update-cache.ts';
import { keyWords } from './commands/key-words.ts';
import type { CommandEntry } from './commands/registry.ts';
import {
  answerFound,
  findString,
  get,
} from '../../universal-row/transforms/redis/string-values.ts';
import { minus, type RespWriter } from './resp-writer.ts';

/** Number of calls of `tick` in one time to live. */
export const ticksPerTtl = 10;
export const ttlMs = activeUpdateCacheDefaults.ttlMs;

/** A cached table. */
export interface RememberedTable {
  readonly table: number;
  /** Number of its tenant. */
  readonly tenant: number;
  readonly span: TableSpan;
  /** Milliseconds that an answer may be old; Infinity where the time to live is all. */
  readonly maxAgeMs: number;
}

/** Cached reply of a key. */
interface Answer {
  /** As a RESP bulk string, which is the same in both versions; undefined: there is nothing at the key. */
  readonly bytes: Buffer | undefined;
  /** Unix milliseconds at which the row ceases to be; 0 for never. */
  readonly expireAt: number;
}

/** A GET whose answer will be cached. */
export class Load {
  expireAt = 0;
  /** Used in place of GET's transform. It may be run again from its start. */
  readonly transform: Transform = (rows, args, reply) => {
    const row = findString(rows, args);
    this.expireAt = row === 0 ? 0 : rows.expireAt(row);
    return answerFound(rows, row, reply);
  };
  readonly #cache: ActiveUpdateCache<Answer>;
  readonly #flight: Flight;

  constructor(cache: ActiveUpdateCache<Answer>, flight: Flight) {
    this.#cache = cache;
    this.#flight = flight;
  }

  /** The reply is too long to be cached. `now` is monotonic milliseconds. */
  answeredAtLength(now: number): void {
    this.#cache.failed(this.#flight, now);
  }

  /** Caches the reply in the writer. `now` is monotonic milliseconds. */
  answered({ buf, pos }: RespWriter, now: number): void {
    const { expireAt } = this;
    if (isBulk(buf, pos)) {
      // Replies that are too large are not cached, and not copied. A slice of a shared buffer would
      // keep all of it alive.
      const bytes = Buffer.allocUnsafeSlow(pos > this.#cache.largestBytes ? 0 : pos);
      buf.copy(bytes, 0, 0, bytes.length);
      this.#cache.loaded(this.#flight, { bytes, expireAt }, pos);
    } else if (isNil(buf, pos)) {
      this.#cache.loaded(this.#flight, { bytes: undefined, expireAt: 0 }, 0);
    } else this.#cache.failed(this.#flight, now);
  }
}

/** A table from when caching begins until it ends: another one with its number begins anew. */
class Memory {
  readonly of: RememberedTable;
  readonly prefix: string;

  constructor(of: RememberedTable, serial: number) {
    this.of = of;
    this.prefix = `${serial}:`;
  }
}

interface ReadCacheOptions {
  rng: Rng;
  /** Runs a GET of the key in the background, and tells the load of its answer. */
  reload: (table: RememberedTable, key: Buffer, load: Load) => void;
}

export class ReadCache {
  /**
   * Counts of reads answered from here, those of them that found no row, and reads that a pod
   * answered.
   */
  readonly counts = { hits: 0, absent: 0, misses: 0 };
  readonly #byTenant = new Map<number, { hits: number; misses: number }>();
  readonly #cache: ActiveUpdateCache<Answer>;
  readonly #reload: ReadCacheOptions['reload'];
  #tables = new Map<number, Memory>();
  readonly #byPrefix = new Map<string, Memory>();
  #serial = 0;

  constructor({ rng, reload }: ReadCacheOptions) {
    this.#cache = new ActiveUpdateCache<Answer>({}, rng);
    this.#reload = reload;
  }

  get bytes(): number {
    return this.#cache.bytes;
  }

  get size(): number {
    return this.#cache.size;
  }

  get refreshes(): number {
    return this.#cache.refreshes;
  }

  of(tenant: number): { readonly hits: number; readonly misses: number } {
    return this.#byTenant.get(tenant) ?? { hits: 0, misses: 0 };
  }

  // ---- entries
  //

  /** All cached tables; unchanged ones keep their answers. */
  setTables(tables: Iterable<RememberedTable>): void {
    const before = this.#tables;
    this.#tables = new Map();
    this.#byPrefix.clear();
    for (const one of tables) {
      const known = before.get(one.table);
      this.#put(known !== undefined && isSame(known.of, one) ? known : this.#new(one));
    }
  }

  #new(of: RememberedTable): Memory {
    return new Memory(of, ++this.#serial);
  }

  #put(memory: Memory): void {
    this.#tables.set(memory.of.table, memory);
    this.#byPrefix.set(memory.prefix, memory);
  }

  /** Drops all entries of a table. Loads in progress are not cached when they complete. */
  #forgetTable(memory: Memory): void {
    this.#byPrefix.delete(memory.prefix);
    this.#put(this.#new(memory.of));
  }

  /** Bytes that it may take. */
  resize(capacityBytes: number): void {
    this.#cache.resize(capacityBytes);
  }

  clear(): void {
    this.#cache.clear();
  }

  forgetTenant(tenant: number): void {
    this.#byTenant.delete(tenant);
  }

  // ---- reads

  /**
   * The answer to a command if it is a GET and its answer is known. `now` is monotonic milliseconds, `wallNow` those
   * since 1970.
   */
  answerTo(
    entry: CommandEntry,
    args: Arguments,
    table: number,
    now: number,
    wallNow: number,
  ): Answer | undefined {
    if (entry.run !== get) return undefined;
    const memory = this.#tables.get(table);
    if (memory === undefined) return undefined;
    const key = memory.prefix + args.latin1(1);
    const found = this.#cache.find(key, now, memory.of.maxAgeMs);
    const answer = found === 'miss' ? undefined : this.#cache.value!;
    if (found === 'refresh') this.#refresh(this.#cache.flight!);
    const isOver = answer !== undefined && answer.expireAt !== 0 && answer.expireAt <= wallNow;
    if (isOver) this.#cache.invalidate(key);
    if (answer === undefined || isOver) {
      this.#count(memory, 'misses');
      return undefined;
    }
    this.#count(memory, 'hits');
    if (answer.bytes === undefined) this.counts.absent++;
    return answer;
  }

  #count({ of: { tenant } }: Memory, what: 'hits' | 'misses'): void {
    this.counts[what]++;
    let counts = this.#byTenant.get(tenant);
    if (counts === undefined) this.#byTenant.set(tenant, (counts = { hits: 0, misses: 0 }));
    counts[what]++;
  }

  /** A command is about to be run by a pod: how, if it is a GET whose answer will be cached. */
  load(entry: CommandEntry, args: Arguments, table: number, now: number): Load | undefined {
    if (entry.run !== get) return undefined;
    const memory = this.#tables.get(table);
    if (memory === undefined) return undefined;
    const look = this.#cache.look(memory.prefix + args.latin1(1), now, memory.of.maxAgeMs);
    // When another client's load is in progress, the pod is asked as well: it reads from disk only
    // once.
    if (look !== 'load' && look !== 'refresh') return undefined;
    return new Load(this.#cache, this.#cache.flight!);
  }

  /** To be called `ticksPerTtl` times in a time to live. */
  tick(now: number): void {
    this.#cache.sweep(now, (flight) => this.#refresh(flight));
  }

  #refresh(flight: Flight): void {
    const load = new Load(this.#cache, flight);
    const end = flight.key.indexOf(':') + 1;
    const memory = this.#byPrefix.get(flight.key.slice(0, end));
    // Entries of a table that is no longer cached are never read.
    if (memory === undefined) this.#cache.invalidate(flight.key);
    else this.#reload(memory.of, Buffer.from(flight.key.slice(end), 'latin1'), load);
  }

  // ---- writes

  /** A command that began on this table has run, or failed, and is about to be answered. */
  wrote(entry: CommandEntry, args: Arguments, table: number, span: TableSpan): void {
    if (!isWrite(entry.action) || entry.run === undefined) return;
    const words = keyWords(entry.spec, args);
    // A script may have written to other keys than it was given.
    if (words.length === 0 || entry.bind !== undefined) {
      this.forgetAll(span);
      return;
    }
    if (reachesOthers.has(entry.spec.name)) {
      for (const memory of this.#within(span)) this.#forgetKeys(memory, args, words);
      return;
    }
    const memory = this.#tables.get(table);
    if (memory !== undefined) this.#forgetKeys(memory, args, words);
  }

  /** Tables were emptied, or have changed places. */
  forgetAll(span: TableSpan): void {
    for (const memory of this.#within(span)) this.#forgetTable(memory);
  }

  #within({ first, count }: TableSpan): Memory[] {
    const memories: Memory[] = [];
    for (let table = first; table < first + count; table++) {
      const memory = this.#tables.get(table);
      if (memory !== undefined) memories.push(memory);
    }
    return memories;
  }

  #forgetKeys({ prefix }: Memory, args: Arguments, words: readonly number[]): void {
    for (const word of words) {
      if (word < args.count) this.#cache.invalidate(prefix + args.latin1(word));
    }
  }
}

/** Commands that may write to a database other than the one that is selected. */
const reachesOthers: ReadonlySet<string> = new Set(['copy', 'move']);

function isSame(one: RememberedTable, other: RememberedTable): boolean {
  return (
    one.tenant === other.tenant &&
    one.maxAgeMs === other.maxAgeMs &&
    one.span.first === other.span.first &&
    one.span.count === other.span.count
  );
}

const dollar = 36;
const underscore = 95;

function isBulk(buf: Buffer, length: number): boolean {
  return length > 1 && buf[0] === dollar && buf[1] !== minus;
}

function isNil(buf: Buffer, length: number): boolean {
  return length > 1 && (buf[0] === underscore || (buf[0] === dollar && buf[1] === minus));
}
