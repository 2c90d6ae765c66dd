// Deletions: of points in a range, of whole series, of expired points.

import assert from 'node:assert/strict';
import type { SeriesFilter } from '../../contracts/series-store.ts';
import { assertFails, type SeriesCase } from './case.ts';
import {
  bySeries,
  day,
  hour,
  merged,
  type Point,
  point,
  range,
  second,
  withFields,
} from './points.ts';
import type { Selected, View } from './view.ts';

const points: readonly Point[] = range(3000).map((i) =>
  point(`${i % 5 === 4 ? 'n' : 'm'},k=${i % 5}`, BigInt(i) * hour, { v: i, s: `${i % 10}` }),
);

const k0: SeriesFilter = { kind: 'equal', tag: 'k', value: '0' };

interface DeleteCase {
  name: string;
  kind: 'points' | 'series';
  selected: Selected;
  /** True for a point that is deleted. */
  goes: (one: Point) => boolean;
}

const between = (from: bigint, to: bigint) => (one: Point) => one.time >= from && one.time <= to;
const ofM = ({ series }: Point): boolean => series.startsWith('m');
const ofK0 = ({ series }: Point): boolean => series.endsWith('k=0');

const cases: DeleteCase[] = [
  {
    name: 'a range',
    kind: 'points',
    selected: { from: 10n * day, to: 20n * day },
    goes: between(10n * day, 20n * day),
  },
  {
    name: 'a range of one measurement',
    kind: 'points',
    selected: { measurement: 'm', from: 100n * hour, to: 2000n * hour },
    goes: (one) => ofM(one) && between(100n * hour, 2000n * hour)(one),
  },
  {
    name: 'a range of some series',
    kind: 'points',
    selected: { measurement: 'm', filter: k0, from: 50n * hour, to: 70n * hour },
    goes: (one) => ofK0(one) && between(50n * hour, 70n * hour)(one),
  },
  {
    name: 'all before a time',
    kind: 'points',
    selected: { to: 1000n * hour },
    goes: ({ time }) => time <= 1000n * hour,
  },
  {
    name: 'all after a time',
    kind: 'points',
    selected: { from: 1000n * hour },
    goes: ({ time }) => time >= 1000n * hour,
  },
  {
    name: 'one nanosecond',
    kind: 'points',
    selected: { from: 1000n * hour, to: 1000n * hour },
    goes: ({ time }) => time === 1000n * hour,
  },
  {
    name: 'a range without points',
    kind: 'points',
    selected: { from: 1000n * hour + 1n, to: 1001n * hour - 1n },
    goes: () => false,
  },
  {
    name: 'all points of some series',
    kind: 'points',
    selected: { filter: k0 },
    goes: ofK0,
  },
  { name: 'all points', kind: 'points', selected: {}, goes: () => true },
  {
    name: 'a measurement that is not there',
    kind: 'points',
    selected: { measurement: 'nosuch' },
    goes: () => false,
  },
  { name: 'whole series', kind: 'series', selected: { filter: k0 }, goes: ofK0 },
  { name: 'a whole measurement', kind: 'series', selected: { measurement: 'm' }, goes: ofM },
  {
    name: 'some series of a measurement',
    kind: 'series',
    selected: { measurement: 'm', filter: k0 },
    goes: ofK0,
  },
  { name: 'every series', kind: 'series', selected: {}, goes: () => true },
];

function check(view: View, left: readonly Point[]): void {
  const fields = ['v', 's'];
  for (const measurement of ['m', 'n']) {
    const own = left.filter(({ series }) => series.startsWith(measurement));
    assert.deepEqual(view.read({ measurement, fields }), merged(own));
    const last = view.read({ measurement, rowsPerSeries: 1, descending: true });
    const newest = bySeries(withFields(merged(own), ['v'])).map((all) => all.at(-1));
    assert.deepEqual(last, newest);
  }
  const keys = [...new Set(left.map(({ series }) => series))].sort();
  assert.deepEqual(view.seriesKeys(), keys);
  const measurements = [...new Set(keys.map((key) => key[0]!))];
  assert.deepEqual(view.measurements(), measurements);
}

const others: SeriesCase[] = [
  {
    name: 'delete: what is written after it stays',
    async run(trial) {
      await trial.given(points);
      trial.delete('points', { from: 0n, to: 500n * hour });
      const again = points
        .filter((_, i) => i % 100 === 0)
        .map((one) => ({ ...one, fields: { v: -1, s: 'new' } }));
      await trial.given(again);
      const left = points.filter(({ time }) => time > 500n * hour);
      await trial.everywhere((view) => check(view, merged([...left, ...again])));
    },
  },
  {
    name: 'delete: what was overwritten does not come back',
    async run(trial) {
      await trial.given(points);
      await trial.checkpoint();
      await trial.given(points.map((one) => ({ ...one, fields: { v: 7 } })));
      trial.delete('points', { from: 100n * hour, to: 900n * hour });
      await trial.given([point('m,k=0', 500n * hour, { v: 8 })]);
      const left = points.filter((one) => !between(100n * hour, 900n * hour)(one));
      const over = left.map((one) => ({ ...one, fields: { ...one.fields, v: 7 } }));
      const expected = [...over, point('m,k=0', 500n * hour, { v: 8 })];
      await trial.everywhere((view) => check(view, expected));
    },
  },
  {
    name: 'delete: a field of a deleted point does not come back with its time',
    async run(trial) {
      await trial.given([point('m', 5, { v: 1, w: 1 }), point('m', 6, { v: 1 })]);
      trial.delete('points', { from: 5n * second, to: 5n * second });
      await trial.given([point('m', 5, { v: 2 })]);
      await trial.everywhere((view) => {
        assert.deepEqual(view.read({ fields: ['v', 'w'] }), [
          point('m', 5, { v: 2 }),
          point('m', 6, { v: 1 }),
        ]);
      });
    },
  },
  {
    name: 'delete: again and again over the same rows',
    async run(trial) {
      let left: Point[] = [];
      for (const n of range(12)) {
        const more = range(200).map((i) =>
          point('m,k=0', BigInt(i) * second, { v: n * 1000 + i, s: '' }),
        );
        await trial.given(more);
        left = merged([...left, ...more]);
        const [from, to] = [BigInt(n * 10) * second, BigInt(n * 15 + 20) * second];
        trial.delete('points', { measurement: 'm', from, to });
        left = left.filter((one) => !between(from, to)(one));
        if (n % 3 === 0) await trial.checkpoint();
        if (n % 4 === 0) await trial.settle();
        check(trial.view, left);
      }
      await trial.everywhere((view) => check(view, left));
    },
  },
  {
    name: 'delete: a series dropped and written again is a new one',
    async run(trial) {
      await trial.given([
        point('m,k=0', 1, { v: 1, s: 'old' }),
        point('m,k=0', 2, { v: 2, s: 'old' }),
        point('m,k=1', 2, { v: 2, s: 'b' }),
      ]);
      await trial.checkpoint();
      trial.delete('series', { filter: k0 });
      await trial.given([point('m,k=0', 2, { v: 3 })]);
      const left = [point('m,k=0', 2, { v: 3 }), point('m,k=1', 2, { v: 2, s: 'b' })];
      await trial.everywhere((view) => check(view, left));
    },
  },
  {
    name: 'delete: a series emptied and written again is listed again',
    async run(trial) {
      await trial.given([point('m,k=0', 1, { v: 1 }), point('m,k=1', 2, { v: 2 })]);
      trial.delete('points', { filter: k0, from: 0n, to: 10n * second });
      assert.deepEqual(trial.view.seriesKeys(), ['m,k=1']);
      assert.deepEqual(trial.view.tagValues('k'), ['1']);
      await trial.given([point('m,k=0', 1, { v: 3 })]);
      const left = [point('m,k=0', 1, { v: 3 }), point('m,k=1', 2, { v: 2 })];
      await trial.everywhere((view) => check(view, left));
    },
  },
  {
    name: 'delete: a measurement that is gone may come back with other types',
    async run(trial) {
      await trial.given([point('m', 1, { v: 1 }), point('n', 1, { v: 1 })]);
      trial.delete('series', { measurement: 'm' });
      assert.deepEqual(trial.view.fieldKeys(), []);
      await trial.given([point('m', 1, { v: 'text' })]);
      await trial.everywhere((view) => {
        assert.deepEqual(view.read(), [point('m', 1, { v: 'text' })]);
        assert.deepEqual(view.fieldKeys(), ['v string']);
        assert.deepEqual(view.read({ measurement: 'n' }), [point('n', 1, { v: 1 })]);
      });
    },
  },
  {
    name: 'delete: in all policies, or in one',
    async run(trial) {
      await trial.given([point('m', 1, { v: 1 })]);
      trial.change({ kind: 'createRetentionPolicy', database: 'db', name: 'p', policy: {} });
      await trial.given([point('m', 1, { v: 2 }), point('n', 1, { v: 2 })], { policy: 'p' });
      trial.delete('points', { retentionPolicy: 'autogen', measurement: 'm' });
      assert.deepEqual(trial.read(), []);
      assert.deepEqual(trial.read({ retentionPolicy: 'p' }), [point('m', 1, { v: 2 })]);
      await trial.given([point('m', 1, { v: 3 })]);
      trial.delete('series', { measurement: 'm' });
      await trial.everywhere((view) => {
        assert.deepEqual(view.read(), []);
        assert.deepEqual(view.read({ retentionPolicy: 'p' }), []);
        assert.deepEqual(view.seriesKeys(), ['n']);
      });
    },
  },
  {
    name: 'delete: in an unknown database fails, and what deletes nothing is no entry',
    async run(trial) {
      assertFails(() => trial.delete('points'), /database not found: db/);
      assertFails(() => trial.delete('series'), /database not found: db/);
      await trial.given([point('m', 1, { v: 1 })]);
      const { index } = trial;
      trial.delete('points', { measurement: 'nosuch' });
      trial.delete('points', { from: day, to: 2n * day });
      trial.delete('series', { filter: k0 });
      assert.equal(trial.index, index);
    },
  },
];

const now = 1_000_000n * hour;
const keepsDays = { duration: 2n * day, shardGroupDuration: day };

const retention: SeriesCase[] = [
  {
    name: 'retention: shards wholly older than their policy keeps go',
    async run(trial) {
      await trial.given([]);
      trial.change({ kind: 'createRetentionPolicy', database: 'db', name: 'p', policy: keepsDays });
      const all = range(20).map((i) => point(`m,k=${i}`, now + BigInt(i) * 12n * hour, { v: i }));
      const written = { policy: 'p', now: ms(now) };
      await trial.given(all, written);
      await trial.given(all.slice(0, 3));
      const end = now + 7n * day;
      trial.retain(ms(end));
      await trial.everywhere((view) => {
        const found = view.read({ retentionPolicy: 'p' });
        const kept = all.filter(({ time }) => time >= end - 2n * day);
        // All that is to be kept is there, and at most a shard more.
        assert.deepEqual(found.toSorted(byTime).slice(-kept.length), kept);
        for (const { time } of found) assert.ok(time >= end - 3n * day, 'too old');
        assert.deepEqual(view.read(), all.slice(0, 3));
        const keys = view.seriesKeys({ retentionPolicy: 'p' });
        assert.deepEqual(
          keys,
          found.map(({ series }) => series),
        );
      });
    },
  },
  {
    name: 'retention: nothing too old is no entry, and for ever is for ever',
    async run(trial) {
      await trial.given([point('m', 0n, { v: 1 })]);
      trial.change({ kind: 'createRetentionPolicy', database: 'db', name: 'p', policy: keepsDays });
      await trial.given([point('m', now, { v: 1 })], { policy: 'p', now: ms(now) });
      const { index } = trial;
      trial.retain(ms(now + 2n * day));
      trial.retain(0);
      assert.equal(trial.index, index);
      trial.retain(ms(now + 100n * day));
      assert.equal(trial.index, index + 1);
      trial.retain(ms(now + 100n * day));
      assert.equal(trial.index, index + 1);
      assert.deepEqual(trial.read({ retentionPolicy: 'p' }), []);
      assert.deepEqual(trial.read(), [point('m', 0n, { v: 1 })]);
    },
  },
  {
    name: 'retention: a policy that was altered keeps less',
    async run(trial) {
      const all = range(8).map((i) => point('m', now + BigInt(i) * 7n * day, { v: i }));
      await trial.given(all);
      const policy = { duration: 14n * day };
      trial.change({ kind: 'alterRetentionPolicy', database: 'db', name: 'autogen', policy });
      trial.retain(ms(all.at(-1)!.time));
      const found = trial.read();
      assert.ok(found.length >= 3 && found.length <= 4, `${found.length} weeks`);
      assert.deepEqual(found, all.slice(-found.length));
      await trial.everywhere((view) => assert.deepEqual(view.read(), found));
    },
  },
];

function ms(time: bigint): number {
  return Number(time / 1_000_000n);
}

function byTime(a: Point, b: Point): number {
  return a.time < b.time ? -1 : 1;
}

export const deleteCases: readonly SeriesCase[] = [
  ...cases.map(
    ({ name, kind, selected, goes }): SeriesCase => ({
      name: `delete: ${name}`,
      async run(trial) {
        await trial.given(points.slice(0, 1500));
        await trial.checkpoint();
        await trial.given(points.slice(1500));
        trial.delete(kind, selected);
        const left = points.filter((one) => !goes(one));
        await trial.everywhere((view) => check(view, left));
        // Nothing of it comes back by writing elsewhere.
        const more = [point('m,k=0', 4000n * hour, { v: 1, s: 'more' })];
        await trial.given(more);
        await trial.everywhere((view) => check(view, [...left, ...more]));
      },
    }),
  ),
  ...others,
  ...retention,
];
