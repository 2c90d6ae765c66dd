// Points written are read back: types, times, series, points of the same time, and rejected points.

import assert from 'node:assert/strict';
import { batchesOf, batchOf } from './batch-builder.ts';
import { storedCase, type SeriesCase, type StoredCase } from './case.ts';
import {
  day,
  type FieldValue,
  hour,
  inRange,
  merged,
  type Point,
  point,
  range,
  unsigned,
  withFields,
} from './points.ts';

const maxInteger = 2n ** 63n - 1n;
const minInteger = -(2n ** 63n);
const maxUnsigned = 2n ** 64n - 1n;
const maxSafe = BigInt(Number.MAX_SAFE_INTEGER);

/** One series, a value a second from 0 on. */
function series(values: readonly FieldValue[], key = 'm,k=a'): Point[] {
  return values.map((v, i) => point(key, i, { v }));
}

const valueLists: Record<string, readonly FieldValue[]> = {
  floats: [0, 1.5, -1.5, 0.1, 1 / 3, 1e-7, 123456.789, -2.25],
  'floats at the limits': [
    Number.MAX_VALUE,
    -Number.MAX_VALUE,
    5e-324,
    -5e-324,
    2 ** 53,
    2 ** 53 + 2,
    1e300,
    1e22,
  ],
  'negative zero': [-0, 0, -0, 1, -0],
  'a float again and again': range(3000).map(() => 21.5),
  integers: [0n, 1n, -1n, 1000n, -123456n, 7n],
  'integers at the limit of doubles': [maxSafe, -maxSafe, 0n, maxSafe - 1n],
  'integers beyond doubles': [maxSafe + 1n, maxSafe + 2n, 1n, -maxSafe - 2n, 0n],
  'integers at the limits': [maxInteger, minInteger, maxInteger - 1n, minInteger + 1n, 5n],
  'unsigned integers': [0n, 1n, 5000n, maxSafe].map(unsigned),
  'unsigned integers beyond signed ones': [
    maxUnsigned,
    0n,
    maxInteger + 1n,
    1n,
    maxUnsigned - 1n,
  ].map(unsigned),
  booleans: [true, false, false, true, true],
  strings: ['a', 'b', '', 'a', 'with "quotes" and \\ and \n and \0', 'ünï 😀 \u2028'],
  'long strings': ['x'.repeat(70_000), '', 'y'.repeat(3), 'z'.repeat(1000)],
  'many different strings': range(2000).map((i) => `text ${i % 700} ${'.'.repeat(i % 13)}`),
  'many integers that hardly change': range(5000).map((i) => 1000n + BigInt(i % 3)),
  'many floats with few digits': range(5000).map((i) => (((i * 37) % 1000) - 500) / 10),
  'many floats with many digits': range(3000).map((i) => Math.sin(i)),
  'many booleans': range(5000).map((i) => i % 7 === 0),
  'many unsigned integers': range(3000).map((i) => unsigned(BigInt(i) * (maxUnsigned / 3001n))),
  'integers that grow wide in the middle': range(3000).map((i) =>
    i === 1500 ? maxInteger : BigInt(i),
  ),
};

const values: StoredCase[] = Object.entries(valueLists).map(([name, list]) => ({
  name: `values: ${name}`,
  writes: [series(list)],
}));

const base = 1_600_000_000;
const earliest = -9223372036854775806n;
const latest = 9223372036854775806n;

const times: StoredCase[] = [
  {
    name: 'times: the earliest, the latest, and around 1970',
    writes: [[earliest, -1n, 0n, 1n, latest].map((time, i) => point('m', time, { v: i }))],
  },
  {
    name: 'times: single nanoseconds apart',
    writes: [
      range(500).map((i) => point('m', BigInt(base) * 1_000_000_000n + BigInt(i), { v: i })),
    ],
  },
  {
    name: 'times: of nanoseconds without a pattern',
    writes: [
      range(2000).map((i) =>
        point('m', BigInt(base) * 1_000_000_000n + BigInt(i * 1_000_003 + ((i * 7919) % 1009)), {
          v: i,
        }),
      ),
    ],
  },
  {
    name: 'times: before 1970 across shards',
    writes: [range(60).map((i) => point('m', -day * BigInt(i) - 1n, { v: i }))],
  },
  {
    name: 'times: over years in one batch after another',
    writes: range(6).map((n) =>
      range(8).map((i) => point('m', base + n * 86_400 * 400 + i, { v: i })),
    ),
  },
  {
    name: 'times: on both sides of the end of a shard',
    writes: [range(9).map((i) => point('m', 70n * day + BigInt(i - 4), { v: i }))],
  },
];

const meeting: StoredCase[] = [
  {
    name: 'meeting: the later of two points wins',
    writes: [[point('m', 5, { v: 1 })], [point('m', 5, { v: 2 })]],
    then: [point('m', 5, { v: 2 })],
  },
  {
    name: 'meeting: the later of two points in one batch wins',
    writes: [[point('m', 5, { v: 1 }), point('m', 6, { v: 9 }), point('m', 5, { v: 2 })]],
    then: [point('m', 5, { v: 2 }), point('m', 6, { v: 9 })],
  },
  {
    name: 'meeting: fields of one time come together',
    writes: [
      [point('m', 5, { v: 1, w: 'old' })],
      [point('m', 5, { x: 3n })],
      [point('m', 5, { w: 'new', y: true })],
    ],
    fields: ['v', 'w', 'x', 'y'],
    then: [point('m', 5, { v: 1, w: 'new', x: 3n, y: true })],
  },
  {
    name: 'meeting: fields of one time in one batch come together',
    writes: [
      [
        point('m', 5, { v: 1, w: 1n }),
        point('m', 5, { w: 2n, x: 's' }),
        point('m', 5, { v: 3 }),
        point('m', 5, { x: 't' }),
      ],
    ],
    fields: ['v', 'w', 'x'],
    then: [point('m', 5, { v: 3, w: 2n, x: 't' })],
  },
  {
    name: 'meeting: a time written a hundred times',
    writes: range(100).map((i) => [point('m', 5, { v: i, [`f${i % 5}`]: BigInt(i) })]),
    fields: ['v', 'f0', 'f1', 'f2', 'f3', 'f4'],
  },
  {
    name: 'meeting: all of a series again, with other values',
    writes: [
      range(2000).map((i) => point('m', i, { v: i })),
      range(2000).map((i) => point('m', i, { v: -i })),
    ],
  },
  {
    name: 'meeting: every other point again',
    writes: [
      range(2000).map((i) => point('m', i, { v: i, w: BigInt(i) })),
      range(1000).map((i) => point('m', 2 * i, { v: -i })),
      range(500).map((i) => point('m', 4 * i, { w: maxInteger })),
    ],
    fields: ['v', 'w'],
  },
  {
    name: 'order: points that come backwards',
    writes: [range(1000).map((i) => point('m', 1000 - i, { v: i }))],
  },
  {
    name: 'order: older points later',
    writes: range(10).map((n) => range(50).map((i) => point('m', (10 - n) * 50 + i, { v: i }))),
  },
  {
    name: 'order: points shuffled among batches and series',
    writes: range(8).map((n) =>
      range(200).map((i) => {
        const k = (i * 131 + n * 17) % 1600;
        return point(`m,k=${k % 3}`, (k * 7) % 1601, { v: k, s: `${n}` });
      }),
    ),
    fields: ['v', 's'],
  },
  {
    name: 'order: gaps filled one after another',
    writes: range(5).map((n) => range(300).map((i) => point('m', i * 5 + ((n * 3) % 5), { v: n }))),
  },
];

const presence: StoredCase[] = [
  {
    name: 'presence: points of one batch with different fields',
    writes: [
      range(600).map((i) =>
        point('m', i, { [`f${i % 3}`]: i, ...(i % 5 === 0 ? { v: 's' } : {}) }),
      ),
    ],
    fields: ['f0', 'f1', 'f2', 'v'],
  },
  {
    name: 'presence: a field that comes later',
    writes: [
      range(100).map((i) => point('m', i, { v: i })),
      range(100).map((i) => point('m', 100 + i, { v: i, late: `${i}` })),
      range(100).map((i) => point('m', 200 + i, { late: 'only' })),
    ],
    fields: ['v', 'late'],
  },
  {
    name: 'presence: a row without the fields asked for is left out',
    writes: [range(100).map((i) => point('m', i, i % 10 === 3 ? { v: i } : { w: i }))],
  },
  {
    name: 'presence: series of one measurement with different fields',
    writes: [range(300).map((i) => point(`m,k=${i % 3}`, i, { [`f${i % 3}`]: i, v: i }))],
    fields: ['f0', 'v', 'f2', 'f1'],
  },
  {
    name: 'presence: hundreds of fields',
    writes: range(3).map((n) =>
      range(20).map((i) =>
        point(`m,k=${n}`, i, Object.fromEntries(range(300).map((f) => [`f${f}`, f * i + n]))),
      ),
    ),
    fields: range(300).map((f) => `f${f}`),
  },
  {
    name: 'presence: every type in one point',
    writes: [
      range(200).map((i) =>
        point('m,k=a', i, {
          f: i / 4,
          i: BigInt(-i),
          u: unsigned(BigInt(i)),
          s: `s${i}`,
          b: i % 2 === 0,
        }),
      ),
    ],
    fields: ['b', 's', 'u', 'i', 'f'],
  },
];

const names: StoredCase[] = [
  {
    name: 'names: thousands of series',
    writes: [range(4000).map((i) => point(`m,host=h${i},region=r${i % 7}`, i % 50, { v: i }))],
  },
  {
    name: 'names: tags and fields with characters that mean something',
    writes: [
      [
        point('m,a\\ b=c\\,d,e\\=f=g\\\\h', 1, { v: 1, 'x y,z="': 2 }),
        point('m,k=ünï\\ 😀', 1, { v: 2 }),
        point('m,k="quoted"', 1, { v: 3 }),
      ],
    ],
    fields: ['v', 'x y,z="'],
  },
  {
    name: 'names: a series without tags beside others',
    writes: [[point('m', 1, { v: 1 }), point('m,k=a', 1, { v: 2 })]],
  },
  {
    name: 'names: long ones',
    writes: [[point(`m,k=${'v'.repeat(20_000)}`, 1, { v: 1, ['f'.repeat(20_000)]: 2 })]],
    fields: ['v', 'f'.repeat(20_000)],
  },
];

const others: SeriesCase[] = [
  {
    name: 'write: measurements of one batch are kept apart',
    async run(trial) {
      const all = range(60).map((i) =>
        point(`${['m', 'n', 'm m'][i % 3]!.replace(' ', '\\ ')},k=a`, i, { v: i }),
      );
      await trial.given(all);
      await trial.everywhere((view) => {
        for (const name of ['m', 'n', 'm m']) {
          const own = all.filter(({ series: key }) =>
            key.startsWith(`${name.replace(' ', '\\ ')},`),
          );
          assert.deepEqual(view.read({ measurement: name }), own);
        }
        assert.deepEqual(view.measurements(), ['m', 'm m', 'n']);
      });
    },
  },
  {
    name: 'write: policies and databases are kept apart',
    async run(trial) {
      await trial.given([point('m', 1, { v: 1 })]);
      trial.change({ kind: 'createRetentionPolicy', database: 'db', name: 'p', policy: {} });
      await trial.given([point('m', 1, { v: 's' })], { policy: 'p' });
      await trial.given([point('m', 1, { v: 3n })], { database: 'other' });
      await trial.everywhere((view) => {
        assert.deepEqual(view.read(), [point('m', 1, { v: 1 })]);
        assert.deepEqual(view.read({ retentionPolicy: 'autogen' }), [point('m', 1, { v: 1 })]);
        assert.deepEqual(view.read({ retentionPolicy: 'p' }), [point('m', 1, { v: 's' })]);
        assert.deepEqual(view.read({ database: 'other' }), [point('m', 1, { v: 3n })]);
      });
    },
  },
  {
    name: 'write: an empty batch is no entry',
    async run(trial) {
      await trial.given([point('m', 1, { v: 1 })]);
      const { index } = trial;
      const batch = {
        ...batchesOf(trial.cache, [point('m', 2, { v: 1 })])[0]!,
        rows: 0,
        groups: [],
      };
      const outcome = trial.run((into) => trial.engine.prepareWrite('db', '', batch, 0, into));
      assert.deepEqual(outcome, { written: 0, dropped: 0, error: undefined });
      assert.equal(trial.index, index);
    },
  },
  {
    name: 'write: handles of a cache that was emptied mean other series',
    async run(trial) {
      const first = range(20).map((i) => point(`m,k=${i}`, i, { v: i }));
      const second = range(20).map((i) => point(`m,k=${i * 7}`, 100 + i, { v: i }));
      await trial.given(first);
      trial.cache.empty();
      await trial.given(second);
      trial.cache.empty();
      await trial.given(first);
      await trial.everywhere((view) =>
        assert.deepEqual(view.read(), merged([...first, ...second])),
      );
    },
  },
  {
    name: 'write: one cache serves several databases and shards',
    async run(trial) {
      const here = range(40).map((i) => point(`m,k=${i % 9}`, BigInt(i % 4) * 7n * day, { v: i }));
      const there = range(40).map((i) =>
        point(`m,k=${i % 13}`, BigInt(i % 3) * 7n * day, { v: -i }),
      );
      await trial.given(here);
      await trial.given(there, { database: 'there' });
      await trial.given(here);
      await trial.everywhere((view) => {
        assert.deepEqual(view.read(), merged(here));
        assert.deepEqual(view.read({ database: 'there' }), merged(there));
      });
    },
  },
  {
    name: 'conflict: points with another type are dropped, the others are stored',
    async run(trial) {
      await trial.given([point('m,k=a', 1, { v: 1 })]);
      const outcome = await trial.write([
        point('m,k=a', 2, { v: 2 }),
        point('m,k=a', 3, { v: 3n }),
        point('m,k=b', 4, { v: 'text', w: 1 }),
        point('m,k=b', 5, { w: 5 }),
        point('n,k=b', 6, { v: 6n }),
      ]);
      assert.equal(outcome.written, 3);
      assert.equal(outcome.dropped, 2);
      assert.equal(
        outcome.error,
        'field type conflict: input field "v" on measurement "m" is type integer, already exists as type float',
      );
      await trial.everywhere((view) => {
        assert.deepEqual(view.read({ fields: ['v', 'w'] }), [
          point('m,k=a', 1, { v: 1 }),
          point('m,k=a', 2, { v: 2 }),
          point('m,k=b', 5, { w: 5 }),
        ]);
        assert.deepEqual(view.read({ measurement: 'n' }), [point('n,k=b', 6, { v: 6n })]);
      });
    },
  },
  {
    name: 'conflict: the first type of a batch is the type',
    async run(trial) {
      await trial.given([]);
      const outcome = await trial.write([
        point('m', 1, { v: true }),
        point('m', 2, { v: 2 }),
        point('m', 3, { v: false }),
        point('m', 4, { v: unsigned(4n) }),
      ]);
      assert.deepEqual([outcome.written, outcome.dropped], [2, 2]);
      await trial.everywhere((view) => {
        assert.deepEqual(view.read(), [point('m', 1, { v: true }), point('m', 3, { v: false })]);
        assert.deepEqual(view.fieldKeys(), ['v boolean']);
      });
    },
  },
  {
    name: 'conflict: a batch of nothing else leaves no trace',
    async run(trial) {
      await trial.given([point('m,k=a', 1, { v: 1 })]);
      const outcome = await trial.write([
        point('m,k=new', 2, { v: 2n }),
        point('m,k=b', 3, { v: 's' }),
      ]);
      assert.deepEqual([outcome.written, outcome.dropped], [0, 2]);
      await trial.given([point('m,k=c', 4, { v: 4 })]);
      await trial.everywhere((view) => {
        assert.deepEqual(view.seriesKeys(), ['m,k=a', 'm,k=c']);
        assert.deepEqual(view.read(), [point('m,k=a', 1, { v: 1 }), point('m,k=c', 4, { v: 4 })]);
      });
    },
  },
  {
    name: 'conflict: a field of a dropped point alone is not known',
    async run(trial) {
      await trial.given([point('m', 1, { v: 1 })]);
      const outcome = await trial.write([
        point('m', 2, { v: 's', extra: 1 }),
        point('m', 3, { v: 3 }),
      ]);
      assert.deepEqual([outcome.written, outcome.dropped], [1, 1]);
      await trial.everywhere((view) => assert.deepEqual(view.fieldKeys(), ['v float']));
      await trial.given([point('m', 4, { extra: 'another type' })]);
    },
  },
  {
    name: 'conflict: is within a shard',
    async run(trial) {
      const points = [point('m', 1n, { v: 1 }), point('m', 70n * day, { v: 's' })];
      await trial.given(points);
      await trial.everywhere((view) => {
        assert.deepEqual(view.read(), points);
        assert.deepEqual(view.types(['v', 'nosuch']), ['string', undefined]);
        assert.deepEqual(view.types(['v'], { to: day }), ['float']);
        assert.deepEqual(view.fieldKeys(), ['v float', 'v string']);
      });
    },
  },
  {
    name: 'old: points beyond their policy are dropped, the others are stored',
    async run(trial) {
      await trial.given([]);
      const policy = { duration: hour };
      trial.change({ kind: 'createRetentionPolicy', database: 'db', name: 'p', policy });
      const now = 500_000_000_000n;
      const at = (ago: bigint): bigint => now * 1_000_000n - ago;
      const points = [2n * hour, hour + 1n, hour, hour - 1n, 0n, -hour].map((ago, i) =>
        point('m', at(ago), { v: i }),
      );
      const outcome = await trial.write(points, { policy: 'p', now: Number(now) });
      assert.deepEqual([outcome.written, outcome.dropped], [4, 2]);
      assert.match(outcome.error!, /points beyond retention policy/);
      await trial.everywhere((view) => {
        const found = view.read({ retentionPolicy: 'p' });
        assert.deepEqual(found, inRange(points, at(hour), at(-hour)));
      });
    },
  },
  {
    name: 'old: a batch of nothing else leaves no trace',
    async run(trial) {
      await trial.given([]);
      trial.change({
        kind: 'alterRetentionPolicy',
        database: 'db',
        name: 'autogen',
        policy: { duration: 30n * day },
      });
      const now = Number(day / 1_000_000n) * 1000;
      const old = [point('m', 10n * day, { v: 1 }), point('m', 20n * day, { v: 1 })];
      const outcome = await trial.write(old, { now });
      assert.deepEqual([outcome.written, outcome.dropped], [0, 2]);
      await trial.everywhere((view) => assert.deepEqual(view.seriesKeys(), []));
      await trial.given([point('m', 1000n * day, { v: 1 })], { now });
    },
  },
  {
    name: 'write: batches whose base is far from their points',
    async run(trial) {
      const points = range(20).map((i) => point('m', i * 1000, { v: i }));
      await trial.given([]);
      for (const shift of [-8_000_000, 0, 8_000_000]) {
        const batch = batchOf(trial.cache, points, shift);
        while (trial.engine.congested) await trial.engine.drained();
        trial.run((into) => trial.engine.prepareWrite('db', '', batch, 0, into));
        assert.deepEqual(trial.read(), points);
      }
    },
  },
  {
    name: 'write: many small batches',
    async run(trial) {
      const points = range(600).map((i) =>
        point(`m,k=${i % 10}`, i, { v: i, [`w${i % 2}`]: `${i}` }),
      );
      for (const one of points) await trial.given([one]);
      const fields = ['v', 'w0', 'w1'];
      await trial.everywhere((view) =>
        assert.deepEqual(view.read({ fields }), withFields(merged(points), fields)),
      );
    },
  },
];

export const writeCases: readonly SeriesCase[] = [
  ...[...values, ...times, ...meeting, ...presence, ...names].map(storedCase),
  ...others,
];
