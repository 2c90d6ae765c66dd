import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defaultQuotaChangeRules, planQuotaChange } from './quota-change-plan.ts';

describe('the plan of a change of a quota', () => {
  const plan = (from: number, to: number, forced = false, refusal?: string) =>
    planQuotaChange(from, to, 600, forced, refusal, defaultQuotaChangeRules);
  const stepsOf = (from: number, to: number): readonly number[] => {
    const planned = plan(from, to, true);
    if ('refused' in planned) throw new Error(planned.refused);
    expect(planned.undo).toBe(from);
    return planned.steps;
  };

  test('goes by whole steps of at most half as much again', () => {
    const quota = fc.integer({ min: 10, max: 1_000_000 });
    fc.assert(
      fc.property(quota, quota, (from, to) => {
        const steps = stepsOf(from, to);
        expect(steps.at(-1)).toBe(to);
        for (const [i, step] of steps.entries()) {
          const before = steps[i - 1] ?? from;
          expect(Number.isSafeInteger(step)).toBe(true);
          expect(Math.max(step / before, before / step)).toBeLessThanOrEqual(1.5 + 1e-9);
        }
      }),
    );
    expect(stepsOf(1000, 5000)).toEqual([1495, 2236, 3344, 5000]);
    expect(stepsOf(1, 3)).toEqual([2, 3]);
    expect(stepsOf(700, 700)).toEqual([700]);
  });

  test('is refused where it would throttle, or the pool has no room', () => {
    expect(plan(1000, 500)).toHaveProperty('refused');
    expect(plan(1000, 500, true)).toHaveProperty('steps');
    expect(plan(1000, 2000, true, 'no room')).toEqual({ refused: 'no room' });
    expect(plan(1000, 700, false, 'no room')).toHaveProperty('steps');
    for (const none of [NaN, 0, -1, 1.5]) expect(plan(1000, none)).toHaveProperty('refused');
  });

  test('a first limit is a lower one than none', () => {
    expect(plan(0, 500)).toHaveProperty('refused');
    expect(plan(0, 700)).toHaveProperty('steps', [700]);
  });
});
