// Database properties that the engine enforces: retention, size of points, no caching.

import { inOneGo } from '../../universal-row/slices.ts';
import { describe, expect, test } from 'vitest';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import type { PointRules } from '../series-engine.ts';
import { day, hour } from './durations.ts';
import { commonSharedBlocks } from './file/shared-block-cache.ts';
import { seeded } from './shard/testing/seeded.ts';
import { EngineTrial, i, point } from './testing/engine-trial.ts';
import { batchOf, type TestPoint } from './testing/point-batches.ts';

const second = 1_000_000_000n;
const none: PointRules = { retention: 0n, maxPointBytes: Infinity };

async function openTrial(): Promise<EngineTrial> {
  const trial = await EngineTrial.open(new FaultyDisk({ rng: seeded(1) }));
  trial.now = Number((100n * day) / 1_000_000n);
  return trial;
}

function write(
  trial: EngineTrial,
  points: readonly TestPoint[],
  rules: Partial<PointRules>,
  policy = '',
) {
  const batch = batchOf(trial.cache, points, Number((100n * day) / second));
  return trial.enter((into) =>
    trial.engine.prepareWrite('d', policy, batch, trial.now, into, { ...none, ...rules }),
  );
}

const now = 100n * day;

describe('a retention of the database', () => {
  test('is that of autogen, whose points beyond it are refused', async () => {
    const trial = await openTrial();
    const points = [point('m', now - 2n * hour, 1), point('m', now - hour / 2n, 2)];
    expect(write(trial, points, { retention: hour })).toEqual({
      written: 1,
      dropped: 1,
      error: 'points beyond retention policy',
    });
    expect(trial.read()).toEqual([['m', now - hour / 2n, 'v=2']]);
    // A shard of the policy's own would be as long as a week.
    expect(trial.engine.shards()).toMatchObject([{ seconds: 3600 }]);
  });

  test('gives way to a duration that was asked for', async () => {
    const trial = await openTrial();
    const old = [point('m', now - 20n * day, 1)];
    for (const [name, duration] of [
      ['forever', 0n],
      ['long', 30n * day],
    ] as const) {
      const policy = { duration };
      trial.change({ kind: 'createRetentionPolicy', database: 'd', name, policy });
      expect(write(trial, old, { retention: hour }, name)).toMatchObject({ written: 1 });
    }
    const policy = { duration: 30n * day };
    trial.change({ kind: 'alterRetentionPolicy', database: 'd', name: 'autogen', policy });
    expect(write(trial, old, { retention: hour })).toMatchObject({ written: 1 });
  });

  test('lets shards go', async () => {
    const trial = await openTrial();
    write(trial, [point('m', now - 20n * day, 1), point('m', now, 2)], {});
    const retain = (retention: bigint) =>
      trial.enter((into) => trial.engine.prepareRetention(trial.now, into, () => retention));
    retain(0n);
    retain(30n * day);
    expect(trial.engine.stats().shards).toBe(2);
    retain(10n * day);
    expect(trial.read()).toEqual([['m', now, 'v=2']]);
  });

  test('is shown by policyInForce', async () => {
    const trial = await openTrial();
    const [autogen] = trial.engine.database('d')!.retentionPolicies;
    expect(trial.engine.policyInForce(autogen!, 0n)).toBe(autogen);
    expect(trial.engine.policyInForce(autogen!, 3n * day)).toEqual({
      ...autogen,
      duration: 3n * day,
      shardGroupDuration: day,
    });
  });
});

describe('the size of a point', () => {
  const size = (points: readonly TestPoint[], maxPointBytes: number, trial: EngineTrial) =>
    write(trial, points, { maxPointBytes });

  test('is that of its key, its time, and the names and values of its fields', async () => {
    const trial = await openTrial();
    const check = (fields: TestPoint['fields'], bytes: number) => {
      const points = [{ series: 'm,h=a', time: now, fields }];
      expect(size(points, bytes, trial)).toMatchObject({ written: 1, dropped: 0 });
      expect(size(points, bytes - 1, trial)).toEqual({
        written: 0,
        dropped: 1,
        error: `point larger than ${bytes - 1} bytes`,
      });
    };
    const base = Buffer.byteLength(String(trial.cache.keys(trial.cache.handle('m,h=a')))) + 8;
    check({ f: 1.5 }, base + 1 + 8);
    check({ long: i(3), ok: true }, base + 4 + 8 + 2 + 1);
    check({ s: '' }, base + 1);
    check({ é: 'naïve' }, base + 2 + 6);
  });

  test('keeps no other point out, in whatever shard', async () => {
    const trial = await openTrial();
    const points: TestPoint[] = [];
    for (let n = 0; n < 300; n++) {
      const isLarge = n % 7 === 3;
      const time = now - BigInt(n) * day;
      points.push({
        series: `m,h=${n % 5}`,
        time,
        fields: { s: (isLarge ? 'x' : 'y').repeat(isLarge ? 99 : 9) },
      });
    }
    const outcome = size(points, 60, trial);
    expect(outcome).toMatchObject({ written: 257, dropped: 43 });
    const stored = trial.read(['s']);
    expect(stored).toHaveLength(257);
    expect(stored.every(([, , text]) => text === `s="${'y'.repeat(9)}"`)).toBe(true);
  });
});

describe('a scan that bypasses the caches', () => {
  /** Series of few points each share blocks. */
  async function shared(): Promise<EngineTrial> {
    const trial = await openTrial();
    const points = Array.from({ length: 3000 }, (_, n) =>
      point(`m,h=${n % 1000}`, now + BigInt(n) * second, n),
    );
    write(trial, points, {});
    await trial.engine.checkpoint();
    return trial;
  }
  const totals = (trial: EngineTrial, bypassesCaches: boolean) => {
    const opening = trial.engine.scan({
      database: 'd',
      retentionPolicy: '',
      measurement: 'm',
      from: now - day,
      to: now + day,
      fields: ['v'],
      descending: false,
      summaries: { width: 0n, offset: 0n },
      totals: [],
      bypassesCaches,
    });
    const scan = inOneGo(opening);
    let count = 0;
    for (const series of scan.series) {
      const cursor = scan.cursor(series);
      for (let piece = cursor.next(); piece !== undefined; piece = cursor.next()) {
        count += piece.count;
      }
    }
    scan.close();
    return count;
  };

  test('finds the same and leaves nothing in them', async () => {
    const trial = await shared();
    const before = commonSharedBlocks.bytes;
    const found = trial.read(['v'], { bypassesCaches: true });
    expect(totals(trial, true)).toBe(3000);
    expect(commonSharedBlocks.bytes).toBe(before);
    expect(trial.read(['v'])).toEqual(found);
    expect(commonSharedBlocks.bytes).toBeGreaterThan(before);
    const after = commonSharedBlocks.bytes;
    // Rows cached by other reads are used by this read too.
    expect(trial.read(['v'], { bypassesCaches: true })).toEqual(found);
    expect(totals(trial, true)).toBe(totals(trial, false));
    expect(commonSharedBlocks.bytes).toBe(after);
    await trial.engine.close();
  });

  test('of the last points, too', async () => {
    const trial = await shared();
    const last = (bypassesCaches: boolean) =>
      trial.read(['v'], { descending: true, rowsPerSeries: 1, bypassesCaches });
    expect(last(true)).toEqual(last(false));
    expect(last(true)).toHaveLength(1000);
    await trial.engine.close();
  });
});
