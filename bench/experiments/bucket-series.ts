import { BucketSeries, type BucketShape } from '../../access/admission/bucket-series.ts';
import type { Experiment, Line } from './experiment.ts';

const slow: BucketShape = { rate: 100, capacity: 10_000 };
const fast: BucketShape = { rate: 1000, capacity: 100 };
/** Milliseconds. */
const step = 1;
const asked = 10;

/** Units in each millisecond of a client that takes all it can get. */
function admitted(shapes: readonly BucketShape[], seconds: number): Float64Array {
  const series = BucketSeries.of(shapes, 0);
  const got = new Float64Array((seconds * 1000) / step);
  for (let i = 0; i < got.length; i++) {
    for (let n = 0; n < asked; n++) if (series.take(1, i * step)) got[i]!++;
  }
  return got;
}

function mostIn(got: Float64Array, seconds: number): number {
  const span = (seconds * 1000) / step;
  let sum = 0;
  let most = 0;
  for (let i = 0; i < got.length; i++) {
    sum += got[i]! - (i >= span ? got[i - span]! : 0);
    most = Math.max(most, sum);
  }
  return most;
}

function perSecond(got: Float64Array, label: string): Line {
  const span = 1000 / step;
  return {
    label,
    points: Array.from({ length: Math.min(60, got.length / span) }, (_, s): [number, number] => [
      s,
      got.subarray(s * span, (s + 1) * span).reduce((sum, value) => sum + value, 0),
    ]),
  };
}

export const bucketSeries: Experiment = {
  id: 'AWS-composed',
  title: 'Token buckets in series',
  kind: 'SIM',
  source: 'Amazon, Fairness in multi-tenant systems, "Token buckets"',
  setup:
    'A client that asks for 10,000 a second, before a bucket of rate 100 with room for 10,000, alone and with one of ' +
    'rate 1,000 with room for 100 behind it.',
  run({ quick }) {
    const seconds = quick ? 600 : 3600;
    const got = admitted([slow, fast], seconds);
    const alone = admitted([slow], seconds);
    const settled = got.subarray((seconds * 1000) / step / 2);
    const longRun = settled.reduce((sum, value) => sum + value, 0) / (seconds / 2);
    return {
      measures: [
        {
          metric: 'most in any second',
          value: mostIn(got, 1),
          threshold: 1100,
          better: 'lower',
          without: mostIn(alone, 1),
        },
        {
          metric: 'most in any ten seconds',
          value: mostIn(got, 10),
          threshold: 10_100,
          better: 'lower',
          without: mostIn(alone, 10),
        },
        {
          metric: 'off 100 a second in the long run, %',
          value: Math.abs(longRun - 100),
          threshold: 1,
          better: 'lower',
        },
      ],
      xLabel: 'second',
      yLabel: 'admitted/s',
      before: { title: 'one bucket', lines: [perSecond(alone, 'admitted')] },
      after: { title: 'two in series', lines: [perSecond(got, 'admitted')] },
    };
  },
};
