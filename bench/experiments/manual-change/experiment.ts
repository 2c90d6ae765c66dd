// AWS: a quota changed by hand is checked, takes effect step by step, and is undone where it throttles.

import type { Experiment } from '../experiment.ts';
import { overSeeds } from '../over-seeds.ts';
import { mean } from '../ranges/comparison.ts';
import { Chance } from '../sim/chance.ts';
import { defaultManualChangeRules, planManualChange } from './manual-change.ts';

const tenants = 200;
const minutesOfDay = 1440;

interface Outcome {
  throttled: number;
  /** Changes that were refused, and that were undone. */
  refused: number;
  undone: number;
  largestStep: number;
}

/** Load of a tenant by the minute: a day of twice the night's load, and noise of a tenth. */
function loadOf(base: number, chance: Chance): (minute: number) => number {
  return (minute) => {
    const wave = (1 - Math.cos((2 * Math.PI * minute) / minutesOfDay)) / 2;
    return base * (1 + wave) * Math.max(0, 1 + 0.1 * chance.normal());
  };
}

function change(seed: number, isPlanned: boolean): Outcome {
  const result: Outcome = { throttled: 0, refused: 0, undone: 0, largestStep: 1 };
  for (let number = 0; number < tenants; number++) {
    const chance = new Chance(seed * 1000 + number);
    const base = chance.lognormal(Math.log(1000), 1);
    // The highest hour of the week before, and a quota of which it is 70 %.
    const highest = 2 * base;
    const from = highest / 0.7;
    const to = from * 2 ** chance.uniform(-2, 2);
    const load = loadOf(base, chance);
    const plan = isPlanned
      ? planManualChange(from, to, highest, false, undefined, defaultManualChangeRules)
      : { steps: [to], intervalMs: 60_000, undo: from };
    if ('refused' in plan) {
      result.refused++;
      continue;
    }
    plan.steps.forEach((step, i) => {
      const factor = step / (plan.steps[i - 1] ?? from);
      result.largestStep = Math.max(result.largestStep, factor, 1 / factor);
    });
    const intervalMinutes = plan.intervalMs / 60_000;
    let isUndone = false;
    for (let minute = 0; minute < minutesOfDay; minute++) {
      const step = Math.min(plan.steps.length - 1, Math.floor(minute / intervalMinutes));
      const quota = isUndone ? plan.undo : plan.steps[step]!;
      if (load(minute) <= quota) continue;
      result.throttled++;
      if (isPlanned && !isUndone) {
        isUndone = true;
        result.undone++;
      }
    }
  }
  return result;
}

export const manualChange: Experiment = {
  id: 'AWS-growth-manual',
  title: 'A quota that is changed by hand',
  kind: 'SIM',
  source: 'AWS, Fairness in multi-tenant systems; no figure',
  setup:
    `${tenants} tenants whose highest hour is 70 % of their quota; each gets another one by hand, of a fourth to four times as ` +
    'much, and a day of minutes with noise of a tenth goes by. The change is refused below the highest hour, takes effect by ' +
    'steps of at most half as much again, a minute each, and is undone in the first minute that throttles. Without: at once. ' +
    'The server sets limits at once; this is no part of it.',
  run({ seeds }) {
    const planned = seeds.map((seed) => change(seed, true));
    const direct = seeds.map((seed) => change(seed, false));
    const throttled = direct.map((one) => one.throttled);
    return {
      measures: [
        overSeeds(
          planned.map((one) => one.throttled),
          {
            metric: 'throttled tenant-minutes of a day',
            threshold: mean(throttled),
            better: 'lower',
          },
          throttled,
        ),
        overSeeds(
          planned.map((one) => one.largestStep),
          { metric: 'largest step, times the quota before it', threshold: 1.5, better: 'lower' },
          direct.map((one) => one.largestStep),
        ),
        overSeeds(
          planned.map((one) => (100 * one.refused) / tenants),
          { metric: 'changes refused, %', better: 'lower' },
        ),
        overSeeds(
          planned.map((one) => (100 * one.undone) / tenants),
          { metric: 'changes undone, %', better: 'lower' },
        ),
      ],
      xLabel: 'seed',
      yLabel: 'throttled tenant-minutes',
      before: {
        title: 'at once',
        lines: [{ label: 'throttled', points: throttled.map((value, i) => [i + 1, value]) }],
      },
      after: {
        title: 'checked, by steps',
        lines: [{ label: 'throttled', points: planned.map((one, i) => [i + 1, one.throttled]) }],
      },
    };
  },
};
