// A quota changed by hand takes effect in steps, after a check, and can be undone (AWS). change-quota-workflow.ts carries
// the plan out.

interface QuotaChangePlan {
  /** Quotas to set one after the other; the last is the one asked for. */
  steps: readonly number[];
  /** Between two steps. */
  intervalMs: number;
  /** The quota to return to when a step is refused, or throttles more than before. */
  undo: number;
}

export interface QuotaChangeRules {
  /** No step changes the quota by more than this factor, as far as whole numbers allow. */
  largestStep: number;
  intervalMs: number;
}

export const defaultQuotaChangeRules: QuotaChangeRules = { largestStep: 1.5, intervalMs: 60_000 };

/**
 * Plans a change from one quota to another; 0 is none, as in the limits of a tenant. It is refused when it lowers the
 * quota below `highest`, the highest hour of the last week, unless `isForced`; or when `refusal`, the check of the pool,
 * has a reason against the last step.
 */
export function planQuotaChange(
  from: number,
  to: number,
  highest: number,
  isForced: boolean,
  refusal: string | undefined,
  { largestStep, intervalMs }: QuotaChangeRules,
): QuotaChangePlan | { refused: string } {
  if (!Number.isSafeInteger(to) || to <= 0) return { refused: `${to} is no quota` };
  const isLowered = from === 0 || to < from;
  if (!isLowered && to > from && refusal !== undefined) return { refused: refusal };
  if (isLowered && to < highest && !isForced) {
    return {
      refused: `the last week's highest hour is ${highest}: a quota of ${to} would throttle`,
    };
  }
  return { steps: stepsOf(from, to, largestStep), intervalMs, undo: from };
}

/** Whole numbers by about the same factor. */
function stepsOf(from: number, to: number, largestStep: number): number[] {
  // From no quota there is no factor to go by.
  if (from === 0) return [to];
  const factor = Math.abs(Math.log(to / from));
  // More steps than whole numbers between the two there cannot be.
  const most = Math.max(1, Math.abs(to - from));
  for (let count = Math.max(1, Math.ceil(factor / Math.log(largestStep) - 1e-9)); ; count++) {
    const some = Math.min(count, most);
    const all = Array.from({ length: some }, (_, i) =>
      Math.round(from * (to / from) ** ((i + 1) / some)),
    );
    const steps = all.filter((step, i) => step !== all[i - 1]);
    const isSmall = steps.every((step, i) => {
      const before = steps[i - 1] ?? from;
      return Math.max(step / before, before / step) <= largestStep + 1e-9;
    });
    // Rounding makes some factors larger; with more steps all are smaller.
    if (isSmall || count >= most) return steps;
  }
}
