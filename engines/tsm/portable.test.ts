// Parts of an engine taken out, and put into another beside what is there.

import { expect, test } from 'vitest';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import { seededRng } from '../../storage-node/replicator/group/log-fixture.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import type { SnapshotSelection } from '../series-engine.ts';
import { EngineTrial, point } from './testing/engine-trial.ts';
import { ExportTally, type ShardSum } from './ops/export-tally.ts';

const week = 7n * 86_400n * 1_000_000_000n;

const opened = (): Promise<EngineTrial> => EngineTrial.open(new FaultyDisk({ rng: seededRng(1) }));

/** Three weeks of points of a few series. */
function fill(trial: EngineTrial, database = 'd', more = ''): void {
  const points = Array.from({ length: 300 }, (_, n) =>
    point(`m,k=${n % 7}${more}`, BigInt(n) * (week / 100n), n / 3, n % 3 === 0 ? 'v' : 'w'),
  );
  trial.writeTo(database, points);
}

async function exported(trial: EngineTrial, selection?: SnapshotSelection): Promise<Buffer[]> {
  const entries: Buffer[] = [];
  for await (const entry of trial.engine.exportSnapshot(selection)) {
    entries.push(Buffer.from(entry));
  }
  return entries;
}

function sumsOf(entries: readonly Buffer[]): Omit<ShardSum, 'number' | 'database'>[] {
  const tally = new ExportTally();
  for (const entry of entries) for (const _ of tally.add(entry));
  return tally.sums().map(({ number: _number, database: _database, ...sum }) => sum);
}

/** Takes all of an export in, an entry of the log for each step. */
function take(trial: EngineTrial, entries: readonly Buffer[], as: string): void {
  const importer = trial.engine.importer((database) => (database === 'd' ? as : undefined));
  const ops = new RecordBatchWriter();
  for (const entry of entries) {
    const steps = importer.put(entry, () => true, ops);
    for (let ended = false; !ended; ) {
      trial.enter((into) => {
        ops.pos = 0;
        ended = steps.next().done === true;
        into.reserve(ops.pos);
        into.pos += ops.buf.copy(into.buf, into.pos, 0, ops.pos);
      });
    }
  }
}

test('an export of some databases and shards has nothing else', async () => {
  const trial = await opened();
  trial.change({ kind: 'createDatabase', database: 'other' });
  fill(trial);
  fill(trial, 'other');
  const all = sumsOf(await exported(trial));
  expect(all.map(({ rows }) => rows)).toEqual([100, 100, 100, 100, 100, 100]);
  const some = sumsOf(await exported(trial, { database: (name) => name === 'other' }));
  expect(some.length).toBe(3);
  const [first] = trial.engine.shards();
  const one = sumsOf(
    await exported(trial, {
      database: (name) => name === 'd',
      shard: (number) => number === first!.number,
    }),
  );
  expect(one.map(({ rows }) => rows)).toEqual([100, 0, 0]);
});

test('a database comes in beside others, under another name, and after a crash as well', async () => {
  const source = await opened();
  fill(source);
  const entries = await exported(source);
  const target = await opened();
  fill(target, 'd', 'mine');
  const mine = target.read(['v', 'w']);
  take(target, entries, 'copy');
  const check = async (): Promise<void> => {
    expect(target.read(['v', 'w'])).toEqual(mine);
    expect(target.read(['v', 'w'], { database: 'copy' })).toEqual(source.read(['v', 'w']));
    const again = await exported(target, { database: (name) => name === 'copy' });
    expect(sumsOf(again)).toEqual(sumsOf(entries));
  };
  await check();
  await target.reopen('crash');
  await check();
  await target.engine.checkpoint();
  await target.reopen('close');
  await check();
});

test('a database takes the place of another by its name', async () => {
  const trial = await opened();
  trial.change({ kind: 'createDatabase', database: 'new' });
  fill(trial);
  fill(trial, 'new', 'x');
  const expected = trial.read(['v', 'w'], { database: 'new' });
  const before = trial.engine.shards().length;
  trial.enter((into) => trial.engine.prepareRename('new', 'd', into));
  const check = (): void => {
    expect(trial.engine.databases().map(({ name }) => name)).toEqual(['d']);
    expect(trial.read(['v', 'w'])).toEqual(expected);
    expect(trial.engine.shards().map(({ database }) => database)).toEqual(['d', 'd', 'd']);
  };
  check();
  expect(before).toBe(6);
  await trial.reopen('crash');
  check();
  trial.write([point('m,k=later', 5n, 1)]);
  expect(trial.read(['v', 'w']).length).toBe(expected.length + 1);
  // One that is not there changes nothing.
  trial.enter((into) => trial.engine.prepareRename('gone', 'd', into));
  expect(trial.read(['v', 'w']).length).toBe(expected.length + 1);
});

test('a shard says when it was last changed: by points, deletions, and series that go', async () => {
  const trial = await opened();
  fill(trial);
  const changed = (since: number): number =>
    trial.engine.shards().filter(({ changedAt }) => changedAt > since).length;
  const { engine } = trial;
  expect(changed(0)).toBe(3);
  let since = engine.appliedIndex;
  expect(changed(since)).toBe(0);
  trial.write([point('m,k=0', 1n, 9)]);
  expect(changed(since)).toBe(1);
  since = engine.appliedIndex;
  trial.delete('points', { database: 'd', from: week, to: week + week / 2n });
  expect(changed(since)).toBe(1);
  since = engine.appliedIndex;
  trial.delete('series', {
    database: 'd',
    measurement: 'm',
    filter: { kind: 'equal', tag: 'k', value: '3' },
  });
  expect(changed(since)).toBe(3);
  since = engine.appliedIndex;
  await engine.checkpoint();
  await trial.reopen('close');
  expect(changed(since)).toBe(0);
});

test('an export that is damaged is a RangeError, wherever it is', async () => {
  const trial = await opened();
  fill(trial);
  const entries = await exported(trial);
  for (const entry of entries) {
    for (let at = 0; at < entry.length; at += 1 + Math.floor(entry.length / 150)) {
      const damaged = Buffer.from(entry.subarray(0, at));
      const attempt = (): void => {
        const tally = new ExportTally();
        for (const other of entries) for (const _ of tally.add(other === entry ? damaged : other));
      };
      // Cut between two ops it is whole, as far as it goes.
      try {
        attempt();
      } catch (error) {
        expect(error, `cut at ${at}`).toBeInstanceOf(RangeError);
      }
    }
  }
});
