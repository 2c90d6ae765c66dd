import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { brokenLimits } from '../hard-limits.ts';
import { Chance } from '../simulation/chance.ts';
import { redrawn } from '../simulation/redraw.ts';
import { WorkingCluster } from '../working-cluster.ts';
import { laidOut, usualLayout } from './layout.ts';
import { tiled } from './tile.ts';
import type { Trace } from './trace.ts';
import { readTrace, TraceError, traceLines } from './trace-file.ts';
import { modelOf } from './trace-model.ts';
import { usageTrace } from './usage-trace.ts';

const header = {
  format: 'polyrow-trace',
  version: 1,
  startAt: '2026-01-02T03:04:00.000Z',
  pointSeconds: 60,
  points: 2,
  dimensions: ['cpu', 'io'],
} as const;

const small: Trace = {
  header: { ...header, dimensions: ['cpu', 'io'] },
  nodes: [
    { id: 'a', zone: 'x' },
    { id: 'b', zone: 'y' },
  ],
  disks: [{ id: 'a-disk', node: 'a', capacityBytes: 1000 }],
  pods: [
    { id: 'a-pod', node: 'a', disk: 'a-disk', limits: [10, 20], subcluster: 0 },
    { id: 'b-pod', node: 'b', limits: [10, 20], subcluster: 0 },
  ],
  tables: [{ id: 't', tenant: 'shop', quota: 100 }],
  series: [
    { id: 's', values: { cpu: Float32Array.of(1, 2), io: Float32Array.of(3, 4) } },
    { id: 'f', values: { cpu: Float32Array.of(0.5, 0.25), io: Float32Array.of(0, 0) } },
  ],
  partitions: [
    {
      id: 't/0',
      table: 't',
      bytes: 7,
      leader: { series: 's', scale: 2 },
      follower: { series: 'f' },
      replicas: [{ pod: 'a-pod', leads: true }, { pod: 'b-pod' }],
    },
  ],
};

const reread = async (trace: Trace): Promise<Trace> =>
  await readTrace([...traceLines(trace)].map((line) => line.trimEnd()));

describe('a trace', () => {
  test('reads as it was written', async () => {
    expect(await reread(small)).toEqual(small);
  });

  test('keeps six digits of every value', async () => {
    const value = fc.float({ min: 0, max: 2 ** 40, noNaN: true });
    await fc.assert(
      fc.asyncProperty(fc.array(value, { minLength: 4, maxLength: 4 }), async (values) => {
        const [a, b, c, d] = values as [number, number, number, number];
        const series = [{ id: 's', values: { cpu: [a, b], io: [c, d] } }];
        const back = (await reread({ ...small, series, partitions: [] })).series[0]!.values;
        [...Array.from(back['cpu']!), ...Array.from(back['io']!)].forEach((one, i) => {
          expect(Math.abs(one - values[i]!)).toBeLessThanOrEqual(values[i]! * 1e-5 + 1e-30);
        });
      }),
    );
  });

  test('becomes a model', () => {
    const model = modelOf(small);
    const cluster = new WorkingCluster(model);
    const loads = (pod: number): number[] =>
      Array.from(cluster.podLoad.subarray(pod * 4, pod * 4 + 4));
    expect(loads(0)).toEqual([2, 4, 6, 8]);
    expect(loads(1)).toEqual([0.5, 0.25, 0, 0]);
    expect(model.startAt).toBe(Date.parse(header.startAt) / 1000);
    expect(Array.from(cluster.tenantQuota)).toEqual([100]);
  });

  const line = JSON.stringify;
  test.each([
    [[], 'line 1: the file is empty'],
    [['{'], 'line 1: this is not JSON'],
    [['{}'], 'line 1: this is no trace'],
    [[line({ ...header, version: 2 })], 'line 1: this version of Polyrow reads version 1 only'],
    [[line({ ...header, points: 0 })], 'line 1: points must be a whole number'],
    [[line({ ...header, dimensions: [] })], 'line 1: dimensions must be 1 to 16 names'],
    [[line(header), '', line({ cat: { id: 'x' } })], 'line 3: there is no kind cat'],
    [[line(header), line({ node: {} })], 'line 2: id must be a text'],
    [
      [line(header), line({ pod: { id: 'p', node: 'n', limits: [1] } })],
      'line 2: limits must be 2',
    ],
    [
      [line(header), line({ series: { id: 's', values: { cpu: [1, -1], io: [1, 1] } } })],
      'line 2: values.cpu must be 2 numbers, each 0 or above',
    ],
    [
      [line(header), line({ partition: { id: 'p', table: 't', leader: {} } })],
      'line 2: series must be a text',
    ],
  ])('%j is refused: %s', async (lines, message) => {
    const refused = await readTrace(lines).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(refused).toBeInstanceOf(TraceError);
    expect((refused as Error).message).toContain(message);
  });

  test('is refused as a model when names do not fit', () => {
    const [partition] = small.partitions;
    const withPartition = (more: object): Trace => ({
      ...small,
      partitions: [{ ...partition!, ...more }],
    });
    expect(() => modelOf(withPartition({ table: 'u' }))).toThrow('there is no table u');
    expect(() => modelOf(withPartition({ leader: { series: 'x' } }))).toThrow(
      'there is no series x',
    );
    expect(() => modelOf(withPartition({ replicas: [{ pod: 'a-pod' }] }))).toThrow(
      'partition t/0 has 0 replicas that lead it',
    );
    expect(() => modelOf({ ...small, nodes: [...small.nodes, { id: 'a' }] })).toThrow(
      'there are two nodes a',
    );
  });
});

test('tiling repeats the points end to end, and leaves a long recording alone', () => {
  const day = tiled(small, 300);
  expect(day.header.points).toBe(5);
  expect(Array.from(day.series[0]!.values['cpu']!)).toEqual([1, 2, 1, 2, 1]);
  expect(tiled(small, 120)).toBe(small);
});

describe('usage of a server', () => {
  const minute = 60_000;
  const rows = [
    { at: 0, tenant: 'shop', plane: 'redis', class: 'read', ru: 600 },
    { at: 0, tenant: 'shop', plane: 'redis', class: 'write', ru: 60 },
    { at: minute, tenant: 'shop', plane: 'redis', class: 'background', ru: 120 },
    { at: minute, tenant: 'web', plane: 'influx', class: 'scan', ru: 6 },
    { at: 2 * minute, tenant: 'web', plane: 'influx', class: 'scan', ru: 6 },
  ] as const;

  test('becomes a table for each tenant and plane, in units a second', () => {
    const trace = usageTrace(rows, 0, 2 * minute);
    expect(trace.tables.map(({ id }) => id)).toEqual(['shop/redis', 'web/influx']);
    const values = trace.series.map(({ id, values: { ru } }) => [id, ...Array.from(ru!)]);
    expect(values).toEqual([
      ['shop/redis leader', 11, 2],
      ['shop/redis follower', 1, 2],
      ['web/influx leader', 0, expect.closeTo(0.1)],
      ['web/influx follower', 0, 0],
    ]);
  });

  test('is laid out on nodes within the hard limits, and no load is lost', () => {
    const trace = usageTrace(rows, 0, 2 * minute);
    fc.assert(
      fc.property(
        fc.integer({ min: 3, max: 12 }),
        fc.integer({ min: 1, max: 20 }),
        fc.double({ min: 0, max: 2, noNaN: true }),
        (nodes, partitions, skew) => {
          const model = modelOf(laidOut(trace, { nodes, partitions, skew }, new Chance(1)));
          const cluster = new WorkingCluster(model);
          expect(brokenLimits(cluster)).toEqual([]);
          const total = cluster.podLoad.reduce((sum, value) => sum + value, 0);
          // Leaders once, followers twice.
          expect(total).toBeCloseTo(11 + 2 + 0.1 + 2 * (1 + 2), 4);
        },
      ),
      { numRuns: 40 },
    );
  });
});

test('another draw has the same shape and other noise', () => {
  const trace = laidOut(
    usageTrace(
      Array.from({ length: 300 }, (_, t) => ({
        at: t * 60_000,
        tenant: 'a',
        plane: 'redis',
        class: 'write' as const,
        ru: 6000 + 3000 * Math.sin(t / 20) + 300 * new Chance(t).normal(),
      })),
      0,
      300 * 60_000,
    ),
    usualLayout,
    new Chance(1),
  );
  const model = modelOf(trace);
  const other = redrawn(model, 7);
  const off = Array.from(model.rows.subarray(0, 300), (value, t) => value - other.rows[t]!);
  const deviation = Math.sqrt(off.reduce((sum, one) => sum + one * one, 0) / off.length);
  // Noise of 5 units a second in each of the two.
  expect(deviation).toBeGreaterThan(4);
  expect(deviation).toBeLessThan(10);
});
