import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bitmapCommands } from '../../access/redis/commands/bitmap.ts';
import { keysCommands } from '../../access/redis/commands/keys.ts';
import { listCommands } from '../../access/redis/commands/list.ts';
import { stringCommands } from '../../access/redis/commands/string.ts';
import { countBits, firstOtherByte } from '../../universal-row/transforms/redis/bits.ts';
import { oneOf, several, testDifferential, words } from './differential.ts';
import { testTranscript } from './transcript.ts';

const specs = [...bitmapCommands, ...stringCommands, ...keysCommands, ...listCommands];

testTranscript(`${import.meta.dirname}/testdata/bitmap.txt`, specs);

const key = oneOf('a', 'b', 'c', 'd', 'l');
const offset = fc.oneof(fc.nat(100), fc.nat(2000)).map(String);
const bound = fc.oneof(fc.integer({ min: -40, max: 40 }), fc.integer({ min: -999, max: 999 }));
const end = bound.map(String);
const unit = oneOf('', 'BIT', 'BYTE');
const number = fc
  .oneof(
    fc.integer({ min: -300, max: 300 }),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n),
  )
  .map(String);
const type = fc
  .oneof(fc.integer({ min: 1, max: 63 }), fc.constantFrom(8, 16, 32))
  .chain((bits) => oneOf(`u${bits}`, `i${bits + 1}`));
const place = fc.oneof(
  offset,
  offset,
  fc.nat(20).map((n) => `#${n}`),
);
const operation = fc.oneof(
  words('GET', type, place),
  words('SET', type, place, number),
  words('INCRBY', type, place, number),
  words('OVERFLOW', oneOf('WRAP', 'SAT', 'FAIL')),
);
const bytes = fc
  .array(oneOf('\\xff', '\\x00', 'a', '\\x0f', '\\xff\\xff\\xff\\xff', '\\x00\\x00\\x00\\x00'), {
    maxLength: 60,
  })
  .map((all) => `"${all.join('')}"`);

testDifferential(
  specs,
  fc.oneof(
    words('SET', key, bytes),
    words('SETBIT', key, offset, oneOf('0', '1')),
    words('GETBIT', key, offset),
    words('BITCOUNT', key),
    words('BITCOUNT', key, end, end, unit),
    words('BITPOS', key, oneOf('0', '1')),
    words('BITPOS', key, oneOf('0', '1'), end),
    words('BITPOS', key, oneOf('0', '1'), end, end, unit),
    words('BITOP', oneOf('AND', 'OR', 'XOR'), key, several(key)),
    words('BITOP NOT', key, key),
    words('BITFIELD', key, several(operation, 6)),
    words('BITFIELD_RO', key, several(words('GET', type, place))),
    words('GET', key),
    words('RPUSH l x'),
    words('DEL', key),
  ),
);

describe('words of 32 bits', () => {
  const arbitrary = fc.tuple(fc.uint8Array({ maxLength: 600 }), fc.nat(9), fc.boolean());

  test('count as the bytes do', () => {
    fc.assert(
      fc.property(arbitrary, ([bytes, shift]) => {
        const b = Buffer.concat([Buffer.alloc(shift, 255), bytes, Buffer.alloc(9, 255)]);
        let sum = 0;
        for (const byte of bytes) sum += byte.toString(2).replaceAll('0', '').length;
        expect(countBits(b, shift, bytes.length)).toBe(sum);
      }),
    );
  });

  test('the first other byte is found wherever it is', () => {
    fc.assert(
      fc.property(fc.nat(300), fc.nat(300), fc.nat(9), fc.boolean(), (at, more, shift, ones) => {
        const skip = ones ? 255 : 0;
        const b = Buffer.alloc(shift + at + more + 9, 77);
        b.fill(skip, shift, shift + at);
        expect(firstOtherByte(b, shift, at + more, skip)).toBe(at);
      }),
    );
  });
});
