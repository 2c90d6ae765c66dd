import { expect, test } from 'vitest';
import { LineParser } from '../line-protocol/line-parser.ts';
import { SeriesCaches } from './series-caches.ts';

const mib = 1024 * 1024;

/** Writes one point of each key. */
function write(caches: SeriesCaches, tenant: number, keys: readonly string[]): void {
  const parser = new LineParser(caches.of(tenant));
  parser.begin({ precision: 'ns', now: 0 });
  parser.push(Buffer.from(keys.map((key) => `${key} v=1 1\n`).join('')));
  parser.finish();
  while (parser.next() !== undefined);
}

test('a tenant’s series are not those of another', () => {
  const caches = new SeriesCaches();
  write(caches, 1, ['m,a=1', 'm,a=2']);
  write(caches, 2, ['m,a=1']);
  expect([caches.of(1).current().size, caches.of(2).current().size]).toEqual([2, 1]);
});

test('of all together those go that were used longest ago', () => {
  const caches = new SeriesCaches(10 * mib);
  for (let tenant = 0; tenant < 100; tenant++) {
    write(caches, tenant, ['m']);
    caches.of(0);
  }
  // Each has a segment of 1 MiB, and a little more.
  expect(caches.size).toBeLessThan(12);
  expect(caches.of(0).current().size).toBe(1);
  expect(caches.of(99).current().size).toBe(1);
  expect(caches.of(50).current().size).toBe(0);
});

test('a parser reads for one tenant after the other', () => {
  const caches = new SeriesCaches();
  const parser = new LineParser(caches.of(0));
  const sizes: number[] = [];
  for (const tenant of [1, 2, 1]) {
    parser.begin({ precision: 'ns', now: 0, cache: caches.of(tenant) });
    parser.push(Buffer.from(`m,t=${tenant} v=1 1\nm,t=x v=1 1\n`));
    parser.finish();
    const batch = parser.next()!;
    sizes.push(batch.rows);
    expect(batch.cache).toBe(caches.of(tenant).current());
    expect(parser.next()).toBeUndefined();
  }
  expect(sizes).toEqual([2, 2, 2]);
  expect(caches.of(1).current().size).toBe(2);
});
