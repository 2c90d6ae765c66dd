// A noisy neighbour in three phases: B alone; A sends twice the plane's capacity and no tenant has a limit; the same
// with a limit for A of a tenth of the capacity.

import { type Capacity, Neighbours, type Sample } from './neighbours.ts';
import { joined, percentile } from './percentiles.ts';
import { bystander, flooder, type Kind, prepared } from './workloads.ts';

/** A's offered load as a multiple of its quota. */
export const floodFactor = 20;
/** Quotas as fractions of the plane's capacity for A alone. */
const floodersPart = 0.1;
const bystandersPart = 0.3;
const warmUpSeconds = 2;
const capacitySeconds = 1.5;

export const phases = ['alone', 'no limits', 'limits'] as const;
export type Phase = (typeof phases)[number];

/** Figures of one phase. Rates are per second, times in milliseconds. */
export interface PhaseFigures {
  phase: Phase;
  seconds: number;
  /** A: requests due, served and refused; units charged. */
  offered: number;
  served: number;
  refused: number;
  ru: number;
  /** B: requests served a second. */
  rate: number;
  p50: number;
  p99: number;
  /** The median of the per-second p99s: other work on the machine spoils some seconds, not most. */
  usualP99: number;
  notServed: number;
  /** The words of something that failed. */
  failure?: string | undefined;
}

export interface Check {
  what: string;
  value: number;
  /** Lower bound of the accepted range. */
  least: number;
  most: number;
  pass: boolean;
}

export interface NoisyNeighbour {
  over: Kind;
  about: string;
  capacity: Capacity;
  /** Units a second. */
  quota: number;
  phases: PhaseFigures[];
  checks: Check[];
}

export interface Watcher {
  /** Announces the next step. */
  step(text: string): void;
  begins(phase: Phase, quota: number): void;
  /** A second is over. */
  second(phase: Phase, sample: Sample): void;
}

/** Settings of each phase. */
export const settingsOf: Readonly<Record<Phase, Record<string, string>>> = {
  alone: { 'admission.mode': 'enforce', 'admission.fair-scheduling': 'on' },
  'no limits': { 'admission.mode': 'off', 'admission.fair-scheduling': 'off' },
  limits: { 'admission.mode': 'enforce', 'admission.fair-scheduling': 'on' },
};

interface NoisyNeighbourOptions {
  over: Kind;
  /** Length of each phase. */
  seconds: number;
  signal?: AbortSignal;
}

export async function noisyNeighbour(
  { over, seconds, signal }: NoisyNeighbourOptions,
  watcher: Watcher,
): Promise<NoisyNeighbour> {
  watcher.step('starting a server');
  const neighbours = await Neighbours.start({ prepare: prepared[over], signal });
  try {
    watcher.step('finding out what this machine can do');
    await neighbours.warmUp(warmUpSeconds);
    const { capacity, quota, floodRate } = await sized(neighbours, capacitySeconds);
    const figures: PhaseFigures[] = [];
    for (const phase of phases) {
      await neighbours.server.set(settingsOf[phase]);
      watcher.begins(phase, quota);
      const samples: Sample[] = [];
      const flood = phase === 'alone' ? 0 : floodRate;
      for await (const sample of neighbours.phase({ rates: () => ({ flood }), samples: seconds })) {
        samples.push(sample);
        watcher.second(phase, sample);
      }
      figures.push(figuresOf(phase, samples));
    }
    const [alone, , limited] = figures as [PhaseFigures, PhaseFigures, PhaseFigures];
    return {
      over,
      about: neighbours.workload.about,
      capacity,
      quota,
      phases: figures,
      checks: checksOf(alone, limited, quota, capacity),
    };
  } finally {
    await neighbours.stop();
  }
}

export interface Sized {
  capacity: Capacity;
  /** A's quota in units a second; and its flood in requests a second. */
  quota: number;
  floodRate: number;
}

/** Gives both tenants quotas that fit the machine's capacity. */
export async function sized(neighbours: Neighbours, seconds: number): Promise<Sized> {
  const { server } = neighbours;
  await server.set({ 'admission.mode': 'off' });
  const capacity = await neighbours.capacity(seconds);
  const quota = rounded(capacity.ru * floodersPart);
  await server.setQuota(flooder, quota);
  await server.setQuota(bystander, rounded(capacity.ru * bystandersPart));
  return { capacity, quota, floodRate: (floodFactor * quota * capacity.requests) / capacity.ru };
}

/** Rounds to two digits. */
function rounded(ru: number): number {
  return Math.max(1, Number(ru.toPrecision(2)));
}

export function figuresOf(phase: Phase, samples: readonly Sample[]): PhaseFigures {
  const seconds = samples.reduce((sum, sample) => sum + sample.seconds, 0);
  const rateOf = (of: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample) * sample.seconds, 0) / seconds;
  const latencies = joined(samples.map((sample) => sample.latencies));
  return {
    phase,
    seconds,
    offered: rateOf(({ offered }) => offered),
    served: rateOf(({ served }) => served),
    refused: rateOf(({ refused }) => refused),
    ru: rateOf(({ ru }) => ru),
    rate: rateOf(({ rate }) => rate),
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    usualP99: percentile(
      Float64Array.from(samples, (one) => percentile(one.latencies, 0.99)),
      0.5,
    ),
    notServed: samples.reduce((sum, { notServed }) => sum + notServed, 0),
    failure: samples.find(({ failure }) => failure !== undefined)?.failure,
  };
}

function checksOf(
  alone: PhaseFigures,
  limited: PhaseFigures,
  quota: number,
  { headroom }: Capacity,
): Check[] {
  const check = (what: string, value: number, least: number, most: number): Check => ({
    what,
    value,
    least,
    most,
    pass: value >= least && value <= most,
  });
  return [
    check(
      'p99 of B in a usual second beside A, of that alone',
      limited.usualP99 / alone.usualP99,
      0,
      1.3,
    ),
    check('requests of B refused or failed', limited.notServed + alone.notServed, 0, 0),
    check('units that A was served, of its quota', limited.ru / quota, 0.95, 1.05),
    check('what A could send, of what the server can do', headroom, 2, Infinity),
  ];
}
