// Reports of backups and restores, for charging them.

import { afterEach, describe, expect, test } from 'vitest';
import { batchOf, TestSeriesCache } from '../../engines/tsm/testing/point-batches.ts';
import { realDisk } from '../disk/real-disk.ts';
import type { CopiedPoints, CopiedRows } from '../background-work.ts';
import { BackupFixture, type Model, put } from './backup-fixture.ts';
import { SeriesRestore } from './series-restore.ts';

let f: BackupFixture;
afterEach(() => f.close());

class Told {
  copied: CopiedRows[] = [];
  restored: CopiedRows[] = [];

  /** By table: rows and bytes. */
  take(what: 'copied' | 'restored'): Map<number, { rows: number; bytes: number }> {
    const told = new Map<number, { rows: number; bytes: number }>();
    for (const { table, rows, bytes } of this[what]) {
      const sum = told.get(table) ?? { rows: 0, bytes: 0 };
      told.set(table, { rows: sum.rows + rows, bytes: sum.bytes + bytes });
    }
    this[what] = [];
    return told;
  }
}

describe.each<Model>(['memory', 'kv'])('rows of %s', (model) => {
  test('are told by table, as often as they are read or written', async () => {
    f = new BackupFixture();
    const told = new Told();
    f.background = {
      expired: () => {},
      checkpointed: () => {},
      copied: (tables) => void told.copied.push(...tables),
      restored: (tables) => void told.restored.push(...tables),
    };
    const source = await f.pod('source', model);
    const value = 'v'.repeat(1000);
    for (let i = 0; i < 300; i++) await put(source, i % 3 === 0 ? 2 : 1, `key ${i}`, value);
    const full = await f.backup({ [model]: source });
    const whole = told.take('copied');
    expect([1, 2].map((table) => [table, whole.get(table)?.rows])).toEqual([
      [1, 200],
      [2, 100],
    ]);
    expect(whole.get(1)!.bytes / whole.get(2)!.bytes).toBeCloseTo(2, 1);
    expect(whole.get(2)!.bytes).toBeGreaterThan(100_000);

    // An incremental one reads what was changed, and all rows where it sums them up.
    f.sums = false;
    for (let i = 0; i < 30; i++) await put(source, 2, `key ${3 * i}`, value);
    const second = await f.backup({ [model]: source }, full);
    const changes = told.take('copied');
    expect([...changes.keys()]).toEqual([2]);
    expect(changes.get(2)!.bytes).toBeGreaterThan(30_000);
    expect(changes.get(2)!.bytes).toBeLessThan(40_000);
    f.sums = true;
    await put(source, 1, 'one', value);
    const third = await f.backup({ [model]: source }, second);
    expect(told.take('copied').get(1)!.rows).toBe(202);

    // A restore writes what each backup of the chain has, and reads what came of it.
    const restore = f.restore(third, model, await f.pod('target', model));
    await restore.load();
    await restore.release();
    expect(told.take('restored').get(2)!.rows).toBe(130);
    expect(told.take('copied').get(2)!.rows).toBe(100);
  });

  test('of a backup that comes to nothing are told, too', async () => {
    f = new BackupFixture();
    let bytes = 0;
    f.background = {
      expired: () => {},
      checkpointed: () => {},
      copied: (tables) => void (bytes += tables.reduce((sum, table) => sum + table.bytes, 0)),
      restored: () => {},
    };
    const source = await f.pod('source', model);
    for (let i = 0; i < 3000; i++) await put(source, 0, `key ${i}`, 'v'.repeat(1000));
    const { id, backups } = await f.begin({ [model]: source });
    for (;;) {
      const { bytes: written, state } = await backups.order({ action: 'status', id });
      if (written > 0 || state !== 'running') break;
      await new Promise(setImmediate);
    }
    await backups.order({ action: 'forget', id });
    expect(bytes).toBeGreaterThan(200_000);
  });
});

test('points are told by database', async () => {
  f = new BackupFixture();
  let copied: CopiedPoints[] = [];
  const restored: CopiedPoints[] = [];
  f.seriesBackground = {
    copied: (databases) => void copied.push(...databases),
    restored: (databases) => void restored.push(...databases),
  };
  const take = (all: CopiedPoints[]) =>
    all
      .toSorted((a, b) => (a.database < b.database ? -1 : 1))
      .map(({ database, bytes }) => [database, Math.round(bytes / 100)]);
  const source = await f.seriesPod('source');
  const cache = new TestSeriesCache();
  for (const database of ['small', 'large']) {
    void source.change({ kind: 'createDatabase', database });
    const points = Array.from({ length: database === 'small' ? 1000 : 5000 }, (_, n) => ({
      series: `m,host=${n % 7}`,
      time: BigInt(n) * 1_000_000_000n,
      fields: { v: n / 3, s: `text ${n}` },
    }));
    await source.write(database, '', batchOf(cache, points));
  }
  const full = await f.backup({ tsm: source });
  const whole = take(copied);
  expect(whole.map(([database]) => database)).toEqual(['large', 'small']);
  expect(Number(whole[0]![1]) / Number(whole[1]![1])).toBeGreaterThan(3);

  // Only what has changed.
  copied = [];
  const point = { series: 'm,host=1', time: 5n, fields: { v: 1 } };
  await source.write('small', '', batchOf(cache, [point]));
  const second = await f.backup({ tsm: source }, full);
  expect(take(copied).map(([database]) => database)).toEqual(['small']);

  copied = [];
  const restore = new SeriesRestore({
    disk: realDisk,
    pod: await f.seriesPod('target'),
    sources: [f.parts(second, 'tsm')],
    moves: [{ from: 0, to: 7 }],
    replace: false,
  });
  await restore.load();
  await restore.release();
  const names = ['\u00017\u0001large', '\u00017\u0001small'];
  expect(take(restored).map(([database]) => database)).toEqual(names);
  expect(take(copied).map(([database]) => database)).toEqual(names);
  expect(take(restored)).toEqual(take(copied));
});
