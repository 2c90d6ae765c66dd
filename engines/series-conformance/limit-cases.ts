// Limits on how many series and tag values there may be. Points of existing series and tag values
// are always accepted.

import assert from 'node:assert/strict';
import type { SeriesLimits } from '../series-engine.ts';
import type { SeriesCase } from './case.ts';
import { day, merged, type Point, point, range } from './points.ts';

interface LimitCase {
  name: string;
  limits: Partial<SeriesLimits>;
  given: readonly Point[];
  write: readonly Point[];
  /** The points accepted: those of the first series within the limit. */
  taken: readonly Point[];
  error: RegExp;
}

const ofM = range(10).map((i) => point(`m,k=${i}`, i, { v: i }));
const again = range(10).map((i) => point(`m,k=${i}`, 100 + i, { v: i }));
const more = range(6).map((i) => point(`m,k=more${i}`, 200 + i, { v: i }));

const cases: LimitCase[] = [
  {
    name: 'series of a database',
    limits: { seriesPerDatabase: 12 },
    given: ofM,
    write: [...again, ...more, ...again],
    taken: [...again, ...more.slice(0, 2)],
    error: /max-series-per-database limit exceeded/,
  },
  {
    name: 'series of a database, in all its measurements',
    limits: { seriesPerDatabase: 11 },
    given: ofM,
    write: [point('n,k=1', 1, { v: 1 }), point('o,k=1', 1, { v: 1 }), ...again],
    taken: [...again, point('n,k=1', 1, { v: 1 })],
    error: /max-series-per-database limit exceeded/,
  },
  {
    name: 'values of a tag',
    limits: { valuesPerTag: 11 },
    given: ofM,
    write: [...more, ...again, point('m,k=1,l=1', 5, { v: 1 }), point('n,k=x', 1, { v: 1 })],
    taken: [...again, more[0]!, point('m,k=1,l=1', 5, { v: 1 }), point('n,k=x', 1, { v: 1 })],
    error: /max-values-per-tag limit exceeded \(11\/11\): measurement="m" tag="k" value="more1"/,
  },
];

export const limitCases: readonly SeriesCase[] = [
  ...cases.map(
    ({ name, limits, given, write, taken, error }): SeriesCase => ({
      name: `limits: ${name}`,
      async run(trial) {
        Object.assign(trial.engine.limits, limits);
        await trial.given(given);
        const outcome = await trial.write(write);
        const kept = merged([...given, ...taken]);
        const refused = write.filter(({ series }) => !kept.some((one) => one.series === series));
        assert.equal(outcome.dropped, refused.length);
        assert.match(outcome.error!, error);
        const keys = [...new Set(kept.map(({ series }) => series))].sort();
        await trial.everywhere((view) => {
          assert.deepEqual(view.seriesKeys(), keys);
          const own = kept.filter(({ series }) => series.startsWith('m'));
          assert.deepEqual(view.read(), own);
        });
        // Without the limit there is room for all.
        Object.assign(trial.engine.limits, {
          seriesPerDatabase: Infinity,
          valuesPerTag: Infinity,
        });
        await trial.given(write);
      },
    }),
  ),
  {
    name: 'limits: a batch of nothing but refused series leaves no trace',
    async run(trial) {
      trial.engine.limits.seriesPerDatabase = 10;
      await trial.given(ofM);
      const outcome = await trial.write(more);
      assert.deepEqual([outcome.written, outcome.dropped], [0, more.length]);
      await trial.given(again);
      await trial.everywhere((view) => assert.equal(view.seriesKeys().length, 10));
    },
  },
  {
    name: 'limits: dropped series make room',
    async run(trial) {
      trial.engine.limits.seriesPerDatabase = 10;
      await trial.given(ofM);
      assert.equal((await trial.write(more)).written, 0);
      trial.delete('series', {
        filter: { kind: 'match', tag: 'k', pattern: '[0-3]', matches: (k) => /[0-3]/.test(k) },
      });
      const outcome = await trial.write(more);
      assert.deepEqual([outcome.written, outcome.dropped], [4, 2]);
      await trial.everywhere((view) => assert.equal(view.seriesKeys().length, 10));
    },
  },
  {
    name: 'limits: those of a tag are per shard',
    async run(trial) {
      trial.engine.limits.valuesPerTag = 10;
      await trial.given(ofM);
      const later = more.map((one) => ({ ...one, time: one.time + 70n * day }));
      await trial.given(later);
      await trial.everywhere((view) => assert.deepEqual(view.read(), merged([...ofM, ...later])));
    },
  },
];
