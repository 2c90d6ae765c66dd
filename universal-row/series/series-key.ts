// The key of a series: measurement and tags in one run of bytes, in the form in which InfluxDB shows it:
//
//   cpu,host=a,region=eu\ west        tags sorted by key, comma, space and equals sign escaped by a backslash
//
// No two ways of writing a series have different keys. Two keys compare as their bytes do.

import { viewed } from '../bytes.ts';

export interface SeriesName {
  measurement: string;
  /** Sorted by key, in the order of their bytes. No empty value: an empty tag is no tag. */
  tags: readonly (readonly [key: string, value: string])[];
}

const comma = 0x2c;
const equals = 0x3d;
const backslash = 0x5c;

const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

/**
 * 32-bit FNV-1a with a final mix, stored beside keys in log entries and index files. Clients can choose keys that
 * collide, so tables in memory use keyed-hash.ts.
 */
export function hashKey(buf: Buffer, start: number, end: number): number {
  let hash = fnvOffset;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ buf[i]!, fnvPrime);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash ^ (hash >>> 12)) >>> 0;
}

/** Order of text by its UTF-8 bytes, which differs from that of UTF-16 units beyond U+FFFF. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    let x = a.charCodeAt(i);
    let y = b.charCodeAt(i);
    if (x === y) continue;
    // Surrogates stand for code points above all others.
    if (x >= 0xd800 && y >= 0xd800) {
      if (x < 0xe000) x += 0x10000;
      if (y < 0xe000) y += 0x10000;
    }
    return x - y;
  }
  return a.length - b.length;
}

export function encodeSeriesKey(name: SeriesName): Buffer {
  let text = name.measurement.replace(/[, ]/g, '\\$&');
  for (const [key, value] of name.tags) text += `,${escapeTag(key)}=${escapeTag(value)}`;
  return viewed(Buffer.from(text));
}

function escapeTag(text: string): string {
  return text.replace(/[,= ]/g, '\\$&');
}

/** The measurement and tags of a key. */
export function decodeSeriesKey(buf: Buffer, start: number, end: number): SeriesName {
  const tags: [string, string][] = [];
  let at = partEnd(buf, start, end, false);
  const measurement = unescaped(buf, start, at, false);
  while (at < end) {
    const keyStart = at + 1;
    const keyEnd = partEnd(buf, keyStart, end, true);
    at = partEnd(buf, keyEnd + 1, end, false);
    tags.push([unescaped(buf, keyStart, keyEnd, true), unescaped(buf, keyEnd + 1, at, true)]);
  }
  return { measurement, tags };
}

/**
 * End of the part that begins at `start`: at a bare comma, or a bare equals sign if that ends it. A
 * character is bare unless directly behind a backslash, regardless of any byte before that
 * backslash.
 */
export function partEnd(buf: Buffer, start: number, end: number, atEquals: boolean): number {
  for (let i = start; i < end; i++) {
    const c = buf[i]!;
    if (c !== comma && !(atEquals && c === equals)) continue;
    if (i === start || buf[i - 1] !== backslash) return i;
  }
  return end;
}

function unescaped(buf: Buffer, start: number, end: number, tag: boolean): string {
  const text = buf.toString('utf8', start, end);
  if (!text.includes('\\')) return text;
  return text.replace(tag ? /\\([,= ])/g : /\\([, ])/g, '$1');
}
