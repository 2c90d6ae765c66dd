import type { Experiment, ExperimentContext, Measure, Outcome } from './experiment.ts';
import {
  admittedLines,
  errorMeasures,
  meanOf,
  type Run,
  runFastKey,
  runVariants,
  shapes,
  skewedShapes,
  type Variant,
  variants,
} from './workloads/distributed-traffic.ts';

const source = 'Amazon, Fairness in multi-tenant systems, "Distributed admission control"';
const traffic =
  'Ten servers and one quota of 5,000 requests a second, of which 80 to 120 % are asked for, in a wave of 40 s. Traffic is ' +
  'even; or nine tenths of it are four connections; or 85 % come through the balancer of four servers; or 80 % go to one ' +
  'server, another each minute. Off is what was admitted from what one bucket would have, second by second. ';

const pictures = {
  xLabel: 'second',
  yLabel: 'requests/s',
};

function picturesOf(
  variant: Variant,
  { quick, seeds }: ExperimentContext,
): Omit<Outcome, 'measures'> {
  const runs = runVariants('moving hotspot', { quick, seed: seeds[0]! });
  return {
    ...pictures,
    before: { title: 'equal shares, moving hotspot', lines: admittedLines(runs.split) },
    after: { title: variant, lines: admittedLines(runs[variant]) },
  };
}

/**
 * Messages and delay: not given in the paper; bounded by the tracker's limit, and the time of two
 * questions.
 */
function costs(variant: Variant, context: ExperimentContext): Measure[] {
  const most = (of: 'messagesPerSecond' | 'p99Added'): number =>
    Math.max(...shapes.map((shape) => meanOf(shape, variant, of, context)));
  return [
    {
      metric: `${variant}: messages a second, of the shape that has most`,
      value: most('messagesPerSecond'),
      threshold: 2000,
      better: 'lower',
    },
    {
      metric: `${variant}: p99 of added latency, of the shape that has most, ms`,
      value: most('p99Added'),
      threshold: 2,
      better: 'lower',
    },
  ];
}

export const distributedSplit: Experiment = {
  id: 'AWS-dist-split',
  title: 'A quota divided by the number of servers',
  kind: 'SIM',
  source,
  setup:
    traffic +
    'Equal shares hold with even traffic only; the other ways are beside them, shares moved by a scheduler being the default.',
  run(context) {
    const { seeds, quick, progress } = context;
    for (const seed of seeds) {
      progress(`seed ${seed}`);
      for (const shape of shapes) runVariants(shape, { quick, seed });
    }
    const even = variants.flatMap((variant) => errorMeasures(variant, ['even'], context));
    const split = skewedShapes.map(
      (shape): Measure => ({
        metric: `${shape}, split: admitted off what is allowed, %`,
        value: meanOf(shape, 'split', 'error', context),
        threshold: 30,
        better: 'higher',
      }),
    );
    const scheduler = errorMeasures('scheduler', skewedShapes, context);
    return {
      measures: [
        ...even,
        ...split,
        ...scheduler,
        ...costs('split', context),
        ...costs('scheduler', context),
      ],
      ...picturesOf('scheduler', context),
    };
  },
};

export const distributedHash: Experiment = {
  id: 'AWS-dist-hash',
  title: 'One tracker counts for a key, and leases tokens of a fast one',
  kind: 'SIM',
  source,
  setup:
    traffic +
    'The tracker, 1 ms away, is found by consistent hashing and asked for each request of a slow key; from 1,000 a ' +
    'second on it gives leases. And: a key of 50,000 a second from one moment to the next.',
  run(context) {
    const { seeds, progress } = context;
    const measures = errorMeasures('hash', shapes, context);
    progress('a fast key');
    const leased = seeds.map((seed) => runFastKey(seed, 1000));
    const asked = seeds.map((seed) => runFastKey(seed, Infinity));
    const mean = (runs: readonly Run[], of: 'trackerPeak' | 'error'): number =>
      runs.reduce((sum, run) => sum + run[of], 0) / runs.length;
    measures.push(
      {
        metric: 'questions to the tracker of a key of 50,000/s in its busiest second',
        value: mean(leased, 'trackerPeak'),
        threshold: 2000,
        better: 'lower',
        without: mean(asked, 'trackerPeak'),
      },
      {
        metric: 'that key: admitted off what is allowed, %',
        value: mean(leased, 'error'),
        threshold: 5,
        better: 'lower',
        without: mean(asked, 'error'),
      },
      ...costs('hash', context),
    );
    return { measures, ...picturesOf('hash', context) };
  },
};

export const distributedGossip: Experiment = {
  id: 'AWS-dist-gossip',
  title: 'Servers tell each other their rates',
  kind: 'SIM',
  source,
  setup: `${traffic}Each server tells all others its rate every second, and takes its fraction of the quota.`,
  run(context) {
    return {
      measures: [...errorMeasures('gossip', shapes, context), ...costs('gossip', context)],
      ...picturesOf('gossip', context),
    };
  },
};
