// A node that serves so many requests a second, with refusals that cost work as well. Tenants offer
// requests of one unit; limiters before the node and before its queue decide on admission.

import { TokenBucket } from '../../../request-units/token-bucket.ts';
import { FairQueue } from '../../../storage-node/admission/fair-queue.ts';
import type { Line } from '../experiment.ts';
import { Chance } from '../sim/chance.ts';
import { Simulation } from '../sim/simulation.ts';

interface NodeTenant {
  /** Requests a second at a time in milliseconds. */
  load: (now: number) => number;
  weight: number;
  /** Before the node: a refusal costs it nothing. */
  proxy?: (now: number) => boolean;
  /** At the node's entry, before its queue. */
  entry?: (now: number) => boolean;
}

interface NodeOptions {
  /** Requests served a second, and how many at a time. */
  rate: number;
  slots: number;
  /** Cost of a refusal, relative to a request served. */
  refusalCost: number;
  /**
   * Most refusals a second: further input is not read, and stays with the client. No limit when
   * left out.
   */
  refusalPace?: number;
  /** Requests that may wait, of all tenants or of each; beyond it they are refused. */
  queueLength: number;
  queueOf: 'all' | 'each';
  order: 'fifo' | 'fair';
  seconds: number;
  seed: number;
  tenants: readonly NodeTenant[];
  /** Each second. */
  everySecond?: (now: number) => void;
}

export interface NodeTenantRun {
  offered: number[];
  served: number[];
  /** Milliseconds of those answered, by second of their arrival. */
  latencies: number[][];
}

interface Job {
  tenant: number;
  at: number;
}

export function runNode(options: NodeOptions): NodeTenantRun[] {
  const {
    rate,
    slots,
    refusalCost,
    refusalPace = Infinity,
    queueLength,
    queueOf,
    order,
    seconds,
    tenants,
  } = options;
  const simulation = new Simulation();
  const chance = new Chance(options.seed);
  const fair = new FairQueue<Job>();
  const totalWeight = tenants.reduce((sum, { weight }) => sum + weight, 0);
  tenants.forEach(({ weight }, tenant) => fair.setWeight(tenant, weight / totalWeight));
  const fifo: Job[] = [];
  let head = 0;
  // Refusals go before everything: a node reads a request before it can refuse it.
  let refusals = 0;
  const pace =
    refusalPace === Infinity ? undefined : new TokenBucket(refusalPace, refusalPace / 100, 0);
  let busy = 0;
  const runs = tenants.map((): NodeTenantRun => {
    const zeros = (): number[] => Array.from({ length: seconds }, () => 0);
    return {
      offered: zeros(),
      served: zeros(),
      latencies: Array.from({ length: seconds }, () => []),
    };
  });
  const waiting = (tenant: number): number => {
    if (order === 'fifo') return fifo.length - head;
    return queueOf === 'each' ? fair.queuedOf(tenant) : fair.length;
  };
  const work = (): void => {
    while (busy < slots) {
      if (refusals > 0) {
        refusals--;
        busy++;
        simulation.after((slots * refusalCost * 1000) / rate, idle);
        continue;
      }
      const job = order === 'fair' ? fair.pop() : fifo[head];
      if (job === undefined) return;
      if (order === 'fifo') head++;
      busy++;
      // Not all alike: slots that once began together would end together ever after.
      simulation.after((slots * 1000 * chance.uniform(0.7, 1.3)) / rate, () => {
        const run = runs[job.tenant]!;
        const second = Math.floor(job.at / 1000);
        run.served[second]!++;
        run.latencies[second]!.push(simulation.now() - job.at);
        idle();
      });
    }
  };
  const idle = (): void => {
    busy--;
    work();
  };
  tenants.forEach((tenant, index) => {
    const arrive = (): void => {
      const at = simulation.now();
      runs[index]!.offered[Math.floor(at / 1000)]!++;
      if (tenant.proxy?.(at) === false) return;
      if (tenant.entry?.(at) === false || waiting(index) >= queueLength) {
        if (pace?.take(1, at) !== false) refusals++;
      } else if (order === 'fair') fair.push(index, 1, { tenant: index, at });
      else fifo.push({ tenant: index, at });
      work();
    };
    const generate = (): void => {
      simulation.after(chance.exponential(tenant.load(simulation.now()) / 1000), () => {
        if (simulation.now() >= seconds * 1000) return;
        arrive();
        generate();
      });
    };
    generate();
  });
  simulation.every(1000, () => options.everySecond?.(simulation.now()));
  simulation.runUntil(seconds * 1000);
  return runs;
}

/** Requests served a second, as lines of a picture. */
export function servedLines(runs: readonly NodeTenantRun[]): Line[] {
  return runs.map(({ served }, tenant) => ({
    label: `tenant ${tenant + 1}`,
    points: served.map((count, second): [number, number] => [second, count]),
  }));
}

export function sumOf(values: readonly number[], from = 0, to = values.length): number {
  return values.slice(from, to).reduce((sum, value) => sum + value, 0);
}
