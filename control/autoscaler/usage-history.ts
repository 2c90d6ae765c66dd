// Hourly use of one resource by one tenant, oldest first.

import { isAllKnown } from './statistics.ts';

export const hoursPerDay = 24;
export const hoursPerWeek = 168;

/**
 * Hourly usage and quota of one resource, in the resource's own unit (LRU/s, or bytes). The arrays have the same length
 * of at least one day. Where `known` is 0 the hour was not recorded, and its values are ignored.
 */
export interface UsageHistory {
  usage: Float64Array;
  quota: Float64Array;
  known: Uint8Array;
}

/** Throws a RangeError for a history that no forecast can be made from: see `UsageHistory`. */
export function checkHistory({ usage, quota, known }: UsageHistory): void {
  if (usage.length < hoursPerDay) {
    throw new RangeError(
      `a usage history needs at least ${hoursPerDay} hours, not ${usage.length}`,
    );
  }
  if (quota.length !== usage.length || known.length !== usage.length) {
    throw new RangeError('usage, quota and known hours must have the same length');
  }
  let count = 0;
  for (let hour = 0; hour < usage.length; hour++) {
    if (known[hour] === 0) continue;
    count++;
    checkValue('usage', usage[hour]!, hour);
    checkValue('quota', quota[hour]!, hour);
  }
  if (count === 0) throw new RangeError('a usage history needs at least one known hour');
}

/** The largest value a history may hold: sums of squares over a month stay finite. */
const largestValue = 1e100;

function checkValue(name: string, value: number, hour: number): void {
  if (!(value >= 0 && value <= largestValue)) {
    throw new RangeError(
      `${name} of hour ${hour} is ${value}: it must be from 0 to ${largestValue}`,
    );
  }
}

/** The history with unknown hours filled from the same hour of the nearest day, or the nearest known hour. */
export function fillGaps({ usage, known }: Pick<UsageHistory, 'usage' | 'known'>): Float64Array {
  if (isAllKnown(known)) return usage;
  const filled = Float64Array.from(usage);
  for (let hour = 0; hour < filled.length; hour++) {
    if (known[hour] === 0) filled[hour] = usage[nearestKnown(known, hour)]!;
  }
  return filled;
}

function nearestKnown(known: Uint8Array, hour: number): number {
  for (const step of [hoursPerDay, 1]) {
    for (let away = step; away < known.length; away += step) {
      if (known[hour - away]) return hour - away;
      if (known[hour + away]) return hour + away;
    }
  }
  return hour;
}
