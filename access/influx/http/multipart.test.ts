import { describe, expect, test } from 'vitest';
import { multipartFields } from './multipart.ts';
import { maxParameters } from './parameters.ts';

const type = 'multipart/form-data; boundary=XX';
const part = (name: string, value: string): string =>
  `--XX\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const fields = (body: string, contentType = type): [string, string][] => [
  ...multipartFields(contentType, Buffer.from(body)),
];

test('fields and files by name', () => {
  const file =
    '--XX\r\ncontent-disposition: form-data; filename="name=q"; name="q"\r\n' +
    'Content-Type: text/plain\r\n\r\nshow\r\n--X databases\r\n';
  const all: [string, string][] = [
    ['db', 'd'],
    ['q', 'show\r\n--X databases'],
  ];
  const body = `${part('db', 'd')}${file}${part('db', 'e')}--XX--\r\n`;
  expect(fields(body)).toEqual(all);
  expect(fields(`preamble\r\n${body}epilogue`)).toEqual(all);
  expect(fields(body, 'multipart/form-data; charset=utf-8; boundary="XX"')).toEqual(all);
  expect(fields('--XX--')).toEqual([]);
});

describe('refused', () => {
  const boundary = 'b'.repeat(71);
  test.each([
    [
      'a boundary of more than 70 bytes',
      `--${boundary}--`,
      `multipart/form-data; boundary=${boundary}`,
    ],
    ['no boundary', '--XX--', 'multipart/form-data'],
    ['an empty boundary', '----', 'multipart/form-data; boundary=""'],
    ['no end', part('a', '1'), type],
    ['a part without a head', '--XX\r\nabc\r\n--XX--', type],
    ['a head of more than 8 kB', `${part('x'.repeat(9000), '1')}--XX--`, type],
    ['nothing', '', type],
  ])('%s', (_name, body, contentType) => {
    expect(() => fields(body, contentType)).toThrow('error parsing multipart form');
  });

  test('too many parts', () => {
    const many = (count: number): string => `${part('a', '1').repeat(count)}--XX--`;
    expect(fields(many(maxParameters))).toEqual([['a', '1']]);
    expect(() => fields(many(maxParameters + 1))).toThrow('more than 1000 parameters');
  });
});
