// Input of a forecast: the history without metric errors, sporadic peaks and the time before the last level shift.

import { findPeriods, type Period } from '../forecast/periods.ts';
import {
  checkHistory,
  fillGaps,
  hoursPerDay,
  hoursPerWeek,
  type UsageHistory,
} from '../usage-history.ts';
import { dropJointSpikes } from './joint-spikes.ts';
import { lastLevelShift } from './level-shift.ts';
import { cutSinglePeaks } from './single-peaks.ts';

/** A forecast is made from at least so much, a shift within it notwithstanding. */
const shortestTrainingHours = hoursPerWeek;

export interface CleanHistory {
  /** Hourly usage without gaps, metric errors and sporadic peaks, of the whole history. */
  usage: Float64Array;
  /** 0 for hours that were not recorded, or are metric errors: `usage` is an estimate there. */
  known: Uint8Array;
  /** The hour from which on the history is fit for training. */
  trainFrom: number;
  /** Periods of the training part, strongest first. */
  periods: readonly Period[];
}

/** Throws a RangeError for a history that `checkHistory` refuses. */
export function preprocess(history: UsageHistory): CleanHistory {
  checkHistory(history);
  const kept = dropJointSpikes(history);
  const known = kept.includes(1) ? kept : history.known;
  const usage = cutSinglePeaks(fillGaps({ usage: history.usage, known }));
  const allPeriods = findPeriods(usage, known);
  const shift = lastLevelShift(usage, profilePeriod(allPeriods));
  if (shift === undefined) return { usage, known, trainFrom: 0, periods: allPeriods };
  const trainFrom = Math.max(0, Math.min(shift, usage.length - shortestTrainingHours));
  const periods = findPeriods(usage.subarray(trainFrom), known.subarray(trainFrom));
  return { usage, known, trainFrom, periods };
}

/** The period whose profile the search for shifts takes off. A shift itself looks like a very long period. */
function profilePeriod(periods: readonly Period[]): number {
  const usable = periods.map(({ hours }) => hours).filter((hours) => hours <= hoursPerWeek);
  return usable.includes(hoursPerDay) ? hoursPerDay : (usable[0] ?? hoursPerDay);
}
