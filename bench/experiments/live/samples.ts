// Summaries of the samples of two neighbours.

import type { Neighbours, PhaseOptions, Sample } from '../../../cli/demo/neighbours.ts';
import { percentile } from '../../../cli/demo/percentiles.ts';
import { median } from '../../support/statistics.ts';
import type { Line } from '../experiment.ts';

export async function samplesOf(
  neighbours: Neighbours,
  options: Omit<PhaseOptions, 'rates'> & { flood: number },
): Promise<Sample[]> {
  const { flood } = options;
  const samples: Sample[] = [];
  const phase = neighbours.phase({ ...options, rates: () => ({ flood }) });
  for await (const sample of phase) samples.push(sample);
  return samples;
}

/** Infinity for a second without answers. */
export function p99Of({ latencies }: Sample): number {
  return latencies.length === 0 ? Infinity : percentile(latencies, 0.99);
}

/** Seconds without answers. */
export function silentOf(samples: readonly Sample[]): number {
  return samples.filter(({ latencies }) => latencies.length === 0).length;
}

/** p99 of a typical second: other load on the machine spoils some seconds, on both sides alike. */
export function usualP99(samples: readonly Sample[]): number {
  return median(samples.map(p99Of));
}

/** A second. */
export function meanOf(samples: readonly Sample[], of: (sample: Sample) => number): number {
  const seconds = samples.reduce((sum, sample) => sum + sample.seconds, 0);
  return samples.reduce((sum, sample) => sum + of(sample) * sample.seconds, 0) / seconds;
}

export function totalOf(samples: readonly Sample[], of: (sample: Sample) => number): number {
  return samples.reduce((sum, sample) => sum + of(sample), 0);
}

/** Requests of B that were not answered as asked, or only after so long. */
export function missedBy(samples: readonly Sample[], ms: number): number {
  return totalOf(
    samples,
    ({ notServed, latencies }) => notServed + latencies.filter((latency) => latency > ms).length,
  );
}

/** Sample by sample, but for those in which there was none. */
export function lineOf(
  label: string,
  samples: readonly Sample[],
  of: (sample: Sample) => number,
): Line {
  let at = 0;
  return {
    label,
    points: samples
      .map((sample): [number, number] => [(at += sample.seconds), of(sample)])
      .filter(([, y]) => Number.isFinite(y)),
  };
}

/** The words of something that failed, if anything did. */
export function failureIn(samples: readonly Sample[]): string | undefined {
  const failure = samples.find((sample) => sample.failure !== undefined)?.failure;
  return failure === undefined ? undefined : `What failed said: ${failure}`;
}
