// Two tenants on one pod with half of its units each. The first one's writes ramp up from 0.2 to
// 1.2 times the pod's capacity; the second is steady at 0.42, but for three seconds of each minute
// at 0.52.

import { FairQueue } from '../../../storage-node/admission/fair-queue.ts';
import { PodBuckets } from '../../../storage-node/admission/pod/pod-buckets.ts';
import type { Line } from '../experiment.ts';
import { Chance } from '../sim/chance.ts';
import { Simulation } from '../sim/simulation.ts';

/** Units a second; a request is one. */
export const podRate = 500;
/** Requests that are worked on side by side. */
const slots = 8;
export const serviceMs = (slots * 1000) / podRate;

export interface NoisyOptions {
  seconds: number;
  seed: number;
  /** Whether the pod's buckets decide on admission. */
  buckets: boolean;
  /** In which order those that were taken on are served. */
  order: 'fifo' | 'fair';
  /** Without the first tenant. */
  alone?: boolean;
  /** Load of the first tenant, instead of the ramp. */
  firstLoad?: number;
  /** Load of the second tenant, instead of its own. */
  secondLoad?: number;
}

export interface NoisyRun {
  /** Milliseconds from arrival to answer, of the second tenant. */
  latencies: number[];
  served: number;
  /** Requests of the second tenant, and those refused. */
  offered: number;
  refused: number;
  /** Units that could have been done. */
  capacity: number;
  /** Mean latency of the second tenant by second, ms. */
  bySecond: Line;
}

interface Request {
  tenant: 1 | 2;
  at: number;
}

export function runNoisy(options: NoisyOptions): NoisyRun {
  const { seconds, seed, alone } = options;
  const end = seconds * 1000;
  const simulation = new Simulation();
  const chance = new Chance(seed);
  const buckets = new PodBuckets({ podRate }, 0);
  const fair = new FairQueue<Request>();
  for (const tenant of [1, 2]) {
    buckets.setTenant(tenant, podRate / 2, 0);
    fair.setWeight(tenant, 0.5);
  }
  const fifo: Request[] = [];
  let fifoHead = 0;
  let busy = 0;
  const run: NoisyRun = {
    latencies: [],
    served: 0,
    offered: 0,
    refused: 0,
    capacity: seconds * podRate,
    bySecond: { label: 'tenant 2', points: [] },
  };
  const sums = new Float64Array(seconds);
  const counts = new Float64Array(seconds);

  const serve = (): void => {
    while (busy < slots) {
      const next = options.order === 'fair' ? fair.pop() : fifo[fifoHead++];
      if (next === undefined) {
        if (options.order === 'fifo') fifoHead--;
        return;
      }
      busy++;
      simulation.after(serviceMs, () => {
        busy--;
        answered(next);
        serve();
      });
    }
  };
  const answered = ({ tenant, at }: Request): void => {
    run.served++;
    if (tenant !== 2) return;
    const took = simulation.now() - at;
    run.latencies.push(took);
    const second = Math.floor(at / 1000);
    sums[second] = sums[second]! + took;
    counts[second] = counts[second]! + 1;
  };
  const arrive = (tenant: 1 | 2): void => {
    const at = simulation.now();
    if (tenant === 2) run.offered++;
    if (options.buckets && !buckets.mayBegin(tenant, at)) {
      if (tenant === 2) run.refused++;
      return;
    }
    buckets.charge(tenant, 1, at);
    if (options.order === 'fair') fair.push(tenant, 1, { tenant, at });
    else fifo.push({ tenant, at });
    serve();
  };
  const load = (tenant: 1 | 2, at: number): number => {
    if (tenant === 1) return options.firstLoad ?? 0.2 + at / end;
    return options.secondLoad ?? (at % 60_000 < 3000 ? 0.52 : 0.42);
  };
  const generate = (tenant: 1 | 2): void => {
    const gap = 1000 / (load(tenant, simulation.now()) * podRate);
    simulation.after(gap * chance.uniform(0.8, 1.2), () => {
      arrive(tenant);
      generate(tenant);
    });
  };
  if (alone !== true) generate(1);
  generate(2);
  simulation.runUntil(end);

  // Requests still waiting have waited until now, at least.
  if (options.order === 'fifo') {
    for (const { tenant, at } of fifo.slice(fifoHead)) {
      if (tenant === 2) run.latencies.push(end - at);
    }
  }
  run.bySecond = {
    label: 'tenant 2',
    points: Array.from(sums, (sum, second): [number, number] => [
      second,
      sum / (counts[second]! || 1),
    ]),
  };
  return run;
}
