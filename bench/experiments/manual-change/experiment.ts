// AWS: a quota changed by hand is checked, takes effect step by step, and is undone where it throttles.

import type { Experiment } from '../experiment.ts';
import { overSeeds } from '../over-seeds.ts';
import { mean } from '../ranges/comparison.ts';
import { Chance } from '../sim/chance.ts';
import {
  changeQuotaRequest,
  changeQuotaWorkflows,
  undoQuotaRequest,
} from '../../../control/tenants/change-quota-workflow.ts';
import { defaultQuotaChangeRules } from '../../../control/tenants/quota-change-plan.ts';
import { MemoryStore } from '../../../control/metadata/memory-store-fixture.ts';
import { hasEnded } from '../../../control/workflows/workflow.ts';
import { WorkflowEngine } from '../../../control/workflows/workflow-engine.ts';
import { VirtualTimers } from '../../../control/workflows/workflow-fixture.ts';

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

/** The change as the server's workflow makes it, on a time of its own; `load` is asked once for each minute. */
async function byWorkflow(
  from: number,
  to: number,
  highest: number,
  load: (minute: number) => number,
): Promise<Outcome> {
  const result: Outcome = { throttled: 0, refused: 0, undone: 0, largestStep: 1 };
  const timers = new VirtualTimers();
  const engine = await WorkflowEngine.open(new MemoryStore(), { report: () => {}, timers });
  let quota = from;
  let minute = 0;
  /** The load of the next minute meets the quota. */
  const pass = (): boolean => {
    const isThrottled = load(minute++) > quota;
    if (isThrottled) result.throttled++;
    return isThrottled;
  };
  let isWatched = false;
  const tenant = { name: 'tenant', number: 1 };
  const definitions = changeQuotaWorkflows(
    {
      quotaOf: () => quota,
      setQuota: async (_tenant, expected, next) => {
        if (quota !== expected) return false;
        if (!isWatched)
          result.largestStep = Math.max(result.largestStep, next / quota, quota / next);
        quota = next;
        return true;
      },
      highestHour: async () => highest,
      refusal: async () => undefined,
      // Before the change nothing is throttled: the quota is above the highest hour.
      throttled: async () => (quota === from || !pass() ? 0 : 1),
    },
    defaultQuotaChangeRules,
    timers,
  );
  for (const definition of definitions) engine.register(definition);
  engine.start();
  const carryOut = async (request: ReturnType<typeof changeQuotaRequest>): Promise<boolean> => {
    await engine.submit(...request);
    await timers.until(() => hasEnded(engine.find(request[0])!));
    return engine.find(request[0])!.status === 'done';
  };
  const change = { tenant, to };
  const isDone = await carryOut(changeQuotaRequest('1', change));
  if (!isDone && minute === 0) result.refused = 1;
  else if (!isDone) result.undone = 1;
  // What ended well is still watched: the first minute that throttles has it taken back.
  isWatched = true;
  while (result.refused === 0 && minute < minutesOfDay) {
    if (!pass() || quota === from) continue;
    result.undone = 1;
    if (!(await carryOut(undoQuotaRequest('2', change, from)))) throw new Error('it stays');
  }
  await engine.close();
  return result;
}

function atOnce(from: number, to: number, load: (minute: number) => number): Outcome {
  let throttled = 0;
  for (let minute = 0; minute < minutesOfDay; minute++) if (load(minute) > to) throttled++;
  return { throttled, refused: 0, undone: 0, largestStep: Math.max(to / from, from / to) };
}

async function changes(seed: number, isPlanned: boolean): Promise<Outcome> {
  const result: Outcome = { throttled: 0, refused: 0, undone: 0, largestStep: 1 };
  for (let number = 0; number < tenants; number++) {
    const chance = new Chance(seed * 1000 + number);
    const base = chance.lognormal(Math.log(1000), 1);
    // The highest hour of the week before, and a quota of which it is 70 %.
    const highest = 2 * base;
    const from = Math.round(highest / 0.7);
    const to = Math.round(from * 2 ** chance.uniform(-2, 2));
    const load = loadOf(base, chance);
    const one = isPlanned ? await byWorkflow(from, to, highest, load) : atOnce(from, to, load);
    result.throttled += one.throttled;
    result.refused += one.refused;
    result.undone += one.undone;
    result.largestStep = Math.max(result.largestStep, one.largestStep);
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
    'steps of at most half as much again, a minute each, and is undone in the first minute that throttles: by the workflow ' +
    'change-quota on a document store. Without: at once, as an operator of the server does it.',
  async run({ seeds, progress }) {
    const [planned, direct]: [Outcome[], Outcome[]] = [[], []];
    for (const seed of seeds) {
      progress(`seed ${seed}`);
      planned.push(await changes(seed, true));
      direct.push(await changes(seed, false));
    }
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
