import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc16, hashSlot } from './crc16.ts';

test('is CRC16/XMODEM', () => {
  const digits = Buffer.from('x123456789x');
  expect(crc16(digits, 1, 9)).toBe(0x31c3);
});

test('puts keys where Redis puts them, by their hash tag', () => {
  const check = (key: string, slot: number) => {
    const padded = Buffer.from(`{${key}}`);
    expect(hashSlot(padded, 1, Buffer.byteLength(key)), key).toBe(slot);
  };
  // As `CLUSTER KEYSLOT` of Redis 7.0.15 answers.
  check('', 0);
  check('123456789', 12739);
  check('somekey', 11058);
  check('foo{hash_tag}', 2515);
  check('{}bar', 6479);
  check('foo{}{bar}', 8363);
  check('foo{{bar}}zap', 4015);
  check('foo{bar}{zap}', 5061);
  check('a{b', 13340);
  check('}a{b}', 3300);
});

test('long input comes to the same as byte by byte', () => {
  const slowly = (bytes: Uint8Array): number => {
    let crc = 0;
    for (const byte of bytes) {
      crc ^= byte << 8;
      for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
    }
    return crc;
  };
  const input = fc.tuple(fc.uint8Array({ maxLength: 300 }), fc.nat({ max: 20 }));
  fc.assert(
    fc.property(input, ([bytes, from]) => {
      const start = Math.min(from, bytes.length);
      const length = bytes.length - start;
      expect(crc16(bytes, start, length)).toBe(slowly(bytes.subarray(start)));
    }),
  );
});

test('a tag is found in a long key, and only in the key', () => {
  const slot = (text: string): number => {
    const bytes = Buffer.from(`{x}${text}{y}`);
    return hashSlot(bytes, 3, text.length);
  };
  const long = 'k'.repeat(200);
  expect(slot(`${long}{tag}${long}`)).toBe(slot('tag'));
  expect(slot(`${long}{tag`)).not.toBe(slot('tag'));
  expect(slot(`${long}{}${long}`)).toBe(crc16(Buffer.from(`${long}{}${long}`), 0, 402) % 16384);
});
