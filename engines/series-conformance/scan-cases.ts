// Scans: which rows, in which order, of which series.

import assert from 'node:assert/strict';
import type { SeriesFilter, ValueBound } from '../../contracts/series-store.ts';
import { answeredCase, type AnsweredCase, type SeriesCase } from './case.ts';
import {
  bySeries,
  day,
  inRange,
  merged,
  type Point,
  point,
  range,
  second,
  sorted,
  withFields,
} from './points.ts';
import type { ReadOptions } from './view.ts';

/** Several series over several shards, with holes, more than one block long. */
const hosts = ['a', 'b', 'c', ''];
const varied: readonly Point[] = hosts.flatMap((host, h) =>
  range(900).map((i) =>
    point(
      host === '' ? 'm,region=none' : `m,host=${host},region=r${h % 2}`,
      BigInt(i) * 100n * 60n * second + BigInt(h),
      {
        v: ((i * 37 + h) % 1000) / 4,
        ...(i % 3 === 0 ? { w: BigInt(i - 400) } : {}),
        ...(i % 50 === h ? { s: `text ${i}` } : {}),
        ...(i > 700 ? { late: i % 2 === 0 } : {}),
      },
    ),
  ),
);
const lastTime = varied.at(-1)!.time;
const middle = lastTime / 2n;

interface ReadCase {
  name: string;
  read: ReadOptions;
  /** Which of the varied points are expected; all unless told. */
  of?: (points: readonly Point[]) => readonly Point[];
}

const reads: ReadCase[] = [
  { name: 'all', read: {} },
  { name: 'fields in any order', read: { fields: ['late', 's', 'v', 'w'] } },
  { name: 'a sparse field', read: { fields: ['s'] } },
  { name: 'a field nobody has, beside one', read: { fields: ['nosuch', 'v'] } },
  { name: 'a field nobody has', read: { fields: ['nosuch'] } },
  { name: 'no field', read: { fields: [] } },
  { name: 'descending', read: { descending: true, fields: ['v', 's'] } },
  { name: 'a range', read: { from: middle - day, to: middle + day } },
  { name: 'a range descending', read: { from: middle - day, to: middle + day, descending: true } },
  { name: 'one nanosecond with a row', read: { from: varied[1200]!.time, to: varied[1200]!.time } },
  { name: 'one nanosecond without', read: { from: 77n, to: 77n } },
  { name: 'a range that ends before it begins', read: { from: middle, to: middle - 1n } },
  { name: 'a range before all', read: { to: -1n } },
  { name: 'a range behind all', read: { from: lastTime + 1n } },
  { name: 'both ends are within', read: { from: 3n, to: lastTime - 3n } },
  { name: 'from inside to the end', read: { from: middle, fields: ['w', 'late'] } },
];

const equal = (tag: string, value: string): SeriesFilter => ({ kind: 'equal', tag, value });
const notEqual = (tag: string, value: string): SeriesFilter => ({ kind: 'notEqual', tag, value });
const match = (tag: string, pattern: string): SeriesFilter => ({
  kind: 'match',
  tag,
  pattern,
  matches: (value) => new RegExp(pattern).test(value),
});
const notMatch = (tag: string, pattern: string): SeriesFilter => ({
  ...(match(tag, pattern) as Extract<SeriesFilter, { kind: 'match' | 'notMatch' }>),
  kind: 'notMatch',
  matches: (value) => new RegExp(pattern).test(value),
});

/** Which hosts each filter leaves. */
const filters: { name: string; filter: SeriesFilter; hosts: readonly string[] }[] = [
  { name: 'equal', filter: equal('host', 'b'), hosts: ['b'] },
  { name: 'equal to nothing', filter: equal('host', ''), hosts: [''] },
  { name: 'equal to a value nobody has', filter: equal('host', 'x'), hosts: [] },
  { name: 'not equal', filter: notEqual('host', 'b'), hosts: ['a', 'c', ''] },
  { name: 'not equal to nothing', filter: notEqual('host', ''), hosts: ['a', 'b', 'c'] },
  { name: 'a tag nobody has', filter: equal('nosuch', 'a'), hosts: [] },
  { name: 'a tag nobody has is nothing', filter: equal('nosuch', ''), hosts },
  { name: 'a tag nobody has is not something', filter: notEqual('nosuch', 'a'), hosts },
  { name: 'a pattern', filter: match('host', '^[ab]$'), hosts: ['a', 'b'] },
  { name: 'a pattern that nothing matches', filter: match('host', '^$'), hosts: [''] },
  { name: 'not a pattern', filter: notMatch('host', 'a|c'), hosts: ['b', ''] },
  {
    name: 'and',
    filter: { kind: 'and', terms: [equal('region', 'r0'), notEqual('host', 'a')] },
    hosts: ['c'],
  },
  {
    name: 'or',
    filter: { kind: 'or', terms: [equal('host', 'a'), equal('region', 'none')] },
    hosts: ['a', ''],
  },
  {
    name: 'or within and',
    filter: {
      kind: 'and',
      terms: [
        { kind: 'or', terms: [equal('host', 'a'), equal('host', 'b')] },
        match('region', '^r1'),
      ],
    },
    hosts: ['b'],
  },
];

const ofHost = (host: string): Point[] =>
  varied.filter(({ series }) =>
    host === '' ? series === 'm,region=none' : series.includes(`host=${host},`),
  );

const limits: SeriesCase[] = [1, 2, 10, 500].flatMap((rows) =>
  [false, true].map((descending) =>
    answeredCase({
      name: `scan: the ${descending ? 'last' : 'first'} ${rows} rows of each series`,
      given: varied,
      ask: (view) => [
        view.read({ rowsPerSeries: rows, descending, fields: ['v', 's'] }),
        view.read({ rowsPerSeries: rows, descending, fields: ['s'] }),
        view.read({ rowsPerSeries: rows, descending, to: middle }),
        view.read({ rowsPerSeries: rows, descending, fields: ['late'], from: middle }),
      ],
      answer: [
        firstOf(varied, ['v', 's'], rows, descending),
        firstOf(varied, ['s'], rows, descending),
        firstOf(inRange(varied, 0n, middle), ['v'], rows, descending),
        firstOf(inRange(varied, middle, lastTime), ['late'], rows, descending),
      ],
    }),
  ),
);

function firstOf(
  points: readonly Point[],
  fields: readonly string[],
  rows: number,
  descending: boolean,
): Point[] {
  const found = sorted(withFields(points, fields), descending);
  return bySeries(found).flatMap((own) => own.slice(0, rows));
}

const bounds: { name: string; bounds: ValueBound[]; keeps: (v: number, w?: bigint) => boolean }[] =
  [
    { name: 'greater', bounds: [{ field: 0, op: '>', value: 248 }], keeps: (v) => v > 248 },
    {
      name: 'greater or equal',
      bounds: [{ field: 0, op: '>=', value: 249.5 }],
      keeps: (v) => v >= 249.5,
    },
    { name: 'less', bounds: [{ field: 0, op: '<', value: 1 }], keeps: (v) => v < 1 },
    { name: 'less or equal', bounds: [{ field: 0, op: '<=', value: 0 }], keeps: (v) => v <= 0 },
    { name: 'equal', bounds: [{ field: 0, op: '=', value: 125 }], keeps: (v) => v === 125 },
    { name: 'none meets it', bounds: [{ field: 0, op: '>', value: 1e9 }], keeps: () => false },
    {
      name: 'two together',
      bounds: [
        { field: 0, op: '>', value: 200 },
        { field: 1, op: '<', value: -200 },
      ],
      keeps: (v, w) => v > 200 && w !== undefined && w < -200n,
    },
  ];

const overlapping = [
  range(2000).map((i) => point('m', i, { v: i, w: BigInt(i) })),
  range(2000).map((i) => point('m', i + 1000, { v: -i })),
  range(300).map((i) => point('m', i * 10, { w: BigInt(-i) })),
];

const others: SeriesCase[] = [
  {
    name: 'scan: a measurement nobody has',
    async run(trial) {
      await trial.given([point('m', 1, { v: 1 })]);
      await trial.everywhere((view) => {
        assert.deepEqual(view.read({ measurement: 'nosuch' }), []);
        assert.deepEqual(view.types(['v'], { measurement: 'nosuch' }), [undefined]);
      });
    },
  },
  {
    name: 'scan: tags of the series found',
    async run(trial) {
      await trial.given([
        point('m,a=1,b=x\\ y', 1, { v: 1 }),
        point('m,b=2', 1, { v: 1 }),
        point('m', 1, { v: 1 }),
      ]);
      await trial.everywhere((view) => {
        const scan = view.scan();
        const tags = scan.series.map((one) => [one.key, one.tag('a'), one.tag('b'), one.tag('c')]);
        scan.close();
        assert.deepEqual(tags, [
          ['m', '', '', ''],
          ['m,a=1,b=x\\ y', '1', 'x y', ''],
          ['m,b=2', '', '2', ''],
        ]);
      });
    },
  },
  {
    name: 'scan: cursors side by side, and several of one series',
    async run(trial) {
      const points = range(9000).map((i) => point(`m,k=${i % 3}`, i, { v: i, s: `${i % 100}` }));
      await trial.given(points);
      await trial.everywhere((view) => {
        const scan = view.scan({ fields: ['v', 's'] });
        const cursors = [...scan.series, ...scan.series].map((one) => scan.cursor(one));
        const sums = cursors.map(() => ({ rows: 0, sum: 0, texts: 0 }));
        for (let open = cursors.length; open > 0; ) {
          open = 0;
          for (const [i, cursor] of cursors.entries()) {
            const piece = cursor.next();
            if (piece === undefined) continue;
            open++;
            assert.equal(piece.kind, 'rows');
            if (piece.kind !== 'rows') continue;
            const sum = sums[i]!;
            sum.rows += piece.count;
            for (let row = 0; row < piece.count; row++) {
              sum.sum += piece.columns[0]!.numbers[row]!;
              sum.texts += Number(piece.columns[1]!.texts![row]);
            }
          }
        }
        scan.close();
        const expected = range(3).map((k) => {
          const own = points.filter((_, i) => i % 3 === k);
          const values = own.map(({ fields }) => fields['v'] as number);
          const texts = own.map(({ fields }) => Number(fields['s']));
          return { rows: own.length, sum: total(values), texts: total(texts) };
        });
        assert.deepEqual(sums, [...expected, ...expected]);
      });
    },
  },
  {
    name: 'scan: many series in the order of their bytes',
    async run(trial) {
      const points = range(700).map((i) =>
        point(`m,k=${['a', 'B', 'é', '😀', '\uffee', '~', '0'][i % 7]}${(i * 31) % 700}`, i, {
          v: i,
        }),
      );
      await trial.given(points);
      await trial.everywhere((view) => assert.deepEqual(view.read(), sorted(points)));
    },
  },
  {
    name: 'scan: points that lie over each other, in both directions',
    async run(trial) {
      for (const points of overlapping) {
        await trial.given(points);
        await trial.checkpoint();
      }
      const all = merged(overlapping.flat());
      await trial.everywhere((view) => {
        for (const descending of [false, true]) {
          for (const fields of [['v'], ['w'], ['w', 'v']]) {
            const expected = sorted(withFields(all, fields), descending);
            assert.deepEqual(view.read({ fields, descending }), expected);
            const [from, to] = [950n * second, 1050n * second];
            const some = view.read({ fields, descending, from, to });
            assert.deepEqual(some, inRange(expected, from, to));
            const edge = view.read({ fields, descending, rowsPerSeries: 1, from, to });
            assert.deepEqual(edge, inRange(expected, from, to).slice(0, 1));
          }
        }
      });
    },
  },
  {
    name: 'scan: the last row counts when an older one is overwritten',
    async run(trial) {
      await trial.given(range(50).map((i) => point(`m,k=${i % 5}`, i, { v: i })));
      await trial.checkpoint();
      await trial.given([point('m,k=0', 45, { v: 'x'.length, w: 1 }), point('m,k=1', 3, { w: 2 })]);
      await trial.everywhere((view) => {
        const read = { rowsPerSeries: 1, descending: true };
        const times = (fields: string[]): bigint[] =>
          view.read({ ...read, fields }).map(({ time }) => time / second);
        assert.deepEqual(times(['v']), [45n, 46n, 47n, 48n, 49n]);
        assert.deepEqual(times(['w']), [45n, 3n]);
        assert.deepEqual(times(['v', 'w']), [45n, 46n, 47n, 48n, 49n]);
        assert.deepEqual(view.read({ ...read, fields: ['v', 'w'] })[0]!.fields, { v: 1, w: 1 });
      });
    },
  },
];

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

const answered: AnsweredCase[] = [
  ...reads.map(({ name, read }) => {
    const { fields = ['v'], from = -(2n ** 62n), to = 2n ** 62n, descending = false } = read;
    return {
      name: `scan: ${name}`,
      given: varied,
      ask: (view) => view.read(read),
      answer: sorted(withFields(inRange(varied, from, to), fields), descending),
    } satisfies AnsweredCase;
  }),
  ...filters.map(
    ({ name, filter, hosts: left }): AnsweredCase => ({
      name: `filter: ${name}`,
      given: varied,
      ask: (view) => {
        const scan = view.scan({ filter });
        const keys = scan.series.map(({ key }) => key);
        scan.close();
        assert.deepEqual(view.seriesKeys({ measurement: 'm', filter }), keys);
        return view.read({ filter, from: middle - day, to: middle });
      },
      answer: sorted(withFields(inRange(left.flatMap(ofHost), middle - day, middle), ['v'])),
    }),
  ),
  ...bounds.map(
    ({ name, bounds: all, keeps }): AnsweredCase => ({
      name: `bounds: ${name}`,
      given: varied,
      ask: (view) => view.read({ fields: ['v', 'w'], bounds: all }),
      answer: sorted(withFields(varied, ['v', 'w'])).filter(({ fields: { v, w } }) =>
        keeps(v as number, w as bigint | undefined),
      ),
    }),
  ),
];

export const scanCases: readonly SeriesCase[] = [
  ...answered.map(answeredCase),
  ...limits,
  ...others,
];
