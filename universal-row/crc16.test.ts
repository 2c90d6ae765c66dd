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
