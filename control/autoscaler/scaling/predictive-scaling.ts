// Algorithm 1 of ABase: quotas follow the forecast, so that the coming week's highest hour lies between 65 and 85 %
// of the quota. Each decision is about one resource of one tenant: request units and storage are scaled
// independently. A forecast cannot predict a new level or a first peak from the history. Present use near the quota
// therefore raises the quota as well.

import { hoursPerWeek } from '../usage-history.ts';

/** Above this part of the quota the forecast raises it, below the lower one it may lower it (ABase, section 5.1). */
export const upperUse = 0.85;
const lowerUse = 0.65;

export interface ResourceState {
  /** The tenant's quota, in the resource's unit: LRU/s, or bytes. */
  quota: number;
  partitions: number;
  /**
   * In use at present: bytes stored, or the highest units a second of the last hour. A quota is
   * not lowered so far that this would be above 85 % of it.
   */
  used: number;
  /** Hours since the quota was last changed, Infinity if it never was. */
  hoursSinceChange: number;
  /** A quota for cost control: it never changes by itself, and its owner is warned instead. */
  isFixed: boolean;
}

export interface ScalingRules {
  /** A partition with a larger quota is split (UP). */
  mostPartitionQuota: number;
  /** No partition's quota is lowered below this, for bursts (LOWER). */
  leastPartitionQuota: number;
  /** The most the pool can promise this tenant: see `mostQuota` of the pool's rules. */
  mostQuota: number;
  /** A reduction by a smaller part than this is not made: idle quota costs less than a quota that flaps. */
  smallestReduction: number;
  hoursBetweenReductions: number;
  /** Present use above this part of the quota raises it, whatever the forecast says. Infinity: only the forecast does. */
  urgentUse: number;
}

export const defaultScalingRules: ScalingRules = {
  mostPartitionQuota: Infinity,
  leastPartitionQuota: 0,
  mostQuota: Infinity,
  smallestReduction: 0.1,
  hoursBetweenReductions: hoursPerWeek,
  urgentUse: 0.95,
};

type ScalingDecision =
  | { kind: 'keep' }
  /** The owner of a fixed quota is told the quota that the forecast requires. */
  | { kind: 'warn'; wanted: number; reason: string }
  /** The pool lacks room: `quota` is the part it has, and the fleet must grow. */
  | { kind: 'short of room'; wanted: number; quota: number; partitions: number; reason: string }
  | { kind: 'scale'; quota: number; partitions: number; partitionQuota: number; reason: string };

/**
 * Scaling decision for a resource whose highest hour of the coming week is forecast as `highest`. A raise makes the
 * forecast, or present use where that asks for it, 65 % of the quota.
 * Throws a RangeError for a forecast or a quota that is no finite number of at least 0.
 */
export function planScaling(
  state: ResourceState,
  highest: number,
  rules: ScalingRules,
): ScalingDecision {
  for (const value of [highest, state.quota, state.used]) {
    if (!(value >= 0 && value < Infinity)) throw new RangeError(`${value} is no use or quota`);
  }
  const { quota, used } = state;
  const forecastText = `the highest hour of the next week is forecast at ${percent(highest, quota)} of the quota`;
  const isUrgent = used > rules.urgentUse * quota;
  if (highest > upperUse * quota || isUrgent) {
    const wanted = Math.max(highest, isUrgent ? used : 0) / lowerUse;
    const reason = isUrgent
      ? `${percent(used, quota)} of the quota is in use: more than ${100 * rules.urgentUse} %`
      : `${forecastText}: more than ${100 * upperUse} %`;
    if (state.isFixed) return { kind: 'warn', wanted, reason };
    if (wanted <= rules.mostQuota) return scaledUp(state, wanted, rules, reason);
    const most = Math.max(quota, rules.mostQuota);
    const { partitions } = scaledUp(state, most, rules, reason);
    const short = `${reason}, and the pool has room for ${Math.round(most)} only`;
    return { kind: 'short of room', wanted, quota: most, partitions, reason: short };
  }
  const wanted = Math.max(highest / lowerUse, used / upperUse);
  const isRested = state.hoursSinceChange >= rules.hoursBetweenReductions;
  const isWorthIt = wanted <= quota * (1 - rules.smallestReduction);
  if (!(highest < lowerUse * quota) || !isRested || !isWorthIt || state.isFixed) {
    return { kind: 'keep' };
  }
  return {
    kind: 'scale',
    quota: wanted,
    partitions: state.partitions,
    partitionQuota: Math.max(wanted / state.partitions, rules.leastPartitionQuota),
    reason: `${forecastText}: less than ${100 * lowerUse} %`,
  };
}

/** Every partition is split in two, again and again, until the quota of each is at most the upper bound. */
function scaledUp(
  state: ResourceState,
  quota: number,
  { mostPartitionQuota }: ScalingRules,
  reason: string,
): Extract<ScalingDecision, { kind: 'scale' }> {
  let { partitions } = state;
  if (!(mostPartitionQuota > 0)) throw new RangeError('a partition must be allowed some quota');
  while (quota / partitions > mostPartitionQuota) partitions *= 2;
  return { kind: 'scale', quota, partitions, partitionQuota: quota / partitions, reason };
}

function percent(value: number, of: number): string {
  return of === 0 ? 'more than 100 %' : `${((100 * value) / of).toFixed(1)} %`;
}
