import fc from 'fast-check';
import { expect, test } from 'vitest';
import { markWide, maxParamsLength, readQueryParams } from './query-parameters.ts';

test('integers beyond a double are bigints, wherever they stand, and texts are left alone', () => {
  expect(readQueryParams('{"a":9007199254740993,"b":[-9007199254740993],"c":1e3}')).toEqual({
    a: 9007199254740993n,
    b: [-9007199254740993n],
    c: 1000,
  });
  expect(readQueryParams('{"a\\"9007199254740993":"9007199254740993\\\\","b":12.5e-3}')).toEqual({
    'a"9007199254740993': '9007199254740993\\',
    b: 0.0125,
  });
});

test('any JSON is what JSON.parse makes of it', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const text = JSON.stringify(value);
      const plain = (_key: string, each: unknown): unknown =>
        typeof each === 'bigint' ? Number(each) : each;
      expect(JSON.stringify(readQueryParams(text), plain)).toBe(text);
    }),
  );
});

test('a text is refused by its length, and read once', () => {
  expect(() => readQueryParams(' '.repeat(maxParamsLength + 1))).toThrow(
    `error parsing query parameters: more than ${maxParamsLength} characters`,
  );
  for (const unit of ['"', '\\"', '"\\', '-', '1-', '1234567890123456 ']) {
    const text = new CountedText(unit.repeat(2000));
    markWide(text as unknown as string);
    expect(text.looks, unit).toBeLessThan(4 * text.length);
  }
});

/** A string that counts how often a character is looked at. */
class CountedText {
  looks = 0;
  readonly length: number;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
    this.length = text.length;
  }

  charCodeAt(at: number): number {
    this.looks++;
    return this.#text.charCodeAt(at);
  }

  slice(from: number, to?: number): string {
    return this.#text.slice(from, to);
  }
}
