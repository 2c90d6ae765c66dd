import { expect, test } from 'vitest';
import { keyedHash } from './keyed-hash.ts';
import { collidingKeys } from './testing/colliding-keys.ts';
import { hashKey } from './series/series-key.ts';

const distinct = (
  keys: readonly Buffer[],
  hash: (key: Buffer, start: number, end: number) => number,
) => new Set(keys.map((key) => hash(key, 0, key.length))).size;

test('keys made to collide by FNV do not by the keyed hash', () => {
  const keys = collidingKeys('k', 10);
  expect(distinct(keys, hashKey)).toBe(1);
  // By chance two of 1,024 are equal once in 8,000 runs.
  expect(distinct(keys, keyedHash)).toBeGreaterThanOrEqual(1022);
});

test('keys as the Thue-Morse sequence do not collide: no multiplier saves a polynomial from them', () => {
  let even = Buffer.from('a');
  let odd = Buffer.from('b');
  for (let i = 0; i < 10; i++)
    [even, odd] = [Buffer.concat([even, odd]), Buffer.concat([odd, even])];
  const keys = Array.from({ length: 64 }, (_, i) =>
    Buffer.concat(Array.from({ length: 6 }, (_, bit) => ((i >> bit) & 1 ? odd : even))),
  );
  expect(distinct(keys, keyedHash)).toBe(64);
});

test('the hash is of the bytes, wherever they lie', () => {
  for (let length = 0; length < 12; length++) {
    const key = Buffer.from('abcdefghijkl').subarray(0, length);
    const elsewhere = Buffer.concat([Buffer.from('..'), key, Buffer.from('..')]);
    expect(keyedHash(elsewhere, 2, 2 + length)).toBe(keyedHash(key, 0, length));
  }
});
