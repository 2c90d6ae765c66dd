// A gateway's cache of the nodes' answers (ABase, section 4.4): eviction is least recently used
// first, by bytes, and no entry outlives its time to live. Hot entries are refreshed before they
// expire, by one request in the background, so that their readers never all miss at once; cold
// entries expire.
//
// Only for reads that may be stale. The cache calls no node and never waits:
//
//   look -> hit | refresh | load | wait | bypass     for each read
//   find -> hit | refresh | miss                     for a read that may not be admitted
//   loaded, or failed                                for each load or refresh that was begun
//   invalidate                                       for each write that has passed here, before it is answered
//   sweep                                            some times in a time to live

import type { Rng } from '../../universal-row/environment.ts';

export interface ActiveUpdateCacheOptions {
  enabled: boolean;
  /** Bytes of all entries, including the overhead besides their values. */
  capacityBytes: number;
  /** Fraction of the capacity: larger entries are not cached. */
  largestEntry: number;
  /** Milliseconds from when a value was asked for. */
  ttlMs: number;
  /** Hits since it was loaded that make an entry hot; Infinity to let everything expire. */
  hotHits: number;
  /** Part of the time to live after which a hot entry is loaded again. */
  refreshAfter: number;
  /** Part of the time to live over which such loads are spread. */
  jitter: number;
}

export const activeUpdateCacheDefaults: ActiveUpdateCacheOptions = {
  enabled: true,
  capacityBytes: 64 * 1024 * 1024,
  largestEntry: 1 / 16,
  ttlMs: 10_000,
  hotHits: 3,
  refreshAfter: 0.8,
  jitter: 0.1,
};

/**
 * `hit`: the answer is in `value`. `refresh`: as `hit`, and the caller reloads it in the background, as `flight`. `load`:
 * the caller loads it, as `flight`. `wait`: another reader loads it, as `flight`. `bypass`: the caller asks the node and
 * caches nothing. All requests to a node are charged, refreshes included.
 */
type Look = 'hit' | 'refresh' | 'load' | 'wait' | 'bypass';

/** Bytes of an entry beside its key and value. */
const entryBytes = 200;

interface Entry<V> {
  key: string;
  value: V | undefined;
  bytes: number;
  /** When it was asked for: it may be as old as that. */
  asOf: number;
  refreshAt: number;
  hits: number;
  /** By use: towards the most and the least recently used. */
  newer: Entry<V> | undefined;
  older: Entry<V> | undefined;
}

/** A load in progress. A key has at most one, not counting loads that a write has made obsolete. */
export interface Flight {
  readonly key: string;
  /** When it was begun. */
  readonly since: number;
}

export class ActiveUpdateCache<V> {
  /** The answer of the last `look` that was a hit; undefined if it is known that there is none. */
  value: V | undefined;
  /** Load of the last `look` that names one. */
  flight: Flight | undefined;
  /** Since the start; refreshes are loads as well. */
  hits = 0;
  loads = 0;
  refreshes = 0;
  readonly #options: ActiveUpdateCacheOptions;
  readonly #rng: Rng;
  readonly #entries = new Map<string, Entry<V>>();
  readonly #flights = new Map<string, Flight>();
  #bytes = 0;
  #newest: Entry<V> | undefined;
  #oldest: Entry<V> | undefined;
  /** Entries in order of loading. Those before `#due` were checked for a refresh; those before `#over` have expired. */
  #loaded: Entry<V>[] = [];
  #due = 0;
  #over = 0;

  constructor(options: Partial<ActiveUpdateCacheOptions>, rng: Rng) {
    this.#options = { ...activeUpdateCacheDefaults, ...options };
    this.#rng = rng;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Larger entries are not cached. */
  get largestBytes(): number {
    return this.#options.capacityBytes * this.#options.largestEntry;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** `maxAgeMs`: older entries do not count. `now` is monotonic milliseconds. */
  look(key: string, now: number, maxAgeMs = Infinity): Look {
    if (!this.#options.enabled) return 'bypass';
    const found = this.find(key, now, maxAgeMs);
    return found === 'miss' ? this.#miss(key, now, maxAgeMs) : found;
  }

  /** As `look`, where a miss begins nothing. */
  find(key: string, now: number, maxAgeMs = Infinity): 'hit' | 'refresh' | 'miss' {
    const { ttlMs, hotHits } = this.#options;
    const entry = this.#entries.get(key);
    if (entry === undefined) return 'miss';
    const age = now - entry.asOf;
    if (age >= ttlMs) this.#drop(entry);
    if (age >= ttlMs || age > maxAgeMs) return 'miss';
    this.hits++;
    entry.hits++;
    this.value = entry.value;
    if (this.#newest !== entry) {
      this.#unlink(entry);
      this.#link(entry);
    }
    if (now < entry.refreshAt || entry.hits < hotHits) return 'hit';
    return this.#beginRefresh(entry, now) ? 'refresh' : 'hit';
  }

  /**
   * Stores a loaded value; undefined if the key does not exist. `bytes` is the size of the value.
   */
  loaded(flight: Flight, value: V | undefined, bytes: number): void {
    const { key, since: asOf } = flight;
    // The value may be older than a write.
    if (this.#flights.get(key) !== flight) return;
    this.#flights.delete(key);
    const known = this.#entries.get(key);
    if (known !== undefined) this.#drop(known);
    const { ttlMs, refreshAfter, jitter } = this.#options;
    const whole = bytes + 2 * key.length + entryBytes;
    if (whole > this.largestBytes) return;
    const refreshAt = asOf + ttlMs * (refreshAfter + jitter * this.#rng.next());
    const entry: Entry<V> = {
      key,
      value,
      bytes: whole,
      asOf,
      refreshAt,
      hits: 0,
      newer: undefined,
      older: undefined,
    };
    this.#entries.set(key, entry);
    this.#link(entry);
    this.#bytes += whole;
    this.#loaded.push(entry);
    this.#shrink();
  }

  #shrink(): void {
    const { capacityBytes } = this.#options;
    while (this.#bytes > capacityBytes && this.#oldest !== undefined) this.#drop(this.#oldest);
  }

  /** Bytes of all entries from now on. */
  resize(capacityBytes: number): void {
    this.#options.capacityBytes = capacityBytes;
    this.#shrink();
  }

  /** Records a failed load: the cached entry stays until it expires. */
  failed(flight: Flight, now: number): void {
    const { key } = flight;
    if (this.#flights.get(key) !== flight) return;
    this.#flights.delete(key);
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    // A few times more, not with every read.
    const { ttlMs } = this.#options;
    entry.refreshAt = now + Math.max(ttlMs / 50, (entry.asOf + ttlMs - now) / 2);
  }

  /** The key was written: later reads must not see its old value. */
  invalidate(key: string): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#drop(entry);
    this.#flights.delete(key);
  }

  clear(): void {
    for (const entry of this.#entries.values()) this.#drop(entry);
    this.#flights.clear();
  }

  /**
   * Drops expired entries, and names hot entries that were not read since they were due: the caller is to load
   * those as for `refresh`.
   */
  sweep(now: number, refresh: (flight: Flight) => void): void {
    const { ttlMs, refreshAfter, jitter, hotHits } = this.#options;
    // At this age, every hot entry that was read has been refreshed by its readers.
    const dueMs = Math.min(1, refreshAfter + jitter) * ttlMs;
    for (; this.#isOlder(this.#due, dueMs, now); this.#due++) {
      const entry = this.#loaded[this.#due]!;
      if (this.#entries.get(entry.key) !== entry || entry.hits < hotHits) continue;
      if (now - entry.asOf < ttlMs && this.#beginRefresh(entry, now)) refresh(this.flight!);
    }
    for (; this.#isOlder(this.#over, ttlMs, now); this.#over++) {
      const entry = this.#loaded[this.#over]!;
      if (this.#entries.get(entry.key) === entry) this.#drop(entry);
    }
    if (this.#over < 1024 || this.#over * 2 < this.#loaded.length) return;
    this.#loaded = this.#loaded.slice(this.#over);
    this.#due -= this.#over;
    this.#over = 0;
  }

  #isOlder(at: number, ms: number, now: number): boolean {
    const entry = this.#loaded[at];
    return entry !== undefined && now - entry.asOf >= ms;
  }

  #miss(key: string, now: number, maxAgeMs: number): Look {
    const flight = this.#flights.get(key);
    if (flight === undefined) {
      this.#begin(key, now);
      return 'load';
    }
    // A load begun too long ago may be too old when it completes.
    if (now - flight.since > maxAgeMs) return 'bypass';
    this.flight = flight;
    return 'wait';
  }

  /** One at a time. */
  #beginRefresh(entry: Entry<V>, now: number): boolean {
    if (this.#flights.has(entry.key)) return false;
    this.refreshes++;
    this.#begin(entry.key, now);
    return true;
  }

  #begin(key: string, now: number): void {
    this.loads++;
    this.flight = { key, since: now };
    this.#flights.set(key, this.flight);
  }

  #drop(entry: Entry<V>): void {
    this.#entries.delete(entry.key);
    this.#unlink(entry);
    this.#bytes -= entry.bytes;
    // The list of loaded entries holds it until a sweep.
    entry.value = undefined;
  }

  #link(entry: Entry<V>): void {
    entry.older = this.#newest;
    if (this.#newest !== undefined) this.#newest.newer = entry;
    this.#newest = entry;
    this.#oldest ??= entry;
  }

  #unlink(entry: Entry<V>): void {
    if (entry.newer === undefined) this.#newest = entry.older;
    else entry.newer.older = entry.older;
    if (entry.older === undefined) this.#oldest = entry.newer;
    else entry.older.newer = entry.newer;
    entry.newer = undefined;
    entry.older = undefined;
  }
}
