// The log: words that are discarded, applied twice, damaged, replayed, and the same everywhere.

import assert from 'node:assert/strict';
import type { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { batchesOf } from './batch-builder.ts';
import { createDatabase, type SeriesCase } from './case.ts';
import { day, merged, type Point, point, range, second, sorted, withFields } from './points.ts';
import type { SeriesTrial } from './trial.ts';

const fields = ['v', 'w', 's'];

/** A life with a bit of everything. */
export async function eventful(
  trial: SeriesTrial,
  rest = async (): Promise<void> => {},
): Promise<void> {
  await trial.given(range(300).map((i) => point(`m,k=${i % 7}`, i * 60, { v: i, w: BigInt(i) })));
  await rest();
  await trial.given(
    range(300).map((i) => point(`m,k=${i % 5}`, i * 61, { v: -i, s: `text ${i}` })),
  );
  trial.change({
    kind: 'createRetentionPolicy',
    database: 'db',
    name: 'p',
    policy: { duration: 30n * day },
  });
  await rest();
  await trial.given(
    range(50).map((i) => point(`n,k=${i % 3}`, 20n * day + BigInt(i), { v: `${i}` })),
    { policy: 'p' },
  );
  trial.delete('points', { measurement: 'm', from: 1000n * second, to: 3000n * second });
  await rest();
  await trial.write([point('m,k=1', 70, { v: 's' }), point('m,k=9', 71, { v: 1 })]);
  trial.delete('series', { filter: { kind: 'equal', tag: 'k', value: '2' } });
  await trial.given(
    range(300).map((i) => point(`m,k=${i % 9}`, 70n * day + BigInt(i), { v: 2n ** 60n, s: 'x' })),
  );
  await rest();
  trial.change(createDatabase('other'));
  trial.change(createDatabase('gone'));
  await trial.given([point('m,k=z', 1, { v: 1 })], { database: 'gone' });
  trial.change({ kind: 'dropDatabase', database: 'gone' });
  await trial.given(
    range(40).map((i) => point('m,k=2', i, { w: BigInt(-i) })),
    { database: 'other' },
  );
  trial.retain(Number((500n * day) / 1_000_000n));
  await rest();
}

/** All that is asked of it, so that two engines can be compared. */
export function answersOf({ view, engine }: SeriesTrial): unknown {
  return engine.databases().map(({ name, retentionPolicies, defaultRetentionPolicy }) => ({
    name,
    retentionPolicies,
    defaultRetentionPolicy,
    measurements: view.measurements({ database: name }),
    series: view.seriesKeys({ database: name }),
    points: retentionPolicies.flatMap((policy) =>
      view.measurements({ database: name }).map((measurement) => ({
        keys: view.fieldKeys({ database: name, measurement }),
        rows: view.read({ database: name, retentionPolicy: policy.name, measurement, fields }),
      })),
    ),
  }));
}

async function bytesOf(entries: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const entry of entries) parts.push(Buffer.from(entry));
  return Buffer.concat(parts);
}

export const logCases: readonly SeriesCase[] = [
  {
    name: 'index: 0 at the beginning, then that of the last entry, with gaps',
    async run(trial) {
      assert.equal(trial.engine.appliedIndex, 0);
      trial.change(createDatabase('db'));
      assert.equal(trial.engine.appliedIndex, 1);
      trial.index = 4_000_000_000_000;
      await trial.given([point('m', 1, { v: 1 })]);
      assert.equal(trial.engine.appliedIndex, 4_000_000_000_001);
      await trial.checkpoint();
      await trial.reopen();
      assert.equal(trial.engine.appliedIndex, 4_000_000_000_001);
      assert.deepEqual(trial.read(), [point('m', 1, { v: 1 })]);
    },
  },
  {
    name: 'discard: what was prepared has not happened',
    async run(trial) {
      const { engine, cache } = trial;
      await trial.given([point('m,k=a', 1, { v: 1 })]);
      const other = [
        point('m,k=a', 2, { w: 's' }),
        point('m,k=b', 2, { v: 2 }),
        point('n,k=c', 70n * day, { v: 2 }),
      ];
      const before = answersOf(trial);
      const write = (points: readonly Point[]) => (into: RecordBatchWriter) =>
        engine.prepareWrite('db', '', batchesOf(cache, points)[0]!, 0, into);
      assert.ok(trial.discarded(write(other)).length > 0);
      trial.discarded((into) => engine.prepareChange(createDatabase('more'), into));
      for (const kind of ['points', 'series'] as const) {
        for (const part of engine.deletion(kind, { database: 'db' })) {
          if (part !== undefined) trial.discarded(part);
        }
      }
      assert.deepEqual(answersOf(trial), before);
      // The same series and fields again, in another order and with other types.
      const real = [
        point('n,k=c', 1, { v: 's' }),
        point('m,k=b', 2, { v: 2, w: 1n }),
        point('m,k=a', 3, { w: 2n }),
      ];
      await trial.given(real);
      await trial.everywhere((view) => {
        const found = view.read({ fields: ['v', 'w'] });
        assert.deepEqual(found, sorted([point('m,k=a', 1, { v: 1 }), ...real.slice(1)]));
        assert.deepEqual(view.read({ measurement: 'n' }), real.slice(0, 1));
      });
    },
  },
  {
    name: 'discard: every other batch',
    async run(trial) {
      const { engine, cache } = trial;
      const points = range(400).map((i) =>
        point(`m,k=${(i * 7) % 101}`, i * 3600, { v: i, [`f${i % 9}`]: i }),
      );
      const kept: Point[] = [];
      trial.change(createDatabase('db'));
      for (let i = 0; i < points.length; i += 10) {
        const some = points.slice(i, i + 10);
        if (i % 20 === 0) {
          const batch = batchesOf(cache, some)[0]!;
          trial.discarded((into) => engine.prepareWrite('db', '', batch, 0, into));
        } else {
          await trial.given(some);
          kept.push(...some);
        }
      }
      await trial.everywhere((view) => {
        const all = ['v', ...range(9).map((f) => `f${f}`)];
        assert.deepEqual(view.read({ fields: all }), withFields(merged(kept), all));
        assert.deepEqual(view.seriesKeys(), [...new Set(kept.map(({ series }) => series))].sort());
      });
    },
  },
  {
    name: 'apply: a batch is applied when it is in words, not before',
    async run(trial) {
      const { engine, cache } = trial;
      trial.change(createDatabase('db'));
      const batch = batchesOf(cache, [point('m', 1, { v: 1 })])[0]!;
      trial.run((into) => {
        const outcome = engine.prepareWrite('db', '', batch, 0, into);
        assert.equal(outcome.written, 1);
        assert.deepEqual(trial.read(), []);
      });
      assert.deepEqual(trial.read(), [point('m', 1, { v: 1 })]);
    },
  },
  {
    name: 'apply: damaged words throw',
    async run(trial) {
      await trial.given(range(20).map((i) => point(`m,k=${i % 4}`, i, { v: i, s: `${i}` })));
      const { words } = trial.log.at(-1)!;
      const other = await trial.another();
      other.change(createDatabase('db'));
      for (const end of [1, words.length >> 1, words.length - 1]) {
        const cut = Buffer.from(words.subarray(0, end));
        assert.throws(() => other.engine.apply(cut, 0, end, other.index + 1), `cut at ${end}`);
        assert.equal(other.engine.appliedIndex, other.index);
      }
      const nonsense = Buffer.alloc(50, 0xfe);
      assert.throws(() => other.engine.apply(nonsense, 0, 50, other.index + 1));
    },
  },
  {
    name: 'apply: entries that are there already change nothing',
    async run(trial) {
      await eventful(trial);
      const before = answersOf(trial);
      for (const entry of trial.log) trial.applyEntry(entry);
      assert.equal(trial.engine.appliedIndex, trial.index);
      assert.deepEqual(answersOf(trial), before);
      await trial.checkpoint();
      await trial.reopen();
      await trial.replay(0);
      assert.deepEqual(answersOf(trial), before);
    },
  },
  {
    name: 'determinism: the same words make the same export',
    async run(trial) {
      await eventful(trial);
      const others = [await trial.another(), await trial.another()];
      for (const other of others) {
        other.log.push(...trial.log);
        other.index = trial.index;
        await other.replay(0);
        assert.deepEqual(answersOf(other), answersOf(trial));
      }
      const [first, second] = await Promise.all(
        others.map(({ engine }) => bytesOf(engine.exportSnapshot())),
      );
      assert.ok(first!.equals(second!), 'exports differ');
      const again = await bytesOf(others[0]!.engine.exportSnapshot());
      assert.ok(first!.equals(again), 'the same export again differs');
    },
  },
  {
    name: 'determinism: whatever is flushed, merged and reopened in between',
    async run(trial) {
      let ticks = 0;
      const rests = [() => trial.checkpoint(), () => trial.settle(), () => trial.reopen()];
      await eventful(trial, () => rests[ticks++ % 3]!());
      const other = await trial.another();
      await eventful(other);
      assert.deepEqual(answersOf(trial), answersOf(other));
      // Words are a function of the state too.
      assert.deepEqual(
        trial.log.map(({ words }) => words.toString('base64')),
        other.log.map(({ words }) => words.toString('base64')),
      );
    },
  },
  {
    name: 'replay: from every checkpoint on',
    async run(trial) {
      const points = range(600).map((i) =>
        point(`m,k=${i % 11}`, (i * 37) % 601, { v: i, s: `${i % 3}` }),
      );
      await trial.given([]);
      for (let i = 0; i < points.length; i += 25) {
        await trial.given(points.slice(i, i + 25));
        if (i % 100 === 50) await trial.checkpoint();
        if (i % 75 === 0) await trial.reopen();
        assert.deepEqual(trial.read({ fields }), merged(points.slice(0, i + 25)));
      }
      await trial.everywhere((view) => assert.deepEqual(view.read({ fields }), merged(points)));
    },
  },
  {
    name: 'replay: deletions and drops above a checkpoint',
    async run(trial) {
      const points = range(200).map((i) => point(`m,k=${i % 4}`, i, { v: i }));
      await trial.given(points);
      await trial.checkpoint();
      trial.delete('points', { from: 10n * second, to: 50n * second });
      trial.delete('series', { filter: { kind: 'equal', tag: 'k', value: '3' } });
      await trial.given([point('m,k=3', 20, { v: -1 })]);
      const left = points.filter(
        ({ time, series }) => (time < 10n * second || time > 50n * second) && series !== 'm,k=3',
      );
      const expected = sorted([...left, point('m,k=3', 20, { v: -1 })]);
      for (const _ of range(3)) {
        await trial.reopen();
        assert.deepEqual(trial.read(), expected);
        await trial.settle();
      }
      await trial.everywhere((view) => assert.deepEqual(view.read(), expected));
    },
  },
  {
    name: 'replay: a shard dropped and made again above a checkpoint',
    async run(trial) {
      await trial.given([point('m,k=a', 1, { v: 1 })]);
      await trial.checkpoint();
      trial.delete('series', {});
      await trial.given([point('m,k=a', 1, { v: 's' })]);
      await trial.settle();
      await trial.reopen();
      await trial.everywhere((view) =>
        assert.deepEqual(view.read(), [point('m,k=a', 1, { v: 's' })]),
      );
      trial.change({ kind: 'dropDatabase', database: 'db' });
      trial.change(createDatabase('db'));
      await trial.given([point('m,k=a', 1, { v: true })]);
      await trial.everywhere((view) =>
        assert.deepEqual(view.read(), [point('m,k=a', 1, { v: true })]),
      );
    },
  },
  {
    name: 'replay: what a flush had on disk already comes once',
    async run(trial) {
      const points = range(500).map((i) => point(`m,k=${i % 3}`, i, { v: i, s: `${i}` }));
      await trial.given(points.slice(0, 250));
      await trial.settle();
      await trial.given(points.slice(250));
      await trial.settle();
      await trial.reopen();
      await trial.given([point('m,k=0', 3, { v: -3 })]);
      await trial.reopen();
      const expected = merged([...points, point('m,k=0', 3, { v: -3 })]);
      await trial.everywhere((view) => assert.deepEqual(view.read({ fields }), expected));
    },
  },
  {
    name: 'checkpoint: holds what was applied when it was asked for, writes go on meanwhile',
    async run(trial) {
      const points = range(900).map((i) => point(`m,k=${i % 5}`, i, { v: i }));
      await trial.given(points.slice(0, 300));
      const asked = trial.index;
      const checkpoint = trial.engine.checkpoint();
      for (let i = 300; i < 900; i += 20) {
        await trial.given(points.slice(i, i + 20));
        trial.engine.background(1);
      }
      const index = await checkpoint;
      assert.ok(index >= asked && index <= trial.index, `${asked} <= ${index} <= ${trial.index}`);
      await trial.reopen();
      assert.ok(trial.engine.appliedIndex >= index);
      await trial.everywhere((view) => assert.deepEqual(view.read(), merged(points)));
    },
  },
  {
    name: 'checkpoint: several at once, and of an empty engine',
    async run(trial) {
      assert.equal(await trial.engine.checkpoint(), 0);
      await trial.given([point('m', 1, { v: 1 })]);
      const { index } = trial;
      const all = [1, 2, 3].map(() => trial.engine.checkpoint());
      await trial.given([point('m', 2, { v: 2 })]);
      for (const made of await Promise.all(all)) assert.ok(made >= index);
      await trial.reopen();
      assert.deepEqual(trial.read(), [point('m', 1, { v: 1 }), point('m', 2, { v: 2 })]);
    },
  },
  {
    name: 'reopen: an empty engine, many times',
    async run(trial) {
      for (const _ of range(3)) {
        await trial.reopen();
        assert.deepEqual(trial.engine.databases(), []);
        assert.equal(trial.engine.appliedIndex, 0);
      }
      trial.change(createDatabase('db'));
      for (const _ of range(3)) {
        await trial.checkpoint();
        await trial.reopen();
      }
      assert.deepEqual(
        trial.engine.databases().map(({ name }) => name),
        ['db'],
      );
    },
  },
  {
    name: 'stats: count what is there',
    async run(trial) {
      const points = range(100).map((i) => point(`m,k=${i % 10}`, i, { v: i }));
      await trial.given(points);
      await trial.given([point('m,k=0', 70n * day, { v: 1 })]);
      trial.change(createDatabase('empty'));
      await trial.checkpoint();
      const { databases, shards, series, headPoints } = trial.engine.stats();
      assert.deepEqual({ databases, shards, series }, { databases: 2, shards: 2, series: 11 });
      assert.ok(headPoints <= points.length + 1);
      for (const value of Object.values(trial.engine.stats())) {
        if (typeof value === 'number') assert.ok(value >= 0 && Number.isFinite(value));
      }
    },
  },
];
