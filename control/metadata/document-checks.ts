// Limits of documents that every store can keep, checked in one place before anything is sent.

import type { DocumentWrite } from './document-store.ts';

/** Bytes of all bodies of one write, as JSON. */
export const maxWriteBytes = 8 * 1024 * 1024;
const maxIdBytes = 768;

/** The bodies as JSON, in the order of the writes; undefined removes. Throws a `RangeError`. */
export function encodeBodies(writes: readonly DocumentWrite[]): (string | undefined)[] {
  const seen = new Set<string>();
  let bytes = 0;
  return writes.map(({ collection, id, body, expected }) => {
    checkName(collection, id);
    if (!Number.isSafeInteger(expected) || expected < 0) {
      throw new RangeError(`${collection}/${id} cannot be expected at revision ${expected}`);
    }
    const name = `${collection}/${id}`;
    if (seen.has(name)) throw new RangeError(`${name} comes twice in one write`);
    seen.add(name);
    if (body === undefined) return undefined;
    const text = JSON.stringify(body);
    bytes += Buffer.byteLength(text);
    if (bytes > maxWriteBytes) {
      throw new RangeError(`a write of metadata can have ${maxWriteBytes} bytes, and no more`);
    }
    return text;
  });
}

export function checkName(collection: string, id: string): void {
  checkCollection(collection);
  if (!isText(id) || Buffer.byteLength(id) > maxIdBytes) {
    throw new RangeError(
      `an id of ${collection} must be well-formed text of 1 to ${maxIdBytes} bytes without a zero byte`,
    );
  }
}

export function checkCollection(collection: string): void {
  if (!/^[A-Za-z][\w.-]{0,63}$/.test(collection)) {
    throw new RangeError('a collection is a letter and up to 63 letters, digits, dots and dashes');
  }
}

function isText(id: string): boolean {
  // A lone surrogate would become another character on its way.
  return id !== '' && !id.includes('\0') && Buffer.from(id).toString() === id;
}

/** Order by UTF-8 bytes, which differs from that of JavaScript's strings: surrogates come last. */
export function byBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return x < firstSurrogate || y < firstSurrogate ? x - y : ranked(x) - ranked(y);
  }
  return a.length - b.length;
}

const firstSurrogate = 0xd800;

function ranked(unit: number): number {
  return unit <= 0xdfff ? unit + 0x10000 : unit;
}
