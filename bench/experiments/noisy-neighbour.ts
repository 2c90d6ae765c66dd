import { Neighbours, type Sample } from '../../cli/demo/neighbours.ts';
import { floodFactor, settingsOf, sized } from '../../cli/demo/noisy-neighbour.ts';
import { type Kind, prepared } from '../../cli/demo/workloads.ts';
import type { Experiment, ExperimentContext, Outcome } from './experiment.ts';
import { pinned } from './live/machine.ts';
import { failureIn, lineOf, meanOf, p99Of, samplesOf, totalOf, usualP99 } from './live/samples.ts';

const over: Readonly<Record<Kind, { id: string; words: string }>> = {
  redis: { id: 'noisy-neighbour', words: 'gets and sets values over Redis in pipelines' },
  'influx-writes': {
    id: 'noisy-neighbour-writes',
    words: "writes points of a thousand hosts at once over InfluxDB's protocol",
  },
  'influx-queries': {
    id: 'noisy-neighbour-queries',
    words: 'asks for statistics of all points of a hundred hosts by InfluxQL',
  },
};

function neighbourOver(kind: Kind): Experiment {
  const { id, words } = over[kind];
  return {
    id,
    title: `A noisy neighbour over ${kind}`,
    kind: 'LIVE',
    source: 'ours; as X-Stor, Figure 13, and ABase, Figures 6 and 7',
    setup:
      `A server as it is shipped, on one processor, and on another one those who make load. Tenant A ${words}, and ` +
      `wants ${floodFactor} times its quota, which is a tenth of what the plane did for it before; tenant B sends few ` +
      'requests at fixed times, and waits from then on for each. B is alone and beside A by turns of some seconds, as a ' +
      'machine is quicker at one time than at another; the p99 is the median of those of all seconds, alone and beside ' +
      'A alike. Without: no quotas, and no turns with the thread of the plane.',
    run: (context) => run(kind, context),
  };
}

async function run(kind: Kind, { quick, progress }: ExperimentContext): Promise<Outcome> {
  progress('starting a server');
  const neighbours = await Neighbours.start({ prepare: prepared[kind], pin: pinned() });
  try {
    await neighbours.warmUp(quick ? 0.7 : 3);
    progress('finding out what the machine can do');
    const { capacity, quota, floodRate } = await sized(neighbours, quick ? 0.6 : 3);
    const settle = quick ? 0.5 : 2;
    const rounds = quick ? 2 : 5;
    const alone: Sample[] = [];
    const after: Sample[] = [];
    await neighbours.server.set(settingsOf.limits);
    for (let round = 1; round <= rounds; round++) {
      progress(`B alone, ${round} of ${rounds}`);
      const samples = quick ? 2 : 6;
      alone.push(...(await samplesOf(neighbours, { flood: 0, samples, settle })));
      progress(`limits, ${round} of ${rounds}`);
      after.push(...(await samplesOf(neighbours, { flood: floodRate, samples, settle })));
    }
    progress('no limits');
    await neighbours.server.set(settingsOf['no limits']);
    const before = await samplesOf(neighbours, {
      flood: floodRate,
      samples: quick ? 1 : 10,
      settle,
    });
    const offQuota = (ru: number): number => 100 * Math.abs(ru / quota - 1);
    const notServed = totalOf([...alone, ...after], (sample) => sample.notServed);
    return {
      measures: [
        {
          metric: 'p99 of B beside A, of that alone',
          value: usualP99(after) / usualP99(alone),
          threshold: 1.3,
          better: 'lower',
          without: usualP99(before) / usualP99(alone),
        },
        {
          metric: 'requests of B refused or failed',
          value: notServed,
          threshold: 0,
          better: 'lower',
          without: totalOf(before, (sample) => sample.notServed),
        },
        {
          metric: 'what A was served, off its quota, %',
          value: offQuota(meanOf(after, ({ ru }) => ru)),
          threshold: 5,
          better: 'lower',
          without: offQuota(meanOf(before, ({ ru }) => ru)),
        },
        {
          metric: 'what A could have sent, of what the server can do',
          value: capacity.headroom,
          threshold: 2,
          better: 'higher',
        },
      ],
      xLabel: 'second',
      yLabel: 'p99 of B, ms',
      before: { title: 'no limits', lines: [lineOf('beside A', before, p99Of)] },
      after: {
        title: 'limits',
        lines: [lineOf('beside A', after, p99Of), lineOf('alone', alone, p99Of)],
      },
      explanation:
        failureIn(after) ??
        'B waits up to a fifth of a millisecond for the batch of A that runs, and one to three where other threads of ' +
          'the server or of the machine have the one processor, or garbage is collected.',
    };
  } finally {
    await neighbours.stop();
  }
}

export const noisyNeighbour = neighbourOver('redis');
export const noisyNeighbourWrites = neighbourOver('influx-writes');
export const noisyNeighbourQueries = neighbourOver('influx-queries');
