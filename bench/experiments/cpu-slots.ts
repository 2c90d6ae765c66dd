import { median } from '../support/statistics.ts';
import { type Experiment, type Line, type Measure, reaches } from './experiment.ts';
import { BusyLoop, type LoopOptions, type LoopRun } from './live/busy-loop.ts';

const overload = 2;

function lagLine(label: string, { lags }: LoopRun): Line {
  return { label, points: lags };
}

const explanation =
  'Where the machine has little else to do the lag is 5 ms. Time that other processes take from the loop is lag as ' +
  'well, which no slot can give back; slots become few for it, and then too few to keep the processor busy.';

export const cpuSlots: Experiment = {
  id: 'CR-cpu-slots',
  title: 'Slots that follow the lag of the event loop',
  kind: 'LIVE',
  source: "J. Vanlightly's analysis of serverless CockroachDB, part 2, admission control",
  setup:
    'A thread with an event loop that does pieces of work, each of four slices of hashing with a wait after the first, ' +
    'offered by another thread at twice the rate it is found to reach. Pieces are worth nothing after a second. With ' +
    'the mechanism they begin when they have a slot, the newest epoch first; without it, when they come. Each figure is ' +
    'the median of several rounds.',
  async run({ quick, progress }) {
    const rounds = quick ? 1 : 5;
    const seconds = quick ? 2.5 : 5;
    const peaks: number[] = [];
    const before: LoopRun[] = [];
    const after: LoopRun[] = [];
    const run = async (options: LoopOptions): Promise<LoopRun> => {
      // A loop of its own for each, with nothing left over from another.
      const loop = new BusyLoop();
      try {
        return await loop.run(options);
      } finally {
        await loop.close();
      }
    };
    const peak = async (): Promise<number> =>
      (await run({ slots: false, rate: Infinity, seconds: quick ? 1 : 2 })).goodput;
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1} of ${rounds}`);
      const first = await peak();
      const rate = overload * first;
      after.push(await run({ slots: true, rate, seconds }));
      before.push(await run({ slots: false, rate, seconds }));
      // The machine may have been faster or slower meanwhile.
      peaks.push((first + (await peak())) / 2);
    }
    const lag = (runs: readonly LoopRun[]): number => median(runs.map(({ lagP99 }) => lagP99));
    const goodput = (runs: readonly LoopRun[]): number =>
      median(runs.map((one, i) => one.goodput / peaks[i]!));
    const measures: Measure[] = [
      {
        metric: 'p99 of the lag of the event loop at 2x, ms',
        value: lag(after),
        threshold: 10,
        better: 'lower',
        without: lag(before),
      },
      {
        metric: 'p99 of the lag without slots at 2x, ms',
        value: lag(before),
        threshold: 100,
        better: 'higher',
      },
      {
        metric: 'done in time at 2x, of the peak',
        value: goodput(after),
        threshold: 0.9,
        better: 'higher',
        without: goodput(before),
      },
    ];
    return {
      measures,
      xLabel: 'second',
      yLabel: 'worst lag, ms',
      before: { title: 'work begins when it comes', lines: [lagLine('no slots', before[0]!)] },
      after: { title: 'work waits for a slot', lines: [lagLine('slots', after[0]!)] },
      ...(measures.every(reaches) ? {} : { explanation }),
    };
  },
};
