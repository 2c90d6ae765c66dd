// The distinct texts of one tag, or of the tag keys of one measurement, as numbers from 1. Texts are kept
// as they stand in series keys, escaped, and are made strings only when asked for: a million host
// names as strings in a Map would be some 100 MB, and as many objects for the garbage collector.

import { keyedHash } from '../../../universal-row/keyed-hash.ts';
import type { ByteArena } from './byte-arena.ts';
import { GrowingUint32, type MemoryTally } from './growing.ts';
import { grownPairs, placePair } from './hash-pairs.ts';

const comma = 0x2c;
const backslash = 0x5c;

const initialSlots = 8;
/** Strings of the first values are kept: the tags one groups by have few. */
const cachedTexts = 4096;

export class ValueDictionary {
  /** Where `internPart` found the end. */
  partEnd = 0;

  readonly #arena: ByteArena;
  readonly #tally: MemoryTally;
  /** Address by number - 1. */
  readonly #addresses: GrowingUint32;
  /** See hash-pairs.ts. */
  #pairs: Uint32Array = new Uint32Array(2 * initialSlots);
  readonly #texts: (string | undefined)[] = [];
  #hasEscapes = false;
  /** Result of the last `internPart`: consecutive series often belong to one host. */
  #lately = 0;

  constructor(arena: ByteArena, tally: MemoryTally) {
    this.#arena = arena;
    this.#tally = tally;
    this.#addresses = new GrowingUint32(tally);
    tally.bytes += this.#pairs.byteLength;
  }

  get count(): number {
    return this.#addresses.length;
  }

  /**
   * True if some text has a backslash, so the order of the texts may differ from that of their
   * escaped bytes.
   */
  get hasEscapes(): boolean {
    return this.#hasEscapes;
  }

  /** 0 when there is none. */
  find(buf: Buffer, start: number, end: number): number {
    return this.#find(keyedHash(buf, start, end), buf, start, end);
  }

  /** The number of a text, a new one where need be: then `count` has grown to it. */
  intern(buf: Buffer, start: number, end: number): number {
    return this.#intern(keyedHash(buf, start, end), buf, start, end);
  }

  /** As `intern`, for the value that begins at `start` of a key. It ends at `partEnd`. */
  internPart(keys: Buffer, start: number, end: number): number {
    if (this.#lately !== 0) {
      const after = this.match(this.#lately, keys, start, end);
      // A backslash at its end, which a key may end with, would escape the comma.
      if (
        after === end ||
        (after > start && keys[after] === comma && keys[after - 1] !== backslash)
      ) {
        this.partEnd = after;
        return this.#lately;
      }
    }
    let at = start;
    for (; at < end; at++) {
      // Like `partEnd` of series-key.ts, regardless of any byte before the backslash.
      if (keys[at] === comma && (at === start || keys[at - 1] !== backslash)) break;
    }
    this.partEnd = at;
    this.#lately = this.#intern(keyedHash(keys, start, at), keys, start, at);
    return this.#lately;
  }

  /** Points the arena at the bytes of a value. */
  locate(number: number): void {
    this.#arena.locate(this.#addresses.array[number - 1]!);
  }

  text(number: number): string {
    const known = this.#texts[number - 1];
    if (known !== undefined) return known;
    this.locate(number);
    const { buf, start, length } = this.#arena;
    let text = buf.toString('utf8', start, start + length);
    if (this.#hasEscapes && text.includes('\\')) text = text.replace(/\\([,= ])/g, '$1');
    if (number <= cachedTexts) {
      while (this.#texts.length < number) this.#texts.push(undefined);
      this.#texts[number - 1] = text;
      this.#tally.bytes += 32 + text.length;
    }
    return text;
  }

  /** The number of an unescaped text; 0 when there is none. */
  findText(text: string): number {
    const bytes = Buffer.from(text.replace(/[,= ]/g, '\\$&'));
    return this.find(bytes, 0, bytes.length);
  }

  /** Where the value ends in `keys[at, end)` when it stands there, else -1. */
  match(number: number, keys: Buffer, at: number, end: number): number {
    return this.#arena.match(this.#addresses.array[number - 1]!, keys, at, end);
  }

  /** Order of two values in keys where `next` follows them; -1 when nothing does. */
  compare(a: number, b: number, next: number): number {
    const arena = this.#arena;
    this.locate(a);
    const { buf, start, length } = arena;
    this.locate(b);
    const shared = Math.min(length, arena.length);
    for (let i = 0; i < shared; i++) {
      const difference = buf[start + i]! - arena.buf[arena.start + i]!;
      if (difference !== 0) return difference;
    }
    if (length === arena.length) return 0;
    if (length < arena.length) return next - arena.buf[arena.start + shared]!;
    return buf[start + shared]! - next;
  }

  #intern(hash: number, buf: Buffer, start: number, end: number): number {
    const known = this.#find(hash, buf, start, end);
    if (known !== 0) return known;
    this.#addresses.push(this.#arena.add(buf, start, end));
    if (!this.#hasEscapes) this.#hasEscapes = hasBackslash(buf, start, end);
    const number = this.#addresses.length;
    if (number * 20 > this.#pairs.length * 7) {
      this.#tally.bytes += this.#pairs.byteLength;
      this.#pairs = grownPairs(this.#pairs);
    }
    placePair(this.#pairs, number, hash);
    return number;
  }

  #find(hash: number, buf: Buffer, start: number, end: number): number {
    const pairs = this.#pairs;
    const mask = (pairs.length >>> 1) - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const number = pairs[2 * slot]!;
      if (number === 0) return 0;
      if (pairs[2 * slot + 1] !== hash) continue;
      // A shorter text may match too, but does not end where this one does.
      if (this.match(number, buf, start, end) === end) return number;
    }
  }
}

function hasBackslash(buf: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (buf[i] === backslash) return true;
  return false;
}
