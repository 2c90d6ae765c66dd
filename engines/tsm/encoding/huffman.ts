// Canonical Huffman codes of at most `maxCodeBits` bits for up to `maxSymbols` symbols. Symbols of one
// length have codes ascending with them; the first bit of a code is the lowest in the stream.
//
// On disk a code is its lengths: u8 symbols | nibbles, the low one of a byte first. A nibble 1..11 is the
// length of the next symbol; 0 stands for unused symbols, as many as the nibble after it says, and one.

import type { ByteReader } from './byte-reader.ts';
import type { ByteWriter } from './byte-writer.ts';
import { corrupt } from './damage.ts';

export const maxSymbols = 128;
export const maxCodeBits = 11;
const allCodes = 1 << maxCodeBits;

const order = new Uint32Array(maxSymbols);
const weight = new Float64Array(2 * maxSymbols);
const parent = new Uint16Array(2 * maxSymbols);
const depth = new Uint16Array(2 * maxSymbols);

/**
 * Sets the lengths for symbols that occur so often, below 2^24 times. A lone symbol gets length 1, though
 * its code takes no bits. False in the odd case that no code within the limit was found.
 */
export function findCodeLengths(counts: Uint32Array, lengths: Uint8Array): boolean {
  lengths.fill(0);
  let used = 0;
  for (let s = 0; s < maxSymbols; s++) {
    if (counts[s]! > 0) order[used++] = counts[s]! * maxSymbols + s;
  }
  order.subarray(0, used).sort();
  if (used > 1) buildTree(used);
  else depth[0] = 1;
  const found = used < 2 || limitDepth(used);
  for (let i = 0; i < used; i++) lengths[order[i]! % maxSymbols] = depth[i]!;
  return found;
}

/** Leaves are [0, used), the rarest first; inner nodes follow in the order they are made. */
function buildTree(used: number): void {
  for (let i = 0; i < used; i++) weight[i] = Math.floor(order[i]! / maxSymbols);
  const nodes = 2 * used - 1;
  let leaf = 0;
  let inner = used;
  for (let made = used; made < nodes; made++) {
    let sum = 0;
    for (let child = 0; child < 2; child++) {
      const takeLeaf = leaf < used && (inner >= made || weight[leaf]! <= weight[inner]!);
      const node = takeLeaf ? leaf++ : inner++;
      sum += weight[node]!;
      parent[node] = made;
    }
    weight[made] = sum;
  }
  depth[nodes - 1] = 0;
  for (let i = nodes - 2; i >= 0; i--) depth[i] = depth[parent[i]!]! + 1;
}

/** Makes codes that are too long shorter, at the cost of others, until all bit patterns are used up. */
function limitDepth(used: number): boolean {
  let taken = 0;
  for (let i = 0; i < used; i++) {
    if (depth[i]! > maxCodeBits) depth[i] = maxCodeBits;
    taken += allCodes >>> depth[i]!;
  }
  // The rarest come first, so the first that can be longer is the cheapest to make so.
  for (let i = 0; taken > allCodes && i < used; ) {
    if (depth[i]! >= maxCodeBits) {
      i++;
      continue;
    }
    depth[i]!++;
    taken -= allCodes >>> depth[i]!;
  }
  for (let i = used - 1; taken < allCodes && i >= 0; i--) {
    while (depth[i]! > 1 && taken + (allCodes >>> depth[i]!) <= allCodes) {
      taken += allCodes >>> depth[i]!;
      depth[i]!--;
    }
  }
  return taken === allCodes;
}

const countOfLength = new Uint16Array(maxCodeBits + 1);
const nextCode = new Uint16Array(maxCodeBits + 2);

/** Assigns the codes of symbols. Returns the greatest length. */
function assignCodes(lengths: Uint8Array, codes: Uint16Array): number {
  countOfLength.fill(0);
  for (let s = 0; s < maxSymbols; s++) countOfLength[lengths[s]!]!++;
  countOfLength[0] = 0;
  let code = 0;
  let longest = 0;
  for (let length = 1; length <= maxCodeBits; length++) {
    code = (code + countOfLength[length - 1]!) << 1;
    nextCode[length] = code;
    if (countOfLength[length]! > 0) longest = length;
  }
  for (let s = 0; s < maxSymbols; s++) {
    const length = lengths[s]!;
    if (length > 0) codes[s] = reversed(nextCode[length]!++, length);
  }
  return longest;
}

function reversed(code: number, length: number): number {
  let r = 0;
  for (let i = 0, c = code; i < length; i++, c >>>= 1) r = (r << 1) | (c & 1);
  return r;
}

export function encoderCodes(lengths: Uint8Array, codes: Uint16Array): void {
  assignCodes(lengths, codes);
}

const decoderCodes = new Uint16Array(maxSymbols);

/**
 * Fills the decoding table, indexed by as many of the next bits of the stream as this returns: the
 * symbol above the four bits of its code's length. Rejects bytes that are no code.
 */
export function fillDecodeTable(lengths: Uint8Array, table: Uint16Array): number {
  let taken = 0;
  let used = 0;
  let last = 0;
  for (let s = 0; s < maxSymbols; s++) {
    if (lengths[s] === 0) continue;
    taken += allCodes >>> lengths[s]!;
    used++;
    last = s;
  }
  if (used === 1) {
    table[0] = last << 4;
    return 0;
  }
  if (taken !== allCodes) corrupt('a code is not complete');
  const longest = assignCodes(lengths, decoderCodes);
  const size = 1 << longest;
  for (let s = 0; s < maxSymbols; s++) {
    const length = lengths[s]!;
    if (length === 0) continue;
    const entry = (s << 4) | length;
    for (let i = decoderCodes[s]!; i < size; i += 1 << length) table[i] = entry;
  }
  return longest;
}

export function writeCodeLengths(out: ByteWriter, lengths: Uint8Array): void {
  let symbols = maxSymbols;
  while (lengths[symbols - 1] === 0) symbols--;
  out.u8(symbols);
  let half = -1;
  const nibble = (value: number) => {
    if (half < 0) half = value;
    else {
      out.u8(half | (value << 4));
      half = -1;
    }
  };
  for (let s = 0; s < symbols; s++) {
    nibble(lengths[s]!);
    if (lengths[s]! > 0) continue;
    let more = 0;
    while (more < 15 && lengths[s + 1] === 0) {
      more++;
      s++;
    }
    nibble(more);
  }
  if (half >= 0) nibble(0);
}

export function readCodeLengths(from: ByteReader, lengths: Uint8Array): void {
  lengths.fill(0);
  const symbols = from.u8();
  if (symbols === 0 || symbols > maxSymbols) corrupt('a code has no such number of symbols');
  let byte = -1;
  const nibble = () => {
    if (byte >= 0) {
      const high = byte >>> 4;
      byte = -1;
      return high;
    }
    byte = from.u8();
    return byte & 15;
  };
  for (let s = 0; s < symbols; s++) {
    const length = nibble();
    if (length > maxCodeBits) corrupt('a code is too long');
    if (length === 0) s += nibble();
    else lengths[s] = length;
  }
}
