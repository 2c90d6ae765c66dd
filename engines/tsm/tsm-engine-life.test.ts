// State of the engine that survives a restart, and its memory limits.

import { inOneGo } from '../../universal-row/slices.ts';
import { describe, expect, test } from 'vitest';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import type { Clock } from '../../universal-row/environment.ts';
import { type SeriesFilter } from '../../contracts/series-store.ts';
import { day } from './durations.ts';
import { seeded } from './shard/testing/seeded.ts';
import { directory, EngineTrial, i, point } from './testing/engine-trial.ts';
import { type TestPoint } from './testing/point-batches.ts';
import type { ReadPoint } from './testing/read-points.ts';
import { TsmEngine, type TsmEngineOptions } from './tsm-engine.ts';

const week = 7n * day;

function openTrial(options: Partial<TsmEngineOptions> = {}): Promise<EngineTrial> {
  return EngineTrial.open(new FaultyDisk({ rng: seeded(1) }), options);
}

/** The clock advances by a hundredth of a millisecond at each reading. */
function ticking(): Clock {
  let time = 0;
  return { now: () => time, monotonic: () => (time += 0.01) };
}

describe('reopening', () => {
  /** Points, deletions, checkpoints and flushes at random; `fate` says how each life ends. */
  async function live(seed: number, fate: 'close' | 'kill' | 'crash'): Promise<void> {
    const rng = seeded(seed);
    const below = (n: number): number => Math.floor(rng.next() * n);
    const trial = new EngineTrial(new FaultyDisk({ rng }), { headBytes: 64 * 1024 });
    await trial.engine.open();
    trial.change({ kind: 'createDatabase', database: 'd' });
    const model = new Map<string, Map<bigint, string>>();
    /** The log has nothing from before this entry. */
    let kept = 0;
    const reopen = async (how: typeof fate): Promise<void> => {
      const index = await trial.reopen(how);
      expect(index).toBeGreaterThanOrEqual(kept);
      kept = index;
    };
    const timeAt = (n: number): bigint => BigInt(n % 3) * week + BigInt(n);
    const check = (): void => {
      const expected = [...model]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([key, rows]) =>
          [...rows]
            .sort(([a], [b]) => Number(a - b))
            .map(([time, value]): ReadPoint => [key, time, value]),
        );
      expect(trial.read()).toEqual(expected);
      const keys = [...model].filter(([, rows]) => rows.size > 0).map(([key]) => key);
      expect(inOneGo(trial.engine.seriesKeys({ database: 'd' }))).toEqual(keys.sort());
    };
    for (let step = 0; step < 60; step++) {
      const what = below(12);
      if (what < 6) {
        const points = Array.from({ length: 1 + below(8) }, () =>
          point(`m,h=${below(5)}`, timeAt(below(40)), below(1000) / 2),
        );
        trial.write(points);
        for (const { series, time, fields } of points) {
          if (!model.has(series)) model.set(series, new Map());
          model.get(series)!.set(time, `v=${fields['v'] as number}`);
        }
      } else if (what < 8) {
        const value = String(below(5));
        const filter: SeriesFilter = { kind: 'equal', tag: 'h', value };
        const [from, to] = [timeAt(below(40)), timeAt(below(40))];
        trial.delete('points', { measurement: 'm', filter, from, to });
        const rows = model.get(`m,h=${value}`);
        for (const time of [...(rows?.keys() ?? [])]) {
          if (time >= from && time <= to) rows!.delete(time);
        }
      } else if (what === 8) {
        const value = String(below(5));
        trial.delete('series', { filter: { kind: 'equal', tag: 'h', value } });
        model.delete(`m,h=${value}`);
      } else if (what === 9) {
        const index = trial.log.length;
        expect(await trial.engine.checkpoint()).toBe(index);
        kept = index;
      } else if (what === 10) {
        while (trial.engine.background(5)) check();
      } else if (fate !== 'kill') await reopen(fate);
      else {
        let calls = below(30);
        trial.disk.fault = () => (calls-- <= 0 ? 'EIO' : undefined);
        await trial.engine.checkpoint().catch(() => {});
        await reopen('kill');
        if (below(2) === 0) await reopen('crash');
      }
      check();
    }
  }

  test.each(Array.from({ length: 20 }, (_, n) => n + 1))('as it was, seed %i', (seed) =>
    live(seed, 'close'),
  );
  test.each(Array.from({ length: 20 }, (_, n) => n + 1))(
    'after kills in checkpoints and power cuts, seed %i',
    (seed) => live(seed, 'kill'),
  );
  test.each(Array.from({ length: 20 }, (_, n) => n + 1))('after a power cut, seed %i', (seed) =>
    live(seed, 'crash'),
  );

  test('begins where the checkpoint was', async () => {
    const trial = await openTrial();
    trial.write([point('m', 1n, 1)]);
    expect(await trial.engine.checkpoint()).toBe(2);
    trial.write([point('m', 2n, 2), point('k', week, 3)]);
    expect(await trial.reopen('crash')).toBe(2);
    expect(trial.read()).toHaveLength(2);
    expect(trial.engine.appliedIndex).toBe(3);
  });

  test('a damaged manifest is told', async () => {
    const trial = await openTrial();
    await trial.engine.checkpoint();
    await trial.engine.close();
    const file = trial.disk.open(`${directory}/manifest`, 'append');
    file.write(Buffer.from('x'), 0, 1, 30);
    file.close();
    const again = new TsmEngine({ directory, disk: trial.disk });
    await expect(again.open()).rejects.toThrow('manifest is damaged: wrong checksum');
  });
});

describe('snapshots', () => {
  test('are taken of a moment, and make another engine the same', async () => {
    const source = await openTrial();
    source.change({
      kind: 'createRetentionPolicy',
      database: 'd',
      name: 'p',
      policy: { duration: 400n * day },
    });
    for (let n = 0; n < 30; n++) {
      source.write([
        { series: `m,h=${n % 7}`, time: BigInt(n), fields: { v: n, s: `t${n}` } },
        { series: 'm,h=x', time: BigInt(n), fields: { big: i(2n ** 60n + BigInt(n)) } },
        { series: `k,h=${n % 3}`, time: week + BigInt(n), fields: { v: i(n), b: n % 2 === 0 } },
      ]);
      if (n === 15) await source.engine.checkpoint();
    }
    source.delete('series', { filter: { kind: 'equal', tag: 'h', value: '3' } });
    const fields = ['v', 's', 'big', 'b'];
    const shown = (trial: EngineTrial) => ({
      m: trial.read(fields),
      k: trial.read(fields, { measurement: 'k' }),
      keys: inOneGo(trial.engine.seriesKeys({ database: 'd' })),
      databases: trial.engine.databases(),
    });
    const before = shown(source);
    expect(before.m).toHaveLength(56);

    const exported = source.engine.exportSnapshot();
    source.write([point('m,h=later', 1n, 1), point('m,h=0', 0n, 100)]);
    source.delete('series', { filter: { kind: 'equal', tag: 'h', value: '1' } });

    const copy = await openTrial();
    copy.write([point('other', 1n, 1)]);
    copy.log = Array.from({ length: 99 }, () => Buffer.alloc(0));
    await copy.engine.importSnapshot(exported, 99);
    expect(copy.engine.appliedIndex).toBe(99);
    copy.cache.empty();
    expect(shown(copy)).toEqual(before);
    copy.write([point('m,h=0', 500n, 5), point('m,h=new', 500n, 6)]);
    expect(copy.read()).toHaveLength(before.m.filter(([, , v]) => v.includes('v=')).length + 2);
    expect(await copy.reopen('crash')).toBe(99);
    expect(copy.read(['v'], { from: 500n }).map(([key]) => key)).toEqual(['m,h=0', 'm,h=new']);
  });
});

describe('memory', () => {
  const rows = (from: number, count: number): TestPoint[] =>
    Array.from({ length: count }, (_, n) =>
      point(`m,h=${n % 10}`, BigInt(from + n), Math.sin(from + n)),
    );

  test('is bounded: who writes waits, and heads become files', async () => {
    const trial = await openTrial({ headBytes: 200_000, clock: ticking() });
    let written = 0;
    let waits = 0;
    while (written < 60_000) {
      trial.write(rows(written, 1000));
      written += 1000;
      if (trial.engine.congested) {
        waits++;
        await trial.engine.drained();
        expect(trial.engine.congested).toBe(false);
      }
      expect(trial.engine.stats().headBytes).toBeLessThan(600_000);
    }
    expect(waits).toBeGreaterThan(2);
    expect(trial.read()).toHaveLength(written);
    while (trial.engine.background(5));
    expect(trial.engine.stats().headBytes).toBeLessThan(200_000);
    expect(trial.read()).toHaveLength(written);
  });

  test('is bounded in a replay, where nobody waits', async () => {
    const trial = await openTrial({ headBytes: 50_000 });
    for (let n = 0; n < 30; n++) trial.write(rows(n * 1000, 1000));
    expect(trial.engine.stats().headBytes).toBeLessThan(400_000);
    await trial.reopen('crash');
    expect(trial.engine.stats().headBytes).toBeLessThan(400_000);
    expect(trial.read()).toHaveLength(30_000);
  });

  test('a full disk is a failure until there is room again', async () => {
    let time = 0;
    const clock: Clock = { now: () => time, monotonic: () => (time += 0.01) };
    const disk = new FaultyDisk({ rng: seeded(1) });
    const trial = await EngineTrial.open(disk, { headBytes: 100_000, clock });
    let isFull = true;
    disk.fault = (operation) => (isFull && operation === 'write' ? 'ENOSPC' : undefined);
    while (!trial.engine.congested) trial.write(rows(0, 1000));
    await expect(trial.engine.drained()).rejects.toThrow('ENOSPC');
    expect(trial.engine.failure?.message).toContain('ENOSPC');
    await expect(trial.engine.checkpoint()).rejects.toThrow('ENOSPC');
    isFull = false;
    time += 2000;
    while (trial.engine.background(5));
    expect(trial.engine.failure).toBeUndefined();
    expect(trial.engine.congested).toBe(false);
    expect(await trial.engine.checkpoint()).toBe(trial.log.length);
    expect(trial.read()).toHaveLength(1000);
  });

  test('a full disk is a failure no more once what could not be stored is dropped', async () => {
    const disk = new FaultyDisk({ rng: seeded(1) });
    const trial = await EngineTrial.open(disk, { headBytes: 100_000 });
    disk.fault = (operation) => (operation === 'write' ? 'ENOSPC' : undefined);
    while (!trial.engine.congested) trial.write(rows(0, 1000));
    await expect(trial.engine.drained()).rejects.toThrow('ENOSPC');
    trial.change({ kind: 'dropDatabase', database: 'd' });
    expect(trial.engine.failure).toBeUndefined();
  });

  test.each([
    ['a series with many rows is flushed', 1, 1],
    ['rows of many series are not', 1000, 0],
  ])('%s', async (_, seriesCount, files) => {
    const trial = await openTrial({ longestRead: 9000 });
    const batch = (from: number): TestPoint[] =>
      Array.from({ length: 1000 }, (_row, n) =>
        point(`m,h=${n % seriesCount}`, BigInt(from + n), n),
      );
    // A read goes through the time, the row before and the field of each row.
    for (let n = 0; n < 3; n++) trial.write(batch(n * 1000));
    expect(trial.engine.background(Infinity)).toBe(false);
    expect(trial.engine.stats().files).toBe(0);
    trial.write(batch(3000));
    while (trial.engine.background(5));
    expect(trial.engine.stats()).toMatchObject({ files, headPoints: files === 1 ? 0 : 4000 });
    expect(trial.read()).toHaveLength(4000);
  });

  test('writes wait while a series has twice as many rows, until they are flushed', async () => {
    const trial = await openTrial({ longestRead: 9000 });
    const write = (from: number): void => {
      trial.write(Array.from({ length: 1000 }, (_row, n) => point('m', BigInt(from + n), n)));
    };
    for (let n = 0; n < 6; n++) write(n * 1000);
    expect(trial.engine.congested).toBe(false);
    write(6000);
    expect(trial.engine.congested).toBe(true);
    await trial.engine.drained();
    expect(trial.engine.congested).toBe(false);
    expect(trial.read()).toHaveLength(7000);
  });

  test('a shard that is not written to is flushed', async () => {
    const trial = await openTrial({ coldAfterMs: 50, clock: ticking() });
    trial.write(rows(0, 10));
    expect(trial.engine.background(1)).toBe(false);
    expect(trial.engine.stats().headPoints).toBe(10);
    for (let n = 0; n < 10_000; n++) trial.engine.background(1);
    expect(trial.engine.stats()).toMatchObject({ headPoints: 0, files: 1 });
  });
});

test('entries after a power cut are not taken for those that it took from the log', async () => {
  const trial = await openTrial({ headBytes: 1 });
  trial.write([point('m,h=a', 1n, 1), point('m,h=a', week, 2)]);
  const kept = trial.log.length;
  await trial.engine.checkpoint();
  trial.write([point('m,h=a', 2n, 3)]);
  trial.write([point('m,h=a', 3n, 4)]);
  while (trial.engine.background(5));
  expect(trial.engine.durableIndex).toBe(kept + 2);
  // The log was not synced as its shards were.
  trial.log.length = kept;
  await trial.reopen('crash');
  expect(trial.engine.durableIndex).toBe(kept);
  // That is durable.
  await trial.reopen('crash');
  trial.write([point('m,h=a', 4n, 5)]);
  trial.delete('points', { measurement: 'm', from: 1n, to: 1n });
  const points = [2n, 3n, 4n, week].map((time, n) => ['m,h=a', time, `v=${[3, 4, 5, 2][n]}`]);
  expect(trial.read()).toEqual(points);
  await trial.reopen('crash');
  expect(trial.read()).toEqual(points);
});

test('neither files nor the series index hold entries that are not durable in the log', async () => {
  const trial = await openTrial({ coldAfterMs: 50, clock: ticking() });
  trial.write([point('m,h=a', 1n, 1)]);
  await trial.engine.checkpoint();
  const kept = trial.log.length;
  let synced = (): void => {};
  trial.engine.syncLog = () => new Promise((resolve) => (synced = resolve));
  const flush = async (): Promise<void> => {
    for (let n = 0; n < 1000; n++) {
      trial.engine.background(5, false);
      await new Promise(setImmediate);
    }
  };
  trial.write([point('m,h=b', 2n, 2)]);
  await flush();
  expect(trial.engine.durableIndex).toBe(kept + 1);
  expect(trial.engine.stats()).toMatchObject({ files: 1 });
  // A power cut takes the entry from the log. Its series must not be left in the index.
  trial.log.length = kept;
  await trial.reopen('crash');
  expect(inOneGo(trial.engine.seriesKeys({ database: 'd' }))).toEqual(['m,h=a']);
  trial.engine.syncLog = () => new Promise((resolve) => (synced = resolve));
  trial.write([point('m,h=c', 3n, 3)]);
  await flush();
  synced();
  await flush();
  // The index is written. The manifest has deletions up to now.
  expect(trial.engine.stats()).toMatchObject({ files: 1, headPoints: 1 });
  synced();
  await flush();
  expect(trial.engine.stats()).toMatchObject({ files: 2, headPoints: 0 });
  expect(trial.read()).toEqual([
    ['m,h=a', 1n, 'v=1'],
    ['m,h=c', 3n, 'v=3'],
  ]);
});

test.each([true, false])(
  'an import that meets a full disk, which has room later: %s',
  async (waits) => {
    const source = await openTrial();
    for (let n = 0; n < 20; n++) {
      source.write(
        Array.from({ length: 200 }, (_, k) => point(`m,k=${k}`, BigInt(n), n / (k + 3))),
      );
    }
    const disk = new FaultyDisk({ rng: seeded(2) });
    const copy = new EngineTrial(disk, { headBytes: 64 * 1024 });
    const { engine } = copy;
    await engine.open();
    disk.capacityBytes = disk.usedBytes() + 20_000;
    let failures = 0;
    const failing = async (): Promise<boolean> => {
      if (++failures === 3) disk.capacityBytes = Infinity;
      for (let n = 0; n < 100; n++) {
        engine.background(5, false);
        await new Promise(setImmediate);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
      return waits;
    };
    const { appliedIndex } = source.engine;
    const imported = engine.importSnapshot(source.engine.exportSnapshot(), appliedIndex, failing);
    if (!waits) {
      await expect(imported).rejects.toThrow('ENOSPC');
      return;
    }
    await imported;
    expect(failures).toBeGreaterThan(2);
    expect(copy.read()).toEqual(source.read());
    expect(engine.appliedIndex).toBe(appliedIndex);
  },
);
