// Summaries: summaries of runs of rows must give the same result as the rows themselves.

import assert from 'node:assert/strict';
import type { SeriesCase } from './case.ts';
import { foldsOf } from './fold.ts';
import {
  day,
  hour,
  inRange,
  merged,
  type Point,
  point,
  range,
  second,
  unsigned,
  withFields,
} from './points.ts';
import type { ReadOptions } from './view.ts';

const typed: readonly Point[] = range(2400).map((i) =>
  point(`m,k=${i % 2}`, BigInt(i) * 60n * second, {
    v: ((i * 37) % 1001) / 4 - 100,
    i: BigInt((i * 7919) % 10_000) - 5000n,
    u: unsigned(BigInt(i % 977)),
    b: i % 5 !== 0,
    s: `s${i % 97}`,
    ...(i % 7 === 0 ? { sparse: i / 2 } : {}),
  }),
);

const wide: readonly Point[] = range(3000).map((i) =>
  point('m', i, {
    v: 2n ** 62n + BigInt(i) * (i % 2 === 0 ? 1n : -1n),
    u: unsigned(2n ** 64n - 1n - BigInt(i % 1000)),
    safe: BigInt(Number.MAX_SAFE_INTEGER - i),
  }),
);

interface SummaryCase {
  name: string;
  writes: readonly (readonly Point[])[];
  fields: readonly string[];
  widths?: readonly bigint[];
  read?: ReadOptions;
}

const widths = [0n, 1n, hour, 7n * hour, 10_000n * day];
const everyType = ['v', 'i', 'u', 'b', 's', 'sparse'];

const cases: SummaryCase[] = [
  ...everyType.map((field) => ({
    name: `of ${field === 'sparse' ? 'a sparse field' : `the type of ${field}`}`,
    writes: [typed],
    fields: [field],
  })),
  { name: 'of several fields', writes: [typed], fields: everyType, widths: [0n, hour, day] },
  { name: 'of a field nobody has beside one', writes: [typed], fields: ['nosuch', 'v'] },
  { name: 'descending', writes: [typed], fields: ['v', 'i'], read: { descending: true } },
  {
    name: 'in a range that cuts through',
    writes: [typed],
    fields: ['v', 's'],
    read: { from: 1234n * second, to: 100_000n * second + 1n },
  },
  { name: 'of integers that wrap', writes: [wide], fields: ['v', 'u', 'safe'] },
  {
    name: 'of rows that were overwritten',
    writes: [
      typed,
      typed.filter((_, i) => i % 11 === 3).map((one) => ({ ...one, fields: { v: 1.5, i: 7n } })),
    ],
    fields: ['v', 'i', 'b'],
  },
  {
    name: 'of rows that came out of order',
    writes: range(4).map((n) => typed.filter((_, i) => (i * 7) % 4 === n)),
    fields: ['v', 'i'],
  },
  {
    name: 'over several shards',
    writes: [range(3000).map((i) => point('m', BigInt(i) * 6n * hour, { v: i / 2, s: `${i}` }))],
    fields: ['v', 's'],
  },
  {
    name: 'of long strings',
    writes: [range(1500).map((i) => point('m', i, { v: `${i} ${'x'.repeat(90)}` }))],
    fields: ['v'],
  },
  {
    name: 'in buckets that begin anywhere',
    writes: [typed],
    fields: ['v', 'i'],
    read: { summaries: { width: 5n * hour, offset: 17n * 60n * second + 3n } },
    widths: [5n * hour],
  },
  {
    name: 'in buckets before 1970',
    writes: [range(2000).map((i) => point('m', BigInt(i - 1000) * 60n * second, { v: i }))],
    fields: ['v'],
  },
];

export const summaryCases: readonly SeriesCase[] = [
  ...cases.map(
    ({ name, writes, fields, widths: own = widths, read }): SeriesCase => ({
      name: `summaries: ${name}`,
      async run(trial) {
        for (const points of writes) {
          await trial.given(points);
          // Points written together are stored together, so that block summaries can be used.
          await trial.checkpoint();
        }
        const { from = -(2n ** 62n), to = 2n ** 62n } = read ?? {};
        const rows = inRange(withFields(merged(writes.flat()), fields), from, to);
        const offset = read?.summaries?.offset ?? 0n;
        const expected = own.map((width) => ({ width, folds: foldsOf(rows, width, offset) }));
        await trial.everywhere((view) => {
          for (const { width, folds } of expected) {
            assert.deepEqual(view.fold(width, { fields, ...read }).folds, folds, `width ${width}`);
          }
        });
      },
    }),
  ),
  {
    name: 'summaries: not of what was deleted',
    async run(trial) {
      await trial.given(typed);
      await trial.checkpoint();
      const [from, to] = [20_000n * second, 60_000n * second];
      trial.delete('points', { measurement: 'm', from, to });
      const left = typed.filter(({ time }) => time < from || time > to);
      const expected = foldsOf(withFields(left, ['v', 'i']), day);
      await trial.everywhere((view) => {
        assert.deepEqual(view.fold(day, { fields: ['v', 'i'] }).folds, expected);
      });
    },
  },
];
