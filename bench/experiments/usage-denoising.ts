import { preprocess } from '../../control/autoscaler/denoise/preprocess.ts';
import { maximum } from '../../control/autoscaler/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { overSeeds } from './over-seeds.ts';
import { Chance } from './sim/chance.ts';
import { hourlyUsage, usageFamilies } from './workloads/hourly-usage.ts';

const hours = 720;
const day = 24;

interface Labelled {
  usage: Float64Array;
  quota: Float64Array;
  /** The same without the injected errors. */
  pure: Float64Array;
  /** First hours and lengths of metric errors in usage and quota, and of sporadic peaks. */
  jointSpikes: (readonly [from: number, length: number])[];
  singlePeaks: (readonly [from: number, length: number])[];
  shiftAt: number | undefined;
}

/** A month of one family with three metric errors, and a sporadic peak of 2 to 5 times the highest hour. */
function labelled(family: (typeof usageFamilies)[number], chance: Chance): Labelled {
  const { usage: pure, shiftAt } = hourlyUsage(family, hours, chance, chance);
  const usage = Float64Array.from(pure);
  const quota = new Float64Array(hours).fill(maximum(pure) * 1.3);
  const free = new Set(Array.from({ length: hours / day - 2 }, (_, i) => i + 1));
  // Each on a day of its own, and none beside a shift.
  if (shiftAt !== undefined)
    for (const near of [-1, 0, 1]) free.delete(Math.floor(shiftAt / day) + near);
  const takeHour = (): number => {
    const chosen = chance.pick([...free]);
    free.delete(chosen);
    return chosen * day + chance.below(day - 4);
  };
  const jointSpikes = Array.from({ length: 3 }, () => [takeHour(), 1 + chance.below(3)] as const);
  for (const [from, length] of jointSpikes) {
    const factor = chance.uniform(1.5, 3);
    for (let hour = from; hour < from + length; hour++) {
      usage[hour]! *= factor;
      quota[hour]! *= factor;
    }
  }
  const singlePeaks = [[takeHour(), 1 + chance.below(3)] as const];
  for (const [from, length] of singlePeaks) {
    const height = maximum(pure) * chance.uniform(2, 5);
    for (let hour = from; hour < from + length; hour++)
      usage[hour] = height * chance.uniform(0.9, 1);
  }
  return { usage, quota, pure, jointSpikes, singlePeaks, shiftAt };
}

interface Counts {
  artefacts: number;
  removed: number;
  dailyPeaks: number;
  touched: number;
  shifts: number;
  found: number;
}

function judge(made: Labelled, into: Counts): Float64Array {
  const { usage, quota, pure, shiftAt } = made;
  const clean = preprocess({ usage, quota, known: new Uint8Array(hours).fill(1) });
  const highest = maximum(pure);
  for (const [from, length] of made.jointSpikes) {
    into.artefacts++;
    if (!clean.known.subarray(from, from + length).includes(1)) into.removed++;
  }
  for (const [from, length] of made.singlePeaks) {
    into.artefacts++;
    if (maximum(clean.usage, from, from + length) <= 1.1 * highest) into.removed++;
  }
  const injected = new Set(
    [...made.jointSpikes, ...made.singlePeaks].map(([from]) => Math.floor(from / day)),
  );
  for (let of = 0; of < hours / day; of++) {
    if (injected.has(of)) continue;
    into.dailyPeaks++;
    const peak = pure.subarray(of * day, (of + 1) * day);
    const at = of * day + peak.indexOf(maximum(peak));
    if (clean.known[at] === 0 || clean.usage[at]! < 0.99 * pure[at]!) into.touched++;
  }
  if (shiftAt !== undefined) {
    into.shifts++;
    if (Math.abs(clean.trainFrom - shiftAt) <= 6) into.found++;
  }
  return clean.usage;
}

export const usageDenoising: Experiment = {
  id: 'AB-5.2-denoise',
  title: 'Usage without metric errors, sporadic peaks and outdated levels',
  kind: 'SIM',
  source: 'ABase, section 5.2, issue 1; the paper has no figure',
  setup:
    'A month of hourly usage of each of five families (a trend with days, 3.5 days, a burst each day at a random hour, a ' +
    'level shift, flat), with three metric errors that raise usage and quota together by 1.5 to 3, and one peak of 2 to 5 ' +
    'times the highest hour. Each is labelled. Real daily peaks are the highest hours of days in which nothing was injected.',
  run({ seeds, quick }) {
    const tenants = quick ? 10 : 40;
    let shown: { made: Labelled; clean: Float64Array } | undefined;
    const runs = seeds.map((seed) => {
      const counts = { artefacts: 0, removed: 0, dailyPeaks: 0, touched: 0, shifts: 0, found: 0 };
      for (const [number, family] of usageFamilies.entries()) {
        for (let tenant = 0; tenant < tenants; tenant++) {
          const made = labelled(family, new Chance(seed * 100_000 + number * 1000 + tenant));
          const clean = judge(made, counts);
          if (family === 'trend and day') shown ??= { made, clean };
        }
      }
      return counts;
    });
    const percent = (of: keyof Counts, all: keyof Counts): number[] =>
      runs.map((counts) => (100 * counts[of]) / counts[all]);
    const line = (label: string, values: Float64Array): Line => ({
      label,
      points: Array.from(values, (value, hour) => [hour, value] as const),
    });
    return {
      measures: [
        overSeeds(percent('removed', 'artefacts'), {
          metric: 'injected metric errors and peaks removed, %',
          threshold: 95,
          better: 'higher',
        }),
        overSeeds(percent('touched', 'dailyPeaks'), {
          metric: 'real daily peaks touched, %',
          threshold: 1,
          better: 'lower',
        }),
        overSeeds(percent('found', 'shifts'), {
          metric: 'level shifts located within 6 hours, %',
          threshold: 90,
          better: 'higher',
        }),
      ],
      xLabel: 'hour',
      yLabel: 'LRU/s',
      before: { title: 'as recorded', lines: [line('usage', shown!.made.usage)] },
      after: { title: 'after preprocessing', lines: [line('usage', shown!.clean)] },
    };
  },
};
