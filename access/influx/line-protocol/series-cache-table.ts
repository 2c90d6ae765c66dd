// Series lately written, found by the bytes of a line's key. Keys are kept as they were written
// ("spellings") and once more in the form of series-key.ts where that is another; both lead to the same
// handle. All of it lies in typed arrays and in segments of bytes.
//
// Clients send the same series in the same order again and again. So each spelling remembers which one
// came after it, and the next line is first held against that: no hash is computed, and the end of the
// key need not be searched for.

import { keyedHash } from '../../../universal-row/keyed-hash.ts';
import type { SeriesCache } from '../../../universal-row/series/series-cache.ts';
import { encodeSeriesKey } from '../../../universal-row/series/series-key.ts';
import { space } from './characters.ts';
import { parseLineKey } from './line-key.ts';
import { PlainKey } from './plain-key.ts';

export interface SeriesCacheLimits {
  /** Memory, roughly. */
  bytes: number;
  series: number;
}

export const defaultSeriesCacheLimits: SeriesCacheLimits = {
  bytes: 256 * 1024 * 1024,
  series: 2_000_000,
};

const segmentBits = 20;
/** No key is longer. */
export const segmentBytes = 1 << segmentBits;
const segmentMask = segmentBytes - 1;

/** Typed arrays by spelling and by handle, and the share of the slots, for one more of each. */
const spellingBytes = 32;
const handleBytes = 12;

/**
 * Hands out the table to use. Emptying it means to begin another one, with another generation: batches
 * that are still being filled or written keep theirs.
 */
export class SharedSeriesCache {
  readonly #limits: SeriesCacheLimits;
  #table = new SeriesCacheTable(0);

  constructor(limits: SeriesCacheLimits = defaultSeriesCacheLimits) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#table.bytes;
  }

  /** To be asked whenever a batch is begun. */
  current(): SeriesCacheTable {
    if (this.#table.bytes >= this.#limits.bytes || this.#table.size >= this.#limits.series) {
      this.#table = new SeriesCacheTable(this.#table.generation + 1);
    }
    return this.#table;
  }
}

export class SeriesCacheTable implements SeriesCache {
  readonly generation: number;
  size = 0;
  /** Names of the measurements, by number. */
  readonly measurements: string[] = [];
  /** Error of the key that `add` rejected. */
  reason = '';
  /** The key was right, but InfluxDB drops points with such a tag. */
  dropped = false;

  private readonly segments: Buffer[] = [];
  private readonly views: DataView[] = [];
  /** Where the next key goes: segment and offset in one number, as in `starts`. */
  private free = segmentBytes;
  private segmentCount = 0;

  // By spelling.
  private spellings = 0;
  private starts = new Uint32Array(1024);
  private lengths = new Uint32Array(1024);
  private hashes = new Int32Array(1024);
  private nexts = new Int32Array(1024);
  private handles = new Uint32Array(1024);

  // By handle.
  private canonical = new Uint32Array(1024);
  private measurementOf = new Uint32Array(1024);
  private keyHashes = new Uint32Array(1024);

  /** Spelling + 1 at its hash, 0 where there is none. */
  private slots = new Int32Array(4096);
  /** Hash of the last key looked up. */
  private lastHash = 0;
  private readonly plain = new PlainKey();
  private readonly measurementNumbers = new Map<string, number>();
  // Chosen anew each time, so that clients cannot make keys that collide.
  private readonly seed = (Math.random() * 0x100000000) | 0;
  private readonly multiplier = (Math.random() * 0x100000000) | 1;

  constructor(generation: number) {
    this.generation = generation;
  }

  get bytes(): number {
    return (
      this.segmentCount * segmentBytes + this.spellings * spellingBytes + this.size * handleBytes
    );
  }

  keys(handle: number): Buffer {
    return this.segments[this.starts[this.canonical[handle]!]! >>> segmentBits]!;
  }

  keyStart(handle: number): number {
    return this.starts[this.canonical[handle]!]! & segmentMask;
  }

  keyEnd(handle: number): number {
    const spelling = this.canonical[handle]!;
    return (this.starts[spelling]! & segmentMask) + this.lengths[spelling]!;
  }

  keyHash(handle: number): number {
    return this.keyHashes[handle]!;
  }

  /** Handle of a spelling. */
  handle(spelling: number): number {
    return this.handles[spelling]!;
  }

  /** Length of a spelling, in bytes. */
  length(spelling: number): number {
    return this.lengths[spelling]!;
  }

  /** Number of the measurement of a handle. */
  measurement(handle: number): number {
    return this.measurementOf[handle]!;
  }

  /** The spelling that came after this one the last time. */
  next(spelling: number): number {
    return this.nexts[spelling]!;
  }

  setNext(spelling: number, next: number): void {
    this.nexts[spelling] = next;
  }

  /** Whether the bytes at `at` are this spelling, and a space that ends it. */
  matches(spelling: number, buf: Buffer, view: DataView, at: number, end: number): boolean {
    const n = this.lengths[spelling]!;
    if (at + n >= end || buf[at + n] !== space) return false;
    return this.equal(spelling, view, at, n);
  }

  private equal(spelling: number, view: DataView, at: number, n: number): boolean {
    const start = this.starts[spelling]!;
    const mine = this.views[start >>> segmentBits]!;
    const from = start & segmentMask;
    const last = n - 4;
    if (last < 0) {
      for (let i = 0; i < n; i++) if (view.getInt8(at + i) !== mine.getInt8(from + i)) return false;
      return true;
    }
    for (let i = 0; i < last; i += 4) {
      if (view.getInt32(at + i, true) !== mine.getInt32(from + i, true)) return false;
    }
    return view.getInt32(at + last, true) === mine.getInt32(from + last, true);
  }

  /** The spelling of these bytes, or -1. */
  find(view: DataView, start: number, end: number): number {
    this.lastHash = this.hash(view, start, end);
    return this.lookUp(view, start, end, this.lastHash);
  }

  private lookUp(view: DataView, start: number, end: number, hash: number): number {
    const mask = this.slots.length - 1;
    const n = end - start;
    for (let i = hash & mask; ; i = (i + 1) & mask) {
      const spelling = this.slots[i]! - 1;
      if (spelling < 0) return -1;
      if (
        this.hashes[spelling] === hash &&
        this.lengths[spelling] === n &&
        this.equal(spelling, view, start, n)
      ) {
        return spelling;
      }
    }
  }

  private hash(view: DataView, start: number, end: number): number {
    const multiplier = this.multiplier;
    let h = this.seed ^ (end - start);
    let i = start;
    for (const last = end - 4; i <= last; i += 4) {
      h = Math.imul(h ^ view.getInt32(i, true), multiplier);
      h = Math.imul(h ^ (h >>> 16), 0x2c1b3c6d);
    }
    for (; i < end; i++) h = Math.imul(h ^ view.getUint8(i), multiplier);
    h = Math.imul(h ^ (h >>> 15), multiplier);
    return h ^ (h >>> 13);
  }

  /**
   * Takes in the key that `find` has just not found. Returns its spelling, or -1 and a `reason`. A key is
   * longer than `maxBytes` also when it becomes so as invalid UTF-8 is replaced.
   */
  add(buf: Buffer, view: DataView, start: number, end: number, maxBytes: number): number {
    this.dropped = false;
    const { plain } = this;
    if (plain.read(buf, start, end)) {
      const measurement = plain.key.toString('latin1', 0, plain.measurementEnd);
      return this.addKey(buf, view, start, end, measurement, plain.key, plain.view, plain.length);
    }
    const name = parseLineKey(buf.toString('utf8', start, end));
    if (typeof name === 'string') return this.refuse(name);
    const key = encodeSeriesKey(name);
    const longest = Math.max(key.length, end - start);
    if (longest > maxBytes) return this.refuse(keyTooLong(longest, maxBytes));
    if (name.tags.some(([tag]) => tag === 'time')) {
      this.dropped = true;
      return this.refuse(
        `invalid tag key: input tag "time" on measurement "${name.measurement}" is invalid`,
      );
    }
    const keyView = new DataView(key.buffer, key.byteOffset, key.length);
    return this.addKey(buf, view, start, end, name.measurement, key, keyView, key.length);
  }

  private refuse(reason: string): number {
    this.reason = reason;
    return -1;
  }

  /** Adds a spelling whose canonical form is `key`. */
  private addKey(
    buf: Buffer,
    view: DataView,
    start: number,
    end: number,
    measurement: string,
    key: Buffer,
    keyView: DataView,
    length: number,
  ): number {
    const written = this.lastHash;
    const hash = this.hash(keyView, 0, length);
    let canonical = this.lookUp(keyView, 0, length, hash);
    if (canonical < 0) {
      const handle = this.addHandle(measurement);
      canonical = this.addSpelling(key, 0, length, hash, handle);
      this.canonical[handle] = canonical;
      this.keyHashes[handle] = keyedHash(key, 0, length);
    }
    if (length === end - start && hash === written && this.equal(canonical, view, start, length)) {
      return canonical;
    }
    return this.addSpelling(buf, start, end, written, this.handles[canonical]!);
  }

  private addHandle(measurement: string): number {
    if (this.size === this.canonical.length) {
      this.canonical = longer(this.canonical);
      this.measurementOf = longer(this.measurementOf);
      this.keyHashes = longer(this.keyHashes);
    }
    let number = this.measurementNumbers.get(measurement);
    if (number === undefined) {
      number = this.measurements.push(measurement) - 1;
      this.measurementNumbers.set(measurement, number);
    }
    this.measurementOf[this.size] = number;
    return this.size++;
  }

  private addSpelling(from: Buffer, start: number, end: number, hash: number, of: number): number {
    const n = end - start;
    if (this.spellings === this.starts.length) this.growSpellings();
    if (this.free + n > segmentBytes) {
      const segment = Buffer.allocUnsafeSlow(segmentBytes);
      this.segments.push(segment);
      this.views.push(new DataView(segment.buffer, segment.byteOffset, segment.length));
      this.segmentCount = this.segments.length;
      this.free = 0;
    }
    const segment = this.segmentCount - 1;
    from.copy(this.segments[segment]!, this.free, start, end);
    const spelling = this.spellings++;
    this.starts[spelling] = segment * segmentBytes + this.free;
    this.lengths[spelling] = n;
    this.hashes[spelling] = hash;
    this.nexts[spelling] = spelling;
    this.handles[spelling] = of;
    this.free += n;
    this.insert(spelling);
    return spelling;
  }

  private insert(spelling: number): void {
    const mask = this.slots.length - 1;
    let i = this.hashes[spelling]! & mask;
    while (this.slots[i] !== 0) i = (i + 1) & mask;
    this.slots[i] = spelling + 1;
  }

  private growSpellings(): void {
    this.starts = longer(this.starts);
    this.lengths = longer(this.lengths);
    this.hashes = longer(this.hashes);
    this.nexts = longer(this.nexts);
    this.handles = longer(this.handles);
    this.slots = new Int32Array(this.starts.length * 4);
    for (let spelling = 0; spelling < this.spellings; spelling++) this.insert(spelling);
  }
}

export function keyTooLong(length: number, maxBytes: number): string {
  return `max key length exceeded: ${length} > ${maxBytes}`;
}

function longer<T extends Uint32Array | Int32Array>(array: T): T {
  const result = new (array.constructor as new (length: number) => T)(array.length * 2);
  result.set(array);
  return result;
}
