import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { plainFloat, TextBuffer } from './text-buffer.ts';

function written(write: (out: TextBuffer) => void): string {
  const out = new TextBuffer(1);
  write(out);
  return out.take().toString();
}

describe('numbers', () => {
  const check = (value: number, expected: string) =>
    expect(written((out) => out.number(value))).toBe(expected);

  test('are printed as by Go', () => {
    check(0, '0');
    check(-0, '-0');
    check(71.3, '71.3');
    check(66.78947368421052, '66.78947368421052');
    check(9007199254740991, '9007199254740991');
    check(-9007199254740991, '-9007199254740991');
    check(1e20, '100000000000000000000');
    check(1.2345678901234568e20, '123456789012345680000');
    check(1e21, '1e+21');
    check(1e-6, '0.000001');
    check(1e-7, '1e-7');
    check(-1.5e-9, '-1.5e-9');
    check(Number.NaN, 'null');
    check(Number.NEGATIVE_INFINITY, 'null');
  });

  test('any finite one is read back as itself', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = written((out) => out.number(value));
        expect(Object.is(Number(text), value)).toBe(true);
        expect(/e/.test(text)).toBe(
          value !== 0 && (Math.abs(value) < 1e-6 || Math.abs(value) >= 1e21),
        );
      }),
    );
  });

  test('in CSV have no exponent, and the same digits', () => {
    expect(plainFloat(1e-7)).toBe('0.0000001');
    expect(plainFloat(-1.25e-9)).toBe('-0.00000000125');
    expect(plainFloat(1e21)).toBe('1000000000000000000000');
    expect(plainFloat(-1.2345e22)).toBe('-12345000000000000000000');
    expect(plainFloat(-0)).toBe('-0');
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = plainFloat(value);
        expect(text).toMatch(/^-?\d+(\.\d+)?$/);
        expect(Object.is(Number(text), value)).toBe(true);
      }),
    );
  });
});

describe('strings', () => {
  const check = (text: string, expected: string) =>
    expect(written((out) => out.quoted(text))).toBe(expected);

  test('are escaped as by Go', () => {
    check('', '""');
    check('plain text', '"plain text"');
    check('a"b\\c', '"a\\"b\\\\c"');
    check('<a> & b', '"\\u003ca\\u003e \\u0026 b"');
    check('\n\r\t\b\f\0', '"\\n\\r\\t\\u0008\\u000c\\u0000"');
    check('\x7f\u0080', '"\x7f\u0080"');
    check('\u2028\u2029', '"\\u2028\\u2029"');
    check('é€😀', '"é€😀"');
    check('\ud800x', '"\\ufffdx"');
    check('\ufffd', '"\\ufffd"');
  });

  test('any well-formed one is read back as itself', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        expect(JSON.parse(written((out) => out.quoted(text)))).toBe(text);
      }),
    );
  });
});

test('grows as it must, and begins anew when its bytes are taken', () => {
  const out = new TextBuffer(4);
  let expected = '';
  for (let i = 0; i < 2000; i++) {
    out.integer(i);
    out.byte(0x2c);
    out.ascii('x'.repeat(i % 70));
    expected += `${i},${'x'.repeat(i % 70)}`;
  }
  const first = out.take();
  out.ascii('next');
  expect(first.toString()).toBe(expected);
  expect(out.take().toString()).toBe('next');
  expect(out.takes).toBe(2);
});
