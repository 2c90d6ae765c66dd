// A quota changed by hand takes effect in steps, each of which is checked first, and can be undone
// (AWS). No part of the server: a limit that an operator sets holds at once. AWS-growth-manual shows what
// steps and the check would be worth.

interface ManualChange {
  /** Quotas to set one after the other; the last is the one asked for. */
  steps: readonly number[];
  /** Between two steps. */
  intervalMs: number;
  /** The quota to return to when a step is refused, or throttles more than before. */
  undo: number;
}

interface ManualChangeRules {
  /** No step changes the quota by more than this factor. */
  largestStep: number;
  intervalMs: number;
}

export const defaultManualChangeRules: ManualChangeRules = { largestStep: 1.5, intervalMs: 60_000 };

type ManualChangePlan = ManualChange | { refused: string };

/**
 * Plans a change from one quota to another. It is refused when it lowers the quota below `highest`, the highest hour
 * of the last week, unless `isForced`; or when `refusal`, the check of the pool, has a reason against the last step.
 */
export function planManualChange(
  from: number,
  to: number,
  highest: number,
  isForced: boolean,
  refusal: string | undefined,
  { largestStep, intervalMs }: ManualChangeRules,
): ManualChangePlan {
  if (!(to > 0 && to < Infinity)) return { refused: `${to} is no quota` };
  if (to > from && refusal !== undefined) return { refused: refusal };
  if (to < from && to < highest && !isForced) {
    return {
      refused: `the last week's highest hour is ${highest}: a quota of ${to} would throttle`,
    };
  }
  // From no quota there is no factor to go by.
  const factor = from > 0 ? Math.abs(Math.log(to / from)) : 0;
  const count = Math.max(1, Math.ceil(factor / Math.log(largestStep) - 1e-9));
  const steps = Array.from({ length: count }, (_, step) =>
    step === count - 1 ? to : from * (to / from) ** ((step + 1) / count),
  );
  return { steps, intervalMs, undo: from };
}
