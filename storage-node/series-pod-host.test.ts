import {
  backgroundWork,
  type PodAdmission,
  urgentBackgroundWork,
} from '../contracts/pod-admission.ts';
import { inOneGo } from '../universal-row/slices.ts';
import { expect, test } from 'vitest';
import { batchOf, TestSeriesCache } from '../engines/tsm/testing/point-batches.ts';
import { readAll } from '../engines/tsm/testing/read-points.ts';
import { TsmEngine } from '../engines/tsm/tsm-engine.ts';
import { systemClock, type Disk } from '../universal-row/environment.ts';
import { FaultyDisk } from './disk/faulty-disk.ts';
import { openSeriesPod } from './series-pod-host.ts';
import { QueueAll } from './pod-admission-fixture.ts';
import type { SeriesPod } from './series-pod.ts';

const cache = new TestSeriesCache();
const start = 1_600_000_000n * 1_000_000_000n;
const rng = { next: () => 0.5 };

/** By default each maintenance round flushes everything. */
async function open(
  disk: Disk,
  { headBytes = 1, admission }: { headBytes?: number; admission?: PodAdmission } = {},
): Promise<{ pod: SeriesPod; engine: TsmEngine }> {
  disk.makeDirectory('pod');
  const engine = new TsmEngine({ directory: 'pod/data', disk, headBytes });
  const pod = await openSeriesPod({
    engine,
    disk,
    directory: 'pod',
    podId: 3,
    fsync: 'always',
    segmentBytes: 1 << 20,
    checkpointBytes: 1 << 30,
    retentionIntervalMs: 1 << 30,
    admission,
    acceptLoss: false,
    clock: systemClock,
    report: () => {},
    fatal: (error) => {
      throw error;
    },
  });
  return { pod, engine };
}

/** Points from `first` on, all of one series. */
function write(pod: SeriesPod, first: number, count = 3): void {
  const points = Array.from({ length: count }, (_, n) => ({
    series: 'm',
    fields: { v: first + n },
    time: start + BigInt(first + n),
  }));
  expect(pod.write('db', '', batchOf(cache, points))).toMatchObject({ written: count });
}

function values(pod: SeriesPod): number[] {
  const scan = pod.scan({
    database: 'db',
    retentionPolicy: '',
    measurement: 'm',
    fields: ['v'],
    from: start,
    to: start + 1000n,
    descending: false,
  });
  return readAll(inOneGo(scan), ['v']).map(([, , fields]) => Number(fields.slice(2)));
}

/** Until nothing is left to flush. */
async function flush(engine: TsmEngine): Promise<void> {
  for (let round = 0; round < 50; round++) {
    engine.background(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(engine.stats().headPoints).toBe(0);
}

test('points written after a crash stay, though the engine had more on disk than the log', async () => {
  const first = new FaultyDisk({ rng });
  const before = await open(first);
  void before.pod.change({ kind: 'createDatabase', database: 'db' });
  write(before.pod, 1);
  before.pod.endTick();
  await before.pod.checkpoint();
  // These are flushed without an acknowledgement: their tick has not reached the log.
  write(before.pod, 11);
  write(before.pod, 21);
  await flush(before.engine);

  const second = first.kill();
  const after = await open(second);
  expect(values(after.pod).slice(0, 3)).toEqual([1, 2, 3]);
  write(after.pod, 31);
  write(after.pod, 41);
  after.pod.endTick();
  const all = values(after.pod);
  expect(all.slice(-6)).toEqual([31, 32, 33, 41, 42, 43]);

  const again = await open(second.kill());
  expect(values(again.pod)).toEqual(all);
});

test('maintenance that is queued becomes urgent when the head grows beyond its limit', async () => {
  const admission = new QueueAll();
  const { pod, engine } = await open(new FaultyDisk({ rng }), { headBytes: 100_000, admission });
  void pod.change({ kind: 'createDatabase', database: 'db' });
  write(pod, 1);
  pod.start();
  const tenants = (): number[] => admission.queued.map(({ tenant }) => tenant);
  await expect.poll(tenants).toEqual([backgroundWork]);
  expect(engine.isBehind).toBe(false);
  write(pod, 10);
  expect(tenants()).toEqual([backgroundWork]);
  for (let first = 100; !engine.isBehind; first += 500) write(pod, first, 500);
  expect(engine.congested).toBe(false);
  expect(tenants()).toEqual([backgroundWork, urgentBackgroundWork]);
  // It stays the only one, and the round runs once.
  write(pod, 50);
  expect(tenants()).toHaveLength(2);
  const before = engine.stats().headPoints;
  admission.queued[0]!.resume(true);
  expect(engine.stats().headPoints).toBe(before);
  for (let round = 1; engine.stats().headPoints > 0; round++) {
    await expect.poll(tenants).toHaveLength(round + 1);
    admission.queued[round]!.resume(true);
  }
  admission.result = 'admitted';
  await pod.close();
});
