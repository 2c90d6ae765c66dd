// Aggregates over many rows against the same worked out one by one.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Value } from '../result.ts';
import { NaiveStore } from './testing/naive-store.ts';
import { answer } from './testing/select.ts';

interface Row {
  host: string;
  time: number;
  v: number | undefined;
  i: number | undefined;
}

const row: fc.Arbitrary<Row> = fc.record({
  host: fc.constantFrom('a', 'b', 'c'),
  time: fc.integer({ min: -50, max: 150 }),
  v: fc.option(
    fc.integer({ min: -20, max: 20 }).map((n) => n / 4),
    { nil: undefined },
  ),
  i: fc.option(fc.integer({ min: -5, max: 5 }), { nil: undefined }),
});

const rows = fc
  .uniqueArray(row, { maxLength: 60, selector: ({ host, time }) => `${host} ${time}` })
  .map((list) => list.filter(({ v, i }) => v !== undefined || i !== undefined));

function storeOf(list: readonly Row[], chunkRows: number, blockRows: number): NaiveStore {
  const store = new NaiveStore({ chunkRows, blockRows });
  for (const { host, time, v, i } of list) {
    const fields = [v === undefined ? '' : `v=${v}`, i === undefined ? '' : `i=${i}i`];
    const text = fields.filter((field) => field !== '').join(',');
    store.load(`m,host=${host} ${text} ${BigInt(time) * 1_000_000_000n}`);
  }
  return store;
}

const numeric: Record<string, (values: number[]) => number> = {
  count: (values) => values.length,
  sum: (values) => values.reduce((a, b) => a + b, 0),
  mean: (values) => values.reduce((a, b) => a + b, 0) / values.length,
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  spread: (values) => Math.max(...values) - Math.min(...values),
  median: (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  },
};

/** By group and bucket, what the function gives. */
function expected(
  list: readonly Row[],
  field: 'v' | 'i',
  name: string,
  width: number,
  byHost: boolean,
  range: readonly [number, number],
): Map<string, Map<number, number>> {
  const groups = new Map<string, Map<number, number[]>>();
  for (const each of list) {
    const value = each[field];
    if (value === undefined || each.time < range[0] || each.time >= range[1]) continue;
    const group = byHost ? each.host : '';
    const bucket = Math.floor(each.time / width) * width;
    const buckets = groups.get(group) ?? new Map<number, number[]>();
    groups.set(group, buckets);
    buckets.set(bucket, [...(buckets.get(bucket) ?? []), value]);
  }
  return new Map(
    [...groups].map(([group, buckets]) => [
      group,
      new Map([...buckets].map(([bucket, values]) => [bucket, numeric[name]!(values)])),
    ]),
  );
}

test('aggregates by bucket are those of the rows', async () => {
  const query = fc.record({
    list: rows,
    field: fc.constantFrom('v' as const, 'i' as const),
    name: fc.constantFrom(...Object.keys(numeric)),
    width: fc.constantFrom(1, 7, 10, 60, 1000),
    byHost: fc.boolean(),
    descending: fc.boolean(),
    from: fc.integer({ min: -60, max: 100 }),
    length: fc.integer({ min: 1, max: 120 }),
    chunkRows: fc.integer({ min: 1, max: 9 }),
    blockRows: fc.integer({ min: 0, max: 5 }),
  });
  await fc.assert(
    fc.asyncProperty(query, async (q) => {
      const store = storeOf(q.list, q.chunkRows, q.blockRows);
      const to = q.from + q.length;
      const text =
        `SELECT ${q.name}(${q.field}) FROM m WHERE time >= ${q.from}s AND time < ${to}s ` +
        `GROUP BY time(${q.width}s)${q.byHost ? ', host' : ''} fill(none)` +
        (q.descending ? ' ORDER BY time DESC' : '');
      const series = await answer(text, store);
      const found = series.map(({ tags, rows: list }): [string, [Value, Value][]] => [
        tags?.['host'] ?? '',
        list.map(([time, value]) => [time!, value!]),
      ]);
      const wanted = expected(q.list, q.field, q.name, q.width, q.byHost, [q.from, to]);
      const sign = q.descending ? -1 : 1;
      const sorted = [...wanted]
        .sort(([a], [b]) => sign * (a < b ? -1 : 1))
        .map(([group, buckets]) => [group, [...buckets].sort(([a], [b]) => sign * (a - b))]);
      expect(found).toEqual(sorted);
      expect(store.openScans).toBe(0);
    }),
    { numRuns: 300 },
  );
});

test('a filled answer has every bucket of the range', async () => {
  await fc.assert(
    fc.asyncProperty(rows, fc.constantFrom(7, 10, 60), async (list, width) => {
      const store = storeOf(list, 4, 2);
      const text = `SELECT sum(v) FROM m WHERE time >= -20s AND time < 100s GROUP BY time(${width}s)`;
      const [series] = await answer(text, store);
      const wanted = expected(list, 'v', 'sum', width, false, [-20, 100]).get('');
      if (wanted === undefined) {
        expect(series).toBe(undefined);
        return;
      }
      const first = Math.floor(-20 / width) * width;
      const count = Math.floor(99 / width) - Math.floor(-20 / width) + 1;
      const all = Array.from({ length: count }, (_, n) => {
        const bucket = first + n * width;
        return [bucket, wanted.get(bucket) ?? null];
      });
      expect(series!.rows).toEqual(all);
    }),
    { numRuns: 100 },
  );
});

test('rows of several series come in the order of time, then of the series', async () => {
  await fc.assert(
    fc.asyncProperty(
      rows,
      fc.boolean(),
      fc.integer({ min: 1, max: 5 }),
      async (list, descending, size) => {
        const store = storeOf(list, size, 0);
        const order = descending ? ' ORDER BY time DESC' : '';
        const [series] = await answer(`SELECT v, host FROM m WHERE v > -2${order}`, store);
        const sign = descending ? -1 : 1;
        const wanted = list
          .filter(({ v }) => v !== undefined && v > -2)
          .sort((a, b) => sign * (a.time - b.time || (a.host < b.host ? -1 : 1)))
          .map(({ time, v, host }) => [time, v, host]);
        expect(series?.rows ?? []).toEqual(wanted);
      },
    ),
    { numRuns: 150 },
  );
});
