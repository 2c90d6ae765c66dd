import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isolated, noScheduling, oneDimension, weighted } from './baseline-planners.ts';
import { cooperative } from './cooperative.ts';
import { calibratedFactor, regionCpu, regionIo } from './load-mapping.ts';
import { LoadTable } from './load-table.ts';
import { merges } from './merge.ts';
import { type RangeModel, RangeState } from './range-state.ts';
import { boundedPlacement } from './region-bound.ts';
import { type RequestSample, splitPoint } from './split-point.ts';

/** `regions` are [node, cpu, io]. */
function model(capacity: number[], regions: [number, number, number][]): RangeModel {
  return {
    capacity: Float64Array.from(capacity),
    node: Uint32Array.from(regions, ([node]) => node),
    cpu: Float64Array.from(regions, ([, cpu]) => cpu),
    io: Float64Array.from(regions, ([, , io]) => io),
    bytes: new Float64Array(regions.length).fill(1e6),
    order: Uint32Array.from(regions, (_, i) => i),
  };
}

describe('loads', () => {
  test('are divided by those of a mean node (eq. 1 to 4)', () => {
    const state = new RangeState(
      model(
        [1, 1],
        [
          [0, 30, 1],
          [0, 30, 1],
          [1, 20, 6],
        ],
      ),
    );
    expect([...state.total.cpu]).toEqual([1.5, 0.5]);
    expect([...state.total.io]).toEqual([0.5, 1.5]);
    expect(state.load.cpu).toEqual([0.75, 0.75, 0.5]);
    expect([state.deviation(0), state.deviation(1), state.imbalance()]).toEqual([0.5, 0.5, 0.5]);
  });

  test('are divided by the capacity of nodes that are not alike', () => {
    const state = new RangeState(
      model(
        [4 / 3, 2 / 3],
        [
          [0, 2, 4],
          [1, 1, 2],
        ],
      ),
    );
    expect(state.imbalance()).toBeCloseTo(0, 12);
  });

  test('a cluster without load is balanced', () => {
    const idle = model([1, 1], [[0, 0, 0]]);
    expect(new RangeState(idle).imbalance()).toBe(-1);
    for (const planner of [cooperative(), isolated(), weighted(), noScheduling]) {
      expect(planner.plan(idle).steps).toEqual([]);
    }
  });

  test('sums stay those of the regions through moves, splits and merges', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 })),
          {
            minLength: 4,
            maxLength: 12,
          },
        ),
        fc.array(fc.tuple(fc.nat(), fc.nat(2), fc.nat(2)), { maxLength: 30 }),
        (regions, steps) => {
          const state = new RangeState(model([1, 1, 1], regions));
          for (const [which, kind, node] of steps) {
            const all = state.inOrder();
            const region = all[which % all.length]!;
            const next = state.next[region]!;
            if (kind === 0) state.move(region, node);
            else if (kind === 1) state.split(region, 0.25, 0.5);
            else if (next >= 0 && state.node[next] === state.node[region]) state.merge(region);
          }
          for (const dimension of ['cpu', 'io'] as const) {
            state.total[dimension].forEach((total, node) => {
              const sum = state.regionsOf[node]!.reduce((a, r) => a + state.load[dimension][r]!, 0);
              expect(total).toBeCloseTo(sum, 9);
            });
            expect(state.total[dimension].reduce((a, b) => a + b, 0)).toBeCloseTo(3, 9);
          }
          expect(new Set(state.inOrder())).toEqual(new Set(state.regionsOf.flat()));
          expect(state.inOrder()).toHaveLength(state.regionsOf.flat().length);
        },
      ),
    );
  });
});

describe('the cooperative planner', () => {
  test('moves what weighs more in the critical dimension, the largest that fits first', () => {
    const { steps, before, after } = cooperative().plan(
      model(
        [1, 1],
        [
          // Heavier on the disk: it would only move the imbalance.
          [0, 0.56, 0.9],
          [0, 0.44, 0.1],
          [0, 0.4, 0.1],
          [1, 0.6, 0.9],
        ],
      ),
    );
    expect(steps).toMatchObject([{ kind: 'move', region: 1, from: 0, to: 1 }]);
    expect(before).toBeCloseTo(0.4, 9);
    expect(after).toBeLessThan(before);
  });

  test('splits a region that fits nowhere at the ratio that is too much, and nothing below λ/2', () => {
    const { steps } = cooperative().plan(
      model(
        [1, 1],
        [
          [0, 1.5, 1],
          [1, 0.5, 1],
        ],
      ),
    );
    expect(steps[0]).toMatchObject({ kind: 'split', region: 0, dimension: 'cpu' });
    // Its part takes disk load along, which the other node has to give back.
    expect(steps[1]).toMatchObject({ kind: 'split', region: 1, dimension: 'io' });
    expect(steps).toHaveLength(2);
    expect(steps[0]).toMatchObject({ ratios: [expect.closeTo(1 / 3, 9)] });
    const even = model(
      [1, 1],
      [
        [0, 1, 1],
        [1, 1, 1],
      ],
    );
    expect(cooperative().plan(even).steps).toEqual([]);
  });

  test('cuts a part for each node with room off a region that has the load of several', () => {
    const hot = model(
      [1, 1, 1],
      [
        [0, 2.6, 1],
        [1, 0.1, 1],
        [2, 0.3, 1],
      ],
    );
    const ratiosOf = (planner = cooperative()): readonly number[] => {
      const [first] = planner.plan(hot).steps;
      if (first?.kind !== 'split') throw new Error('no split');
      expect(first.region).toBe(0);
      return first.ratios;
    };
    // Room of .9 and .7; what is left is a node's mean.
    expect(ratiosOf()).toEqual([expect.closeTo(0.9 / 2.6, 9), expect.closeTo(0.7 / 2.6, 9)]);
    expect(ratiosOf(cooperative({ mostParts: 1 }))).toEqual([expect.closeTo(0.9 / 2.6, 9)]);
  });

  test('never leaves a cluster worse than it was, and repeats its plan', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(
            fc.nat(3),
            fc.double({ min: 0, max: 1, noNaN: true }),
            fc.double({ min: 0, max: 1, noNaN: true }),
          ),
          {
            minLength: 1,
            maxLength: 60,
          },
        ),
        (regions) => {
          const start = model([1, 1, 1, 1], regions);
          const plan = cooperative().plan(start);
          expect(plan.after).toBeLessThanOrEqual(plan.before + 0.05 + 1e-9);
          expect(cooperative().plan(start)).toEqual(plan);
        },
      ),
      { examples: [[[[0, 5e-324, 0]]]] },
    );
  });

  test('the baselines lower their own measure, and the destination stays below the source', () => {
    const start = model(
      [1, 1],
      [
        [0, 3, 1],
        [0, 2, 1],
        [1, 1, 3],
        [1, 1, 3],
      ],
    );
    expect(oneDimension('cpu').plan(start).steps).toMatchObject([{ region: 1, from: 0, to: 1 }]);
    expect(oneDimension('io').plan(start).steps[0]).toMatchObject({ region: 2, from: 1, to: 0 });
    const both = isolated()
      .plan(start)
      .steps.map(({ region }) => region);
    expect(both.slice(0, 2)).toEqual([1, 2]);
  });
});

test('where no region is above λ/2 the placement of the theorem is balanced', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.tuple(
          fc.double({ min: 0.5, max: 1, noNaN: true }),
          fc.double({ min: 0.5, max: 1, noNaN: true }),
        ),
        {
          minLength: 320,
          maxLength: 400,
        },
      ),
      (loads) => {
        const nodes = 4;
        const share = (all: number[]): Float64Array => {
          const unit = all.reduce((a, b) => a + b, 0) / nodes;
          return Float64Array.from(all, (load) => load / unit);
        };
        const cpu = share(loads.map(([load]) => load));
        const io = share(loads.map(([, load]) => load));
        const most = Math.max(...cpu, ...io);
        const node = boundedPlacement(cpu, io, nodes);
        const rows = [...node].map((at, i): [number, number, number] => [at, cpu[i]!, io[i]!]);
        expect(new RangeState(model([1, 1, 1, 1], rows)).imbalance()).toBeLessThanOrEqual(
          2 * most + 1e-9,
        );
      },
    ),
    { numRuns: 50 },
  );
});

describe('a cut', () => {
  const compare = (a: number, b: number): number => a - b;
  const points = (keys: number[]): RequestSample<number>[] =>
    keys.map((key) => ({ start: key, end: key, weight: 1 }));

  test('of requests for single keys is exact', () => {
    const keys = Array.from({ length: 100 }, (_, i) => i);
    expect(splitPoint(points(keys), 0.3, compare)).toBe(30);
    expect(splitPoint(points(keys), 0.5, compare)).toBe(50);
  });

  test('counts weights, and is between the bounds where requests overlap', () => {
    const heavy = [{ start: 1, end: 1, weight: 9 }, ...points([2, 3, 4])];
    expect(splitPoint(heavy, 0.75, compare)).toBe(2);
    const scans = points([0, 10, 20, 30]).map((one) => ({ ...one, end: one.start + 15 }));
    expect(splitPoint(scans, 0.5, compare)).toBeGreaterThanOrEqual(10);
    expect(splitPoint(scans, 0.5, compare)).toBeLessThanOrEqual(30);
  });

  test('there is none through one key, and both parts have keys otherwise', () => {
    expect(splitPoint(points([5, 5, 5]), 0.5, compare)).toBeUndefined();
    expect(splitPoint([], 0.5, compare)).toBeUndefined();
    fc.assert(
      fc.property(
        fc.array(fc.nat(50), { minLength: 2 }),
        fc.double({ min: 0.05, max: 0.95, noNaN: true }),
        (keys, ratio) => {
          const cut = splitPoint(points(keys), ratio, compare);
          if (new Set(keys).size === 1) return;
          expect(keys.some((key) => key < cut!) && keys.some((key) => key >= cut!)).toBe(true);
        },
      ),
    );
  });
});

describe('what the manager knows', () => {
  test('loads of regions follow their operations, writes counting more', () => {
    const idle = { readBytes: 0, writtenBytes: 0, cacheHits: 0 };
    const regions = [
      { ...idle, reads: 163, writes: 0 },
      { ...idle, reads: 0, writes: 100 },
    ];
    expect(regionCpu(80, regions)).toEqual([40, 40]);
    expect(regionCpu(80, [{ ...idle, reads: 0, writes: 0 }])).toEqual([0]);
    const busy = { reads: 1, writes: 1, readBytes: 1000, writtenBytes: 10, cacheHits: 0.9 };
    expect(regionIo(busy, 3)).toBeCloseTo(130, 9);
    const factor = calibratedFactor({ cpu: 1, operations: 1000 }, { cpu: 3.26, operations: 2000 });
    expect(factor).toBeCloseTo(1.63, 9);
  });

  test('scheduling waits for two heartbeats that are alike', () => {
    const table = new LoadTable();
    const beat = (a: number, b: number): boolean => {
      table.hearNode({ node: 0, cpu: a, io: 1 });
      table.hearNode({ node: 1, cpu: b, io: 1 });
      return table.isDue;
    };
    expect(beat(10, 5)).toBe(false);
    expect(beat(10.5, 5)).toBe(true);
    expect(beat(14, 5)).toBe(false);
    expect(beat(14, 5)).toBe(true);
    expect(beat(5, 5)).toBe(false);
    expect(beat(5, 5)).toBe(false);
    expect(table.isSuspended).toBe(false);
  });

  test('regions are known by their last heartbeat', () => {
    const table = new LoadTable();
    table.hearRegions({ node: 1, regions: [{ region: 7, cpu: 1, io: 2, bytes: 3 }] });
    table.hearRegions({ node: 2, regions: [{ region: 7, cpu: 4, io: 2, bytes: 3 }] });
    expect([...table.regions()]).toEqual([[7, { node: 2, cpu: 4, io: 2, bytes: 3 }]]);
    table.forgetRegion(7);
    expect(table.regions().size).toBe(0);
  });
});

test('neighbours that are cold and small are merged, one for each node', () => {
  const cold: [number, number, number] = [0, 0.0001, 0.0001];
  const start = model(
    [1, 1],
    [[0, 1, 1], cold, cold, cold, cold, [1, 1, 1], [1, 0.0001, 0.0001], cold],
  );
  expect(merges(start)).toEqual([
    { left: 1, right: 2 },
    { left: 6, right: 7, moveTo: 1 },
  ]);
  expect(merges(start, { perNode: 5 })).toEqual([
    { left: 1, right: 2 },
    { left: 3, right: 4 },
    { left: 6, right: 7, moveTo: 1 },
  ]);
  expect(merges(start, { regionBytes: 4e6 })).toEqual([]);
});
