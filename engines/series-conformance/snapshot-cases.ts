// Exports and imports: whole, as of one moment.

import assert from 'node:assert/strict';
import type { SeriesFilter } from '../../contracts/series-store.ts';
import { createDatabase, type SeriesCase } from './case.ts';
import { answersOf, eventful } from './log-cases.ts';
import { day, type FieldValue, merged, type Point, point, range, unsigned } from './points.ts';
import { lent } from './trial.ts';

const many: readonly Point[] = range(20_000).map((i) => {
  const values: Record<string, FieldValue> = { v: i / 4 };
  if (i % 3 === 0) values['i'] = 2n ** 62n + BigInt(i);
  if (i % 4 === 0) values['u'] = unsigned(2n ** 64n - BigInt(i + 1));
  if (i % 5 === 0) values['s'] = `text ${i} ${'.'.repeat(i % 40)}`;
  if (i % 7 === 0) values['b'] = i % 2 === 0;
  return point(
    `${i % 2 === 0 ? 'm' : 'n'},k=${i % 101},l=${i % 3}`,
    BigInt(i) * 60_000_000_000n,
    values,
  );
});
const fields = ['v', 'i', 'u', 's', 'b'];

function of(measurement: string, points: readonly Point[] = many): Point[] {
  return merged(points.filter(({ series }) => series.startsWith(measurement)));
}

export const snapshotCases: readonly SeriesCase[] = [
  {
    name: 'snapshot: of an empty engine',
    async run(trial) {
      const copy = await trial.copy();
      assert.deepEqual(copy.engine.databases(), []);
      await copy.given([point('m', 1, { v: 1 })]);
      assert.deepEqual(copy.read(), [point('m', 1, { v: 1 })]);
    },
  },
  {
    name: 'snapshot: of an eventful life',
    async run(trial) {
      await eventful(trial);
      const copy = await trial.copy();
      assert.deepEqual(answersOf(copy), answersOf(trial));
      const second = await copy.copy();
      assert.deepEqual(answersOf(second), answersOf(trial));
      await copy.reopen();
      assert.deepEqual(answersOf(copy), answersOf(trial));
    },
  },
  {
    name: 'snapshot: of many points of all types',
    async run(trial) {
      await trial.given(many.slice(0, 9000));
      await trial.checkpoint();
      await trial.given(many.slice(9000));
      const copy = await trial.copy();
      for (const measurement of ['m', 'n']) {
        assert.deepEqual(copy.read({ measurement, fields }), of(measurement));
        assert.deepEqual(
          copy.view.fieldKeys({ measurement }),
          trial.view.fieldKeys({ measurement }),
        );
      }
      assert.deepEqual(copy.view.seriesKeys(), trial.view.seriesKeys());
    },
  },
  {
    name: 'snapshot: of the moment it is asked for, whatever happens meanwhile',
    async run(trial) {
      await trial.given(many.slice(0, 10_000));
      const index = trial.engine.appliedIndex;
      const entries = trial.engine.exportSnapshot();
      await trial.given(many.slice(10_000));
      trial.delete('points', { measurement: 'm', from: 0n, to: 3n * day });
      trial.delete('series', { measurement: 'n' });
      await trial.settle();
      const copy = await trial.another();
      await copy.take(meanwhile(entries), index);
      for (const measurement of ['m', 'n']) {
        assert.deepEqual(
          copy.read({ measurement, fields }),
          of(measurement, many.slice(0, 10_000)),
        );
      }

      /** Other writes happen between the entries. */
      async function* meanwhile(source: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
        let n = 0;
        for await (const entry of source) {
          yield entry;
          if (n++ > 4) continue;
          await trial.given([point('m,k=new', n, { v: n })]);
          await trial.checkpoint();
          if (n === 3) trial.change({ kind: 'dropDatabase', database: 'db' });
        }
      }
    },
  },
  {
    name: 'snapshot: one that nobody reads to its end harms nothing',
    async run(trial) {
      await trial.given(many);
      trial.engine.exportSnapshot();
      const entries = trial.engine.exportSnapshot()[Symbol.asyncIterator]();
      await entries.next();
      await entries.return?.();
      await trial.settle();
      await trial.everywhere((view) => {
        assert.deepEqual(view.read({ measurement: 'n', fields }), of('n'));
      });
    },
  },
  {
    name: 'snapshot: takes the place of what was there',
    async run(trial) {
      await trial.given([point('m,k=a', 1, { v: 1 }), point('n', 2, { v: 2 })]);
      const copy = await trial.another();
      await copy.given(many.slice(0, 2000));
      await copy.given(many.slice(0, 50), { database: 'more' });
      await copy.checkpoint();
      await copy.take(trial.engine.exportSnapshot(), 77);
      assert.deepEqual(answersOf(copy), answersOf(trial));
      await copy.given([point('m,k=a', 2, { v: 3 }), point('m,k=b', 3, { v: 4 })]);
      await copy.everywhere((view) => {
        assert.deepEqual(view.read(), [
          point('m,k=a', 1, { v: 1 }),
          point('m,k=a', 2, { v: 3 }),
          point('m,k=b', 3, { v: 4 }),
        ]);
        assert.equal(view.engine.database('more'), undefined);
      });
    },
  },
  {
    name: 'snapshot: is on disk when it is in',
    async run(trial) {
      await trial.given(many.slice(0, 3000));
      const copy = await trial.copy();
      await copy.reopen();
      assert.equal(copy.engine.appliedIndex, trial.index);
      assert.deepEqual(copy.read({ fields }), of('m', many.slice(0, 3000)));
    },
  },
  {
    name: 'snapshot: a second one after the log went on',
    async run(trial) {
      await trial.given(many.slice(0, 1000));
      const copy = await trial.copy();
      await trial.given(many.slice(1000, 2000));
      trial.delete('series', { filter: { kind: 'equal', tag: 'l', value: '1' } });
      await copy.take(trial.engine.exportSnapshot(), trial.index);
      assert.deepEqual(answersOf(copy), answersOf(trial));
      await copy.settle();
      await copy.reopen();
      assert.deepEqual(answersOf(copy), answersOf(trial));
    },
  },
  {
    name: 'snapshot: the log goes on behind it, the same as where it came from',
    async run(trial) {
      await trial.given(many.slice(0, 1000));
      const copy = await trial.copy();
      const more = many.slice(500, 1500);
      await trial.given(more);
      await copy.given(more);
      trial.change(createDatabase('later'));
      copy.change(createDatabase('later'));
      assert.deepEqual(answersOf(copy), answersOf(trial));
      await copy.reopen();
      assert.deepEqual(answersOf(copy), answersOf(trial));
    },
  },
  {
    name: 'snapshot: entries of the log where it came from go on behind it',
    async run(trial) {
      const series = (name: string, keys: number): Point[] =>
        range(keys).map((k) => point(`${name},k=${k}`, 1, { v: k, w: `${k}` }));
      const equal = (value: string): { filter: SeriesFilter } => ({
        filter: { kind: 'equal', tag: 'k', value },
      });
      // Series of measurements between one another, removed ones among them, and a measurement without any.
      await trial.given([...series('late', 3), ...series('early', 3), ...series('late', 6)]);
      await trial.given([...series('none', 2), ...series('again', 2), ...series('early', 5)]);
      trial.delete('series', { measurement: 'late', ...equal('1') });
      trial.delete('points', { measurement: 'early', ...equal('0') });
      trial.delete('series', { measurement: 'none' });
      trial.delete('series', { measurement: 'again' });
      await trial.given([point('again,k=7', 1, { other: 1n, v: 'text' })]);
      await trial.given(series('late', 2).slice(1));
      trial.delete('series', { measurement: 'late', ...equal('5') });
      const copies = [await trial.copy(), await trial.copy()];
      // One is a copy of a copy, made after a restart: that has the removed ones by their numbers alone.
      await copies[1]!.reopen();
      copies.push(await copies[1]!.copy());
      for (let round = 2; round < 5; round++) {
        const more = [...series('early', 7), ...series('late', 7), ...series('none', 3)];
        await trial.given(more.map(({ series: key }) => point(key, round, { v: round, x: true })));
        await trial.given([point('again,k=1', round, { v: 'text', other: 5n, third: 1 })]);
        trial.delete('points', { measurement: 'late', ...equal('2') });
        trial.delete('series', { measurement: 'early', ...equal(String(round)) });
        for (const copy of copies) {
          copy.follow(trial);
          assert.deepEqual(answersOf(copy), answersOf(trial));
        }
      }
      for (const copy of copies) {
        await copy.settle();
        await copy.reopen();
        assert.deepEqual(answersOf(copy), answersOf(trial));
      }
    },
  },
  {
    name: 'snapshot: in entries of bounded size, however large its rows and keys are',
    async run(trial) {
      const long = 'x'.repeat(30_000);
      const rows = range(300).map((i) => point('wide', i, { s: `${i} ${long}`, v: i }));
      const keys = range(100).map((i) => point(`keys,k=${i}${long}`, 1, { v: i }));
      const columns = range(40).map((i): [string, FieldValue] => [`f${i}`, i / 4]);
      const many = range(4000).map((i) => point('many', i, Object.fromEntries(columns)));
      for (const points of [rows, keys, many]) await trial.given(points);
      let largest = 0;
      for await (const entry of lent(trial.engine.exportSnapshot())) {
        largest = Math.max(largest, entry.length);
      }
      assert.ok(largest < 2.5 * 1024 * 1024, `an entry of ${largest} bytes`);
      const copy = await trial.copy();
      assert.deepEqual(answersOf(copy), answersOf(trial));
      assert.deepEqual(copy.read({ measurement: 'wide', fields: ['s', 'v'] }), merged(rows));
    },
  },
  {
    name: 'snapshot: one that breaks off rejects',
    async run(trial) {
      await trial.given(many);
      const copy = await trial.another();
      async function* broken(): AsyncIterable<Buffer> {
        for await (const entry of lent(trial.engine.exportSnapshot())) {
          yield entry;
          throw new Error('the line is dead');
        }
      }
      await assert.rejects(copy.engine.importSnapshot(broken(), 5), /the line is dead/);
    },
  },
];
