import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { KeyFilter } from './key-filter.ts';
import {
  elementKey,
  expiryKey,
  fieldHashKey,
  fieldKey,
  hashKey,
  hashOfFieldKey,
  hashOfMetaKey,
  lastKey,
  metaKey,
  orderKey,
  orderScoreKey,
  prefixEnd,
  rowHash,
  scoreOfOrderKey,
  timeOfExpiryKey,
} from './key-layout.ts';

const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const score = fc.double({ noNaN: true });
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

describe('keys', () => {
  test('order keys sort by score, then by member, and give the score back', () => {
    const check = (a: number, m: Buffer, b: number, n: Buffer): void => {
      const first = orderKey(a, m, 0, m.length);
      const second = orderKey(b, n, 0, n.length);
      const expected = a === b ? Math.sign(Buffer.compare(m, n)) : Math.sign(a < b ? -1 : 1);
      expect(compare(first, second)).toBe(expected);
      expect(scoreOfOrderKey(first)).toBe(a === 0 ? 0 : a);
      expect(orderScoreKey(a, false) <= first && first < orderScoreKey(a, true)).toBe(true);
    };
    fc.assert(fc.property(score, bytes, score, bytes, check));
    const steps = [-Infinity, -1e300, -1, -5e-324, 0, 5e-324, 1, 1e300, Infinity];
    for (const a of steps) for (const b of steps) check(a, Buffer.from('m'), b, Buffer.from('m'));
  });

  test('meta and field keys sort by hash, which is in the key', () => {
    fc.assert(
      fc.property(bytes, (key) => {
        const meta = metaKey(false, key, 0, key.length);
        const hash = rowHash(key, 0, key.length);
        expect(hashOfMetaKey(meta)).toBe(hash);
        expect(hash).toBeLessThan(2 ** 48);
        expect(meta.startsWith(hashKey(hash))).toBe(true);
        expect(meta < lastKey).toBe(true);
        const field = fieldKey('f', key, 0, key.length);
        expect(field.startsWith(fieldHashKey('f', hashOfFieldKey(field)))).toBe(true);
        expect(Buffer.from(field, 'latin1').subarray(5)).toEqual(key);
      }),
    );
  });

  test('keys of ordered tables sort as the row keys do', () => {
    fc.assert(
      fc.property(bytes, bytes, (a, b) => {
        const order = compare(metaKey(true, a, 0, a.length), metaKey(true, b, 0, b.length));
        expect(order).toBe(Math.sign(Buffer.compare(a, b)));
      }),
    );
  });

  test('the hash of a row key is on disk, and so never changes', () => {
    const hash = (text: string): number => rowHash(Buffer.from(text), 0, text.length);
    expect([hash(''), hash('a'), hash('key:000000000042')]).toMatchInlineSnapshot(`
      [
        47421574670222,
        256484060866692,
        142387885653857,
      ]
    `);
  });

  test('positions and times sort as numbers', () => {
    const position = fc.integer({ min: -(2 ** 40), max: 2 ** 40 });
    fc.assert(
      fc.property(position, position, (a, b) => {
        expect(compare(elementKey(a), elementKey(b))).toBe(Math.sign(a - b));
        const [first, second] = [Math.abs(a), Math.abs(b)];
        expect(compare(expiryKey(first, ''), expiryKey(second, ''))).toBe(
          Math.sign(first - second),
        );
        expect(timeOfExpiryKey(expiryKey(first, 'key'))).toBe(first);
      }),
    );
  });

  test('the end of a prefix is behind all keys with it, and nothing is between', () => {
    const check = (prefix: number[], end: number[]): void =>
      expect([...prefixEnd(Buffer.from(prefix))]).toEqual(end);
    check([115, 0, 7], [115, 0, 8]);
    check([115, 0, 255], [115, 1]);
    check([109, 255, 255], [110]);
  });
});

describe('key filter', () => {
  test('holds what was added however much that is, and little else', () => {
    const filter = new KeyFilter(64);
    const hash = (i: number): number => {
      const key = Buffer.from(`key ${i}`);
      return rowHash(key, 0, key.length);
    };
    for (let i = 0; i < 20_000; i++) filter.add(hash(i));
    let missed = 0;
    let wrong = 0;
    for (let i = 0; i < 20_000; i++) {
      if (!filter.mayHold(hash(i))) missed++;
      if (filter.mayHold(hash(i + 20_000))) wrong++;
    }
    expect(missed).toBe(0);
    expect(wrong).toBeLessThan(1500);
    expect(filter.bytes).toBeLessThan(20_000 * 4);
  });
});
