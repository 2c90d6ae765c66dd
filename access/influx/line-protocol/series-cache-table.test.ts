import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keyedHash } from '../../../universal-row/keyed-hash.ts';
import { decodeSeriesKey, encodeSeriesKey } from '../../../universal-row/series/series-key.ts';
import { LineParser } from './line-parser.ts';
import { parseWith } from './parser-fixture.ts';
import { SeriesCacheTable, SharedSeriesCache } from './series-cache-table.ts';

/** Handle of a key as a line would have it, or what is wrong with it. */
function handleOf(table: SeriesCacheTable, key: string | Buffer): number | string {
  const buf = Buffer.concat([Buffer.from('..'), Buffer.from(key), Buffer.from(' f=1')]);
  const view = new DataView(buf.buffer, buf.byteOffset, buf.length);
  const end = buf.length - 4;
  let spelling = table.find(view, 2, end);
  if (spelling < 0) spelling = table.add(buf, view, 2, end, 65_535);
  return spelling < 0 ? table.reason : table.handle(spelling);
}

function keyOf(table: SeriesCacheTable, handle: number): string {
  return table.keys(handle).toString('utf8', table.keyStart(handle), table.keyEnd(handle));
}

test('each series has one handle, however it is written', () => {
  const table = new SeriesCacheTable(0);
  const check = (key: string, handle: number, canonical: string) => {
    expect(handleOf(table, key)).toBe(handle);
    expect(keyOf(table, handle)).toBe(canonical);
  };
  check('cpu,host=a,region=eu', 0, 'cpu,host=a,region=eu');
  check('cpu,region=eu,host=a', 0, 'cpu,host=a,region=eu');
  check('cpu,host=a', 1, 'cpu,host=a');
  check('cpu', 2, 'cpu');
  check('m,b=2,a=1', 3, 'm,a=1,b=2');
  check('m,a=1,b=2', 3, 'm,a=1,b=2');
  check('a=b', 4, 'a=b');
  check('a\\,b,c\\ d=e', 5, 'a\\,b,c\\ d=e');
  expect(table.size).toBe(6);
  expect(handleOf(table, 'cpu,host=a,host=b')).toBe('duplicate tags');
  expect(handleOf(table, Buffer.from('m\xff', 'latin1'))).toBe(6);
  expect(handleOf(table, Buffer.from('m\xfe', 'latin1'))).toBe(6);
  expect(handleOf(table, 'm\ufffd')).toBe(6);
});

test('keys are as series-key.ts has them, and stay as the table grows', () => {
  const table = new SeriesCacheTable(0);
  for (let i = 0; i < 5000; i++) {
    expect(handleOf(table, `m${i % 7},t=${i},a=${'x'.repeat(i % 300)}y`)).toBe(i);
  }
  for (let i = 0; i < 5000; i++) {
    expect(handleOf(table, `m${i % 7},t=${i},a=${'x'.repeat(i % 300)}y`)).toBe(i);
    const start = table.keyStart(i);
    const end = table.keyEnd(i);
    const name = decodeSeriesKey(table.keys(i), start, end);
    expect(name).toEqual({
      measurement: `m${i % 7}`,
      tags: [
        ['a', `${'x'.repeat(i % 300)}y`],
        ['t', `${i}`],
      ],
    });
    expect(encodeSeriesKey(name).equals(table.keys(i).subarray(start, end))).toBe(true);
    expect(table.keyHash(i)).toBe(keyedHash(table.keys(i), start, end));
    expect(table.measurements[table.measurement(i)]).toBe(`m${i % 7}`);
  }
});

test('whatever a key is, its canonical form is the same series', () => {
  const piece = fc.constantFrom(
    'a',
    'b',
    'é',
    '\u{1f600}',
    '\\',
    '\\,',
    '\\ ',
    '\\=',
    ',',
    '=',
    '"',
  );
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 20 }), (pieces) => {
      const key = pieces.join('');
      // That backslash would make the space behind the key part of it.
      fc.pre(!key.endsWith('\\'));
      const table = new SeriesCacheTable(0);
      const handle = handleOf(table, key);
      if (typeof handle === 'string') return;
      const canonical = keyOf(table, handle);
      expect(handleOf(table, canonical)).toBe(handle);
      const name = decodeSeriesKey(Buffer.from(canonical), 0, Buffer.byteLength(canonical));
      expect(encodeSeriesKey(name).toString()).toBe(canonical);
      expect(table.size).toBe(1);
    }),
    { numRuns: 1000 },
  );
});

test('handles last from batch to batch and from request to request', () => {
  const cache = new SharedSeriesCache();
  const first = new LineParser(cache, { rows: 3 });
  const second = new LineParser(cache);
  const body = Array.from({ length: 10 }, (_, i) => `m,t=${i % 4} f=1 ${i}\n`).join('');
  parseWith(first, body);
  expect(cache.current().size).toBe(4);
  parseWith(second, body);
  parseWith(first, body);
  expect(cache.current().size).toBe(4);
  expect(cache.current().generation).toBe(0);
});

test('when it is full, the next batch begins another generation, and batches in use keep theirs', () => {
  const cache = new SharedSeriesCache({ bytes: 1e9, series: 5 });
  const parser = new LineParser(cache, { rows: 4 });
  const other = new LineParser(cache);
  other.begin({ now: 0 });
  other.push(Buffer.from('m,t=o f=1 1\n'));
  expect(other.next()).toBe(undefined);
  const body = Array.from({ length: 14 }, (_, i) => `m,t=${i % 7} f=1 ${i}\n`).join('');
  parser.begin({ now: 0 });
  parser.push(Buffer.from(body));
  parser.finish();
  const seen: [number, string[]][] = [];
  for (let batch = parser.next(); batch !== undefined; batch = parser.next()) {
    const [group] = batch.groups;
    expect(batch.generation).toBe(batch.cache.generation);
    const keys = [...group!.series.subarray(0, group!.rows)].map((handle) =>
      keyOf(batch.cache as SeriesCacheTable, handle),
    );
    seen.push([batch.generation, keys]);
  }
  expect(seen).toEqual([
    [0, ['m,t=0', 'm,t=1', 'm,t=2', 'm,t=3']],
    [1, ['m,t=4', 'm,t=5', 'm,t=6', 'm,t=0']],
    [1, ['m,t=1', 'm,t=2', 'm,t=3', 'm,t=4']],
    [2, ['m,t=5', 'm,t=6']],
  ]);
  other.finish();
  const late = other.next()!;
  expect(late.generation).toBe(0);
  expect(keyOf(late.cache as SeriesCacheTable, late.groups[0]!.series[0]!)).toBe('m,t=o');
});

test('it takes no more memory than it may', () => {
  const cache = new SharedSeriesCache({ bytes: 3 * 1024 * 1024, series: 1e9 });
  const parser = new LineParser(cache);
  const bad = Array.from({ length: 30_000 }, (_, i) => `m,t=${'x'.repeat(200)}${i} f\n`).join('');
  parseWith(parser, bad);
  expect(cache.current().bytes).toBeLessThan(3.1 * 1024 * 1024);
  expect(cache.current().generation).toBeGreaterThan(1);
});
