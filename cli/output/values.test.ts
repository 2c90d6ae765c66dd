import { expect, test } from 'vitest';
import { formatBytes, formatDuration, formatNumber, formatTime, printable } from './values.ts';

test('numbers are grouped, and keep what matters', () => {
  const check = (value: number, text: string) => expect(formatNumber(value)).toBe(text);
  check(0, '0');
  check(999, '999');
  check(1234567, '1,234,567');
  check(1.234, '1.23');
  check(12.345, '12.3');
  check(1234.56, '1,235');
  check(-1234, '-1,234');
});

test('sizes are in multiples of 1024', () => {
  const check = (value: number, text: string) => expect(formatBytes(value)).toBe(text);
  check(0, '0 B');
  check(1023, '1023 B');
  check(1024, '1 kB');
  check(1536, '1.5 kB');
  check(1024 ** 2 - 1, '1 MB');
  check(64 * 1024 ** 3, '64 GB');
});

test('durations', () => {
  const check = (micros: number, text: string) => expect(formatDuration(micros)).toBe(text);
  check(12, '12 us');
  check(1500, '1.5 ms');
  check(250_000, '250 ms');
  check(2_500_000, '2.5 s');
});

test('times are those of the reader', () => {
  expect(formatTime(new Date(2026, 0, 2, 3, 4, 5).getTime())).toBe('2026-01-02 03:04:05');
  expect(formatTime(NaN)).toBe('?');
});

test('what could command a terminal is shown instead', () => {
  expect(printable('a\u001b[2Jb\r\n')).toBe('a\\x1b[2Jb\\x0d\\x0a');
  expect(printable('\u202Eevil')).toBe('\\u202eevil');
  expect(printable('naïve ☃')).toBe('naïve ☃');
});
