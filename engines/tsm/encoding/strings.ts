// Texts, as UTF-8.
//
//   code u8 | …
//     constant    a text
//     dictionary  distinct texts uvarint | their blob | an index for each row: whole numbers
//     list        the texts' blob
//
//   text = bytes uvarint | bytes
//   blob = lengths in bytes: whole numbers | form u8 | bytes stored uvarint if deflated | bytes
//
// A blob's form is 0 as it is, or 1 deflated (RFC 1951).

import { constants, deflateRawSync, inflateRawSync } from 'node:zlib';
import type { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { corrupt } from './damage.ts';
import { decodeWholes, encodeWholes } from './whole-numbers.ts';

const stringCodes = { constant: 32, dictionary: 33, list: 34 } as const;

/** The encoder is never given more at once. */
const maxBlobBytes = 256 * 1024 * 1024;

const plain = 0;
const deflated = 1;
// A call of the compressor costs some 20 µs, which exceeds the savings below this size.
const minDeflatedBytes = 192;
/** No deflated byte becomes more. */
const maxInflation = 1032;

let lengthScratch = new Float64Array(4096);
const blob = new ByteWriter();

export function encodeStrings(out: ByteWriter, texts: readonly string[], n: number): void {
  const indexes = new Float64Array(n);
  const distinct = findDistinct(texts, n, indexes);
  if (distinct !== undefined && distinct.length <= 1) {
    out.u8(stringCodes.constant);
    out.text(distinct[0] ?? '');
    return;
  }
  if (distinct === undefined) {
    out.u8(stringCodes.list);
    writeBlob(out, texts, n);
    return;
  }
  out.u8(stringCodes.dictionary);
  out.uvarint(distinct.length);
  writeBlob(out, distinct, distinct.length);
  encodeWholes(out, indexes, n);
}

/** Undefined when there are too many for a dictionary. */
function findDistinct(
  texts: readonly string[],
  n: number,
  indexes: Float64Array,
): string[] | undefined {
  const known = new Map<string, number>();
  const most = Math.max(1, n >> 1);
  for (let i = 0; i < n; i++) {
    const text = texts[i]!;
    let index = known.get(text);
    if (index === undefined) {
      index = known.size;
      if (index === most) return undefined;
      known.set(text, index);
    }
    indexes[i] = index;
  }
  return [...known.keys()];
}

function writeBlob(out: ByteWriter, texts: readonly string[], n: number): void {
  reserve(n);
  blob.clear();
  for (let i = 0; i < n; i++) {
    const text = texts[i]!;
    // Three bytes for a UTF-16 unit is the most there can be.
    blob.reserve(text.length * 3);
    const bytes = blob.buffer.write(text, blob.length, 'utf8');
    lengthScratch[i] = bytes;
    blob.length += bytes;
  }
  encodeWholes(out, lengthScratch, n);
  if (blob.length >= minDeflatedBytes) {
    const small = deflateRawSync(blob.view(), { level: constants.Z_BEST_SPEED });
    if (small.length < blob.length * 0.9) {
      out.u8(deflated);
      out.uvarint(small.length);
      out.bytes(small);
      return;
    }
  }
  out.u8(plain);
  out.bytes(blob.view());
}

/** After their code was read. */
export function decodeStrings(from: ByteReader, code: number, n: number): string[] {
  switch (code) {
    case stringCodes.constant: {
      const text = from.text();
      return Array.from({ length: n }, () => text);
    }
    case stringCodes.list:
      return readBlob(from, n);
    case stringCodes.dictionary: {
      const distinct = from.uvarint();
      if (distinct > n) corrupt('a dictionary has more texts than rows');
      const texts = readBlob(from, distinct);
      reserve(n);
      decodeWholes(from, lengthScratch, 0, n);
      const rows: string[] = [];
      for (let i = 0; i < n; i++) {
        rows.push(texts[lengthScratch[i]!] ?? corrupt('a text is not in the dictionary'));
      }
      return rows;
    }
    default:
      return corrupt('strings have an unknown encoding');
  }
}

function readBlob(from: ByteReader, n: number): string[] {
  reserve(n);
  decodeWholes(from, lengthScratch, 0, n);
  let total = 0;
  for (let i = 0; i < n; i++) total += lengthScratch[i]!;
  if (total > maxBlobBytes) corrupt('texts are too long');
  const bytes = readBytes(from, total);
  // One text of it all, cut up, is much faster than a call for each; bytes and units agree in ASCII only.
  const whole = bytes.toString('latin1');
  const ascii = isAscii(bytes);
  const texts: string[] = [];
  let at = 0;
  for (let i = 0; i < n; i++) {
    const end = at + lengthScratch[i]!;
    texts.push(ascii ? whole.slice(at, end) : bytes.toString('utf8', at, end));
    at = end;
  }
  return texts;
}

function readBytes(from: ByteReader, length: number): Buffer {
  const form = from.u8();
  if (form === plain) {
    const start = from.skip(length);
    return from.bytes.subarray(start, start + length);
  }
  if (form !== deflated) corrupt('texts have an unknown form');
  const stored = from.uvarint();
  const start = from.skip(stored);
  if (length > stored * maxInflation) corrupt('texts are longer than they can be');
  const bytes = inflate(from.bytes.subarray(start, start + stored), length);
  if (bytes.length !== length) corrupt('texts are not as long as their lengths say');
  return bytes;
}

function inflate(bytes: Buffer, length: number): Buffer {
  try {
    return inflateRawSync(bytes, { maxOutputLength: Math.max(1, length) });
  } catch {
    return corrupt('texts cannot be inflated');
  }
}

function isAscii(bytes: Buffer): boolean {
  for (let i = 0; i < bytes.length; i++) if (bytes[i]! >= 0x80) return false;
  return true;
}

function reserve(n: number): void {
  if (n > lengthScratch.length) lengthScratch = new Float64Array(n);
}
