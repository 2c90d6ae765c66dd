import { ErrorDelay } from '../../access/admission/error-delay.ts';
import type { Experiment, Line, Measure } from './experiment.ts';
import { Chance } from './sim/chance.ts';
import { Simulation } from './sim/simulation.ts';

const gateways = 4;
const sick = 0;
const perSecond = 4000;
/** Milliseconds. */
const sickFrom = 10_000;
const typicalMs = 8;
const failsAfterMs = 0.3;

interface Run {
  /** Requests by second, and those that the sick one got. */
  sent: Float64Array;
  drawn: Float64Array;
}

/** One gateway fails every request, or so many of them, from the tenth second on. */
function run({
  enabled,
  failing,
  seconds,
  seed,
}: {
  enabled: boolean;
  failing: number;
  seconds: number;
  seed: number;
}): Run {
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const delays = Array.from({ length: gateways }, () => new ErrorDelay({ enabled }));
  const outstanding = new Uint32Array(gateways);
  const sent = new Float64Array(seconds);
  const drawn = new Float64Array(seconds);
  const leastOutstanding = (): number => {
    // Among equals any, by chance.
    const first = chance.below(gateways);
    let best = first;
    for (let n = 1; n < gateways; n++) {
      const i = (first + n) % gateways;
      if (outstanding[i]! < outstanding[best]!) best = i;
    }
    return best;
  };
  const arrive = (): void => {
    const at = simulation.now();
    const to = leastOutstanding();
    const second = Math.floor(at / 1000);
    sent[second]!++;
    if (to === sick) drawn[second]!++;
    outstanding[to]!++;
    const fails = to === sick && at >= sickFrom && chance.happens(failing);
    const took = fails ? failsAfterMs : typicalMs * chance.lognormal(0, 0.5);
    simulation.after(took + (fails ? delays[to]!.delay(took) : 0), () => {
      if (!fails) delays[to]!.succeeded(took);
      outstanding[to]!--;
    });
  };
  const generate = (): void => {
    simulation.after(chance.exponential(perSecond / 1000), () => {
      if (simulation.now() >= seconds * 1000) return;
      arrive();
      generate();
    });
  };
  generate();
  simulation.runUntil(seconds * 1000);
  return { sent, drawn };
}

/** Per cent of the traffic from the twelfth second on. */
function shareOf({ sent, drawn }: Run): number {
  const sum = (values: Float64Array): number =>
    values.subarray(sickFrom / 1000 + 2).reduce((total, value) => total + value, 0);
  return (100 * sum(drawn)) / sum(sent);
}

function lineOf({ sent, drawn }: Run): Line[] {
  return [
    {
      label: 'traffic of the sick one, %',
      points: Array.from(sent, (all, second): [number, number] => [
        second,
        (100 * drawn[second]!) / all,
      ]),
    },
  ];
}

export const slowError: Experiment = {
  id: 'AWS-slow-error',
  title: 'Errors that take as long as successes',
  kind: 'SIM',
  source: 'Amazon, Fairness in multi-tenant systems, "Load shedding"',
  setup:
    'Four gateways behind a balancer that picks who has fewest requests outstanding, 4,000 requests a second of 8 ms ' +
    '(lognormal, 0.5). From the tenth second on one fails all it gets, after 0.3 ms.',
  run({ quick, seeds, progress }) {
    const seconds = quick ? 25 : 60;
    const runs = (enabled: boolean, failing: number): Run[] =>
      seeds.map((seed) => {
        progress(`${enabled ? 'slowed' : 'fast'} errors, seed ${seed}`);
        return run({ enabled, failing, seconds, seed });
      });
    const mean = (all: readonly Run[]): number =>
      all.reduce((sum, one) => sum + shareOf(one), 0) / all.length;
    const fast = runs(false, 1);
    const slowed = runs(true, 1);
    const measures: Measure[] = [
      {
        metric: 'traffic that the sick gateway draws with fast errors, %',
        value: mean(fast),
        threshold: 50,
        better: 'higher',
      },
      {
        metric: 'traffic that it draws with slowed errors, %',
        value: mean(slowed),
        threshold: 30,
        better: 'lower',
        without: mean(fast),
      },
      {
        metric: 'the same if it fails four fifths of what it gets, %',
        value: mean(runs(true, 0.8)),
        threshold: 30,
        better: 'lower',
        without: mean(runs(false, 0.8)),
      },
    ];
    return {
      measures,
      xLabel: 'second',
      yLabel: '%',
      before: { title: 'fast errors', lines: lineOf(fast[0]!) },
      after: { title: 'slowed errors', lines: lineOf(slowed[0]!) },
    };
  },
};
