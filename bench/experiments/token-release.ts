import { TokenRelease } from '../../storage-node/admission/token-release.ts';
import { mean, percentile } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';
import { Simulation } from './sim/simulation.ts';

const mebibyte = 1024 * 1024;
const periodMs = 15_000;
/** Tokens of each period. */
const total = 480 * mebibyte;
const meanWriteBytes = 128 * 1024;
/** Sums of thousands of ticks may be off by this much. */
const rounding = 1e-9;

interface Run {
  /** Milliseconds that each write waited for tokens. */
  waits: number[];
  /** The most given in a period, of its total; and to be had in a tick, of what remained over 60. */
  mostAllocated: number;
  mostBurst: number;
  /** Of a period's total that was never available, %. */
  unused: number;
  line: Line;
}

interface Options {
  tickMs: number;
  /** Of the tokens. */
  load: number;
  seconds: number;
  seed: number;
}

/** A store that is overloaded, so that tokens are limited in each period. */
function run({ tickMs, load, seconds, seed }: Options): Run {
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const release = new TokenRelease({ periodMs, overloadedTickMs: tickMs }, 0);
  const waiting: { bytes: number; at: number }[] = [];
  let head = 0;
  const waits: number[] = [];
  const points: [number, number][] = [];
  let tick = -1;
  let mostBurst = 0;
  let mostAllocated = 0;
  const unused: number[] = [];

  const take = (bytes: number): boolean => {
    const now = simulation.now();
    const of = Math.floor(now / tickMs);
    if (of !== tick) {
      tick = of;
      const limit = (total - release.allocated) / 60;
      mostBurst = Math.max(mostBurst, release.balance(now) / limit);
    }
    return release.take(bytes, now);
  };
  const drain = (): void => {
    for (let next = waiting[head]; next !== undefined; next = waiting[head]) {
      if (!take(next.bytes)) return;
      head++;
      const wait = simulation.now() - next.at;
      waits.push(wait);
      points.push([next.at / 1000, wait]);
    }
  };
  const write = (): void => {
    simulation.after(chance.exponential((load * total) / periodMs / meanWriteBytes), () => {
      const bytes = meanWriteBytes * chance.uniform(0.5, 1.5);
      waiting.push({ bytes, at: simulation.now() });
      drain();
      write();
    });
  };
  const begin = (): void => {
    const now = simulation.now();
    if (!release.isUnlimited) {
      mostAllocated = Math.max(mostAllocated, release.allocated / total);
      unused.push((100 * (total - release.allocated)) / total);
    }
    release.begin(total, true, now);
    tick = -1;
  };
  begin();
  simulation.every(periodMs, begin);
  simulation.every(tickMs, drain);
  write();
  simulation.runUntil(seconds * 1000);
  for (const { at } of waiting.slice(head)) waits.push(seconds * 1000 - at);
  return {
    waits,
    mostAllocated,
    mostBurst,
    unused: mean(unused),
    line: { label: `ticks of ${tickMs} ms`, points: worstBySecond(points) },
  };
}

function worstBySecond(points: readonly (readonly [number, number])[]): [number, number][] {
  const worst = new Map<number, number>();
  for (const [at, wait] of points) {
    const second = Math.floor(at);
    worst.set(second, Math.max(wait, worst.get(second) ?? 0));
  }
  return [...worst];
}

export const tokenRelease: Experiment = {
  id: 'CR-ticks',
  title: 'Tokens a little at a time',
  kind: 'SIM',
  source: "J. Vanlightly's analysis of serverless CockroachDB, part 2, admission control",
  setup:
    'A store with 480 MiB of tokens in each period of 15 s, released in ticks of 1 ms as under overload, or of 250 ms as ' +
    'otherwise. Writes of 128 KiB arrive at random: half of what there are tokens for, which either can give, or all of ' +
    'it and more for what is left unused.',
  run({ seeds, quick }) {
    const seconds = quick ? 60 : 300;
    const runs = (tickMs: number, load: number): Run[] =>
      seeds.map((seed) => run({ tickMs, load, seconds, seed }));
    const [fine, coarse] = [runs(1, 0.5), runs(250, 0.5)];
    const [fineFull, coarseFull] = [runs(1, 1.1), runs(250, 1.1)];
    const p99 = (all: readonly Run[]): number =>
      mean(all.map(({ waits }) => percentile(waits, 0.99)));
    const every = [...fine, ...coarse, ...fineFull, ...coarseFull];
    const most = (of: (run: Run) => number): number => {
      const value = Math.max(...every.map(of));
      return value > 1 && value < 1 + rounding ? 1 : value;
    };
    return {
      measures: [
        {
          metric: 'p99 of the wait of writes with ticks of 1 ms, of that with 250 ms',
          value: p99(fine) / p99(coarse),
          threshold: 0.2,
          better: 'lower',
        },
        {
          metric: 'most given in a period, of its total',
          value: most(({ mostAllocated }) => mostAllocated),
          threshold: 1,
          better: 'lower',
        },
        {
          metric: 'most to be had in a tick, of what remains over 60',
          value: most(({ mostBurst }) => mostBurst),
          threshold: 1,
          better: 'lower',
        },
        {
          metric: 'unused at the end of a period that wants all, %',
          value: mean(fineFull.map(({ unused }) => unused)),
          threshold: 2,
          better: 'lower',
          without: mean(coarseFull.map(({ unused }) => unused)),
        },
      ],
      xLabel: 'second',
      yLabel: 'longest wait, ms',
      before: { title: 'ticks of 250 ms', lines: [coarse[0]!.line] },
      after: { title: 'ticks of 1 ms', lines: [fine[0]!.line] },
    };
  },
};
