// Hourly use of one resource by synthetic tenants, of the five families that ABase names as hard to forecast.

import type { Chance } from '../sim/chance.ts';

export const usageFamilies = [
  'trend and day',
  '3.5 days',
  'burst at random',
  'shift',
  'flat',
] as const;
type UsageFamily = (typeof usageFamilies)[number];

const day = 24;

interface HourlyUsage {
  usage: Float64Array;
  /** The first hour of the new level, for the family that has one. */
  shiftAt: number | undefined;
}

/**
 * `hours` hours of use, with a mean of about 1,000. A shift lies between days 12 and 20. `chance`
 * draws the shape; `noise` draws the differences between two runs of the same shape.
 */
export function hourlyUsage(
  family: UsageFamily,
  hours: number,
  chance: Chance,
  noise: Chance,
): HourlyUsage {
  const level = chance.lognormal(Math.log(1000), 0.3);
  const phase = chance.uniform(0, 2 * Math.PI);
  const amplitude = chance.uniform(0.2, 0.6);
  const deviation = chance.uniform(0.02, 0.06);
  const weekly = chance.uniform(0, 0.02);
  const height = chance.uniform(1.5, 4);
  const shiftAt = Math.floor(chance.uniform(12, 20) * day);
  const shiftBy = chance.happens(0.5) ? chance.uniform(1.4, 2.5) : chance.uniform(0.4, 0.7);
  let burstFrom = 0;
  let burstTo = 0;
  let burstHeight = 1;
  const daily = (hour: number): number =>
    1 + amplitude * Math.sin((2 * Math.PI * hour) / day + phase);
  const shape = (hour: number): number => {
    switch (family) {
      case 'trend and day':
        return (1 + (weekly * hour) / (7 * day)) * daily(hour);
      case '3.5 days':
        return 1 + amplitude * Math.sin((2 * Math.PI * hour) / (3.5 * day) + phase);
      case 'burst at random':
        if (hour % day === 0) {
          burstFrom = hour + noise.below(day - 3);
          burstTo = burstFrom + 1 + noise.below(3);
          burstHeight = height * noise.uniform(0.9, 1.1);
        }
        return hour >= burstFrom && hour < burstTo ? burstHeight : 1;
      case 'shift':
        return (hour >= shiftAt ? shiftBy : 1) * daily(hour);
      case 'flat':
        return 1;
    }
  };
  const usage = Float64Array.from({ length: hours }, (_, hour) =>
    Math.max(0, level * shape(hour) * (1 + noise.normal(0, deviation))),
  );
  return { usage, shiftAt: family === 'shift' ? shiftAt : undefined };
}
