import { describe, expect, test } from 'vitest';
import { defaultManualChangeRules, planManualChange } from './manual-change.ts';

describe('a manual change', () => {
  const plan = (from: number, to: number, forced = false, refusal?: string) =>
    planManualChange(from, to, 600, forced, refusal, defaultManualChangeRules);

  test('goes by steps of at most half as much again, and can be undone', () => {
    const planned = plan(1000, 5000);
    if ('refused' in planned) throw new Error(planned.refused);
    expect(planned.undo).toBe(1000);
    expect(planned.steps.at(-1)).toBe(5000);
    for (const [i, step] of planned.steps.entries()) {
      expect(step / (planned.steps[i - 1] ?? 1000)).toBeLessThanOrEqual(1.5 + 1e-9);
    }
  });

  test('is refused where it would throttle, or the pool has no room', () => {
    expect(plan(1000, 500)).toHaveProperty('refused');
    expect(plan(1000, 500, true)).toHaveProperty('steps');
    expect(plan(1000, 2000, true, 'no room')).toEqual({ refused: 'no room' });
    expect(plan(1000, NaN)).toHaveProperty('refused');
  });
});
