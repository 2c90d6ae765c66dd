import { expect, test } from 'vitest';
import { emptyBytes } from '../../universal-row/bytes.ts';
import { collidingKeys } from '../../universal-row/testing/colliding-keys.ts';
import { Arena } from './arena.ts';
import { ByteMap } from './byte-map.ts';

test('keys that a client has made to collide are found by a comparison each', () => {
  const arena = new Arena();
  let looked = 0;
  const buffer = arena.buffer.bind(arena);
  arena.buffer = (address) => {
    looked++;
    return buffer(address);
  };
  // Whether keys collide under FNV depends on eight bits of its basis: one of these first bytes finds them.
  const made = collidingKeys('a', 8);
  let most = 0;
  for (let first = 0; first < 256; first++) {
    const map = new ByteMap(arena, false);
    const keys = made.map((key) => Buffer.from([first, ...key.subarray(1)]));
    for (const key of keys) {
      map.insert(map.hash(key, 0, key.length), 1, key, 0, key.length, emptyBytes, 0, 0);
    }
    looked = 0;
    const found = keys.filter((key) => map.find(key, 0, key.length, map.hash(key, 0, key.length)));
    expect(found).toHaveLength(keys.length);
    most = Math.max(most, looked / keys.length);
  }
  // Two keys of 256 have one hash once in 130,000 maps.
  expect(most).toBeLessThan(1.1);
});
