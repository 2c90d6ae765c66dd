import { expect, test } from 'vitest';
import { CpuLimits } from './cpu-limits.ts';
import { KindShares } from './kind-shares.ts';
import { kindOf, WorkKind } from './work-kind.ts';

const { smallRead, smallWrite, largeRead, largeWrite } = WorkKind;

test('work is large beyond 16 kB', () => {
  expect(kindOf(false, 16_384)).toBe(smallRead);
  expect(kindOf(false, 16_385)).toBe(largeRead);
  expect(kindOf(true, 100)).toBe(smallWrite);
  expect(kindOf(true, 100_000)).toBe(largeWrite);
  expect(kindOf(true, 100_000, 200_000)).toBe(smallWrite);
});

test('kinds that always wait are served 4 : 4 : 1 : 1, whatever they cost', () => {
  const shares = new KindShares();
  const costs = [1, 3, 64, 20];
  const served = [0, 0, 0, 0];
  for (let n = 0; n < 50_000; n++) {
    const kind = shares.turn(0b1111) as WorkKind;
    served[kind]! += costs[kind]!;
    shares.served(kind, costs[kind]!);
  }
  const all = served.reduce((sum, cost) => sum + cost, 0);
  [0.4, 0.4, 0.1, 0.1].forEach((share, kind) => {
    expect(Math.abs(served[kind]! / all / share - 1)).toBeLessThan(0.01);
  });
});

test('a kind that did not wait has saved nothing up', () => {
  const shares = new KindShares();
  for (let n = 0; n < 1000; n++) shares.served(smallRead, 1);
  shares.joined(largeRead);
  const turns = Array.from({ length: 20 }, () => {
    const kind = shares.turn((1 << smallRead) | (1 << largeRead)) as WorkKind;
    shares.served(kind, 1);
    return kind;
  });
  expect(turns.filter((kind) => kind === largeRead).length).toBeLessThanOrEqual(5);
});

test('large work has its share of places and no more while small work comes', () => {
  const shares = new KindShares();
  const most = (kind: WorkKind, places: number, now: number): number => {
    let count = 0;
    while (count < places && shares.mayBegin(kind, places, now)) {
      shares.began(kind);
      count++;
    }
    for (let n = 0; n < count; n++) shares.ended(kind);
    return count;
  };
  shares.asked(smallRead, 0);
  expect(most(largeRead, 4, 0)).toBe(1);
  expect(most(largeWrite, 30, 0)).toBe(3);
  expect(most(smallWrite, 30, 0)).toBe(30);
  // No small work has come for a while.
  expect(most(largeRead, 4, 101)).toBe(3);
});

test('reads and writes under way are limited apart, and units of writes, of which there are fewer in compaction', () => {
  const limits = new CpuLimits({ writeUnitsPerCore: 100 });
  for (let n = 0; n < 8; n++) limits.began(smallRead, 1);
  expect(limits.mayBegin(largeRead)).toBe(false);
  for (let n = 0; n < 4; n++) limits.began(smallWrite, 15);
  expect(limits.mayBegin(smallWrite)).toBe(true);
  limits.isCompacting = true;
  expect(limits.mayBegin(smallWrite)).toBe(false);
  limits.ended(smallWrite, 15);
  expect(limits.writeUnits).toBe(45);
  expect(limits.mayBegin(largeWrite)).toBe(true);
  limits.began(largeWrite, 1000);
  limits.isCompacting = false;
  expect(limits.mayBegin(smallWrite)).toBe(false);
  expect(limits.mayBegin(WorkKind.background)).toBe(true);
});
