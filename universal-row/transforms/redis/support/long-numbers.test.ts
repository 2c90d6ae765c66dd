// Numbers of many digits, which would take minutes were they worked out.

import { expect, test } from 'vitest';
import { Arguments } from '../../../arguments.ts';
import { parseLongDouble } from './long-double.ts';
import { parseScanCursor } from './scan-options.ts';

function cursorOf(text: string): number {
  const args = new Arguments();
  args.buf = Buffer.from(text);
  args.count = 1;
  args.lens[0] = text.length;
  return parseScanCursor(args, 0);
}

test('a cursor of millions of digits is refused unread, but for zeros before it', () => {
  expect(() => cursorOf('9'.repeat(1 << 24))).toThrow('invalid cursor');
  expect(cursorOf(`+${'0'.repeat(1 << 20)}17`)).toBe(17);
  expect(cursorOf('0'.repeat(20))).toBe(0);
  expect(() => cursorOf('18446744073709551616')).toThrow('invalid cursor');
});

test('digits that end in something else are no number, and are read once', () => {
  for (const text of [`${'1'.repeat(5000)}y`, `0x${'1'.repeat(5000)}y`]) {
    const bytes = Buffer.from(text);
    for (let n = 0; n < 2000; n++) expect(parseLongDouble(bytes, 0, bytes.length)).toBeUndefined();
  }
});

test.each([
  ['1.', 1n],
  ['.5e1', 5n],
  ['0x1F.8p1', 63n],
])('%s is a number', (text, value) => {
  const bytes = Buffer.from(text);
  const found = parseLongDouble(bytes, 0, bytes.length)!;
  expect(found.exponent >= 0 ? found.mantissa << BigInt(found.exponent) : found.mantissa).toBe(
    found.exponent >= 0 ? value : value << BigInt(-found.exponent),
  );
});
