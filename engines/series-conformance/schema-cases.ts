// Schema queries: measurements, fields, tags and series.

import assert from 'node:assert/strict';
import type { SeriesFilter } from '../../contracts/series-store.ts';
import { answeredCase, type AnsweredCase, type SeriesCase } from './case.ts';
import { day, point, range } from './points.ts';

const points = [
  point('cpu,host=a,region=eu', 1n, { usage: 1, count: 1n }),
  point('cpu,host=b,region=us', 2n, { usage: 2 }),
  point('cpu,host=c', 3n, { usage: 3, up: true }),
  point('disk,host=a,path=/', 4n, { free: 1 }),
  point('mem', 5n, { free: 's' }),
  // Weeks later, in another shard.
  point('cpu,host=a,region=eu', 70n * day, { count: 's' }),
  point('cpu,host=d,zone=z', 70n * day, { usage: 4 }),
  point('net,host=a', 70n * day, { bytes: 1 }),
];

const hostA: SeriesFilter = { kind: 'equal', tag: 'host', value: 'a' };
const noRegion: SeriesFilter = { kind: 'equal', tag: 'region', value: '' };
const someHost: SeriesFilter = {
  kind: 'match',
  tag: 'host',
  pattern: '[bd]',
  matches: (value) => /[bd]/.test(value),
};
const early = { to: day };
const late = { from: 60n * day };

const asks: Omit<AnsweredCase, 'given'>[] = [
  {
    name: 'measurements',
    ask: (view) => view.measurements(),
    answer: ['cpu', 'disk', 'mem', 'net'],
  },
  {
    name: 'measurements with a filter',
    ask: (view) => [view.measurements({ filter: hostA }), view.measurements({ filter: someHost })],
    answer: [['cpu', 'disk', 'net'], ['cpu']],
  },
  {
    name: 'measurements of shards that touch a range',
    ask: (view) => [view.measurements(early), view.measurements(late)],
    answer: [
      ['cpu', 'disk', 'mem'],
      ['cpu', 'net'],
    ],
  },
  {
    name: 'one measurement',
    ask: (view) => [
      view.measurements({ measurement: 'mem' }),
      view.measurements({ measurement: 'x' }),
    ],
    answer: [['mem'], []],
  },
  {
    name: 'field keys with each of their types',
    ask: (view) => view.fieldKeys({ measurement: 'cpu' }),
    answer: ['count integer', 'count string', 'up boolean', 'usage float'],
  },
  {
    name: 'field keys of measurements are their own',
    ask: (view) => ['disk', 'mem', 'nosuch'].map((measurement) => view.fieldKeys({ measurement })),
    answer: [['free float'], ['free string'], []],
  },
  {
    name: 'tag keys',
    ask: (view) =>
      ['cpu', 'disk', 'mem', 'nosuch'].map((measurement) => view.tagKeys({ measurement })),
    answer: [['host', 'region', 'zone'], ['host', 'path'], [], []],
  },
  {
    name: 'tag keys with a filter and a range',
    ask: (view) => [
      view.tagKeys({ measurement: 'cpu', filter: noRegion }),
      view.tagKeys({ measurement: 'cpu', filter: hostA }),
      view.tagKeys({ measurement: 'cpu', ...early }),
    ],
    answer: [
      ['host', 'zone'],
      ['host', 'region'],
      ['host', 'region'],
    ],
  },
  {
    name: 'tag values',
    ask: (view) => [
      view.tagValues('host', { measurement: 'cpu' }),
      view.tagValues('region', { measurement: 'cpu' }),
      view.tagValues('nosuch', { measurement: 'cpu' }),
      view.tagValues('host', { measurement: 'nosuch' }),
    ],
    answer: [['a', 'b', 'c', 'd'], ['eu', 'us'], [], []],
  },
  {
    name: 'tag values with a filter and a range',
    ask: (view) => [
      view.tagValues('host', { measurement: 'cpu', filter: noRegion }),
      view.tagValues('region', { measurement: 'cpu', filter: hostA }),
      view.tagValues('host', { measurement: 'cpu', ...late }),
    ],
    answer: [['c', 'd'], ['eu'], ['a', 'd']],
  },
  {
    name: 'series keys',
    ask: (view) => view.seriesKeys(),
    answer: [
      'cpu,host=a,region=eu',
      'cpu,host=b,region=us',
      'cpu,host=c',
      'cpu,host=d,zone=z',
      'disk,host=a,path=/',
      'mem',
      'net,host=a',
    ],
  },
  {
    name: 'series keys with a measurement, a filter, a range',
    ask: (view) => [
      view.seriesKeys({ filter: hostA }),
      view.seriesKeys({ measurement: 'cpu', filter: someHost }),
      view.seriesKeys({ measurement: 'cpu', ...late }),
      view.seriesKeys({ from: 30n * day, to: 31n * day }),
      view.seriesKeys({ measurement: 'nosuch' }),
    ],
    answer: [
      ['cpu,host=a,region=eu', 'disk,host=a,path=/', 'net,host=a'],
      ['cpu,host=b,region=us', 'cpu,host=d,zone=z'],
      ['cpu,host=a,region=eu', 'cpu,host=d,zone=z'],
      [],
      [],
    ],
  },
  {
    name: 'nothing of an unknown database',
    ask: (view) => {
      const database = 'nosuch';
      return [
        view.measurements({ database }),
        view.fieldKeys({ database }),
        view.tagKeys({ database }),
        view.tagValues('host', { database }),
        view.seriesKeys({ database }),
      ];
    },
    answer: [[], [], [], [], []],
  },
];

export const schemaCases: readonly SeriesCase[] = [
  ...asks.map((one) => answeredCase({ ...one, name: `schema: ${one.name}`, given: points })),
  {
    name: 'schema: of all policies, or of one',
    async run(trial) {
      await trial.given([point('m,k=a', 1, { v: 1 }), point('m,k=b', 1, { v: 1 })]);
      trial.change({ kind: 'createRetentionPolicy', database: 'db', name: 'p', policy: {} });
      await trial.given([point('m,k=a', 1, { v: 1n }), point('n,k=c', 1, { v: 1 })], {
        policy: 'p',
      });
      await trial.everywhere((view) => {
        assert.deepEqual(view.measurements(), ['m', 'n']);
        assert.deepEqual(view.seriesKeys(), ['m,k=a', 'm,k=b', 'n,k=c']);
        assert.deepEqual(view.fieldKeys(), ['v float', 'v integer']);
        const retentionPolicy = 'p';
        assert.deepEqual(view.measurements({ retentionPolicy }), ['m', 'n']);
        assert.deepEqual(view.seriesKeys({ retentionPolicy }), ['m,k=a', 'n,k=c']);
        assert.deepEqual(view.fieldKeys({ retentionPolicy }), ['v integer']);
        assert.deepEqual(view.tagValues('k', { retentionPolicy: 'autogen' }), ['a', 'b']);
      });
    },
  },
  {
    name: 'schema: thousands of series over several shards',
    async run(trial) {
      const all = range(3000).map((i) =>
        point(`m,k=v${i % 2000}`, BigInt(i % 3) * 7n * day, { v: i }),
      );
      await trial.given(all);
      const keys = [...new Set(all.map(({ series }) => series))].sort();
      await trial.everywhere((view) => {
        assert.deepEqual(view.seriesKeys(), keys);
        assert.deepEqual(view.tagValues('k').length, 2000);
        assert.equal(view.seriesKeys({ measurement: 'm' }).length, 2000);
      });
    },
  },
];
