import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { WorkCounter } from '../../../test/support/counted-work.ts';
import { backslash, hash, isBlank, newline } from './characters.ts';
import { lineError } from './line-errors.ts';
import { LineParser } from './line-parser.ts';
import { parseBody } from './parser-fixture.ts';
import { SharedSeriesCache } from './series-cache-table.ts';
import { TimeReader } from './timestamp.ts';

const pieces = fc.constantFrom(
  ...[
    'm',
    'cpu,host=a',
    ',',
    '=',
    ' ',
    '"',
    '\\',
    '\n',
    '\r',
    '\t',
    '\0',
    '#',
    ',t=v',
    ' f=1',
    ',g=2i',
  ],
  ...['h="x', '"', ' 12', '-', '.', 'e5', 't', 'true', 'u', '1', '99999999999999999999', ',time=1'],
  ...[
    'm f=1\n',
    'm,t=v f="a b",g=t 7\n',
    '\xff',
    'é',
    '\\\n',
    '\\"',
    ' \\=1',
    'm,b=1,a=2 f=1.5 9\n',
  ],
);
const bodies = fc.oneof(
  fc.array(pieces, { maxLength: 40 }).map((list) => Buffer.from(list.join(''), 'latin1')),
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
);

test('any bytes give the same points and errors, however they come in pieces', () => {
  fc.assert(
    fc.property(bodies, fc.array(fc.nat(), { maxLength: 5 }), (body, at) => {
      const whole = parseBody(body);
      const cuts = at.map((n) => n % (body.length + 1)).sort((a, b) => a - b);
      const every = Array.from({ length: body.length }, (_, i) => i);
      for (const where of [cuts, every]) {
        const { batches: _, ...parts } = parseBody(body, { cuts: where, limits: { rows: 2 } });
        expect(parts).toMatchObject({
          goodLines: whole.goodLines,
          badLines: whole.badLines,
          errors: whole.errors,
          dropped: whole.dropped,
          dropError: whole.dropError,
        });
        expect(parts.points.length).toBe(whole.points.length);
      }
      expect(whole.points.length).toBe(whole.goodLines - whole.dropped);
      expect(whole.errors.length).toBe(whole.badLines);
    }),
    { numRuns: 1500 },
  );
});

test('what is wrong can be said of every line that is not stored, and of no other', () => {
  const time = new TimeReader();
  const line = bodies.map((body) => Buffer.from(body.filter((c) => c !== newline)));
  fc.assert(
    fc.property(line, (bytes) => {
      let start = 0;
      while (start < bytes.length && isBlank(bytes[start]!)) start++;
      fc.pre(start < bytes.length && bytes[start] !== hash);
      const buf = Buffer.concat([bytes, Buffer.from([newline])]);
      // A backslash would make the newline part of the line.
      const end = bytes.at(-1) === backslash ? buf.length : bytes.length;
      const error = lineError(
        Buffer.concat([buf, Buffer.from([newline])]),
        start,
        end,
        65_535,
        time,
      );
      expect(parseBody(buf).goodLines).toBe(error === '' ? 1 : 0);
    }),
    { numRuns: 3000 },
  );
});

test('good lines survive among bad ones', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 12 })), (list) => {
      // No quotes and backslashes, which may take the next line with them.
      const bad = list.map((bytes) =>
        Buffer.from(bytes)
          .toString('latin1')
          .replace(/["\\\n]/g, ''),
      );
      const body = bad.map((line, i) => `${line}\ngood,n=${i} f=${i}i ${i}\n`).join('');
      const { points } = parseBody(body);
      const good = points.filter((p) => p.measurement === 'good' && p.tags.length === 1);
      expect(good.length).toBe(bad.length);
    }),
    { numRuns: 300 },
  );
});

describe('hostile bodies cost no more than their size', () => {
  let bytes = 0;
  const lines = (line: (i: number) => string): string => {
    const list: string[] = [];
    for (let i = 0, size = 0; size < bytes; i++) {
      const text = `${line(i)}\n`;
      size += text.length;
      list.push(text);
    }
    return list.join('');
  };
  const wide = (): string =>
    `m ${Array.from({ length: bytes >> 5 }, (_, i) => `f${i}=1`).join(',')}\n`;
  const table: [string, () => string][] = [
    ['an open quote', () => `m f="${'x\n'.repeat(bytes / 2)}`],
    ['open quotes after mistakes', () => lines(() => 'm x f="y')],
    ['quotes and equals signs', () => 'm ' + '="'.repeat(bytes / 2)],
    ['backslashes', () => `m${'\\'.repeat(bytes)}\n`],
    ['escaped newlines', () => 'm' + '\\\n'.repeat(bytes / 2)],
    ['bad lines of a measurement with many fields', () => wide() + lines(() => 'm f0=1,f9=x')],
    ['good ones', () => wide() + lines(() => 'm f9=1')],
    ['a field a line', () => lines((i) => `m f${i}=1`)],
    ['a bad field a line', () => lines((i) => `m f${i}=x`)],
    ['a measurement a line', () => lines((i) => `m${i} f=1`)],
    ['a series a line', () => lines((i) => `m,t=${i} f=1`)],
    ['a bad series a line', () => lines((i) => `m,t=${i} f`)],
    ['types that change', () => lines((i) => `m f=${['1', '1i', 't', '"x"', '1u'][i % 5]}`)],
    ['times that jump', () => lines((i) => `m f=1 ${(i % 2) * 10 ** 18}`)],
    ['commas', () => `m,${','.repeat(bytes)}`],
    ['tags', () => lines((i) => `m${',t=v'.repeat(i % 5000)} f=1`)],
    ['digits', () => `m f=${'1'.repeat(bytes)}e\n`],
    ['time digits', () => `m f=1 ${'0'.repeat(bytes)}\n`],
    ['newlines', () => '\n'.repeat(bytes)],
    ['a comment', () => '#'.repeat(bytes)],
  ];

  const counter = new WorkCounter();
  afterAll(() => counter.close());

  function parse(body: Buffer, size: number): void {
    const parser = new LineParser(new SharedSeriesCache());
    parser.begin({ now: 0 });
    for (let at = 0; at < body.length; at += size) {
      parser.push(body.subarray(at, at + size));
      while (parser.next() !== undefined);
    }
    parser.finish();
    while (parser.next() !== undefined);
  }

  test.each(table)('%s', (_, make) => {
    const work = (length: number, size: number): number => {
      bytes = length;
      const body = Buffer.from(make());
      return counter.count(() => parse(body, size));
    };
    // In pieces, and whole.
    for (const size of [4096, 1_000_000]) {
      // Four times the bytes, four times the work; sixteen times where it is quadratic.
      expect(work(65_536, size) / work(16_384, size)).toBeLessThan(6);
    }
  });
});
