import { expect, test } from 'vitest';
import { ReplyReader } from './reply-reader.ts';

const stream = [
  '+OK\r\n',
  ':1\r\n',
  '$-1\r\n',
  '-TRYAGAIN RU limit: tenant=a kind=write need=1 retry_after_ms=3\r\n',
  '$5\r\nab\r\nc\r\n',
  '$0\r\n\r\n',
  '*0\r\n',
  '*-1\r\n',
  '*3\r\n:1\r\n$2\r\nxy\r\n*2\r\n+a\r\n+b\r\n',
  '*2\r\n*1\r\n:1\r\n*0\r\n',
  '_\r\n',
].join('');

test.each([1, 2, 3, 7, 1000])('finds the ends of replies in pieces of %i bytes', (size) => {
  const errors: (string | undefined)[] = [];
  const reader = new ReplyReader((error) => errors.push(error));
  const bytes = Buffer.from(stream);
  for (let at = 0; at < bytes.length; at += size) reader.read(bytes.subarray(at, at + size));
  expect(errors).toHaveLength(11);
  expect(errors.filter((error) => error !== undefined)).toEqual([
    'TRYAGAIN RU limit: tenant=a kind=write need=1 retry_after_ms=3',
  ]);
  expect(errors[3]).toBeDefined();
});
