import fc from 'fast-check';
import { expect, test } from 'vitest';
import { shortDecimal } from './short-decimal.ts';

const parse = (text: string): number => {
  const bytes = Buffer.from(`<${text}>`);
  return shortDecimal(bytes, 1, bytes.length - 2);
};

test('reads what short decimals say', () => {
  const check = (text: string, expected: number) => expect(parse(text)).toBe(expected);
  check('0', 0);
  check('-0', -0);
  check('000000000012', 12);
  check('+5', 5);
  check('-5.94971599E8', -594971599);
  check('123456.0', 123456);
  check('1.', 1);
  check('.5', 0.5);
  check('1e22', 1e22);
  check('0.1', 0.1);
  check('123456789012345', 123456789012345);
  check('1.5e-7', 1.5e-7);
});

test.each(['', '-', '+', '.', '-.', 'e5', '1e', '1e+', '1e1x', '1x', '1..2', '1.2.3', ' 1', '1 '])(
  'leaves %j alone',
  (text) => expect(parse(text)).toBeNaN(),
);

test.each(['inf', '0x10', '1234567890123456', '1e23', '1e-23', '1e1000', 'nan', '--1', '1e--1'])(
  'leaves %j to others',
  (text) => expect(parse(text)).toBeNaN(),
);

test('what it reads is rounded as Number rounds it', () => {
  const exponent = fc.integer({ min: -30, max: 30 });
  const mantissa = fc.integer({ min: -(10 ** 15), max: 10 ** 15 });
  const places = fc.integer({ min: 0, max: 16 });
  let read = 0;
  fc.assert(
    fc.property(mantissa, places, exponent, (m, dot, e) => {
      const digits = String(Math.abs(m)).padStart(dot + 1, '0');
      const point = digits.length - dot;
      const text = `${m < 0 ? '-' : ''}${digits.slice(0, point)}.${digits.slice(point)}e${e}`;
      const value = parse(text);
      if (Number.isNaN(value)) return;
      read++;
      expect(value).toBe(Number(text));
    }),
    { numRuns: 5000 },
  );
  expect(read).toBeGreaterThan(1000);
});
