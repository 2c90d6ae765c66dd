// A scan shows the state at its creation, whatever changes happen before it is read.

import assert from 'node:assert/strict';
import type { SeriesCase } from './case.ts';
import { day, hour, type Point, point, range } from './points.ts';
import type { SeriesTrial } from './trial.ts';
import { requestOf, rowsOf } from './view.ts';

const points: readonly Point[] = range(9000).map((i) =>
  point(`m,k=${i % 3}`, BigInt(i) * 7n * 60_000_000_000n, { v: i, s: `text ${i % 100}` }),
);
const fields = ['v', 's'];
const expected = points.toSorted((a, b) =>
  a.series < b.series ? -1 : a.series > b.series ? 1 : 0,
);

interface Event {
  name: string;
  happens: (trial: SeriesTrial) => Promise<void> | void;
}

const overwritten = points.map((one) => ({ ...one, fields: { v: -1, s: 'new' } }));

const events: Event[] = [
  { name: 'writes', happens: (trial) => trial.given(overwritten) },
  {
    name: 'new series and fields',
    happens: (trial) =>
      trial.given(range(3000).map((i) => point(`m,k=new${i}`, i, { v: i, [`f${i % 50}`]: i }))),
  },
  { name: 'a checkpoint', happens: (trial) => trial.checkpoint() },
  { name: 'flushing and compaction', happens: (trial) => trial.settle() },
  {
    name: 'writes that are flushed and merged',
    async happens(trial) {
      for (let i = 0; i < overwritten.length; i += 1500) {
        await trial.given(overwritten.slice(i, i + 1500));
        await trial.checkpoint();
        await trial.settle();
      }
    },
  },
  {
    name: 'deletions',
    async happens(trial) {
      trial.delete('points', { from: 100n * hour, to: 900n * hour });
      await trial.settle();
    },
  },
  {
    name: 'a series dropped',
    async happens(trial) {
      trial.delete('series', { filter: { kind: 'equal', tag: 'k', value: '1' } });
      await trial.checkpoint();
      await trial.settle();
    },
  },
  {
    name: 'its database dropped',
    async happens(trial) {
      trial.change({ kind: 'dropDatabase', database: 'db' });
      await trial.checkpoint();
      await trial.settle();
    },
  },
  {
    name: 'retention',
    async happens(trial) {
      const policy = { duration: 14n * day };
      trial.change({ kind: 'alterRetentionPolicy', database: 'db', name: 'autogen', policy });
      trial.retain(Number((1000n * day) / 1_000_000n));
      await trial.checkpoint();
      await trial.settle();
    },
  },
  {
    name: 'an import in its place',
    async happens(trial) {
      const other = await trial.another();
      await other.given(overwritten.slice(0, 2000));
      await trial.take(other.engine.exportSnapshot(), trial.index + 1);
      await trial.settle();
    },
  },
];

export const stabilityCases: readonly SeriesCase[] = [
  ...events.flatMap(({ name, happens }) =>
    [false, true].map(
      (isFlushed): SeriesCase => ({
        name: `stable: ${name}, ${isFlushed ? 'with all in files' : 'before all is read'}`,
        async run(trial) {
          await trial.given(points);
          if (isFlushed) await trial.checkpoint();
          const request = requestOf({ fields });
          const whole = trial.view.scan(request);
          const begun = trial.view.scan(request);
          const cursor = begun.cursor(begun.series[2]!);
          const first = cursor.next();
          let rows = first?.kind === 'rows' ? first.count : 0;
          await happens(trial);
          assert.deepEqual(rowsOf(whole, request), expected);
          for (let piece = cursor.next(); piece !== undefined; piece = cursor.next()) {
            assert.ok(piece.kind === 'rows');
            for (let i = 0; i < piece.count; i++) {
              assert.equal(piece.columns[0]!.numbers[i], (rows + i) * 3 + 2);
            }
            rows += piece.count;
          }
          assert.equal(rows, points.length / 3);
          whole.close();
          begun.close();
          await trial.settle();
        },
      }),
    ),
  ),
  {
    name: 'stable: a scan that is never read harms nothing',
    async run(trial) {
      await trial.given(points);
      const scans = range(5).map(() => trial.view.scan({ fields }));
      await trial.checkpoint();
      await trial.settle();
      for (const scan of scans) scan.close();
      await trial.settle();
      await trial.everywhere((view) => assert.deepEqual(view.read({ fields }), expected));
    },
  },
];
