// Metric errors: while a partition moves or changes its leader both replicas may be counted, in usage and in quota.
// Usage and quota do not rise and fall together for any other reason (ABase, section 5.2, issue 1).

import { median } from '../statistics.ts';
import { hoursPerDay, type UsageHistory } from '../usage-history.ts';

/** A quota that stays raised for longer than this was really raised. */
const longestSpikeHours = 24;
/** How far above its surroundings a value must be, as a factor. */
const spikeFactor = 1.1;

/** The known hours that remain when those of metric errors are dropped. */
export function dropJointSpikes(history: UsageHistory): Uint8Array {
  const { usage, quota, known } = history;
  const kept = Uint8Array.from(known);
  for (let start = 1; start < quota.length; start++) {
    if (known[start] === 0 || quota[start]! <= quota[start - 1]! * spikeFactor) continue;
    const before = lastKnown(history, start);
    if (before === undefined) continue;
    const end = endOfExcursion(history, start, before);
    if (end === undefined) continue;
    for (let hour = start; hour < end; hour++) {
      if (usage[hour]! > spikeFactor * usualUsage(history, hour, start, end)) kept[hour] = 0;
    }
    start = end - 1;
  }
  return kept;
}

function lastKnown({ quota, known }: UsageHistory, before: number): number | undefined {
  for (let hour = before - 1; hour >= 0; hour--) if (known[hour]) return quota[hour]!;
  return undefined;
}

/** The first hour whose quota is back, undefined where it stays raised: a rise at the very end may be a real one. */
function endOfExcursion(
  { quota, known }: UsageHistory,
  start: number,
  before: number,
): number | undefined {
  const last = Math.min(quota.length, start + longestSpikeHours + 1);
  for (let hour = start; hour < last; hour++) {
    if (known[hour] && quota[hour]! <= before * spikeFactor) return hour;
  }
  return undefined;
}

/** The median of the same hour on the days around, without the hours of the excursion. */
function usualUsage(
  { usage, known }: UsageHistory,
  hour: number,
  start: number,
  end: number,
): number {
  const around: number[] = [];
  for (let days = 1; days <= 3; days++) {
    for (const other of [hour - days * hoursPerDay, hour + days * hoursPerDay]) {
      if (known[other] && (other < start || other >= end)) around.push(usage[other]!);
    }
  }
  if (around.length > 0) return median(Float64Array.from(around));
  return known[start - 1] ? usage[start - 1]! : 0;
}
