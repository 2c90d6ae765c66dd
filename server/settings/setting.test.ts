import { expect, test } from 'vitest';
import { formatSize, parseSize } from './setting.ts';
import { didYouMean, editDistance } from './suggest.ts';

test('sizes follow the notation of Redis', () => {
  const check = (text: string, expected: number) => expect(parseSize(text), text).toBe(expected);
  check('0', 0);
  check('100', 100);
  check('1k', 1000);
  check('1kb', 1024);
  check('2MB', 2 * 1024 ** 2);
  check('2MiB', 2 * 1024 ** 2);
  check('1g', 1e9);
  check('1gb', 1024 ** 3);
  for (const wrong of ['', '-1', '1.5mb', 'mb', '1tb', '1 mb', '9999999999999999']) {
    check(wrong, NaN);
  }
});

test('a size is shown in the largest unit that divides it', () => {
  expect(formatSize(64 * 1024 ** 2)).toBe('64mb');
  expect(formatSize(1025)).toBe('1025');
  expect(formatSize(0)).toBe('0');
});

test('edit distance', () => {
  const check = (a: string, b: string, expected: number) =>
    expect(editDistance(a, b)).toBe(expected);
  check('', '', 0);
  check('', 'abc', 3);
  check('port', 'prot', 1);
  check('kitten', 'sitting', 3);
});

test('only what is near is suggested', () => {
  expect(didYouMean('strat', ['start', 'table'])).toBe(' Did you mean start?');
  expect(didYouMean('banana', ['start', 'table'])).toBe('');
});
