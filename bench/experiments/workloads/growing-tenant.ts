// Demand of a tenant over months, by the hour: growth, periods, noise, now and then a sporadic peak or a new level.

import type { Chance } from '../sim/chance.ts';

const day = 24;
const week = 168;

export interface Growth {
  /** Compound, a week; drawn for each tenant. */
  weekly: readonly [least: number, most: number];
  /** Part of the tenants whose level shifts once, by 1.2 to 1.8 either way. */
  shifting: number;
  /** Sporadic peaks a day, of 1 to 3 hours, 1.2 to 2 times the demand. */
  peaksADay: number;
}

export const steadyGrowth: Growth = { weekly: [-0.01, 0.04], shifting: 0, peaksADay: 0 };
/** Growth with unpredictable parts. */
export const roughGrowth: Growth = { weekly: [-0.01, 0.04], shifting: 0.1, peaksADay: 1 / 60 };

export function growingDemand(hours: number, growth: Growth, chance: Chance): Float64Array {
  const level = chance.lognormal(Math.log(1000), 1);
  const weekly = chance.uniform(...growth.weekly);
  const kind = chance.below(4);
  const amplitude = chance.uniform(0.2, 0.6);
  const phase = chance.uniform(0, 2 * Math.PI);
  const period = kind === 1 ? 3.5 * day : day;
  const deviation = chance.uniform(0.02, 0.06);
  const shiftAt = chance.happens(growth.shifting) ? chance.below(hours) : Infinity;
  const size = chance.uniform(1.2, 1.8);
  const shift = chance.happens(0.5) ? size : 1 / size;
  const burst = chance.uniform(1.5, 3);
  let [burstAt, peakUntil, peak] = [0, 0, 1];
  return Float64Array.from({ length: hours }, (_, hour) => {
    if (hour % day === 0) {
      burstAt = hour + chance.below(day - 1);
      if (chance.happens(growth.peaksADay)) {
        peakUntil = hour + 1 + chance.below(3);
        peak = chance.uniform(1.2, 2);
      }
    }
    // Kinds: days, 3.5 days, a burst each day at another hour, flat.
    const shape =
      kind < 2
        ? 1 + amplitude * Math.sin((2 * Math.PI * hour) / period + phase)
        : kind === 2 && hour >= burstAt && hour < burstAt + 2
          ? burst
          : 1;
    const trend = (1 + weekly) ** (hour / week) * (hour >= shiftAt ? shift : 1);
    const noise = Math.max(0, 1 + chance.normal(0, deviation));
    return level * trend * shape * noise * (hour < peakUntil ? peak : 1);
  });
}
